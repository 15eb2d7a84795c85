//! The decision whether a configuration may become primary, from the knowledge of its members (Yeger-Lotem, Keidar and
//! Dolev 1997, §4).

use alloc::vec::Vec;

use super::message::MOST_ATTEMPTS;
use super::session::{Knowledge, Session};
use crate::contract::NodeId;
use crate::mutants::{self, Mutant};

/// The common knowledge of the members of a configuration. The same at all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    /// The last primary that any member knows of.
    pub last: Option<Session>,
    /// Attempts since then that may have become primary, or may not.
    pub open: Vec<Session>,
    /// Whether this configuration may become primary.
    pub eligible: bool,
}

/// The knowledge that each member of the configuration has told.
pub(super) type Told<'a> = [(NodeId, &'a Knowledge)];

/// Where no member knows of a later primary than the first, `electorates` are the lists of nodes that count in the
/// first one, as the members are configured.
pub(super) fn decide(this: &Session, told: &Told<'_>, electorates: &[Vec<NodeId>]) -> Verdict {
    let forgot = Knowledge::default();
    let told: Vec<_> = told
        .iter()
        .map(|&(node, known)| match has_forgotten(node, known, told) {
            true => (node, &forgot),
            false => (node, known),
        })
        .collect();
    let told = &told[..];
    let last = told.iter().filter_map(|(_, known)| known.last.as_ref());
    let last = last.max().cloned();
    let mut open: Vec<Session> = told
        .iter()
        .flat_map(|(_, known)| &known.attempts)
        .filter(|attempt| last.as_ref().is_none_or(|last| attempt.ring > last.ring))
        .cloned()
        .collect();
    open.sort_unstable();
    open.dedup();
    open.retain(|attempt| !is_settled(attempt, told));
    let eligible = last.as_ref().is_some_and(|last| {
        may_follow(this, last, &open, told) && is_undisputed(last, told, electorates)
    });
    Verdict {
        last,
        open,
        eligible,
    }
}

/// Whether a node tells less than it must have known. A session that a member tells as primary has the durable attempt
/// of each of its own members, and only a later primary takes the place of that attempt. The disk of such a node was
/// lost, and the node was started as if it were new.
pub(super) fn has_forgotten(node: NodeId, known: &Knowledge, told: &Told<'_>) -> bool {
    let formed = told.iter().filter_map(|(_, other)| other.last.as_ref());
    let lacks = |session: &Session| {
        let is_older = known.last.as_ref().is_none_or(|last| last < session);
        session.has(node) && is_older && !known.attempts.contains(session)
    };
    // The first primary is a setting: a different one is no sign of a lost disk.
    formed
        .filter(|session| session.ring.ring_seq > 0)
        .any(lacks)
        && !mutants::on(Mutant::P05)
}

/// Whether an attempt later than the last known primary did not become one: a member has not
/// attempted, and never will, or all members are here and none knows that it did.
fn is_settled(attempt: &Session, told: &Told<'_>) -> bool {
    let mut here = told.iter().filter(|(node, _)| attempt.has(*node));
    let not_attempted = |(_, known): &(NodeId, &Knowledge)| {
        known.last.is_some() && !known.attempts.contains(attempt)
    };
    here.clone().any(not_attempted)
        || here.clone().count() == attempt.members.len()
            && here.all(|(_, known)| known.attempts.contains(attempt))
}

fn may_follow(this: &Session, last: &Session, open: &[Session], told: &Told<'_>) -> bool {
    if mutants::on(Mutant::P02) {
        return true;
    }
    let knows = |node: NodeId, attempt: Option<&Session>| {
        told.iter().any(|(teller, known)| {
            let remembers = attempt.is_some_and(|attempt| known.attempts.contains(attempt));
            *teller == node && (known.last.is_some() || remembers)
        })
    };
    let mut mentioned = told
        .iter()
        .flat_map(|(_, known)| known.last.iter().chain(&known.attempts));
    // Sound disks never contradict each other; a cluster with different settings does.
    let consistent =
        mentioned.all(|other| other.ring < this.ring && (other.ring != last.ring || other == last));
    let still_open = |(_, known): &(NodeId, &Knowledge)| {
        let mine = known
            .attempts
            .iter()
            .filter(|attempt| open.contains(attempt));
        mine.count()
    };
    let room = told.iter().all(|told| still_open(told) < MOST_ATTEMPTS);
    let of_open = open
        .iter()
        .all(|attempt| attempt.has_quorum(|node| knows(node, Some(attempt))));
    let carried = told.iter().any(|(_, known)| known.carries(last, open));
    consistent
        && room
        && carried
        && (of_open || mutants::on(Mutant::P03))
        && last.has_quorum(|node| knows(node, None))
}

/// Whether no member knows of another first primary, nor is or was configured with one. Of two different ones neither
/// would need a member of the other.
fn is_undisputed(last: &Session, told: &Told<'_>, electorates: &[Vec<NodeId>]) -> bool {
    let firsts = told.iter().filter_map(|(_, known)| known.last.as_ref());
    let mut firsts = firsts.filter(|first| first.ring.ring_seq == 0);
    let is_first = last.ring.ring_seq == 0 && !mutants::on(Mutant::M55);
    !is_first
        || firsts.all(|first| first == last)
            && electorates.iter().all(|nodes| *nodes == last.members)
}
