//! Descriptors that clients send: the daemon drops them, and reads all bytes behind them.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rota_client::protocol::{Reply, Request};

use super::super::counters::Counter;
use super::{House, join};

fn frame(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes).expect("it fits");
    bytes
}

fn send(socket: &UnixStream, request: &Request, with: impl AsFd) {
    let bytes = frame(request);
    let sent = rota_memory::send(socket, &bytes, with.as_fd()).expect("there is room");
    assert_eq!(sent, bytes.len());
}

/// The kernel ends a read behind a descriptor, and tells of what is behind it only once.
#[test]
fn requests_with_descriptors_are_all_read_and_their_descriptors_are_dropped() {
    let mut house = House::new("");
    let mut far = house.client("ann", false);
    let null = std::fs::File::open("/dev/null").expect("a device");
    for request in 1..=20 {
        send(&far.socket, &join(request, &format!("g{request}")), &null);
    }
    house.settle();
    let told = far.take();
    let done = told
        .iter()
        .filter(|told| matches!(told, Reply::Done { .. }));
    assert_eq!(done.count(), 20, "{told:?}");
}

/// The daemon reads nothing more of a client that asks and does not read: a descriptor of the client's own socket may
/// lie unread there.
#[test]
fn a_client_that_asks_and_reads_nothing_is_gone_in_the_end() {
    let mut house = House::new("client_memory_bytes = 0");
    let mut far = house.client("ann", false);
    let group = None;
    let joins = (0..20).map(|at| join(at, &format!("{at:a>30}")));
    let lists = (0..100).map(|request| Request::List { request, group });
    let much: Vec<u8> = joins.chain(lists).flat_map(|ask| frame(&ask)).collect();
    while !house.hub.clientele.watches_askers() {
        far.socket.write_all(&much).expect("there is room");
        house.settle();
    }
    send(&far.socket, &join(2, "h"), &far.socket);
    drop(far);
    house.settle();
    let clients = |house: &mut House| {
        let status = house.hub.status(rota_core::contract::Status::default());
        status.clients.len()
    };
    assert_eq!(clients(&mut house), 1, "it could still read");
    assert!(house.hub.next_wake().is_some(), "it is not forgotten");
    house.now = house.now.after(59_000_000_000);
    house.settle();
    assert_eq!(clients(&mut house), 1);
    house.now = house.now.after(2_000_000_000);
    house.settle();
    assert_eq!(clients(&mut house), 0);
    assert_eq!(house.hub.clientele.journal().counted(Counter::Slow), 1);
}

/// A connection whose own descriptor lies in it unread never ends.
#[test]
fn a_client_that_sends_its_own_descriptor_and_goes_is_gone() {
    let mut house = House::new("");
    for at in 0..3 {
        let far = house.client(&format!("x{at}"), false);
        let null = std::fs::File::open("/dev/null").expect("a device");
        send(&far.socket, &join(1, "g"), &null);
        send(&far.socket, &join(2, "h"), &far.socket);
    }
    house.settle();
    let status = house.hub.status(rota_core::contract::Status::default());
    assert_eq!(status.clients.len(), 0, "{:?}", status.clients);
    assert_eq!(house.hub.clientele.groups().count_groups(), 0);
}
