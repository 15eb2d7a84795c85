//! Reads are as new as any answer that a client was told before, whichever process is asked; and a store that waits for
//! nothing is found out.

#![cfg(feature = "mutants")]

mod common;

use std::net::SocketAddr;

use rota_core::contract::NodeId;
use rota_kv::mutants::{Mutant, set};
use rota_kv::{Kv, KvConfig};
use rota_node::VoteStorage;
use rota_resp::Reply;

use common::{Client, tcp};

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

#[test]
fn nothing_old_is_read_but_where_a_look_waits_for_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = (directory.path(), VoteStorage::Memory);
    let config = KvConfig::loopback((1, 3), PORT, of);
    for name in ["votes", "states"] {
        std::fs::create_dir_all(directory.path().join(name)).expect("it is ours");
    }
    let node = |number| NodeId::new(number).expect("not 0");
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
    set(Some(Mutant::T04));
    let found = stale(&mut clients);
    set(None);
    println!("T04: round {found:?}");
    assert!(found.is_some());
    drop(processes);
}
