//! K4, together: clients that come to a view in one set come from the same view before, and have been
//! given the same messages of the group between the two: those of the total order in the same
//! sequence, of reliable and fifo ones the same set. If a client joined, left or disconnected, all other
//! members come together.
//!
//! As Spread gives them. Not flagged: messages that a client sent and wanted no copy of; and the side of a transition
//! on which a message was, as not all clients need have been told of the transition at the same place.

use rustc_hash::FxHashMap;

use crate::event::Cause;
use crate::groups::{Ends, Groups, Stay};
use crate::report::Findings;
use crate::view::{View, is_ordered};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    // By view, and place of the set in it: the stays that ended with it.
    let mut together: FxHashMap<(u32, usize), Vec<&Stay>> = FxHashMap::default();
    for stay in &groups.stays {
        if let Ends::Next(next) = stay.ends
            && let Some(set) = set_of(groups, next, stay.connection)
        {
            together.entry((next, set)).or_default().push(stay);
        }
    }
    let mut together: Vec<_> = together.into_iter().collect();
    together.sort_unstable_by_key(|(key, _)| *key);
    for ((next, _), stays) in together {
        compare(groups, &stays, findings, || {
            format!("came together to {}", groups.shown(next))
        });
    }
}

/// The place of the set in which a client comes to a view; none if it joins.
fn set_of(groups: &Groups<'_>, view: u32, connection: u32) -> Option<usize> {
    let (view, name) = (groups.view_of(view), groups.connection(connection).name);
    let set = view.sets.iter().position(|set| set.contains(&name));
    match (view.cause, set) {
        (Cause::Network, set) => set,
        (_, Some(_)) => None,
        (_, None) => Some(0),
    }
}

/// Checks that all of these stays are in the same view and were given the same messages. The longest is the one that
/// others are compared with, as it lacks the fewest of the messages that its client wanted no copy of.
pub(super) fn compare(
    groups: &Groups<'_>,
    stays: &[&Stay],
    findings: &mut Findings,
    how: impl Fn() -> String,
) {
    let Some(longest) = stays.iter().max_by_key(|stay| stay.got.len()) else {
        return;
    };
    for stay in stays
        .iter()
        .filter(|stay| stay.connection != longest.connection)
    {
        let wrong = wrong(groups, longest, stay);
        findings.check(wrong.is_none(), || {
            let (one, other) = (groups.who(longest.connection), groups.who(stay.connection));
            let wrong = wrong.unwrap_or_default();
            format!("{one} and {other} {}, {wrong}", how())
        });
    }
}

fn wrong(groups: &Groups<'_>, one: &Stay, other: &Stay) -> Option<String> {
    if one.view != other.view {
        let (one, other) = (groups.shown(one.view), groups.shown(other.view));
        return Some(format!("from {one} and from {other}"));
    }
    let both = [one, other];
    let (mut mine, mut theirs) = (
        given(groups, one, both, true),
        given(groups, other, both, true),
    );
    let differ = mine
        .iter()
        .zip(&theirs)
        .position(|(one, other)| one != other);
    let differ = differ.or((mine.len() != theirs.len()).then(|| mine.len().min(theirs.len())));
    let name = |message: Option<&u32>| {
        message.map_or_else(|| "nothing".into(), |message| groups.what(*message))
    };
    if let Some(place) = differ {
        let (mine, theirs) = (name(mine.get(place)), name(theirs.get(place)));
        return Some(format!(
            "the one given {mine} where the other was given {theirs}"
        ));
    }
    mine = given(groups, one, both, false);
    theirs = given(groups, other, both, false);
    mine.sort_unstable();
    theirs.sort_unstable();
    let lacking = |list: &[u32], other: &[u32]| {
        let lacking = list.iter().find(|one| other.binary_search(one).is_err());
        lacking.copied()
    };
    let only = lacking(&mine, &theirs).or_else(|| lacking(&theirs, &mine))?;
    Some(format!("only one of them given {}", groups.what(only)))
}

/// The messages of a stay, of the total order or not, without those that one of both wanted no copy of.
fn given(groups: &Groups<'_>, stay: &Stay, both: [&Stay; 2], ordered: bool) -> Vec<u32> {
    let [one, other] = both.map(|stay| stay.connection);
    let kept = stay.got.iter().filter(|got| {
        is_ordered(got.service) == ordered
            && !groups.discards(one, got.message)
            && !groups.discards(other, got.message)
    });
    kept.map(|got| got.message).collect()
}
