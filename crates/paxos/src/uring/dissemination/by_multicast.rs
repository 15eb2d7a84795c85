//! Values by multicast: Ring Paxos.
//!
//! Values do not go along the ring, but from their proposers to all members at once, by datagrams, which may be lost. A
//! follower that lacks the value of a proposal waits with everything behind, and asks its predecessor, which has the
//! value; the coordinator asks the proposer. An own value that is not proposed in time goes to the coordinator over its
//! link, or along the ring if there is none.

use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::super::config::Multicast;
use super::super::context::Context;
use super::super::held::BlockedProposals;
use super::super::parts::Dropped;
use super::super::queue::Queue;
use super::super::rate::Rate;
use super::super::stream::Places;
use super::super::window::Window;
use super::super::word::Proposal;
use super::super::write::Writer;
use super::late::{Lack, LateValues, long_wait, same_loss, short_wait};
use super::received::{Received, next_of};
use super::sender::Sender;
use super::{Ask, Dissemination, MOST_LACKS, Overdue, Resolved, most_carried, resolve};
use crate::{Instance, Proposers, Value, ValueId};
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::{HEADER_BYTES, Part};

/// See the module's page.
#[derive(Debug)]
pub struct ByMulticast {
    received: Received,
    own: Sender,
    /// Values that go along the ring, as they do not get to the coordinator otherwise.
    through: Queue,
    /// Proposals that wait for their values.
    blocked: BlockedProposals,
    late: LateValues,
    /// By place in the ring: the number of times that values had to be asked for there.
    losses: Vec<u64>,
    /// The place in the ring whose value the coordinator looks for first.
    turn: usize,
}

impl ByMulticast {
    /// No values, in a ring that begins.
    pub fn new(cx: &Context, multicast: &Multicast, places: &Places) -> Self {
        let count = places.count();
        let rate = |capacity| Rate::new(cx.now, capacity, places.me(), count);
        Self {
            received: Received::new(count, most_carried(cx.settings.proposer.window_bytes)),
            own: Sender::new(&cx.settings, multicast.capacity.map(rate)),
            through: Queue::default(),
            blocked: BlockedProposals::default(),
            late: LateValues::default(),
            losses: vec![0; count],
            turn: 0,
        }
    }

    /// Whether a proposal has to wait for its value, or behind others that wait.
    fn has_to_wait(&self, proposal: &Proposal) -> bool {
        let lacks = |id: &ValueId| !self.received.has(*id) && !mutants::on(Mutant::U27);
        let lacks = matches!(proposal, Proposal::Named(id) if lacks(id));
        lacks || !self.blocked.is_empty()
    }

    /// Whether an acceptor may lack a window of the proposed values of a process. Along the ring a slow acceptor holds
    /// values back; multicast values come past it, and it loses those that it has no room for.
    fn is_far_ahead(&self, window: &Window, process: Process) -> bool {
        let most_bytes = self.received.whole().most_bytes();
        2 * window.ahead(process) > most_bytes && !mutants::on(Mutant::U32)
    }

    /// The first own value that was not proposed, unless it waits for the rate.
    fn first_own(&mut self) -> Option<(ValueId, &Bytes)> {
        let id = self.own.first(self.received.whole())?;
        Some((id, self.received.whole().get(id)?))
    }

    /// The first missing value, and whether something has come that was sent later. `table`: at the coordinator.
    fn lack(&self, places: &Places, table: Option<&Proposers>) -> Option<(Lack, bool)> {
        // A follower goes on when the value of its first proposal that waits has come.
        let (lack, id) = match self.blocked.first() {
            Some((at, Proposal::Named(id))) => (Lack::Of(*at), *id),
            _ => self.received.lack(places, table?)?,
        };
        Some((lack, self.received.has_later(places, id)))
    }
}

impl Dissemination for ByMulticast {
    fn own_window(&self, cx: &Context, places: &Places) -> usize {
        let is_alone = places.successor().is_none();
        self.own.window(cx.settings.proposer.frame_bytes, is_alone)
    }

    fn carry(&mut self, places: &Places, id: ValueId, frame: Bytes) -> bool {
        let place = places.place(id.process);
        let Some(place) = place.filter(|_| !self.received.has(id)) else {
            return true;
        };
        if place == places.me() {
            self.own.push(id);
        } else if !self.received.makes_room(place, id) {
            return false;
        }
        self.received.put(place, id, frame);
        true
    }

    /// A value may come again when the coordinator has proposed it.
    fn may_count(&self, id: ValueId, counted: Option<u64>, table: Option<&Proposers>) -> bool {
        let proposed = table.and_then(|table| table.last(id.process));
        counted.max(proposed).is_none_or(|last| id.counter > last)
    }

    fn bytes(&self) -> usize {
        self.received.bytes() + self.blocked.bytes()
    }

    /// Only those that do not get to the coordinator otherwise.
    fn put_values(&mut self, places: &Places, batch: &mut Writer) {
        let whole = self.received.whole();
        self.own.clean(whole);
        self.through.clean(whole);
        while let Some(id) = self.through.unsent() {
            if let Some(frame) = whole.get(id) {
                if !batch.takes(frame.len()) {
                    return;
                }
                batch.value(places.place(id.process), id, frame);
            }
            self.through.on_sent();
        }
    }

    fn has_unsent(&self) -> bool {
        self.through.unsent().is_some()
    }

    fn send_again(&mut self) {
        self.through.send_again();
    }

    /// Unless it was proposed. One that was sent is sent again: some process had no room for it.
    fn goes_along(&mut self, places: &Places, id: ValueId) {
        if !places.leads() && self.received.has(id) {
            self.through.push_again(id);
        }
    }

    /// Of each proposer in turn.
    fn next_value(
        &mut self,
        places: &Places,
        window: &Window,
        table: &Proposers,
    ) -> Option<ValueId> {
        let (count, turn) = (places.count(), self.turn);
        let unsent = self.own.unsent().filter(|_| places.successor().is_some());
        let next = |place: usize| {
            let id = next_of(places.process(place), table)?;
            if self.is_far_ahead(window, id.process) {
                return None;
            }
            // The coordinator forgets a value here when it proposes it: own values leave before.
            let has_left =
                place != places.me() || unsent.is_none_or(|unsent| id.counter < unsent.counter);
            (self.received.has(id) && has_left).then_some((place, id))
        };
        let (place, id) = (0..count).find_map(|step| next((turn + step) % count))?;
        self.turn = place + 1;
        Some(id)
    }

    fn take(&mut self, places: &Places, id: ValueId) -> Option<Bytes> {
        self.received.take(places, id)
    }

    fn drop_value(&mut self, places: &Places, id: ValueId) {
        self.received.take(places, id);
    }

    fn on_proposal(&mut self, places: &Places, at: Instance, proposal: Proposal) -> Resolved {
        if self.has_to_wait(&proposal) {
            let most_bytes = self.received.whole().most_bytes() * places.count();
            return match self.blocked.put(at, proposal, most_bytes) {
                true => Resolved::Blocked,
                false => Resolved::Refused,
            };
        }
        match resolve(proposal, |id| self.received.take(places, id)) {
            Some((value, whole)) => Resolved::Known(value, whole),
            None => Resolved::Refused,
        }
    }

    fn release(&mut self, places: &Places, next: Instance) -> Option<(Instance, (Value, bool))> {
        loop {
            let (at, proposal) = self.blocked.first()?;
            if let Proposal::Named(id) = proposal
                && *at >= next
                && !self.received.has(*id)
            {
                return None;
            }
            let (at, proposal) = self.blocked.take()?;
            if at >= next {
                let value = resolve(proposal, |id| self.received.take(places, id));
                return Some((at, value?));
            }
        }
    }

    fn blocked_end(&self) -> Option<Instance> {
        self.blocked.end()
    }

    fn forget_blocked(&mut self) {
        self.blocked.clear();
    }

    /// Proposals that wait are named again. Values behind the first may only be late; but a process that asks for a few
    /// at a time waits for each answer.
    fn begin_behind(&mut self, _: Instance) -> Vec<Instance> {
        let lacks = self.blocked.lacks(MOST_LACKS, |id| self.received.has(id));
        self.blocked.clear();
        self.late.forget_lack();
        lacks
    }

    fn successor_has(&self, _: &Places, place: Option<usize>) -> bool {
        place.is_some()
    }

    fn gathers_batches(&self) -> bool {
        true
    }

    fn pass(&self, window: &mut Window, low: &dyn Fn() -> Instance) {
        window.pass(low());
    }

    fn on_counted(&mut self, now: Time, places: &Places, (id, bytes): (ValueId, usize)) {
        let Some(place) = places.place(id.process) else {
            return;
        };
        self.received.on_counted(place, id);
        if place == places.me() {
            self.own.on_counted(now, (id, bytes));
        }
    }

    fn forget_to(
        &mut self,
        places: &Places,
        _: Instance,
        counted: &dyn Fn(Process) -> Option<u64>,
    ) {
        for (place, process) in places.iter() {
            if let Some(counter) = counted(process) {
                let last = ValueId { process, counter };
                self.received.forget_to(place, last);
            }
        }
    }

    fn on_part(
        &mut self,
        now: Time,
        places: &Places,
        part: &Part<'_>,
    ) -> Result<Option<(ValueId, Bytes)>, Dropped> {
        let id = ValueId {
            process: part.head.proposer,
            counter: part.head.counter,
        };
        let place = places.place(id.process);
        let Some(place) = place.filter(|place| *place != places.me()) else {
            return Ok(None);
        };
        let bytes = part.bytes.len() + HEADER_BYTES;
        self.own.on_others(now, place, bytes);
        let whole = self.received.on_part(place, id, part)?;
        Ok(whole.map(|frame| (id, frame)))
    }

    fn has_own(&self, places: &Places) -> bool {
        places.successor().is_some() && self.own.has_next()
    }

    fn next_own(&mut self, now: Time) -> Option<(ValueId, Bytes)> {
        self.own.next(now, self.received.whole())
    }

    fn leaves(&mut self, now: Time, bytes: usize) {
        self.own.leaves(now, bytes);
    }

    fn rate(&self) -> Option<u64> {
        self.own.rate().map(Rate::bits_per_second)
    }

    fn watch(&mut self, cx: &Context, places: &Places, (table, begun): (Option<&Proposers>, bool)) {
        let patience = &cx.settings.patience;
        let lack = self.lack(places, table);
        let first = self.first_own().map(|(id, _)| id.counter);
        let first = first.filter(|_| begun && !places.leads());
        // On a slow link a value takes long, and names come before it.
        let most = 2 * cx.settings.proposer.frame_bytes;
        let rate = self.own.rate();
        let on_links = rate.map_or(0, |rate| rate.takes_on_links(most));
        let own = rate.map_or(0, |rate| rate.takes(most));
        let wait = |has_come: bool| match has_come {
            true => short_wait(patience),
            false => long_wait(patience, on_links),
        };
        let lack = lack.map(|(lack, has_come)| (lack, wait(has_come)));
        self.late.watch_lack(cx.now, lack);
        self.late.watch_own(cx.now, first, long_wait(patience, own));
    }

    fn overdue_at(&self) -> Option<Time> {
        let (late, rate) = (self.late.next_time(), self.own.next_time());
        late.into_iter().chain(rate).min()
    }

    fn overdue(&mut self, cx: &Context, places: &Places, table: Option<&Proposers>) -> Overdue {
        let is_own_due = self.late.is_own_due(cx.now);
        let ask = self.late.ask(cx).map(|lack| match lack {
            Lack::Of(_) => Ask::Predecessor,
            Lack::Next(..) => {
                let wanted = table.map(|table| self.received.wanted(places, table));
                Ask::Proposers(wanted.unwrap_or_default())
            }
        });
        let mut own = None;
        if is_own_due && let Some((id, frame)) = self.first_own() {
            own = Some((id, frame.clone()));
            self.late.on_own_sent(cx, id.counter);
        }
        Overdue { ask, own }
    }

    fn on_asked(&mut self, cx: &Context, places: &Places) {
        self.losses[places.me()] += 1;
        let pause = same_loss(&cx.settings.patience);
        self.own.slow_down(cx.now, pause);
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn on_lost(&mut self, cx: &Context, places: &Places, (place, count): (usize, u64)) -> bool {
        let losses = self.losses.get_mut(place);
        let Some(losses) = losses.filter(|_| place != places.me()) else {
            return false;
        };
        if *losses < count {
            *losses = count;
            let pause = same_loss(&cx.settings.patience);
            self.own.slow_down(cx.now, pause);
        }
        true
    }

    fn check(&self, places: &Places) {
        let count = places.count();
        assert_eq!(self.losses.len(), count, "each process has its losses");
        self.received.check(count);
        self.own.check();
        self.through.check();
        self.blocked.check();
    }
}
