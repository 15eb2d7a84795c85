//! The four states of a process, and what is kept in each (A3).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use crate::Ordering;
use crate::wire::Commit;
use rota_core::contract::{Process, Time};

/// What a process is doing.
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
    /// Exchanging what was sent on the old rings.
    Recovery(Box<Recovery>),
    /// Gone of its own will.
    Left,
}

#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// Who has said the same as this process, itself included.
    pub consensus: BTreeSet<Process>,
    /// Who was answered, and how often, since this process has said to all what it believes.
    pub answered: BTreeMap<Process, u32>,
    /// Joins to all since one was due by time.
    pub said: u32,
    pub join_at: Time,
    /// Who has not agreed by then is given up.
    pub give_up_at: Time,
    /// When those who have given this process up are called given up.
    pub speak_at: Option<Time>,
    /// All agree, and the representative has until then to send the commit token.
    pub commit_by: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Committing {
    /// As it was sent on last.
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
