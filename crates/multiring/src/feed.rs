//! A ring of several: an engine of the Paxos family, with the leveling by its coordinator.

use rota_core::contract::{
    Class, Delivery, Engine, Input, Output, Seq, Service, Status, SubmitError, Time, TimerReason,
};
use rota_paxos::uring::{Snapshot, URing};

use crate::level::{LevelCounters, Leveler, Mode, Standing};
use crate::order::{Constants, Instance, Rank, Round};

/// An engine that a merge may be fed by: one order for ever, whose instances are dense from 1.
pub trait Feed: Engine {
    /// The first instance without a proposal of this process, which coordinates; `None` if it may propose nothing.
    fn proposed(&self) -> Option<Instance>;

    /// The first instance that is not known to be decided here.
    fn decided(&self) -> Instance;

    /// A merge here waits until everything before an instance is known.
    fn need(&mut self, now: Time, next: Instance);

    /// The instance before which everything is waited for, here or at a process that has said so since the last call.
    fn take_needed(&mut self) -> Option<Instance>;

    /// The foundation that this process belongs to.
    fn founded(&self) -> Option<u64>;

    /// The application has a state with everything before this snapshot: to be called before the start.
    fn resume(&mut self, founded: u64, base: Snapshot);

    /// Whether the state that the application has is of another foundation.
    fn is_refounded(&self) -> bool;

    /// The first instance that the application was told nothing of.
    fn told(&self) -> Instance;

    /// The application wants the snapshot of a place to which it will come. Returns whether it will get it.
    fn want_snapshot(&mut self, next: Instance) -> bool;

    /// A snapshot that was wanted.
    fn take_base(&mut self) -> Option<Snapshot>;
}

impl Feed for URing {
    fn proposed(&self) -> Option<Instance> {
        Self::proposed(self)
    }

    fn decided(&self) -> Instance {
        self.learnt()
    }

    fn need(&mut self, now: Time, next: Instance) {
        Self::need(self, now, next);
    }

    fn take_needed(&mut self) -> Option<Instance> {
        Self::take_needed(self)
    }

    fn founded(&self) -> Option<u64> {
        self.config().map(|config| config.founded)
    }

    fn resume(&mut self, founded: u64, base: Snapshot) {
        Self::resume(self, founded, base);
    }

    fn is_refounded(&self) -> bool {
        Self::is_refounded(self)
    }

    fn told(&self) -> Instance {
        Self::told(self)
    }

    fn want_snapshot(&mut self, next: Instance) -> bool {
        Self::want_snapshot(self, next)
    }

    fn take_base(&mut self) -> Option<Snapshot> {
        Self::take_base(self)
    }
}

/// The constants of a ring of several, and the mode in which it keeps up with the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingOf {
    /// The constants, for ever, and the same at all nodes.
    pub constants: Constants,
    /// The leveling mode, as its coordinator is told.
    pub mode: Mode,
}

/// Values that a ring has proposed, for the other rings of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announced {
    /// The round of the last one.
    pub round: Round,
    /// The number of instances with values, as rounds.
    pub rounds: Round,
}

/// The engine of a ring of several.
#[derive(Debug)]
pub struct Leveled<E> {
    engine: E,
    of: RingOf,
    now: Time,
    /// The leveler, while this process coordinates.
    leveler: Option<Leveler>,
    /// The instance before which proposals were looked at.
    seen: Instance,
    /// The need that was looked at last.
    needed: Option<Instance>,
    /// The last round in which a value was proposed, and the number of instances with values, that the other rings were
    /// not told of.
    announced: Option<(Round, Instance)>,
    /// The counters of earlier times as the coordinator.
    before: LevelCounters,
}

impl<E: Feed> Leveled<E> {
    /// Around an engine that was not started.
    pub fn new(engine: E, of: RingOf) -> Self {
        Self {
            engine,
            of,
            now: Time(0),
            leveler: None,
            seen: 1,
            needed: None,
            announced: None,
            before: LevelCounters::default(),
        }
    }

    /// Its constants and its mode.
    pub const fn of(&self) -> &RingOf {
        &self.of
    }

    /// The engine inside.
    pub const fn get(&self) -> &E {
        &self.engine
    }

    /// The same, to be asked for snapshots, or to be told where to begin.
    pub const fn get_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// A merge waits for this ring up to the end of a round. To be called once for each round; the engine asks for the
    /// round until it is known.
    pub fn need(&mut self, now: Time, round: Round) {
        self.now = now;
        let next = self.of.constants.first_of(round.saturating_add(1));
        self.engine.need(now, next);
    }

    /// The values that were proposed here since the last call; none of a ring with [`Mode::Horizon`].
    pub fn take_announced(&mut self) -> Option<Announced> {
        let (round, instances) = self.announced.take()?;
        let many = u64::from(self.of.constants.per_round.get());
        Some(Announced {
            round,
            rounds: instances.div_ceil(many),
        })
    }

    /// Another ring, which some merge of this process has as well, has proposed values.
    pub fn announce(&mut self, now: Time, from: Rank, announced: Announced) {
        self.now = now;
        if let Some(leveler) = &mut self.leveler {
            leveler.on_announced(from, announced.round, announced.rounds);
        }
    }

    /// The counters of the leveling.
    pub fn counters(&self) -> LevelCounters {
        let now = self.leveler.as_ref().map(Leveler::counters);
        now.map_or(self.before, |now| self.before.and(now))
    }

    /// Skips the instances that have to be skipped. Returns whether there were any.
    fn level(&mut self) -> bool {
        let Some(next) = self.engine.proposed() else {
            self.before = self.counters();
            self.leveler = None;
            return false;
        };
        let of = self.of;
        if self.leveler.is_none() {
            (self.seen, self.needed) = (next, None);
        }
        let leveler = self
            .leveler
            .get_or_insert_with(|| Leveler::new(of.constants, of.mode));
        if next > self.seen {
            leveler.on_value(next - 1, self.now.0);
            // Other rings would skip ahead of their own messages, which would then wait for this slow decision.
            if of.mode != Mode::Horizon {
                let before = self.announced.map_or(0, |(_, instances)| instances);
                let instances = before + (next - self.seen);
                self.announced = Some((of.constants.round_of(next - 1), instances));
            }
            self.seen = next;
        }
        let needed = self.engine.take_needed();
        if needed != self.needed {
            self.needed = needed;
            let rounds = needed.map(|next| of.constants.round_of(next - 1));
            rounds.into_iter().for_each(|round| {
                leveler.on_need(round);
            });
        }
        let to = leveler.skip_to(Standing {
            now: self.now.0,
            next,
            decided: self.engine.decided(),
        });
        let Some(to) = to else {
            return false;
        };
        // A refused skip is not proposed, and is asked for again.
        let _ = self.engine.submit_skips_to(self.now, to);
        self.seen = self.engine.proposed().unwrap_or(next);
        leveler.on_skipped(next, self.seen, self.now.0);
        self.seen > next
    }
}

impl<E: Feed> Engine for Leveled<E> {
    fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        self.engine.handle(now, input);
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.now = now;
        self.engine.submit(now, service, payload)
    }

    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        self.now = now;
        self.engine.submit_skips_to(now, next)
    }

    fn leave(&mut self, now: Time) {
        self.engine.leave(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.engine.poll_output() {
                return Some(output);
            }
            if !self.level() {
                return None;
            }
        }
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.engine.poll_delivery()
    }

    fn reading(&self) -> Class {
        self.engine.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let due = self.leveler.as_ref().and_then(Leveler::due);
        let due = due.map(|at| (Time(at), TimerReason::Other("leveling")));
        let engine = self.engine.next_timer();
        engine.into_iter().chain(due).min_by_key(|(at, _)| *at)
    }

    fn wants_links(&self) -> bool {
        self.engine.wants_links()
    }

    fn status(&self) -> Status {
        let mut status = self.engine.status();
        let level = self.counters();
        status.counters.extend([
            ("ring_skips", level.skips),
            ("ring_skipped", level.skipped),
            ("ring_needs", level.needs),
            ("ring_needs_far", level.far),
            ("ring_needs_refused", level.refused),
        ]);
        status
    }
}
