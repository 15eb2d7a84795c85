//! The real rings in the simulator.

use rota_ring::Protocol;
use rota_sim::campaign::{Options, RINGS, run_calm};
use rota_sim::checks::Checks;
use rota_sim::plan::{Plan, Profile};
use rota_sim::ring::{ABILITIES, Ring, SafeIsHeld};
use rota_sim::world::{Outcome, World};

fn run(seed: u64, protocol: Protocol, profile: Profile) -> Outcome {
    let mut plan = Plan::random(seed, protocol, profile, ABILITIES);
    (plan.primary, plan.groups) = (None, None);
    let mut checks = Checks::new(&plan);
    let ring = Ring(protocol);
    let world = World::new(&plan, &ring);
    world.probed_by(SafeIsHeld).watched_by(&mut checks).run()
}

#[test]
fn both_rings_survive_what_a_static_ring_can_survive() {
    for protocol in [Protocol::Accelerated, Protocol::Original] {
        for seed in 0..60 {
            let outcome = run(seed, protocol, Profile::All);
            assert_eq!(
                outcome.finding, None,
                "seed {seed}, {protocol:?}: {:?}",
                outcome.tally
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        let once = run(seed, Protocol::Accelerated, Profile::All);
        assert_eq!(once, run(seed, Protocol::Accelerated, Profile::All));
        assert!(once.tally.deliveries > 0 || once.tally.coverage.len() < 2 || seed > 0);
    }
}

/// Requests reach only as far as packets may have been sent (thesis §3.1.2.2).
#[test]
fn nothing_is_sent_again_in_a_perfect_network() {
    for engine in RINGS {
        let options = Options::new(engine, 0..1);
        for nodes in [2, 3, 5, 8] {
            let outcome = run_calm(&options, nodes);
            assert_eq!(outcome.finding, None, "{engine}, {nodes} nodes");
            assert!(outcome.tally.counter("packets_sent") > 3000);
        }
    }
}
