//! The toy: node 0 (id 1) numbers, logs, and sends along the links 1 → 2 → … ; submissions go to
//! it over direct links. It has no configurations and one service.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};
use rota_core::contract::{
    Burst, Channel, Class, Delivery, Engine, Incarnation, Input, LogId, LogRecord, Message,
    MessageId, NodeId, Output, PersistId, Process, Service, Session, StartState, Status,
    SubmitError, Target, Time, TimerReason,
};

/// Bytes submitted and not yet seen in the order.
pub const BACKLOG: usize = 1200;
const LIMIT: usize = 40;
const LOG: LogId = LogId(1);
const CHANNEL: Channel = Channel(0);

const SUBMISSION: u8 = 1;
const ORDERED: u8 = 2;
const RESUME: u8 = 3;

/// A record of the log: what stands at a position.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// Positions it takes.
    width: u64,
    /// Its message; `None` for skips.
    message: Option<(MessageId, Bytes)>,
}

impl Entry {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.width.to_le_bytes().to_vec();
        if let Some((id, payload)) = &self.message {
            out.extend_from_slice(&encode_id(id));
            out.extend_from_slice(payload);
        }
        out
    }

    fn decode(mut bytes: Bytes) -> Option<Self> {
        let width = bytes.try_get_u64_le().ok()?;
        let message = if bytes.is_empty() {
            None
        } else {
            Some((decode_id(&mut bytes)?, bytes))
        };
        Some(Self { width, message })
    }
}

fn encode_id(id: &MessageId) -> Vec<u8> {
    let mut out = id.process.node.get().to_le_bytes().to_vec();
    out.extend_from_slice(&id.process.incarnation.0.to_le_bytes());
    out.extend_from_slice(&id.counter.to_le_bytes());
    out
}

fn decode_id(bytes: &mut Bytes) -> Option<MessageId> {
    let node = NodeId::new(bytes.try_get_u16_le().ok()?)?;
    let incarnation = Incarnation(bytes.try_get_u64_le().ok()?);
    let process = Process { node, incarnation };
    Some(MessageId {
        process,
        counter: bytes.try_get_u64_le().ok()?,
    })
}

/// One link: its session, what it takes, and what waits for that.
#[derive(Debug)]
struct Link {
    session: Session,
    credit: usize,
    /// What waits for room, or for a request to be durable.
    waiting: VecDeque<(Bytes, Option<PersistId>)>,
}

/// The engine.
#[derive(Debug)]
pub struct Toy {
    nodes: u16,
    me: Process,
    links: BTreeMap<NodeId, Link>,
    outputs: VecDeque<Output>,
    deliveries: VecDeque<Delivery>,
    /// Own submissions not seen in the order, by counter.
    pending: BTreeMap<u64, Bytes>,
    counter: u64,
    /// What this node has delivered, by position; the sequencer keeps it on disk only.
    kept: BTreeMap<u64, Entry>,
    /// The next position to deliver.
    next: u64,
    /// On the sequencer: the next position to give, and counters of each process that have one.
    end: u64,
    numbered: BTreeMap<Process, u64>,
    persists: u64,
    unsynced: BTreeMap<PersistId, (u64, Entry)>,
    durable: Option<PersistId>,
    stopped: Option<String>,
    beacon: u64,
    ignored: u64,
    /// On the sequencer: how far its successor was served since it asked.
    resumed_at: u64,
}

impl Toy {
    pub fn new(nodes: u16, me: Process) -> Self {
        Self {
            nodes,
            me,
            links: BTreeMap::new(),
            outputs: VecDeque::new(),
            deliveries: VecDeque::new(),
            pending: BTreeMap::new(),
            counter: 0,
            kept: BTreeMap::new(),
            next: 1,
            end: 1,
            numbered: BTreeMap::new(),
            persists: 0,
            unsynced: BTreeMap::new(),
            durable: None,
            stopped: None,
            beacon: 0,
            ignored: 0,
            resumed_at: 1,
        }
    }

    /// The last position that a beacon said to be durable.
    pub const fn beacon(&self) -> u64 {
        self.beacon
    }

    /// Messages of sessions that are over.
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    fn is_sequencer(&self) -> bool {
        self.me.node.get() == 1
    }

    fn sequencer() -> NodeId {
        NodeId::new(1).expect("not 0")
    }

    fn successor(&self) -> Option<NodeId> {
        NodeId::new(self.me.node.get() + 1).filter(|node| node.get() <= self.nodes)
    }

    fn start(&mut self, start: StartState) {
        self.me = start.me;
        for (log, position, bytes) in start.records {
            assert_eq!(log, LOG);
            let Some(entry) = Entry::decode(bytes) else {
                continue;
            };
            self.end = position + entry.width;
            self.note_numbered(&entry);
            self.deliver(position, entry);
        }
    }

    fn note_numbered(&mut self, entry: &Entry) {
        if let Some((id, _)) = &entry.message {
            self.numbered.insert(id.process, id.counter);
        }
    }

    /// Sends over a link as far as it takes, and not before a request is durable; the rest waits.
    fn send(&mut self, peer: NodeId, bytes: Vec<u8>, after: Option<PersistId>) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.waiting.push_back((Bytes::from(bytes), after));
            self.flush(peer);
        }
    }

    fn flush(&mut self, peer: NodeId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let session = link.session;
        let (credit, durable) = (&mut link.credit, self.durable);
        while let Some((bytes, _)) = link
            .waiting
            .pop_front_if(|(bytes, after)| bytes.len() <= *credit && *after <= durable)
        {
            *credit -= bytes.len();
            let send = Output::LinkSend {
                peer,
                session,
                channel: CHANNEL,
                bytes: bytes.into(),
            };
            self.outputs.push_back(send);
        }
    }

    fn link_up(&mut self, peer: NodeId, session: Session) {
        let old = self.links.get(&peer).map(|link| link.session);
        assert!(old < Some(session), "sessions ascend");
        self.links.insert(
            peer,
            Link {
                session,
                credit: 0,
                waiting: VecDeque::new(),
            },
        );
        if peer == Self::sequencer() {
            for (counter, payload) in self.pending.clone() {
                self.send_submission(counter, &payload);
            }
        }
        if peer.get() + 1 == self.me.node.get() {
            let mut resume = vec![RESUME];
            resume.extend_from_slice(&self.next.to_le_bytes());
            self.send(peer, resume, None);
        }
    }

    fn send_submission(&mut self, counter: u64, payload: &Bytes) {
        let id = MessageId {
            process: self.me,
            counter,
        };
        if self.is_sequencer() {
            self.number(id, payload.clone());
            return;
        }
        let mut bytes = vec![SUBMISSION];
        bytes.extend_from_slice(&encode_id(&id));
        bytes.extend_from_slice(payload);
        self.send(Self::sequencer(), bytes, None);
    }

    fn number(&mut self, id: MessageId, payload: Bytes) {
        if self
            .numbered
            .get(&id.process)
            .is_some_and(|&last| id.counter <= last)
        {
            return;
        }
        self.append(Entry {
            width: 1,
            message: Some((id, payload)),
        });
    }

    /// Logs an entry; its forward and a beacon wait until it is durable.
    fn append(&mut self, entry: Entry) {
        self.note_numbered(&entry);
        let position = self.end;
        self.end += entry.width;
        self.persists += 1;
        let id = PersistId(self.persists);
        let bytes = entry.encode().into();
        let records = vec![LogRecord::Put {
            log: LOG,
            position,
            bytes,
        }];
        self.outputs.push_back(Output::Persist { id, records });
        self.forward(position, &entry, Some(id));
        self.outputs.push_back(Output::Send {
            class: Class::Data,
            channel: CHANNEL,
            to: Target::Others,
            burst: Burst::single(position.to_le_bytes().to_vec()),
            after: Some(id),
        });
        self.unsynced.insert(id, (position, entry));
    }

    fn forward(&mut self, position: u64, entry: &Entry, after: Option<PersistId>) {
        let Some(successor) = self.successor() else {
            return;
        };
        let mut bytes = vec![ORDERED];
        bytes.extend_from_slice(&position.to_le_bytes());
        bytes.extend_from_slice(&entry.encode());
        self.send(successor, bytes, after);
    }

    fn deliver(&mut self, position: u64, entry: Entry) {
        if position != self.next {
            return;
        }
        self.next += entry.width;
        let delivery = match &entry.message {
            None => Delivery::Passed { next: self.next },
            Some((id, payload)) => {
                if id.process == self.me {
                    self.pending.remove(&id.counter);
                }
                let (id, payload, service) = (*id, payload.clone(), Service::Agreed);
                Delivery::Message(Message {
                    id,
                    service,
                    seq: position,
                    index: 0,
                    payload,
                })
            }
        };
        self.deliveries.push_back(delivery);
        if !self.is_sequencer() {
            self.kept.insert(position, entry);
        }
    }

    fn on_message(&mut self, peer: NodeId, session: Session, mut bytes: Bytes) -> Option<()> {
        if self.links.get(&peer).map(|link| link.session) != Some(session) {
            self.ignored += 1;
            return None;
        }
        match bytes.try_get_u8().ok()? {
            SUBMISSION => {
                let id = decode_id(&mut bytes)?;
                self.number(id, bytes);
            }
            ORDERED => {
                let position = bytes.try_get_u64_le().ok()?;
                let entry = Entry::decode(bytes)?;
                if position == self.next {
                    self.deliver(position, entry.clone());
                    self.forward(position, &entry, None);
                }
            }
            RESUME => self.resume(bytes.try_get_u64_le().ok()?),
            _ => {}
        }
        Some(())
    }

    /// The successor wants everything from `from` on: a member has it in memory, the sequencer
    /// reads it back.
    fn resume(&mut self, from: u64) {
        if self.is_sequencer() {
            self.resumed_at = from;
            self.outputs.push_back(Output::Fetch {
                log: LOG,
                from,
                to: self.end,
            });
            return;
        }
        let kept: Vec<_> = self
            .kept
            .range(from..)
            .map(|(at, e)| (*at, e.clone()))
            .collect();
        for (position, entry) in kept {
            self.forward(position, &entry, None);
        }
    }

    /// Sends what was read back, then what is not durable yet. What became durable between the
    /// question and the answer has to be asked for.
    fn fetched(&mut self, records: Vec<(u64, Bytes)>) {
        for (position, bytes) in records {
            if let Some(entry) = Entry::decode(bytes) {
                self.forward(position, &entry, None);
                self.resumed_at = position + entry.width;
            }
        }
        let (from, to) = (self.resumed_at, self.end);
        let unsynced = self.unsynced.clone();
        if unsynced
            .values()
            .next()
            .map_or(to, |(position, _)| *position)
            > from
        {
            self.outputs.push_back(Output::Fetch { log: LOG, from, to });
            return;
        }
        for (id, (position, entry)) in unsynced {
            self.forward(position, &entry, Some(id));
        }
    }

    fn stop(&mut self, why: String) {
        self.stopped = Some(why);
        self.outputs.clear();
        self.links.clear();
        self.unsynced.clear();
    }
}

impl Engine for Toy {
    fn handle(&mut self, _: Time, input: Input) {
        if self.stopped.is_some() {
            return;
        }
        match input {
            Input::Start(start) => self.start(start),
            Input::LinkUp { peer, session } => self.link_up(peer.node, session),
            Input::LinkDown { peer, session } => {
                if self
                    .links
                    .get(&peer)
                    .is_some_and(|link| link.session == session)
                {
                    self.links.remove(&peer);
                }
            }
            Input::LinkMessage {
                peer,
                session,
                bytes,
                ..
            } => {
                let _ = self.on_message(peer, session, bytes);
            }
            Input::Writable {
                peer,
                session,
                bytes,
            } => {
                if let Some(link) = self.links.get_mut(&peer).filter(|l| l.session == session) {
                    link.credit = bytes;
                    self.flush(peer);
                }
            }
            Input::Persisted { id } => {
                self.durable = Some(id);
                if let Some((position, entry)) = self.unsynced.remove(&id) {
                    self.deliver(position, entry);
                }
                let peers: Vec<_> = self.links.keys().copied().collect();
                peers.into_iter().for_each(|peer| self.flush(peer));
            }
            Input::PersistFailed { error, .. } => self.stop(format!("{error:?}")),
            Input::Fetched { records, .. } => self.fetched(records),
            Input::Datagrams { mut bytes, .. } => {
                self.beacon = bytes
                    .try_get_u64_le()
                    .map_or(self.beacon, |at| self.beacon.max(at));
            }
            Input::Timer
            | Input::Unreachable { .. }
            | Input::Reopened { .. }
            | Input::Arbitrated { .. } => {}
        }
    }

    fn submit(&mut self, _: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let queued: usize = self.pending.values().map(Bytes::len).sum();
        match () {
            () if self.stopped.is_some() => Err(SubmitError::Stopped),
            () if service != Service::Agreed => Err(SubmitError::Unsupported),
            () if payload.len() > LIMIT => Err(SubmitError::TooLarge { limit: LIMIT }),
            () if queued + payload.len() > BACKLOG => Err(SubmitError::Full),
            () => {
                self.counter += 1;
                let payload = Bytes::copy_from_slice(payload);
                self.pending.insert(self.counter, payload.clone());
                self.send_submission(self.counter, &payload);
                Ok(self.counter)
            }
        }
    }

    fn submit_skips_to(&mut self, _: Time, next: u64) -> Result<(), SubmitError> {
        if !self.is_sequencer() {
            return Err(SubmitError::Unsupported);
        }
        let width = next.saturating_sub(self.end);
        if width > 0 {
            self.append(Entry {
                width,
                message: None,
            });
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Data
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn status(&self) -> Status {
        let state = self
            .stopped
            .as_ref()
            .map_or("running".into(), |why| format!("stopped: {why}"));
        Status {
            state,
            ..Status::default()
        }
    }
}
