//! Clients that are told things through memory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use rota_client::protocol::{Hello, Inbox, MAX_REPLY_BYTES, Reply, Request};
use rota_client::{Client, ClientName, ConnectionLost, Event};

use crate::access::counter;
use crate::bad_clients::{connect, frame, group};
use crate::cluster::Cluster;
use crate::native::{client, end_of, meet, member, names, next, next_text};

/// What fits the memory only in many turns.
const MESSAGES: usize = 600;
const BYTES: usize = 5000;

fn payload(at: usize) -> Vec<u8> {
    (0..BYTES).map(|byte| (at * 31 + byte) as u8).collect()
}

fn send_all(from: &mut Client, messages: usize) {
    for at in 0..messages {
        from.send("g", &payload(at)).expect("it is sent");
    }
}

fn take_all(to: &mut Client, messages: usize) {
    for at in 0..messages {
        match next(to) {
            Event::Message(message) => assert_eq!(message.payload, payload(at), "message {at}"),
            other => panic!("{other:?}"),
        }
    }
}

/// One client gets what another sends; so many of them have memory of their own.
fn is_told(settings: &str, with_memory: u64) {
    let cluster = Cluster::start(1, settings);
    let mut from = client(&cluster, 1, "from");
    let mut to = client(&cluster, 1, "to");
    to.join("g").expect("it joins");
    assert_eq!(counter(&cluster, "clients_with_memory"), with_memory);
    send_all(&mut from, MESSAGES);
    take_all(&mut to, MESSAGES);
}

#[test]
fn clients_of_this_host_are_told_things_through_memory() {
    is_told("", 2);
}

#[test]
fn without_memory_they_are_told_by_their_sockets() {
    is_told("client_memory_bytes = 0", 0);
}

#[test]
fn memory_that_a_message_does_not_fit_is_used_in_turns_with_the_socket() {
    is_told("client_memory_bytes = 3000", 2);
}

#[test]
fn one_that_says_it_has_read_what_it_was_not_told_is_disconnected() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut good = member(&cluster, 1, "good");
    good.join("g").expect("it joins");
    let mut from = client(&cluster, 2, "from");
    // By hand, up to where it finds its memory.
    let mut socket = connect(&cluster.socket(1));
    let name = Some(ClientName::new("liar").expect("a name"));
    let hello = Hello {
        memory: true,
        ..Hello::new(name, false)
    };
    socket
        .write_all(&frame(&Request::Hello(hello)))
        .expect("it is written");
    let mut buffer = vec![0; 4096];
    let (bytes, memory) = rota_memory::receive(&socket, &mut buffer).expect("a welcome");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    inbox.feed(&buffer[..bytes]);
    let welcome = inbox.pull().expect("the protocol").expect("a whole frame");
    assert!(
        matches!(welcome, Reply::Welcome(welcome) if welcome.memory == 256 << 10),
        "{welcome:?}"
    );
    let memory = File::from(memory.expect("it came with the welcome"));
    let (request, group) = (1, group("g"));
    socket
        .write_all(&frame(&Request::Join { request, group }))
        .expect("it is written");
    while names(&from.members("g").expect("they are listed")).len() < 2 {}
    // At the beginning is how much it has taken.
    memory
        .write_all_at(&u64::MAX.to_le_bytes(), 0)
        .expect("it may write there");
    send_all(&mut from, MESSAGES);
    let mut seen = 0;
    while seen < MESSAGES {
        if let Event::Message(message) = next(&mut good) {
            assert_eq!(message.payload, payload(seen), "message {seen}");
            seen += 1;
        }
    }
    while names(&from.members("g").expect("they are listed")).len() > 1 {}
    assert_eq!(counter(&cluster, "clients_garbled"), 1);
    // The others are none the worse for it.
    from.send("g", b"on").expect("it is sent");
    loop {
        if let Event::Message(message) = next(&mut good) {
            assert_eq!(&message.payload[..], b"on");
            break;
        }
    }
}

#[test]
fn a_client_takes_what_it_was_told_before_its_daemon_was_killed() {
    let mut cluster = Cluster::start(1, "");
    let mut to = client(&cluster, 1, "to");
    to.join("g").expect("it joins");
    let mut from = client(&cluster, 1, "from");
    from.send("g", b"last").expect("it is sent");
    from.flush().expect("it is written");
    // Both have heard of it once the sender has an answer to a later question.
    from.members("g").expect("they are listed");
    assert_eq!(next_text(&mut to), "last");
    cluster.kill(1);
    end_of(&mut to);
}

/// A daemon that is told to stop takes nothing away of what its clients have been told and not read, nor that it stops.
#[test]
fn what_was_told_before_the_daemon_stopped_is_there_to_be_read() {
    let mut cluster = Cluster::start(1, "");
    let mut to = client(&cluster, 1, "to");
    to.join("g").expect("it joins");
    let mut from = client(&cluster, 1, "from");
    from.join("g").expect("it joins");
    // Fits the memory.
    const FEW: usize = 30;
    send_all(&mut from, FEW);
    // When the one has it, the other has been told.
    take_all(&mut from, FEW);
    cluster.terminate(1);
    take_all(&mut to, FEW);
    match end_of(&mut to) {
        ConnectionLost::Goodbye { .. } => {}
        other => panic!("{other:?}"),
    }
}
