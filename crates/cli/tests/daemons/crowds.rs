//! Many connections from one address.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rota_client::Code;
use rota_client::protocol::{Inbox, MAX_REPLY_BYTES, Reply};
use socket2::{Domain, Socket, Type};

use crate::access::{await_line, counter, free_address};
use crate::bad_clients::Others;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, next_text};

/// Connections that one address may have in these tests.
const MOST: usize = 6;

/// One daemon with both kinds of TCP ports.
fn start() -> (Cluster, SocketAddr, SocketAddr) {
    let (native, spread) = (free_address(), free_address());
    let cluster = Cluster::with_spread(
        1,
        &format!("per_address = {MOST}\nhandshake_ms = 60000\ntcp = [\"{native}\"]"),
        &format!("tcp = [\"{spread}\"]"),
    );
    (cluster, native, spread)
}

/// A connection to a daemon from this address of the host.
fn from(source: &str, to: SocketAddr) -> TcpStream {
    let source: SocketAddr = format!("{source}:0").parse().expect("an address");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor");
    socket
        .bind(&source.into())
        .expect("the whole network is loopback's");
    socket.connect(&to.into()).expect("it listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the daemon closes");
    bytes
}

#[test]
fn one_too_many_is_told_so_in_its_own_protocol_and_other_addresses_are_let_in() {
    let (cluster, native, spread) = start();
    let mut held: Vec<TcpStream> = (0..MOST).map(|_| from("127.0.0.1", native)).collect();
    let mut one_more = from("127.0.0.1", native);
    let mut inbox = Inbox::<Reply>::new(MAX_REPLY_BYTES);
    inbox.feed(&rest(&mut one_more));
    let told = inbox.pull();
    assert!(
        matches!(
            &told,
            Ok(Some(Reply::Refused {
                code: Code::TooManyClients,
                ..
            }))
        ),
        "{told:?}"
    );
    // All ports count together.
    assert_eq!(rest(&mut from("127.0.0.1", spread)), [-3_i8 as u8]);
    assert_eq!(counter(&cluster, "clients_crowded"), 2);
    await_line(&cluster, "its address has as many connections as it may");
    // Another address, and those that come by the Unix socket, have nothing to do with it.
    let mut other = from("127.0.0.2", spread);
    other
        .write_all(&[5, 0, 1, 0, 3, b'b', b'e', b'n'])
        .expect("written");
    let mut offered = [0; 6];
    other.read_exact(&mut offered).expect("it is let in");
    assert_eq!(&offered, b"\x05NULL ");
    builder("local")
        .connect(cluster.socket(1))
        .expect("it is let in");
    // One goes, and there is room for one.
    held.pop();
    let until = Instant::now() + PATIENCE;
    while builder("late").connect(native).is_err() {
        assert!(Instant::now() < until, "there is never room");
    }
}

#[test]
fn a_flood_from_one_address_keeps_nobody_else_out() {
    let (cluster, native, spread) = start();
    let mut others = Others::of(&cluster, 1);
    let mut flood = VecDeque::new();
    for at in 0..2000 {
        let mut stream = from("127.0.0.1", if at % 2 == 0 { native } else { spread });
        // Some say something; most are closed by then.
        let _ = stream.write_all(b"flood");
        flood.push_back(stream);
        if flood.len() > 300 {
            flood.pop_front();
        }
        if at % 100 == 0 {
            others.go_on(3);
            let mut late = builder("late")
                .connect(cluster.socket(1))
                .expect("it is let in");
            late.send("#late#n1", b"it works").expect("sent");
            assert_eq!(next_text(&mut late), "it works");
            late.close().expect("the daemon closes");
            let mut other = from("127.0.0.3", spread);
            other.write_all(&[5, 0, 1, 0, 0]).expect("written");
            other.read_exact(&mut [0; 6]).expect("it is let in");
        }
    }
    others.go_on(50);
    assert!(counter(&cluster, "clients_crowded") > 1000);
}
