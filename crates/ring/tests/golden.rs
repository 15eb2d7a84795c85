//! The bytes of the ring's datagrams are those of `testdata/golden/ring.txt`, and are read back as what they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;

use bytes::Bytes;
use golden::Golden;
use rota_core::contract::{Incarnation, NodeId, Process, RingId, Service};
use rota_core::wire::{Frame, RequestRange, push_first, push_next, push_whole, start_frame};
use rota_ring::wire::{
    Commit, Counts, Data, Hurry, Join, MergeDetect, OldRing, Packet, Settings, Token, decode,
};

const CLUSTER: u32 = 0x0102_0304;

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn process(id: u16) -> Process {
    Process {
        node: node(id),
        incarnation: Incarnation(0x0011_2233_4455_6600 + u64::from(id)),
    }
}

fn ring() -> RingId {
    RingId {
        ring_seq: 0x0a0b_0c0d_0e0f_1011,
        rep: node(0x0201),
        incarnation: process(0x0201).incarnation,
    }
}

fn frame(records: impl FnOnce(&mut Vec<u8>), first_counter: u64) -> Frame {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, first_counter);
    records(&mut bytes);
    Frame::parse(Bytes::from(bytes)).expect("a frame by the rules")
}

fn data(service: Service, encapsulated: bool, frame: Frame) -> Packet {
    Packet::Data(Data {
        cluster: CLUSTER,
        ring: ring(),
        seq: 0x1122_3344_5566_7788,
        sender: node(0x0302),
        round: 0xabcd,
        service,
        encapsulated,
        frame,
    })
}

fn whole_messages() -> Packet {
    let records = |bytes: &mut Vec<u8>| {
        push_whole(bytes, b"hello");
        push_whole(bytes, b"world!");
    };
    data(Service::Agreed, false, frame(records, 300))
}

fn parts_of_messages() -> Packet {
    let records = |bytes: &mut Vec<u8>| {
        push_next(bytes, true, 0x0405, true, b"end");
        push_first(bytes, false, 0x0001_0203, b"head");
    };
    data(Service::Reliable, false, frame(records, 7))
}

/// Service, sequence number, sender and frame of a packet of an old ring are the one message of the packet around it.
fn recovered() -> Packet {
    // 3: agreed.
    let mut inside = vec![3];
    inside.extend_from_slice(&0x0102_0304_0506_0708_u64.to_le_bytes());
    inside.extend_from_slice(&0x0304_u16.to_le_bytes());
    start_frame(&mut inside, 9);
    push_whole(&mut inside, b"older");
    let records = |bytes: &mut Vec<u8>| push_whole(bytes, &inside);
    data(Service::Agreed, true, frame(records, 1))
}

fn token(idle: bool, rtr: Vec<RequestRange>) -> Packet {
    Packet::Token(Token {
        cluster: CLUSTER,
        ring: ring(),
        sender: node(0x0302),
        token_seq: 0x2122_2324_2526_2728,
        seq: 0x3132_3334_3536_3738,
        aru: 0x3132_3334_3536_3700,
        aru_id: (!idle).then(|| node(0x0403)),
        fcc: 0x4142_4344,
        backlog: 0x5152_5354,
        idle,
        recovering: !idle,
        rtr,
    })
}

fn requests() -> Vec<RequestRange> {
    let range = |first, count| RequestRange { first, count };
    vec![
        range(0x3132_3334_3536_3701, 1),
        range(0x3132_3334_3536_3710, 0x20),
    ]
}

fn join(leaving: bool) -> Packet {
    let sender = process(0x0302);
    let (procs, fails) = match leaving {
        true => (vec![sender], vec![sender]),
        false => (
            vec![process(0x0201), sender, process(0x0403)],
            vec![process(0x0403)],
        ),
    };
    Packet::Join(Join {
        cluster: CLUSTER,
        sender,
        ring_seq: 0x6162_6364_6566_6768,
        leaving,
        procs: procs.into_iter().collect(),
        fails: fails.into_iter().collect(),
    })
}

fn old_ring(counts: Counts, have: Vec<RequestRange>) -> OldRing {
    OldRing {
        ring: RingId {
            ring_seq: 0x0a0b_0c0d_0e0f_1000,
            ..ring()
        },
        aru: 0x71,
        high: 0x0072_7374,
        safe_line: 0x70,
        obligations: 0x8001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
        next_message: 0x0081_8283,
        settings: Settings {
            personal_window: 0x14,
            global_window: 0x0191,
            outstanding_window: 0x0292,
            token_loss_us: 0x0003_9394,
        },
        counts,
        more: !have.is_empty(),
        have,
    }
}

fn commit(is_complete: bool) -> Packet {
    let range = |first, count| RequestRange { first, count };
    let own = |own, met, more| Counts { own, met, more };
    let told = match is_complete {
        true => vec![
            old_ring(
                own(Some(0), 3, true),
                vec![range(0x73, 2), range(0x0101, 0x0102)],
            ),
            old_ring(own(None, 2, false), vec![]),
        ],
        false => vec![old_ring(own(Some(1), 1, false), vec![])],
    };
    Packet::Commit(Commit {
        cluster: CLUSTER,
        ring: ring(),
        sender: node(0x0201),
        token_seq: if is_complete { 3 } else { 1 },
        members: vec![process(0x0201), process(0x0302)],
        electorates: vec![
            vec![node(0x0201), node(0x0302), node(0x0403)],
            vec![node(0x0201), node(0x0302)],
        ],
        told,
    })
}

#[test]
fn datagrams_of_a_ring() {
    let presence = Packet::MergeDetect(MergeDetect {
        cluster: CLUSTER,
        sender: process(0x0302),
        ring: ring(),
    });
    let hurry = Packet::Hurry(Hurry {
        cluster: CLUSTER,
        ring: ring(),
        sender: node(0x0302),
    });
    let packets = [
        ("data with whole messages", whole_messages()),
        ("data with parts of messages", parts_of_messages()),
        ("recovered packet of an old ring", recovered()),
        ("idle token", token(true, vec![])),
        ("recovering token with requests", token(false, requests())),
        ("hurry", hurry),
        ("join", join(false)),
        ("join of a process that leaves", join(true)),
        ("presence", presence),
        ("commit token in its first rotation", commit(false)),
        ("complete commit token", commit(true)),
    ];
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "ring");
    for (name, packet) in packets {
        let bytes = golden.compare(name, &packet.encode());
        assert_eq!(decode(Bytes::from(bytes)), Ok(packet), "{name}");
    }
    golden.finish();
}
