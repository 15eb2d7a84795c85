//! Faults of Spread 5.0.1 in the reading of clients' bytes. None of them may occur here.

use rota_daemon::spread::{
    ByteOrder, Event, Message, Outgoing, Request, RequestError, SessionError,
};

use crate::client::receive;
use crate::support::{
    AGREED, Frame, ORDERS, choice, hello, name, new_session, open, private, request_in, written,
};

/// The message as a receiver gets it.
fn delivered(frame: &Frame) -> crate::client::Received {
    let Ok(Request::Multicast(multicast)) = request_in(&frame.bytes()) else {
        panic!("a good message");
    };
    let mut session = open(ByteOrder::Little);
    let message = Message {
        sender: name("#alice#n1"),
        service: multicast.service,
        self_discard: multicast.self_discard,
        groups: multicast.groups,
        hint: multicast.hint,
        data: multicast.data,
    };
    assert_eq!(session.send(&Outgoing::Message(message)), Ok(true));
    let bytes = written(&mut session);
    receive(&mut &bytes[..])
}

#[test]
fn messages_that_killed_the_daemon_by_their_length_are_delivered() {
    // 143 120 bytes to one group were fine, one more tripped an assertion, 143 920 are the limit.
    for length in [143_120, 143_121, 143_920] {
        for order in ORDERS {
            let frame = Frame::new(order, AGREED, &["grp"], &vec![b'x'; length]);
            assert_eq!(delivered(&frame).data.len(), length);
        }
    }
    let frame = Frame::new(ByteOrder::Little, AGREED, &["grp"], &vec![b'x'; 143_921]);
    let error = SessionError::Request(RequestError::Length(143_921));
    assert_eq!(request_in(&frame.bytes()), Err(error));
}

#[test]
fn the_message_that_killed_all_daemons_ends_its_own_session() {
    for order in ORDERS {
        for kind in [AGREED, 0x1, 0x1_0000] {
            let frame = Frame::new(order, 0x8_0000 | kind, &["grp"], b"x");
            let error = RequestError::DaemonsOnly(0x8_0000 | kind);
            assert_eq!(
                request_in(&frame.bytes()),
                Err(SessionError::Request(error))
            );
        }
    }
}

#[test]
fn messages_to_44_groups_and_more_are_delivered() {
    for count in [43, 44, 100] {
        let groups: Vec<String> = (0..count).map(|at| format!("group-{at}")).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let received = delivered(&Frame::new(ByteOrder::Big, AGREED, &groups, b"x"));
        assert_eq!(received.groups.len(), count);
        assert_eq!(received.groups[count - 1], groups[count - 1].as_bytes());
    }
}

#[test]
fn a_client_cannot_forge_what_only_daemons_say() {
    let harmless: u32 = !(0x8000_0080 | 0x7f | 0xf_0000);
    for bit in (0..32).map(|at| 1 << at).filter(|bit| harmless & bit != 0) {
        for order in ORDERS {
            let received = delivered(&Frame::new(order, AGREED | bit, &["grp"], b"x"));
            assert_eq!(received.bits, AGREED, "bit {bit:#x} was forwarded");
        }
    }
}

#[test]
fn a_message_marked_as_rejected_has_no_hole_behind_its_header() {
    let received = delivered(&Frame::new(ByteOrder::Little, 0x40_0010, &["grp"], b"x"));
    assert_eq!((received.old_bits, received.groups.len()), (None, 1));
    assert_eq!(received.data, b"x");
}

#[test]
fn a_silent_client_keeps_nobody_from_connecting() {
    let mut silent = new_session();
    assert_eq!(silent.pull(&mut &hello("slow")[..3]), Ok(None));
    let bytes = [hello("alice"), choice(&["NULL"])].concat();
    let event = new_session().pull(&mut &bytes[..]);
    assert!(matches!(event, Ok(Some(Event::Connect(_)))));
    assert!(!silent.is_open() && !silent.is_ended(), "it may go on");
    assert_eq!(silent.pull(&mut &hello("slow")[3..]), Ok(None));
    assert_eq!(written(&mut silent), b"\x05NULL ");
}

#[test]
fn a_handshake_in_pieces_is_a_handshake() {
    let bytes = [hello("alice"), choice(&["NULL"])].concat();
    for first in 1..bytes.len() {
        let mut session = new_session();
        assert_eq!(session.pull(&mut &bytes[..first]), Ok(None));
        let event = session.pull(&mut &bytes[first..]);
        assert!(
            matches!(event, Ok(Some(Event::Connect(_)))),
            "cut at {first}"
        );
        assert!(session.accept(private("alice")).is_ok());
    }
}
