//! The times at which bytes are written, and the harmlessness of slow readers.

use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::Duration;

use rota_client::protocol::Request;
use rota_client::{Client, ConnectionLost};

use crate::peer::{Connection, House, message, welcome};

fn roomy(listener: &std::os::unix::net::UnixListener) -> Connection {
    let mut connection = Connection::accept(listener);
    connection.hello();
    connection.tell(&[welcome(16 << 20)]);
    connection
}

#[test]
fn a_message_that_is_sent_is_written_at_once_with_all_that_was_fed() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = roomy(listener);
        assert_eq!(connection.next_batch().len(), 101);
        connection.tell(&[message(b"got it")]);
        assert_eq!(connection.next_batch().len(), 3);
        connection.tell(&[message(b"got it")]);
    });
    let mut client = house.client();
    for _ in 0..100 {
        client.feed("orders", b"fed").expect("there is credit");
    }
    client.send("orders", b"sent").expect("there is credit");
    client.recv().expect("an answer");
    // Before it waits, `recv` writes what was fed.
    for _ in 0..3 {
        client.feed("orders", b"fed").expect("there is credit");
    }
    client.recv().expect("an answer");
    peer.end();
}

#[test]
fn what_was_fed_is_written_when_there_is_enough_of_it() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = roomy(listener);
        for _ in 0..32 {
            connection.next_send();
        }
        connection.tell(&[message(b"got them")]);
        connection.until_gone();
    });
    let mut client = house.client();
    for _ in 0..33 {
        client.feed("orders", &[0; 1024]).expect("there is credit");
    }
    client.recv().expect("an answer");
    drop(client);
    peer.end();
}

#[test]
fn what_was_fed_is_written_when_the_client_is_dropped_or_closed() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = roomy(listener);
        assert_eq!(&connection.next_send().payload[..], b"dropped");
        assert_eq!(connection.next(), None);
        let mut connection = roomy(listener);
        assert_eq!(&connection.next_send().payload[..], b"closed");
        assert_eq!(connection.next(), Some(Request::Bye));
    });
    let mut client = house.client();
    client.feed("orders", b"dropped").expect("there is credit");
    drop(client);
    let mut client = house.client();
    client.feed("orders", b"closed").expect("there is credit");
    client.close().expect("the daemon closes");
    peer.end();
}

#[test]
fn closing_fails_if_the_daemon_does_not_say_that_it_has_read_everything() {
    let house = House::new();
    let (done, hear) = mpsc::channel::<()>();
    let peer = house.play(move |listener| {
        let connection = roomy(listener);
        // It neither reads nor closes before the client has given up.
        let _ = hear.recv();
        drop(connection);
    });
    let builder = Client::builder().timeout(Duration::from_millis(200));
    let client = builder.connect(house.path()).expect("let in");
    match client.close() {
        Err(ConnectionLost::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
    drop(done);
    peer.end();
}

#[test]
fn a_daemon_that_reads_in_sips_gets_every_byte() {
    const MESSAGES: usize = 300;
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = roomy(listener);
        connection.sip = 997;
        std::thread::sleep(Duration::from_millis(20));
        for index in 0..MESSAGES {
            let send = connection.next_send();
            assert_eq!(send.payload.len(), index * 7);
            assert!(
                send.payload
                    .iter()
                    .all(|&byte| usize::from(byte) == index % 251)
            );
        }
    });
    let mut client = house.client();
    for index in 0..MESSAGES {
        let payload = vec![(index % 251) as u8; index * 7];
        client.feed("orders", &payload).expect("there is credit");
    }
    client.flush().expect("it stands");
    peer.end();
}
