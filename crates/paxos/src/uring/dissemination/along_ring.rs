//! Values along the ring: U-Ring Paxos.
//!
//! A value goes from its proposer up to the coordinator, a proposal from the coordinator up to its predecessor. A
//! process at the distance of the proposer or beyond has had the value on the first of these ways, and is sent only its
//! name on the second; so a value crosses each link at most once (Multi-Ring Paxos §4, fig. 2).

use alloc::vec::Vec;
use bytes::Bytes;

use super::super::config::URingConfig;
use super::super::context::Context;
use super::super::parts::Dropped;
use super::super::queue::{InTransit, Queue};
use super::super::stream::Places;
use super::super::window::Window;
use super::super::word::Proposal;
use super::super::write::Writer;
use super::{Dissemination, MOST_LACKS, Overdue, Resolved, most_carried, resolve};
use crate::{Instance, Proposers, Value, ValueId};
use rota_core::contract::{Process, Time};
use rota_core::fair::Fair;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Part;

/// Values that were forgotten with a snapshot, and which the ring may still name.
#[derive(Clone, Copy, Debug, Default)]
struct Forgotten {
    /// The instance before which values were forgotten.
    upto: Instance,
    /// The predecessor was asked last to bring the value in this instance, and those behind it.
    asked: Option<Instance>,
}

/// See the module's page.
#[derive(Debug)]
pub struct AlongRing {
    window_bytes: usize,
    /// Values that came by and were not proposed yet.
    carried: InTransit,
    own: Queue,
    through: Queue,
    fair: Fair,
    forgotten: Forgotten,
}

impl AlongRing {
    /// No values, in a ring that begins.
    pub fn new(settings: &URingConfig, places: &Places) -> Self {
        let window_bytes = settings.proposer.window_bytes;
        Self {
            window_bytes,
            carried: InTransit::new(places.count(), most_carried(window_bytes)),
            own: Queue::default(),
            through: Queue::default(),
            fair: Fair::new(places.count(), places.me()),
            forgotten: Forgotten::default(),
        }
    }

    /// Forgets names whose values were proposed, where they are first.
    fn clean(&mut self) {
        for queue in [&mut self.own, &mut self.through] {
            queue.clean(&self.carried);
        }
    }

    fn uncarry(&mut self, places: &Places, id: ValueId) -> Option<(usize, Bytes)> {
        let place = places.place(id.process)?;
        Some((place, self.carried.take(place, id)?))
    }

    /// A value is named in an instance, and is not here. If it was forgotten with a snapshot, the predecessor is asked
    /// to bring it and those behind, once: the predecessor may not know what is meant. Returns whether it is asked.
    fn ask_forgotten(&mut self, first: Instance) -> bool {
        let Forgotten { upto, asked } = self.forgotten;
        let asks = first < upto && asked != Some(first) && !mutants::on(Mutant::U40);
        if asks {
            self.forgotten.asked = Some(first);
        }
        asks
    }
}

impl Dissemination for AlongRing {
    fn own_window(&self, _: &Context, _: &Places) -> usize {
        self.window_bytes
    }

    fn carry(&mut self, places: &Places, id: ValueId, frame: Bytes) -> bool {
        let place = places.place(id.process);
        let Some(place) = place.filter(|_| self.carried.get(id).is_none()) else {
            return true;
        };
        if place == places.me() {
            self.own.push(id);
        } else if !self.carried.has_room(place) {
            return false;
        } else {
            self.fair.on_arrival(place);
            self.through.compact(&self.carried);
            self.through.push(id);
        }
        self.carried.put(place, id, frame);
        true
    }

    fn may_count(&self, id: ValueId, counted: Option<u64>, _: Option<&Proposers>) -> bool {
        counted.is_none_or(|last| id.counter > last)
    }

    fn bytes(&self) -> usize {
        self.carried.bytes()
    }

    fn put_values(&mut self, places: &Places, batch: &mut Writer) {
        self.clean();
        loop {
            let (own, through) = (self.own.unsent(), self.through.unsent());
            let next = through.and_then(|id| places.place(id.process));
            let own_first = self.fair.own_first(own.is_some(), next);
            let Some(id) = (if own_first { own } else { through }) else {
                return;
            };
            let place = places.place(id.process);
            if let Some(frame) = self.carried.get(id) {
                if !batch.takes(frame.len()) {
                    return;
                }
                batch.value(place, id, frame);
                self.fair
                    .on_served(place.unwrap_or(places.me()), frame.len());
            }
            let queue = if own_first {
                &mut self.own
            } else {
                &mut self.through
            };
            queue.on_sent();
        }
    }

    fn has_unsent(&self) -> bool {
        self.own.unsent().is_some() || self.through.unsent().is_some()
    }

    fn send_again(&mut self) {
        self.own.send_again();
        self.through.send_again();
    }

    fn goes_along(&mut self, _: &Places, _: ValueId) {
        // Each does, from when it is put on its way.
    }

    fn next_value(&mut self, places: &Places, _: &Window, _: &Proposers) -> Option<ValueId> {
        self.clean();
        let (own, through) = (self.own.first(), self.through.first());
        let next = through.and_then(|id| places.place(id.process));
        match self.fair.own_first(own.is_some(), next) {
            true => own,
            false => through,
        }
    }

    fn take(&mut self, places: &Places, id: ValueId) -> Option<Bytes> {
        let (place, frame) = self.uncarry(places, id)?;
        if places.leads() {
            self.fair.on_served(place, frame.len());
        }
        Some(frame)
    }

    fn drop_value(&mut self, places: &Places, id: ValueId) {
        self.uncarry(places, id);
    }

    fn on_proposal(&mut self, places: &Places, at: Instance, proposal: Proposal) -> Resolved {
        match resolve(proposal, |id| self.take(places, id)) {
            Some((value, whole)) => Resolved::Known(value, whole),
            None if self.ask_forgotten(at) => Resolved::Forgotten,
            None => Resolved::Refused,
        }
    }

    fn release(&mut self, _: &Places, _: Instance) -> Option<(Instance, (Value, bool))> {
        None
    }

    fn blocked_end(&self) -> Option<Instance> {
        None
    }

    fn forget_blocked(&mut self) {}

    /// Values that were forgotten with a snapshot.
    fn begin_behind(&mut self, next: Instance) -> Vec<Instance> {
        let Forgotten { upto, asked } = self.forgotten;
        let lacks = asked.map(|asked| asked.max(next)..upto);
        lacks.into_iter().flatten().take(MOST_LACKS).collect()
    }

    fn successor_has(&self, places: &Places, place: Option<usize>) -> bool {
        let had = |place| places.is_successor_behind(place) || mutants::on(Mutant::U06);
        place.is_some_and(|place| place != places.coordinator() && had(place))
    }

    fn gathers_batches(&self) -> bool {
        false
    }

    fn pass(&self, _: &mut Window, _: &dyn Fn() -> Instance) {
        // A slow acceptor holds values back along the ring.
    }

    fn on_counted(&mut self, _: Time, places: &Places, (id, _): (ValueId, usize)) {
        if !self.carried.is_empty() {
            self.uncarry(places, id);
        }
    }

    fn forget_to(
        &mut self,
        places: &Places,
        next: Instance,
        counted: &dyn Fn(Process) -> Option<u64>,
    ) {
        self.forgotten.upto = next;
        for (place, process) in places.iter() {
            if let Some(counter) = counted(process) {
                self.carried.forget_to(place, ValueId { process, counter });
            }
        }
    }

    fn on_part(
        &mut self,
        _: Time,
        _: &Places,
        _: &Part<'_>,
    ) -> Result<Option<(ValueId, Bytes)>, Dropped> {
        Ok(None)
    }

    fn has_own(&self, _: &Places) -> bool {
        false
    }

    fn next_own(&mut self, _: Time) -> Option<(ValueId, Bytes)> {
        None
    }

    fn leaves(&mut self, _: Time, _: usize) {}

    fn rate(&self) -> Option<u64> {
        None
    }

    fn watch(&mut self, _: &Context, _: &Places, _: (Option<&Proposers>, bool)) {
        // Links lose nothing.
    }

    fn overdue_at(&self) -> Option<Time> {
        None
    }

    fn overdue(&mut self, _: &Context, _: &Places, _: Option<&Proposers>) -> Overdue {
        Overdue::default()
    }

    fn on_asked(&mut self, _: &Context, _: &Places) {}

    fn losses(&self) -> &[u64] {
        &[]
    }

    fn on_lost(&mut self, _: &Context, _: &Places, _: (usize, u64)) -> bool {
        false
    }

    fn check(&self, _: &Places) {
        self.carried.check();
        self.own.check();
        self.through.check();
        assert!(
            self.forgotten
                .asked
                .is_none_or(|asked| asked < self.forgotten.upto),
            "only what was forgotten is asked for along the ring"
        );
    }
}
