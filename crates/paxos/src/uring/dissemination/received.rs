//! Values that have come by multicast, whole or in part, and those that have not.

use alloc::vec::Vec;
use bytes::Bytes;

use super::super::parts::{Arriving, Dropped};
use super::super::queue::InTransit;
use super::super::stream::Places;
use super::late::Lack;
use crate::{Proposers, ValueId};
use rota_core::contract::Process;
use rota_core::wire::Part;

/// The most values that are asked of one proposer at once.
const MOST_WANTED: usize = 64;

/// See the module's page.
#[derive(Debug)]
pub struct Received {
    /// Values that are here and were not proposed yet, this process's own among them.
    whole: InTransit,
    /// By place in the ring: values of which parts have come.
    parts: Vec<Arriving>,
}

impl Received {
    /// None, of `places` processes. At most `most_bytes` are kept of each, beside one value.
    pub fn new(places: usize, most_bytes: usize) -> Self {
        let mut parts = Vec::new();
        parts.resize_with(places, Arriving::default);
        Self {
            whole: InTransit::new(places, most_bytes),
            parts,
        }
    }

    /// The values that are whole.
    pub const fn whole(&self) -> &InTransit {
        &self.whole
    }

    /// Whether a value is here.
    pub fn has(&self, id: ValueId) -> bool {
        self.whole.get(id).is_some()
    }

    /// The bytes of all.
    pub fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Arriving::bytes).sum();
        self.whole.bytes() + parts
    }

    /// Takes a part of another process's value, which is at this place. Returns the whole value, if that was the last
    /// part and the value is not here yet.
    pub fn on_part(
        &mut self,
        place: usize,
        id: ValueId,
        part: &Part<'_>,
    ) -> Result<Option<Bytes>, Dropped> {
        if self.has(id) {
            return Ok(None);
        }
        self.parts[place].on_part(part, self.whole.most_bytes())
    }

    /// Whether there is room for a value of the process at this place, if need be instead of later ones of it.
    pub fn makes_room(&mut self, place: usize, id: ValueId) -> bool {
        self.whole.makes_room(place, id)
    }

    /// A value has come, of the process at this place: perhaps in another way than the parts that are here.
    pub fn put(&mut self, place: usize, id: ValueId, frame: Bytes) {
        self.whole.put(place, id, frame);
        self.parts[place].drop_value(id.counter);
    }

    /// Takes a value out.
    pub fn take(&mut self, places: &Places, id: ValueId) -> Option<Bytes> {
        self.whole.take(places.place(id.process)?, id)
    }

    /// A value counts, of the process at this place: the parts of it, and of those before, are not needed.
    pub fn on_counted(&mut self, place: usize, id: ValueId) {
        self.whole.take(place, id);
        self.parts[place].forget_to(id.counter);
    }

    /// All values of the process at this place up to this one count.
    pub fn forget_to(&mut self, place: usize, last: ValueId) {
        self.whole.forget_to(place, last);
        self.parts[place].forget_to(last.counter);
    }

    /// Whether something has come that was sent later than this value.
    pub fn has_later(&self, places: &Places, id: ValueId) -> bool {
        let place = places.place(id.process);
        place.is_some_and(|place| self.parts[place].top() > id.counter)
    }

    /// At the coordinator: the first value that was sent, and that would be proposed next were it here.
    pub fn lack(&self, places: &Places, table: &Proposers) -> Option<(Lack, ValueId)> {
        places.iter().find_map(|(place, process)| {
            let id = next_of(process, table)?;
            let is_here = place == places.me() || self.has(id);
            let was_sent = self.parts[place].top() >= id.counter;
            let lack = Lack::Next(place, id.counter);
            (!is_here && was_sent).then_some((lack, id))
        })
    }

    /// At the coordinator: the values that were sent and are not here, by process.
    pub fn wanted(&self, places: &Places, table: &Proposers) -> Vec<(Process, Vec<u64>)> {
        let others = places.iter().filter(|(place, _)| *place != places.me());
        let wanted = others.filter_map(|(place, process)| {
            let first = next_of(process, table)?;
            let counters = first.counter..=self.parts[place].top();
            let lacks = |counter: &u64| {
                let counter = *counter;
                !self.has(ValueId { counter, ..first })
            };
            let lacks = counters.take(4 * MOST_WANTED).filter(lacks);
            let lacks: Vec<u64> = lacks.take(MOST_WANTED).collect();
            (!lacks.is_empty()).then_some((process, lacks))
        });
        wanted.collect()
    }

    /// Its invariants, in a ring of `places`.
    pub fn check(&self, places: usize) {
        assert_eq!(self.parts.len(), places, "each process has its place");
        self.parts.iter().for_each(Arriving::check);
        self.whole.check();
    }
}

/// The value of a process that the coordinator proposes next.
pub fn next_of(process: Process, table: &Proposers) -> Option<ValueId> {
    let counter = table.last(process)? + 1;
    Some(ValueId { process, counter })
}
