//! Clients that misbehave, and others that must not notice.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rota_client::protocol::{Hello, Inbox, MAX_REPLY_BYTES, Reply, Request, Send};
use rota_client::{Client, ClientName, Code, Destination, GroupName, Service};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, end_of, meet, member, next_text, next_view};

/// What a daemon says of itself.
pub fn status(cluster: &Cluster, id: u16) -> Value {
    let mut stream = connect(&cluster.admin(id));
    let mut line = String::new();
    stream.read_to_string(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}

pub fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

pub fn frame(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes).expect("it fits");
    bytes
}

pub fn hello(name: &str) -> Vec<u8> {
    let name = ClientName::new(name).expect("a name");
    frame(&Request::Hello(Hello::new(Some(name), false)))
}

pub fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("a name")
}

/// A client in the raw, which has been let in.
pub fn raw(cluster: &Cluster, id: u16, name: &str) -> (UnixStream, Inbox<Reply>) {
    let mut stream = connect(&cluster.socket(id));
    stream.write_all(&hello(name)).expect("it is written");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    let welcome = reply(&mut stream, &mut inbox);
    assert!(matches!(welcome, Reply::Welcome(_)), "{welcome:?}");
    (stream, inbox)
}

pub fn reply(stream: &mut impl Read, inbox: &mut Inbox<Reply>) -> Reply {
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(reply) = inbox.pull().expect("the protocol") {
            return reply;
        }
        let bytes = stream.read(&mut buffer).expect("in time");
        assert_ne!(bytes, 0, "the daemon has closed");
        inbox.feed(&buffer[..bytes]);
    }
}

/// Two clients of two daemons that are well all the time.
pub struct Others {
    pub ann: Client,
    pub ben: Client,
    pub said: usize,
}

impl Others {
    pub fn new(cluster: &Cluster) -> Self {
        meet(cluster, &[1, 2]);
        Self::of(cluster, 2)
    }

    /// One of daemon 1, the other of this.
    pub fn of(cluster: &Cluster, id: u16) -> Self {
        let mut ben = client(cluster, 1, "ben");
        ben.join("g").expect("it joins");
        let ann = client(cluster, id, "ann");
        Self { ann, ben, said: 0 }
    }

    /// One sends so many messages, and the other gets them.
    pub fn go_on(&mut self, count: usize) {
        for at in self.said..self.said + count {
            let text = format!("{at} {:1000}", "");
            self.ann.send("g", text.as_bytes()).expect("sent");
        }
        for at in self.said..self.said + count {
            assert_eq!(next_text(&mut self.ben).trim_end(), at.to_string());
        }
        self.said += count;
    }
}

#[test]
fn one_that_never_reads_is_disconnected_and_the_others_lose_nothing() {
    let cluster = Cluster::start(2, "message_bytes = 100000\nclient_queue_bytes = 200000");
    let mut others = Others::new(&cluster);
    let mut watcher = member(&cluster, 2, "watcher");
    watcher.join("deaf").expect("it joins");
    next_view(&mut watcher);
    let mut deaf = client(&cluster, 1, "deaf");
    deaf.join("deaf").expect("it joins");
    deaf.join("g").expect("it joins");
    assert_eq!(next_view(&mut watcher).members.len(), 2);
    let until = Instant::now() + PATIENCE;
    while status(&cluster, 1)["counters"]["clients_slow"] == 0 {
        assert!(Instant::now() < until, "it is never too much");
        others.go_on(50);
    }
    assert_eq!(next_view(&mut watcher).members, [watcher.name()]);
    others.go_on(50);
    end_of(&mut deaf);
    let now = status(&cluster, 1);
    assert_eq!(now["counters"]["clients_slow"], 1);
    assert_eq!(now["counters"]["clients_now"], 1);
}

#[test]
fn one_that_asks_and_never_reads_is_held_back() {
    const QUEUE: u64 = 200_000;
    let cluster = Cluster::start(
        2,
        &format!("message_bytes = 100000\nclient_queue_bytes = {QUEUE}"),
    );
    let mut others = Others::new(&cluster);
    for at in 0..300 {
        let join = others.ann.join(&format!("some-group-{at}"));
        join.expect("it joins");
    }
    let (mut stream, mut inbox) = raw(&cluster, 1, "curious");
    stream.set_nonblocking(true).expect("a flag");
    let lists = |first: u32| {
        let list = |request| {
            frame(&Request::List {
                request,
                group: None,
            })
        };
        (first..first + 100).flat_map(list).collect::<Vec<u8>>()
    };
    // Numbered, and written whole, so that the answers can be counted.
    let mut asked = 0;
    let mut rest = Vec::new();
    let until = Instant::now() + PATIENCE;
    loop {
        if rest.is_empty() {
            rest = lists(asked);
            asked += 100;
        }
        match stream.write(&rest) {
            Ok(bytes) => drop(rest.drain(..bytes)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let now = status(&cluster, 1);
                let is_it = |client: &&Value| client["name"] == "#curious#n1";
                let clients = now["clients"].as_array().expect("a list");
                let it = clients.iter().find(is_it).expect("it is connected");
                assert!(it["waiting_bytes"].as_u64() < Some(QUEUE), "{it}");
                if it["held_back"] == true {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < until, "it is never held back");
    }
    others.go_on(50);
    // It reads, and all is answered in turn.
    stream.set_nonblocking(false).expect("a flag");
    let mut writer = stream.try_clone().expect("a descriptor");
    let writing = std::thread::spawn(move || writer.write_all(&rest));
    for expected in 0..asked {
        match reply(&mut stream, &mut inbox) {
            Reply::Groups { request, groups } => {
                assert_eq!((request, groups.len()), (expected, 301));
            }
            other => panic!("{other:?}"),
        }
    }
    writing.join().expect("no panic").expect("it is written");
    others.go_on(50);
}

#[test]
fn many_questions_at_once_are_answered_by_a_daemon_at_rest() {
    const ASKED: u32 = 2000;
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let cluster = Cluster::start(1, &format!("tcp = [\"{address}\"]"));
    let mut ann = client(&cluster, 1, "ann");
    for at in 0..200 {
        ann.join(&format!("some-group-{at}")).expect("it joins");
    }
    // Nothing is ordered from here on, so that nothing else wakes the daemon.
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.write_all(&hello("curious")).expect("it is written");
    let list = |request| {
        frame(&Request::List {
            request,
            group: None,
        })
    };
    let lists: Vec<u8> = (0..ASKED).flat_map(list).collect();
    stream.write_all(&lists).expect("it is written");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    let welcome = reply(&mut stream, &mut inbox);
    assert!(matches!(welcome, Reply::Welcome(_)), "{welcome:?}");
    for expected in 0..ASKED {
        match reply(&mut stream, &mut inbox) {
            Reply::Groups { request, groups } => {
                assert_eq!((request, groups.len()), (expected, 200));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn one_that_wants_answers_which_it_never_reads_is_disconnected() {
    let cluster = Cluster::start(2, "message_bytes = 100000\nclient_queue_bytes = 200000");
    let mut others = Others::new(&cluster);
    let (mut stream, _) = raw(&cluster, 1, "impatient");
    // Not in the group: each is done at once.
    let leave = Request::Leave {
        request: 1,
        group: group("g"),
    };
    let leaves = frame(&leave).repeat(10_000);
    let until = Instant::now() + PATIENCE;
    while stream.write_all(&leaves).is_ok() {
        assert!(Instant::now() < until, "it goes on for ever");
    }
    others.go_on(50);
    assert_eq!(status(&cluster, 1)["counters"]["clients_slow"], 1);
}

#[test]
fn garbage_is_answered_and_cut_off() {
    let cluster = Cluster::start(2, "");
    let mut others = Others::new(&cluster);
    let garbage: Vec<u8> = (0..5000_u32).map(|at| ((at * 7919) >> 3) as u8).collect();
    let refused = |answer: &[u8]| {
        let mut inbox = Inbox::<Reply>::new(MAX_REPLY_BYTES);
        inbox.feed(answer);
        match inbox.pull() {
            Ok(Some(Reply::Refused { code, .. } | Reply::Goodbye { code, .. })) => code,
            other => panic!("{other:?}"),
        }
    };
    let mut answer = Vec::new();
    for port in [cluster.socket(1), cluster.spread(1), cluster.admin(1)] {
        let mut stream = connect(&port);
        let _ = stream.write_all(&garbage);
        answer.clear();
        // The end, or an error as some of it was never read.
        let _ = stream.read_to_end(&mut answer);
        if port == cluster.socket(1) {
            assert!(matches!(
                refused(&answer),
                Code::ProtocolError | Code::TooLarge
            ));
        }
        others.go_on(3);
    }
    // After a good start.
    let (mut stream, _) = raw(&cluster, 1, "mad");
    stream.write_all(&[1, 0, 0, 0, 0x77]).expect("written");
    answer.clear();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(refused(&answer), Code::ProtocolError);
    others.go_on(3);
    let counters = &status(&cluster, 1)["counters"];
    assert_eq!(counters["clients_garbled"], 3, "{counters}");
    // The names are free again.
    client(&cluster, 1, "mad");
}

#[test]
fn one_that_says_nothing_has_to_go() {
    let cluster = Cluster::start(2, "handshake_ms = 200");
    let mut others = Others::new(&cluster);
    let mut silent = vec![connect(&cluster.socket(1)), connect(&cluster.spread(1))];
    let mut half = connect(&cluster.socket(1));
    half.write_all(&hello("half")[..7]).expect("written");
    silent.push(half);
    let mut asks_on = connect(&cluster.admin(1));
    let mut answer = String::new();
    asks_on
        .read_to_string(&mut answer)
        .expect("a line, and the end");
    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0; 100]).expect("in time"), 0);
    }
    let counters = &status(&cluster, 1)["counters"];
    assert!(counters["clients_silent"].as_u64() >= Some(3), "{counters}");
    others.go_on(50);
}

#[test]
fn clients_that_were_let_in_do_not_push_out_who_is_still_coming() {
    let cluster = Cluster::start(1, "handshakes = 2\nhandshake_ms = 60000");
    let mut slow = connect(&cluster.socket(1));
    let others = ["a", "b", "c", "d"].map(|name| raw(&cluster, 1, name));
    slow.write_all(&hello("slow")).expect("still listened to");
    let welcome = reply(&mut slow, &mut Inbox::new(MAX_REPLY_BYTES));
    assert!(matches!(welcome, Reply::Welcome(_)), "{welcome:?}");
    drop(others);
}

#[test]
fn silent_clients_that_take_all_descriptors_do_not_keep_others_out_for_long() {
    let cluster = Cluster::limited(1, "handshake_ms = 200", Some(64));
    // The last of them wait for a descriptor, and the client behind them.
    let silent: Vec<_> = (0..100).map(|_| connect(&cluster.socket(1))).collect();
    let mut late = client(&cluster, 1, "late");
    late.send("#late#n1", b"it works").expect("sent");
    assert_eq!(next_text(&mut late), "it works");
    drop(silent);
}

#[test]
fn one_that_dies_in_the_middle_of_a_message_has_sent_nothing_of_it() {
    let cluster = Cluster::start(2, "");
    let mut others = Others::new(&cluster);
    for at in 0..20 {
        let (mut stream, _) = raw(&cluster, 1, "dying");
        let send = Request::Send(Send {
            service: Service::Agreed,
            self_discard: false,
            kind: 0,
            to: vec![Destination::Group(group("g"))],
            payload: vec![b'x'; 50_000].into(),
        });
        let bytes = frame(&send);
        stream.write_all(&bytes[..1 + at * 2_600]).expect("written");
        drop(stream);
        others.go_on(2);
    }
    // Its name is free as soon as the daemon has noticed.
    let until = Instant::now() + PATIENCE;
    while status(&cluster, 1)["counters"]["clients_now"] != 1 {
        assert!(Instant::now() < until, "it never goes");
    }
    client(&cluster, 1, "dying");
}

#[test]
fn a_flood_of_connections_does_not_keep_anybody_out() {
    let cluster = Cluster::start(2, "");
    let mut others = Others::new(&cluster);
    let mut flood = VecDeque::new();
    for at in 0..2000 {
        let mut stream = connect(&if at % 2 == 0 {
            cluster.socket(1)
        } else {
            cluster.spread(1)
        });
        if at % 3 == 0 {
            // Some begin to say something; the daemon may have given up on them.
            let _ = stream.write_all(&hello("flood")[..5]);
        }
        flood.push_back(stream);
        if flood.len() > 400 {
            flood.pop_front();
        }
        if at % 50 == 0 {
            others.go_on(3);
            let mut late = client(&cluster, 1, "late");
            late.send("#late#n1", b"it works").expect("sent");
            assert_eq!(next_text(&mut late), "it works");
            late.close().expect("the daemon closes");
        }
    }
    others.go_on(50);
    let counters = &status(&cluster, 1)["counters"];
    assert!(
        counters["clients_silent"].as_u64() > Some(1000),
        "{counters}"
    );
}
