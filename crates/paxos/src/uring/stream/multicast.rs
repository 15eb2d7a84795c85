//! Values that do not go along the ring: see `cast`.

use alloc::vec::Vec;
use bytes::Bytes;

use super::super::cast::{Cast, Lack};
use super::super::context::Context;
use super::super::parts::Dropped;
use super::super::rate::Rate;
use super::super::word::Proposal;
use super::Stream;
use crate::{Config, Instance, Proposers, Value, ValueId};
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::shares::Capacity;
use rota_core::wire::{HEADER_BYTES, Part};

/// The most values that are asked of one proposer at once.
const MOST_WANTED: usize = 64;

/// The most values that are asked of the predecessor at once.
pub(super) const MOST_LACKS: usize = 1000;

impl Stream {
    /// The ring of a configuration, if this process is in it.
    pub fn of(cx: &Context, config: &Config) -> Option<Self> {
        let (window, frame) = (cx.settings.window_bytes, cx.settings.frame_bytes);
        let stream = Self::new(cx.now, config, cx.me, window)?;
        Some(match cx.settings.multicast {
            Some(multicast) => stream
                .multicasts(window, frame)
                .keeps_to(cx.now, multicast.capacity),
            None => stream,
        })
    }

    /// Values are multicast. Of own values `window_bytes` may be under way, and always one of `frame_bytes`.
    pub fn multicasts(mut self, window_bytes: usize, frame_bytes: usize) -> Self {
        self.cast = Some(Cast::new(self.ring.len(), window_bytes, frame_bytes));
        self
    }

    /// Values are multicast no faster than links take them in.
    pub fn keeps_to(mut self, now: Time, capacity: Option<Capacity>) -> Self {
        let new = |capacity| Rate::new(now, capacity, self.me, self.ring.len());
        if let Some(cast) = &mut self.cast {
            cast.rate = capacity.map(new);
        }
        self
    }

    /// The rate that own values keep to.
    pub fn rate(&mut self) -> Option<&mut Rate> {
        self.cast.as_mut()?.rate.as_mut()
    }

    /// Takes a part of a value. Returns the whole value, if that was the last part and the value is not here yet.
    pub fn on_part(
        &mut self,
        now: Time,
        part: &Part<'_>,
    ) -> Result<Option<(ValueId, Bytes)>, Dropped> {
        let id = ValueId {
            process: part.head.proposer,
            counter: part.head.counter,
        };
        let place = self.place(id.process).filter(|place| *place != self.me);
        let Some((place, cast)) = place.zip(self.cast.as_mut()) else {
            return Ok(None);
        };
        if let Some(rate) = &mut cast.rate {
            rate.on_sent(now, place, part.bytes.len() + HEADER_BYTES);
        }
        if self.carried.get(id).is_some() {
            return Ok(None);
        }
        let room = self.carried.most_bytes();
        let whole = cast.arriving[place].on_part(part, room)?;
        Ok(whole.map(|frame| (id, frame)))
    }

    /// Whether there is an own value to multicast, which waits for nothing.
    pub fn has_own(&self) -> bool {
        let rate = self.cast.as_ref().and_then(|cast| cast.rate.as_ref());
        let waits = rate.is_some_and(Rate::holds);
        !waits && self.successor().is_some() && self.own.unsent().is_some()
    }

    /// The next own value to multicast, if it may leave.
    pub fn next_own(&mut self, now: Time) -> Option<(ValueId, Bytes)> {
        self.own.clean(&self.carried);
        if let Some(rate) = self.rate() {
            rate.forget();
        }
        while let Some(id) = self.own.unsent() {
            if let Some(frame) = self.carried.get(id) {
                let frame = frame.clone();
                if self.rate().is_some_and(|rate| !rate.lets(now, frame.len())) {
                    return None;
                }
                self.own.sent += 1;
                if let Some(rate) = self.rate() {
                    rate.watch(now, id.counter);
                }
                return Some((id, frame));
            }
            self.own.sent += 1;
        }
        None
    }

    /// The first own value that was not proposed, unless it waits for the rate.
    pub fn first_own(&mut self) -> Option<(ValueId, Bytes)> {
        self.own.clean(&self.carried);
        if self.own.sent == 0 && self.rate().is_some_and(|rate| rate.holds()) {
            return None;
        }
        let id = *self.own.ids.front()?;
        Some((id, self.carried.get(id)?.clone()))
    }

    /// A value counts: the parts of it, and of those before, are not needed.
    pub(super) fn forget_parts(&mut self, id: ValueId) {
        let place = self.cast.is_some().then(|| self.place(id.process));
        if let (Some(Some(place)), Some(cast)) = (place, &mut self.cast) {
            cast.arriving[place].forget_to(id.counter);
        }
    }

    /// A value has come in another way.
    pub(super) fn forget_part(&mut self, place: usize, id: ValueId) {
        if let Some(cast) = &mut self.cast {
            cast.arriving[place].drop_value(id.counter);
        }
    }

    /// Whether a proposal has to wait for its value, or behind others that wait. If values go along the ring no
    /// proposal waits.
    pub fn has_to_wait(&self, proposal: &Proposal) -> bool {
        let lacks = |id: &ValueId| self.carried.get(*id).is_none() && !mutants::on(Mutant::U27);
        self.cast.as_ref().is_some_and(|cast| {
            let lacks = matches!(proposal, Proposal::Named(id) if lacks(id));
            lacks || !cast.held.is_empty()
        })
    }

    /// Makes a proposal wait. `false` if enough wait already.
    pub fn hold(&mut self, at: Instance, proposal: Proposal) -> bool {
        let most_bytes = self.carried.most_bytes() * self.ring.len();
        let cast = self.cast.as_mut();
        cast.is_some_and(|cast| cast.held.put(at, proposal, most_bytes))
    }

    /// The next proposal that has waited and need not any more: its instance, its value, and whether no process had
    /// that before.
    pub fn release(&mut self) -> Option<(Instance, (Value, bool))> {
        loop {
            let held = &mut self.cast.as_mut()?.held;
            let (at, proposal) = held.first()?;
            if let Proposal::Named(id) = proposal
                && *at >= self.window.next()
                && self.carried.get(*id).is_none()
            {
                return None;
            }
            let (at, proposal) = held.take()?;
            if at >= self.window.next() {
                return Some((at, self.resolve(proposal)?));
            }
        }
    }

    /// At the coordinator: the value that is to be proposed next, of each proposer in turn.
    pub(super) fn next_multicast(&mut self, table: &Proposers) -> Option<ValueId> {
        let (count, turn) = (self.ring.len(), self.cast.as_ref()?.turn);
        let unsent = self.own.unsent().filter(|_| self.successor().is_some());
        let next = |place: usize| {
            let id = self.next_of(place, table)?;
            if self.is_far_ahead(id.process) {
                return None;
            }
            // The coordinator forgets a value here when it proposes it: own values leave before.
            let has_left =
                place != self.me || unsent.is_none_or(|unsent| id.counter < unsent.counter);
            let is_here = self.carried.get(id).is_some();
            (is_here && has_left).then_some((place, id))
        };
        let (place, id) = (0..count).find_map(|step| next((turn + step) % count))?;
        self.cast.as_mut()?.turn = place + 1;
        Some(id)
    }

    /// Whether an acceptor may lack a window of the proposed values of a process. Along the ring a slow acceptor holds
    /// values back; multicast values come past it, and it loses those that it has no room for.
    fn is_far_ahead(&self, process: Process) -> bool {
        2 * self.window.ahead(process) > self.carried.most_bytes() && !mutants::on(Mutant::U32)
    }

    /// All acceptors of the ring have the proposals before this place.
    pub fn pass(&mut self, low: Instance) {
        self.window.pass(low);
    }

    fn next_of(&self, place: usize, table: &Proposers) -> Option<ValueId> {
        let process: Process = self.ring[place];
        let counter = table.last(process)? + 1;
        Some(ValueId { process, counter })
    }

    /// The first missing value, and whether something has come that was sent later. `table`: at the coordinator.
    pub fn lack(&self, table: Option<&Proposers>) -> Option<(Lack, bool)> {
        let cast = self.cast.as_ref()?;
        let has_come = |id: ValueId| {
            let place = self.place(id.process);
            place.is_some_and(|place| cast.arriving[place].top() > id.counter)
        };
        // A follower goes on when the value of its first proposal that waits has come.
        if let Some((at, Proposal::Named(id))) = cast.held.first() {
            return Some((Lack::Of(*at), has_come(*id)));
        }
        let table = table?;
        let lacks = |place: usize| {
            let id = self.next_of(place, table)?;
            let is_here = place == self.me || self.carried.get(id).is_some();
            let was_sent = cast.arriving[place].top() >= id.counter;
            let lack = Lack::Next(place, id.counter);
            (!is_here && was_sent).then(|| (lack, has_come(id)))
        };
        (0..self.ring.len()).find_map(lacks)
    }

    /// Values had to be asked for here.
    pub fn lost_here(&mut self) {
        let me = self.me;
        if let Some(cast) = &mut self.cast {
            cast.losses[me] += 1;
        }
    }

    /// Instances of proposals that wait here for their values. Values behind the first may only be late; but a process
    /// that asks for a few at a time waits for each answer.
    pub fn lacks(&self) -> Vec<Instance> {
        let is_here = |id| self.carried.get(id).is_some();
        let held = self.cast.as_ref().map(|cast| &cast.held);
        held.map_or_else(Vec::new, |held| held.lacks(MOST_LACKS, is_here))
    }

    /// A value goes along the ring to the coordinator, which does not get it otherwise, unless it was proposed.
    pub fn goes_along(&mut self, id: ValueId) {
        let waits = self.cast.is_some() && !self.leads() && self.carried.get(id).is_some();
        if !waits {
            return;
        }
        match self.through.ids.iter().position(|waiting| *waiting == id) {
            Some(at) if at >= self.through.sent => return,
            // It was sent, and some process had no room for it.
            Some(at) => {
                self.through.ids.remove(at);
                self.through.sent -= 1;
            }
            None => {}
        }
        self.through.ids.push_back(id);
    }

    /// The values that the coordinator lacks, by process.
    pub fn wanted(&self, table: &Proposers) -> Vec<(Process, Vec<u64>)> {
        let places = 0..self.ring.len();
        let wanted = places.filter_map(|place| self.wanted_of(place, table));
        wanted
            .filter(|(_, counters)| !counters.is_empty())
            .collect()
    }

    fn wanted_of(&self, place: usize, table: &Proposers) -> Option<(Process, Vec<u64>)> {
        let first = self.next_of(place, table)?;
        let top = self.cast.as_ref()?.arriving[place].top();
        let is_here = |counter: &u64| {
            let counter = *counter;
            self.carried.get(ValueId { counter, ..first }).is_some()
        };
        let counters = (first.counter..=top).take(4 * MOST_WANTED);
        let lacks = counters.filter(|counter| place != self.me && !is_here(counter));
        Some((first.process, lacks.take(MOST_WANTED).collect()))
    }
}
