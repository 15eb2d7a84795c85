//! The wire format: the reader reads all that the writer writes, and no bytes make it panic.

#[path = "../../core/tests/property/mod.rs"]
mod property;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{Incarnation, NodeId, Process, RingId, Service};
use rota_core::wire::{
    DecodeError, Frame, HEADER_BYTES, MAX_SEAL_BYTES, RequestRange, SEAL_BYTES, VERSION,
    push_first, push_next, push_whole, start_frame,
};
use rota_ring::wire::{
    Commit, Counts, DATA_OVERHEAD_BYTES, Data, Hurry, Join, MAX_HAVE_RANGES, MAX_REQUEST_RANGES,
    MOST_ELECTORATES, MergeDetect, OldRing, Packet, Settings, Token, decode, decode_sealed,
};

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
        (service(), any::<bool>()),
        frame(),
    )
        .prop_map(|(cluster, ring, seq, sender, round, kind, frame)| {
            let (service, encapsulated) = kind;
            Packet::Data(Data {
                cluster,
                ring,
                seq,
                sender,
                round,
                service,
                encapsulated,
                frame,
            })
        })
}

/// For each of up to `most` ranges how far it is above the one before, and how long it is.
fn gaps(most: usize) -> impl Strategy<Value = Vec<(u64, u32)>> {
    vec((1..1000_u64, 1..1000_u32), 0..=most)
}

/// Those ranges, above `last`, and where the last of them ends.
fn ranges_above(mut last: u64, gaps: &[(u64, u32)]) -> (Vec<RequestRange>, u64) {
    let mut ranges = Vec::new();
    for &(gap, count) in gaps {
        let first = last + gap;
        ranges.push(RequestRange { first, count });
        last = first + u64::from(count) - 1;
    }
    (ranges, last)
}

fn token() -> impl Strategy<Value = Packet> {
    let fields = (any::<u32>(), ring(), node(), any::<u64>());
    let counts = (
        any::<u32>(),
        any::<u32>(),
        (any::<bool>(), any::<bool>()),
        prop::option::of(node()),
    );
    (
        fields,
        counts,
        gaps(MAX_REQUEST_RANGES),
        0..1000_u64,
        0..1000_u64,
    )
        .prop_map(|(fields, counts, gaps, above, aru)| {
            let (cluster, ring, sender, token_seq) = fields;
            let (fcc, backlog, (idle, recovering), aru_id) = counts;
            let (rtr, last) = ranges_above(0, &gaps);
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
                recovering,
                rtr,
            })
        })
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

/// Any sets, with or without the sender among those given up.
fn join() -> impl Strategy<Value = Packet> {
    let processes = || prop::collection::btree_set(process(), 0..60);
    let sets = (processes(), processes());
    (any::<u32>(), process(), any::<u64>(), any::<bool>(), sets).prop_map(
        |(cluster, sender, ring_seq, leaving, (mut procs, mut fails))| {
            if leaving {
                fails.insert(sender);
            } else {
                procs.insert(sender);
                fails.remove(&sender);
            }
            Packet::Join(Join {
                cluster,
                sender,
                ring_seq,
                leaving,
                procs,
                fails,
            })
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let windows = (1..=Settings::MOST_OUTSTANDING).prop_flat_map(|most| (1..=most, Just(most)));
    let losses = 1..=Settings::MOST_TOKEN_LOSS_US;
    (windows, 1..u32::MAX, losses).prop_map(
        |((personal_window, outstanding_window), global_window, token_loss_us)| Settings {
            personal_window,
            global_window,
            outstanding_window,
            token_loss_us,
        },
    )
}

fn old_ring() -> impl Strategy<Value = OldRing> {
    let lines = (0..1000_u64, 0..1000_u64, 0..1000_u64);
    let rest = (any::<u128>(), any::<u64>(), any::<bool>());
    let rest = (rest, settings());
    (ring(), lines, gaps(MAX_HAVE_RANGES), rest).prop_map(
        |(ring, (safe_line, above, beyond), gaps, (rest, settings))| {
            let (obligations, next_message, more) = rest;
            let aru = safe_line + above;
            let (have, last) = ranges_above(aru, &gaps);
            OldRing {
                ring,
                aru,
                high: last + beyond,
                safe_line,
                obligations,
                next_message,
                settings,
                counts: Counts::default(),
                have,
                more,
            }
        },
    )
}

fn commit() -> impl Strategy<Value = Packet> {
    let members = prop::collection::btree_map(node(), incarnation(), 1..20);
    let counts = (
        prop::option::of(0..MOST_ELECTORATES as u8),
        any::<u8>(),
        any::<bool>(),
    );
    let told = vec((old_ring(), counts), 0..20);
    let electorate = prop::collection::btree_set(node(), 1..9);
    let table = vec(electorate, 0..=MOST_ELECTORATES);
    let told = (told, table);
    (any::<u32>(), any::<u64>(), node(), 0..40_u64, members, told).prop_map(
        |(cluster, ring_seq, sender, hops, members, (told, table))| {
            let process = |(node, incarnation)| Process { node, incarnation };
            let members: Vec<_> = members.into_iter().map(process).collect();
            let told = told.into_iter().take(members.len());
            let told = told.map(|(old, (own, met, more))| OldRing {
                counts: Counts {
                    own: own.filter(|own| usize::from(*own) < table.len()),
                    met: (u16::from(met) & ((1 << table.len()) - 1)) as u8,
                    more,
                },
                ..old
            });
            let told = told.collect();
            let electorates = table.iter().map(|nodes| nodes.iter().copied().collect());
            let electorates = electorates.collect();
            let Process { node, incarnation } = members[0];
            let rep = node;
            let ring = RingId {
                ring_seq,
                rep,
                incarnation,
            };
            let token_seq = hops.min(2 * members.len() as u64);
            Packet::Commit(Commit {
                cluster,
                ring,
                sender,
                token_seq,
                members,
                electorates,
                told,
            })
        },
    )
}

fn presence() -> impl Strategy<Value = Packet> {
    (any::<u32>(), process(), ring()).prop_map(|(cluster, sender, ring)| {
        Packet::MergeDetect(MergeDetect {
            cluster,
            sender,
            ring,
        })
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    prop_oneof![data(), token(), hurry(), join(), commit(), presence()]
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
fn a_join_is_read_as_written() {
    same_when_read_back(join());
}

#[test]
fn a_commit_token_is_read_as_written() {
    same_when_read_back(commit());
}

#[test]
fn a_presence_is_read_as_written() {
    same_when_read_back(presence());
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
fn a_packet_leaves_as_much_room_for_a_seal_as_it_is_told() {
    let cases = (packet(), 0..=MAX_SEAL_BYTES);
    property::check(200, cases, |(packet, seal)| {
        let mut bytes = packet.encode_sealed(seal);
        let sealed_at = bytes.len() - seal;
        prop_assert!(bytes[sealed_at..].iter().all(|&byte| byte == 0));
        let plain = packet.encode();
        prop_assert_eq!(&bytes[..sealed_at], &plain[..plain.len() - SEAL_BYTES]);
        bytes[sealed_at..].fill(0xff);
        prop_assert_eq!(decode_sealed(bytes.clone().into(), seal), Ok(packet));
        let short = bytes[..seal.saturating_sub(1)].to_vec();
        prop_assert_eq!(decode_sealed(short.into(), seal), Err(DecodeError::Short));
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
        prop_assert_eq!(len, data.encoded_len(SEAL_BYTES));
        Ok(())
    });
}
