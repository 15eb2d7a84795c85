//! A member that cannot receive what the others can (membership A10, fail to receive).

use core::hash::Hasher;

use crate::contract::{NodeId, Seq, Time};
use crate::fingerprint::Fingerprint;
use crate::wire::Token;

/// New tokens in which nothing moved, at least, before a member counts as deaf.
const VISITS: u32 = 20;

/// Watches who holds the token's aru back by missing the same packet again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Deaf {
    suspect: Option<Suspect>,
    behind: Option<Behind>,
}

/// Who holds the aru back, for whatever reason. Whoever is asked first answers, and takes the request
/// from the token: most members see no more than this.
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
    /// A new token came in. A member whose application is slow holds the aru back, too, but asks for
    /// nothing.
    pub fn on_token(&mut self, now: Time, token: &Token, me: NodeId) {
        self.see_behind(now, token, me);
        let missing = token.rtr.first().map(|range| range.first);
        let stuck = missing == Some(token.aru + 1);
        let node = token.aru_id.filter(|&node| stuck && node != me);
        self.suspect = match (node, self.suspect) {
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
    }

    fn see_behind(&mut self, now: Time, token: &Token, me: NodeId) {
        let node = token.aru_id.filter(|&node| node != me);
        let before = self.behind.filter(|of| of.aru == token.aru);
        self.behind = node.map(|node| Behind {
            node,
            aru: token.aru,
            since: before
                .filter(|of| of.node == node)
                .map_or(now, |of| of.since),
        });
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self { suspect, behind } = self;
        print.add(suspect.map(|of| (of.node, of.aru, of.visits.min(VISITS))));
        print.past(suspect.map(|of| of.since));
        print.add(behind.map(|of| (of.node, of.aru)));
        print.past(behind.map(|of| of.since));
    }

    /// Who has been deaf for so long, in which others answered what it asked for.
    pub fn member(&self, now: Time, nanos: u64) -> Option<NodeId> {
        let suspect = self.suspect?;
        let long = now.since(suspect.since) >= nanos;
        (long && suspect.visits >= VISITS).then_some(suspect.node)
    }

    /// Who has held the aru back for so long.
    pub fn behind(&self, now: Time, nanos: u64) -> Option<NodeId> {
        let behind = self.behind?;
        (now.since(behind.since) >= nanos).then_some(behind.node)
    }
}
