//! A node of a script: its disk, and its process if that lives.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Delivery, Engine, Incarnation, Input, LogId, LogRecord, NodeId,
    Output, PersistError, PersistId, Process, Session, StartState, Target, Time,
};

/// The bytes that a link takes.
const ROOM: usize = 1 << 20;

/// The records on a disk, by log and position.
pub type Records = BTreeMap<(LogId, u64), Bytes>;

/// Puts a record on a disk: of some logs it takes the place of parts of others.
pub type Store = fn(&mut Records, LogId, u64, Bytes);

/// What comes to a process.
#[derive(Clone, Debug)]
pub enum Arrival {
    Datagram(Class, Bytes),
    Message(NodeId, Session, Bytes),
    Link(Input),
    Answer(Answer),
}

/// What a disk says.
#[derive(Clone, Debug)]
pub enum Answer {
    Persisted(PersistId),
    Failed(PersistId),
    Reopened,
}

/// What leaves a process.
pub struct Sent {
    /// `None`: for all others.
    pub to: Option<NodeId>,
    pub arrival: Arrival,
}

/// The effects of the outputs of an engine.
#[derive(Default)]
pub struct Effects {
    pub sent: Vec<Sent>,
    pub answers: Vec<Answer>,
    /// Something was handed in meanwhile: there may be more.
    pub again: bool,
}

#[derive(Default)]
pub struct Disk {
    records: Records,
    /// Requests without an answer.
    asked: VecDeque<PersistId>,
    reopens: bool,
    pub is_hung: bool,
    pub fails: bool,
}

impl Disk {
    /// The answers that are due.
    pub fn answers(&mut self) -> Vec<Answer> {
        if self.is_hung {
            return Vec::new();
        }
        let mut answers: Vec<Answer> = Vec::new();
        for id in std::mem::take(&mut self.asked) {
            answers.push(match self.fails {
                true => Answer::Failed(id),
                false => Answer::Persisted(id),
            });
        }
        if !self.fails && std::mem::take(&mut self.reopens) {
            answers.push(Answer::Reopened);
        }
        answers
    }

    fn put(&mut self, records: Vec<LogRecord>, store: Store) {
        for record in records {
            match record {
                LogRecord::Put {
                    log,
                    position,
                    bytes,
                } => store(&mut self.records, log, position, bytes.into_bytes()),
                LogRecord::Trim { log, position } => self
                    .records
                    .retain(|(of, at), _| *of != log || *at >= position),
            }
        }
    }

    fn all(&self) -> Vec<(LogId, u64, Bytes)> {
        let records = self.records.iter();
        records
            .map(|((log, at), bytes)| (*log, *at, bytes.clone()))
            .collect()
    }
}

/// A record that takes the place of that with its own position alone.
pub fn put(records: &mut Records, log: LogId, position: u64, bytes: Bytes) {
    records.insert((log, position), bytes);
}

pub struct Host<E> {
    node: NodeId,
    engine: Option<Checked<E>>,
    /// Grows with each life.
    pub life: u64,
    pub disk: Disk,
    pub paused: bool,
    /// What has come while the process stood still.
    pub waiting: Vec<Arrival>,
    links: BTreeMap<NodeId, Session>,
    durable: Option<PersistId>,
    /// Sends that wait for a request to be durable.
    after: VecDeque<(PersistId, Sent)>,
}

impl<E: Engine> Host<E> {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            engine: None,
            life: 0,
            disk: Disk::default(),
            paused: false,
            waiting: Vec::new(),
            links: BTreeMap::new(),
            durable: None,
            after: VecDeque::new(),
        }
    }

    pub const fn process(&self) -> Process {
        Process {
            node: self.node,
            incarnation: Incarnation(self.life),
        }
    }

    pub fn start(&mut self, now: Time, engine: E) {
        assert!(self.engine.is_none(), "{} lives", super::name_of(self.node));
        self.life += 1;
        let mut engine = Checked::new(engine);
        engine.handle(
            now,
            Input::Start(StartState {
                me: self.process(),
                seed: 1000 * u64::from(self.node.get()) + self.life,
                records: self.disk.all(),
                lost_some: false,
            }),
        );
        self.engine = Some(engine);
    }

    pub fn crash(&mut self) {
        self.engine = None;
        self.waiting.clear();
        self.links.clear();
        self.after.clear();
        self.durable = None;
        self.paused = false;
        self.disk.asked.clear();
        self.disk.reopens = false;
    }

    pub fn lose_disk(&mut self) {
        self.disk = Disk::default();
    }

    pub const fn is_alive(&self) -> bool {
        self.engine.is_some()
    }

    pub fn engine_mut(&mut self) -> &mut Checked<E> {
        self.engine.as_mut().expect("the process lives")
    }

    pub fn wants_links(&self) -> bool {
        self.engine.as_ref().is_some_and(Engine::wants_links)
    }

    pub fn status(&self) -> Option<String> {
        self.engine.as_ref().map(|engine| engine.status().state)
    }

    /// A link is up.
    pub fn link(&mut self, peer: Process, session: Session) -> Vec<Arrival> {
        self.links.insert(peer.node, session);
        let up = Input::LinkUp { peer, session };
        let room = Input::Writable {
            peer: peer.node,
            session,
            bytes: ROOM,
        };
        [up, room].map(Arrival::Link).to_vec()
    }

    pub fn is_linked(&self, peer: NodeId) -> bool {
        self.links.contains_key(&peer)
    }

    /// A link is gone.
    pub fn unlink(&mut self, peer: NodeId) -> Option<Arrival> {
        let session = self.links.remove(&peer)?;
        Some(Arrival::Link(Input::LinkDown { peer, session }))
    }

    /// Whether something still comes in: messages of a link that is gone do not.
    pub fn takes(&self, arrival: &Arrival) -> bool {
        match arrival {
            Arrival::Message(peer, session, _) => self.links.get(peer) == Some(session),
            _ => true,
        }
    }

    pub fn next_timer(&self) -> Option<Time> {
        let engine = self.engine.as_ref().filter(|_| !self.paused)?;
        engine.next_timer().map(|(at, _)| at)
    }

    pub fn on_timer(&mut self, now: Time) {
        self.engine_mut().handle(now, Input::Timer);
    }

    pub fn hand_in(&mut self, now: Time, arrival: Arrival) {
        let input = match arrival {
            Arrival::Datagram(class, bytes) => Input::Datagrams {
                class,
                channel: Channel::default(),
                segment: bytes.len(),
                bytes,
            },
            Arrival::Message(peer, session, bytes) => {
                if self.links.get(&peer) != Some(&session) {
                    return;
                }
                Input::LinkMessage {
                    peer,
                    session,
                    channel: Channel::default(),
                    bytes,
                }
            }
            Arrival::Link(input) => input,
            Arrival::Answer(Answer::Persisted(id)) => {
                self.durable = self.durable.max(Some(id));
                Input::Persisted { id }
            }
            Arrival::Answer(Answer::Failed(id)) => Input::PersistFailed {
                id,
                error: PersistError::Io("the disk fails".to_owned()),
            },
            Arrival::Answer(Answer::Reopened) => Input::Reopened {
                records: self.disk.all(),
                lost_some: false,
            },
        };
        let engine = self.engine_mut();
        engine.handle(now, input);
        engine.reading();
    }

    /// Carries out the outputs of the engine.
    pub fn outputs(&mut self, now: Time, store: Store) -> Effects {
        let mut effects = Effects::default();
        let mut fetched = Vec::new();
        let mut room = Vec::new();
        while let Some(output) = self.engine_mut().poll_output() {
            match output {
                Output::Send {
                    class,
                    to,
                    burst,
                    after,
                    ..
                } => {
                    let to = match to {
                        Target::Others => None,
                        Target::Node(node) => Some(node),
                    };
                    for datagram in burst.datagrams() {
                        let bytes = Bytes::copy_from_slice(datagram);
                        let arrival = Arrival::Datagram(class, bytes);
                        self.leave(after, Sent { to, arrival }, &mut effects);
                    }
                }
                Output::LinkSend {
                    peer,
                    session,
                    bytes,
                    ..
                } => {
                    let arrival = Arrival::Message(self.node, session, bytes.into_bytes());
                    let to = Some(peer);
                    self.leave(None, Sent { to, arrival }, &mut effects);
                    room.push((peer, session));
                }
                Output::Persist { id, records } => {
                    self.disk.asked.push_back(id);
                    if !self.disk.fails {
                        self.disk.put(records, store);
                    }
                }
                Output::Fetch { log, from, to } => {
                    let records = self.disk.records.range((log, from)..(log, to));
                    let records = records.map(|((_, at), bytes)| (*at, bytes.clone()));
                    fetched.push(Input::Fetched {
                        log,
                        from,
                        to,
                        records: records.collect(),
                    });
                }
                Output::Reopen => {
                    self.disk.asked.clear();
                    self.disk.reopens = true;
                }
                Output::Arbitrate { .. } => panic!("there is no service"),
                Output::Originated { .. } => {}
            }
        }
        effects.answers = self.disk.answers();
        while let Some((_, sent)) = self.after.pop_front_if(|(id, _)| self.durable >= Some(*id)) {
            effects.sent.push(sent);
        }
        let rooms = room.into_iter().filter_map(|(peer, session)| {
            let is_up = self.links.get(&peer) == Some(&session);
            is_up.then_some(Input::Writable {
                peer,
                session,
                bytes: ROOM,
            })
        });
        let inputs: Vec<Input> = rooms.chain(fetched).collect();
        effects.again = !inputs.is_empty();
        for input in inputs {
            self.engine_mut().handle(now, input);
        }
        effects
    }

    /// Sends something, when the request that it waits for is durable.
    fn leave(&mut self, after: Option<PersistId>, sent: Sent, effects: &mut Effects) {
        match after.filter(|id| self.durable < Some(*id)) {
            Some(id) => self.after.push_back((id, sent)),
            None => effects.sent.push(sent),
        }
    }

    pub fn deliveries(&mut self) -> Vec<Delivery> {
        let engine = self.engine_mut();
        std::iter::from_fn(|| engine.poll_delivery()).collect()
    }
}
