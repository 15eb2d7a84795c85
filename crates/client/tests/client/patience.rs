//! The time-outs that a client keeps: no call waits for longer than it was told to.

use std::future::Future;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rota_client::protocol::{MAX_REPLY_BYTES, Reply, Request};
use rota_client::{
    AsyncClient, Builder, Client, ConnectError, ConnectionLost, RequestError, SendError,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::peer::{CREDIT, Connection, House, LARGEST, PATIENCE, message, welcome};

const SHORT: Duration = Duration::from_millis(200);

/// The result of a closure; fails if the closure hangs.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(act()));
    is_done.recv_timeout(PATIENCE).expect("it does not hang")
}

fn waited<T: Send + 'static>(act: impl Future<Output = T> + Send + 'static) -> T {
    in_time(|| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build();
        runtime.expect("descriptors").block_on(act)
    })
}

/// A daemon that lets a client in, with so much credit that it fills the socket, and reads nothing more
/// until it is told to; then it says how many messages came before the bye.
fn deaf(house: &House, told: u8) -> (mpsc::Sender<()>, mpsc::Receiver<Option<usize>>) {
    let (go_on, goes_on) = mpsc::channel();
    let (count, counted) = mpsc::channel();
    house.play(move |listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        let mut replies = vec![welcome(64 << 20)];
        replies.extend((0..told).map(|at| message(&[at; 1000])));
        connection.tell(&replies);
        let _ = goes_on.recv();
        let mut messages = 0;
        let whole = loop {
            match connection.next() {
                Some(Request::Send(_)) => messages += 1,
                Some(Request::Bye) => break Some(messages),
                _ => break None,
            }
        };
        let _ = count.send(whole);
    });
    (go_on, counted)
}

fn builder() -> Builder {
    Client::builder().timeout(SHORT)
}

/// Sends until the socket is full, and a little more.
fn fill(mut put: impl FnMut(&[u8]) -> Result<(), SendError>) -> usize {
    for _ in 0..1000 {
        put(&[7; LARGEST as usize]).expect("there is credit");
    }
    1000
}

/// Lets a client in, and sends without end what nobody takes.
fn flooding(house: &House, reply: Reply, reads: bool) {
    house.play(move |listener| {
        let mut connection = Connection::accept(listener);
        connection.hello();
        if !reads {
            connection.stop_reading();
        }
        connection.tell(&[welcome(CREDIT)]);
        connection.flood(&reply);
    });
}

const fn no_credit() -> Reply {
    Reply::Credit { bytes: 0 }
}

#[test]
fn a_daemon_that_sends_without_end_keeps_nobody_waiting() {
    let house = House::new();
    flooding(&house, no_credit(), true);
    let mut client = builder().connect(house.path()).expect("let in");
    let (joined, mut client) = in_time(move || (client.join("orders"), client));
    assert!(matches!(joined, Err(RequestError::TimedOut)), "{joined:?}");
    let (next, client) = in_time(move || (client.recv_timeout(SHORT), client));
    assert!(matches!(next, Ok(None)), "{next:?}");
    let closed = in_time(move || client.close());
    assert!(is_late(&closed), "{closed:?}");
}

#[test]
fn a_daemon_that_sends_without_end_keeps_no_task_waiting() {
    let house = House::new();
    flooding(&house, no_credit(), true);
    let path = house.path();
    waited(async move {
        let client = AsyncClient::connect_as(&builder(), path).await;
        let mut client = client.expect("let in");
        let joined = client.join("orders").await;
        assert!(matches!(joined, Err(RequestError::TimedOut)), "{joined:?}");
        let next = client.try_recv();
        assert!(matches!(next, Ok(None)), "{next:?}");
        let next = tokio::time::timeout(SHORT, client.recv()).await;
        assert!(next.is_err(), "{next:?}");
        let closed = client.close().await;
        assert!(is_late(&closed), "{closed:?}");
    });
}

#[test]
fn a_daemon_that_only_sends_fills_no_memory() {
    let house = House::new();
    flooding(&house, message(&[1; 10_000]), false);
    let builder = builder().unread_bytes(0);
    let mut client = builder.connect(house.path()).expect("let in");
    let (sent, client) = in_time(move || (client.send("orders", b"x"), client));
    assert!(matches!(sent, Err(SendError::Lost(_))), "{sent:?}");
    let most = MAX_REPLY_BYTES + (1 << 20);
    assert!(client.unread() <= most, "{}", client.unread());
}

fn is_late(closed: &Result<(), ConnectionLost>) -> bool {
    matches!(closed, Err(ConnectionLost::Io(error)) if error.kind() == std::io::ErrorKind::TimedOut)
}

#[test]
fn close_gives_up_a_daemon_that_does_not_read() {
    let house = House::new();
    let (_go_on, _) = deaf(&house, 0);
    let mut client = builder().connect(house.path()).expect("let in");
    fill(|payload| client.try_send("orders", payload));
    let closed = in_time(move || client.close());
    assert!(is_late(&closed), "{closed:?}");
}

#[test]
fn a_request_gives_up_a_daemon_that_does_not_read() {
    let house = House::new();
    let (_go_on, _) = deaf(&house, 0);
    let mut client = builder().connect(house.path()).expect("let in");
    fill(|payload| client.try_send("orders", payload));
    let joined = in_time(move || (client.join("orders"), client));
    assert!(
        matches!(joined.0, Err(RequestError::TimedOut)),
        "{joined:?}"
    );
}

#[test]
fn a_half_that_closes_gives_up_a_daemon_that_does_not_read() {
    let house = House::new();
    let (_go_on, _) = deaf(&house, 0);
    let client = builder().connect(house.path()).expect("let in");
    let (mut sender, receiver) = client.split();
    fill(|payload| sender.try_send("orders", payload));
    let closed = in_time(move || sender.close());
    assert!(is_late(&closed), "{closed:?}");
    drop(receiver);
}

#[test]
fn an_async_close_gives_up_a_daemon_that_does_not_read() {
    let house = House::new();
    let (_go_on, _) = deaf(&house, 0);
    let path = house.path();
    let closed = waited(async move {
        let client = AsyncClient::connect_as(&builder(), path).await;
        let mut client = client.expect("let in");
        fill(|payload| client.try_send("orders", payload));
        client.close().await
    });
    assert!(is_late(&closed), "{closed:?}");
}

/// Closing takes no more events, so unread events keep no bytes back.
#[test]
fn what_was_fed_is_written_by_close_however_much_is_unread() {
    let house = House::new();
    let (go_on, counted) = deaf(&house, 100);
    let builder = Client::builder().timeout(PATIENCE).unread_bytes(1);
    let mut client = builder.connect(house.path()).expect("let in");
    let fed = fill(|payload| client.try_send("orders", payload));
    // More comes than may lie unread, and the socket is full.
    while client.unread() < 1000 {
        client.try_read();
    }
    let closing = thread::spawn(move || client.close());
    thread::sleep(SHORT);
    go_on.send(()).expect("it waits");
    let counted = counted.recv_timeout(PATIENCE).expect("it counts");
    assert_eq!(counted, Some(fed), "and then the bye");
    closing
        .join()
        .expect("no panic")
        .expect("all of it was read");
}

/// A listener whose queue is full, and those who fill it.
fn crowded(path: &Path) -> (UnixListener, Vec<UnixStream>) {
    let flags = SocketFlags::CLOEXEC;
    let open = || {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        socket.expect("a descriptor")
    };
    let address = SocketAddrUnix::new(path).expect("a short path");
    let listener = open();
    rustix::net::bind(&listener, &address).expect("a free path");
    rustix::net::listen(&listener, 0).expect("it can");
    let mut queue = Vec::new();
    loop {
        let stream = UnixStream::from(open());
        stream.set_nonblocking(true).expect("a flag");
        if rustix::net::connect(&stream, &address).is_err() {
            return (listener.into(), queue);
        }
        queue.push(stream);
    }
}

#[test]
fn connecting_gives_up_where_nobody_is_let_in() {
    let house = House::new();
    let (_listener, _queue) = crowded(&house.path());
    let path = house.path();
    let error = in_time(move || builder().connect(path)).expect_err("nobody is let in");
    assert!(matches!(error, ConnectError::TimedOut), "{error:?}");
    let path = house.path();
    let error = waited(async move { AsyncClient::connect_as(&builder(), path).await });
    let error = error.expect_err("nobody is let in");
    assert!(matches!(error, ConnectError::TimedOut), "{error:?}");
}

#[test]
fn connecting_waits_for_its_turn() {
    for is_async in [false, true] {
        let house = House::new();
        let (listener, queue) = crowded(&house.path());
        let letting_in = thread::spawn(move || {
            thread::sleep(SHORT);
            for _ in 0..queue.len() {
                listener.accept().expect("one that waits");
            }
            Connection::accept(&listener).welcome();
        });
        let builder = Client::builder().timeout(PATIENCE);
        let path = house.path();
        if is_async {
            let client = waited(async move { AsyncClient::connect_as(&builder, path).await });
            client.map(|_| ()).expect("let in");
        } else {
            let client = in_time(move || builder.connect(path));
            client.map(|_| ()).expect("let in");
        }
        letting_in.join().expect("no failure");
    }
}

/// As all its parts are printed, so is what it waits for.
fn waits_for(client: &impl std::fmt::Debug) -> usize {
    let printed = format!("{client:?}");
    let (_, answers) = printed.split_once("answers: {").expect("they are printed");
    let (answers, _) = answers.split_once('}').expect("it has an end");
    answers.matches(": ").count()
}

#[test]
fn requests_that_were_given_up_are_forgotten() {
    let house = House::new();
    let (go_on, _counted) = deaf(&house, 0);
    let hasty = Client::builder().timeout(Duration::from_millis(10));
    let mut client = hasty.connect(house.path()).expect("let in");
    for _ in 0..20 {
        assert!(client.groups().is_err());
        assert_eq!(waits_for(&client), 0);
    }
    let (mut sender, _receiver) = client.split();
    for _ in 0..20 {
        assert!(sender.groups().is_err());
        assert_eq!(waits_for(&sender), 0);
    }
    drop(go_on);
}
