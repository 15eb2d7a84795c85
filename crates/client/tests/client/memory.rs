//! What a daemon says through memory is bounded as what comes by the socket is.

use rota_client::{AsyncClient, Client, Event, RequestError};

use crate::peer::{Connection, House, LARGEST, PATIENCE, Peer, message};

const MEMORY: u32 = 1 << 20;

/// Messages that are there at once, and fill about half of the memory.
const MESSAGES: u8 = 100;

/// More than one read gives, and much less than all messages.
const FEW_BYTES: usize = 200_000;

/// Lets a client in, tells it all messages at once, and answers nothing.
fn tell_all(house: &House) -> Peer {
    house.play(|listener| {
        let mut connection = Connection::accept(listener);
        let mut writer = connection.welcome_to_memory(MEMORY);
        let replies = (0..MESSAGES).map(|at| message(&[at; LARGEST as usize]));
        connection.tell_at_once(&mut writer, &replies.collect::<Vec<_>>());
        connection.until_gone();
    })
}

fn check(event: &Event, at: u8) {
    match event {
        Event::Message(message) => assert_eq!(message.payload, [at; LARGEST as usize][..]),
        other => panic!("{other:?} is no message"),
    }
}

#[test]
fn a_call_that_waits_reads_no_more_of_the_memory_than_may_lie_unread() {
    let house = House::new();
    let peer = tell_all(&house);
    let builder = Client::builder().timeout(PATIENCE).unread_bytes(0);
    let mut client = builder.connect(house.path()).expect("let in");
    let joined = client.join("orders");
    assert!(
        matches!(joined, Err(RequestError::Unread { .. })),
        "{joined:?}"
    );
    let unread = client.unread();
    assert!((1..FEW_BYTES).contains(&unread), "{unread}");
    // The rest is there without any wait, though the socket has nothing more to tell of it.
    for at in 0..MESSAGES {
        let event = client.recv_timeout(PATIENCE).expect("connected");
        check(&event.expect("it is there"), at);
        let unread = client.unread();
        assert!(unread < FEW_BYTES, "{unread}");
    }
    drop(client);
    peer.end();
}

/// As all its parts are printed, so is how much lies unread.
fn unread(client: &AsyncClient) -> usize {
    let printed = format!("{client:?}");
    let (_, unread) = printed.split_once(" unread: ").expect("it is printed");
    let (unread, _) = unread.split_once(' ').expect("it has an end");
    unread.parse().expect("a number")
}

#[tokio::test]
async fn a_task_that_waits_reads_no_more_of_the_memory_than_may_lie_unread() {
    let house = House::new();
    let peer = tell_all(&house);
    let builder = Client::builder().timeout(PATIENCE).unread_bytes(0);
    let client = AsyncClient::connect_as(&builder, house.path()).await;
    let mut client = client.expect("let in");
    let joined = client.join("orders").await;
    assert!(
        matches!(joined, Err(RequestError::Unread { .. })),
        "{joined:?}"
    );
    let lies = unread(&client);
    assert!((1..FEW_BYTES).contains(&lies), "{lies}");
    for at in 0..MESSAGES {
        let event = tokio::time::timeout(PATIENCE, client.recv()).await;
        check(&event.expect("in time").expect("connected"), at);
    }
    drop(client);
    peer.end();
}
