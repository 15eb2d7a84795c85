//! A native client in a thread of its own, which draws what it does, and logs what it does and sees.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rota_check::event::{Cause, ClientSaw, GroupView, Post};
use rota_client::{Client, Envelope, Event, Service};
use rota_core::contract::{MessageId, Process};
use rota_net::monotonic;
use rota_node::trace::hash;
use rota_sim::rng::Rng;

use crate::log::{Log, told};

/// Groups that there are.
pub const GROUPS: u64 = 5;
/// Nothing that a client asks for takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// What all clients share.
#[derive(Debug)]
pub struct Shared {
    /// By node: the daemon that runs there.
    pub lives: Mutex<Vec<Option<Process>>>,
    /// Nobody asks for anything any more.
    pub settling: AtomicBool,
    pub ended: AtomicBool,
    /// Things seen by all clients.
    pub seen: AtomicU64,
    pub logs: Mutex<Vec<Log>>,
}

impl Shared {
    pub fn life(&self, node: u16) -> Option<Process> {
        let lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        lives[usize::from(node) - 1]
    }

    pub fn keep(&self, log: Log) {
        let logs = self.logs.lock();
        logs.unwrap_or_else(PoisonError::into_inner).push(log);
    }
}

/// A client that connects again whenever its connection ends.
#[derive(Debug)]
pub struct Slot {
    pub node: u16,
    /// Which of all clients, for its numbers.
    pub number: u64,
    pub name: String,
    pub socket: PathBuf,
    pub rng: Rng,
    /// All clients, as destinations.
    pub names: Vec<String>,
    pub sent: u64,
}

/// A connection that lasts.
struct Connection<'a> {
    slot: &'a mut Slot,
    shared: &'a Shared,
    client: Client,
    wants: BTreeSet<String>,
    log: Log,
}

impl Slot {
    pub fn live(mut self, shared: &Arc<Shared>) {
        while !shared.ended.load(SeqCst) {
            thread::sleep(Duration::from_millis(5));
            let Some(process) = shared.life(self.node) else {
                continue;
            };
            let builder = Client::builder().name(&self.name).membership(true);
            let Ok(client) = builder.timeout(PATIENCE).connect(self.socket.clone()) else {
                continue;
            };
            // Another daemon may have taken the place of the one that was looked up.
            if shared.life(self.node) != Some(process) {
                continue;
            }
            let log = Log {
                process,
                client: client.name().to_string(),
                saw: Vec::new(),
                told: Vec::new(),
                reduced: false,
            };
            let connection = Connection {
                slot: &mut self,
                shared,
                client,
                wants: BTreeSet::new(),
                log,
            };
            connection.live();
        }
    }
}

impl Connection<'_> {
    fn live(mut self) {
        let lost = self.work().is_none();
        let last = !lost && self.shared.ended.load(SeqCst);
        if !last {
            self.note(ClientSaw::Disconnect);
        }
        self.shared.keep(self.log);
        if !last && !lost {
            let _ = self.client.close();
        }
    }

    /// `None` if the connection was lost; otherwise it is to end.
    fn work(&mut self) -> Option<()> {
        while !self.shared.ended.load(SeqCst) {
            if !self.shared.settling.load(SeqCst) && !self.act()? {
                return Some(());
            }
            let wait = Duration::from_millis(self.slot.rng.range(2, 40));
            let mut event = self.client.recv_timeout(wait).ok()?;
            while let Some(now) = event {
                self.see(now);
                event = self.client.try_recv().ok()?;
            }
        }
        Some(())
    }

    fn note(&mut self, saw: ClientSaw) {
        self.log.saw.push((monotonic(), saw));
    }

    /// Whether it stays.
    fn act(&mut self) -> Option<bool> {
        match self.slot.rng.below(100) {
            0..12 => {
                let group = format!("g{}", self.slot.rng.below(GROUPS));
                self.wants.insert(group.clone());
                self.note(ClientSaw::Join(group.clone()));
                self.client.join(&group).ok()?;
            }
            12..17 => {
                let at = self.slot.rng.below(GROUPS) as usize;
                let group = self.wants.iter().nth(at).cloned();
                if let Some(group) = group {
                    self.wants.remove(&group);
                    self.note(ClientSaw::Leave(group.clone()));
                    self.client.leave(&group).ok()?;
                }
            }
            17 => return Some(!self.slot.rng.percent(40)),
            _ => self.send()?,
        }
        Some(true)
    }

    fn send(&mut self) -> Option<()> {
        self.slot.sent += 1;
        let id = MessageId {
            process: self.log.process,
            counter: self.slot.number << 32 | self.slot.sent,
        };
        let rng = &mut self.slot.rng;
        let mut to = vec![format!("g{}", rng.below(GROUPS))];
        if rng.percent(20) {
            to.push(format!("g{}", rng.below(GROUPS)));
        }
        if rng.percent(10) {
            to.push(self.slot.names[rng.index(self.slot.names.len())].clone());
        }
        to.dedup();
        let discard = rng.percent(10);
        let service = rng.pick(&Service::ALL);
        let mut payload = format!("{id}|").into_bytes();
        let largest = if rng.percent(2) { 20_000 } else { 300 };
        payload.resize(payload.len() + rng.below(largest) as usize, b'.');
        let envelope = Envelope::to_all(&to).expect("names");
        let mut envelope = envelope.service(service);
        if discard {
            envelope = envelope.self_discard();
        }
        let hash = hash(&payload);
        let post = Post {
            message: id,
            groups: to,
            service,
            hash,
        };
        self.note(ClientSaw::Send { post, discard });
        self.client.send(&envelope, &payload).ok()
    }

    fn see(&mut self, event: Event) {
        let saw = match event {
            Event::Message(message) => ClientSaw::Deliver(Post {
                message: id_of(&message.payload),
                groups: message.to.iter().map(ToString::to_string).collect(),
                service: message.service,
                hash: hash(&message.payload),
            }),
            Event::View(view) => ClientSaw::View(view_of(&view)),
            Event::Transitional { group, view } => ClientSaw::Transition {
                group: group.to_string(),
                gid: view.into(),
            },
            Event::SelfLeave { group } => ClientSaw::SelfLeave(group.to_string()),
            other => panic!("{other:?}"),
        };
        self.log.told.extend(told(&saw));
        self.note(saw);
        self.shared.seen.fetch_add(1, SeqCst);
    }
}

/// Every payload of these tests begins with its message's name.
pub fn id_of(payload: &[u8]) -> MessageId {
    let text = payload.split(|byte| *byte == b'|').next().expect("a name");
    let text = str::from_utf8(text).expect("a name");
    let parts: Vec<u64> = text
        .split('.')
        .map(|part| part.parse().expect("a number"))
        .collect();
    let node = u16::try_from(parts[0]).expect("a node");
    MessageId {
        process: Process {
            node: rota_core::contract::NodeId::new(node).expect("not 0"),
            incarnation: rota_core::contract::Incarnation(parts[1]),
        },
        counter: parts[2],
    }
}

fn view_of(view: &rota_client::View) -> GroupView {
    let name = |at: &u32| view.members[*at as usize].to_string();
    let (cause, vs_sets) = match &view.cause {
        rota_client::Cause::Join(one) => (Cause::Join, vec![vec![one.to_string()]]),
        rota_client::Cause::Leave(one) => (Cause::Leave, vec![vec![one.to_string()]]),
        rota_client::Cause::Disconnect(one) => (Cause::Disconnect, vec![vec![one.to_string()]]),
        rota_client::Cause::Network(sets) => {
            let sets = sets.iter().map(|set| set.iter().map(name).collect());
            (Cause::Network, sets.collect())
        }
    };
    GroupView {
        group: view.group.to_string(),
        gid: view.id.into(),
        cause,
        members: view.members.iter().map(ToString::to_string).collect(),
        vs_sets,
    }
}
