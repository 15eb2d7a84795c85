//! Checks of learners: the faults of one, and of random ones.

use std::collections::BTreeSet;

use rota_multiring::{Place, Point};

use super::world::{Learner, Random, Ring, order, ring};

/// What is wrong with a learner of these rings.
pub fn wrong(learner: &Learner, rings: &[&Ring], from: Option<Point>) -> Option<String> {
    let told: Vec<Ring> = rings
        .iter()
        .map(|ring| {
            let told = learner.told[&ring.of.rank] as usize - 1;
            let decided = ring.decided[..told].to_vec();
            Ring {
                of: ring.of,
                decided,
            }
        })
        .collect();
    let expected = order(&told.iter().collect::<Vec<_>>(), from);
    (learner.delivered != expected)
        .then(|| format!("{:?}, and not {expected:?}", learner.delivered))
}

/// Several rings and learners of different sets of them, told in random order, who begin again at random; all of it has to be a part of one order.
pub fn random(seed: u64) -> Option<String> {
    let mut random = Random(seed);
    let count = 2 + random.below(4) as u16;
    let rings: Vec<Ring> = (1..=count)
        .map(|rank| {
            let of = ring(3 * rank, 1 + random.below(4) as u32, random.below(6));
            let length = random.below(40);
            let decided = (0..length)
                .map(|_| random.below(4).saturating_sub(1) as u32)
                .collect();
            Ring { of, decided }
        })
        .collect();
    let all: Vec<Place> = {
        let mut all: Vec<Place> = rings.iter().flat_map(Ring::places).collect();
        all.sort_unstable();
        all
    };
    for _ in 0..3 {
        let chosen: Vec<&Ring> = rings.iter().filter(|_| random.below(3) > 0).collect();
        let (mut learner, mut from, mut before) = (Learner::new(&chosen), None, Vec::new());
        for _ in 0..300 {
            if chosen.is_empty() {
                break;
            }
            let at = random.below(chosen.len() as u64) as usize;
            learner.tell(chosen[at]);
            if random.below(3) == 0 {
                learner.drain();
                if let Some(what) = wrong(&learner, &chosen, from) {
                    return Some(what);
                }
                if random.below(10) == 0
                    && let Some(point) = learner.merge.point()
                {
                    before.append(&mut learner.delivered);
                    (learner, from) = (Learner::at(point, &chosen), Some(point));
                }
            }
        }
        learner.drain();
        before.append(&mut learner.delivered);
        let ranks: BTreeSet<_> = chosen.iter().map(|ring| ring.of.rank).collect();
        let of_all: Vec<Place> = all
            .iter()
            .filter(|place| ranks.contains(&place.rank))
            .copied()
            .collect();
        if !of_all.starts_with(&before) {
            return Some(format!("{before:?} is no beginning of {of_all:?}"));
        }
    }
    None
}
