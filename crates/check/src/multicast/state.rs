//! AM-S, AM-D and AM-T: the agreement of replicas of a partition, and trimming.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, Instance, Line, Point, Ring, Round};
use super::life::{Life, Lives};
use crate::report::Findings;

/// The rounds that a life has seen: from its beginning to its last delivery.
fn seen(all: &Lives, life: &Life) -> Option<(Round, Round)> {
    let first = life.installed.as_ref().map_or(0, |point| point.round);
    let last = life
        .delivered
        .iter()
        .filter_map(|one| all.place(one))
        .max()?
        .0;
    Some((first, last))
}

/// AM-S: replicas of a partition agree which rings it has in each round that both have seen.
pub fn subscriptions(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-S", "replicas agree on subscriptions");
    let mut parts: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
    for life in &all.lives {
        parts.entry(&life.part).or_default().push(life);
    }
    for lives in parts.values() {
        let changes = lives.iter().flat_map(|life| &life.rings);
        let changes = changes.flat_map(|(_, from, until)| [Some(*from), *until]);
        let rounds: BTreeSet<Round> = changes.flatten().collect();
        for (at, one) in lives.iter().enumerate() {
            for other in &lives[at + 1..] {
                compare(&mut findings, all, (one, other), &rounds);
            }
        }
    }
    findings
}

/// Compares two lives in each round that both have seen and in which something changes, and in the first of them.
fn compare(
    findings: &mut Findings,
    all: &Lives,
    (one, other): (&Life, &Life),
    changes: &BTreeSet<Round>,
) {
    let (Some(of_one), Some(of_other)) = (seen(all, one), seen(all, other)) else {
        return;
    };
    let (first, last) = (of_one.0.max(of_other.0), of_one.1.min(of_other.1));
    if last < first {
        return;
    }
    for round in [first].iter().chain(changes.range(first..=last)) {
        let rings = |life: &Life| -> BTreeSet<Ring> {
            let rings = life.rings.iter().map(|(ring, ..)| *ring);
            rings.filter(|ring| life.has(*ring, *round)).collect()
        };
        let (mine, theirs) = (rings(one), rings(other));
        findings.check(mine == theirs, || {
            let (one, other) = (one.name(), other.name());
            format!("round {round}: {one} has {mine:?}, {other} {theirs:?}")
        });
    }
}

/// A point of a partition: round, ring, number of its instances.
type At<'a> = (&'a str, (Round, Ring, u64));

/// AM-D: equal points, equal states.
pub fn digests(lines: &[Line]) -> Findings {
    let mut findings = Findings::new("AM-D", "replicas at one point have one state");
    let mut known: BTreeMap<At<'_>, &str> = BTreeMap::new();
    for line in lines {
        let (part, point, digest) = match &line.event {
            Event::Digest {
                part,
                point,
                digest,
            }
            | Event::Checkpoint {
                part,
                point,
                digest,
                ..
            }
            | Event::Install {
                part,
                point,
                digest,
                ..
            } => (part, point, digest),
            _ => continue,
        };
        let at = (point.round, point.turn, point.used);
        let before = *known.entry((part, at)).or_insert(digest);
        findings.check(before == digest, || {
            format!(
                "node {}.{}: {part} at {at:?} is {digest}, and elsewhere {before}",
                line.node, line.inc
            )
        });
    }
    findings
}

/// The state of a partition when a ring is trimmed.
#[derive(Default)]
struct Part {
    stores: BTreeSet<u64>,
    q_t: usize,
    /// By store: its newest durable checkpoint.
    points: BTreeMap<u64, Point>,
    /// By ring: subscribed.
    rings: BTreeSet<Ring>,
}

/// AM-T: where a ring is trimmed, enough replicas of each partition that has the ring have durable checkpoints behind
/// that. The order is that of the times of the lines, which have to be of one clock for all nodes.
pub fn trims(lines: &[Line]) -> Findings {
    let mut findings = Findings::new("AM-T", "what is trimmed is in enough checkpoints");
    let mut order: Vec<&Line> = lines.iter().collect();
    order.sort_by_key(|line| line.t);
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    for line in order {
        match &line.event {
            Event::Replicas {
                part,
                replicas,
                q_t,
                ..
            } => {
                let of = parts.entry(part).or_default();
                (of.stores, of.q_t) = (replicas.iter().copied().collect(), *q_t);
            }
            Event::Sub { part, ring, .. } => {
                parts.entry(part).or_default().rings.insert(*ring);
            }
            Event::Checkpoint {
                part, store, point, ..
            } => {
                let of = parts.entry(part).or_default();
                of.points.insert(*store, point.clone());
            }
            Event::Trim { ring, below } => check_trim(&mut findings, &parts, *ring, *below),
            _ => {}
        }
    }
    findings
}

fn check_trim(findings: &mut Findings, parts: &BTreeMap<&str, Part>, ring: Ring, below: Instance) {
    for (part, of) in parts.iter().filter(|(_, of)| of.rings.contains(&ring)) {
        // A replica that has left the ring by its checkpoint needs nothing of it.
        let has = |store: &&u64| {
            let point = of.points.get(store);
            point.is_some_and(|point| {
                let next = point.next.get(&ring);
                !point.rings.contains(&ring) || next.is_some_and(|next| *next >= below)
            })
        };
        let count = of.stores.iter().filter(has).count();
        findings.check(count >= of.q_t, || {
            format!("ring {ring} is trimmed below {below}, and {count} replicas of {part} have checkpoints behind that, of {}", of.q_t)
        });
    }
}
