//! The client for tokio, as far as its waits differ from those of the blocking one.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rota_client::protocol::{Code, Reply, Request};
use rota_client::{
    AsyncClient, Client, ConnectError, ConnectionLost, Event, RequestError, SendError,
};
use tokio::time::timeout;

use crate::peer::{CREDIT, Connection, House, PATIENCE, message, welcome};

/// A frame to `orders` is larger by that much than its payload.
const HEAD: usize = 17;

/// The largest payload that the whole credit allows.
const ALL: usize = CREDIT as usize - HEAD;

async fn client(house: &House) -> AsyncClient {
    AsyncClient::connect(house.path())
        .await
        .expect("it is let in")
}

fn is_message(event: &Result<Event, ConnectionLost>, payload: &[u8]) -> bool {
    matches!(event, Ok(Event::Message(message)) if message.payload == payload)
}

#[tokio::test]
async fn a_session_from_hello_to_bye() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.expect_join("orders");
        let send = connection.next_send();
        connection.tell(&[message(&send.payload)]);
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
        assert_eq!(&connection.next_send().payload[..], b"fed");
        assert_eq!(connection.next(), Some(Request::Bye));
    });
    let mut client = client(&house).await;
    client.join("orders").await.expect("done");
    client.send("orders", b"hello").await.expect("sent");
    assert!(is_message(&client.recv().await, b"hello"));
    assert!(client.groups().await.expect("listed").is_empty());
    assert_eq!(client.members("orders").await.expect("listed").len(), 1);
    let failed = client.leave("orders").await;
    assert!(matches!(
        failed,
        Err(RequestError::Failed {
            code: Code::NotAllowed,
            ..
        })
    ));
    client.feed("orders", b"fed").await.expect("credit");
    client.close().await.expect("it closes too");
    peer.end();
}

#[tokio::test]
async fn sending_waits_for_credit_and_events_are_kept() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host(move |connection| {
        let bytes = connection.next_send().frame_bytes() as u32;
        connection.tell(&[message(b"kept")]);
        goes.recv().expect("the client goes on");
        connection.tell(&[Reply::Credit { bytes }]);
        assert_eq!(&connection.next_send().payload[..], b"next");
    });
    let mut client = client(&house).await;
    client.send("orders", &[1; ALL]).await.expect("just enough");
    assert!(matches!(
        client.try_send("orders", b""),
        Err(SendError::WouldBlock)
    ));
    // One that is cancelled has not taken the message.
    let cancelled = timeout(Duration::from_millis(30), client.send("orders", b"gone")).await;
    assert!(cancelled.is_err());
    go.send(()).expect("the peer waits");
    client.send("orders", b"next").await.expect("after a while");
    assert!(is_message(&client.recv().await, b"kept"));
    peer.end();
}

#[tokio::test]
async fn a_receive_that_is_cancelled_loses_no_event() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host(move |connection| {
        goes.recv().expect("the client goes on");
        connection.tell(&[message(b"one"), message(b"two")]);
    });
    let mut client = client(&house).await;
    let cancelled = timeout(Duration::from_millis(20), client.recv()).await;
    assert!(cancelled.is_err());
    assert!(client.try_recv().expect("it stands").is_none());
    go.send(()).expect("the peer waits");
    assert!(is_message(&client.recv().await, b"one"));
    assert!(is_message(&client.recv().await, b"two"));
    assert!(matches!(client.recv().await, Err(ConnectionLost::Ended)));
    peer.end();
}

#[tokio::test]
async fn an_unread_pile_stops_a_sender() {
    let house = House::new();
    let peer = house.host(|connection| {
        connection.next_send();
        for _ in 0..40 {
            connection.tell(&[message(&[0; 1000])]);
        }
        connection.until_gone();
    });
    let small = Client::builder().unread_bytes(2000);
    let mut client = AsyncClient::connect_as(&small, house.path())
        .await
        .expect("let in");
    client.send("orders", &[1; ALL]).await.expect("just enough");
    let stopped = client.send("orders", b"next").await;
    assert!(matches!(stopped, Err(SendError::Unread { limit: 2000 })));
    for _ in 0..40 {
        assert!(is_message(&client.recv().await, &[0; 1000]));
    }
    drop(client);
    peer.end();
}

#[tokio::test]
async fn neither_side_waits_for_the_other_when_both_have_much_to_say() {
    const EACH: usize = 3000;
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        connection.tell(&[welcome(64 << 20)]);
        for _ in 0..EACH {
            connection.tell(&[message(&[0; 1000])]);
        }
        for _ in 0..EACH {
            connection.next_send();
        }
    });
    let mut client = client(&house).await;
    for _ in 0..EACH {
        let fed = client.feed("orders", &[0; 1000]).await;
        fed.expect("there is credit");
    }
    client.flush().await.expect("it stands");
    for _ in 0..EACH {
        assert!(is_message(&client.recv().await, &[0; 1000]));
    }
    peer.end();
}

#[tokio::test]
async fn not_being_let_in_has_its_reasons() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        let (code, text) = (Code::TooManyClients, String::new());
        connection.tell(&[Reply::Refused { code, text }]);
        Connection::accept(listener).until_gone();
    });
    let refused = AsyncClient::connect(house.path()).await;
    assert!(matches!(
        refused,
        Err(ConnectError::Refused {
            code: Code::TooManyClients,
            ..
        })
    ));
    let hasty = Client::builder().timeout(Duration::from_millis(30));
    let silent = AsyncClient::connect_as(&hasty, house.path()).await;
    assert!(matches!(silent, Err(ConnectError::TimedOut)));
    let far = AsyncClient::connect("tcp:192.0.2.1:4000").await;
    assert!(matches!(far, Err(ConnectError::Insecure(_))));
    peer.end();
}

#[tokio::test]
async fn a_goodbye_is_the_reason_of_all_that_fails_later() {
    let house = House::new();
    let peer = house.host(|connection| {
        let (code, text) = (Code::ShuttingDown, String::new());
        connection.tell(&[Reply::Goodbye { code, text }]);
    });
    let mut client = client(&house).await;
    peer.end();
    let sent = client.send("orders", b"too late").await;
    let lost = match sent {
        Err(SendError::Lost(lost)) => lost,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        lost,
        ConnectionLost::Goodbye {
            code: Code::ShuttingDown,
            ..
        }
    ));
    assert!(matches!(
        client.recv().await,
        Err(ConnectionLost::Goodbye { .. })
    ));
}

#[tokio::test]
async fn closing_fails_where_the_stream_is_cut_short() {
    let house = House::new();
    let peer = house.host(|connection| {
        assert!(matches!(connection.next(), Some(Request::Bye)));
        let mut bytes = Vec::new();
        message(b"cut").encode(&mut bytes).expect("it fits");
        connection.tell_bytes(&bytes[..bytes.len() - 1]);
    });
    let closed = client(&house).await.close().await;
    assert!(matches!(closed, Err(ConnectionLost::Io(_))), "{closed:?}");
    peer.end();
}

#[test]
fn who_writes_is_told_of_the_end_though_nobody_reads() {
    let house = House::new();
    let (go, goes) = mpsc::channel();
    let peer = house.host_half(goes);
    let path = house.path();
    let (tell, told) = mpsc::channel();
    // In a thread: one that does not wait does not end either.
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        let lost = runtime.block_on(async {
            let mut client = AsyncClient::connect(path).await.expect("let in");
            loop {
                if let Err(error) = client.send("orders", &[0; 4000]).await {
                    return error;
                }
            }
        });
        tell.send(lost)
    });
    let lost = told.recv_timeout(PATIENCE).expect("it does not hang");
    assert!(matches!(lost, SendError::Lost(ConnectionLost::Ended)));
    go.send(()).expect("the peer waits");
    peer.end();
}
