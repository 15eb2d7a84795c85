//! What tests of several rings have in common.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::time::Duration;

use rota_check::multicast::{self, MulticastReport};
use rota_multiring::Place;
use rota_node::{RingsDelivery, RingsNode};

const PATIENCE: Duration = Duration::from_secs(30);

/// Takes messages until there are so many; their places, and their bytes.
pub fn take(node: &RingsNode, count: usize) -> Vec<(Place, Vec<u8>)> {
    let mut all = Vec::new();
    while all.len() < count {
        match node.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Message(place, message)) => {
                all.push((place, message.payload.to_vec()));
            }
            Ok(RingsDelivery::Configuration(..)) => {}
            other => panic!("{other:?}, {} of {count}; {:#?}", all.len(), node.status()),
        }
    }
    all
}

/// The verdict on the traces of three nodes, in which nothing is wrong.
pub fn judged(dir: &Path) -> MulticastReport {
    let traces = [1, 2, 3].map(|node| dir.join(format!("{node}.jsonl")));
    let lines = multicast::read(&traces).expect("they are whole");
    let report = multicast::check_multicast(&lines);
    assert!(report.holds(), "{:?}", report.violations);
    report
}
