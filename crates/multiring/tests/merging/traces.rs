//! Runs of several partitions as traces, judged by a checker that knows nothing of the merge.

use rota_check::multicast::{Delivered, Event, Line, MulticastReport, check_multicast};
use rota_multiring::{Place, Point};

use super::world::{Learner, Random, Ring, ring};

const FOUNDED: u64 = 5;

/// What is written of a run.
struct Writer {
    lines: Vec<Line>,
}

impl Writer {
    fn add(&mut self, (node, inc): (u16, u64), event: Event) {
        let t = self.lines.len() as u64;
        self.lines.push(Line {
            t,
            node,
            inc,
            event,
        });
    }

    fn begin(&mut self, who: (u16, u64), part: &str, rings: &[&Ring]) {
        self.add(who, Event::Start);
        for ring in rings {
            let (part, ring) = (part.to_owned(), u32::from(ring.of.rank.0));
            self.add(
                who,
                Event::Sub {
                    part,
                    ring,
                    from: 0,
                },
            );
        }
    }

    fn install(&mut self, who: (u16, u64), (part, point): (&str, Point), rings: &[&Ring]) {
        let number = |ring: &&Ring| u32::from(ring.of.rank.0);
        let point = rota_check::multicast::Point {
            round: point.round,
            turn: u32::from(point.turn.0),
            used: u64::from(point.used),
            next: rings
                .iter()
                .map(|ring| (number(ring), point.next_of(&ring.of)))
                .collect(),
            rings: rings.iter().map(number).collect(),
            founded: rings.iter().map(|ring| (number(ring), FOUNDED)).collect(),
            open: false,
        };
        let digest = format!("{part} {:?}", (point.round, point.turn, point.used));
        let (part, source) = (part.to_owned(), "local".to_owned());
        self.add(
            who,
            Event::Install {
                part,
                point,
                digest,
                source,
            },
        );
    }

    fn deliver(&mut self, who: (u16, u64), part: &str, delivered: &[(Place, Place)]) {
        for (place, message) in delivered {
            let delivered = Delivered {
                msg: format!("{}.{}.{}", message.rank, message.instance, message.index),
                part: part.to_owned(),
                ring: u32::from(place.rank.0),
                founded: FOUNDED,
                inst: message.instance,
                idx: message.index,
                round: place.round,
                first: message.instance,
                hash: "01".to_owned(),
            };
            self.add(who, Event::Deliver(delivered));
        }
    }
}

/// Two partitions with two replicas each, and rings of which they have some; each replica begins again now and then.
pub fn judged(seed: u64) -> MulticastReport {
    let mut random = Random(seed);
    let mut rings: Vec<Ring> = (1..=3)
        .map(|rank| {
            let of = ring(rank, 1 + random.below(3) as u32, random.below(4));
            let length = 10 + random.below(30);
            let decided = (0..length)
                .map(|_| random.below(4).saturating_sub(1) as u32)
                .collect();
            Ring { of, decided }
        })
        .collect();
    // At the end each skips to where the furthest is.
    let last = rings.iter().map(|ring| ring.of.round_of(ring.next())).max();
    for ring in &mut rings {
        let next = ring.of.first_of(last.expect("a ring") + 1) as usize;
        ring.decided.resize(next - 1, 0);
    }
    let mut out = Writer { lines: Vec::new() };
    for Ring { of, .. } in &rings {
        let (ring, m) = (u32::from(of.rank.0), u64::from(of.per_round.get()));
        let (rank, origin, founded) = (ring, of.origin, FOUNDED);
        out.add(
            (1, 1),
            Event::Genesis {
                ring,
                rank,
                m,
                origin,
                founded,
            },
        );
    }
    for (node, part) in [(1, "P"), (2, "P"), (3, "Q"), (4, "Q")] {
        let has = |ring: &&Ring| part == "P" || ring.of.rank.0 != 1;
        let own: Vec<&Ring> = rings.iter().filter(has).collect();
        replica(&mut out, (node, part), &own, &mut random);
    }
    out.add((0, 0), Event::Quiesce);
    check_multicast(&out.lines)
}

fn replica(out: &mut Writer, (node, part): (u16, &str), rings: &[&Ring], random: &mut Random) {
    let (mut learner, mut life) = (Learner::new(rings), 1);
    out.begin((node, life), part, rings);
    for _ in 0..400 {
        let at = random.below(rings.len() as u64) as usize;
        learner.tell(rings[at]);
        if random.below(4) > 0 {
            continue;
        }
        learner.drain();
        out.deliver((node, life), part, &std::mem::take(&mut learner.placed));
        if random.below(8) == 0
            && let Some(point) = learner.merge.point()
        {
            out.add((node, life), Event::Crash);
            life += 1;
            learner = Learner::at(point, rings);
            out.install((node, life), (part, point), rings);
            out.begin((node, life), part, rings);
        }
    }
    for ring in rings {
        while learner.tell(ring) {}
    }
    learner.drain();
    out.deliver((node, life), part, &std::mem::take(&mut learner.placed));
}

/// The properties that some seed violates.
#[cfg(feature = "mutants")]
pub fn violated() -> std::collections::BTreeSet<&'static str> {
    let reports = (0..40).map(judged);
    let violations = reports.flat_map(|report| report.violations);
    violations.map(|violation| violation.property).collect()
}

#[cfg(not(feature = "mutants"))]
#[test]
fn what_learners_deliver_holds_by_their_traces() {
    let mut installed = 0;
    for seed in 0..300 {
        let report = judged(seed);
        assert_eq!(report.violations, [], "seed {seed}");
        installed += report.counters.installed_local;
    }
    assert!(installed > 1000, "{installed}");
}
