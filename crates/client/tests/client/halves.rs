//! A sender and a receiver in two threads.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rota_client::protocol::{Reply, Request};
use rota_client::{ConnectionLost, Event, RequestError, SendError};

use crate::peer::{CREDIT, Connection, House, PATIENCE, message};

/// Gives back what messages cost, and echoes them, until the client has gone.
fn echo(connection: &mut Connection) {
    while let Some(request) = connection.next() {
        match request {
            Request::Send(send) => {
                let bytes = send.frame_bytes() as u32;
                connection.tell(&[message(&send.payload), Reply::Credit { bytes }]);
            }
            Request::Join { request, .. } => connection.tell(&[Reply::Done { request }]),
            Request::List { request, .. } => {
                let groups = Vec::new();
                connection.tell(&[Reply::Groups { request, groups }]);
            }
            Request::Bye => return,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_sender_gets_credit_and_answers_from_its_receiver() {
    const MESSAGES: u32 = 2000;
    let house = House::new();
    let peer = house.host(echo);
    let (mut sender, mut receiver) = house.client().split();
    let taking = thread::spawn(move || {
        let mut next = 0_u32;
        loop {
            match receiver.recv() {
                Ok(Event::Message(message)) => {
                    assert_eq!(message.payload[..4], next.to_le_bytes());
                    next += 1;
                }
                Ok(other) => panic!("{other:?}"),
                Err(lost) => return (next, lost),
            }
        }
    });
    sender.join("orders").expect("done");
    for index in 0..MESSAGES {
        let payload = [&index.to_le_bytes()[..], &[0; 200]].concat();
        sender.send("orders", &payload).expect("credit comes back");
    }
    assert!(sender.groups().expect("listed").is_empty());
    sender.close().expect("it is said");
    let (taken, lost) = taking.join().expect("no failure");
    assert_eq!(taken, MESSAGES);
    assert!(matches!(lost, ConnectionLost::Ended), "{lost}");
    peer.end();
}

#[test]
fn a_sender_that_waits_is_told_when_the_receiver_has_gone() {
    let house = House::new();
    let peer = house.host(Connection::until_gone);
    let (mut sender, receiver) = house.client().split();
    let leaving = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        drop(receiver);
    });
    sender.send("orders", &[0; CREDIT as usize]).expect("alone");
    let sent = sender.send("orders", b"no credit");
    assert!(matches!(sent, Err(SendError::Lost(_))));
    assert!(matches!(sender.join("orders"), Err(RequestError::Lost(_))));
    leaving.join().expect("no failure");
    peer.end();
}

#[test]
fn a_receiver_goes_on_when_the_sender_has_gone() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.next_send();
        connection.tell(&[message(b"one")]);
    });
    let (mut sender, mut receiver) = house.client().split();
    sender
        .feed("orders", b"written when dropped")
        .expect("credit");
    drop(sender);
    assert!(matches!(receiver.recv(), Ok(Event::Message(_))));
    peer.end();
}

#[test]
fn a_sender_that_waits_for_room_is_told_of_the_end_that_the_receiver_reads() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host_half(goes);
    let (mut sender, mut receiver) = house.client().split();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        loop {
            if let Err(error) = sender.send("orders", &[0; 4000]) {
                return tell.send(error);
            }
        }
    });
    // It has no room by then.
    thread::sleep(Duration::from_millis(100));
    assert!(matches!(receiver.recv(), Err(ConnectionLost::Ended)));
    let lost = told.recv_timeout(PATIENCE).expect("it does not hang");
    assert!(matches!(lost, SendError::Lost(ConnectionLost::Ended)));
    go.send(()).expect("the peer waits");
    peer.end();
}
