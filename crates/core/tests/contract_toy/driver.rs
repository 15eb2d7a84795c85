//! Drives toys in lock step by the contract's law: outputs strictly in order, sends held back until
//! the request they name is durable, links that grant credit, sessions that end.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Checked, Class, Delivery, Engine, Incarnation, Input, LogId, LogRecord, NodeId, Output,
    PersistError, PersistId, Process, Service, Session, StartState, SubmitError, Target, Time,
};

use super::toy::Toy;

const LINK_ROOM: usize = 4096;

pub fn node(at: usize) -> NodeId {
    NodeId::new(at as u16 + 1).expect("not 0")
}

fn process(at: usize, life: u64) -> Process {
    Process {
        node: node(at),
        incarnation: Incarnation(life),
    }
}

/// An engine that was not started.
#[cfg(debug_assertions)]
pub fn checked(at: usize) -> Checked<Toy> {
    Checked::new(Toy::new(3, process(at, 1)))
}

#[cfg(debug_assertions)]
pub fn start(at: usize) -> Input {
    Input::Start(StartState {
        me: process(at, 1),
        seed: 0,
        records: Vec::new(),
        lost_some: false,
    })
}

/// A message on a link: from, to, session, bytes.
pub type UnderWay = (usize, usize, Session, Bytes);

struct Node {
    engine: Checked<Toy>,
    life: u64,
    /// Sends whose request is not durable, and what came after them: nothing overtakes.
    held: VecDeque<Output>,
    durable: PersistId,
    /// Requests under way, and where they will be written.
    syncing: VecDeque<(PersistId, Vec<LogRecord>)>,
    log: BTreeMap<(LogId, u64), Bytes>,
    delivered: Vec<Delivery>,
}

/// One direction of a link.
#[derive(Default)]
struct Link {
    queue: VecDeque<Bytes>,
    /// What the engine may still send: what was granted less what was sent.
    granted: usize,
    /// Bytes handed to this link that have not arrived: those held back count too.
    used: usize,
}

pub struct Cluster {
    nodes: Vec<Node>,
    links: BTreeMap<(usize, usize), Link>,
    sessions: BTreeMap<(usize, usize), Session>,
    last_session: u64,
    room: usize,
    fullest: usize,
    disk_held: bool,
    disk_error: Option<PersistError>,
    outputs: Vec<Output>,
    left_the_sequencer: usize,
    now: Time,
}

impl Cluster {
    pub fn new(nodes: usize) -> Self {
        Self::with_link_room(nodes, LINK_ROOM)
    }

    /// A cluster whose links take `room` bytes each.
    pub fn with_link_room(nodes: usize, room: usize) -> Self {
        let mut cluster = Self {
            nodes: (0..nodes)
                .map(|at| Node::new(at, 1, BTreeMap::new()))
                .collect(),
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            room,
            fullest: 0,
            disk_held: false,
            disk_error: None,
            outputs: Vec::new(),
            left_the_sequencer: 0,
            now: Time(1),
        };
        for a in 0..nodes {
            for b in a + 1..nodes {
                cluster.connect(a, b);
            }
        }
        cluster.settle();
        cluster
    }

    pub fn toy(&self, at: usize) -> &Toy {
        self.nodes[at].engine.get()
    }

    pub fn delivered(&self, at: usize) -> &[Delivery] {
        &self.nodes[at].delivered
    }

    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Ordered messages that left node 0 over a link.
    pub const fn left_the_sequencer(&self) -> usize {
        self.left_the_sequencer
    }

    pub fn log_len(&self) -> usize {
        self.nodes[0].log.len()
    }

    /// The most bytes a link ever had to keep.
    pub const fn fullest_link(&self) -> usize {
        self.fullest
    }

    pub const fn hold_disk(&mut self, held: bool) {
        self.disk_held = held;
    }

    pub fn fail_disk(&mut self, error: PersistError) {
        self.disk_error = Some(error);
    }

    pub fn submit(&mut self, at: usize, payload: &[u8]) -> Result<u64, SubmitError> {
        self.submit_as(at, Service::Agreed, payload)
    }

    pub fn submit_as(
        &mut self,
        at: usize,
        service: Service,
        payload: &[u8],
    ) -> Result<u64, SubmitError> {
        let taken = self.nodes[at].engine.submit(self.now, service, payload);
        self.drain(at);
        taken
    }

    pub fn submit_skips_to(&mut self, at: usize, next: u64) -> Result<(), SubmitError> {
        let taken = self.nodes[at].engine.submit_skips_to(self.now, next);
        self.drain(at);
        taken
    }

    pub fn hand_in(&mut self, at: usize, input: Input) {
        self.now = self.now.after(1);
        self.nodes[at].engine.handle(self.now, input);
        self.drain(at);
        self.nodes[at].engine.reading();
    }

    /// A new session between two nodes.
    pub fn connect(&mut self, a: usize, b: usize) {
        self.last_session += 1;
        let session = Session(self.last_session);
        self.sessions.insert((a, b), session);
        for (from, to) in [(a, b), (b, a)] {
            self.links.insert((from, to), Link::default());
            let peer = process(to, self.nodes[to].life);
            self.hand_in(from, Input::LinkUp { peer, session });
            self.grant(from, to);
        }
    }

    /// Ends the session between two nodes; answers with what was under way.
    pub fn cut(&mut self, a: usize, b: usize) -> Vec<UnderWay> {
        let Some(session) = self.sessions.remove(&(a, b)) else {
            return Vec::new();
        };
        let mut under_way = Vec::new();
        for (from, to) in [(a, b), (b, a)] {
            let link = self.links.remove(&(from, to)).unwrap_or_default();
            under_way.extend(
                link.queue
                    .into_iter()
                    .map(|bytes| (from, to, session, bytes)),
            );
            self.hand_in(
                from,
                Input::LinkDown {
                    peer: node(to),
                    session,
                },
            );
        }
        under_way
    }

    /// Hands in messages as a driver that breaks the contract would.
    pub fn inject(&mut self, messages: Vec<UnderWay>) {
        for (from, to, session, bytes) in messages {
            self.arrive(from, to, session, bytes);
        }
    }

    /// Kills a process and starts another on its disk.
    pub fn restart(&mut self, at: usize) {
        let others: Vec<_> = (0..self.nodes.len()).filter(|&other| other != at).collect();
        for &other in &others {
            drop(self.cut(at.min(other), at.max(other)));
        }
        let (life, log) = (self.nodes[at].life + 1, self.nodes[at].log.clone());
        self.nodes[at] = Node::new(at, life, log);
        self.drain(at);
        for &other in &others {
            self.connect(at.min(other), at.max(other));
        }
    }

    /// Everything that can be carried out now.
    pub fn carry_out(&mut self) {
        for at in 0..self.nodes.len() {
            self.drain(at);
        }
    }

    /// One message on each link, one request on each disk.
    pub fn step(&mut self) -> bool {
        let pairs: Vec<_> = self.links.keys().copied().collect();
        let mut moved = self.finish_disk();
        for (from, to) in pairs {
            let session = self.session(from, to);
            let Some(bytes) = self.links.get_mut(&(from, to)).and_then(Link::arrives) else {
                continue;
            };
            moved = true;
            self.arrive(from, to, session.expect("the link is up"), bytes);
            self.grant(from, to);
        }
        moved
    }

    /// Until nothing moves any more.
    pub fn settle(&mut self) {
        let settled = (0..10_000).any(|_| !self.step());
        assert!(settled, "the toy never comes to rest");
    }

    /// Finishes one request of each disk.
    pub fn finish_disk(&mut self) -> bool {
        let mut moved = false;
        for at in 0..self.nodes.len() {
            if self.disk_held {
                continue;
            }
            let Some((id, records)) = self.nodes[at].syncing.pop_front() else {
                continue;
            };
            moved = true;
            match self.disk_error.clone() {
                Some(error) => {
                    // Sends that wait for it will not be made.
                    self.nodes[at].held.clear();
                    self.hand_in(at, Input::PersistFailed { id, error });
                }
                None => {
                    self.nodes[at].write(id, records);
                    self.hand_in(at, Input::Persisted { id });
                }
            }
        }
        moved
    }

    fn session(&self, a: usize, b: usize) -> Option<Session> {
        self.sessions.get(&(a.min(b), a.max(b))).copied()
    }

    /// Tells a node how much its link takes. What it sent before and is held back has its room.
    fn grant(&mut self, from: usize, to: usize) {
        let Some(session) = self.session(from, to) else {
            return;
        };
        let link = self.links.get_mut(&(from, to)).expect("the link is up");
        let bytes = self.room - link.used;
        link.granted = bytes;
        self.hand_in(
            from,
            Input::Writable {
                peer: node(to),
                session,
                bytes,
            },
        );
    }

    fn arrive(&mut self, from: usize, to: usize, session: Session, bytes: Bytes) {
        let (peer, channel) = (node(from), Default::default());
        self.hand_in(
            to,
            Input::LinkMessage {
                peer,
                session,
                channel,
                bytes,
            },
        );
    }

    /// Takes over the outputs of a node and carries out what may leave, in order.
    fn drain(&mut self, at: usize) {
        while let Some(output) = self.nodes[at].engine.poll_output() {
            self.outputs.push(output.clone());
            match output {
                Output::Persist { id, records } => self.nodes[at].syncing.push_back((id, records)),
                Output::Fetch { log, from, to } => self.fetch(at, log, from..to),
                Output::LinkSend {
                    peer,
                    session,
                    ref bytes,
                    ..
                } => {
                    self.reserve(at, peer, session, bytes.len());
                    self.nodes[at].held.push_back(output);
                }
                Output::Send { .. } => self.nodes[at].held.push_back(output),
                Output::Originated { .. } => panic!("nobody asked for a trace"),
                Output::Reopen => panic!("there are no votes"),
                Output::Arbitrate { .. } => panic!("there is no service"),
            }
        }
        while let Some(output) = self.nodes[at].ready() {
            self.send(at, output);
        }
        while let Some(delivery) = self.nodes[at].engine.poll_delivery() {
            self.nodes[at].delivered.push(delivery);
        }
    }

    /// The link keeps room for a message from the moment it is asked for.
    fn reserve(&mut self, from: usize, peer: NodeId, session: Session, len: usize) {
        let to = usize::from(peer.get()) - 1;
        if self.session(from, to) != Some(session) {
            return;
        }
        let link = self.links.get_mut(&(from, to)).expect("the link is up");
        assert!(
            len <= link.granted,
            "{len} bytes sent, {} granted",
            link.granted
        );
        link.granted -= len;
        link.used += len;
        self.fullest = self.fullest.max(link.used);
    }

    fn send(&mut self, at: usize, output: Output) {
        match output {
            Output::LinkSend {
                peer,
                session,
                bytes,
                ..
            } => {
                let to = usize::from(peer.get()) - 1;
                // Dropped silently if that session has ended.
                if self.session(at, to) == Some(session) {
                    self.left_the_sequencer += usize::from(at == 0);
                    let bytes = bytes.into_bytes();
                    self.check_durable(at, &bytes);
                    let link = self.links.get_mut(&(at, to)).expect("the link is up");
                    link.queue.push_back(bytes);
                }
            }
            Output::Send {
                class,
                channel,
                to: Target::Others,
                burst,
                ..
            } => {
                for to in (0..self.nodes.len()).filter(|&to| to != at) {
                    let (bytes, segment) = (Bytes::from(burst.bytes.clone()), burst.segment);
                    assert_eq!(class, Class::Data);
                    self.hand_in(
                        to,
                        Input::Datagrams {
                            class,
                            channel,
                            bytes,
                            segment,
                        },
                    );
                }
            }
            other => panic!("{other:?} is no send of the toy"),
        }
    }

    /// What leaves the sequencer names a position: there has to be a record of it on its disk.
    fn check_durable(&self, at: usize, bytes: &Bytes) {
        if at == 0 {
            let position = u64::from_le_bytes(bytes[1..9].try_into().expect("a position"));
            assert!(
                self.nodes[0].log.contains_key(&(LogId(1), position)),
                "not durable"
            );
        }
    }

    fn fetch(&mut self, at: usize, log: LogId, range: std::ops::Range<u64>) {
        let found = self.nodes[at]
            .log
            .range((log, range.start)..(log, range.end));
        let records = found
            .map(|((_, position), bytes)| (*position, bytes.clone()))
            .collect();
        let fetched = Input::Fetched {
            log,
            from: range.start,
            to: range.end,
            records,
        };
        self.nodes[at].engine.handle(self.now, fetched);
    }
}

impl Link {
    fn arrives(&mut self) -> Option<Bytes> {
        let bytes = self.queue.pop_front()?;
        self.used -= bytes.len();
        Some(bytes)
    }
}

impl Node {
    fn new(at: usize, life: u64, log: BTreeMap<(LogId, u64), Bytes>) -> Self {
        let me = process(at, life);
        let records = log
            .iter()
            .map(|((log, at), bytes)| (*log, *at, bytes.clone()))
            .collect();
        let mut engine = Checked::new(Toy::new(3, me));
        // A cluster's clock goes on: the engine of a new process starts at any time.
        engine.handle(
            Time(1),
            Input::Start(StartState {
                me,
                seed: 0,
                records,
                lost_some: false,
            }),
        );
        let (held, syncing) = (VecDeque::new(), VecDeque::new());
        let (durable, delivered) = (PersistId(0), Vec::new());
        Self {
            engine,
            life,
            held,
            durable,
            syncing,
            log,
            delivered,
        }
    }

    fn write(&mut self, id: PersistId, records: Vec<LogRecord>) {
        self.durable = id;
        for record in records {
            match record {
                LogRecord::Put {
                    log,
                    position,
                    bytes,
                } => {
                    self.log.insert((log, position), bytes.into_bytes());
                }
                LogRecord::Trim { log, position } => {
                    self.log.retain(|at, _| at.0 != log || at.1 >= position);
                }
            }
        }
    }

    /// The next send, if what it waits for is durable.
    fn ready(&mut self) -> Option<Output> {
        let waits = match self.held.front()? {
            Output::Send { after, .. } => *after > Some(self.durable),
            _ => false,
        };
        if waits { None } else { self.held.pop_front() }
    }
}
