//! A client of Spread's protocol may send any bytes, in any pieces: the session gives events or an
//! error, the pieces make no difference, memory stays with what has arrived, and what was read can be
//! told to another client.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rota_daemon::spread::{
    Event, Message, Multicast, Outgoing, PrivateName, Request, Session, SessionError, Settings,
};

/// Brings a session to where requests are read.
const GREETING: &[u8] = b"\x05\x00\x01\x01\x05alice";

fuzz_target!(|data: &[u8]| {
    let Some((&control, bytes)) = data.split_first() else {
        return;
    };
    // Half of the runs begin after a handshake, or few would ever get there.
    let opened = control & 1 == 1;
    let at_once = run(opened, bytes, usize::MAX);
    let in_pieces = run(opened, bytes, usize::from(control >> 1) + 1);
    assert_eq!(at_once, in_pieces, "the pieces made a difference");
});

fn run(opened: bool, bytes: &[u8], size: usize) -> (Vec<Event>, Option<SessionError>) {
    let settings = Settings::new(b"n1").expect("a legal name");
    let mut session = Session::new(Arc::new(settings));
    let mut events = Vec::new();
    if opened {
        let choice = [&b"NULL"[..], &[0; 86]].concat();
        for part in [GREETING, &choice] {
            feed(&mut session, part, &mut events).expect("a good handshake");
        }
    }
    let mut arrived = 0;
    for piece in bytes.chunks(size) {
        arrived += piece.len();
        if let Err(error) = feed(&mut session, piece, &mut events) {
            assert!(session.is_ended());
            return (events, Some(error));
        }
        assert!(
            session.buffered() <= (2 * arrived).min(144_000),
            "more than has arrived"
        );
    }
    (events, None)
}

fn feed(
    session: &mut Session,
    mut input: &[u8],
    events: &mut Vec<Event>,
) -> Result<(), SessionError> {
    while let Some(event) = session.pull(&mut input)? {
        match &event {
            Event::Connect(connect) => {
                let invented = PrivateName::new(b"r1-1").expect("a legal name");
                session
                    .accept(connect.name.unwrap_or(invented))
                    .expect("it waits");
            }
            Event::Request(Request::Multicast(multicast)) => tell(session, multicast),
            Event::Request(_) => {}
        }
        events.push(event);
    }
    assert!(input.is_empty(), "bytes are stuck");
    Ok(())
}

fn tell(session: &mut Session, multicast: &Multicast) {
    let before = session.backlog();
    let message = Message {
        sender: *session.name().expect("it is open"),
        service: multicast.service,
        self_discard: multicast.self_discard,
        groups: multicast.groups.clone(),
        hint: multicast.hint,
        data: multicast.data.clone(),
    };
    let length = 48 + 32 * message.groups.len() + message.data.len();
    session
        .send(&Outgoing::Message(message))
        .expect("as long as it came");
    assert_eq!(session.backlog() - before, length);
    session.sent(session.backlog());
}
