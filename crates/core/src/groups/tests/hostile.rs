//! Arbitrary bytes of other daemons: nothing panics, and the memory for them is bounded.

use alloc::vec::Vec;
use bytes::Bytes;

use super::cluster::{Cluster, group};
use crate::contract::Message;
use crate::groups::{Limits, OVERHEAD_BYTES};

const LARGE: usize = 2_000;

/// The same numbers for the same seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// All that they submit, which is delivered to both.
fn record(cluster: &mut Cluster, all: &mut Vec<Message>) {
    // What waits for what the other tells comes the second time.
    for at in [1, 2, 1, 2] {
        while let Some(message) = cluster.submitted(at) {
            cluster.deliver(&[1, 2], &message);
            all.push(message);
        }
    }
}

/// One message of each kind, and more: what two daemons that meet tell each other, and what clients ask for.
fn recorded(cluster: &mut Cluster) -> Vec<Message> {
    let mut all = Vec::new();
    cluster.join(1, "a", "i");
    cluster.join(2, "b", "i");
    cluster.exchange(&[1, 2]);
    cluster.transitional(&[1], 9, 10);
    cluster.transitional(&[2], 9, 10);
    cluster.regular(&[1, 2], 10);
    for (at, client) in [(1, "a"), (2, "b")] {
        cluster.join(at, client, "g");
        cluster.join(at, client, "h");
        cluster.leave(at, client, "h");
        cluster.send(at, client, "g", "text");
    }
    record(cluster, &mut all);
    cluster.send(1, "a", "g", &"x".repeat(LARGE));
    cluster.send(2, "b", "g", &"y".repeat(LARGE));
    record(cluster, &mut all);
    all
}

/// The message with some bytes changed, most often, and sometimes its end cut off.
fn damaged(message: &Message, chance: &mut Chance) -> Message {
    let mut bytes = message.payload.to_vec();
    for _ in 0..chance.below(4) {
        // The first bytes say the most; the ring is left alone, since it is looked at first.
        let at = [1, 20 + chance.below(40), chance.below(bytes.len())][chance.below(3)];
        if let Some(byte) = bytes.get_mut(at).filter(|_| !(2..20).contains(&at)) {
            *byte = [0, 1, 0x7f, 0xff, chance.below(256) as u8][chance.below(5)];
        }
    }
    if chance.below(8) == 0 {
        bytes.truncate(chance.below(bytes.len() + 1));
    }
    Message {
        payload: Bytes::from(bytes),
        ..message.clone()
    }
}

#[test]
fn no_bytes_of_another_daemon_make_one_panic_or_keep_more_than_it_may() {
    let limits = Limits {
        backlog_bytes: 1_000,
        payload_bytes: LARGE,
        piece_bytes: 100,
        ..Limits::default()
    };
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let mut cluster = Cluster::limited(2, limits);
        let all = recorded(&mut cluster);
        for kind in 1..=6 {
            let mut kinds = all.iter().map(|message| message.payload[1]);
            // Nobody disconnects: that is a join without its end.
            assert!(kind == 4 || kinds.any(|found| found == kind), "{kind}");
        }
        let mut ring = 10;
        for _ in 0..100 {
            match chance.below(12) {
                0 => cluster.transitional(&[2], ring, ring + 1),
                1 => {
                    ring += 1;
                    cluster.regular(&[1, 2], ring);
                }
                2 => while cluster.submitted(2).is_some() {},
                3 => cluster.hush(),
                _ => {
                    let any = &all[chance.below(all.len())];
                    let mut message = damaged(any, &mut chance);
                    let mut bytes = message.payload.to_vec();
                    if let Some(place) = bytes.get_mut(2) {
                        *place = ring as u8;
                    }
                    message.payload = Bytes::from(bytes);
                    cluster.deliver(&[2], &message);
                }
            }
            let kept = cluster.daemon(2).unfinished_bytes();
            assert!(kept <= 2 * (LARGE + OVERHEAD_BYTES), "seed {seed}: {kept}");
            cluster.daemon(2).list_members(&group("g"));
        }
    }
}
