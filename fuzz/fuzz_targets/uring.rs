//! Neighbours on the ring of U-Ring Paxos and Ring Paxos may say anything, and anybody may send parts of values: it is read or refused, what was read is written as it
//! was, and a process that is told it neither panics, nor keeps more than its windows allow, nor says what others could not
//! read; and it can begin with what it has written.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Channel, Class, Engine, Incarnation, Input, LogRecord, NodeId, Output, PersistId, Process, Service, Session, StartState, Time};
use rota_paxos::{AcceptorId, Config};
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::{ResumeFrom, Head, Multicast, Said, URing, URingConfig, Word, Writer, decode};
use rota_core::wire::PartHead;

const NODES: u16 = 3;

fn process(node: u16) -> Process {
    Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

const MULTICAST: Multicast = Multicast {
    cluster: 3,
    datagram_bytes: 100,
    seal_bytes: 4,
    capacity: None,
};

fn settings(multicast: bool) -> URingConfig {
    let ring = (1..=NODES).map(|node| process(node).node).collect();
    let mut settings = URingConfig::new(ring, &Timers::derive(Timing::Default, usize::from(NODES)));
    settings.proposer.window_bytes = 2000;
    settings.acceptor.kept_instances = 8;
    settings.proposer.frame_bytes = 1000;
    settings.multicast = multicast.then_some(MULTICAST);
    settings
}

struct Told {
    engine: URing,
    now: Time,
    written: PersistId,
    records: Vec<LogRecord>,
    votes_as: Option<AcceptorId>,
    follow: Option<ResumeFrom>,
}

fuzz_target!(|data: &[u8]| {
    written_again(data);
    let multicast = data.first().is_some_and(|first| first & 4 > 0);
    let mut told = Told::new(multicast, Vec::new());
    let mut rest = data;
    // The first byte of all says whether values are multicast, and which of the three coordinates, if there is a configuration.
    if let Some((first, more)) = data.split_first() {
        told.know(u16::from(*first % 4));
        rest = more;
    }
    // The first byte of each piece says what it is, the second how long.
    while let [what, len, more @ ..] = rest {
        let (piece, after) = more.split_at(more.len().min(usize::from(*len)));
        told.step(*what, piece);
        rest = after;
    }
    let most = usize::from(NODES) * (2 * 2000 + rota_paxos::uring::MAX_FRAME_BYTES);
    // What has come in part, and proposals that wait for their values.
    let more = if multicast { 2 * most } else { 0 };
    assert!(told.engine.carried_bytes() <= most + more);
    Told::new(multicast, told.records);
});

fn written_again(data: &[u8]) {
    if let Some((founded, Said::Word(word))) = decode(Bytes::copy_from_slice(data)) {
        assert_eq!(word.encode(founded), data);
    }
}

impl Told {
    fn new(multicast: bool, records: Vec<LogRecord>) -> Self {
        let mut told = Self {
            engine: URing::new(settings(multicast)),
            now: Time(1),
            written: PersistId(0),
            records: Vec::new(),
            votes_as: None,
            follow: None,
        };
        let of = |record| match record {
            LogRecord::Put {
                log,
                position,
                bytes,
            } => Some((log, position, bytes.into_bytes())),
            LogRecord::Trim { .. } => None,
        };
        let records = records.into_iter().filter_map(of).collect();
        let (me, seed) = (process(2), 1);
        told.tell(Input::Start(StartState { me, seed, records, lost_some: false }));
        for node in [1, 3] {
            told.link(node);
        }
        told
    }

    /// There is a configuration of all three, with this coordinator; of nobody there is none.
    fn know(&mut self, coordinator: u16) {
        let id = self.written;
        self.tell(Input::Persisted { id });
        let acceptor = |node| AcceptorId {
            node: process(node).node,
            store: node.into(),
        };
        let mine = self.votes_as;
        let named = |who: AcceptorId| mine.filter(|mine| mine.node == who.node).unwrap_or(who);
        if coordinator > 0 {
            let config = Config {
                founded: 1,
                number: 1,
                coordinator: process(coordinator),
                ring: (1..=NODES).map(process).collect(),
                acceptors: (1..=NODES).map(acceptor).map(named).collect(),
                prior: Vec::new(),
            };
            self.hear(1, Word::Known(Arc::new(config)).encode(1).into());
        }
    }

    fn link(&mut self, node: u16) {
        let (process, session) = (process(node), Session(u64::from(node)));
        self.tell(Input::LinkUp {
            peer: process,
            session,
        });
        let (peer, bytes) = (process.node, 1 << 20);
        self.tell(Input::Writable {
            peer,
            session,
            bytes,
        });
    }

    fn hear(&mut self, node: u16, bytes: Bytes) {
        self.tell(Input::LinkMessage {
            peer: process(node).node,
            session: Session(u64::from(node)),
            channel: Channel::default(),
            bytes,
        });
    }

    fn step(&mut self, what: u8, piece: &[u8]) {
        let node = if what & 0x80 == 0 { 1 } else { 3 };
        match what & 0x7f {
            0..40 => self.hear(node, Bytes::copy_from_slice(piece)),
            40..45 => self.datagram(piece.to_vec()),
            45..60 => self.part(node, piece),
            60..90 => self.batch(node, piece),
            90..95 => {
                let (peer, session) = (process(node).node, Session(u64::from(node)));
                self.tell(Input::LinkDown { peer, session });
                self.link(node);
            }
            95..105 => {
                let id = self.written;
                self.tell(Input::Persisted { id });
            }
            105..115 => {
                self.now = self
                    .now
                    .after(1_000_000 * u64::from(piece.first().copied().unwrap_or(1)));
                self.tell(Input::Timer);
            }
            _ => {
                let _ = self.engine.submit(self.now, Service::Agreed, piece);
                self.tell(Input::Timer);
            }
        }
    }

    fn datagram(&mut self, bytes: Vec<u8>) {
        let segment = bytes.len();
        self.tell(Input::Datagrams {
            class: Class::Data,
            channel: Channel::default(),
            bytes: bytes.into(),
            segment,
        });
    }

    /// A part of a value of this node: the first four bytes say which.
    fn part(&mut self, node: u16, piece: &[u8]) {
        let [counter, index, count, total, bytes @ ..] = piece else {
            return;
        };
        let head = PartHead {
            cluster: MULTICAST.cluster,
            proposer: process(node),
            counter: u64::from(*counter),
            index: u16::from(*index),
            count: u16::from(*count),
            total: 4 * u32::from(*total),
        };
        let mut out = Vec::new();
        head.encode_into(bytes, &mut out, MULTICAST.seal_bytes);
        self.datagram(out);
    }

    /// Records behind the head that the process expects.
    fn batch(&mut self, node: u16, records: &[u8]) {
        let Some(follow) = self.follow else { return };
        let head = Head {
            founded: 1,
            round: follow.round,
            epoch: follow.epoch,
            start: 1,
            kept: 1,
            from: follow.next.max(1),
            complete: false,
        };
        let mut bytes = Writer::new(&head, usize::MAX, usize::MAX)
            .finish()
            .into_bytes()
            .to_vec();
        bytes.extend_from_slice(records);
        self.hear(node, bytes.into());
    }

    fn tell(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Persist { id, records } => {
                    self.written = id;
                    self.records.extend(records);
                }
                Output::LinkSend { bytes, .. } => {
                    // What others could not read it does not say.
                    match decode(bytes.into_bytes()).expect("it can be read") {
                        (_, Said::Word(Word::ResumeFrom(follow, _))) => self.follow = Some(follow),
                        (_, Said::Word(Word::Hello(here))) => self.votes_as = here.acceptor,
                        (_, Said::Word(_) | Said::Batch(..)) => {}
                    }
                }
                _ => {}
            }
        }
        while self.engine.poll_delivery().is_some() {}
    }
}
