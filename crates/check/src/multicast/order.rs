//! AM-M, AM-C, AM-O and AM-R: the order of deliveries.

use std::collections::{BTreeMap, BTreeSet};

use super::life::{Life, Lives, Place};
use crate::graph::Graph;
use crate::report::Findings;

/// AM-M: the deliveries of a life ascend strictly, by rounds that are computed here.
pub fn ascending(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-M", "deliveries ascend");
    for life in &all.lives {
        let mut last: Option<Place> = None;
        for delivered in &life.delivered {
            let Some(place) = all.place(delivered) else {
                findings.violated(|| {
                    format!("{}: nobody founded ring {}", life.name(), delivered.ring)
                });
                continue;
            };
            findings.check(place.0 == delivered.round, || {
                format!(
                    "{}: {} says round {}, which is {}",
                    life.name(),
                    delivered.msg,
                    delivered.round,
                    place.0
                )
            });
            findings.check(last.is_none_or(|last| last < place), || {
                format!(
                    "{}: {} at {place:?} behind {last:?}",
                    life.name(),
                    delivered.msg
                )
            });
            last = Some(place);
        }
    }
    findings
}

/// Everything that any life delivered, by its place.
fn delivered_by_any(all: &Lives) -> BTreeMap<Place, (u32, &str)> {
    let of_lives = all.lives.iter().flat_map(|life| &life.delivered);
    let placed = of_lives.filter_map(|delivered| {
        let place = all.place(delivered)?;
        Some((place, (delivered.ring, delivered.msg.as_str())))
    });
    placed.collect()
}

/// AM-C: a life leaves out nothing that any life delivered and that was for it, between its beginning and its last
/// delivery, nor before the instances that it says it has passed.
pub fn complete(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-C", "nothing is left out");
    let places = delivered_by_any(all);
    for life in &all.lives {
        let own = life.delivered.iter().filter_map(|one| all.place(one));
        let own: BTreeSet<Place> = own.collect();
        let last = own.last();
        for (place, (ring, message)) in &places {
            let passed = life.passed.get(ring).is_some_and(|next| place.2 < *next);
            let is_before = passed || last.is_some_and(|last| place < last);
            let is_own = life.has(*ring, place.0) && place.2 >= life.begins(*ring);
            if is_before && is_own && all.is_for(message, &life.part) {
                findings.check(own.contains(place), || {
                    format!("{}: {message} at {place:?} is left out", life.name())
                });
            }
        }
        check_only_own(&mut findings, all, life);
    }
    findings
}

/// Checks that a life delivers nothing of a ring that it does not have, or that is for others.
fn check_only_own(findings: &mut Findings, all: &Lives, life: &Life) {
    for delivered in &life.delivered {
        let Some(place) = all.place(delivered) else {
            continue;
        };
        findings.check(life.has(delivered.ring, place.0), || {
            format!(
                "{}: {} of ring {}, which it does not have in round {}",
                life.name(),
                delivered.msg,
                delivered.ring,
                place.0
            )
        });
        findings.check(all.is_for(&delivered.msg, &life.part), || {
            format!("{}: {} is for others", life.name(), delivered.msg)
        });
    }
}

/// AM-O: messages as nodes, and each two deliveries of a life in sequence as edges: no cycle.
pub fn acyclic(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-O", "no two contradict each other");
    let mut number: BTreeMap<&str, u32> = BTreeMap::new();
    let mut names = Vec::new();
    let mut chains: Vec<Vec<u32>> = Vec::new();
    for life in &all.lives {
        let mut chain = Vec::new();
        for delivered in &life.delivered {
            let name = delivered.msg.as_str();
            let next = names.len() as u32;
            let at = *number.entry(name).or_insert(next);
            if at == next {
                names.push(name);
            }
            chain.push(at);
        }
        chains.push(chain);
    }
    // A message delivered before an installed point comes before all deliveries behind the point.
    for (life, chain) in all.lives.iter().zip(chains.clone()) {
        if let (Some(before), Some(first)) = (last_before_install(all, life), chain.first()) {
            chains.push(vec![number[before], *first]);
        }
    }
    let graph = Graph::new(names.len(), |edge| {
        for chain in &chains {
            for two in chain.windows(2) {
                edge(two[0], two[1]);
            }
        }
    });
    let cycle = graph.cycle();
    findings.check(cycle.is_none(), || {
        let cycle: Vec<&str> = cycle
            .iter()
            .flatten()
            .map(|at| names[*at as usize])
            .collect();
        format!(
            "each of these was delivered before the next, and the last before the first: {}",
            cycle.join(", ")
        )
    });
    findings
}

/// The last message that some other life of the partition delivered before the point that this one went on from.
fn last_before_install<'a>(all: &'a Lives, life: &Life) -> Option<&'a str> {
    let point = life.installed.as_ref()?;
    let others = all.lives.iter().filter(|other| other.part == life.part);
    let before = others.flat_map(|other| &other.delivered).filter(|one| {
        let next = point.next.get(&one.ring);
        next.is_some_and(|next| one.inst < *next)
    });
    let placed = before.filter_map(|one| Some((all.place(one)?, one.msg.as_str())));
    placed.max().map(|(_, message)| message)
}

/// AM-R: a life that goes on from a checkpoint delivers nothing from before it. AM-C checks that it leaves out nothing
/// behind it.
pub fn behind_install(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-R", "behind a checkpoint nothing from before it");
    for life in all.lives.iter().filter(|life| life.installed.is_some()) {
        for delivered in &life.delivered {
            let begins = life.begins(delivered.ring);
            findings.check(delivered.inst >= begins, || {
                format!(
                    "{}: {} in instance {} of ring {}, and it began at {begins}",
                    life.name(),
                    delivered.msg,
                    delivered.inst,
                    delivered.ring
                )
            });
        }
    }
    findings
}
