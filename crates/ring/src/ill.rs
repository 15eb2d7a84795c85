//! The diagnosis of ill members, from the events that this member has seen on the ring.

use super::ordering::Ordering;
use rota_core::contract::{NodeId, Time};

impl Ordering {
    /// A member that has to be given up because it cannot receive what the others can.
    pub fn deaf_member(&self, now: Time) -> Option<NodeId> {
        self.deaf.member(now, 3 * self.config.timers.token_loss)
    }

    /// Whether no member receives what this one sends. The verdict comes sooner if this member has fallen silent before
    /// (`again`): else each attempt to come back would stop the others for as long.
    pub fn is_mute(&self, now: Time, again: bool) -> bool {
        let losses = if again { 1 } else { 5 };
        self.deaf
            .is_mute(now, losses * self.config.timers.token_loss)
    }

    /// Counts the losses of this member on the ring `before` on this one, too, if both have the same nodes.
    pub(crate) fn go_on_judging(&mut self, before: &Self) {
        let nodes = self.members.iter().map(|member| member.node);
        if nodes.eq(before.members.iter().map(|member| member.node)) {
            self.lossy = before.lossy.clone();
        }
    }

    /// Whether this member loses much that the others get. On a ring of two it is no use to know which of the two is
    /// ill.
    pub fn loses_much(&mut self, now: Time, found_out: bool) -> bool {
        let nanos = self.config.timers.token_loss;
        self.members.len() > 2 && self.lossy.loses_much(now, nanos, found_out)
    }

    /// A member that another member may just have given up as deaf.
    pub fn suspected_member(&self, now: Time) -> Option<NodeId> {
        self.deaf.behind(now, 2 * self.config.timers.token_loss)
    }
}
