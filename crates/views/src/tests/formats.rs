//! The bytes of the words between members are those of `testdata/golden/exchange.txt`, and are read back as what they
//! were.

#[path = "../../../core/tests/golden/mod.rs"]
mod golden;

use super::*;
use golden::Golden;
use rota_core::wire::{push_whole, start_frame};

/// The state of one of two processes in a view.
fn state(view: u64, held: Vec<Name>) -> ViewState {
    let members = [process(0x0102), process(0x0304)];
    let mut watermarks = Watermarks::default();
    watermarks.raise(members[0], 0x0111);
    watermarks.raise(members[1], 0x0122);
    ViewState {
        view: ring(view),
        members: members.to_vec(),
        delivered: vec![0x0201, 0x0202],
        held,
        watermarks,
        position: 0x0a0b_0c0d,
    }
}

#[test]
fn words_of_the_exchange() {
    let held = vec![name(0, 0x0202, &[0x0501]), name(1, 0x0203, &[0x0503, 2])];
    let recover = Recover {
        forgot: false,
        installed: Some(state(0x0607, held)),
        tentative: vec![state(0x0608, vec![])],
        note: Bytes::from_static(b"note"),
    };
    let forgotten = Recover {
        forgot: true,
        ..Recover::default()
    };
    let mut frame = Vec::new();
    start_frame(&mut frame, 9);
    push_whole(&mut frame, b"hello");
    let packet = |sender, load, bytes: &[u8]| Packet {
        id: PacketId {
            sender,
            number: 0x0203,
        },
        load,
        bytes: Bytes::copy_from_slice(bytes),
    };
    let packets = vec![
        packet(1, Load::Messages(Service::Safe), &frame),
        packet(0, Load::Own, b"own"),
    ];
    let part = Word::Part {
        last: true,
        bytes: Bytes::from_static(b"bytes"),
    };
    let words = [
        (
            "RECOVER of a process that has forgotten",
            Word::Recover(forgotten),
        ),
        ("RECOVER", Word::Recover(recover)),
        ("PAYLOAD", Word::Payload(packets)),
        ("END_RECOVERY", Word::EndRecovery),
        ("PART", part),
    ];
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "exchange");
    for (name, word) in words {
        let bytes = golden.compare(name, &word.encode(ring(0x0a0b_0c0d)));
        let read = Word::decode(&Bytes::from(bytes));
        assert_eq!(read, Some((ring(0x0a0b_0c0d), word)), "{name}");
    }
    golden.finish();
}
