//! The wire format: what is written is read, and nothing that is read makes it panic.

mod property;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{Incarnation, NodeId, Process, RingId, Service};
use rota_core::wire::{
    DATA_OVERHEAD_BYTES, Data, DecodeError, Form, Frame, HEADER_BYTES, Hello, Hurry,
    MAX_REQUEST_RANGES, Packet, RecordKind, RequestRange, Token, VERSION, decode, push_first,
    push_next, push_whole, request_ranges_in, start_frame,
};

const ETHERNET_BYTES: usize = 1472;

fn node() -> impl Strategy<Value = NodeId> {
    (1..=u16::MAX).prop_map(|id| NodeId::new(id).expect("not 0"))
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    (0..=Incarnation::MAX).prop_map(Incarnation)
}

fn ring() -> impl Strategy<Value = RingId> {
    (any::<u64>(), node(), incarnation()).prop_map(|(ring_seq, rep, incarnation)| RingId {
        ring_seq,
        rep,
        incarnation,
    })
}

fn process() -> impl Strategy<Value = Process> {
    (node(), incarnation()).prop_map(|(node, incarnation)| Process { node, incarnation })
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        Just(Service::Reliable),
        Just(Service::Fifo),
        Just(Service::Causal),
        Just(Service::Agreed),
        Just(Service::Safe),
    ]
}

/// Frames of every shape: a further part first or not, whole messages, a first part last or not.
fn frame() -> impl Strategy<Value = Frame> {
    let part = || vec(any::<u8>(), 0..40);
    let head = prop::option::of((any::<bool>(), 1..u16::MAX, part()));
    let wholes = vec(part(), 1..6);
    let tail = prop::option::of((any::<bool>(), any::<u32>(), part()));
    (1..u64::MAX / 2, head, wholes, tail).prop_map(|(counter, head, wholes, tail)| {
        let mut bytes = Vec::new();
        start_frame(&mut bytes, counter);
        if let Some((reliable, index, part)) = head {
            push_next(&mut bytes, reliable, index, true, &part);
        }
        for whole in &wholes {
            push_whole(&mut bytes, whole);
        }
        if let Some((reliable, total, part)) = tail {
            push_first(&mut bytes, reliable, total, &part);
        }
        Frame::parse(Bytes::from(bytes)).expect("a frame by the rules")
    })
}

fn data() -> impl Strategy<Value = Packet> {
    (
        any::<u32>(),
        ring(),
        1..=u64::MAX,
        node(),
        any::<u16>(),
        service(),
        frame(),
    )
        .prop_map(|(cluster, ring, seq, sender, round, service, frame)| {
            Packet::Data(Data {
                cluster,
                ring,
                seq,
                sender,
                round,
                service,
                frame,
            })
        })
}

fn token() -> impl Strategy<Value = Packet> {
    let fields = (any::<u32>(), ring(), node(), any::<u64>());
    let counts = (
        any::<u32>(),
        any::<u32>(),
        any::<bool>(),
        prop::option::of(node()),
    );
    let gaps = vec((1..1000_u64, 1..1000_u32), 0..=MAX_REQUEST_RANGES);
    (fields, counts, gaps, 0..1000_u64, 0..1000_u64).prop_map(
        |(fields, counts, gaps, above, aru)| {
            let (cluster, ring, sender, token_seq) = fields;
            let (fcc, backlog, idle, aru_id) = counts;
            let mut last = 0;
            let mut rtr = Vec::new();
            for (gap, count) in gaps {
                rtr.push(RequestRange {
                    first: last + gap,
                    count,
                });
                last = last + gap + u64::from(count) - 1;
            }
            let seq = last + above;
            let aru = aru.min(seq);
            Packet::Token(Token {
                cluster,
                ring,
                sender,
                token_seq,
                seq,
                aru,
                aru_id,
                fcc,
                backlog,
                idle,
                rtr,
            })
        },
    )
}

fn hurry() -> impl Strategy<Value = Packet> {
    (any::<u32>(), ring(), node()).prop_map(|(cluster, ring, sender)| {
        Packet::Hurry(Hurry {
            cluster,
            ring,
            sender,
        })
    })
}

fn hello() -> impl Strategy<Value = Packet> {
    (any::<u32>(), process(), prop::option::of(ring())).prop_map(|(cluster, process, installed)| {
        Packet::Hello(Hello {
            cluster,
            process,
            installed,
        })
    })
}

fn form() -> impl Strategy<Value = Packet> {
    let members = prop::collection::btree_map(node(), incarnation(), 0..129);
    (any::<u32>(), ring(), members).prop_map(|(cluster, ring, members)| {
        let process = |(node, incarnation)| Process { node, incarnation };
        let members = members.into_iter().map(process).collect();
        Packet::Form(Form {
            cluster,
            ring,
            members,
        })
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    prop_oneof![data(), token(), hurry(), hello(), form()]
}

fn read(bytes: impl Into<Bytes>) -> Result<Packet, DecodeError> {
    decode(bytes.into())
}

fn same_when_read_back(packets: impl Strategy<Value = Packet>) {
    property::check(500, packets, |packet| {
        prop_assert_eq!(read(packet.encode()), Ok(packet));
        Ok(())
    });
}

#[test]
fn data_is_read_as_written() {
    same_when_read_back(data());
}

#[test]
fn a_token_is_read_as_written() {
    same_when_read_back(token());
}

#[test]
fn a_hurry_is_read_as_written() {
    same_when_read_back(hurry());
}

#[test]
fn a_hello_is_read_as_written() {
    same_when_read_back(hello());
}

#[test]
fn a_form_is_read_as_written() {
    same_when_read_back(form());
}

/// The decoder takes the bytes or names an error; what it takes is written as it was read, but for
/// the checksum, which it leaves alone, and fields that no packet of the kind has.
fn takes_or_refuses(bytes: Vec<u8>) -> Result<(), TestCaseError> {
    if let Ok(packet) = read(bytes.clone()) {
        let written = packet.encode();
        prop_assert_eq!(written.len(), bytes.len());
        prop_assert_eq!(read(written), Ok(packet));
    }
    Ok(())
}

#[test]
fn any_bytes_are_taken_or_refused() {
    property::check(5000, vec(any::<u8>(), 0..300), takes_or_refuses);
}

#[test]
fn any_bytes_behind_a_valid_start_are_taken_or_refused() {
    let bytes = (0..8_u8, vec(any::<u8>(), HEADER_BYTES - 2..200)).prop_map(|(kind, rest)| {
        let mut bytes = vec![VERSION, kind];
        bytes.extend(rest);
        // An incarnation that may be one.
        bytes[22..24].fill(0);
        bytes
    });
    property::check(5000, bytes, takes_or_refuses);
}

#[test]
fn every_truncation_is_refused_or_another_packet() {
    property::check(200, packet(), |packet| {
        let whole = packet.encode();
        for len in 0..whole.len() {
            let cut = whole[..len].to_vec();
            prop_assert_ne!(read(cut.clone()), Ok(packet.clone()));
            takes_or_refuses(cut)?;
        }
        Ok(())
    });
}

#[test]
fn no_flipped_bit_makes_the_decoder_panic() {
    property::check(100, packet(), |packet| {
        let whole = packet.encode();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            takes_or_refuses(bytes)?;
        }
        Ok(())
    });
}

#[test]
fn a_data_packet_costs_40_bytes_beside_its_frame() {
    const { assert!(DATA_OVERHEAD_BYTES <= 40) };
    property::check(200, data(), |packet| {
        let len = packet.encode().len();
        let Packet::Data(data) = packet else {
            unreachable!()
        };
        prop_assert_eq!(len, DATA_OVERHEAD_BYTES + data.frame.bytes().len());
        prop_assert_eq!(len, data.encoded_len());
        Ok(())
    });
}

fn node_id(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

const RING: RingId = RingId {
    ring_seq: 9,
    rep: NodeId::new(1).unwrap(),
    incarnation: Incarnation(77),
};

fn sample_token(seq: u64, rtr: Vec<RequestRange>) -> Token {
    let (cluster, sender) = (5, node_id(2));
    let aru_id = Some(node_id(3));
    let (token_seq, aru, fcc, backlog, idle) = (12, seq / 2, 4, 6, true);
    Token {
        cluster,
        ring: RING,
        sender,
        token_seq,
        seq,
        aru,
        aru_id,
        fcc,
        backlog,
        idle,
        rtr,
    }
}

fn sample_data() -> Data {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, 300);
    push_whole(&mut bytes, b"hello");
    let frame = Frame::parse(Bytes::from(bytes)).expect("a frame by the rules");
    let (sender, service) = (node_id(2), Service::Agreed);
    Data {
        cluster: 5,
        ring: RING,
        seq: 8,
        sender,
        round: 3,
        service,
        frame,
    }
}

fn sample_form() -> Form {
    let member = |id| Process {
        node: node_id(id),
        incarnation: Incarnation(u64::from(id)),
    };
    Form {
        cluster: 5,
        ring: RING,
        members: vec![member(1), member(2)],
    }
}

#[test]
fn a_token_with_all_its_requests_fits_an_ethernet_frame() {
    let first = u64::MAX - 1_000_000;
    let range = |index: usize| RequestRange {
        first: first + 3 * index as u64,
        count: 2,
    };
    let rtr = (0..MAX_REQUEST_RANGES).map(range).collect();
    let token = Packet::Token(sample_token(u64::MAX, rtr));
    let bytes = token.encode();
    assert!(bytes.len() <= ETHERNET_BYTES, "{} bytes", bytes.len());
    assert_eq!(read(bytes), Ok(token));
}

#[test]
fn as_many_requests_as_fit_a_datagram_fit_and_one_more_does_not() {
    let range = |index: usize| RequestRange {
        first: 1 + 3 * index as u64,
        count: 2,
    };
    let token_bytes = |ranges: usize| {
        let rtr = (0..ranges).map(range).collect();
        Packet::Token(sample_token(9, rtr)).encode().len()
    };
    for datagram_bytes in [512, 513, 523, 524, 1252, 1389] {
        let most = request_ranges_in(datagram_bytes);
        assert!(token_bytes(most) <= datagram_bytes, "{datagram_bytes}");
        assert!(token_bytes(most + 1) > datagram_bytes, "{datagram_bytes}");
    }
    assert_eq!(request_ranges_in(1390), MAX_REQUEST_RANGES);
    assert_eq!(request_ranges_in(9000), MAX_REQUEST_RANGES);
    assert_eq!(request_ranges_in(0), 0);
}

#[test]
fn a_form_of_the_largest_ring_fits_an_ethernet_frame() {
    let member = |id| Process {
        node: node_id(id),
        incarnation: Incarnation(Incarnation::MAX),
    };
    let form = Form {
        cluster: 5,
        ring: RING,
        members: (1..=128).map(member).collect(),
    };
    assert!(Packet::Form(form).encode().len() <= ETHERNET_BYTES);
}

/// A packet, changed.
fn changed(packet: Packet, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = packet.encode();
    change(&mut bytes);
    bytes
}

fn data_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Data(sample_data()), change)
}

fn token_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Token(sample_token(100, vec![])), change)
}

fn hello_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let process = Process {
        node: node_id(2),
        incarnation: Incarnation(3),
    };
    changed(
        Packet::Hello(Hello {
            cluster: 5,
            process,
            installed: Some(RING),
        }),
        change,
    )
}

fn form_with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(Packet::Form(sample_form()), change)
}

#[test]
fn every_error_of_the_header_is_reached() {
    let cases = [
        (vec![], DecodeError::Short),
        (
            data_with(|b| b.truncate(HEADER_BYTES - 1)),
            DecodeError::Short,
        ),
        (
            data_with(|b| b[0] = VERSION + 1),
            DecodeError::Version(VERSION + 1),
        ),
        (data_with(|b| b[1] = 5), DecodeError::Kind(5)),
        (data_with(|b| b[1] = 0x50), DecodeError::Service(5)),
        (data_with(|b| b[32..34].fill(0)), DecodeError::ZeroNode),
        (data_with(|b| b[34..36].fill(0)), DecodeError::ZeroNode),
        (data_with(|b| b[24..32].fill(0)), DecodeError::ZeroSeq),
        (data_with(|b| b[22] = 0x20), DecodeError::Incarnation),
        (
            hello_with(|b| b[HEADER_BYTES + 6] = 0x20),
            DecodeError::Incarnation,
        ),
        (
            hello_with(|b| b.truncate(HEADER_BYTES + 7)),
            DecodeError::Short,
        ),
        (hello_with(|b| b.push(0)), DecodeError::Trailing),
        (form_with(|b| b.push(0)), DecodeError::Trailing),
        (form_with(|b| b[HEADER_BYTES] = 3), DecodeError::Short),
        (
            form_with(|b| b[HEADER_BYTES + 2] = 0),
            DecodeError::ZeroNode,
        ),
        (
            form_with(|b| b[HEADER_BYTES + 2] = 2),
            DecodeError::MembersNotAscending,
        ),
        (
            form_with(|b| b[HEADER_BYTES + 2] = 9),
            DecodeError::MembersNotAscending,
        ),
    ];
    for (bytes, error) in cases {
        assert_eq!(read(bytes), Err(error));
    }
}

fn requesting(seq: u64, ranges: &[(u64, u32)]) -> Vec<u8> {
    let range = |&(first, count)| RequestRange { first, count };
    Packet::Token(sample_token(seq, ranges.iter().map(range).collect())).encode()
}

#[test]
fn every_error_of_a_token_is_reached() {
    let wrong = "a token's requests are not ascending up to seq";
    let many: Vec<_> = (0..=MAX_REQUEST_RANGES as u64)
        .map(|index| (1 + 2 * index, 1))
        .collect();
    let short = |mut bytes: Vec<u8>| {
        bytes.pop();
        bytes
    };
    let cases = [
        (
            token_with(|b| b.truncate(HEADER_BYTES + 20)),
            DecodeError::Short,
        ),
        (short(requesting(100, &[(1, 1)])), DecodeError::Short),
        (token_with(|b| b.push(0)), DecodeError::Trailing),
        (
            token_with(|b| b[HEADER_BYTES + 8..HEADER_BYTES + 16].fill(0xff)),
            DecodeError::Token("a token's aru is above its seq"),
        ),
        (
            token_with(|b| b[HEADER_BYTES + 18] = 2),
            DecodeError::Token("a token has unknown flags"),
        ),
        (
            requesting(1000, &many),
            DecodeError::Token("a token requests too many ranges"),
        ),
        (requesting(100, &[(0, 1)]), DecodeError::Token(wrong)),
        (requesting(100, &[(5, 0)]), DecodeError::Token(wrong)),
        (requesting(100, &[(100, 2)]), DecodeError::Token(wrong)),
        (
            requesting(100, &[(5, 3), (7, 1)]),
            DecodeError::Token(wrong),
        ),
        (
            requesting(100, &[(9, 1), (5, 1)]),
            DecodeError::Token(wrong),
        ),
        (
            requesting(u64::MAX, &[(u64::MAX, u32::MAX)]),
            DecodeError::Token(wrong),
        ),
    ];
    for (index, (bytes, error)) in cases.into_iter().enumerate() {
        assert_eq!(read(bytes), Err(error), "case {index}");
    }
}

fn frame_of(counter: u64, records: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, counter);
    records(&mut bytes);
    bytes
}

#[test]
fn every_error_of_a_frame_is_reached() {
    let overflow = "a message counter or part index overflows";
    let middle = |bytes: &mut Vec<u8>, index| push_next(bytes, false, index, false, b"x");
    let last = |bytes: &mut Vec<u8>, index| push_next(bytes, false, index, true, b"x");
    let cases: [(Vec<u8>, &str); 13] = [
        (vec![], "a malformed message counter"),
        (vec![0x80], "a malformed message counter"),
        (vec![0xff; 11], "a malformed message counter"),
        (
            frame_of(0, |b| push_whole(b, b"")),
            "message counters start at 1",
        ),
        (frame_of(1, |_| ()), "a frame without records"),
        (
            frame_of(1, |b| b.extend([9, 0, 0])),
            "a record with an unknown tag",
        ),
        (
            frame_of(1, |b| middle(b, 0)),
            "part 0 of a message must be its first",
        ),
        (
            frame_of(1, |b| last(b, 0)),
            "part 0 of a message must be its first",
        ),
        (frame_of(u64::MAX, |b| push_whole(b, b"")), overflow),
        (frame_of(1, |b| middle(b, u16::MAX)), overflow),
        (
            frame_of(1, |b| [1, 2].into_iter().for_each(|i| last(b, i))),
            "a further part inside a frame",
        ),
        (
            frame_of(1, |b| [1, 2].into_iter().for_each(|i| middle(b, i))),
            "a record after a part that ends its frame",
        ),
        (
            frame_of(1, |b| {
                push_first(b, false, 9, b"x");
                push_whole(b, b"y");
            }),
            "a record after a part that ends its frame",
        ),
    ];
    for (bytes, what) in cases {
        assert_eq!(
            Frame::parse(Bytes::from(bytes)),
            Err(DecodeError::Frame(what))
        );
    }
}

#[test]
fn a_frame_that_ends_inside_a_record_is_short() {
    let whole = frame_of(1, |bytes| push_first(bytes, true, 9, b"abc"));
    for len in 2..whole.len() {
        let cut = Bytes::copy_from_slice(&whole[..len]);
        assert_eq!(Frame::parse(cut), Err(DecodeError::Short), "{len} bytes");
    }
}

#[test]
fn the_cursors_of_a_frame_follow_from_its_records() {
    let bytes = frame_of(7, |bytes| {
        push_next(bytes, true, 4, true, b"rest");
        push_whole(bytes, b"");
        push_first(bytes, false, 100, b"start");
    });
    let frame = Frame::parse(Bytes::from(bytes)).expect("a frame by the rules");
    let (start, end) = (frame.start(), frame.end());
    assert_eq!(
        (start.counter, start.fragment, end.counter, end.fragment),
        (7, 4, 9, 1)
    );
    let kinds: Vec<_> = frame
        .records()
        .map(|record| (record.kind, record.reliable))
        .collect();
    let (last, first) = (
        RecordKind::Last { index: 4 },
        RecordKind::First { total: 100 },
    );
    assert_eq!(
        kinds,
        [(last, true), (RecordKind::Whole, false), (first, false)]
    );
}

#[test]
fn every_error_says_what_is_wrong() {
    for error in [
        DecodeError::Short,
        DecodeError::Trailing,
        DecodeError::Version(1),
        DecodeError::Kind(9),
        DecodeError::Service(9),
        DecodeError::ZeroNode,
        DecodeError::ZeroSeq,
        DecodeError::Incarnation,
        DecodeError::MembersNotAscending,
        DecodeError::Token("a token has unknown flags"),
        DecodeError::Frame("a frame without records"),
    ] {
        assert!(error.to_string().len() > 10, "{error:?}");
    }
}
