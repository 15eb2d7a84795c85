//! Scenarios of views (`testdata/views`), FastCast (`testdata/fastcast`) and LCR (`testdata/lcr`). The commands are in
//! `crates/core/tests/scene/mod.rs`.

#[path = "../../core/tests/scene/mod.rs"]
mod scene;
#[path = "../../core/tests/script/mod.rs"]
mod script;

use bytes::Bytes;
use rota_core::contract::NodeId;
use rota_core::primary::Rule;
use rota_core::wire::{SEAL_BYTES, is_for_data_path};
use rota_ring::wire::{Packet, decode};
use rota_ring::{RingConfig, RingEngine};
use rota_views::fastcast::{FastCast, FastConfig, FastPacket};
use rota_views::lcr::{self, Lcr, Said};
use rota_views::{Backlog, ViewEngine, WORD_BYTES};
use scene::{Kind, Scene};

fn ring(nodes: &[NodeId]) -> RingConfig {
    let mut ring = RingConfig::new(1, nodes.to_vec());
    ring.message_bytes = WORD_BYTES;
    ring
}

/// The ring beside a data path, the rule of its views, and the backlog for frames of this size.
fn beside(nodes: &[NodeId], frame_bytes: usize) -> (RingEngine, Rule, Backlog) {
    let ring = ring(nodes);
    let backlog = Backlog::new(frame_bytes, ring.message_bytes, ring.backlog_bytes);
    let configured = nodes.to_vec();
    let engine = RingEngine::new(ring).expect("a valid ring");
    (engine, Rule::StaticMajority { configured }, backlog)
}

fn fastcast(nodes: &[NodeId], _: NodeId) -> ViewEngine<FastCast> {
    let config = FastConfig::beside(&ring(nodes));
    let (ring, rule, backlog) = beside(nodes, config.frame_bytes());
    ViewEngine::new(ring, rule, FastCast::new(config), backlog)
}

fn lcr(nodes: &[NodeId], _: NodeId) -> ViewEngine<Lcr> {
    let config = lcr::Config::default();
    let (ring, rule, backlog) = beside(nodes, config.frame_bytes);
    ViewEngine::new(ring, rule, Lcr::new(config), backlog)
}

fn datagram(datagram: &[u8]) -> &'static str {
    let bytes = Bytes::copy_from_slice(datagram);
    if is_for_data_path(datagram) {
        return match FastPacket::decode(bytes, SEAL_BYTES).expect("it sends valid packets") {
            FastPacket::Data(data) if data.head.places.is_some() => "placed",
            FastPacket::Data(_) => "data",
            FastPacket::Control(control) if control.requests.is_empty() => "ack",
            FastPacket::Control(_) => "request",
        };
    }
    match decode(bytes).expect("rings send valid packets") {
        Packet::Data(_) => "word",
        Packet::Token(_) => "token",
        Packet::Join(_) => "join",
        Packet::Commit(_) => "commit",
        Packet::Hurry(_) | Packet::MergeDetect(_) => "presence",
    }
}

fn message(message: &[u8]) -> &'static str {
    match lcr::decode(Bytes::copy_from_slice(message)).expect("it sends valid messages") {
        Said::Hello(_) => "hello",
        Said::Batch(batch) => {
            let mut records = batch.records(8).map(|record| record.expect("records"));
            match records.any(|record| matches!(record, lcr::Record::Packet(_))) {
                true => "packet",
                false => "ack",
            }
        }
    }
}

fn over_fastcast() -> Scene<ViewEngine<FastCast>> {
    Scene::new(Kind {
        make: fastcast,
        datagram,
        message: |_| "",
        store: scene::host::put,
        delivery: scene::describe,
    })
}

fn over_lcr() -> Scene<ViewEngine<Lcr>> {
    Scene::new(Kind {
        make: lcr,
        datagram,
        message,
        store: scene::host::put,
        delivery: scene::describe,
    })
}

#[test]
fn views_go_as_written() {
    let folder = env!("CARGO_MANIFEST_DIR");
    script::run_all(folder, "views", 6, over_fastcast, Scene::run);
}

#[test]
fn fastcast_goes_as_written() {
    let folder = env!("CARGO_MANIFEST_DIR");
    script::run_all(folder, "fastcast", 6, over_fastcast, Scene::run);
}

#[test]
fn lcr_goes_as_written() {
    let folder = env!("CARGO_MANIFEST_DIR");
    script::run_all(folder, "lcr", 6, over_lcr, Scene::run);
}
