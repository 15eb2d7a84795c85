//! The rules for the sets of a view, whatever came before.

use crate::event::Cause;

/// The mistake in the sets of a view, as the end of a sentence.
pub(crate) fn wrong_sets<N: Ord + Clone>(
    cause: Cause,
    members: &[N],
    sets: &[Vec<N>],
) -> Option<&'static str> {
    if repeats(members.to_vec()) {
        return Some("in which a member is listed twice");
    }
    let all: Vec<N> = sets.iter().flatten().cloned().collect();
    if repeats(all.clone()) {
        return Some("whose sets are not disjoint");
    }
    match (cause, all.as_slice()) {
        (Cause::Network, all) => wrong_partition(members, sets, all),
        (Cause::Join, [one]) => {
            (!members.contains(one)).then_some("in which who joined is no member")
        }
        (_, [one]) => members
            .contains(one)
            .then_some("in which who has gone is a member"),
        _ => Some("whose set is not of one client"),
    }
}

fn wrong_partition<N: Ord>(members: &[N], sets: &[Vec<N>], all: &[N]) -> Option<&'static str> {
    if all.iter().any(|one| !members.contains(one)) {
        Some("whose sets hold somebody who is no member")
    } else if all.len() < members.len() {
        Some("whose sets do not hold all members")
    } else {
        sets.iter()
            .any(Vec::is_empty)
            .then_some("which has an empty set")
    }
}

fn repeats<N: Ord>(mut list: Vec<N>) -> bool {
    list.sort_unstable();
    list.windows(2).any(|pair| pair[0] == pair[1])
}
