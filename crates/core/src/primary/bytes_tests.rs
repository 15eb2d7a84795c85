//! The bytes of the layer are those of `testdata/golden/primary.txt`, and are read back as what they were.

#[path = "../../tests/golden/mod.rs"]
mod golden;

use alloc::collections::BTreeSet;
use alloc::vec;
use bytes::Bytes;

use super::message::{Own, Parsed, parse, wrap};
use super::session::{Knowledge, Session};
use crate::contract::{Incarnation, NodeId, RingId};
use golden::Golden;

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn ring(ring_seq: u64) -> RingId {
    RingId {
        ring_seq,
        rep: node(0x0102),
        incarnation: Incarnation(0x0011_2233_4455_6677),
    }
}

fn known() -> Knowledge {
    let session = |ring_seq, members: &[u16]| Session {
        ring: ring(ring_seq),
        members: members.iter().map(|id| node(*id)).collect(),
    };
    Knowledge {
        last: Some(session(0x0a0b, &[0x0102, 0x0203, 0x0304])),
        attempts: vec![session(0x0a0c, &[0x0102, 0x0304])],
        carried: BTreeSet::from([ring(0x0a0b)]),
    }
}

#[test]
fn bytes_of_the_layer() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "primary");
    let bytes = golden.compare("message of the application", &wrap(300, b"hello"));
    let message = Parsed::Application(300, Bytes::from_static(b"hello"));
    assert_eq!(parse(&bytes.into()), Some(message));
    for (name, own) in [
        ("attempt", Own::Attempt(ring(0x0a0d))),
        ("vote", Own::Vote(ring(0x0a0d), known())),
    ] {
        let bytes = golden.compare(name, &own.encode());
        assert_eq!(parse(&bytes.into()), Some(Parsed::Own(own)), "{name}");
    }
    let record = golden.compare("record", &known().to_record());
    assert_eq!(Knowledge::from_record(&record), Some(known()));
    golden.finish();
}
