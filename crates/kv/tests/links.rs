//! Links between processes of a store, on real sockets.

#[path = "common/cluster.rs"]
mod cluster;
mod common;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{Incarnation, Process};
use rota_net::RpcConnection;
use rota_node::VoteStorage;
use rota_resp::Reply;

use rota_kv::store::{Action, Answer, Answered, Batch, Operation, Outcome};
use rota_kv::{Kv, KvConfig};

use cluster::{Cluster, node};

/// The first byte of a question for the map of slots, of a command, of a question for the answer to one, and of an answer.
const MAP: u8 = 4;
const GIVE: u8 = 1;
const AWAIT: u8 = 2;
const ANSWER: u8 = 1;

/// A connection to a process, as another one makes it.
fn dial(cluster: &Cluster, (from, to): (u16, u16)) -> RpcConnection {
    let process = cluster.config.process(node(to)).expect("a process");
    let own = Process {
        node: node(from),
        incarnation: Incarnation(1),
    };
    let common = &cluster.config.rings.common;
    let keys = common.keys().expect("keys, or none");
    let address = SocketAddr::from(([127, 0, 0, 1], process.link_port));
    let (own, to) = ((own, common.cluster), (node(to), address));
    let talk = RpcConnection::dial(own, to, keys.as_ref(), Duration::from_secs(10));
    talk.expect("it is let in")
}

/// Answers that a process took no notice of for a second were dropped when 4,096 of them waited: whoever had asked was
/// told that nobody knows.
#[test]
fn no_answer_is_lost_where_many_wait() {
    const MANY: u64 = 200_000;
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 1), 29_000, directory.path());
    let (mut saying, mut hearing) = dial(&cluster, (2, 1)).split();
    let asks = thread::spawn(move || {
        for id in 1..=MANY {
            let ask = [&[MAP][..], &id.to_le_bytes()].concat();
            saying.say(&ask).expect("it is taken");
        }
        // The connection lasts as long as this half of it.
        saying
    });
    thread::sleep(Duration::from_secs(1));
    let (mut next, began) = (1, Instant::now());
    while next <= MANY {
        assert!(began.elapsed() < Duration::from_secs(60), "{next}");
        let told = hearing.hear().expect("an answer");
        if told[0] != ANSWER {
            continue;
        }
        let id = u64::from_le_bytes(told[1..9].try_into().expect("a number"));
        assert_eq!(id, next);
        next += 1;
    }
    drop(asks.join());
}

/// Where the process that was asked went before it had answered, the client was told that nobody knows, though the other
/// replicas of its partition knew.
#[test]
fn each_replica_has_the_answer_to_a_command_that_another_one_was_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 3), 29_300, directory.path());
    for number in 4..=6 {
        cluster.client(number).insist("SET foo 1");
    }
    let append = Batch {
        epoch: 1,
        operations: vec![Operation::Key(b"foo", Action::Append(b"2"))],
        ..Batch::default()
    };
    let pack = append.alone();
    let of = [77_u64, 1].map(u64::to_le_bytes).concat();
    let ask = |kind: u8, id: u64, rest: &[u8]| {
        let head = [&[kind][..], &id.to_le_bytes(), &of].concat();
        [&head[..], rest].concat()
    };
    let mut lost = dial(&cluster, (1, 4));
    lost.say(&ask(GIVE, 5, &pack)).expect("it is taken");
    let began = Instant::now();
    let mut reader = cluster.client(5);
    while reader.insist("GET foo") != Reply::from("12") {
        assert!(began.elapsed() < Duration::from_secs(30), "it is not done");
    }
    cluster.end(4);
    let mut other = dial(&cluster, (1, 5));
    other.say(&ask(AWAIT, 6, &[])).expect("it is taken");
    let told = loop {
        let told = other.hear().expect("an answer");
        if told[0] == ANSWER {
            break told;
        }
    };
    assert_eq!(told[1..9], 6_u64.to_le_bytes());
    let answered = Answered::decode(&told[9..]).expect("an answer");
    let outcome = vec![(0, Outcome::Number(2))];
    assert_eq!(answered.answers, [Answer::Outcomes(outcome)]);
}

/// Four transactions over a partition without a majority kept all others of a process waiting.
#[test]
fn who_waits_for_the_own_partition_holds_up_nobody_who_does_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = KvConfig::loopback((4, 2), 30_400, (directory.path(), VoteStorage::Async));
    config.kv.patience_ms = Some(20_000);
    let mut cluster = Cluster::begin_all(config, directory.path());
    let mut other = cluster.client(1);
    // Keys of each partition.
    assert_eq!(other.insist("MSET b 1 c 2 d 3 a 4"), Reply::OK);
    cluster.end(2);
    let mut held: Vec<_> = (0..8).map(|_| cluster.client(1)).collect();
    for client in &mut held {
        assert!(client.send(&["MSET", "b", "5", "c", "6"]));
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(other.say("MSET d 7 a 8"), Reply::OK);
    for client in &held {
        client.stream.set_nonblocking(true).expect("a socket");
        let heard = client.stream.peek(&mut [0]).map_err(|error| error.kind());
        assert_eq!(
            heard,
            Err(ErrorKind::WouldBlock),
            "nobody is told anything yet"
        );
    }
}

/// A process that has just begun, and whose clock was wrong, gave keys lives by that clock: they ended early or late.
#[test]
fn who_knows_no_other_clock_gives_no_key_an_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = (directory.path(), VoteStorage::Async);
    let mut config = KvConfig::loopback((2, 2), 22_840, of);
    config.kv.patience_ms = Some(2_000);
    let mut deaf = config.clone();
    // Its rings are as they should be, and it finds no other process where the file says that those are.
    for process in deaf.kv.process.iter_mut().skip(1) {
        process.link_port += 60;
    }
    let mut cluster = Cluster::of(config);
    let start = |config: &KvConfig, number| Kv::start(config, node(number)).expect("it starts");
    for name in ["votes", "states"] {
        std::fs::create_dir_all(directory.path().join(name)).expect("it is ours");
    }
    let _others = [2, 3, 4].map(|number| start(&cluster.config, number));
    let one = start(&deaf, 1);
    let mut client = cluster.client(1);
    // A key of its own partition.
    assert_eq!(client.insist("SET b 1"), Reply::OK);
    for line in [
        "SET b 2 EX 100",
        "EXPIRE b 100",
        "EXPIREAT b 1",
        "GETEX b PX 1",
    ] {
        let reply = client.say(line);
        let is_refused = matches!(&reply, Reply::Error(text) if text.starts_with("TRYAGAIN"));
        assert!(is_refused, "{line}: {reply:?}");
    }
    assert_eq!(client.say("GET b"), Reply::from("1"));
    assert_eq!(client.say("PERSIST b"), Reply::Integer(0), "it has no end");
    assert_eq!(client.say("SET b 3 KEEPTTL"), Reply::OK);
    drop(one);
    // With the right file it hears the others, and knows the time.
    cluster.config.kv.patience_ms = None;
    let _one = start(&cluster.config, 1);
    let mut client = cluster.client(1);
    assert_eq!(client.insist("SET b 2 EX 100"), Reply::OK);
    let lives = client.insist("TTL b");
    assert!(matches!(lives, Reply::Integer(90..=100)), "{lives:?}");
}
