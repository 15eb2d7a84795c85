//! Links that stay cut: acceptors that all see each other go on, whatever a learner sees of them.

use super::world::{BEGUN, World};

const MILLI: u64 = 1_000_000;

/// So long the world goes on with the links cut, and in each of so many parts of that something has to be ordered, but for the first.
const LASTS: u64 = 32_000 * MILLI;
const PARTS: u64 = 8;

/// Three acceptors, and a learner whose links to two of them are cut for good, its predecessor in the ring among them; nothing else is
/// wrong. How much was ordered in each part of the time behind that; `None` where the seed's world is another one.
fn ordered(seed: u64) -> Option<Vec<usize>> {
    let mut world = World::new(seed);
    let (ring, acceptors) = (world.config.ring.clone(), world.config.acceptors.clone());
    if ring.len() != 4 || acceptors.len() != 3 {
        return None;
    }
    (world.fault, world.ends) = (u64::MAX, u64::MAX / 2);
    world.goes_until(BEGUN);
    let learner = ring.iter().position(|node| !acceptors.contains(node))?;
    let index = |at: usize| usize::from(ring[at % 4].get()) - 1;
    for before in [learner + 3, learner + 2] {
        world.cut(index(learner), index(before));
    }
    let mut counts = Vec::new();
    for part in 1..=PARTS {
        let before = world.judge.order.len();
        world.goes_until(BEGUN + part * LASTS / PARTS);
        assert_eq!(world.judge.wrong, None, "seed {seed}: {}", world.states());
        counts.push(world.judge.order.len() - before);
    }
    Some(counts)
}

/// The learner reaches its successor and no other acceptor: it cannot leave its predecessor out, and the predecessor leaves it out.
#[cfg(not(feature = "mutants"))]
#[test]
fn acceptors_that_see_each_other_go_on() {
    let worlds: Vec<(u64, Vec<usize>)> = (0..60)
        .filter_map(|seed| Some((seed, ordered(seed)?)))
        .collect();
    assert!(worlds.len() >= 4, "{} worlds", worlds.len());
    for (seed, counts) in &worlds {
        println!("seed {seed}: {counts:?}");
    }
    for (seed, counts) in &worlds {
        assert!(
            counts[1..].iter().all(|count| *count > 0),
            "seed {seed}: {counts:?}"
        );
    }
}
