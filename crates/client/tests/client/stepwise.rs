//! A client in a loop of events: no call waits, and the descriptor says when to go on.

use std::os::fd::AsFd;
use std::sync::mpsc;

use rota_client::protocol::{Code, Reply, Request};
use rota_client::{Client, ConnectionLost, Event, Pending, RequestError, SendError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::peer::{CREDIT, Connection, House, PATIENCE, message, welcome};

/// The largest payload that the whole credit allows to `orders`.
const ALL: usize = CREDIT as usize - 17;

/// Waits for the descriptor, then reads once.
fn turn(client: &mut Client) {
    let timeout = Timespec::try_from(PATIENCE).expect("a short time");
    let mut interest = PollFlags::IN;
    interest.set(PollFlags::OUT, client.wants_write());
    let ready = {
        let mut fds = [PollFd::from_borrowed_fd(client.as_fd(), interest)];
        poll(&mut fds, Some(&timeout)).expect("it can be waited for")
    };
    assert!(ready > 0, "nothing came in time");
    let _ = client.try_flush();
    client.try_read();
}

fn until_done(client: &mut Client, pending: &Pending) -> Result<(), RequestError> {
    while !client.try_done(pending)? {
        turn(client);
    }
    Ok(())
}

#[test]
fn a_session_in_which_nothing_waits() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host(move |connection| {
        goes.recv().expect("the client has looked");
        connection.expect_join("orders");
        let send = connection.next_send();
        connection.tell(&[message(b"early"), message(&send.payload)]);
        let request = connection.next_number();
        let groups = Vec::new();
        connection.tell(&[Reply::Groups { request, groups }]);
        let request = connection.next_number();
        let members = vec!["#bob#n2".parse().expect("legal")];
        connection.tell(&[Reply::Members { request, members }]);
        let request = connection.next_number();
        let (code, text) = (Code::NotAllowed, String::new());
        connection.tell(&[Reply::Failed {
            request,
            code,
            text,
        }]);
        assert_eq!(connection.next(), Some(Request::Bye));
    });
    let mut client = house.client();
    let join = client.begin_join("orders").expect("a name");
    assert!(!client.try_done(&join).expect("it stands"));
    assert!(!client.try_read());
    go.send(()).expect("the peer waits");
    until_done(&mut client, &join).expect("joined");
    client.try_send("orders", b"hello").expect("credit");
    for expected in [&b"early"[..], b"hello"] {
        let event = loop {
            match client.next_read().expect("it stands") {
                Some(event) => break event,
                None => turn(&mut client),
            }
        };
        assert!(matches!(event, Event::Message(message) if message.payload == expected));
    }
    assert_eq!(client.unread(), 0);
    let pending = client.begin_groups().expect("asked");
    while client.try_groups(&pending).expect("it stands").is_none() {
        turn(&mut client);
    }
    let pending = client.begin_members("orders").expect("asked");
    let members = loop {
        match client.try_members(&pending).expect("it stands") {
            Some(members) => break members,
            None => turn(&mut client),
        }
    };
    assert_eq!(members[0].to_string(), "#bob#n2");
    let leave = client.begin_leave("orders").expect("asked");
    let failed = until_done(&mut client, &leave);
    assert!(matches!(failed, Err(RequestError::Failed { .. })));
    client.begin_close().expect("said");
    loop {
        match client.next_read() {
            Ok(_) => turn(&mut client),
            Err(ConnectionLost::Ended) => break,
            Err(other) => panic!("{other}"),
        }
    }
    peer.end();
}

#[test]
fn credit_comes_with_what_is_read_and_events_count_as_unread() {
    let house = House::new();
    let peer = house.host(|connection| {
        let bytes = connection.next_send().frame_bytes() as u32;
        connection.tell(&[message(&[0; 500]), Reply::Credit { bytes }]);
        assert_eq!(&connection.next_send().payload[..], b"next");
    });
    let mut client = house.client();
    client.try_send("orders", &[1; ALL]).expect("just enough");
    while let Err(error) = client.try_send("orders", b"next") {
        assert!(matches!(error, SendError::WouldBlock), "{error}");
        turn(&mut client);
    }
    assert!(client.unread() > 500);
    assert!(client.most_unread() >= 16 << 20);
    peer.end();
}

#[test]
fn a_socket_that_is_full_leaves_something_to_write() {
    const BYTES: usize = 16 << 20;
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.play(move |listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        connection.tell(&[welcome(64 << 20)]);
        goes.recv().expect("the client goes on");
        let mut bytes = 0;
        while bytes < BYTES {
            bytes += connection.next_send().payload.len();
        }
        connection.tell(&[message(b"all")]);
    });
    let mut client = house.client();
    let piece = vec![0; 4 << 10];
    for _ in 0..BYTES / piece.len() {
        client.try_send("orders", &piece).expect("credit");
    }
    assert!(client.wants_write());
    assert!(client.try_flush().expect("it stands"));
    go.send(()).expect("the peer waits");
    while client.next_read().expect("it stands").is_none() {
        turn(&mut client);
    }
    assert!(!client.wants_write());
    peer.end();
}

#[test]
fn an_answer_that_nobody_wants_is_dropped() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.expect_join("first");
        connection.expect_join("second");
    });
    let mut client = house.client();
    let first = client.begin_join("first").expect("asked");
    client.forget(first);
    let second = client.begin_join("second").expect("asked");
    until_done(&mut client, &second).expect("joined");
    let names = client.begin_join("no group");
    assert!(matches!(names, Err(RequestError::Name(_))));
    peer.end();
}

#[test]
fn flushing_tells_of_the_end_though_nobody_reads() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host_half(goes);
    let mut client = house.client();
    while matches!(client.try_flush(), Ok(false)) {
        client.try_feed("orders", &[0; 4000]).expect("credit");
    }
    // The end may have been read already, by nobody in particular.
    while client.next_read().is_ok() {
        turn_to_read(&mut client);
    }
    assert!(matches!(client.try_flush(), Err(ConnectionLost::Ended)));
    go.send(()).expect("the peer waits");
    peer.end();
}

fn turn_to_read(client: &mut Client) {
    let timeout = Timespec::try_from(PATIENCE).expect("a short time");
    let mut fds = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN)];
    assert!(poll(&mut fds, Some(&timeout)).expect("it can be waited for") > 0);
    client.try_read();
}
