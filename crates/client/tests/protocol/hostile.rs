//! Any bytes give frames, a number of bytes to wait for, or an error; and memory grows only with received bytes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_client::protocol::{
    Cause, Code, DecodeError, Decoded, EncodeError, Frame, Inbox, MAX_REPLY_BYTES, Reply, Request,
    Send, View, request_limit,
};
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::groups::{GroupName, Limits, NameError, ViewId};

use crate::any::{reply, request};
use crate::round_trip::in_pieces;

const LIMIT: usize = 4096;

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], body].concat()
}

fn request_of(body: &[u8]) -> Result<Decoded<Request>, DecodeError> {
    Request::decode(&framed(body).into(), LIMIT)
}

fn reply_of(body: &[u8]) -> Result<Decoded<Reply>, DecodeError> {
    Reply::decode(&framed(body).into(), LIMIT)
}

#[test]
fn a_length_is_judged_before_anything_follows() {
    for length in [0, LIMIT as u32 + 1, u32::MAX] {
        let bytes = Bytes::copy_from_slice(&length.to_le_bytes());
        let limit = LIMIT;
        let wrong = Err(DecodeError::Length { length, limit });
        assert_eq!(Request::decode(&bytes, limit), wrong);
    }
    let most = Bytes::copy_from_slice(&(LIMIT as u32).to_le_bytes());
    assert_eq!(Request::decode(&most, LIMIT), Ok(Decoded::Needs(LIMIT + 4)));
    assert_eq!(
        Request::decode(&most.slice(..3), LIMIT),
        Ok(Decoded::Needs(5))
    );
}

#[test]
fn a_kind_is_judged_before_its_body_comes() {
    for kind in [0, 7, 0x80, 0x81, 0xff] {
        let head = Bytes::copy_from_slice(&[100, 0, 0, 0, kind]);
        assert_eq!(Request::decode(&head, LIMIT), Err(DecodeError::Kind(kind)));
    }
    for kind in [0, 1, 6, 0x80, 0x92] {
        let head = Bytes::copy_from_slice(&[100, 0, 0, 0, kind]);
        assert_eq!(Reply::decode(&head, LIMIT), Err(DecodeError::Kind(kind)));
    }
}

#[test]
fn requests_that_are_none() {
    let cases: &[(&[u8], DecodeError)] = &[
        (b"\x01ROTB\x01\0\x01\0\0\0", DecodeError::Magic),
        (b"\x01ROTA\0\0\x01\0\0\0", DecodeError::Versions),
        (b"\x01ROTA\x02\0\x01\0\0\0", DecodeError::Versions),
        (b"\x01ROTA\x01\0\x01\0\0\x02a", DecodeError::Short),
        (
            b"\x01ROTA\x01\0\x01\0\0\x01#",
            DecodeError::Name(NameError::Character),
        ),
        (b"\x02\0\0\0\0\0", DecodeError::Name(NameError::Empty)),
        (b"\x02\0\0\0\0\x01gh", DecodeError::Trailing(1)),
        (b"\x04\0\0\0\0\x01\x01g", DecodeError::Service(0)),
        (b"\x04\x06\0\0\0\x01\x01g", DecodeError::Service(6)),
        (b"\x04\x01\x02\0\0\x01\x01g", DecodeError::Flags(2)),
        (b"\x04\x01\0\0\0\0", DecodeError::Destinations(0)),
        (b"\x04\x01\0\0\0\x65", DecodeError::Destinations(101)),
        (
            b"\x04\x01\0\0\0\x01\x03#ab",
            DecodeError::Name(NameError::Private),
        ),
        (b"\x06\0", DecodeError::Trailing(1)),
    ];
    for (body, error) in cases {
        assert_eq!(request_of(body), Err(*error), "{}", body.escape_ascii());
    }
}

/// A view of group `g` after its id.
fn view_of(rest: &[u8]) -> Result<Decoded<Reply>, DecodeError> {
    let id = b"\x09\0\0\0\0\0\0\0\x03\0\x02\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0";
    reply_of(&[b"\x86\x01g", &id[..], rest].concat())
}

#[test]
fn views_that_are_none() {
    let cases: &[(&[u8], DecodeError)] = &[
        (
            b"\x05\0\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0",
            DecodeError::Cause(5),
        ),
        (
            b"\x01\0\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0",
            DecodeError::Changed,
        ),
        (
            b"\x04\x04#a#b\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0",
            DecodeError::Changed,
        ),
        // No set at all, an empty one, a member twice, and one that there is not.
        (
            b"\x04\0\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0",
            DecodeError::Sets,
        ),
        (
            b"\x04\0\x01\0\0\0\x04#a#b\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            DecodeError::Sets,
        ),
        (
            b"\x04\0\x02\0\0\0\x04#a#b\x04#c#d\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            DecodeError::Sets,
        ),
        (
            b"\x04\0\x01\0\0\0\x04#a#b\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0",
            DecodeError::Sets,
        ),
        (
            b"\x03\x04#c#d\x01\0\0\0\x04#a#b\0\0\0\0\x01\0\0\0",
            DecodeError::OwnIndex(1),
        ),
        (b"\x01\x04#a#b\xff\xff\xff\xff\x04#a#b", DecodeError::Short),
    ];
    for (body, error) in cases {
        assert_eq!(view_of(body), Err(*error), "{}", body.escape_ascii());
    }
    let sets_with_a_join = b"\x01\x04#a#b\x01\0\0\0\x04#a#b\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(view_of(sets_with_a_join), Err(DecodeError::Sets));
}

#[test]
fn replies_that_are_none() {
    assert_eq!(reply_of(b"\x82\x01\0\x01\xff"), Err(DecodeError::Text));
    assert_eq!(reply_of(b"\x83\x01\0\0"), Err(DecodeError::Short));
    assert_eq!(reply_of(b"\x83\x01\0\0\0\0"), Err(DecodeError::Trailing(1)));
    assert_eq!(
        reply_of(b"\x87\x01g\x09\0\0\0\0\0\0\0\0\0"),
        Err(DecodeError::Node)
    );
}

#[test]
fn a_client_skips_no_more_groups_than_a_daemon_has_memberships() {
    let most = Limits::default().memberships;
    for count in [most, most + 1] {
        let mut body = vec![0x8f];
        body.extend([0; 16]);
        body.extend((count as u32).to_le_bytes());
        body.extend(b"\x01g".repeat(count));
        let reply = Reply::decode(&framed(&body).into(), MAX_REPLY_BYTES);
        if count > most {
            assert_eq!(reply, Err(DecodeError::Groups(count as u32)));
            continue;
        }
        match reply {
            Ok(Decoded::Frame(Reply::Skipped { groups, .. }, _)) => assert_eq!(groups.len(), most),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn after_an_error_there_is_nothing_but_the_error() {
    let mut inbox = Inbox::<Request>::new(LIMIT);
    inbox.feed(&framed(b"\x06"));
    inbox.feed(&framed(b"\x09"));
    inbox.feed(&framed(b"\x06"));
    assert_eq!(inbox.pull(), Ok(Some(Request::Bye)));
    assert_eq!(inbox.pull(), Err(DecodeError::Kind(9)));
    inbox.feed(&framed(b"\x06"));
    assert_eq!(inbox.pull(), Err(DecodeError::Kind(9)));
    assert_eq!(inbox.buffered(), 0);
}

#[test]
fn clients_are_told_of_their_errors_by_code() {
    let limit = LIMIT;
    let too_large = DecodeError::Length {
        length: 5000,
        limit,
    };
    assert_eq!(too_large.code(), Code::TooLarge);
    let name = DecodeError::Name(NameError::Empty);
    assert_eq!(name.code(), Code::IllegalName);
    assert_eq!(DecodeError::Short.code(), Code::ProtocolError);
    for number in 0..=u16::MAX {
        assert_eq!(Code::from_number(number).number(), number);
    }
}

fn view() -> View {
    View {
        group: GroupName::new("g").expect("legal"),
        id: ViewId {
            ring: RingId {
                ring_seq: 1,
                rep: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(1),
            },
            next: None,
            index: 1,
        },
        cause: Cause::Network(vec![vec![0]]),
        members: vec!["#a#b".parse().expect("legal")],
        own: 0,
    }
}

#[test]
fn what_cannot_be_written_leaves_the_buffer_alone() {
    let send = |count| {
        Request::Send(Send {
            service: Service::Agreed,
            self_discard: false,
            kind: 0,
            to: vec!["g".parse().expect("legal"); count],
            payload: Bytes::new(),
        })
    };
    let mut out = b"before".to_vec();
    for count in [0, 101] {
        let written = send(count).encode(&mut out);
        assert_eq!(written, Err(EncodeError::Destinations));
    }
    let cases = [
        (View { own: 1, ..view() }, EncodeError::OwnIndex),
        (
            View {
                cause: Cause::Network(vec![]),
                ..view()
            },
            EncodeError::Sets,
        ),
    ];
    for (view, error) in cases {
        assert_eq!(Reply::View(Box::new(view)).encode(&mut out), Err(error));
    }
    assert_eq!(out, b"before");
    Reply::View(Box::new(view()))
        .encode(&mut out)
        .expect("a good one");
}

/// Feeds a stream and checks after each piece how much is held. Gives how many bytes were fed.
fn memory_stays_with<T: Frame>(bytes: &[u8], size: usize, limit: usize) {
    let mut inbox = Inbox::<T>::new(limit);
    let mut arrived = 0;
    for piece in bytes.chunks(size) {
        inbox.feed(piece);
        arrived += piece.len();
        assert!(
            inbox.buffered() <= 2 * arrived.max(64),
            "more than has arrived"
        );
        while let Ok(Some(_)) = inbox.pull() {}
    }
}

#[test]
fn an_announced_giant_takes_no_memory() {
    let head = [0, 0, 0, 1, 0x86, 1, b'g'];
    let bytes = [&head[..], &[1; 5000]].concat();
    memory_stays_with::<Reply>(&bytes, 100, MAX_REPLY_BYTES.max(1 << 24));
}

#[test]
fn an_inbox_gives_the_room_of_a_large_frame_back() {
    let mut inbox = Inbox::<Request>::new(request_limit(1 << 20));
    let send = [b"\x04\x01\0\0\0\x01\x01g".to_vec(), vec![0; 1 << 20]].concat();
    inbox.feed(&framed(&send));
    assert!(inbox.buffered() > 1 << 20);
    assert!(matches!(inbox.pull(), Ok(Some(Request::Send(_)))));
    assert!(inbox.buffered() <= 64 << 10);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(
        bytes in vec(any::<u8>(), 0..400),
        size in 1..50_usize,
    ) {
        let _ = in_pieces::<Request>(&bytes, &[size], LIMIT);
        let _ = in_pieces::<Reply>(&bytes, &[size], LIMIT);
        memory_stays_with::<Request>(&bytes, size, LIMIT);
        memory_stays_with::<Reply>(&bytes, size, LIMIT);
    }

    #[test]
    fn any_body_of_any_kind_is_read_without_harm(
        kind in prop_oneof![0..8_u8, 0x80..0x92_u8],
        body in vec(prop_oneof![0..6_u8, any::<u8>()], 0..200),
    ) {
        let body = [&[kind], &body[..]].concat();
        let _ = request_of(&body);
        let _ = reply_of(&body);
    }

    #[test]
    fn a_frame_with_a_flipped_bit_is_a_frame_or_an_error(
        request in request(),
        reply in reply(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut out = Vec::new();
        request.encode(&mut out).expect("it fits");
        let place = at.index(out.len());
        out[place] ^= 1_u8 << bit;
        let _ = in_pieces::<Request>(&out, &[usize::MAX], LIMIT);
        out.clear();
        reply.encode(&mut out).expect("it fits");
        let place = at.index(out.len());
        out[place] ^= 1_u8 << bit;
        let _ = in_pieces::<Reply>(&out, &[usize::MAX], LIMIT);
    }

    #[test]
    fn a_frame_that_is_cut_short_is_waited_for(reply in reply(), at in any::<prop::sample::Index>()) {
        let mut out = Vec::new();
        reply.encode(&mut out).expect("it fits");
        let bytes = Bytes::from(out);
        let cut = bytes.slice(..at.index(bytes.len()));
        let needs = if cut.len() < 4 { 5 } else { bytes.len() };
        prop_assert_eq!(Reply::decode(&cut, MAX_REPLY_BYTES), Ok(Decoded::Needs(needs)));
    }
}
