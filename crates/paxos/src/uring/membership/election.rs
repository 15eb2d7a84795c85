//! What a process knows of those around it, and how long it waits for what.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::super::context::Context;
use super::{MOST_PUT_OFF, MOST_WAITS};
use crate::{Candidate, Config};
use rota_core::contract::{NodeId, Process, Time};
use rota_core::mutants::{self, Mutant};

/// Waits double so often.
const MOST_DOUBLED: u32 = 6;

/// A configuration lasts that is not over in so many times the silence after which a predecessor is suspected,
const LASTS: u64 = 10;
/// and so many in succession that do not last are nothing strange.
const FEW_SHORT: u32 = 3;
/// Then the silence doubles with each, so often.
const MOST_LONGER: u32 = 3;

/// What this process wants to follow.
#[derive(Debug)]
pub enum Campaign {
    /// The acceptors are asked.
    Register(Candidate<Arc<Config>>),
    /// The service is.
    Service(Arc<Config>),
}

/// Why a process stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct CampaignReason {
    /// Whom it leaves out though there is a link.
    pub suspect: Option<Process>,
    /// The coordinator is to be another one.
    pub lead: bool,
    /// Where it might coordinate itself, it lets the next one.
    pub yields: bool,
}

/// What a process knows of those around it.
#[derive(Debug, Default)]
pub struct Election {
    pub(super) candidate: Option<Campaign>,
    pub(super) why: CampaignReason,
    /// It let another one coordinate when it wanted another coordinator last.
    pub(super) yielded: bool,
    /// When the candidate tries again.
    pub(super) again: Time,
    /// When the configuration became known.
    pub(super) known: Time,
    /// When something was told last that the round needs to begin.
    pub(super) moved: Time,
    /// How much of that the coordinator has had, as far as is known.
    pub(super) told: u64,
    /// How often the candidate has tried.
    tries: u32,
    /// So many configurations in succession had no round that has begun here.
    pub(super) unbegun: u32,
    /// How often another round was wanted, for votes that nobody could cast, since the last one that has lasted.
    pub(super) rounds: u32,
    /// How often members were to be named once more since then.
    pub(super) views: u32,
    /// So many configurations did not last and ended as somebody else was left out than the last time, less those that lasted.
    short: u32,
    /// Who was left out last.
    left_out: Option<NodeId>,
    /// Since when there is no link.
    pub(super) down: BTreeMap<Process, Time>,
    /// Who has said that it leaves.
    pub(super) gone: BTreeSet<Process>,
    /// Who is not in the ring asks to be taken in at this time.
    pub(super) join: Time,
    /// How often the wait for that has doubled.
    pub(super) waits: u64,
    /// Who is not in the ring stands itself at this time, if nobody coordinates.
    pub(super) stand: Time,
    /// The coordinator takes those in who want it at this time.
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

    /// There is none any more.
    pub fn on_down(&mut self, process: Process, now: Time) {
        // Of each node one life.
        self.down.retain(|who, _| who.node != process.node);
        self.down.insert(process, now);
    }

    /// The round has got nearer to its beginning.
    pub const fn on_nearer(&mut self, now: Time) {
        self.moved = now;
    }

    /// Its coordinator has been told so many things more.
    pub const fn on_told(&mut self, more: u64, now: Time) {
        (self.told, self.moved) = (self.told + more, now);
    }

    /// Its coordinator has been told so much in all, as the predecessor says.
    pub const fn heard_told(&mut self, told: u64, now: Time) {
        if told > self.told {
            (self.told, self.moved) = (told, now);
        }
    }

    /// How much the coordinator was told, as far as is known.
    pub const fn told(&self) -> u64 {
        self.told
    }

    /// When this process asks to be taken in.
    pub const fn joins_at(&self) -> Time {
        self.join
    }

    /// When the round got nearer to its beginning last.
    pub(super) fn nearer(&self) -> Time {
        self.known.max(self.moved)
    }

    /// How long the predecessor may be silent. Who is busy answers late: where configurations follow each other in no time, and
    /// now one is suspected and now another, it gets longer, and less again as they last.
    pub(super) fn silence(&self, cx: &Context) -> u64 {
        let silence = cx.settings.patience.silence;
        let short = self.short.saturating_sub(self.lasted(cx));
        let longer = short.saturating_sub(FEW_SHORT).min(MOST_LONGER);
        match mutants::on(Mutant::U84) {
            true => silence,
            false => silence << longer,
        }
    }

    /// A configuration is over, and this one follows. Whether it has lasted.
    pub(super) fn has_lasted(
        &mut self,
        cx: &Context,
        before: Option<&Config>,
        (next, decided): (&Config, bool),
    ) -> bool {
        let lasted = match decided || mutants::on(Mutant::U105) {
            true => self.lasted(cx),
            // It was there, and of no use.
            false => 0,
        };
        self.short = self.short.saturating_sub(lasted);
        let is_out = |process: &&Process| !next.ring.contains(process);
        let left_out = before.and_then(|config| config.ring.iter().find(is_out));
        if let Some(left_out) = left_out.filter(|_| lasted == 0) {
            // Where it is the same one again and again, that one is silent, and is taken in ever less often.
            let last = self.left_out.replace(left_out.node);
            self.short += u32::from(last != Some(left_out.node));
        }
        lasted > 0
    }

    /// How many times as long as a configuration has to last the newest one has.
    fn lasted(&self, cx: &Context) -> u32 {
        let took = cx.now.since(self.known);
        u32::try_from(took / (LASTS * cx.settings.patience.silence)).unwrap_or(u32::MAX)
    }

    /// A configuration has begun here; or the one before it had no round that had.
    pub const fn on_begun(&mut self, begun: bool) {
        self.unbegun = if begun { 0 } else { self.unbegun + 1 };
    }

    /// Whoever wants to come in is taken in soon.
    pub fn admit_soon(&mut self, cx: &Context) {
        self.admit = Some(cx.now.after(cx.settings.patience.retry / 8));
    }

    /// The configuration before has lasted: what was tried in vain before it does not count any more.
    pub const fn on_lasted(&mut self, lacks_view: bool) {
        self.rounds = 0;
        if !lacks_view {
            self.views = 0;
        }
    }

    /// How long this process waits until it is taken in: longer each time when it is left out soon, and as at first when it was in
    /// for long. That others were together without it says nothing.
    pub fn wait_longer(&mut self, was_in: bool, is_out: bool, stays: bool) {
        let forgets = (stays && was_in) || mutants::on(Mutant::U85);
        if forgets {
            self.waits = 0;
        } else if was_in && is_out {
            self.waits = (2 * self.waits).clamp(1, MOST_WAITS);
        }
    }

    /// When the candidate tries again: each time later, until disks that take long have answered. `random`: below the wait and one
    /// time more.
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

    /// This process has asked to be taken in: when it asks again.
    pub fn asked_to_join(&mut self, cx: &Context) {
        let pause = (self.waits.min(MOST_PUT_OFF) + 1) * cx.settings.patience.retry;
        self.join = cx.now.after(pause);
    }
}
