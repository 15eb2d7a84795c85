//! Lost connections and their successors.

use std::time::Duration;

use rota_client::protocol::{Code, Reply};
use rota_client::{
    Backoff, Client, ConnectError, ConnectionLost, Event, Gap, Reconnecting, RequestError,
    SendError,
};

use crate::peer::{Connection, House, PATIENCE, message};

fn hasty() -> Backoff {
    Backoff {
        first: Duration::from_millis(2),
        longest: Duration::from_millis(20),
    }
}

fn connect(house: &House) -> Reconnecting {
    Reconnecting::connect(house.path(), Client::builder().name("alice"), hasty())
        .expect("it is let in")
}

fn gap(event: Event) -> Gap {
    match event {
        Event::Reconnected(gap) => gap,
        other => panic!("{other:?} is no gap"),
    }
}

#[test]
fn a_lost_connection_is_followed_by_a_gap_in_the_same_groups() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        first.expect_join("stock");
        first.next_send();
        first.tell(&[message(b"before")]);
        drop(first);
        let mut refused = Connection::accept(listener);
        refused.hello();
        let (code, text) = (Code::NameInUse, String::new());
        refused.tell(&[Reply::Refused { code, text }]);
        drop(refused);
        let mut second = Connection::welcomed(listener);
        second.expect_join("orders");
        let request = second.next_number();
        let (code, text) = (Code::Quota, String::new());
        second.tell(&[
            message(b"after"),
            Reply::Failed {
                request,
                code,
                text,
            },
        ]);
        second.until_gone();
    });
    let mut client = connect(&house);
    client.join("orders").expect("done");
    client.join("stock").expect("done");
    client.send("orders", b"lost").expect("sent");
    assert!(matches!(client.recv(), Ok(Event::Message(m)) if &m.payload[..] == b"before"));
    let gap = gap(client.recv().expect("again"));
    assert!(
        matches!(gap.lost, ConnectionLost::Ended | ConnectionLost::Io(_)),
        "{:?}",
        gap.lost
    );
    assert_eq!(gap.unsettled_bytes, 17 + 4);
    assert_eq!(gap.name.to_string(), "#alice#n1");
    assert_eq!(gap.not_joined[0].0.as_str(), "stock");
    assert!(matches!(
        gap.not_joined[0].1,
        RequestError::Failed {
            code: Code::Quota,
            ..
        }
    ));
    assert!(matches!(client.recv(), Ok(Event::Message(m)) if &m.payload[..] == b"after"));
    drop(client);
    peer.end();
}

#[test]
fn a_join_without_an_answer_is_no_refusal() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        // Of this join nobody hears in time.
        first.next_number();
        drop(first);
        let mut late = Connection::welcomed(listener);
        late.expect_join("orders");
        late.next_number();
        late.until_gone();
        let mut last = Connection::welcomed(listener);
        last.expect_join("orders");
        last.expect_join("stock");
        last.until_gone();
    });
    let hurried = Client::builder().timeout(Duration::from_secs(1));
    let mut client = Reconnecting::connect(house.path(), hurried, hasty()).expect("it is let in");
    client.join("orders").expect("done");
    let late = client.join("stock").expect_err("no answer");
    assert!(matches!(
        late,
        RequestError::TimedOut | RequestError::Lost(_)
    ));
    let gap = gap(client.recv().expect("again"));
    assert!(gap.not_joined.is_empty(), "{:?}", gap.not_joined);
    drop(client);
    peer.end();
}

/// A busy group that sends while the client joins the others again is no reason to begin once more: it would never end.
#[test]
fn what_comes_while_groups_are_joined_again_waits() {
    const COUNT: usize = 20;
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        first.expect_join("stock");
        drop(first);
        let mut second = Connection::welcomed(listener);
        second.expect_join("orders");
        second.tell(&vec![message(&[7; 1000]); COUNT]);
        second.expect_join("stock");
        second.until_gone();
    });
    let small = Client::builder().unread_bytes(1000);
    let mut client = Reconnecting::connect(house.path(), small, hasty()).expect("it is let in");
    client.join("orders").expect("done");
    client.join("stock").expect("done");
    let gap = gap(client.recv().expect("again"));
    assert!(gap.not_joined.is_empty(), "{:?}", gap.not_joined);
    for _ in 0..COUNT {
        assert!(matches!(client.recv(), Ok(Event::Message(m)) if m.payload.len() == 1000));
    }
    drop(client);
    peer.end();
}

#[test]
fn nothing_is_sent_before_the_gap_was_seen() {
    let house = House::new();
    let peer = house.play(|listener| {
        drop(Connection::welcomed(listener));
        let mut second = Connection::welcomed(listener);
        assert_eq!(&second.next_send().payload[..], b"after");
    });
    let mut client = connect(&house);
    let lost = loop {
        match client.send("orders", b"before") {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(lost, SendError::Lost(_)));
    assert!(matches!(
        client.send("orders", b"too early"),
        Err(SendError::Lost(_))
    ));
    gap(client.recv().expect("again"));
    client.send("orders", b"after").expect("it stands");
    peer.end();
}

#[test]
fn a_group_that_was_left_is_not_joined_again() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        let request = first.next_number();
        first.tell(&[Reply::Done { request }]);
        drop(first);
        let mut second = Connection::welcomed(listener);
        assert_eq!(second.next(), None);
    });
    let mut client = connect(&house);
    client.join("orders").expect("done");
    client.leave("orders").expect("done");
    gap(client.recv().expect("again"));
    drop(client);
    peer.end();
}

#[test]
fn a_daemon_that_comes_back_is_found() {
    let house = House::new();
    let peer = house.play(|listener| drop(Connection::welcomed(listener)));
    let mut client = connect(&house);
    peer.end();
    std::fs::remove_file(house.path()).expect("it was there");
    let wait = Duration::from_millis(60);
    assert!(client.recv_timeout(wait).expect("may pass").is_none());
    assert!(client.client().is_none());
    let peer = house.play(|listener| Connection::welcomed(listener).until_gone());
    let event = client.recv_timeout(PATIENCE).expect("may pass");
    gap(event.expect("a gap"));
    assert!(client.client().is_some());
    drop(client);
    peer.end();
}

#[test]
fn a_refusal_that_will_stay_ends_the_attempts() {
    let house = House::new();
    let peer = house.play(|listener| {
        drop(Connection::welcomed(listener));
        for _ in 0..2 {
            let mut refused = Connection::accept(listener);
            refused.hello();
            let (code, text) = (Code::NotAllowed, String::new());
            refused.tell(&[Reply::Refused { code, text }]);
        }
    });
    let mut client = connect(&house);
    for _ in 0..2 {
        let error = client.recv().expect_err("not allowed");
        assert!(matches!(
            error,
            ConnectError::Refused {
                code: Code::NotAllowed,
                ..
            }
        ));
    }
    peer.end();
}
