//! The judge: properties that must hold, whatever happens.

use std::collections::BTreeMap;

use rota_core::contract::MessageId;
use rota_multiring::{Place, Point, Rank};

use super::host::{Life, State};
use super::partitions::PartitionOf;

/// The one order of all rings, as far as anybody has seen it.
#[derive(Default)]
pub struct Judge {
    order: BTreeMap<Place, MessageId>,
    /// Messages are numbered by ring.
    places: BTreeMap<(Rank, MessageId), Place>,
    /// What applications of a partition had at a point.
    states: BTreeMap<(usize, u64), State>,
    /// So many states were compared with another's.
    pub compared: u64,
    pub wrong: Option<String>,
}

/// What a message carries.
pub fn payload(ring: usize, id: MessageId) -> Vec<u8> {
    let mut out = Vec::new();
    let node = u64::from(id.process.node.get());
    for number in [ring as u64, node, id.process.incarnation.0, id.counter] {
        out.extend(number.to_le_bytes());
    }
    // Some are cut.
    out.resize(32 + (id.counter as usize * 37) % 500, 7);
    out
}

/// Whether a place is one of those of a partition.
fn has(partition: &PartitionOf, ranks: &[u16], place: &Place) -> bool {
    let ring = ranks.iter().position(|rank| *rank == place.rank.0);
    ring.is_some_and(|ring| partition.has(ring, place.round))
}

impl Judge {
    pub fn found(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub fn messages(&self) -> usize {
        self.order.len()
    }

    /// A process is told a message: one for each place, one place for each message, in the order of places.
    pub fn on_message(
        &mut self,
        life: &Life,
        (place, ring): (Place, usize),
        (id, bytes): (MessageId, &[u8]),
    ) {
        if bytes != payload(ring, id) {
            self.found(format!("contents: {id:?} in ring {ring}"));
        }
        if let Some((last, _)) = life.told.last().filter(|(last, _)| *last >= place) {
            self.found(format!(
                "order: {:?} has {place:?} behind {last:?}",
                life.me
            ));
        }
        let begins = |point: Point| place.round < point.round;
        if life.began.is_some_and(begins) {
            self.found(format!(
                "order: {:?} has {place:?} before its point",
                life.me
            ));
        }
        let other = *self.order.entry(place).or_insert(id);
        if other != id {
            self.found(format!("order: {id:?} and {other:?} at {place:?}"));
        }
        let other = *self.places.entry((place.rank, id)).or_insert(place);
        if other != place {
            self.found(format!("twice: {id:?} at {place:?} and {other:?}"));
        }
    }

    /// What a process has at a point is everything before it, and all of its partition have the same.
    pub fn on_state(
        &mut self,
        (number, partition): (usize, &PartitionOf),
        ranks: &[u16],
        point: Point,
        state: State,
    ) {
        let is_wanted = |place: &Place| has(partition, ranks, place);
        let before = self.order.keys().filter(|place| place.round < point.round);
        let count = before.filter(|place| is_wanted(place)).count() as u64;
        if count != state.count {
            self.found(format!(
                "state: {state:?} at {point:?}, and {count} before it"
            ));
        }
        let key = (number, point.round);
        let Some(other) = self.states.insert(key, state) else {
            return;
        };
        self.compared += 1;
        if other != state {
            self.found(format!("state: {state:?} and {other:?} at {point:?}"));
        }
    }

    /// What a process has to have been told: all that anybody was, of its rings, from its point on.
    fn expected(
        &self,
        partition: &PartitionOf,
        life: &Life,
        ranks: &[u16],
    ) -> impl DoubleEndedIterator<Item = (Place, MessageId)> {
        let of = |place: &Place| {
            let is_behind = life.began.is_none_or(|point| place.round >= point.round);
            is_behind && has(partition, ranks, place)
        };
        let all = self.order.iter().filter(move |(place, _)| of(place));
        all.map(|(place, id)| (*place, *id))
    }

    /// Whether a process was told all of it.
    pub fn has_all(&self, partition: &PartitionOf, life: &Life, ranks: &[u16]) -> bool {
        let mut expected = self.expected(partition, life, ranks);
        expected.next_back().as_ref() == life.told.last()
    }

    /// It was told all of it, and nothing between is missing.
    pub fn judge_end(&mut self, partition: &PartitionOf, life: &Life, ranks: &[u16]) {
        let expected: Vec<_> = self.expected(partition, life, ranks).collect();
        if expected == life.told {
            return;
        }
        let pairs = expected.iter().zip(&life.told);
        let at = pairs.take_while(|(one, other)| one == other).count();
        self.found(format!(
            "gap: {:?} has {:?} where {:?} is, {} and {} in all",
            life.me,
            life.told.get(at),
            expected.get(at),
            life.told.len(),
            expected.len()
        ));
    }
}
