//! All schedules of two rings and two learners, and random ones of more: no two learners contradict each other, nothing
//! is left out, and a learner that begins again at a point goes on as if it had never stopped.

use std::collections::BTreeSet;

use super::check::{random, wrong};
use super::world::{Learner, Random, Ring, ring};
use rota_multiring::{Constants, Merge, Place, Point};

/// Each learner is told of one ring or of the other, in all orders, and may begin again wherever it is.
struct Search {
    rings: [Ring; 2],
    seen: BTreeSet<Vec<u64>>,
    states: u64,
}

impl Search {
    fn visit(&mut self, learner: &Learner, from: Option<Point>, restarts: u32) {
        let told = learner.told.values().copied();
        let begun = from.map(|from| [from.round, u64::from(from.turn.0), u64::from(from.used)]);
        let key = told
            .chain([u64::from(restarts)])
            .chain(begun.into_iter().flatten());
        if !self.seen.insert(key.collect()) {
            return;
        }
        self.states += 1;
        let rings = self.rings.clone();
        let both = [&rings[0], &rings[1]];
        assert_eq!(
            wrong(learner, &both, from),
            None,
            "{rings:?}, from {from:?}"
        );
        for ring in both {
            let mut next = learner.clone();
            if next.tell(ring) {
                next.drain();
                self.visit(&next, from, restarts);
            }
        }
        let point = learner.merge.point().expect("it is at a boundary");
        if restarts > 0 {
            for of in both.map(|ring| ring.of) {
                let next = point.next_of(&of);
                assert!(
                    next <= learner.told[&of.rank],
                    "nothing is needed that was not known: I1"
                );
            }
            self.visit(&Learner::at(point, &both), Some(point), restarts - 1);
        }
    }
}

/// What a ring of up to five instances may have decided.
fn loads(length: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let with = |loads: &Vec<u32>| {
            [0, 1, 2].map(|load| {
                let mut loads = loads.clone();
                loads.push(load);
                loads
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

#[test]
fn all_schedules_of_two_rings() {
    let mut states = 0;
    for (per_round, origin) in [
        ((1, 1), (0, 0)),
        ((1, 2), (0, 0)),
        ((3, 2), (0, 1)),
        ((2, 1), (2, 0)),
    ] {
        let constants: [Constants; 2] = [
            ring(1, per_round.0, origin.0),
            ring(2, per_round.1, origin.1),
        ];
        for (one, two) in loads(3)
            .into_iter()
            .flat_map(|one| loads(3).into_iter().map(move |two| (one.clone(), two)))
        {
            let [first, second] = constants;
            let rings = [(first, one), (second, two)].map(|(of, decided)| Ring { of, decided });
            let mut search = Search {
                rings,
                seen: BTreeSet::new(),
                states: 0,
            };
            let begin = Learner::new(&[&search.rings[0].clone(), &search.rings[1].clone()]);
            search.visit(&begin, None, 2);
            states += search.states;
        }
    }
    println!("{states} states");
    assert!(states > 100_000, "{states}");
}

#[test]
fn learners_of_different_rings_deliver_parts_of_one_order() {
    for seed in 0..2000 {
        assert_eq!(random(seed), None, "seed {seed}");
    }
}

/// The paper's merge: `m` instances of each ring in turn (Benz et al. 2014, §4, algorithm 1).
fn in_turn(rings: &[Ring], m: usize) -> Vec<Place> {
    let mut delivered = Vec::new();
    let mut next = vec![0; rings.len()];
    loop {
        for (ring, next) in rings.iter().zip(&mut next) {
            for _ in 0..m {
                let Some(load) = ring.decided.get(*next) else {
                    return delivered;
                };
                *next += 1;
                let place = ring.of.place(*next as u64);
                delivered.extend((0..*load).map(|index| Place { index, ..place }));
            }
        }
    }
}

#[test]
fn with_equal_origins_it_is_what_the_paper_delivers() {
    for seed in 0..1000 {
        let mut random = Random(seed);
        let (count, m) = (1 + random.below(5) as u16, 1 + random.below(3) as u32);
        let rings: Vec<Ring> = (1..=count)
            .map(|rank| {
                let length = 1 + random.below(60);
                let decided = (0..length).map(|_| random.below(3) as u32).collect();
                Ring {
                    of: ring(rank, m, 0),
                    decided,
                }
            })
            .collect();
        let chosen: Vec<&Ring> = rings.iter().collect();
        let mut learner = Learner::new(&chosen);
        for ring in &rings {
            while learner.tell(ring) {}
        }
        learner.drain();
        let papers = in_turn(&rings, m as usize);
        // The paper's waits for an instance before it looks at the next ring; here what is known of the ring itself is enough.
        assert!(learner.delivered.starts_with(&papers), "seed {seed}");
        assert!(
            learner.delivered.len() <= papers.len() + 2 * m as usize,
            "seed {seed}"
        );
    }
}

/// A ring that skips a thousand million instances costs one step.
#[test]
fn skips_cost_nothing() {
    let (busy, idle) = (ring(1, 1, 0), ring(2, 1, 0));
    let mut merge = Merge::new([busy, idle]);
    merge
        .passed(idle.rank, 1_000_000_000, 1)
        .expect("it is subscribed");
    for instance in (1..1_000_000_000).step_by(100_000_000) {
        merge
            .push(busy.rank, (instance, 0), (instance, 8))
            .expect("it ascends");
        assert_eq!(merge.poll().map(|merged| merged.message), Some(instance));
    }
    let point = merge.point();
    assert_eq!(point, None, "more of the last instance may come");
    merge
        .passed(busy.rank, 900_000_002, 1)
        .expect("it is subscribed");
    assert_eq!(merge.point().map(|point| point.round), Some(900_000_001));
    assert_eq!(merge.point().map(|point| point.turn), Some(busy.rank));
}
