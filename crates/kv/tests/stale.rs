//! Reads are as new as any answer that a client was told before, whichever process is asked; and a store that waits for
//! nothing is found out.

#![cfg(feature = "mutants")]

mod common;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_kv::mutants::{Mutant, set};
use rota_kv::{Kv, KvConfig};
use rota_node::VoteStorage;
use rota_replica::mutants::hold;
use rota_resp::Reply;

use common::{Client, PATIENCE, tcp};

const PORT: u16 = 24_600;
const ROUNDS: usize = 3_000;

/// Writes at one process and reads at another one, in turns: the round in which something old was read.
fn stale(clients: &mut [Client]) -> Option<usize> {
    (0..ROUNDS).find(|round| {
        let value = round.to_string();
        let one = round % clients.len();
        clients[one].insist(&format!("SET a {value}"));
        let other = (round + 1 + round / 3 % 2) % clients.len();
        clients[other].insist("GET a") != Reply::from(&value[..])
    })
}

/// Whether a process tells what was there before a write that another one has acknowledged. It has not applied that
/// write when it is asked, for sure.
fn tells_what_is_old(cluster: u32, clients: &mut [Client], value: &str) -> bool {
    // It has caught up, and counts as caught up for two seconds more: others are not asked in its place.
    let began = Instant::now();
    while !format!("{:?}", clients[1].say("INFO rota")).contains("open:1") {
        assert!(began.elapsed() < PATIENCE, "it does not catch up");
        thread::sleep(Duration::from_millis(20));
    }
    let (held, new) = (hold(cluster, node(2)), Reply::from(value));
    clients[0].insist(&format!("SET b {value}"));
    let told = clients[1].say("GET b");
    drop(held);
    !told.is_error() && told != new || clients[1].insist("GET b") != new
}

fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

#[test]
fn each_broken_version_of_a_look_reads_something_old() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = (directory.path(), VoteStorage::Memory);
    let config = KvConfig::loopback((1, 3), PORT, of);
    for name in ["votes", "states"] {
        std::fs::create_dir_all(directory.path().join(name)).expect("it is ours");
    }
    let start = |number| Kv::start(&config, node(number)).expect("it starts");
    let processes: Vec<Kv> = (1..=3).map(start).collect();
    let connect = |number| {
        let port = config
            .process(node(number))
            .and_then(|process| process.redis_port);
        let address = SocketAddr::from(([127, 0, 0, 1], port.expect("a port")));
        Client::new(tcp(address))
    };
    let mut clients: Vec<Client> = (1..=3).map(connect).collect();
    assert_eq!(stale(&mut clients), None);
    let cluster = config.rings.common.cluster;
    assert!(!tells_what_is_old(cluster, &mut clients, "new"));
    set(Some(Mutant::T04));
    // Where this takes more than two seconds others are asked, which know: then it is tried again.
    let found = (0..20).find(|number| {
        let value = number.to_string();
        tells_what_is_old(cluster, &mut clients, &value)
    });
    set(None);
    println!("T04: try {found:?}");
    assert!(found.is_some());
    drop(processes);
}
