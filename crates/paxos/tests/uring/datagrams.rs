//! Datagrams between nodes: any may be lost, late, or come twice. They have dice of their own, so that worlds without
//! them are as they were.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Burst, Channel, Class, Input};
use rota_paxos::uring::Multicast;

use super::world::{MILLI, World};

/// What a node that does nothing keeps for later.
const KEPT: usize = 64;

#[derive(Default)]
pub struct Datagrams {
    dice: u64,
    /// Of a hundred so many are lost.
    pub lost: u64,
    /// Of a hundred so many are late.
    pub late: u64,
    count: u64,
    /// By the time they arrive: to whom, and what.
    under_way: BTreeMap<(u64, u64), (usize, Bytes)>,
}

impl Datagrams {
    pub fn new(seed: u64) -> Self {
        let mut datagrams = Self {
            dice: seed ^ 0x5bd1_e995,
            ..Self::default()
        };
        datagrams.lost = [0, 1, 5, 30][datagrams.below(4) as usize];
        datagrams.late = [0, 5][datagrams.below(2) as usize];
        datagrams
    }

    fn below(&mut self, end: u64) -> u64 {
        super::world::roll(&mut self.dice) % end
    }

    pub fn next_time(&self) -> Option<u64> {
        let first = self.under_way.first_key_value();
        first.map(|((at, _), _)| *at)
    }

    fn send(&mut self, now: u64, to: usize, datagram: &[u8]) {
        if self.below(100) < self.lost {
            return;
        }
        let is_late = self.below(100) < self.late;
        let most = if is_late { 30 * MILLI } else { MILLI / 10 };
        for _ in 0..=u64::from(self.below(50) == 0) {
            let at = now + 20_000 + self.below(most);
            self.count += 1;
            let bytes = Bytes::copy_from_slice(datagram);
            self.under_way.insert((at, self.count), (to, bytes));
        }
    }
}

/// Values of the largest size take four datagrams.
pub const SETTINGS: Multicast = Multicast {
    cluster: 3,
    datagram_bytes: 100,
    seal_bytes: 4,
    capacity: None,
};

impl World {
    pub fn multicast(&mut self, from: usize, burst: &Burst) {
        let others = (0..self.nodes.len()).filter(|to| *to != from);
        let others: Vec<usize> = others.collect();
        for to in others {
            if self.links.between(from, to).cut || self.links.way(from, to).held > self.now {
                continue;
            }
            for datagram in burst.datagrams() {
                assert!(datagram.len() <= SETTINGS.datagram_bytes);
                self.datagrams.send(self.now, to, datagram);
            }
        }
    }

    pub fn move_datagrams(&mut self) {
        while let Some(first) = self.datagrams.under_way.first_entry() {
            if first.key().0 > self.now {
                return;
            }
            let (to, bytes) = first.remove();
            if !self.is_awake(to) {
                self.keep(to, bytes);
                continue;
            }
            let segment = bytes.len();
            self.handle(
                to,
                Input::Datagrams {
                    class: Class::Data,
                    channel: Channel::default(),
                    bytes,
                    segment,
                },
            );
        }
    }

    /// It does nothing now: its buffer takes some.
    fn keep(&mut self, to: usize, bytes: Bytes) {
        let Some(life) = &self.nodes[to].life else {
            return;
        };
        let until = life.stopped;
        let waiting = self.datagrams.under_way.values();
        if waiting.filter(|(other, _)| *other == to).count() < KEPT {
            self.datagrams.count += 1;
            let key = (until, self.datagrams.count);
            self.datagrams.under_way.insert(key, (to, bytes));
        }
    }
}
