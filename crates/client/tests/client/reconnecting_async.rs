//! Lost connections and their successors, for tokio.

use std::time::Duration;

use rota_client::protocol::{Code, Reply};
use rota_client::{
    AsyncReconnecting, Backoff, Client, ConnectError, Event, Gap, RequestError, SendError,
};
use tokio::time::timeout;

use crate::peer::{Connection, House, PATIENCE, message};

fn hasty() -> Backoff {
    Backoff {
        first: Duration::from_millis(2),
        longest: Duration::from_millis(20),
    }
}

async fn connect(house: &House) -> AsyncReconnecting {
    let builder = Client::builder().name("alice");
    let client = AsyncReconnecting::connect(house.path(), builder, hasty()).await;
    client.expect("it is let in")
}

async fn next(client: &mut AsyncReconnecting) -> Result<Event, ConnectError> {
    let next = timeout(PATIENCE, client.recv()).await;
    next.expect("it comes in time")
}

async fn gap(client: &mut AsyncReconnecting) -> Gap {
    match next(client).await.expect("again") {
        Event::Reconnected(gap) => gap,
        other => panic!("{other:?} is no gap"),
    }
}

async fn is_told(client: &mut AsyncReconnecting, text: &[u8]) {
    match next(client).await {
        Ok(Event::Message(message)) => assert_eq!(&message.payload[..], text),
        other => panic!("{other:?} is no message"),
    }
}

#[tokio::test]
async fn a_lost_connection_is_followed_by_a_gap_in_the_same_groups() {
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
    let mut client = connect(&house).await;
    client.join("orders").await.expect("done");
    client.join("stock").await.expect("done");
    client.send("orders", b"lost").await.expect("sent");
    is_told(&mut client, b"before").await;
    let gap = gap(&mut client).await;
    assert_eq!(gap.unsettled_bytes, 17 + 4);
    assert_eq!(gap.name.to_string(), "#alice#n1");
    let [(group, RequestError::Failed { code, .. })] = &gap.not_joined[..] else {
        panic!("{:?}", gap.not_joined);
    };
    assert_eq!((group.as_str(), *code), ("stock", Code::Quota));
    is_told(&mut client, b"after").await;
    drop(client);
    peer.end();
}

/// A caller that waits a little at a time gets there all the same: an attempt is not begun again by each call.
#[tokio::test]
async fn an_attempt_goes_on_with_the_next_call() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        drop(first);
        let mut second = Connection::accept(listener);
        second.hello();
        std::thread::sleep(Duration::from_millis(100));
        second.tell(&[crate::peer::welcome(1000)]);
        std::thread::sleep(Duration::from_millis(100));
        second.expect_join("orders");
        second.tell(&[message(b"after")]);
        second.until_gone();
    });
    let mut client = connect(&house).await;
    client.join("orders").await.expect("done");
    let mut cancelled = 0;
    let found = loop {
        match timeout(Duration::from_millis(5), client.recv()).await {
            Ok(event) => break event,
            Err(_) => cancelled += 1,
        }
    };
    assert!(matches!(found, Ok(Event::Reconnected(_))), "{found:?}");
    assert!(cancelled > 5, "{cancelled}");
    is_told(&mut client, b"after").await;
    drop(client);
    peer.end();
}

#[tokio::test]
async fn what_comes_while_groups_are_joined_again_waits() {
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
    let client = AsyncReconnecting::connect(house.path(), small, hasty()).await;
    let mut client = client.expect("it is let in");
    client.join("orders").await.expect("done");
    client.join("stock").await.expect("done");
    assert!(gap(&mut client).await.not_joined.is_empty());
    for _ in 0..COUNT {
        is_told(&mut client, &[7; 1000]).await;
    }
    drop(client);
    peer.end();
}

#[tokio::test]
async fn nothing_is_sent_before_the_gap_was_seen() {
    let house = House::new();
    let peer = house.play(|listener| {
        drop(Connection::welcomed(listener));
        let mut second = Connection::welcomed(listener);
        assert_eq!(&second.next_send().payload[..], b"after");
    });
    let mut client = connect(&house).await;
    let lost = loop {
        match client.send("orders", b"before").await {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(lost, SendError::Lost(_)));
    assert!(matches!(
        client.send("orders", b"too early").await,
        Err(SendError::Lost(_))
    ));
    gap(&mut client).await;
    client.send("orders", b"after").await.expect("it stands");
    peer.end();
}

#[tokio::test]
async fn a_group_that_was_left_is_not_joined_again() {
    let house = House::new();
    let peer = house.play(|listener| {
        let mut first = Connection::welcomed(listener);
        first.expect_join("orders");
        first.expect_join("stock");
        drop(first);
        let mut second = Connection::welcomed(listener);
        second.expect_join("orders");
        second.until_gone();
    });
    let slow = Backoff {
        first: Duration::from_millis(100),
        longest: Duration::from_millis(100),
    };
    let client = AsyncReconnecting::connect(house.path(), Client::builder(), slow).await;
    let mut client = client.expect("it is let in");
    client.join("orders").await.expect("done");
    client.join("stock").await.expect("done");
    // The loss is found, and the pause before the first attempt begins.
    while client.client().is_some() {
        let _ = timeout(Duration::from_micros(100), client.recv()).await;
    }
    assert!(matches!(
        client.leave("stock").await,
        Err(RequestError::Lost(_))
    ));
    gap(&mut client).await;
    drop(client);
    peer.end();
}

#[tokio::test]
async fn a_refusal_that_will_stay_ends_the_attempts() {
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
    let mut client = connect(&house).await;
    for _ in 0..2 {
        let error = next(&mut client).await.expect_err("not allowed");
        assert!(matches!(
            error,
            ConnectError::Refused {
                code: Code::NotAllowed,
                ..
            }
        ));
    }
    client.close().await.expect("there is nothing to close");
    peer.end();
}
