//! Groups over a ring, as an engine whose deliveries are what clients are told.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Class, Delivery, Engine, Input, Message, MessageId, Output, Process, Service, Status,
    SubmitError, Time, TimerReason,
};
use rota_core::groups::{
    Cause, ClientName, Connection, Daemon, Destination, Event, GroupName, Groups, Limits, Member,
    RequestError, Send, View,
};
use rota_ring::RingEngine;

use crate::scene::{Scene, name_of};

/// A daemon, and the names of its clients.
pub struct Grouped {
    ring: Option<RingEngine>,
    daemon: Option<Daemon<RingEngine>>,
    me: Option<Process>,
    clients: BTreeMap<Connection, String>,
    told: VecDeque<String>,
    /// What clients were told so far.
    count: u64,
}

impl Grouped {
    pub const fn new(ring: RingEngine) -> Self {
        Self {
            ring: Some(ring),
            daemon: None,
            me: None,
            clients: BTreeMap::new(),
            told: VecDeque::new(),
            count: 0,
        }
    }

    const fn daemon(&self) -> &Daemon<RingEngine> {
        self.daemon.as_ref().expect("it has started")
    }

    const fn daemon_mut(&mut self) -> &mut Daemon<RingEngine> {
        self.daemon.as_mut().expect("it has started")
    }

    fn client(&self, name: &str) -> Connection {
        let mut clients = self.clients.iter().rev();
        let client = clients.find(|(_, other)| *other == name);
        *client.expect("a client of that name").0
    }

    /// Carries out a request, and answers with what is said to it.
    fn request(
        &mut self,
        now: Time,
        request: impl FnOnce(&mut Groups) -> Result<(), RequestError>,
    ) -> String {
        match self.daemon_mut().request(now, request) {
            Ok(()) => "ok\n".into(),
            Err(error) => format!("{error}\n"),
        }
    }
}

fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("a group's name")
}

/// Runs a command: one of groups, or one of all scenes.
pub fn run(scene: &mut Scene<Grouped>, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        command @ ("client" | "join" | "part" | "send" | "quit"),
        who,
        name,
        rest @ ..,
    ] = &words[..]
    else {
        return scene.run(line);
    };
    let (at, now) = (usize::from(who.as_bytes()[0] - b'A'), scene.now());
    let its = scene.engine(at);
    let answer = match (*command, rest) {
        ("client", []) => {
            let name = ClientName::new(name).expect("a client's name");
            let connected = its.daemon_mut().request(now, |groups| groups.connect(name));
            match connected {
                Ok(connection) => {
                    its.clients.insert(connection, name.to_string());
                    "ok\n".into()
                }
                Err(error) => format!("{error}\n"),
            }
        }
        ("join", [to]) => {
            let client = its.client(name);
            its.request(now, |groups| groups.join(client, group(to)))
        }
        ("part", [to]) => {
            let client = its.client(name);
            its.request(now, |groups| groups.leave(client, group(to)))
        }
        ("send", [to, text]) => {
            let client = its.client(name);
            let send = Send {
                service: Service::Agreed,
                self_discard: false,
                kind: 0,
                big_endian: false,
                number: None,
                to: vec![Destination::Group(group(to))],
                payload: Bytes::copy_from_slice(text.as_bytes()),
            };
            its.request(now, |groups| groups.send(client, send))
        }
        ("quit", []) => {
            let client = its.client(name);
            let quit = |groups: &mut Groups| {
                groups.disconnect(client);
                Ok(())
            };
            its.request(now, quit)
        }
        _ => panic!("there is no command `{line}`"),
    };
    scene.go_on(at);
    answer
}

fn shown(member: &Member) -> String {
    format!("{}.{}", name_of(member.daemon.node), member.name)
}

fn list(members: &[Member]) -> String {
    members.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn show_view(view: &View) -> String {
    let cause = match view.cause {
        Cause::Join(member) => format!("{} joins", shown(&member)),
        Cause::Leave(member) => format!("{} leaves", shown(&member)),
        Cause::Disconnect(member) => format!("{} disconnects", shown(&member)),
        Cause::Network => {
            let sets: Vec<String> = view.vs_sets.iter().map(|set| list(set)).collect();
            format!("together came {}", sets.join(" / "))
        }
    };
    format!("{} has {} ({cause})", view.group, list(&view.members))
}

fn show(event: &Event) -> String {
    match event {
        Event::View(view) => show_view(view),
        Event::Transitional { group, .. } => format!("{group} is about to change"),
        Event::SelfLeave { group } => format!("{group} is left"),
        Event::Excluded => "excluded".into(),
        Event::Included { missed: true } => "included, something is missed".into(),
        Event::Included { missed: false } => "included".into(),
        Event::Message(message) => {
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            format!("`{text}` of {}", shown(&message.sender))
        }
    }
}

/// What a client is told.
pub fn describe(delivery: &Delivery) -> Option<String> {
    match delivery {
        Delivery::Message(message) => Some(String::from_utf8_lossy(&message.payload).into_owned()),
        _ => None,
    }
}

impl Engine for Grouped {
    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Start(start) = &input {
            let ring = self.ring.take().expect("it starts once");
            self.me = Some(start.me);
            self.daemon = Some(Daemon::new(ring, start.me, Limits::default()));
        }
        self.daemon_mut().handle(now, input);
    }

    /// All that is submitted comes of clients.
    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Unsupported)
    }

    fn leave(&mut self, now: Time) {
        self.daemon_mut().leave(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.daemon_mut().poll_output()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        while let Some(event) = self.daemon_mut().poll_event() {
            let shown = show(&event.event);
            let to = self
                .clients
                .iter()
                .filter(|(client, _)| event.to.contains(client));
            let to: Vec<&str> = to.map(|(_, name)| name.as_str()).collect();
            let told = format!("{}: {shown}", to.join(" "));
            self.told.push_back(told);
        }
        let told = self.told.pop_front()?;
        let process = self.me.expect("it has started");
        self.count += 1;
        Some(Delivery::Message(Message {
            id: MessageId {
                process,
                counter: self.count,
            },
            service: Service::Agreed,
            seq: self.count,
            index: 0,
            payload: told.into(),
        }))
    }

    fn reading(&self) -> Class {
        self.daemon().reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        self.daemon().next_timer()
    }

    fn status(&self) -> Status {
        self.daemon().status()
    }
}
