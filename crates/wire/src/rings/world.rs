//! The loop: frames at the switch and turns of hosts, in the order of their times.

use std::collections::BTreeMap;

use rota_core::contract::{Input, StartState};
use rota_multiring::Rank;

use super::host::Host;
use super::judge::judge;
use super::meter::{Over, RingsMeter, RingsRun, Work};
use super::setup::RingsSetup;
use crate::agenda::{Agenda, NEVER};
use crate::links::{self, Links};
use crate::source::Shared;
use crate::wire::{Frame, Load, To, Wire};

/// Nanoseconds in a millisecond.
const MILLIS: u64 = 1_000_000;
/// The rings have to be whole by then.
const FORMED_BY: u64 = 60_000 * MILLIS;
/// The time from the moment at which all rings are whole to the load.
const REST: u64 = MILLIS;
/// The time for which messages may still be delivered when the load has ended.
const DRAIN: u64 = 30_000 * MILLIS;

/// The parts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The hosts come together.
    Forming,
    /// The load has begun, and nothing is measured yet.
    WarmUp,
    Measured,
    /// The load has ended.
    Drain,
    Over,
}

/// What is counted beside the engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub delivered: u64,
    /// Deliveries after which a merge delivers nothing any more.
    pub stopped: u64,
    /// Configurations of a ring after the first with all of its hosts.
    reconfigurations: u64,
    events: u64,
}

/// See the module page.
#[derive(Debug)]
pub struct World<'a> {
    pub setup: &'a RingsSetup,
    pub now: u64,
    /// The network cards, then the hosts.
    pub agenda: Agenda,
    pub wire: Wire,
    /// By ring.
    pub links: Vec<Links>,
    pub hosts: Vec<Host>,
    pub by_rank: BTreeMap<Rank, usize>,
    pub meter: RingsMeter,
    pub tally: Tally,
    /// By ring, messages that its engines have taken.
    pub submitted: Vec<u64>,
    /// By ring, the bytes of a message.
    pub payloads: Vec<Vec<u8>>,
    stage: (Stage, u64),
    /// What was counted in the measured time, or before it.
    work: Work,
    /// Rings at hosts that are not whole yet.
    unformed: usize,
}

impl<'a> World<'a> {
    pub fn new(setup: &'a RingsSetup) -> Self {
        let (hosts, rings) = (setup.hosts, setup.rings.len());
        let ranks = setup.rings.iter().enumerate();
        let by_rank: BTreeMap<Rank, usize> = ranks.map(|(at, ring)| (ring.rank, at)).collect();
        assert!(by_rank.len() == rings, "two rings have one rank");
        for ring in &setup.rings {
            assert!(!ring.hosts.is_empty(), "a ring has no hosts");
            assert!(!ring.acceptors.is_empty(), "a ring has no acceptors");
            let is_of_ring = matches!(ring.load, crate::Load::Visit(_));
            assert!(!is_of_ring, "there is no token to generate messages at");
        }
        let made = (0..hosts).map(|at| Host::new(setup, at));
        let payload = |ring: &super::OneRing| vec![0x5a; ring.message_bytes.max(8)];
        Self {
            setup,
            now: 0,
            agenda: Agenda::new(2 * hosts),
            wire: Wire::new(&setup.wire, hosts),
            links: (0..rings).map(|_| Links::new(setup.links, hosts)).collect(),
            hosts: made.collect(),
            by_rank,
            meter: RingsMeter::new(rings, setup.costs.client),
            tally: Tally::default(),
            submitted: vec![0; rings],
            payloads: setup.rings.iter().map(payload).collect(),
            stage: (Stage::Forming, FORMED_BY),
            work: Work::default(),
            unformed: setup.rings.iter().map(|ring| ring.hosts.len()).sum(),
        }
    }

    pub fn run(mut self) -> RingsRun {
        self.start();
        while self.stage.0 != Stage::Over {
            let (thing, time) = self.agenda.first();
            if time >= self.stage.1 {
                self.now = self.stage.1;
                self.end_stage();
                continue;
            }
            self.now = time;
            self.tally.events += 1;
            match thing.checked_sub(self.setup.hosts) {
                None => self.cross(thing),
                Some(host) => self.turn(host),
            }
            if self.stage.0 == Stage::Drain && self.is_drained() {
                self.stage.0 = Stage::Over;
            }
        }
        self.result()
    }

    /// All engines start, and all links come up a moment later.
    fn start(&mut self) {
        for at in 0..self.hosts.len() {
            let me = self.hosts[at].process;
            for lane in &mut self.hosts[at].lanes {
                let ring = lane.ring;
                let state = StartState {
                    me,
                    seed: self.setup.seed.wrapping_add(ring as u64),
                    records: Vec::new(),
                    lost_some: false,
                };
                lane.post(0, Input::Start(state));
                let bytes = self.links[ring].queue_bytes();
                let others = self.setup.rings[ring].hosts.iter();
                for other in others.filter(|other| **other != at) {
                    for input in links::up(*other, bytes) {
                        lane.post(MILLIS, input);
                    }
                }
            }
            self.agenda.set(self.setup.hosts + at, 0);
        }
    }

    /// Something for a ring of a host, at a time.
    pub fn post(&mut self, (at, ring): (usize, usize), time: u64, input: Input) {
        let host = &mut self.hosts[at];
        if let Some(lane) = host.lane(ring) {
            host.lanes[lane].post(time, input);
            let (slot, time) = (self.setup.hosts + at, time.max(host.free));
            if time < self.agenda.time(slot) {
                self.agenda.set(slot, time);
            }
        }
    }

    /// The switch has the next frame of a card.
    fn cross(&mut self, card: usize) {
        if let Some(frame) = self.wire.take(card)
            && let To::One(to) = frame.to
        {
            self.forward(frame, (card, to));
        }
        self.agenda.set(card, self.wire.next(card));
    }

    fn forward(&mut self, frame: Frame, (from, to): (usize, usize)) {
        let Some(forwarded) = self.wire.forward(&frame, (from, to)) else {
            return;
        };
        if let Some(Load::Message(ring, bytes)) = frame.load {
            let message = links::message(from, bytes);
            self.post((to, ring), forwarded.arrives, message);
        }
    }

    /// A host has delivered a configuration of a ring with all of its hosts.
    pub fn on_formed(&mut self, (at, lane): (usize, usize)) {
        if std::mem::replace(&mut self.hosts[at].lanes[lane].is_formed, true) {
            self.tally.reconfigurations += 1;
            return;
        }
        self.unformed -= 1;
        if self.unformed == 0 {
            self.stage.1 = self.now + REST;
        }
    }

    fn end_stage(&mut self) {
        let (from, span) = (self.now, self.setup.span);
        self.stage = match self.stage.0 {
            Stage::Forming => {
                assert!(self.unformed == 0, "the hosts did not come together");
                self.meter.from = from + span.warm_up;
                self.meter.until = self.meter.from + span.measured;
                self.begin_load();
                (Stage::WarmUp, self.meter.from)
            }
            Stage::WarmUp => {
                self.work = Work::of(&self.hosts, self.setup.rings.len());
                (Stage::Measured, self.meter.until)
            }
            Stage::Measured => {
                let after = Work::of(&self.hosts, self.setup.rings.len());
                self.work = after.since(&self.work);
                let lanes = self.hosts.iter_mut().flat_map(|host| &mut host.lanes);
                lanes.for_each(|lane| lane.source.end());
                (Stage::Drain, from + DRAIN)
            }
            Stage::Drain | Stage::Over => (Stage::Over, NEVER),
        };
    }

    fn begin_load(&mut self) {
        for (at, host) in self.hosts.iter_mut().enumerate() {
            for lane in &mut host.lanes {
                let ring = &self.setup.rings[lane.ring];
                if !ring.senders.contains(&at) {
                    continue;
                }
                let shared = Shared {
                    load: ring.load,
                    senders: ring.senders.len(),
                    message_bytes: self.payloads[lane.ring].len(),
                    client: self.setup.costs.client,
                };
                lane.source.begin(&shared, self.now);
                lane.due = self.now;
            }
            let time = self.now.max(host.free);
            self.agenda.set(self.setup.hosts + at, time);
        }
    }

    fn is_drained(&self) -> bool {
        let each = self.setup.rings.iter().zip(&self.submitted);
        let all = each.map(|(ring, submitted)| ring.subscribers.len() as u64 * submitted);
        self.tally.delivered == all.sum()
    }

    fn result(self) -> RingsRun {
        let rings = self.setup.rings.iter();
        let over = Over {
            meter: &self.meter,
            subscribers: rings.map(|ring| ring.subscribers.len()).collect(),
            work: &self.work,
            judged: judge(&self.hosts, &self.submitted),
            disturbed: self.tally.reconfigurations + self.tally.stopped,
            events: self.tally.events,
            all_deliveries: self.tally.delivered,
            now: self.now,
        };
        over.run()
    }
}

#[cfg(test)]
pub mod tests {
    use crate::rings::{OneRing, RingsSetup};
    use crate::setup::{DiskPlan, LinkPlan, Load};

    /// Rings on the same hosts, for tests of parts.
    pub fn setup(hosts: usize, rings: u16) -> RingsSetup {
        let base = crate::world::tests::setup(hosts, hosts);
        let ring = |rank| OneRing::new(rank, (0..hosts).collect(), Load::Rate(10_000_000), 1350);
        RingsSetup {
            hosts,
            wire: base.wire,
            costs: base.costs,
            links: LinkPlan::default(),
            disk: DiskPlan::MEMORY,
            rings: (1..=rings).map(ring).collect(),
            span: base.span,
            seed: 1,
        }
    }
}
