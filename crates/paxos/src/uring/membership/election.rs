//! The age of the newest configuration, and the patience with it: the time that its round takes to begin, the tries
//! that were in vain, and the time for which the predecessor may be silent.

use super::super::context::Context;
use crate::Config;
use rota_core::contract::{NodeId, Time};
use rota_core::mutants::{self, Mutant};

/// The number of times that a wait doubles, at most.
pub(super) const MOST_DOUBLED: u32 = 6;

/// A configuration lasts that is not over in this many times the silence after which a predecessor is suspected.
const LASTS: u64 = 10;
/// The number of configurations that do not last, without the silence growing.
const FEW_SHORT: u32 = 3;
/// The number of times, at most, that the silence doubles: once with each further one that does not last.
const MOST_LONGER: u32 = 3;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Election {
    /// The time at which the configuration became known; later, if a step was put off.
    known: Time,
    /// The time at which the round last got nearer to its beginning.
    moved: Time,
    /// The amount that the coordinator was told for the round to begin, as far as is known.
    told: u64,
    /// The number of configurations in succession without a round that has begun here.
    unbegun: u32,
    /// The number of times that another round was wanted, for votes that nobody could cast, since a configuration
    /// lasted.
    rounds: u32,
    /// The number of times that members were to be named once more since then.
    views: u32,
    /// The number of configurations that did not last and ended as another node was left out than the last time, less
    /// those that lasted.
    short: u32,
    /// The node that was left out last.
    left_out: Option<NodeId>,
    /// The time at which the coordinator takes in processes that want it.
    admit: Option<Time>,
}

/// A wait that doubles each time.
pub(super) const fn doubled(wait: u64, times: u32) -> u64 {
    let times = if times < MOST_DOUBLED {
        times
    } else {
        MOST_DOUBLED
    };
    wait << times
}

impl Election {
    /// The process starts.
    pub const fn start(&mut self, now: Time) {
        self.known = now;
    }

    /// The time at which the configuration became known; later, if a step was put off.
    pub const fn known(&self) -> Time {
        self.known
    }

    /// The round has got nearer to its beginning.
    pub const fn on_nearer(&mut self, now: Time) {
        self.moved = now;
    }

    /// The coordinator of the round has been told this much more.
    pub const fn on_told(&mut self, more: u64, now: Time) {
        (self.told, self.moved) = (self.told + more, now);
    }

    /// The coordinator of the round has been told this much in all, as the predecessor says.
    pub const fn heard_told(&mut self, told: u64, now: Time) {
        if told > self.told {
            (self.told, self.moved) = (told, now);
        }
    }

    /// The amount that the coordinator was told, as far as is known.
    pub const fn told(&self) -> u64 {
        self.told
    }

    /// The time at which the round last got nearer to its beginning.
    pub(super) fn nearer(&self) -> Time {
        self.known.max(self.moved)
    }

    /// The time for which the predecessor may be silent. A busy process answers late: the time grows if configurations
    /// follow each other in no time, and now one process is suspected and now another; it shrinks again as
    /// configurations last.
    pub(super) fn silence(&self, cx: &Context) -> u64 {
        let silence = cx.settings.patience.silence;
        let short = self.short.saturating_sub(self.lasted(cx));
        let longer = short.saturating_sub(FEW_SHORT).min(MOST_LONGER);
        match mutants::on(Mutant::U84) {
            true => silence,
            false => silence << longer,
        }
    }

    /// A configuration is over, and `next` follows. `decided`: something was decided in it. Returns whether it has
    /// lasted.
    pub(super) fn on_next(
        &mut self,
        cx: &Context,
        before: Option<&Config>,
        (next, decided): (&Config, bool),
    ) -> bool {
        let lasted = match decided || mutants::on(Mutant::U105) {
            true => self.lasted(cx),
            // A configuration without a decision was of no use.
            false => 0,
        };
        self.short = self.short.saturating_sub(lasted);
        let left_out = before.and_then(|config| {
            let mut ring = config.ring.iter();
            ring.find(|process| !next.ring.contains(process))
        });
        if let Some(left_out) = left_out.filter(|_| lasted == 0) {
            // A node that is left out again and again is silent, and is taken in ever less often: it does not count.
            let last = self.left_out.replace(left_out.node);
            self.short += u32::from(last != Some(left_out.node));
        }
        (self.known, self.moved) = (cx.now, cx.now);
        (self.told, self.admit) = (0, None);
        lasted > 0
    }

    /// The age of the newest configuration, as a multiple of the time that it has to last.
    fn lasted(&self, cx: &Context) -> u32 {
        let took = cx.now.since(self.known);
        u32::try_from(took / (LASTS * cx.settings.patience.silence)).unwrap_or(u32::MAX)
    }

    /// Takes whether the round of the configuration before has begun here.
    pub const fn on_begun(&mut self, begun: bool) {
        self.unbegun = if begun { 0 } else { self.unbegun + 1 };
    }

    /// A wait for the round to begin, longer with each configuration whose round did not.
    pub(super) const fn wait_to_begin(&self, wait: u64) -> u64 {
        doubled(wait, self.unbegun)
    }

    /// A wait for another round, longer with each that was wanted since a configuration lasted.
    pub(super) const fn wait_for_round(&self, wait: u64) -> u64 {
        doubled(wait, self.rounds)
    }

    /// A wait until members are named once more, longer each time since a configuration lasted.
    pub(super) fn wait_for_view(&self, wait: u64) -> u64 {
        let times = match mutants::on(Mutant::U67) {
            true => 0,
            false => self.views,
        };
        doubled(wait, times)
    }

    /// Another round is wanted, for votes that nobody can cast.
    pub(super) const fn wants_round(&mut self) {
        self.rounds += 1;
    }

    /// Members are to be named once more.
    pub(super) const fn wants_view(&mut self) {
        self.views += 1;
    }

    /// The configuration before has lasted: vain tries before it do not count any more.
    pub const fn on_lasted(&mut self, lacks_view: bool) {
        self.rounds = 0;
        if !lacks_view {
            self.views = 0;
        }
    }

    /// Processes that want to come in are taken in soon.
    pub fn admit_soon(&mut self, cx: &Context) {
        self.admit = Some(cx.now.after(cx.settings.patience.retry / 8));
    }

    /// The time at which the coordinator takes in processes that want it, if any are known.
    pub(super) const fn admits_at(&self) -> Option<Time> {
        self.admit
    }

    /// They were taken in, or none is left.
    pub(super) const fn stop_admitting(&mut self) {
        self.admit = None;
    }

    /// The predecessor is not suspected before this time.
    pub(super) const fn put_off_suspicion(&mut self, until: Time) {
        self.known = until;
    }

    /// Nothing counts as taking too long before this time.
    pub(super) const fn put_off(&mut self, until: Time) {
        (self.known, self.moved) = (until, until);
    }
}
