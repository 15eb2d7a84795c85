//! A node's part in a run in which one of the nodes is killed: how much it may submit before and after,
//! what it notes, and when it has everything.

use std::collections::VecDeque;

use rota_core::contract::{Configuration, ConfigurationKind, Time};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::source::share_of;
use super::tally::hex;

/// Shorter times without deliveries are not worth noting.
const PAUSE_NANOS: u64 = 1_000_000;
/// Pauses kept from before the kill is noticed, and from after it: the one that it makes is the last
/// of the first or among the first of the others.
const PAUSES: usize = 64;
/// Views to tell of.
const VIEWS: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Witness {
    me: u16,
    victim: u16,
    messages: u64,
    nodes: u64,
    /// The messages of each node, from node 1 on.
    senders: Vec<Sender>,
    /// Nodes of the regular configuration delivered last.
    members: Vec<u16>,
    /// All nodes were on one ring.
    was_whole: bool,
    configurations: u64,
    /// The time of the last delivery; before that, of the begin of the run.
    last: Option<Time>,
    /// Messages were delivered since the last flush.
    fresh: bool,
    pauses: VecDeque<(u64, u64)>,
    /// The views after that of all nodes.
    views: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    messages: u64,
    order: Sha256,
}

/// The notes of a survivor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// The number of messages of each node, and the digest of them in their order, from node 1 on.
    pub senders: Vec<(u64, String)>,
    /// The spans in which it got nothing, from and to, on the host's monotonic clock in nanoseconds.
    pub pauses: Vec<(u64, u64)>,
    /// Views after the first of all nodes.
    pub reconfigurations: u64,
    /// The members of the first of them.
    pub views: Vec<String>,
}

impl Witness {
    /// For node `me` of `nodes`, which send `messages` together.
    pub fn new(me: u16, victim: u16, messages: u64, nodes: u64) -> Self {
        Self {
            me,
            victim,
            messages,
            nodes,
            senders: (0..nodes).map(|_| Sender::default()).collect(),
            members: Vec::new(),
            was_whole: false,
            configurations: 0,
            last: None,
            fresh: false,
            pauses: VecDeque::new(),
            views: Vec::new(),
        }
    }

    fn share(&self, node: u16) -> u64 {
        share_of(self.messages, node, self.nodes)
    }

    fn delivered_of(&self, node: u16) -> u64 {
        let sender = self.senders.get(usize::from(node) - 1);
        sender.map_or(0, |sender| sender.messages)
    }

    /// Whether the ring goes on without the victim.
    fn goes_on(&self) -> bool {
        self.was_whole && !self.members.contains(&self.victim)
    }

    /// The number of its own messages that it may submit by now. The victim never gets to its second half; the others
    /// keep a quarter back, so that the kill comes while there is much to send.
    pub fn allowance(&self) -> u64 {
        let share = self.share(self.me);
        if self.me == self.victim {
            share / 2
        } else if self.goes_on() {
            share
        } else {
            share - share.div_ceil(4)
        }
    }

    /// Whether this is the victim, and it is time.
    pub fn is_midway(&self) -> bool {
        self.me == self.victim
            && self.last.is_some()
            && self.delivered_of(self.me) >= self.share(self.me) / 4
    }

    /// Whether this is a survivor that has everything of all members of its configuration.
    pub fn is_done(&self) -> bool {
        let whole = |node: &u16| self.delivered_of(*node) == self.share(*node);
        self.me != self.victim && self.goes_on() && self.members.iter().all(whole)
    }

    /// The nodes may submit.
    pub fn begin(&mut self, now: Time) {
        self.last.get_or_insert(now);
    }

    /// A message of `node` was delivered.
    pub fn on_message(&mut self, node: u16, payload: &[u8]) {
        self.fresh = true;
        if let Some(sender) = self.senders.get_mut(usize::from(node) - 1) {
            sender.messages += 1;
            sender.order.update(payload);
            sender.order.update(b"\n");
        }
    }

    /// The members of the group from here on.
    pub fn saw(&mut self, view: &str) {
        if self.was_whole && self.views.len() < VIEWS {
            self.views.push(view.to_owned());
        }
    }

    /// The configuration has changed.
    pub fn on_configuration(&mut self, configuration: &Configuration) {
        if matches!(configuration.kind, ConfigurationKind::Regular(_)) {
            let members = configuration.members.iter();
            self.members = members.map(|member| member.node.get()).collect();
            self.configurations += u64::from(self.was_whole);
            self.was_whole |= self.members.len() as u64 == self.nodes;
        }
    }

    /// Everything that was there has been delivered.
    pub fn on_flush(&mut self, now: Time) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        let last = self.last.replace(now).unwrap_or(now);
        if now.since(last) < PAUSE_NANOS {
            return;
        }
        if !self.goes_on() && self.pauses.len() == PAUSES {
            self.pauses.pop_front();
        }
        if self.pauses.len() < 2 * PAUSES {
            self.pauses.push_back((last.0, now.0));
        }
    }

    /// The notes so far.
    pub fn seen(&self) -> Seen {
        let digest = |sender: &Sender| {
            let order = sender.order.clone().finalize();
            (sender.messages, hex(&order))
        };
        Seen {
            senders: self.senders.iter().map(digest).collect(),
            pauses: self.pauses.iter().copied().collect(),
            reconfigurations: self.configurations,
            views: self.views.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Incarnation, NodeId, Process, RingId};

    fn ring(nodes: &[u16]) -> Configuration {
        let process = |node: &u16| Process {
            node: NodeId::new(*node).expect("not 0"),
            incarnation: Incarnation(1),
        };
        let members: Vec<Process> = nodes.iter().map(process).collect();
        let id = RingId {
            ring_seq: 4,
            rep: members[0].node,
            incarnation: Incarnation(1),
        };
        Configuration {
            kind: ConfigurationKind::Regular(id),
            members,
        }
    }

    #[test]
    fn a_survivor_keeps_something_back_and_waits_for_all_of_its_ring() {
        // Shares of 4, 3 and 3.
        let mut witness = Witness::new(2, 1, 10, 3);
        witness.on_configuration(&ring(&[2]));
        assert_eq!((witness.allowance(), witness.is_done()), (2, false));
        witness.on_configuration(&ring(&[1, 2, 3]));
        assert_eq!((witness.allowance(), witness.is_done()), (2, false));
        (0..3).for_each(|_| witness.on_message(3, b"x"));
        witness.on_message(1, b"x");
        witness.on_configuration(&ring(&[2, 3]));
        assert_eq!((witness.allowance(), witness.is_done()), (3, false));
        (0..3).for_each(|_| witness.on_message(2, b"x"));
        assert!(witness.is_done());
        let seen = witness.seen();
        assert_eq!(seen.reconfigurations, 1);
        assert_eq!(seen.senders.iter().map(|s| s.0).sum::<u64>(), 7);
    }

    #[test]
    fn the_victim_is_midway_before_it_has_sent_its_half() {
        let mut witness = Witness::new(1, 1, 16, 2);
        witness.on_configuration(&ring(&[1, 2]));
        assert_eq!(witness.allowance(), 4);
        witness.on_message(1, b"x");
        assert!(!witness.is_midway());
        witness.begin(Time(1));
        assert!(!witness.is_midway());
        witness.on_message(1, b"y");
        assert!(witness.is_midway());
    }

    #[test]
    fn pauses_are_between_messages() {
        let mut witness = Witness::new(2, 1, 10, 2);
        let ms = |count: u64| Time(count * 1_000_000);
        witness.begin(ms(10));
        witness.on_flush(ms(20));
        witness.on_message(2, b"x");
        witness.on_flush(ms(30));
        witness.on_message(2, b"x");
        witness.on_flush(Time(ms(30).0 + 1));
        assert_eq!(witness.seen().pauses, [(ms(10).0, ms(30).0)]);
    }
}
