//! FastCast's datagrams: the reader reads all that the writer writes, and no bytes make it panic.

#[path = "../../core/tests/property/mod.rs"]
mod property;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::wire::{
    DecodeError, HEADER_BYTES, MAX_MEMBERS, SEAL_BYTES, is_for_data_path, push_whole, start_frame,
};
use rota_ring::wire::decode;
use rota_views::Load;
use rota_views::fastcast::{
    FastControl, FastData, FastHead, FastPacket, FastPlaces, FastRequest, FastRun,
};

fn node() -> impl Strategy<Value = NodeId> {
    (1..=u16::MAX).prop_map(|id| NodeId::new(id).expect("not 0"))
}

fn ring() -> impl Strategy<Value = RingId> {
    (any::<u64>(), node(), 0..=Incarnation::MAX).prop_map(|(ring_seq, rep, incarnation)| RingId {
        ring_seq,
        rep,
        incarnation: Incarnation(incarnation),
    })
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Own),
        Just(Load::Messages(Service::Reliable)),
        Just(Load::Messages(Service::Fifo)),
        Just(Load::Messages(Service::Causal)),
        Just(Load::Messages(Service::Agreed)),
        Just(Load::Messages(Service::Safe)),
    ]
}

fn frame(counter: u64, message: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, counter);
    push_whole(&mut bytes, message);
    Bytes::from(bytes)
}

fn data() -> impl Strategy<Value = FastPacket> {
    let names = (any::<u32>(), ring(), node(), 1..=u64::MAX, any::<u16>());
    let places = (1..u64::MAX - 70_000, 1..=u16::MAX);
    let places = prop::option::of(places.prop_map(|(first, count)| FastPlaces { first, count }));
    let contents = (load(), 1..u64::MAX, vec(any::<u8>(), 0..60), places);
    (names, contents).prop_map(|((cluster, ring, sender, number, following), contents)| {
        let (load, counter, message, places) = contents;
        let bytes = if load == Load::Own {
            Bytes::from(message)
        } else {
            frame(counter, &message)
        };
        let head = FastHead {
            cluster,
            ring,
            sender,
            number,
            following,
            load,
            places: places.filter(|_| load != Load::Own),
        };
        FastPacket::Data(FastData { head, bytes })
    })
}

fn runs(members: u16) -> impl Strategy<Value = Vec<FastRun>> {
    let run = (0..members, 1..=u16::MAX);
    vec(
        run.prop_map(|(sender, count)| FastRun { sender, count }),
        0..80,
    )
}

fn requests(members: u16) -> impl Strategy<Value = Vec<FastRequest>> {
    let of = prop::option::of(0..members);
    let request = (0..members, of, 1..u64::MAX / 2, 1..=u32::MAX);
    let request = request.prop_map(|(to, of, first, count)| FastRequest {
        to,
        of,
        first,
        count,
    });
    vec(request, 0..20)
}

fn control() -> impl Strategy<Value = FastPacket> {
    (1..=MAX_MEMBERS).prop_flat_map(|members| {
        let names = (any::<u32>(), ring(), node());
        let count = members as u16;
        let numbers = (any::<u64>(), any::<u64>(), any::<u128>(), 1..u64::MAX / 2);
        let each = (
            vec(any::<u64>(), members),
            prop::option::of(vec(any::<u64>(), members)),
        );
        (names, numbers, each, runs(count), requests(count)).prop_map(
            move |((cluster, ring, sender), numbers, (have, applied), runs, requests)| {
                let (one, other, ask, first) = numbers;
                FastPacket::Control(FastControl {
                    cluster,
                    ring,
                    sender,
                    acked: one.max(other),
                    delivered: one.min(other),
                    ask: ask & (u128::MAX >> (128 - members)),
                    have,
                    first,
                    runs,
                    requests,
                    applied: applied.unwrap_or_default(),
                })
            },
        )
    })
}

fn packet() -> impl Strategy<Value = FastPacket> {
    prop_oneof![data(), control()]
}

fn encode(packet: &FastPacket, seal_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let len = match packet {
        FastPacket::Data(FastData { head, bytes: load }) => {
            head.encode_into(load, &mut bytes, seal_bytes);
            head.encoded_len(load.len(), seal_bytes)
        }
        FastPacket::Control(control) => {
            control.encode_into(&mut bytes, seal_bytes);
            control.encoded_len(seal_bytes)
        }
    };
    assert_eq!(bytes.len(), len, "it is as long as it says");
    bytes
}

#[test]
fn what_is_written_is_read() {
    property::check(2_000, (packet(), 0..64_usize), |(packet, seal_bytes)| {
        let bytes = Bytes::from(encode(&packet, seal_bytes));
        prop_assert!(is_for_data_path(&bytes));
        prop_assert_eq!(FastPacket::decode(bytes, seal_bytes), Ok(packet));
        Ok(())
    });
}

#[test]
fn the_ring_does_not_take_it_for_its_own() {
    property::check(200, packet(), |packet| {
        let refused = decode(Bytes::from(encode(&packet, SEAL_BYTES)));
        prop_assert!(matches!(refused, Err(DecodeError::Kind(8..=11))));
        Ok(())
    });
}

#[test]
fn cut_off_anywhere_it_is_refused() {
    property::check(200, control(), |packet| {
        let bytes = encode(&packet, 0);
        for len in 0..bytes.len() {
            let cut = Bytes::copy_from_slice(&bytes[..len]);
            prop_assert!(FastPacket::decode(cut, 0).is_err());
        }
        let mut more = bytes;
        more.push(0);
        let longer = FastPacket::decode(Bytes::from(more), 0);
        prop_assert_eq!(longer, Err(DecodeError::Trailing));
        Ok(())
    });
}

#[test]
fn any_bytes_are_a_packet_or_an_error_and_a_packet_is_written_as_it_was_read() {
    let damage = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    property::check(4_000, (packet(), damage), |(packet, damage)| {
        let mut bytes = encode(&packet, SEAL_BYTES);
        for (at, value) in damage {
            // Most fields that contradict others lie behind the common header.
            let at = at.index(bytes.len() + HEADER_BYTES) % bytes.len();
            bytes[at] = value;
        }
        if let Ok(read) = FastPacket::decode(Bytes::from(bytes.clone()), SEAL_BYTES) {
            let again = encode(&read, SEAL_BYTES);
            prop_assert_eq!(FastPacket::decode(Bytes::from(again), SEAL_BYTES), Ok(read));
        }
        Ok(())
    });
    property::check(4_000, vec(any::<u8>(), 0..300), |mut bytes| {
        // The first bytes of a header, so that more than the version is looked at.
        for (at, value) in [rota_core::wire::VERSION, 9].into_iter().enumerate() {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let _ = FastPacket::decode(Bytes::from(bytes), SEAL_BYTES);
        Ok(())
    });
}

/// A control datagram of three members, with one field overwritten.
fn with(at: usize, bytes: &[u8]) -> Result<FastPacket, DecodeError> {
    let control = FastControl {
        cluster: 7,
        ring: RingId {
            ring_seq: 1,
            rep: NodeId::new(1).expect("not 0"),
            incarnation: Incarnation(1),
        },
        sender: NodeId::new(2).expect("not 0"),
        acked: 9,
        delivered: 8,
        ask: 0b110,
        have: vec![1, 2, 3],
        first: 5,
        runs: vec![FastRun {
            sender: 2,
            count: 4,
        }],
        requests: vec![FastRequest {
            to: 1,
            of: None,
            first: 2,
            count: 3,
        }],
        applied: Vec::new(),
    };
    let mut datagram = Vec::new();
    control.encode_into(&mut datagram, 0);
    datagram[at..at + bytes.len()].copy_from_slice(bytes);
    FastPacket::decode(Bytes::from(datagram), 0)
}

#[test]
fn what_contradicts_itself_is_refused() {
    const BODY: usize = HEADER_BYTES;
    const LISTS: usize = BODY + 39;
    assert!(with(BODY, &8_u64.to_le_bytes()).is_ok());
    let refused = |what: &str, at: usize, bytes: &[u8]| {
        let read = with(at, bytes);
        assert!(
            matches!(read, Err(DecodeError::Control(_))),
            "{what}: {read:?}"
        );
    };
    refused("delivered above acked", BODY, &10_u64.to_le_bytes());
    refused("somebody who is no member is asked", BODY + 8, &[0b1000]);
    refused("no members", BODY + 32, &[0, 0]);
    refused("too many members", BODY + 32, &[129, 0]);
    refused("flags that nobody knows", BODY + 38, &[2]);
    refused("places below 1", BODY + 24, &0_u64.to_le_bytes());
    refused("places without end", BODY + 24, &u64::MAX.to_le_bytes());
    refused("a place for no member", LISTS + 24, &[3, 0]);
    refused("a run of nothing", LISTS + 26, &[0, 0]);
    refused("a request to no member", LISTS + 28, &[3, 0]);
    refused("a request for packets of no member", LISTS + 30, &[3, 0]);
    refused("a request for nothing", LISTS + 40, &[0; 4]);
    refused("a request below 1", LISTS + 32, &[0; 8]);
    refused("a request without end", LISTS + 32, &[0xff; 8]);
}

#[test]
fn places_of_nothing_and_beyond_all_numbers_are_refused() {
    let read = |first, count| {
        let head = FastHead {
            cluster: 7,
            ring: RingId {
                ring_seq: 1,
                rep: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(1),
            },
            sender: NodeId::new(1).expect("not 0"),
            number: 3,
            following: 0,
            load: Load::Messages(Service::Safe),
            places: Some(FastPlaces { first, count }),
        };
        let mut bytes = Vec::new();
        head.encode_into(&frame(1, b"message"), &mut bytes, 0);
        FastPacket::decode(Bytes::from(bytes), 0)
    };
    assert!(read(5, 2).is_ok());
    for (first, count) in [(0, 2), (5, 0), (u64::MAX, 1), (u64::MAX - 3, 4)] {
        let refused = matches!(read(first, count), Err(DecodeError::Control(_)));
        assert!(refused, "{count} from {first}");
    }
    assert!(read(u64::MAX - 4, 4).is_ok());
}
