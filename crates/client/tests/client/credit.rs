//! The bytes that a client sends by its credit, and the waits and errors without credit.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rota_client::protocol::Reply;
use rota_client::{AsyncClient, Client, Envelope, Event, SendError, Service};

use crate::peer::{CREDIT, Connection, House, LARGEST, message};

/// A frame to `orders` is larger by that much than its payload.
const HEAD: usize = 17;

/// The largest payload that the whole credit allows.
const ALL: usize = CREDIT as usize - HEAD;

fn credit(bytes: usize) -> Reply {
    let bytes = bytes.try_into().expect("a small number");
    Reply::Credit { bytes }
}

#[test]
fn sending_waits_for_credit_and_events_are_kept_meanwhile() {
    let house = House::new();
    let peer = house.host(|connection| {
        let first = connection.next_send();
        assert_eq!(first.payload.len(), ALL);
        connection.tell(&[message(b"kept")]);
        thread::sleep(Duration::from_millis(20));
        connection.tell(&[credit(first.frame_bytes())]);
        assert_eq!(&connection.next_send().payload[..], b"next");
    });
    let mut client = house.client();
    client.send("orders", &[1; ALL]).expect("just enough");
    assert!(matches!(
        client.try_send("orders", b""),
        Err(SendError::WouldBlock)
    ));
    client.send("orders", b"next").expect("after a while");
    match client.try_recv().expect("it stands") {
        Some(Event::Message(kept)) => assert_eq!(&kept.payload[..], b"kept"),
        other => panic!("{other:?}"),
    }
    peer.end();
}

/// Gives all credit back and reads nothing, until it is told; then it counts the messages.
fn generous(
    house: &House,
    told: mpsc::Receiver<()>,
    counted: mpsc::Sender<usize>,
) -> crate::peer::Peer {
    house.host(move |connection| {
        while told.try_recv() == Err(mpsc::TryRecvError::Empty) {
            connection.tell(&[credit(1 << 20)]);
            thread::sleep(Duration::from_millis(1));
        }
        let mut messages = 0;
        while connection.next().is_some() {
            messages += 1;
        }
        counted.send(messages).expect("the test waits");
    })
}

/// More than sockets take.
const MANY: usize = 5000;

#[test]
fn credit_for_what_was_not_read_is_none() {
    let house = House::new();
    let (go_on, told) = mpsc::channel();
    let (counted, count) = mpsc::channel();
    let peer = generous(&house, told, counted);
    let mut client = house.client();
    let mut sent = 0;
    loop {
        match client.try_feed("orders", &[1; ALL]) {
            Ok(()) => sent += 1,
            Err(SendError::WouldBlock) if client.unsettled_bytes() == 0 => break,
            Err(SendError::WouldBlock) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(sent < MANY, "all of it waits in memory");
        client.try_read();
    }
    go_on.send(()).expect("it goes on");
    client
        .send("orders", &[1; ALL])
        .expect("there is room again");
    drop(client);
    assert_eq!(count.recv(), Ok(sent + 1));
    peer.end();
}

#[tokio::test]
async fn credit_for_what_was_not_read_is_none_for_tasks() {
    let house = House::new();
    let (go_on, told) = mpsc::channel();
    let (counted, count) = mpsc::channel();
    let peer = generous(&house, told, counted);
    let client = AsyncClient::connect(house.path()).await;
    let mut client = client.expect("it is let in");
    let mut sent = 0;
    loop {
        match client.try_send("orders", &[1; ALL]) {
            Ok(()) => sent += 1,
            Err(SendError::WouldBlock) if client.unsettled_bytes() == 0 => break,
            Err(SendError::WouldBlock) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(sent < MANY, "all of it waits in memory");
        assert!(matches!(client.try_recv(), Ok(None)));
        tokio::task::yield_now().await;
    }
    go_on.send(()).expect("it goes on");
    let last = client.send("orders", &[1; ALL]).await;
    last.expect("there is room again");
    drop(client);
    assert_eq!(count.recv(), Ok(sent + 1));
    peer.end();
}

#[test]
fn a_message_larger_than_the_credit_goes_alone() {
    let house = House::new();
    let peer = house.host(|connection| {
        let large = connection.next_send();
        connection.tell(&[credit(large.frame_bytes()), message(b"given back")]);
        connection.next_send();
    });
    let mut client = house.client();
    client
        .send("orders", &[1; LARGEST as usize])
        .expect("alone");
    assert!(matches!(
        client.try_send("orders", b""),
        Err(SendError::WouldBlock)
    ));
    client.recv().expect("the credit came before");
    client
        .try_send("orders", b"")
        .expect("nothing is outstanding");
    peer.end();
}

#[test]
fn what_cannot_be_sent_costs_nothing() {
    let house = House::new();
    let peer = house.host(Connection::until_gone);
    let mut client = house.client();
    let too_large = client.send("orders", &[0; LARGEST as usize + 1]);
    assert!(matches!(too_large, Err(SendError::TooLarge { limit }) if limit == LARGEST as usize));
    let no_name = client.send("no name", b"");
    assert!(matches!(no_name, Err(SendError::Destination(_))));
    for count in [0, 101] {
        let many = Envelope::to_all(vec!["orders"; count]).expect("names");
        let sent = client.send(many, b"");
        assert!(matches!(sent, Err(SendError::Destinations)));
    }
    client
        .try_send("orders", &[0; ALL])
        .expect("all credit is there");
    drop(client);
    peer.end();
}

#[test]
fn an_envelope_says_where_and_how() {
    let house = House::new();
    let peer = house.host(|connection| {
        let send = connection.next_send();
        assert_eq!(
            (send.service, send.kind, send.self_discard),
            (Service::Safe, 7, true)
        );
        let to: Vec<String> = send.to.iter().map(ToString::to_string).collect();
        assert_eq!(to, ["orders", "#bob#n2"]);
        let send = connection.next_send();
        assert_eq!(
            (send.service, send.kind, send.self_discard),
            (Service::Fifo, 0, false)
        );
        let send = connection.next_send();
        assert_eq!(send.to[0].to_string(), "#bob#n2");
    });
    let fifo = Client::builder().service(Service::Fifo);
    let mut client = fifo.connect(house.path()).expect("let in");
    let envelope = Envelope::to_all(["orders", "#bob#n2"]).expect("legal");
    let envelope = envelope.service(Service::Safe).kind(7).self_discard();
    client.send(&envelope, b"both").expect("sent");
    client.send("orders", b"as built").expect("sent");
    client
        .send(envelope.destinations()[1], b"one")
        .expect("sent");
    peer.end();
}

#[test]
fn a_client_that_never_takes_its_events_is_stopped_with_an_error() {
    let house = House::new();
    let (taken, all_taken) = mpsc::channel();
    let peer = house.host(move |connection| {
        connection.next_send();
        for _ in 0..40 {
            connection.tell(&[message(&[0; 1000])]);
        }
        all_taken.recv().expect("the client goes on");
        connection.tell(&[credit(CREDIT as usize)]);
        connection.next_send();
    });
    let small = Client::builder().unread_bytes(2000);
    let mut client = small.connect(house.path()).expect("let in");
    client.send("orders", &[1; ALL]).expect("just enough");
    for _ in 0..2 {
        let stopped = client.send("orders", b"next");
        assert!(matches!(stopped, Err(SendError::Unread { limit: 2000 })));
    }
    for _ in 0..40 {
        client.recv().expect("it stands");
    }
    taken.send(()).expect("the peer waits");
    client.send("orders", b"next").expect("there is room again");
    peer.end();
}

#[test]
fn neither_side_waits_for_the_other_when_both_have_much_to_say() {
    const EACH: usize = 3000;
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        connection.tell(&[crate::peer::welcome(64 << 20)]);
        // It reads nothing until the client has taken all this, which is more than a socket holds.
        for _ in 0..EACH {
            connection.tell(&[message(&[0; 1000])]);
        }
        for _ in 0..EACH {
            connection.next_send();
        }
    });
    let mut client = house.client();
    for _ in 0..EACH {
        client.feed("orders", &[0; 1000]).expect("there is credit");
    }
    client.flush().expect("it stands");
    for _ in 0..EACH {
        assert!(matches!(client.recv(), Ok(Event::Message(_))));
    }
    peer.end();
}
