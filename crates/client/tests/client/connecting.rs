//! Handshakes that succeed and handshakes that fail.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use rota_client::protocol::{Code, Reply, Welcome};
use rota_client::{Client, ConnectError, ConnectionLost};

use crate::peer::{CREDIT, Connection, House, LARGEST, message, welcome};

#[test]
fn a_client_says_who_it_is_and_learns_its_name() {
    let house = House::new();
    let peer = house.play(|listener| {
        let hello = Connection::accept(listener).welcome();
        assert!(hello.membership);
        assert_eq!(hello.name.expect("one was given").as_str(), "alice");
        let hello = Connection::accept(listener).welcome();
        assert!(!hello.membership);
        assert_eq!(hello.name, None);
    });
    let named = Client::builder().name("alice").membership(true);
    let client = named.connect(house.path()).expect("let in");
    assert_eq!(client.name().to_string(), "#alice#n1");
    assert_eq!(client.largest_payload(), LARGEST as usize);
    house.client();
    peer.end();
}

#[test]
fn a_welcome_may_come_byte_by_byte_and_with_more_behind_it() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        let mut bytes = Vec::new();
        welcome(CREDIT).encode(&mut bytes).expect("it fits");
        let (last, first) = bytes.split_last().expect("not empty");
        for byte in first {
            connection.tell_bytes(&[*byte]);
            thread::sleep(Duration::from_micros(100));
        }
        let mut rest = vec![*last];
        message(b"early").encode(&mut rest).expect("it fits");
        connection.tell_bytes(&rest);
    });
    let mut client = house.client();
    let first = client.messages().next().expect("one").expect("a message");
    assert_eq!(&first.payload[..], b"early");
    peer.end();
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        let (code, text) = (Code::NameInUse, "alice is here".to_owned());
        connection.tell(&[Reply::Refused { code, text }]);
    });
    let refused = Client::connect(house.path()).expect_err("refused");
    assert!(refused.may_pass());
    assert!(refused.to_string().contains("alice is here"));
    assert!(matches!(
        refused,
        ConnectError::Refused {
            code: Code::NameInUse,
            ..
        }
    ));
    peer.end();
}

/// The error of a client that gets these bytes in answer.
fn answered(bytes: Vec<u8>) -> ConnectError {
    let house = House::new();
    let peer = house.play(move |listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        connection.tell_bytes(&bytes);
    });
    let error = Client::connect(house.path()).expect_err("not let in");
    peer.end();
    error
}

#[test]
fn what_is_no_welcome_is_an_error_of_its_own() {
    let ended = answered(Vec::new());
    assert!(matches!(ended, ConnectError::Lost(ConnectionLost::Ended)));
    assert!(ended.may_pass());
    let http = answered(b"HTTP/1.1 400 Bad Request\r\n".to_vec());
    assert!(matches!(
        http,
        ConnectError::Lost(ConnectionLost::Protocol(_))
    ));
    assert!(!http.may_pass());
    let mut early = Vec::new();
    message(b"").encode(&mut early).expect("it fits");
    let early = answered(early);
    assert!(matches!(
        early,
        ConnectError::Lost(ConnectionLost::Unexpected)
    ));
    let mut later = Vec::new();
    let Reply::Welcome(this) = welcome(0) else {
        panic!("it is one")
    };
    let welcome = Welcome { version: 4, ..this };
    Reply::Welcome(welcome).encode(&mut later).expect("it fits");
    assert!(matches!(answered(later), ConnectError::Version(4)));
}

#[test]
fn a_daemon_that_does_not_answer_is_given_up() {
    let house = House::new();
    let peer = house.play(|listener| Connection::accept(listener).until_gone());
    let hasty = Client::builder().timeout(Duration::from_millis(30));
    let error = hasty.connect(house.path()).expect_err("no answer");
    assert!(matches!(error, ConnectError::TimedOut));
    peer.end();
}

#[test]
fn without_a_daemon_there_is_an_error_of_the_socket() {
    let house = House::new();
    match Client::connect(house.path()) {
        Err(ConnectError::Io(error)) => assert_eq!(error.kind(), ErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_that_is_none_is_found_before_anything_is_sent() {
    let error = Client::builder().name("#a").connect("/nowhere");
    assert!(matches!(error, Err(ConnectError::Name(_))));
}

#[test]
fn tcp_is_for_loopback_unless_insecure_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let peer = thread::spawn(move || {
        let mut connection = Connection::accept_tcp(&listener);
        connection.welcome();
        connection.expect_join("orders");
        connection.until_gone();
    });
    let mut client = Client::connect(address).expect("let in");
    client.join("orders").expect("done");
    client.close().expect("it closes too");
    peer.join().expect("no failure");
    // An address for documentation: no host has it, and no packet is sent.
    let far = Client::connect("tcp:192.0.2.1:4000");
    assert!(matches!(far, Err(ConnectError::Insecure(_))));
}
