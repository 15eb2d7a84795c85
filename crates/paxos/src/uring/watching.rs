//! An observer: a process that learns, and is in no ring. It asks one acceptor for what is decided next, and is told as
//! soon as there is something; what is far ahead it asks for by ranges, as anybody who is behind.
//!
//! Nobody waits for an observer: it has no place in a ring, no vote, and nothing to order. An acceptor that says nothing
//! for the time of a silence may be dead, or have nothing to tell; the next one is asked then.

use super::context::Context;
use crate::Instance;
use rota_core::contract::{NodeId, Time};
use rota_core::mutants::{self, Mutant};

/// Up to this many decided instances are told at once. Of more the observer is told how far they go.
pub const FEW: u64 = 16;

/// The question of an observer that has no answer yet.
#[derive(Debug, Default)]
pub struct Watch {
    /// The acceptor, and the time at which it was asked, or last told something.
    asked: Option<(NodeId, Time)>,
    /// The turn of the acceptor that is asked.
    turn: usize,
}

impl Watch {
    /// The acceptor to ask, if none is being asked, or the one that is has been silent for too long.
    pub fn ask(&mut self, cx: &Context, acceptors: &[NodeId]) -> Option<NodeId> {
        if let Some((node, _)) = self.asked {
            let is_silent = self.next_time(cx).is_some_and(|at| at <= cx.now);
            if acceptors.contains(&node) && (!is_silent || mutants::on(Mutant::U138)) {
                return None;
            }
            self.turn = self.turn.wrapping_add(1);
        }
        let turn = self.turn.checked_rem(acceptors.len());
        let node = turn.and_then(|turn| acceptors.get(turn).copied());
        self.asked = node.map(|node| (node, cx.now));
        node
    }

    /// Whether an acceptor is being asked.
    pub fn is_of(&self, node: NodeId) -> bool {
        self.asked.is_some_and(|(asked, _)| asked == node)
    }

    /// An acceptor has told something. `more`: the rest is on its way.
    pub fn on_told(&mut self, now: Time, node: NodeId, more: bool) {
        if self.is_of(node) {
            self.asked = more.then_some((node, now));
        }
    }

    /// The time at which the next acceptor is asked.
    pub fn next_time(&self, cx: &Context) -> Option<Time> {
        self.asked
            .map(|(_, at)| at.after(cx.settings.patience.silence))
    }
}

/// An answer to an observer that knows everything before `from`, where everything before `next` is decided.
pub const fn is_little(from: Instance, next: Instance) -> bool {
    next.saturating_sub(from) <= FEW
}
