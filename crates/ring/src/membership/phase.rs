//! The states of a process, Totem's four and those before and after them, and the data kept in each (A3).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use crate::Ordering;
use crate::wire::Commit;
use rota_core::contract::{Process, Time};

/// The state of a process.
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

#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// The processes that have said the same as this one, itself included.
    pub consensus: BTreeSet<Process>,
    /// The processes answered since the last join to all, and how often.
    pub answered: BTreeMap<Process, u32>,
    /// Joins to all since one was due by time.
    pub said: u32,
    pub join_at: Time,
    /// The time at which processes that have not agreed are given up.
    pub give_up_at: Time,
    /// The time at which processes are given up that have given this one up.
    pub speak_at: Option<Time>,
    /// The time by which the commit token of the representative has to come, once all agree.
    pub commit_by: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Committing {
    /// The commit token as it was sent on last.
    pub token: Commit,
    pub resend_at: Time,
    pub give_up_at: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Recovery {
    /// The ring that is being formed.
    pub next: Ordering,
    pub plan: Plan,
    /// The commit token as it was sent on last, until a regular token shows that it arrived.
    pub sent: Option<(Commit, Time)>,
    /// `token_seq` of the commit token sent on last.
    pub commit_seq: u64,
    /// On the representative: the first regular token was created.
    pub started: bool,
}

impl Phase {
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
}
