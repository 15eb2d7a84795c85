//! The bytes of the data paths' messages are those of `testdata/golden`, and are read back as what they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;

use bytes::Bytes;
use golden::Golden;
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::wire::{SEAL_BYTES, push_whole, start_frame};
use rota_views::Load;
use rota_views::fastcast::{
    FastControl, FastData, FastHead, FastPacket, FastPlaces, FastRequest, FastRun,
};
use rota_views::lcr::{self, Entry, Hello, Record, Said, Writer};

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn ring() -> RingId {
    RingId {
        ring_seq: 0x0a0b_0c0d_0e0f_1011,
        rep: node(0x0201),
        incarnation: Incarnation(0x0011_2233_4455_6677),
    }
}

fn frame(first: u64) -> Bytes {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, first);
    push_whole(&mut bytes, b"hello");
    bytes.into()
}

fn data(load: Load, places: Option<FastPlaces>, bytes: Bytes) -> FastPacket {
    let head = FastHead {
        cluster: 0x0102_0304,
        ring: ring(),
        sender: node(0x0302),
        number: 0x1122_3344_5566_7788,
        following: 0xabcd,
        load,
        places,
    };
    FastPacket::Data(FastData { head, bytes })
}

fn control(runs: Vec<FastRun>, requests: Vec<FastRequest>, applied: Vec<u64>) -> FastPacket {
    let have = [0x0101, 0x0202, 0x0303];
    let members = if runs.is_empty() { 2 } else { 3 };
    FastPacket::Control(FastControl {
        cluster: 0x0102_0304,
        ring: ring(),
        sender: node(0x0302),
        acked: 0x2122_2324_2526_2728,
        delivered: 0x2122_2324_2526_2700,
        ask: if runs.is_empty() { 0 } else { 0b101 },
        have: have[..members].to_vec(),
        first: 0x2122_2324_2526_2729,
        runs,
        requests,
        applied,
    })
}

fn encode(packet: &FastPacket) -> Vec<u8> {
    let mut bytes = Vec::new();
    match packet {
        FastPacket::Data(FastData { head, bytes: load }) => {
            head.encode_into(load, &mut bytes, SEAL_BYTES);
        }
        FastPacket::Control(control) => control.encode_into(&mut bytes, SEAL_BYTES),
    }
    bytes
}

#[test]
fn datagrams_of_fastcast() {
    let places = FastPlaces {
        first: 0x3132_3334_3536_3738,
        count: 0x0405,
    };
    let runs = [(2, 0x0607), (0, 1)].map(|(sender, count)| FastRun { sender, count });
    let request = |to, of, first, count| FastRequest {
        to,
        of,
        first,
        count,
    };
    let requests = vec![
        request(1, Some(2), 0x4142_4344, 0x5152),
        request(0, None, 0x6162_6364, 1),
    ];
    let agreed = Load::Messages(Service::Agreed);
    let packets = [
        ("data of messages", data(agreed, None, frame(7))),
        (
            "data of messages with places",
            data(Load::Messages(Service::Safe), Some(places), frame(8)),
        ),
        (
            "word of the protocol itself",
            data(Load::Own, None, Bytes::from_static(b"own")),
        ),
        (
            "control datagram",
            control(runs.to_vec(), requests, vec![0x71, 0x72, 0x73]),
        ),
        ("acknowledgement alone", control(vec![], vec![], vec![])),
    ];
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "fastcast");
    for (name, packet) in packets {
        let bytes = golden.compare(name, &encode(&packet));
        let read = FastPacket::decode(Bytes::from(bytes), SEAL_BYTES);
        assert_eq!(read, Ok(packet), "{name}");
    }
    golden.finish();
}

#[test]
fn messages_of_lcr() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "lcr");
    let hello = Hello {
        ring: ring(),
        epoch: 0x0102_0304,
        received: vec![1, 300, 0],
    };
    let bytes = golden.compare("hello", &hello.encode());
    assert_eq!(lcr::decode(bytes.into()), Ok(Said::Hello(hello)));

    let gains = [5, 200].into_iter();
    let records = [
        Record::Packet(Entry::own(2, 300, Service::Safe, gains, &frame(9))),
        Record::Packet(Entry::own(0, 1, Service::Fifo, [].into_iter(), &frame(1))),
        Record::Stable(1, 1000),
        Record::Delivered(2, 3),
    ];
    let mut batch = Writer::new(ring(), 0x0102_0304, usize::MAX, usize::MAX);
    for record in &records {
        match record {
            Record::Packet(entry) => batch.packet(entry),
            Record::Stable(member, number) => batch.stable(*member, *number),
            Record::Delivered(member, number) => batch.delivered(*member, *number),
        }
    }
    let bytes = golden.compare("batch", &batch.finish().into_bytes());
    let Ok(Said::Batch(batch)) = lcr::decode(bytes.into()) else {
        panic!("it is a batch");
    };
    assert_eq!((batch.ring, batch.epoch), (ring(), 0x0102_0304));
    let read: Result<Vec<_>, _> = batch.records(3).collect();
    assert_eq!(read.as_deref(), Ok(&records[..]));
    golden.finish();
}
