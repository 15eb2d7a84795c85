//! The senders and the receivers of messages that arrive, with the times.

use std::collections::BTreeSet;

use rota_check::event::{Event, EventKind};
use rota_sim::observe::{Finding, Observer};
use rota_sim::plan::MILLIS;

use super::{ENDS, LOOKS};

/// A node is served where it gets something of each other one in each of these. Nodes wait longer for a token that may be lost.
const SLOT: u64 = 300 * MILLIS;

/// The times at which each node got something of each other one.
#[derive(Default)]
pub struct Served {
    /// Slot, receiver, sender.
    got: BTreeSet<(u64, usize, usize)>,
}

impl Observer for Served {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        if let EventKind::Delivered(placed) = &event.kind {
            let (to, from) = (event.process.node, placed.message.process.node);
            let [to, from] = [to, from].map(|node| usize::from(node.get()) - 1);
            self.got.insert((event.time.0 / SLOT, to, from));
        }
        Ok(())
    }
}

impl Served {
    /// The part of the time in which all but one get what all but that one say, in thousandths.
    pub fn together(&self, nodes: usize, ill: usize) -> u64 {
        let healthy: Vec<usize> = (0..nodes).filter(|node| *node != ill).collect();
        let slots = LOOKS / SLOT..ENDS / SLOT;
        let all = slots.end - slots.start;
        let has_all = |slot: u64, to: usize| {
            let mut from = healthy.iter();
            from.all(|from| self.got.contains(&(slot, to, *from)))
        };
        let is_good = |slot: &u64| healthy.iter().all(|to| has_all(*slot, *to));
        slots.filter(is_good).count() as u64 * 1000 / all
    }
}
