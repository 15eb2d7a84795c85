//! The detection of a member that cannot receive what the others can (membership A10, fail to receive), and of one that
//! the others cannot receive.
//!
//! A member that lacks the packet itself accuses none: the sender may be mute. A member that sent the packet itself,
//! and has sent it again in vain for longer than others need to accuse a deaf member, is mute: no other member has the
//! packet.

use alloc::vec::Vec;
use core::hash::Hasher;

use crate::wire::Token;
use rota_core::contract::{NodeId, Seq, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::RequestRange;

/// The least number of new tokens without progress before a member counts as deaf.
const VISITS: u32 = 20;

/// New tokens without progress after which a member leaves the request for its own packet to others, too.
const FEW_VISITS: u32 = 6;

/// Watches for a member that holds the token's aru back by missing the same packet again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Deaf {
    suspect: Option<Suspect>,
    behind: Option<Behind>,
    /// A member that lacks a packet of this member's own.
    in_vain: Option<Suspect>,
    /// Requests for own packets are left to others until this time, as some member does not hear this one.
    unheard_until: Time,
    /// The requests that were left to others in the last visit.
    left: Vec<RequestRange>,
}

/// The state of the packet behind the token's aru at this member: lacking, here, or here and its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Lacks,
    Has,
    HasOwn,
}

/// The member that holds the aru back, for whatever reason. The first member that has a requested packet answers, and
/// takes the request from the token: most members see no more than this.
#[derive(Clone, Copy, Debug)]
struct Behind {
    node: NodeId,
    aru: Seq,
    since: Time,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    node: NodeId,
    aru: Seq,
    since: Time,
    visits: u32,
}

impl Deaf {
    /// Takes note of a new token. A member whose application is slow holds the aru back, too, but requests nothing.
    pub fn on_token(&mut self, now: Time, token: &Token, (me, next): (NodeId, Next)) {
        let next = if mutants::on(Mutant::M46) {
            Next::Has
        } else {
            next
        };
        self.see_behind(now, token, (me, next));
        let missing = token.rtr.first().map(|range| range.first);
        let stuck = missing == Some(token.aru + 1);
        let node = token.aru_id.filter(|&node| stuck && node != me);
        let suspect = |before: Option<Suspect>, node: Option<NodeId>| match (node, before) {
            (None, _) => None,
            (Some(node), Some(before)) if (before.node, before.aru) == (node, token.aru) => {
                Some(Suspect {
                    visits: before.visits.saturating_add(1),
                    ..before
                })
            }
            (Some(node), _) => Some(Suspect {
                node,
                aru: token.aru,
                since: now,
                visits: 0,
            }),
        };
        self.suspect = suspect(self.suspect, node.filter(|_| next == Next::Has));
        self.in_vain = suspect(self.in_vain, node.filter(|_| next == Next::HasOwn));
    }

    fn see_behind(&mut self, now: Time, token: &Token, (me, next): (NodeId, Next)) {
        let node = token
            .aru_id
            .filter(|&node| node != me && next != Next::Lacks);
        let before = self.behind.filter(|of| of.aru == token.aru);
        self.behind = node.map(|node| Behind {
            node,
            aru: token.aru,
            since: before
                .filter(|of| of.node == node)
                .map_or(now, |of| of.since),
        });
    }

    /// Its invariants, at the member `me`.
    pub fn check(&self, me: NodeId) {
        let suspects = [self.suspect, self.in_vain];
        let mut accused = suspects.iter().flatten().map(|of| of.node);
        assert!(
            accused.all(|node| node != me) && self.behind.is_none_or(|of| of.node != me),
            "no member suspects itself"
        );
        assert!(
            self.suspect.is_none() || self.in_vain.is_none(),
            "a packet is its own or another's"
        );
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            suspect,
            behind,
            in_vain,
            unheard_until,
            left,
        } = self;
        print.due(*unheard_until);
        print.add(left);
        print.add(suspect.map(|of| (of.node, of.aru, of.visits.min(VISITS))));
        print.past(suspect.map(|of| of.since));
        print.add(behind.map(|of| (of.node, of.aru)));
        print.past(behind.map(|of| of.since));
        print.add(in_vain.map(|of| (of.node, of.aru, of.visits.min(VISITS))));
        print.past(in_vain.map(|of| of.since));
    }

    /// Whether the packet that holds the aru back is this member's own, and was sent again some times in vain.
    pub fn is_asked_in_vain(&self, seq: Seq) -> bool {
        let is_it = |of: Suspect| of.aru + 1 == seq && of.visits >= FEW_VISITS;
        self.in_vain.is_some_and(is_it) && !mutants::on(Mutant::M47)
    }

    /// Notes that such a packet was sent again: for `nanos` nanoseconds the others are asked first.
    pub fn on_unheard(&mut self, now: Time, nanos: u64) {
        self.unheard_until = now.after(nanos);
    }

    /// Whether a request for an own packet is left to others. It is while some member does not hear this one, unless it
    /// was left in the last visit already and no member has answered it since.
    pub fn leaves(&self, now: Time, seq: Seq) -> bool {
        let was_left = self
            .left
            .iter()
            .any(|range| (range.first..=range.last()).contains(&seq));
        now < self.unheard_until && !was_left && !mutants::on(Mutant::M62)
    }

    /// Records the requests that were left to others in this visit.
    pub fn on_left(&mut self, left: Vec<RequestRange>) {
        self.left = left;
    }

    /// Whether a packet of this member's own was sent again in vain for `nanos` nanoseconds and `VISITS` visits.
    pub fn is_mute(&self, now: Time, nanos: u64) -> bool {
        let is_long = |of: Suspect| now.since(of.since) >= nanos && of.visits >= VISITS;
        self.in_vain.is_some_and(is_long)
    }

    /// The member that has been deaf for `nanos` nanoseconds: it has requested the same packet all the time, and this
    /// member has that packet.
    pub fn member(&self, now: Time, nanos: u64) -> Option<NodeId> {
        let suspect = self.suspect?;
        let long = now.since(suspect.since) >= nanos;
        (long && suspect.visits >= VISITS).then_some(suspect.node)
    }

    /// The member that has held the aru back for `nanos` nanoseconds.
    pub fn behind(&self, now: Time, nanos: u64) -> Option<NodeId> {
        let behind = self.behind?;
        (now.since(behind.since) >= nanos).then_some(behind.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use rota_core::contract::{Incarnation, RingId};
    use rota_core::wire::RequestRange;

    const LONG: u64 = 1_000_000;

    fn node(id: u16) -> NodeId {
        NodeId::new(id).expect("not 0")
    }

    /// Node 2 asks for the packet behind this aru.
    fn asked(aru: Seq) -> Token {
        let ring = RingId {
            ring_seq: 4,
            rep: node(1),
            incarnation: Incarnation(1),
        };
        Token {
            cluster: 1,
            ring,
            sender: node(3),
            token_seq: 1,
            seq: 90,
            aru,
            aru_id: Some(node(2)),
            fcc: 0,
            backlog: 0,
            idle: false,
            recovering: false,
            rtr: vec![RequestRange {
                first: aru + 1,
                count: 1,
            }],
        }
    }

    /// A first visit and `visits` more, each `LONG` nanoseconds after the one before.
    fn visited(visits: u32, next: Next, aru: impl Fn(u32) -> Seq) -> (Deaf, Time) {
        let (mut deaf, mut now) = (Deaf::default(), Time(0));
        for visit in 0..=visits {
            now = now.after(LONG);
            deaf.on_token(now, &asked(aru(visit)), (node(1), next));
        }
        (deaf, now)
    }

    #[test]
    fn who_is_deaf_has_been_answered_for_long_and_in_many_visits() {
        let (deaf, now) = visited(VISITS - 1, Next::Has, |_| 7);
        assert_eq!(deaf.member(now, LONG), None, "a slow ring has few visits");
        let (deaf, now) = visited(VISITS, Next::Has, |_| 7);
        assert_eq!(deaf.member(now, LONG), Some(node(2)));
        let longer = (u64::from(VISITS) + 1) * LONG;
        assert_eq!(deaf.member(now, longer), None, "a fast one has them soon");
    }

    #[test]
    fn who_gets_something_is_not_deaf() {
        let (deaf, now) = visited(3 * VISITS, Next::Has, |visit| u64::from(visit / VISITS));
        assert_eq!(deaf.member(now, LONG), None);
    }

    #[test]
    fn who_lacks_it_too_accuses_nobody() {
        let (deaf, now) = visited(VISITS, Next::Lacks, |_| 7);
        assert_eq!(deaf.member(now, LONG), None);
        assert!(!deaf.is_mute(now, LONG));
    }

    #[test]
    fn whose_packet_it_is_may_be_mute_itself() {
        let (deaf, now) = visited(VISITS - 1, Next::HasOwn, |_| 7);
        assert!(!deaf.is_mute(now, LONG));
        assert!(deaf.is_asked_in_vain(8));
        let (deaf, now) = visited(VISITS, Next::HasOwn, |_| 7);
        assert!(deaf.is_mute(now, LONG));
        assert_eq!(deaf.member(now, LONG), None);
    }
}
