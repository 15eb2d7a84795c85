//! The nodes of a cluster are changed while its daemons run.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_client::Event;
use rota_daemon::MemberReply;
use rota_net::{KeyRing, NodeAddress, Transport};
use rota_node::{EngineName, NodeConfig};

use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, member, next};
use crate::operate::rota;

/// What `rota member` answers at daemon `id`.
fn asked(cluster: &Cluster, id: u16, arguments: &[&str]) -> MemberReply {
    let socket = cluster.admin(id).display().to_string();
    let all = [&["member"], arguments, &["--json", "--socket", &socket]].concat();
    let output = rota(&all);
    let line = String::from_utf8_lossy(&output.stdout);
    let reply: MemberReply =
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.success(), reply.done, "{reply:?}");
    reply
}

pub fn done(cluster: &Cluster, id: u16, arguments: &[&str]) -> MemberReply {
    let reply = asked(cluster, id, arguments);
    assert!(reply.done, "{reply:?}");
    reply
}

pub fn refused(cluster: &Cluster, id: u16, arguments: &[&str], words: &str) {
    let reply = asked(cluster, id, arguments);
    assert!(!reply.done && reply.text.contains(words), "{reply:?}");
}

/// The arguments that say where node `id` is: at ports that no other has.
fn at(node: &NodeAddress) -> [String; 6] {
    [
        node.id.to_string(),
        node.address.to_string(),
        "--data-port".to_owned(),
        node.data_port.to_string(),
        "--token-port".to_owned(),
        node.token_port.to_string(),
    ]
}

fn change(cluster: &Cluster, by: u16, what: &str, node: &NodeAddress) -> MemberReply {
    let place = at(node);
    let place = place.iter().map(String::as_str);
    let arguments: Vec<&str> = std::iter::once(what).chain(place).collect();
    done(cluster, by, &arguments)
}

fn configured(cluster: &Cluster) -> NodeConfig {
    NodeConfig::load(&cluster.dir().join("rota.toml")).expect("the common one")
}

/// A place that no node of the cluster has: the `nth` behind theirs.
fn free_place(cluster: &Cluster, id: u16, nth: u16) -> NodeAddress {
    let mut node = configured(cluster).nodes.pop().expect("a node");
    node.data_port += 2 * nth;
    node.token_port += 2 * nth;
    node.id = id;
    node.name = None;
    node
}

/// Waits until daemon `id` has list `number` with these nodes, all of which are on the ring but those in `away`.
fn await_list(cluster: &Cluster, id: u16, number: u64, nodes: &[u16], away: &[u16]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = done(cluster, id, &["list"]);
        let listed: Vec<u16> = reply.nodes.iter().map(|node| node.id).collect();
        let missing = reply.nodes.iter().filter(|node| !node.on_ring);
        let missing: Vec<u16> = missing.map(|node| node.id).collect();
        if reply.number == number && listed == nodes && missing == away {
            return;
        }
        assert!(Instant::now() < until, "daemon {id}: {reply:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Clients of two daemons that send all the time, and others that hear all of it.
pub struct Load {
    stop: Arc<AtomicBool>,
    speakers: Vec<JoinHandle<usize>>,
    listeners: Vec<JoinHandle<Vec<String>>>,
}

const LOADED: [u16; 2] = [1, 2];
/// The messages that each sends, at least, however soon the rest is over.
const LEAST: usize = 300;

impl Load {
    pub fn start(cluster: &Cluster) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let listen = |id: u16| {
            let mut client = member(cluster, id, "ear");
            client.join("load").expect("it joins");
            while !matches!(next(&mut client), Event::View(_)) {}
            thread::spawn(move || {
                let (mut texts, mut ends) = (Vec::new(), 0);
                while ends < LOADED.len() {
                    if let Event::Message(message) = next(&mut client) {
                        let text = String::from_utf8_lossy(&message.payload).into_owned();
                        ends += usize::from(text.ends_with("end"));
                        texts.push(text);
                    }
                }
                texts
            })
        };
        let listeners = LOADED.map(listen).into();
        let speak = |id: u16| {
            let mut client = client(cluster, id, "mouth");
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) || count < LEAST {
                    let text = format!("{id} {count}");
                    client.send("load", text.as_bytes()).expect("it is sent");
                    count += 1;
                    thread::sleep(Duration::from_micros(500));
                }
                let end = format!("{id} end");
                client.send("load", end.as_bytes()).expect("it is sent");
                client.close().expect("all of it is taken");
                count
            })
        };
        let speakers = LOADED.map(speak).into();
        Self {
            stop,
            speakers,
            listeners,
        }
    }

    /// All that was sent has come to all, in one order.
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let counts: Vec<usize> = self.speakers.into_iter().map(joined).collect();
        let heard: Vec<Vec<String>> = self.listeners.into_iter().map(joined).collect();
        assert!(heard[0] == heard[1], "two orders");
        for (id, count) in LOADED.into_iter().zip(counts) {
            let mine = |text: &&String| text.starts_with(&format!("{id} "));
            let texts: Vec<&String> = heard[0].iter().filter(mine).collect();
            assert_eq!(texts.len(), count + 1, "of {id}");
            for (at, text) in texts[..count].iter().enumerate() {
                assert_eq!(**text, format!("{id} {at}"));
            }
        }
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("no panic")
}

fn sealed(config: &mut NodeConfig, dir: &std::path::Path) {
    let key = dir.join("cluster.key");
    let made = KeyRing::generate().and_then(|ring| ring.create(&key));
    made.expect("a key file");
    config.insecure = false;
    config.key_file = Some(key);
}

#[test]
fn a_node_is_added_under_load_and_all_remember_it() {
    let mut cluster = Cluster::keeping(3, sealed);
    await_list(&cluster, 1, 0, &[1, 2, 3], &[]);
    let load = Load::start(&cluster);
    let four = free_place(&cluster, 4, 1);
    let reply = change(&cluster, 1, "add", &four);
    assert_eq!(reply.text, "this is list 1 of the cluster's nodes");
    cluster.give(4, |config| config.nodes.push(four));
    cluster.start_next();
    for id in 1..=4 {
        await_list(&cluster, id, 1, &[1, 2, 3, 4], &[]);
    }
    let mut ann = client(&cluster, 4, "ann");
    let mut bob = member(&cluster, 3, "bob");
    bob.join("talk").expect("it joins");
    while !matches!(next(&mut bob), Event::View(_)) {}
    ann.send("talk", b"hello").expect("sent");
    while !matches!(next(&mut bob), Event::Message(message) if *message.payload == *b"hello") {}
    load.end();

    // Its file still says three.
    cluster.restart(2);
    await_list(&cluster, 2, 1, &[1, 2, 3, 4], &[]);
    // All at once, so that nobody could tell another.
    (1..=4).for_each(|id| cluster.kill(id));
    (1..=4).for_each(|id| cluster.restart(id));
    for id in 1..=4 {
        await_list(&cluster, id, 1, &[1, 2, 3, 4], &[]);
    }
}

#[test]
fn a_node_is_replaced_under_load_and_one_that_was_away_learns_it() {
    let unicast = |config: &mut NodeConfig, dir: &std::path::Path| {
        sealed(config, dir);
        config.transport = Transport::Unicast;
    };
    let mut cluster = Cluster::keeping(4, unicast);
    await_list(&cluster, 1, 0, &[1, 2, 3, 4], &[]);
    let load = Load::start(&cluster);
    let mut elsewhere = free_place(&cluster, 3, 1);
    elsewhere.address = Ipv4Addr::new(127, 0, 0, 33).into();
    let place = at(&elsewhere);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    refused(
        &cluster,
        1,
        &[&["replace"], &place[..]].concat(),
        "node 3 is on the ring: stop it first",
    );
    cluster.kill(3);
    // Node 4 is away meanwhile, and three of four are a majority only with it.
    await_list(&cluster, 2, 0, &[1, 2, 3, 4], &[3]);
    cluster.kill(4);
    await_list(&cluster, 2, 0, &[1, 2, 3, 4], &[3, 4]);
    refused(
        &cluster,
        2,
        &[&["replace"], &place[..]].concat(),
        "of 4 listed nodes 2 on this ring",
    );
    done(&cluster, 2, &[&["replace", "--force"], &place[..]].concat());

    // The new host has an empty disk, and is told by its file where the others are.
    let state = cluster.dir().join("state-of-the-new-host");
    std::fs::create_dir(&state).expect("a directory");
    let moved = elsewhere.clone();
    cluster.give(3, |config| {
        config.state_dir = Some(state);
        config.nodes[2] = moved;
    });
    cluster.restart(3);
    await_list(&cluster, 3, 1, &[1, 2, 3, 4], &[4]);
    // The one that was away has the old address in its file, and nothing else.
    cluster.restart(4);
    for id in 1..=4 {
        await_list(&cluster, id, 1, &[1, 2, 3, 4], &[]);
    }
    load.end();
    let reply = done(&cluster, 4, &["list"]);
    assert_eq!(reply.nodes[2].data_port, elsewhere.data_port, "{reply:?}");
    assert_eq!(reply.nodes[2].name.as_deref(), Some("n3"), "its name stays");
    cluster.restart(4);
    await_list(&cluster, 4, 1, &[1, 2, 3, 4], &[]);
}

#[test]
fn a_daemon_that_was_away_while_one_was_added_learns_it() {
    let mut cluster = Cluster::keeping(3, |_, _| ());
    await_list(&cluster, 1, 0, &[1, 2, 3], &[]);
    cluster.kill(3);
    await_list(&cluster, 1, 0, &[1, 2, 3], &[3]);
    let four = free_place(&cluster, 4, 1);
    change(&cluster, 1, "add", &four);
    cluster.give(4, |config| config.nodes.push(four));
    cluster.start_next();
    for id in [1, 2, 4] {
        await_list(&cluster, id, 1, &[1, 2, 3, 4], &[3]);
    }
    cluster.restart(3);
    for id in 1..=4 {
        await_list(&cluster, id, 1, &[1, 2, 3, 4], &[]);
    }
}

#[test]
fn a_node_is_removed_and_stays_away() {
    let mut cluster = Cluster::keeping(4, sealed);
    await_list(&cluster, 1, 0, &[1, 2, 3, 4], &[]);
    refused(
        &cluster,
        1,
        &["remove", "4"],
        "node 4 is on the ring: stop it first",
    );
    refused(&cluster, 1, &["remove", "7"], "node 7 is not listed");
    cluster.kill(4);
    await_list(&cluster, 2, 0, &[1, 2, 3, 4], &[4]);
    done(&cluster, 2, &["remove", "4"]);
    for id in 1..=3 {
        await_list(&cluster, id, 1, &[1, 2, 3], &[]);
    }
    // It still lists the others, who do not hear it.
    cluster.restart(4);
    await_list(&cluster, 4, 0, &[1, 2, 3, 4], &[1, 2, 3]);
    await_list(&cluster, 1, 1, &[1, 2, 3], &[]);

    // One that runs leaves, and does not come back.
    done(&cluster, 1, &["remove", "3", "--force"]);
    assert!(cluster.await_end(3).success());
    for id in 1..=2 {
        await_list(&cluster, id, 2, &[1, 2], &[]);
    }
    let again = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["daemon", "--node", "3", "--config"])
        .arg(cluster.file_of(3))
        .output()
        .expect("the binary");
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(
        said.contains("node 3 was removed from the cluster"),
        "{said}"
    );

    // With the file away and its place back, it is as any new host.
    let three = configured(&cluster).nodes.swap_remove(2);
    change(&cluster, 1, "add", &three);
    let kept = cluster.dir().join("state/node-3.members");
    std::fs::remove_file(kept).expect("it is there");
    cluster.restart(3);
    for id in 1..=3 {
        await_list(&cluster, id, 3, &[1, 2, 3], &[]);
    }
}

#[test]
fn a_daemon_that_is_to_remove_itself_says_that_it_has() {
    let mut cluster = Cluster::keeping(3, |_, _| ());
    await_list(&cluster, 3, 0, &[1, 2, 3], &[]);
    let reply = done(&cluster, 3, &["remove", "3", "--force"]);
    assert_eq!(reply.text, "this is list 1 of the cluster's nodes");
    assert!(cluster.await_end(3).success());
    for id in 1..=2 {
        await_list(&cluster, id, 1, &[1, 2], &[]);
    }
}

#[test]
fn daemons_that_cannot_change_their_nodes_say_why() {
    let words = [
        (EngineName::URingPaxos, "acceptors"),
        (EngineName::FastCast, "primary configurations"),
        (EngineName::Lcr, "primary configurations"),
    ];
    for (engine, words) in words {
        let cluster = match engine {
            EngineName::URingPaxos => Cluster::voting(1, engine),
            _ => Cluster::over(1, engine),
        };
        refused(&cluster, 1, &["add", "4", "127.0.0.1"], words);
        let reply = done(&cluster, 1, &["list"]);
        assert_eq!((reply.number, reply.nodes.len()), (0, 1));
    }
    let cluster = Cluster::start(1, "");
    refused(
        &cluster,
        1,
        &["remove", "1", "--force"],
        "node 1 keeps no list on disk",
    );
    let output = rota(&["member", "list", "--socket", "/nowhere/admin.sock"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/nowhere/admin.sock.members"), "{said}");
}
