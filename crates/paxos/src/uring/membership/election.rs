//! The state of elections at a process: its knowledge of the others, and its waits.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::super::context::Context;
use super::{MOST_PUT_OFF, MOST_WAITS};
use crate::{Candidate, Config};
use rota_core::contract::{NodeId, Process, Time};
use rota_core::mutants::{self, Mutant};

/// The number of times that a wait doubles, at most.
const MOST_DOUBLED: u32 = 6;

/// A configuration lasts that is not over in this many times the silence after which a predecessor is suspected.
const LASTS: u64 = 10;
/// The number of configurations that do not last, without the silence growing.
const FEW_SHORT: u32 = 3;
/// The number of times, at most, that the silence doubles: once with each further one that does not last.
const MOST_LONGER: u32 = 3;

/// The configuration that this process wants, and the authority that it asks.
#[derive(Debug)]
pub enum Campaign {
    /// The acceptors are asked.
    Register(Candidate<Arc<Config>>),
    /// The service is asked.
    Service(Arc<Config>),
}

/// The reason why a process stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct CampaignReason {
    /// The process that it leaves out though there is a link.
    pub suspect: Option<Process>,
    /// The coordinator is to be another one.
    pub lead: bool,
    /// It lets the next process coordinate instead of itself.
    pub yields: bool,
}

/// The state of elections at a process.
#[derive(Debug, Default)]
pub struct Election {
    pub(super) candidate: Option<Campaign>,
    pub(super) why: CampaignReason,
    /// It let another process coordinate when it last wanted another coordinator.
    pub(super) yielded: bool,
    /// The time at which the candidate tries again.
    pub(super) again: Time,
    /// The time at which the configuration became known; later, if a step was put off.
    pub(super) known: Time,
    /// The time at which the round last got nearer to its beginning.
    pub(super) moved: Time,
    /// The amount that the coordinator was told for the round to begin, as far as is known.
    pub(super) told: u64,
    /// The number of tries of the candidate.
    tries: u32,
    /// The number of configurations in succession without a round that has begun here.
    pub(super) unbegun: u32,
    /// The number of times that another round was wanted, for votes that nobody could cast, since a configuration
    /// lasted.
    pub(super) rounds: u32,
    /// The number of times that members were to be named once more since then.
    pub(super) views: u32,
    /// The number of configurations that did not last and ended as another node was left out than the last time, less
    /// those that lasted.
    short: u32,
    /// The node that was left out last.
    left_out: Option<NodeId>,
    /// By process: the time since which there is no link.
    pub(super) down: BTreeMap<Process, Time>,
    /// Processes that have said that they leave.
    pub(super) gone: BTreeSet<Process>,
    /// The time at which this process, outside the ring, asks to be taken in.
    pub(super) join: Time,
    /// The wait for that, as a multiple of the retry time: 0 at first, then 1, and doubled each time.
    pub(super) waits: u64,
    /// The time at which this process, outside the ring, stands itself, if nobody coordinates.
    pub(super) stand: Time,
    /// The time at which the coordinator takes in processes that want it.
    pub(super) admit: Option<Time>,
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

    /// There is a link to a process.
    pub fn on_up(&mut self, process: Process) {
        self.down.remove(&process);
    }

    /// There is no link to a process any more.
    pub fn on_down(&mut self, process: Process, now: Time) {
        // One life of each node is kept.
        self.down.retain(|who, _| who.node != process.node);
        self.down.insert(process, now);
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

    /// The time at which this process asks to be taken in.
    pub const fn joins_at(&self) -> Time {
        self.join
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

    /// A configuration is over, and `next` follows. Returns whether the one before has lasted.
    pub(super) fn has_lasted(
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
        let is_out = |process: &&Process| !next.ring.contains(process);
        let left_out = before.and_then(|config| config.ring.iter().find(is_out));
        if let Some(left_out) = left_out.filter(|_| lasted == 0) {
            // A node that is left out again and again is silent, and is taken in ever less often: it does not count.
            let last = self.left_out.replace(left_out.node);
            self.short += u32::from(last != Some(left_out.node));
        }
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

    /// Processes that want to come in are taken in soon.
    pub fn admit_soon(&mut self, cx: &Context) {
        self.admit = Some(cx.now.after(cx.settings.patience.retry / 8));
    }

    /// The configuration before has lasted: vain tries before it do not count any more.
    pub const fn on_lasted(&mut self, lacks_view: bool) {
        self.rounds = 0;
        if !lacks_view {
            self.views = 0;
        }
    }

    /// Sets the wait of this process until it is taken in: longer each time that it is left out soon, and as at first
    /// when it was in for long. The time that others were together without it says nothing.
    pub fn wait_longer(&mut self, was_in: bool, is_out: bool, stays: bool) {
        let forgets = (stays && was_in) || mutants::on(Mutant::U85);
        if forgets {
            self.waits = 0;
        } else if was_in && is_out {
            self.waits = (2 * self.waits).clamp(1, MOST_WAITS);
        }
    }

    /// Sets the time at which the candidate tries again: each time later, until slow disks have answered. `random`:
    /// draws a number below the wait and one retry time.
    pub(super) fn try_later(&mut self, cx: &Context, random: impl FnOnce(u64) -> u64) {
        let patience = cx.settings.patience;
        let tries = match mutants::on(Mutant::U55) {
            true => 0,
            false => self.tries,
        };
        // Twice for each ballot, and once more for the ring's thread.
        let most = (4 * patience.disk).max(patience.retry << MOST_DOUBLED);
        let wait = match mutants::on(Mutant::U78) {
            true => doubled(patience.retry, tries),
            false => (patience.retry << tries.min(2 * MOST_DOUBLED)).min(most),
        };
        let random = random(patience.retry + wait);
        self.again = cx.now.after(wait / 2 + random);
        self.tries += 1;
    }

    /// A candidacy begins.
    pub(super) const fn begin(&mut self) {
        self.tries = 0;
    }

    /// This process has asked to be taken in: sets the time at which it asks again.
    pub fn asked_to_join(&mut self, cx: &Context) {
        let pause = (self.waits.min(MOST_PUT_OFF) + 1) * cx.settings.patience.retry;
        self.join = cx.now.after(pause);
    }
}
