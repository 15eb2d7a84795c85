//! A node's client: the demo's application, one process away from the ring.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rota_bench::{ToGroup, configuration_of, message_of, node_of};
use rota_client::{Cause, Client, Destination, Envelope, Event, GroupName, PrivateName, View};
use rota_core::contract::Service;
use rota_net::monotonic;
use rota_node::App;

use super::app::DemoApp;

/// The group in which all clients meet, and what each calls itself.
const GROUP: &str = "demo";
/// The time that a daemon may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two tries to reach a daemon that has just been started.
const TRY: Duration = Duration::from_millis(5);
/// The longest wait for events: then orders and the window are looked at again.
const LOOK: Duration = Duration::from_millis(5);
/// Events taken before there is something to submit again.
const EVENTS_AT_ONCE: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct DemoClient {
    client: Client,
    group: Envelope,
    /// The number of messages that came from each node, from node 1 on.
    heard: Vec<u64>,
}

impl DemoClient {
    /// Connects as soon as the daemon listens, and joins the group.
    pub fn connect(socket: &Path, service: Service, nodes: usize) -> Result<Self, String> {
        let builder = Client::builder().name(GROUP).membership(true);
        let builder = builder.service(service).timeout(PATIENCE);
        let until = Instant::now() + PATIENCE;
        let mut client = loop {
            match builder.connect(socket) {
                Ok(client) => break client,
                Err(error) if Instant::now() > until => {
                    return Err(format!("cannot reach its daemon: {error}"));
                }
                Err(_) => thread::sleep(TRY),
            }
        };
        client.join(GROUP).map_err(|error| error.to_string())?;
        let group = GroupName::new(GROUP).map_err(|error| error.to_string())?;
        Ok(Self {
            client,
            group: Envelope::from(Destination::from(group)),
            heard: vec![0; nodes],
        })
    }

    /// Submits what may be submitted, and takes what has come, or waits for it a little. An error says how
    /// the daemon was lost.
    pub fn turn(&mut self, app: &mut DemoApp) -> Result<(), String> {
        let lost = |error: rota_client::ConnectionLost| error.to_string();
        let Self { client, group, .. } = self;
        app.fill(monotonic(), &mut ToGroup { client, group });
        client.flush().map_err(lost)?;
        let wait = if app.may_sleep() {
            LOOK
        } else {
            Duration::ZERO
        };
        let mut next = client.recv_timeout(wait).map_err(lost)?;
        let mut any = false;
        for _ in 0..EVENTS_AT_ONCE {
            let Some(event) = next.take() else { break };
            any = true;
            self.deliver(event, app);
            next = self.client.try_recv().map_err(lost)?;
        }
        if let Some(event) = next {
            self.deliver(event, app);
        }
        if any {
            app.flush();
        }
        Ok(())
    }

    fn deliver(&mut self, event: Event, app: &mut DemoApp) {
        match event {
            Event::Message(message) => {
                let Some(node) = node_of(&message.sender) else {
                    return;
                };
                let Some(heard) = self.heard.get_mut(usize::from(node.get()) - 1) else {
                    return;
                };
                *heard += 1;
                app.deliver(message_of(node, *heard, message));
            }
            Event::View(view) => {
                app.saw(&shown(&view));
                app.deliver(configuration_of(&view));
            }
            _ => {}
        }
    }
}

/// `#demo#2 #demo#3 | #demo#4`: the members, by who came together.
fn shown(view: &View) -> String {
    let all = |names: &mut dyn Iterator<Item = &PrivateName>| {
        let names: Vec<String> = names.map(ToString::to_string).collect();
        names.join(" ")
    };
    let Cause::Network(sets) = &view.cause else {
        return all(&mut view.members.iter());
    };
    let sets = sets.iter().map(|set| {
        let members = set.iter().filter_map(|at| view.members.get(*at as usize));
        all(&mut members.into_iter())
    });
    let sets: Vec<String> = sets.collect();
    sets.join(" | ")
}
