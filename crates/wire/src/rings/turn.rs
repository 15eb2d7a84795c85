//! One turn of a machine: each of its rings does some of what it has to do, as in `rota_node`'s driver of several rings;
//! then they hear of each other, and of what the merge waits for.

use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Engine, Input, SubmitError, Time,
};
use rota_multiring::RingsDelivery;

use super::world::World;
use crate::agenda::NEVER;

/// The steps of one ring before the others have their turn.
const STEPS: u32 = 8;
/// Messages of links that are read before a timer that is due.
const READS_BEFORE_TIMER: u32 = 8;
/// The time of a timer.
const TIMER: u64 = 100;

/// The clock of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub now: u64,
    /// The time for which it has worked in this turn, and not waited.
    pub worked: u64,
}

impl Clock {
    /// Work that takes so many nanoseconds.
    pub const fn pay(&mut self, nanos: u64) {
        self.now += nanos;
        self.worked += nanos;
    }

    /// The time now, for an engine.
    pub const fn time(&self) -> Time {
        Time(self.now)
    }
}

impl World<'_> {
    /// A host's turn.
    pub fn turn(&mut self, at: usize) {
        let free = self.hosts[at].free;
        let mut clock = Clock {
            now: self.now.max(free),
            worked: 0,
        };
        if self.now > free {
            clock.pay(self.setup.costs.wake);
        }
        for lane in 0..self.hosts[at].lanes.len() {
            self.work((at, lane), &mut clock);
        }
        while self.tell_each_other(at, &mut clock) {}
        let host = &mut self.hosts[at];
        (host.free, host.worked) = (clock.now, host.worked + clock.worked);
        let due = host.lanes.iter().map(|lane| lane.due).min();
        let due = due.map_or(NEVER, |due| due.max(clock.now));
        self.agenda.set(self.setup.hosts + at, due);
    }

    /// A ring does some of what it has to do.
    fn work(&mut self, (at, lane): (usize, usize), clock: &mut Clock) {
        if self.hosts[at].lanes[lane].due > clock.now {
            return;
        }
        for _ in 0..STEPS {
            let Some(input) = self.next_input((at, lane), clock) else {
                break;
            };
            let this = &mut self.hosts[at].lanes[lane];
            this.engine.handle(clock.time(), input);
            this.source.is_full = false;
            self.go_on((at, lane), clock);
        }
        self.offer((at, lane), clock);
        self.hosts[at].lanes[lane].look(clock.now);
    }

    /// The next thing that an engine is told.
    fn next_input(&mut self, (at, lane): (usize, usize), clock: &mut Clock) -> Option<Input> {
        let this = &mut self.hosts[at].lanes[lane];
        let timer = this.engine.next_timer();
        let is_due = timer.is_some_and(|(due, _)| due.0 <= clock.now);
        if !(is_due && this.reads >= READS_BEFORE_TIMER)
            && let Some((_, mut input)) = this.mail.take(clock.now)
        {
            this.reads += 1;
            self.open((at, lane), clock, &mut input);
            return Some(input);
        }
        if !is_due {
            return None;
        }
        this.reads = 0;
        clock.pay(TIMER);
        Some(Input::Timer)
    }

    /// The engine has what the kernel has for it. A message of a link is read: its sender has more room.
    fn open(&mut self, (at, lane): (usize, usize), clock: &mut Clock, input: &mut Input) {
        let ring = self.hosts[at].lanes[lane].ring;
        let opened = self.links[ring].open(at, input);
        clock.pay(opened.cost);
        if let Some((from, room)) = opened.told {
            let told = clock.now + self.wire.back(at, from);
            self.post((from, ring), told, room);
        }
    }

    /// Outputs and deliveries of a ring, until there are neither.
    fn go_on(&mut self, (at, lane): (usize, usize), clock: &mut Clock) {
        loop {
            self.drain((at, lane), clock);
            if !self.hand_over((at, lane), clock) {
                return;
            }
        }
    }

    /// The merge takes what a ring delivers, while it has room. Returns whether there was any.
    fn hand_over(&mut self, (at, lane): (usize, usize), clock: &mut Clock) -> bool {
        let rank = self.hosts[at].lanes[lane].rank;
        let mut has = false;
        loop {
            let host = &mut self.hosts[at];
            let this = &mut host.lanes[lane];
            this.is_blocked = !host.learner.has_room(rank);
            if this.is_blocked {
                return has;
            }
            let Some(delivery) = this.engine.poll_delivery() else {
                return has;
            };
            has = true;
            if let Delivery::Configuration(configuration) = &delivery {
                self.on_configuration((at, lane), configuration);
            }
            if let Some(told) = self.hosts[at].learner.on_delivery(rank, delivery) {
                self.deliver(at, clock, told);
            }
            self.pump(at, clock);
        }
    }

    fn on_configuration(&mut self, (at, lane): (usize, usize), now: &Configuration) {
        let is_regular = matches!(now.kind, ConfigurationKind::Regular(_));
        let ring = self.hosts[at].lanes[lane].ring;
        if is_regular && now.members.len() == self.setup.rings[ring].hosts.len() {
            self.on_formed((at, lane));
        }
    }

    /// Delivers what the merge hands out.
    fn pump(&mut self, at: usize, clock: &mut Clock) {
        while let Some(delivery) = self.hosts[at].learner.poll() {
            self.deliver(at, clock, delivery);
        }
    }

    fn deliver(&mut self, at: usize, clock: &mut Clock, delivery: RingsDelivery) {
        let (place, message) = match delivery {
            RingsDelivery::Message(place, message) => (place, message),
            RingsDelivery::Configuration(..) => return,
            // The merge has stopped: nothing of this is meant to happen here.
            _ => return self.tally.stopped += 1,
        };
        let costs = &self.setup.costs;
        clock.pay(costs.deliver + message.payload.len() as u64 * costs.deliver_byte / 1000);
        let Some(ring) = self.by_rank.get(&place.rank).copied() else {
            return self.tally.stopped += 1;
        };
        let host = &mut self.hosts[at];
        host.orders.add(ring, place, &message);
        let is_own = message.id.process == host.process;
        if is_own && let Some(lane) = host.lane(ring) {
            let lane = &mut host.lanes[lane];
            lane.source.delivered();
            lane.offers = true;
        }
        self.meter.take(clock.now, ring, &message, is_own);
        self.tally.delivered += 1;
    }

    /// Values of rings are announced to the others, which skip meanwhile; rings hear of what the merge waits for; and
    /// those go on for which there was no room, or whose application may submit again. Returns whether anything came of
    /// it.
    fn tell_each_other(&mut self, at: usize, clock: &mut Clock) -> bool {
        let mut some = false;
        for from in 0..self.hosts[at].lanes.len() {
            some |= self.announce((at, from), clock);
        }
        for need in self.hosts[at].learner.take_needs() {
            let mut lanes = self.hosts[at].lanes.iter();
            let Some(lane) = lanes.position(|lane| lane.rank == need.rank) else {
                continue;
            };
            let engine = &mut self.hosts[at].lanes[lane].engine;
            engine.command(clock.time(), |engine, now| engine.need(now, need.round));
            self.wake_up((at, lane), clock);
            some = true;
        }
        for lane in 0..self.hosts[at].lanes.len() {
            let host = &self.hosts[at];
            let this = &host.lanes[lane];
            let is_free = host.learner.has_room(this.rank);
            if this.is_blocked && is_free || this.offers {
                self.wake_up((at, lane), clock);
                some = true;
            }
        }
        some
    }

    fn announce(&mut self, (at, from): (usize, usize), clock: &mut Clock) -> bool {
        let this = &mut self.hosts[at].lanes[from];
        let rank = this.rank;
        let Some(announced) = this.engine.get_mut().take_announced() else {
            return false;
        };
        for to in 0..self.hosts[at].lanes.len() {
            let host = &mut self.hosts[at];
            let other = &mut host.lanes[to];
            let Some(announced) = host.learner.announces(rank, announced, other.rank) else {
                continue;
            };
            let tell = |engine: &mut rota_multiring::Leveled<_>, now| {
                engine.announce(now, rank, announced);
            };
            other.engine.command(clock.time(), tell);
            self.wake_up((at, to), clock);
        }
        true
    }

    /// A ring has something to do because of another one.
    fn wake_up(&mut self, (at, lane): (usize, usize), clock: &mut Clock) {
        self.go_on((at, lane), clock);
        self.offer((at, lane), clock);
        self.hosts[at].lanes[lane].look(clock.now);
    }

    /// Submits what the application has by now.
    fn offer(&mut self, (at, lane): (usize, usize), clock: &mut Clock) {
        let (client, cost) = (self.setup.costs.client, self.setup.costs.submit);
        self.hosts[at].lanes[lane].offers = false;
        let mut has = false;
        for _ in 0..self.hosts[at].lanes[lane].source.in_a_row() {
            let this = &self.hosts[at].lanes[lane];
            if this.source.next(clock.now, 0, usize::MAX) > clock.now {
                break;
            }
            let made = this.source.made(clock.now, client);
            self.submit((at, lane), clock.time(), made);
            has = true;
            clock.pay(cost);
        }
        if has {
            self.go_on((at, lane), clock);
        }
    }

    fn submit(&mut self, (at, lane): (usize, usize), now: Time, made: u64) {
        let ring = self.hosts[at].lanes[lane].ring;
        let payload = &mut self.payloads[ring];
        payload[..8].copy_from_slice(&made.to_le_bytes());
        let this = &mut self.hosts[at].lanes[lane];
        match this
            .engine
            .submit(now, rota_core::contract::Service::Safe, payload)
        {
            Ok(_) => {
                this.source.took();
                self.submitted[ring] += 1;
            }
            Err(SubmitError::Full) => this.source.is_full = true,
            Err(error) => panic!("a setup has messages that its engine does not take: {error}"),
        }
    }
}
