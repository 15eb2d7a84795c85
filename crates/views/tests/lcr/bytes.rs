//! Messages of neighbours, with any bytes: no process panics, and none grows.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{Incarnation, NodeId, Output, Process, RingId, Service, Session, Time};
use rota_core::wire::{MAX_MEMBERS, push_whole, start_frame};
use rota_views::lcr::{Config, Entry, Hello, Lcr, Record, Said, Writer, decode};
use rota_views::{DataPath, Link};

use super::property::check;
use super::ring::{FRAME, backlog, notes, path, process, view};

const MEMBERS: usize = 3;
const WINDOW: usize = 2000;
const AT: Time = Time(5);

fn ring() -> impl Strategy<Value = RingId> {
    (any::<u64>(), 1..=u16::MAX, 0..=Incarnation::MAX).prop_map(|(ring_seq, rep, incarnation)| {
        RingId {
            ring_seq,
            rep: NodeId::new(rep).expect("not 0"),
            incarnation: Incarnation(incarnation),
        }
    })
}

fn frame(payload: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, 1);
    push_whole(&mut bytes, payload);
    bytes.into()
}

fn entry(members: usize) -> impl Strategy<Value = Entry> {
    let clock = vec(any::<u64>(), members);
    let service = prop_oneof![Just(Service::Fifo), Just(Service::Safe)];
    (
        0..members,
        1..=u64::MAX,
        service,
        clock,
        vec(any::<u8>(), 0..50),
    )
        .prop_map(|(sender, number, service, clock, payload)| {
            let gains = clock.into_iter().take(sender);
            Entry::own(sender, number, service, gains, &frame(&payload))
        })
}

fn record(members: usize) -> impl Strategy<Value = Record> {
    let word = || (0..members, 1..=u64::MAX);
    prop_oneof![
        entry(members).prop_map(Record::Packet),
        word().prop_map(|(member, number)| Record::Stable(member, number)),
        word().prop_map(|(member, number)| Record::Delivered(member, number)),
    ]
}

fn write(ring: RingId, epoch: u32, records: &[Record]) -> Bytes {
    let mut batch = Writer::new(ring, epoch, usize::MAX, usize::MAX);
    for record in records {
        match record {
            Record::Packet(entry) => batch.packet(entry),
            Record::Stable(member, number) => batch.stable(*member, *number),
            Record::Delivered(member, number) => batch.delivered(*member, *number),
        }
    }
    batch.finish().into_bytes()
}

#[test]
fn what_is_written_is_read() {
    let hello = (ring(), any::<u32>(), vec(any::<u64>(), 0..=MAX_MEMBERS));
    check(300, hello, |(ring, epoch, received)| {
        let hello = Hello {
            ring,
            epoch,
            received,
        };
        prop_assert_eq!(decode(hello.encode().into()), Ok(Said::Hello(hello)));
        Ok(())
    });
    let batch = (ring(), any::<u32>(), vec(record(9), 0..20));
    check(300, batch, |(ring, epoch, records)| {
        let Ok(Said::Batch(batch)) = decode(write(ring, epoch, &records)) else {
            panic!("it is a batch");
        };
        prop_assert_eq!((batch.ring, batch.epoch), (ring, epoch));
        let read: Result<Vec<_>, _> = batch.records(9).collect();
        prop_assert_eq!(read, Ok(records));
        Ok(())
    });
}

#[test]
fn any_bytes_are_read_or_refused() {
    let (mut hellos, mut records) = (0, 0);
    let counts = std::cell::RefCell::new((&mut hellos, &mut records));
    // Often enough right at the beginning, and small behind it, to get further.
    let byte = prop_oneof![3 => 0..0x14_u8, 1 => any::<u8>()];
    let bytes = (vec(byte, 0..200), 0_u8..5, any::<bool>(), 1..200_usize);
    check(20_000, bytes, |(mut bytes, kind, sane, members)| {
        if sane && bytes.len() > 24 {
            bytes[0] = rota_core::wire::VERSION;
            bytes[1] = kind;
            bytes[2] |= 1;
            bytes[23] = 0;
            bytes[22] &= 0x1f;
        }
        let size = bytes.len();
        let mut counts = counts.borrow_mut();
        match decode(bytes.into()) {
            Ok(Said::Hello(hello)) => {
                *counts.0 += 1;
                prop_assert!(hello.received.len() < size);
            }
            Ok(Said::Batch(batch)) => {
                let read = batch.records(members).filter(Result::is_ok).count();
                *counts.1 += read;
                prop_assert!(read * 3 <= size);
            }
            Err(_) => {}
        }
        Ok(())
    });
    assert!(hellos > 0 && records > 100, "{hellos} {records}");
}

/// What a link takes.
const ROOM: usize = 1 << 20;

/// Member 1 of three, both links up, that has said its hello; and the view.
fn member() -> (Lcr, RingId) {
    member_with(WINDOW)
}

fn member_with(window_bytes: usize) -> (Lcr, RingId) {
    let config = Config {
        frame_bytes: FRAME,
        window_bytes,
        batch_bytes: 1000,
    };
    let paths: Vec<_> = (0..MEMBERS).map(|me| path(&config, me)).collect();
    let notes = notes(&paths);
    let mut lcr = paths.into_iter().nth(1).expect("one of three");
    for peer in [0, 2] {
        up(&mut lcr, process(peer), 1);
        writable(&mut lcr, peer, ROOM);
    }
    let view = view(4, MEMBERS, 1);
    lcr.install(AT, &view, &notes);
    assert!(matches!(sent(&mut lcr, 0), Some((0, Said::Hello(_)))));
    (lcr, view.ring)
}

fn up(lcr: &mut Lcr, peer: Process, session: u64) {
    let session = Session(session);
    lcr.on_link(AT, Link::Up { peer, session });
}

fn writable(lcr: &mut Lcr, peer: usize, bytes: usize) {
    let (peer, session) = (process(peer).node, Session(1));
    let writable = Link::Writable {
        peer,
        session,
        bytes,
    };
    lcr.on_link(AT, writable);
}

fn hear(lcr: &mut Lcr, from: usize, bytes: Bytes) {
    let (peer, session) = (process(from).node, Session(1));
    let message = Link::Message {
        peer,
        session,
        bytes,
    };
    lcr.on_link(AT, message);
}

/// The next message and to whom, with so many frames to send.
fn sent(lcr: &mut Lcr, frames: usize) -> Option<(usize, Said)> {
    match lcr.poll_output(AT, &mut backlog(frames))? {
        Output::LinkSend { peer, bytes, .. } => {
            let said = decode(bytes.into_bytes()).expect("it is ours");
            Some((usize::from(peer.get()) - 1, said))
        }
        other => panic!("{other:?}"),
    }
}

fn hello(ring: RingId, received: [u64; MEMBERS]) -> Bytes {
    let hello = Hello {
        ring,
        epoch: 3,
        received: received.into(),
    };
    hello.encode().into()
}

fn counted(lcr: &Lcr, name: &str) -> u64 {
    let mut counters = std::collections::BTreeMap::new();
    lcr.count(&mut counters);
    counters[name]
}

#[test]
fn whatever_the_neighbours_say_nothing_panics_or_grows() {
    let small = (0..MEMBERS, 1..4_u64);
    let word = small
        .clone()
        .prop_map(|(member, number)| Record::Stable(member, number));
    let told = small
        .clone()
        .prop_map(|(member, number)| Record::Delivered(member, number));
    let packet = (0..MEMBERS, 1..30_u64, vec(0..3_u64, MEMBERS), 0..200_usize);
    let packet = packet.prop_map(|(sender, number, clock, size)| {
        let gains = clock.into_iter().take(sender);
        let frame = frame(&vec![7; size]);
        Record::Packet(Entry::own(sender, number, Service::Safe, gains, &frame))
    });
    let records = vec(prop_oneof![4 => packet, 1 => word, 1 => told], 1..20);
    let batch = (
        records,
        vec((0..2000_usize, any::<u8>()), 0..3),
        any::<bool>(),
    );
    let delivered = std::cell::Cell::new(0);
    check(3000, vec(batch, 1..30), |batches| {
        let (mut lcr, ring) = member();
        hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
        let mut epoch = 1;
        for (records, damage, answered) in batches {
            let mut bytes = write(ring, epoch, &records).to_vec();
            for (at, change) in damage {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= change;
                }
            }
            hear(&mut lcr, 0, bytes.into());
            if let Some((time, _)) = lcr.next_timer() {
                lcr.on_timer(time);
            }
            while let Some((to, said)) = sent(&mut lcr, usize::from(answered)) {
                if let (0, Said::Hello(hello)) = (to, said) {
                    epoch = hello.epoch;
                }
                if answered && counted(&lcr, "lcr_batches_sent") > 100 {
                    break;
                }
            }
            while lcr.poll_packet().is_some() {
                delivered.set(delivered.get() + 1);
            }
            prop_assert!(lcr.kept_bytes() <= MEMBERS * (WINDOW + 300));
        }
        let view = super::ring::view(4, MEMBERS, 1);
        let mut held = lcr.freeze(AT).held;
        Lcr::arrange(&mut held);
        lcr.install(AT, &view, &[]);
        Ok(())
    });
    assert!(delivered.get() > 1000, "{}", delivered.get());
}

#[test]
fn a_predecessor_that_was_refused_is_asked_again_and_goes_on() {
    let (mut lcr, ring) = member();
    let packet = |number| {
        let frame = frame(&[1]);
        let gains = std::iter::empty();
        Record::Packet(Entry::own(0, number, Service::Safe, gains, &frame))
    };
    hear(&mut lcr, 0, write(ring, 1, &[packet(1), packet(3)]));
    assert_eq!(counted(&lcr, "lcr_messages_refused"), 1);
    // What was right is taken in, and what follows is not.
    hear(&mut lcr, 0, write(ring, 1, &[packet(2)]));
    assert_eq!(counted(&lcr, "lcr_messages_stale"), 1);
    assert!(sent(&mut lcr, 0).is_none(), "not at once");
    let (time, _) = lcr.next_timer().expect("it asks again");
    assert_eq!(time.since(AT), 100_000_000);
    lcr.on_timer(time);
    let Some((0, Said::Hello(again))) = sent(&mut lcr, 0) else {
        panic!("no hello");
    };
    assert_eq!((again.epoch, again.received), (2, vec![1, 0, 0]));
    hear(&mut lcr, 0, write(ring, 2, &[packet(2), packet(3)]));
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    let Some((2, Said::Batch(batch))) = sent(&mut lcr, 0) else {
        panic!("no batch");
    };
    let read: Result<Vec<_>, _> = batch.records(MEMBERS).collect();
    assert_eq!(read, Ok([1, 2, 3].map(packet).into()));
}

/// What all have delivered and hold cannot overtake packets that wait in a link.
#[test]
fn little_waits_in_the_queue_of_a_link() {
    let (mut lcr, ring) = member_with(16 << 20);
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    let mut backlog = backlog(50_000);
    let mut send = |lcr: &mut Lcr| {
        let outputs = std::iter::from_fn(|| lcr.poll_output(AT, &mut backlog));
        let bytes = outputs.map(|output| match output {
            Output::LinkSend { bytes, .. } => bytes.len(),
            other => panic!("{other:?}"),
        });
        bytes.sum::<usize>()
    };
    let first = send(&mut lcr);
    assert!((ROOM / 8..ROOM / 7).contains(&first), "{first}");
    writable(&mut lcr, 2, ROOM - ROOM / 7);
    assert_eq!(send(&mut lcr), 0, "too much waits");
    writable(&mut lcr, 2, ROOM - ROOM / 16);
    let more = send(&mut lcr);
    assert!((ROOM / 16..ROOM / 15).contains(&more), "{more}");
}

#[test]
fn a_hello_that_comes_before_the_view_is_kept() {
    let (mut lcr, _) = member();
    let next = view(5, MEMBERS, 1);
    hear(&mut lcr, 2, hello(next.ring, [0; MEMBERS]));
    assert!(sent(&mut lcr, 1).is_none(), "that is another view");
    lcr.freeze(AT);
    lcr.install(AT, &next, &[]);
    assert!(matches!(sent(&mut lcr, 1), Some((0, Said::Hello(_)))));
    match sent(&mut lcr, 1) {
        Some((2, Said::Batch(batch))) => {
            assert_eq!((batch.ring, batch.epoch), (next.ring, 3));
            assert_eq!(batch.records(MEMBERS).count(), 1);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hello_that_cannot_be_is_refused() {
    let (mut lcr, ring) = member();
    // More than there is; another number of members; from the predecessor.
    hear(&mut lcr, 2, hello(ring, [1, 0, 0]));
    let two = Hello {
        ring,
        epoch: 1,
        received: vec![0; 2],
    };
    hear(&mut lcr, 2, two.encode().into());
    hear(&mut lcr, 0, hello(ring, [0; MEMBERS]));
    assert_eq!(counted(&lcr, "lcr_messages_refused"), 3);
    assert!(sent(&mut lcr, 1).is_none());
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    assert!(matches!(sent(&mut lcr, 1), Some((2, Said::Batch(_)))));
}

#[test]
fn another_life_of_a_neighbour_is_nobody() {
    let (mut lcr, ring) = member();
    let other = Process {
        incarnation: Incarnation(8),
        ..process(2)
    };
    up(&mut lcr, other, 1);
    writable(&mut lcr, 2, 1 << 20);
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    assert!(sent(&mut lcr, 1).is_none());
    up(&mut lcr, process(2), 1);
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    assert!(sent(&mut lcr, 1).is_none(), "the link takes nothing yet");
    writable(&mut lcr, 2, 24 + 16 + FRAME);
    assert!(sent(&mut lcr, 1).is_none(), "nor that much");
    writable(&mut lcr, 2, 24 + 26 + FRAME);
    assert!(matches!(sent(&mut lcr, 1), Some((2, Said::Batch(_)))));
}

#[test]
fn a_message_of_another_session_is_nothing() {
    let (mut lcr, ring) = member();
    up(&mut lcr, process(2), 2);
    hear(&mut lcr, 2, hello(ring, [0; MEMBERS]));
    assert_eq!(counted(&lcr, "lcr_messages_stale"), 1);
    assert!(sent(&mut lcr, 1).is_none());
}
