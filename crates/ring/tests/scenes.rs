//! Scenarios of membership (`testdata/membership`) and of groups over a ring (`testdata/groups`). The commands are in
//! `crates/core/tests/scene/mod.rs`; groups have these as well:
//!
//! | command | does |
//! |---|---|
//! | `client A anna` | a client connects to A's daemon |
//! | `join A anna chat`, `part A anna chat` | it asks to be in a group, or to leave one |
//! | `send A anna chat hello` | it sends a message to a group |
//! | `quit A anna` | it disconnects |

#[path = "../../core/tests/scene/mod.rs"]
mod scene;
#[path = "../../core/tests/script/mod.rs"]
mod script;

mod grouped;

use bytes::Bytes;
use grouped::Grouped;
use rota_core::contract::NodeId;
use rota_ring::wire::{Packet, decode};
use rota_ring::{RingConfig, RingEngine};
use scene::{Kind, Scene};

fn engine(nodes: &[NodeId], _: NodeId) -> RingEngine {
    RingEngine::new(RingConfig::new(1, nodes.to_vec())).expect("a valid ring")
}

fn word(datagram: &[u8]) -> &'static str {
    match decode(Bytes::copy_from_slice(datagram)).expect("engines send valid packets") {
        Packet::Data(data) if data.encapsulated => "recovered",
        Packet::Data(_) => "data",
        Packet::Token(token) if token.recovering => "recovery-token",
        Packet::Token(_) => "token",
        Packet::Hurry(_) => "hurry",
        Packet::Join(_) => "join",
        Packet::Commit(_) => "commit",
        Packet::MergeDetect(_) => "presence",
    }
}

fn ring() -> Scene<RingEngine> {
    Scene::new(Kind {
        make: engine,
        datagram: word,
        message: |_| "",
        store: scene::host::put,
        delivery: scene::describe,
    })
}

fn groups() -> Scene<Grouped> {
    Scene::new(Kind {
        make: |nodes, me| Grouped::new(engine(nodes, me)),
        datagram: word,
        message: |_| "",
        store: scene::host::put,
        delivery: grouped::describe,
    })
}

#[test]
fn membership_goes_as_written() {
    script::run_all(
        env!("CARGO_MANIFEST_DIR"),
        "membership",
        6,
        ring,
        Scene::run,
    );
}

#[test]
fn groups_go_as_written() {
    script::run_all(
        env!("CARGO_MANIFEST_DIR"),
        "groups",
        6,
        groups,
        grouped::run,
    );
}
