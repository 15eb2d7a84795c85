//! Events, requests and the end of a connection.

use std::thread;
use std::time::{Duration, Instant};

use rota_client::protocol::{Code, Reply, Request};
use rota_client::{ConnectionLost, Event, RequestError, SendError};
use rota_core::groups::GroupName;

use crate::peer::{House, message, view, welcome};

fn orders() -> GroupName {
    GroupName::new("orders").expect("legal")
}

fn payload(event: Event) -> Vec<u8> {
    match event {
        Event::Message(message) => message.payload.to_vec(),
        other => panic!("{other:?} is no message"),
    }
}

#[test]
fn events_come_in_order_however_they_are_cut() {
    let house = House::new();
    let peer = house.host(|connection| {
        let mut bytes = Vec::new();
        let Reply::View(seen) = view(&["#alice#n1"]) else {
            panic!("it is one")
        };
        let group = orders();
        for reply in [
            view(&["#alice#n1"]),
            message(b"one"),
            Reply::Transitional {
                group,
                view: seen.id,
            },
            message(b"two"),
            Reply::Excluded,
            Reply::Included { missed: true },
            Reply::Lagging {
                waiting: 1,
                limit: 2,
            },
            Reply::SelfLeave { group },
        ] {
            reply.encode(&mut bytes).expect("it fits");
        }
        for (index, piece) in bytes.chunks(7).enumerate() {
            connection.tell_bytes(piece);
            if index % 3 == 0 {
                thread::sleep(Duration::from_micros(300));
            }
        }
    });
    let mut client = house.client();
    let mut next = || client.recv().expect("it stands");
    assert!(matches!(next(), Event::View(view) if view.members.len() == 1));
    assert_eq!(payload(next()), b"one");
    assert!(matches!(next(), Event::Transitional { .. }));
    assert_eq!(payload(next()), b"two");
    assert!(matches!(next(), Event::Excluded));
    assert!(matches!(next(), Event::Included { missed: true }));
    assert!(matches!(
        next(),
        Event::Lagging {
            waiting: 1,
            limit: 2
        }
    ));
    assert!(matches!(next(), Event::SelfLeave { .. }));
    for _ in 0..2 {
        assert!(matches!(client.recv(), Err(ConnectionLost::Ended)));
    }
    peer.end();
}

#[test]
fn a_join_waits_for_its_place_in_the_order_and_keeps_what_comes_before() {
    let house = House::new();
    let peer = house.host(|connection| {
        let request = connection.next_number();
        connection.tell(&[
            message(b"before"),
            Reply::Done { request },
            message(b"after"),
        ]);
        connection.until_gone();
    });
    let mut client = house.client();
    client.join("orders").expect("done");
    assert_eq!(payload(client.recv().expect("it stands")), b"before");
    assert_eq!(payload(client.recv().expect("it stands")), b"after");
    drop(client);
    peer.end();
}

#[test]
fn requests_are_answered_or_fail_one_by_one() {
    let house = House::new();
    let peer = house.host(|connection| {
        let request = connection.next_number();
        let (code, text) = (Code::Quota, "no more".to_owned());
        connection.tell(&[Reply::Failed {
            request,
            code,
            text,
        }]);
        let request = connection.next_number();
        connection.tell(&[Reply::Done { request }]);
        let request = connection.next_number();
        let groups = vec![(orders(), 3)];
        connection.tell(&[Reply::Groups { request, groups }]);
        let request = connection.next_number();
        let members = vec!["#bob#n2".parse().expect("legal")];
        connection.tell(&[Reply::Members { request, members }]);
    });
    let mut client = house.client();
    match client.join("orders") {
        Err(RequestError::Failed { code, text }) => {
            assert_eq!((code, &*text), (Code::Quota, "no more"));
        }
        other => panic!("{other:?}"),
    }
    client.leave("orders").expect("done");
    assert_eq!(client.groups().expect("listed"), [(orders(), 3)]);
    let members = client.members("orders").expect("listed");
    assert_eq!(members[0].to_string(), "#bob#n2");
    assert!(matches!(client.join("#no"), Err(RequestError::Name(_))));
    assert!(matches!(client.join("orders"), Err(RequestError::Lost(_))));
    peer.end();
}

#[test]
fn an_answer_that_does_not_come_is_given_up_and_may_come_late() {
    let house = House::new();
    let peer = house.host(|connection| {
        let late = connection.next_number();
        let request = connection.next_number();
        connection.tell(&[Reply::Done { request: late }, Reply::Done { request }]);
    });
    let hasty = rota_client::Client::builder().timeout(Duration::from_millis(50));
    let mut client = hasty.connect(house.path()).expect("let in");
    assert!(matches!(client.join("orders"), Err(RequestError::TimedOut)));
    client.leave("orders").expect("done");
    peer.end();
}

#[test]
fn receiving_waits_as_long_as_it_is_told() {
    let house = House::new();
    let peer = house.host(|connection| {
        assert_eq!(connection.next(), Some(Request::Bye));
    });
    let mut client = house.client();
    assert!(client.try_recv().expect("it stands").is_none());
    let started = Instant::now();
    let wait = Duration::from_millis(40);
    assert!(client.recv_timeout(wait).expect("it stands").is_none());
    assert!(started.elapsed() >= wait);
    client.close().expect("it closes too");
    peer.end();
}

#[test]
fn a_goodbye_comes_after_what_came_before_and_its_reason_stays() {
    let house = House::new();
    let peer = house.host(|connection| {
        let (code, text) = (Code::TooSlow, "900 bytes wait".to_owned());
        connection.tell(&[message(b"last"), Reply::Goodbye { code, text }]);
    });
    let mut client = house.client();
    peer.end();
    assert_eq!(payload(client.recv().expect("it was there")), b"last");
    let is_goodbye = |lost: &ConnectionLost| matches!(lost, ConnectionLost::Goodbye { code: Code::TooSlow, text } if text == "900 bytes wait");
    assert!(is_goodbye(&client.recv().expect_err("it is gone")));
    match client.send("orders", b"too late") {
        Err(SendError::Lost(lost)) => assert!(is_goodbye(&lost)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_send_that_fails_says_what_the_daemon_said() {
    let house = House::new();
    let peer = house.host(|connection| {
        let (code, text) = (Code::ShuttingDown, String::new());
        connection.tell(&[Reply::Goodbye { code, text }]);
    });
    let mut client = house.client();
    peer.end();
    match client.send("orders", b"too late") {
        Err(SendError::Lost(ConnectionLost::Goodbye { code, .. })) => {
            assert_eq!(code, Code::ShuttingDown);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_that_are_no_frame_end_the_connection() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.tell(&[message(b"good")]);
        connection.tell_bytes(&[1, 0, 0, 0, 0x55]);
        connection.until_gone();
    });
    let mut client = house.client();
    assert_eq!(payload(client.recv().expect("it is good")), b"good");
    assert!(matches!(client.recv(), Err(ConnectionLost::Protocol(_))));
    drop(client);
    peer.end();
}

#[test]
fn a_second_welcome_ends_the_connection() {
    let house = House::new();
    let peer = house.host(|connection| connection.tell(&[welcome(1)]));
    let mut client = house.client();
    assert!(matches!(client.recv(), Err(ConnectionLost::Unexpected)));
    peer.end();
}

#[test]
fn messages_pass_over_other_events() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.tell(&[view(&["#alice#n1"]), message(b"one")]);
        connection.tell(&[
            Reply::Lagging {
                waiting: 1,
                limit: 2,
            },
            message(b"two"),
        ]);
    });
    let mut client = house.client();
    let messages: Vec<_> = client.messages().collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(
        messages[1].as_ref().expect("a message").payload[..],
        *b"two"
    );
    assert!(messages[2].is_err());
    peer.end();
}

/// A message of which this much has come when the stream ends.
fn a_part() -> Vec<u8> {
    let mut bytes = Vec::new();
    message(b"whole").encode(&mut bytes).expect("it fits");
    let whole = bytes.len();
    message(b"cut").encode(&mut bytes).expect("it fits");
    bytes.truncate(whole + 3);
    bytes
}

#[test]
fn a_stream_that_ends_within_a_frame_has_been_cut_short() {
    let house = House::new();
    let peer = house.host(|connection| connection.tell_bytes(&a_part()));
    let mut client = house.client();
    assert_eq!(payload(client.recv().expect("it has come")), b"whole");
    for _ in 0..2 {
        match client.recv() {
            Err(ConnectionLost::Io(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
            }
            other => panic!("{other:?}"),
        }
    }
    peer.end();
}

#[test]
fn closing_fails_where_the_stream_is_cut_short() {
    let house = House::new();
    let peer = house.host(|connection| {
        assert!(matches!(connection.next(), Some(Request::Bye)));
        connection.tell_bytes(&a_part());
    });
    let closed = house.client().close();
    assert!(matches!(closed, Err(ConnectionLost::Io(_))), "{closed:?}");
    peer.end();
}
