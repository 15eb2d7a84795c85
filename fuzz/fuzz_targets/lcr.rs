//! A neighbour on the ring of LCR may say anything: it is read or refused, what was read is written as it
//! was, and a process that is told it neither panics nor keeps more than its windows allow.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Incarnation, NodeId, Output, Process, RingId, Service, Session, Time};
use rota_views::lcr::{Config, Hello, Lcr, Record, Said, Writer, decode};
use rota_views::{Backlog, DataPath, Link, View};

const WINDOW: usize = 3000;
/// The largest packet, and what it counts beside its frame.
const PACKET: usize = rota_views::lcr::MAX_FRAME_BYTES + 256;

fn process(index: u16) -> Process {
    Process {
        node: NodeId::new(index + 1).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

fuzz_target!(|data: &[u8]| {
    written_again(Bytes::copy_from_slice(data));
    let mut told = Told::new();
    // The first byte of each piece says how long it is, and what becomes of it.
    let mut rest = data;
    while let Some((&first, more)) = rest.split_first() {
        let (piece, after) = more.split_at(more.len().min(usize::from(first)));
        told.tell(first, piece);
        rest = after;
    }
    assert!(told.path.freeze(Time(1)).held.len() <= data.len());
});

fn written_again(bytes: Bytes) {
    let body = bytes.clone();
    match decode(bytes) {
        Ok(Said::Hello(hello)) => {
            assert_eq!(decode(hello.encode().into()), Ok(Said::Hello(hello)));
        }
        Ok(Said::Batch(batch)) => {
            let mut writer = Writer::new(batch.ring, batch.epoch, usize::MAX, usize::MAX);
            let records: Vec<_> = batch.records(128).map_while(Result::ok).collect();
            for record in &records {
                match record {
                    Record::Packet(entry) => writer.packet(entry),
                    Record::Stable(member, number) => writer.stable(*member, *number),
                    Record::Delivered(member, number) => writer.delivered(*member, *number),
                }
            }
            let again = writer.finish().into_bytes();
            assert!(again.len() <= body.len().max(24));
            let Ok(Said::Batch(batch)) = decode(again) else {
                panic!("it was a batch");
            };
            let read: Result<Vec<_>, _> = batch.records(128).collect();
            assert_eq!(read, Ok(records));
        }
        Err(_) => {}
    }
}

/// The second of four processes.
struct Told {
    path: Lcr,
    backlog: Backlog,
    ring: RingId,
    epoch: u32,
}

impl Told {
    fn new() -> Self {
        let mut path = Lcr::new(Config {
            frame_bytes: 100,
            window_bytes: WINDOW,
            batch_bytes: 1000,
        });
        let ring = RingId {
            ring_seq: 1,
            rep: process(0).node,
            incarnation: process(0).incarnation,
        };
        let view = View {
            ring,
            members: (0..4).map(process).collect(),
            me: 1,
        };
        path.start(process(1), 1);
        for index in [0, 2] {
            let (peer, session) = (process(index), Session(1));
            path.on_link(Time(0), Link::Up { peer, session });
            let writable = Link::Writable {
                peer: peer.node,
                session,
                bytes: 1 << 30,
            };
            path.on_link(Time(0), writable);
        }
        path.install(Time(0), &view, &[]);
        let mut told = Self {
            path,
            backlog: Backlog::new(100, 1000, 10_000),
            ring,
            epoch: 1,
        };
        let hello = Hello {
            ring,
            epoch: 1,
            received: vec![0; 4],
        };
        told.hear(2, hello.encode().into());
        told
    }

    fn hear(&mut self, from: u16, bytes: Bytes) {
        let message = Link::Message {
            peer: process(from).node,
            session: Session(1),
            bytes,
        };
        self.path.on_link(Time(1), message);
        if let Some((at, _)) = self.path.next_timer() {
            self.path.on_timer(at);
        }
        while let Some(output) = self.path.poll_output(Time(1), &mut self.backlog) {
            let Output::LinkSend { bytes, .. } = output else {
                panic!("{output:?}");
            };
            if let Ok(Said::Hello(hello)) = decode(bytes.into_bytes()) {
                self.epoch = hello.epoch;
            }
        }
        assert!(self.path.kept_bytes() <= 4 * WINDOW.max(PACKET));
    }

    fn tell(&mut self, first: u8, piece: &[u8]) {
        if first & 3 == 0 {
            let full = self.backlog.push(Service::Safe, piece).is_err();
            assert!(!full || !self.backlog.is_empty());
        }
        while first & 4 == 0 && self.path.poll_packet().is_some() {}
        let from = if first & 8 == 0 { 0 } else { 2 };
        if first & 16 == 0 {
            // As records of the view, or few would ever be looked at.
            let bytes = Writer::new(self.ring, self.epoch, 0, 0).finish();
            let mut bytes = bytes.into_bytes().to_vec();
            bytes.extend_from_slice(piece);
            self.hear(from, bytes.into());
        } else {
            self.hear(from, Bytes::copy_from_slice(piece));
        }
    }
}
