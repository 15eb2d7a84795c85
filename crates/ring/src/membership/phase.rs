//! The phases of a process, Totem's four and those before and after them, and the steps from one to another (A3).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;

use super::commit::Committing;
use super::gather::Gather;
use super::local::Local;
use super::recovery::Recovery;
use crate::Ordering;
use crate::wire::{Commit, Join, MergeDetect};
use rota_core::contract::{Process, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// The phase of a process, with what it keeps only in that phase.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Not started, or its first ring number is not durable yet and was refused.
    Idle,
    /// On an installed ring.
    Operational,
    /// Looking for a set of processes that all agree on it.
    Gather(Gather),
    /// On its way to a ring with a name.
    Commit(Committing),
    /// Exchanging the packets of the old rings.
    Recovery(Box<Recovery>),
    /// Gone of its own will.
    Left,
}

/// The step that a process takes after an input. Only the engine takes steps; the phases ask for them.
#[derive(Debug)]
#[must_use]
pub(super) enum Step {
    /// The phase stays.
    Stay,
    /// To Gather, or to gather anew, as the ring has broken, or the sets have changed.
    Gather,
    /// To Commit, at the smallest of these processes, which all agree: it names the ring.
    Form(Vec<Process>),
    /// To Commit, at another of them: the commit token has come for the first time.
    Commit(Commit),
    /// To Recovery: the commit token has come for the second time, and every member has told.
    Recover(Commit),
    /// To Operational: the ring that is being formed can be installed.
    Install,
}

impl Phase {
    /// Its name, for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "starting",
            Self::Operational => "operational",
            Self::Gather(_) => "gathering",
            Self::Commit(_) => "committing",
            Self::Recovery(_) => "recovering",
            Self::Left => "left",
        }
    }

    /// Whether the process is on an installed ring.
    #[inline(always)]
    pub const fn is_operational(&self) -> bool {
        matches!(self, Self::Operational)
    }

    /// Whether the process gathers.
    pub const fn is_gather(&self) -> bool {
        matches!(self, Self::Gather(_))
    }

    /// The ring whose token goes round: the one to be, or the one that is installed.
    pub fn ring_in_use<'a>(&'a self, local: &'a Local) -> Option<&'a Ordering> {
        match self {
            Self::Recovery(recovery) => Some(recovery.ring()),
            _ => local.installed.ring(),
        }
    }

    /// The time at which the process has to act in this phase, and the reason.
    pub fn next_timer(&self, local: &Local) -> Option<(Time, TimerReason)> {
        match self {
            Self::Idle => Some((local.durable.pause_until(), TimerReason::Commit)),
            Self::Operational => {
                let ring = local.installed.ring().and_then(Ordering::next_timer);
                let merge = local
                    .looks_for_absent()
                    .then(|| (local.merge.look_at(), TimerReason::Merge));
                [ring, merge].into_iter().flatten().min()
            }
            Self::Gather(gather) => Some(gather.next_timer(&local.joins)),
            Self::Commit(committing) => Some(committing.next_timer()),
            Self::Recovery(recovery) => recovery.next_timer(),
            Self::Left => None,
        }
    }

    /// Whether a join concerns the process now: the rows "Join" of A6.
    pub fn takes_join(&self, local: &Local, join: &Join) -> bool {
        let sender = join.sender;
        if !local.sets.have_room_for(join) {
            return false;
        }
        match self {
            Self::Idle | Self::Left => false,
            Self::Operational => {
                let Some(installed) = local.installed.ring() else {
                    return false;
                };
                let stale = is_outdated(installed, sender, join.ring_seq);
                let given_up = join.fails.contains(&local.me) && !mutants::on(Mutant::M27);
                let news = !stale || mutants::on(Mutant::R04);
                news && !given_up && !local.leaves_alone(join) && !local.is_full_for(sender)
            }
            Self::Gather(_) => local.sets.know(sender) || !local.leaves_alone(join),
            Self::Commit(committing) => committing.takes_join(local, join),
            Self::Recovery(recovery) => recovery.takes_join(join),
        }
    }

    /// Whether a merge-detect message tells the process of a ring that it should be on, too.
    pub fn takes_presence(&self, local: &Local, presence: &MergeDetect) -> bool {
        let (sender, ring) = (presence.sender, presence.ring);
        let Some(installed) = local.installed.ring() else {
            return false;
        };
        let news = match self {
            Self::Operational => {
                let is_member = installed.members().contains(&sender);
                let stale = is_member && ring.ring_seq <= installed.ring().ring_seq;
                let outdated = is_outdated(installed, sender, ring.ring_seq);
                let is_other = ring != installed.ring();
                !stale && !outdated && is_other && !local.is_full_for(sender)
            }
            Self::Gather(_) => !local.sets.know(sender),
            _ => false,
        };
        news && !local.avoids(sender) && local.sets.have_room()
    }

    /// Feeds `print` with what decides on the further steps in this phase.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>, local: &Local) {
        print.add(self.name());
        match self {
            Self::Idle | Self::Operational | Self::Left => {}
            Self::Gather(gather) => {
                gather.fingerprint(print);
                local.joins.fingerprint(print);
            }
            Self::Commit(committing) => committing.fingerprint(print),
            Self::Recovery(recovery) => recovery.fingerprint(print),
        }
    }

    /// Its invariants.
    pub fn check(&self, local: &Local) {
        let has_ring = local.installed.ring().is_some();
        match self {
            Self::Idle | Self::Left => {}
            Self::Operational => assert!(has_ring, "an operational process is on a ring"),
            Self::Gather(gather) => gather.check(local.me),
            Self::Commit(committing) => committing.check(local.me),
            Self::Recovery(recovery) => {
                assert!(has_ring, "what is recovered is of a ring");
                recovery.check(local.me);
            }
        }
        let next = match self {
            Self::Commit(committing) => committing.ring_seq(),
            Self::Recovery(recovery) => recovery.ring_seq(),
            Self::Operational => return local.sets.check_at_rest(),
            Self::Idle | Self::Gather(_) | Self::Left => return,
        };
        let before = local.installed.ring().map(|ring| ring.ring().ring_seq);
        assert!(
            before.is_some_and(|before| before < next),
            "a ring follows one with a lower number"
        );
        assert!(
            next <= local.durable.agreed(),
            "the number of the next ring is agreed to"
        );
    }
}

/// Whether a number that `sender` knew of is from before it was on this ring, in this life or another: a
/// node's next life begins behind all numbers that it may have agreed to. (One that has lost its disk is
/// heard when the ring misses its former life.)
fn is_outdated(installed: &Ordering, sender: Process, ring_seq: u64) -> bool {
    let members = installed.members().iter();
    let mut nodes = members.map(|member| member.node);
    nodes.any(|node| node == sender.node) && ring_seq < installed.ring().ring_seq
}
