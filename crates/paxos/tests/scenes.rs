//! Scenarios of Paxos along a ring (`testdata/paxos`) and with multicast (`testdata/ring-paxos`). The commands are in
//! `crates/core/tests/scene/mod.rs`.

#[path = "../../core/tests/scene/mod.rs"]
mod scene;
#[path = "../../core/tests/script/mod.rs"]
mod script;

use bytes::Bytes;
use rota_core::contract::{Incarnation, LogId, NodeId, Process};
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::{Multicast, Record, Records, Said, URing, URingConfig, Word, decode};
use rota_paxos::{VOTES_LOG, VoteHead};
use scene::{Kind, Scene};

fn settings(nodes: &[NodeId]) -> URingConfig {
    let timers = Timers::derive(Timing::Default, nodes.len());
    URingConfig::new(nodes.to_vec(), &timers)
}

fn along_a_ring(nodes: &[NodeId], _: NodeId) -> URing {
    URing::new(settings(nodes))
}

fn with_multicast(nodes: &[NodeId], _: NodeId) -> URing {
    let multicast = Some(Multicast {
        cluster: 1,
        datagram_bytes: 1472,
        seal_bytes: 4,
        capacity: None,
    });
    URing::new(URingConfig {
        multicast,
        ..settings(nodes)
    })
}

/// The strongest of what a message has: a proposal before votes, votes before values.
fn message(message: &[u8]) -> &'static str {
    let (_, said) = decode(Bytes::copy_from_slice(message)).expect("it sends valid messages");
    match said {
        Said::Word(word) => match word {
            Word::Hello(_) => "hello",
            Word::Known(_) => "configuration",
            Word::Ask(..) => "ask",
            Word::Answer(..) => "answer",
            Word::Prepare(..) => "1A",
            Word::Promise(..) => "1B",
            Word::ResumeFrom(..) => "resume",
            Word::Fetch(..) => "fetch",
            Word::Chosen(_) => "chosen",
            Word::Forgotten(..) => "snapshot",
            Word::Leaving => "leaving",
            Word::Want(_) => "want",
            Word::Value(..) => "value",
            Word::Need(_) => "need",
            Word::Watch(_) => "watch",
            Word::Decided(_) => "decided",
            Word::Offer(..) => "offer",
        },
        Said::Batch(_, body) => batch(body),
    }
}

fn batch(body: Bytes) -> &'static str {
    // The names of processes do not matter here, but have to be there.
    let anybody = Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(1),
    };
    let ring = [anybody; 8];
    let records: Vec<Record> = Records::new(body, &ring)
        .map(|record| record.expect("records"))
        .collect();
    let has = |is: fn(&Record) -> bool| records.iter().any(is);
    if has(|record| matches!(record, Record::Proposal(_))) {
        "2A"
    } else if has(|record| matches!(record, Record::Voted(..))) {
        "2B"
    } else if has(|record| matches!(record, Record::Value(..))) {
        "value"
    } else {
        "heartbeat"
    }
}

/// A vote takes the place of earlier votes for its instances.
fn store(records: &mut scene::host::Records, log: LogId, position: u64, bytes: Bytes) {
    if log == VOTES_LOG {
        let end = |at: u64, vote: &[u8]| {
            let head = VoteHead::read(vote).expect("a vote has a head");
            at + head.span
        };
        let behind = end(position, &bytes);
        let earlier: Vec<(u64, Bytes)> = records
            .range((log, 0)..(log, behind))
            .filter(|((_, at), vote)| end(*at, vote) > position)
            .map(|((_, at), vote)| (*at, vote.clone()))
            .collect();
        for (at, vote) in earlier {
            let last = end(at, &vote);
            records.remove(&(log, at));
            if at < position {
                let part = VoteHead::with_span(vote.clone(), position - at);
                records.insert((log, at), part.expect("a vote has a head"));
            }
            if last > behind {
                let part = VoteHead::with_span(vote, last - behind);
                records.insert((log, behind), part.expect("a vote has a head"));
            }
        }
    }
    records.insert((log, position), bytes);
}

fn scene(make: fn(&[NodeId], NodeId) -> URing) -> Scene<URing> {
    Scene::new(Kind {
        make,
        datagram: |_| "part",
        message,
        store,
        delivery: scene::describe,
    })
}

#[test]
fn paxos_goes_as_written() {
    let folder = env!("CARGO_MANIFEST_DIR");
    script::run_all(folder, "paxos", 6, || scene(along_a_ring), Scene::run);
}

#[test]
fn paxos_with_multicast_goes_as_written() {
    let folder = env!("CARGO_MANIFEST_DIR");
    script::run_all(
        folder,
        "ring-paxos",
        3,
        || scene(with_multicast),
        Scene::run,
    );
}
