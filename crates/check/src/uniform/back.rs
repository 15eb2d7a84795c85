//! Orders that go back: more than half of the nodes have forgotten, the newest view with them, and the processes that
//! remember an older view go on from that.

use std::collections::{BTreeMap, BTreeSet};

use super::build::{is_known, majority_forgot};
use super::{Begins, Installed};
use crate::trace::Step;
use crate::view::View;

/// Puts views that an order goes back to into the list again: such a view stands before the first view of the members
/// that went back to it, as it ended for them.
pub(super) fn insert(base: &View<'_>, views: Vec<Installed>) -> Vec<Installed> {
    let backs = find(base, &views);
    let mut all: Vec<Installed> = Vec::with_capacity(views.len() + backs.len());
    // The places of the views in the list.
    let mut places = Vec::with_capacity(views.len());
    for (number, view) in (0..).zip(views) {
        if let Some(to) = backs.get(&number) {
            let first: u32 = places[*to as usize];
            let mut again = all[first as usize].clone();
            again.begins = Begins::Again { first };
            all.push(again);
        }
        places.push(all.len() as u32);
        all.push(view);
    }
    all
}

/// The views before which an order goes back, each with the view that it goes back to.
fn find(base: &View<'_>, views: &[Installed]) -> BTreeMap<u32, u32> {
    let numbers = views.iter().map(|view| view.conf).zip(0..);
    let paths = paths(base, &numbers.collect());
    let mut been: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); views.len()];
    for (process, path) in &paths {
        for view in path {
            been[*view as usize].insert(*process);
        }
    }
    let mut remember: BTreeSet<u32> = BTreeSet::new();
    // By process: the newest view that listed it, even if the process has not installed it.
    let mut listed: BTreeMap<u32, u32> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (number, view) in (0..).zip(views) {
        let members = &base.members[view.members as usize];
        let newest = members.iter().filter_map(|member| listed.get(member)).max();
        let lost = newest.filter(|newest| **newest + 1 < number);
        if let Some(to) = lost
            && members.iter().all(|member| is_known(base, *member))
            && majority_forgot(base, members, &remember) == Some(true)
            && goes(&paths, *to, number)
        {
            found.insert(number, *to);
        }
        remember.append(&mut been[number as usize]);
        remember.extend(members.iter().filter(|member| !is_known(base, **member)));
        listed.extend(members.iter().map(|member| (*member, number)));
    }
    found
}

/// Whether any process went from the one view to the other next.
fn goes(paths: &BTreeMap<u32, Vec<u32>>, from: u32, to: u32) -> bool {
    let mut steps = paths.values().flat_map(|path| path.windows(2));
    steps.any(|step| step == [from, to])
}

/// The views that each process installed.
fn paths(base: &View<'_>, numbers: &BTreeMap<u32, u32>) -> BTreeMap<u32, Vec<u32>> {
    let mut paths: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (process, _, step) in base.all_steps() {
        if let Step::Conf { conf, .. } = step {
            let view = numbers.get(conf).copied();
            paths.entry(process).or_default().extend(view);
        }
    }
    paths
}
