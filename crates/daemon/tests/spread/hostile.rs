//! Bytes no client should send: nothing panics, and memory grows only with received bytes.

use proptest::prelude::*;
use rota_daemon::spread::{ByteOrder, Event, Session, SessionError};

use crate::support::{
    AGREED, DISCONNECT, Frame, JOIN, LEAVE, ORDERS, choice, hello, new_session, open, private,
};

/// A whole session with everything a client can say.
pub fn stream(order: ByteOrder) -> Vec<u8> {
    [
        hello("alice"),
        choice(&["NULL"]),
        Frame::new(order, JOIN, &["grp"], b"").bytes(),
        Frame::new(order, AGREED | 0x40, &["grp", "#bob#n1"], b"hello").bytes(),
        Frame::new(order, AGREED, &["grp"], &[7; 300]).bytes(),
        Frame::new(order, LEAVE, &["grp"], b"").bytes(),
        Frame::new(order, DISCONNECT, &["#alice#n1"], b"").bytes(),
    ]
    .concat()
}

/// Gives a session these pieces one after another, as a daemon that accepts everybody, and checks
/// after each that no more memory is held than may be.
pub fn drive<'a>(
    session: &mut Session,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Event>, SessionError> {
    let mut events = Vec::new();
    let mut arrived = 0;
    for piece in pieces {
        arrived += piece.len();
        let mut input = piece;
        loop {
            let left = input.len();
            let event = session.pull(&mut input)?;
            assert!(session.buffered() <= (2 * arrived).min(144_000));
            let nothing = event.is_none();
            if let Some(Event::Connect(connect)) = &event {
                let name = connect.name.unwrap_or(private("r1-1"));
                session.accept(name).expect("it waits for this");
            }
            events.extend(event);
            if nothing {
                assert!(input.is_empty(), "{left} bytes are stuck");
                break;
            }
        }
    }
    Ok(events)
}

#[test]
fn every_beginning_of_a_stream_waits_for_more() {
    for order in ORDERS {
        let stream = stream(order);
        let mut before = 0;
        for end in 0..stream.len() {
            let mut session = new_session();
            let events = drive(&mut session, [&stream[..end]]).expect("nothing wrong so far");
            assert!(events.len() <= 5 && events.len() >= before && !session.is_ended());
            before = events.len();
        }
        let mut session = new_session();
        let events = drive(&mut session, [&stream[..]]).expect("a good stream");
        assert_eq!(events.len(), 6);
        assert!(session.is_ended() && session.buffered() == 0);
    }
}

#[test]
fn every_flipped_bit_gives_an_event_an_error_or_a_wait() {
    for order in ORDERS {
        let stream = stream(order);
        for bit in 0..stream.len() * 8 {
            let mut flipped = stream.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut session = new_session();
            let ended = drive(&mut session, [&flipped[..]]).is_err();
            assert!(!ended || (session.is_ended() && session.buffered() == 0));
        }
    }
}

#[test]
fn a_claim_of_much_data_takes_no_memory() {
    let header = Frame::new(ByteOrder::Little, AGREED, &[], b"").header(100, 140_000);
    let mut session = open(ByteOrder::Little);
    assert_eq!(session.pull(&mut &header[..]), Ok(None));
    assert!(session.buffered() <= 96);
    assert_eq!(session.pull(&mut &[0; 1000][..]), Ok(None));
    assert!(session.buffered() <= 2 * 1048);
}

#[test]
fn after_an_error_nothing_is_kept_and_nothing_is_read() {
    let mut session = open(ByteOrder::Little);
    let bad = Frame::new(ByteOrder::Little, 0, &["grp"], b"").bytes();
    assert!(session.pull(&mut &bad[..]).is_err());
    let mut good = &stream(ByteOrder::Little)[..];
    assert_eq!(session.pull(&mut good), Ok(None));
    assert!(good.is_empty() && session.is_ended() && session.buffered() == 0);
    assert_eq!(session.backlog(), 0, "a broken session is told nothing");
}

proptest! {
    #[test]
    fn any_bytes_at_all_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        opened in any::<bool>(),
    ) {
        let mut session = if opened { open(ByteOrder::Big) } else { new_session() };
        let _ = drive(&mut session, [&bytes[..]]);
    }

    #[test]
    fn headers_that_are_nearly_right_are_survived(
        bits in any::<u32>(),
        groups in prop_oneof![0..102_u32, any::<u32>()],
        data in prop_oneof![0..300_u32, 143_000..145_000_u32, any::<u32>()],
        rest in proptest::collection::vec(any::<u8>(), 0..4_000),
        big in any::<bool>(),
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let frame = Frame::new(order, bits & 0x4f_3f7f, &[], b"");
        let bytes = [frame.header(groups, data), rest].concat();
        let _ = drive(&mut open(ByteOrder::Little), [&bytes[..]]);
    }
}
