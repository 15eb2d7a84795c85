//! One member is ill, for good: whatever it has, the others serve each other nearly all the time, from ten seconds on. Both ends of a link
//! that is cut are as ill.
//!
//! `ROTA_ILL=3,8` looks at rings of these numbers of nodes, with the first and the last node ill; otherwise it is one
//! of three. `ROTA_ILL_KIND=half` looks only at kinds with that in their names, `ROTA_ILL_EVERY=1000` has each node
//! send in every millisecond (in microseconds; otherwise 20,000).

mod kinds;
mod served;

use std::sync::{PoisonError, RwLock};

use rota_core::contract::Service;
use rota_sim::campaign::EngineName::{
    self, AcceleratedRing, FastCast, Lcr, RingPaxos, TotemRing, URingPaxos,
};
use rota_sim::campaign::protocol;
use rota_sim::checks::Checks;
use rota_sim::observe::{Finding, Observer};
use rota_sim::plan::{MICROS, Plan, Power, SECONDS};
use rota_sim::ring::Ring;
use rota_sim::uring::{URingSystem, WholeChecks};
use rota_sim::view_checks::ViewChecks;
use rota_sim::views::{FastCastSystem, LcrSystem};
use rota_sim::world::{System, World};

use kinds::{KINDS, Kind};
use served::Served;

/// The illness begins.
const BEGINS: u64 = SECONDS;
/// The others have to be served from then on.
const LOOKS: u64 = BEGINS + 10 * SECONDS;
/// The illness ends.
const ENDS: u64 = LOOKS + 40 * SECONDS;
/// The least part of the time in which they are, in thousandths.
const LEAST: u64 = 950;

/// Broken versions are in force for all threads.
static BROKEN: RwLock<()> = RwLock::new(());

fn plan(which: EngineName, nodes: usize, kind: &Kind, ill: usize) -> Plan {
    let mut plan = Plan::plain(nodes, protocol(which));
    plan.horizon = ENDS + SECONDS;
    let micros =
        std::env::var("ROTA_ILL_EVERY").map_or(20_000, |micros| micros.parse().expect("a number"));
    for host in &mut plan.hosts {
        host.source.every = micros * MICROS;
        host.source.budget = u32::MAX;
        host.source.services = vec![Service::Agreed];
    }
    if which.has_views() {
        plan.set_views(which == Lcr);
    }
    if which.has_votes() {
        plan.set_uring(Power::Lasts, which == RingPaxos);
    }
    (kind.make)(&mut plan, ill);
    plan
}

fn run<S: System>(plan: &Plan, system: &S, mut checks: impl Observer) -> (Served, Option<Finding>) {
    let mut served = Served::default();
    let world = World::new(plan, system).watched_by(&mut served);
    let outcome = world.watched_by(&mut checks).run();
    (served, outcome.finding)
}

/// The part of the time in which the others serve each other, in thousandths.
fn look(which: EngineName, nodes: usize, kind: &Kind, ill: usize) -> u64 {
    let plan = plan(which, nodes, kind, ill);
    let (served, finding) = match which {
        AcceleratedRing | TotemRing => run(&plan, &Ring(protocol(which)), Checks::new(&plan)),
        FastCast => run(&plan, &FastCastSystem, ViewChecks::new(&plan)),
        Lcr => run(&plan, &LcrSystem, ViewChecks::new(&plan)),
        RingPaxos | URingPaxos => run(&plan, &URingSystem, WholeChecks::new(&plan)),
    };
    assert_eq!(finding, None, "{which}, {ill} of {nodes} {}", kind.name);
    let peer = match kind.is_of_a_link {
        true => (ill + 1) % nodes,
        false => ill,
    };
    let [one, other] = [ill, peer].map(|ill| served.together(nodes, ill));
    let together = one.max(other);
    println!("{which}: {ill} of {nodes} {}: {together}", kind.name);
    together
}

/// The rings that are looked at: the number of nodes, and the ill one. Of a link it matters which end it is.
fn rings(index: usize, kind: &Kind) -> Vec<(usize, usize)> {
    let Ok(sizes) = std::env::var("ROTA_ILL") else {
        return match kind.is_of_a_link {
            true => vec![(3, 0), (3, 2)],
            false => vec![(3, [0, 2][index % 2])],
        };
    };
    let sizes = sizes.split(',').map(|size| size.parse().expect("a number"));
    sizes
        .flat_map(|nodes: usize| [(nodes, 0), (nodes, nodes - 1)])
        .collect()
}

fn the_others_are_served(which: EngineName) {
    let _whole = BROKEN.read().unwrap_or_else(PoisonError::into_inner);
    let mut low = Vec::new();
    let wanted = std::env::var("ROTA_ILL_KIND").unwrap_or_default();
    for (index, kind) in KINDS.iter().enumerate() {
        if !kind.name.contains(&wanted) {
            continue;
        }
        for (nodes, ill) in rings(index, kind) {
            let together = look(which, nodes, kind, ill);
            let least = match which {
                // Lost values are asked for, and that takes longer than a look now and then.
                RingPaxos => LEAST - 30,
                _ => LEAST,
            };
            if together < least && !kind.open.contains(&which) {
                low.push((nodes, ill, kind.name, together));
            }
        }
    }
    assert!(low.is_empty(), "{which}: {low:?}");
}

#[test]
fn with_accelerated_ring() {
    the_others_are_served(AcceleratedRing);
}

#[test]
fn with_totem_ring() {
    the_others_are_served(TotemRing);
}

#[test]
fn with_fastcast() {
    the_others_are_served(FastCast);
}

#[test]
fn with_lcr() {
    the_others_are_served(Lcr);
}

#[test]
fn with_ring_paxos() {
    the_others_are_served(RingPaxos);
}

#[test]
fn with_u_ring_paxos() {
    the_others_are_served(URingPaxos);
}

/// Each broken version leaves the others without service.
#[test]
#[cfg(feature = "mutants")]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};

    let _alone = BROKEN.write().unwrap_or_else(PoisonError::into_inner);
    let broken = [
        (Mutant::M48, AcceleratedRing, 0, "pauses 800 of 1500 ms"),
        (
            Mutant::M51,
            AcceleratedRing,
            0,
            "has an application that hangs",
        ),
        (Mutant::M59, TotemRing, 0, "loses half"),
        (Mutant::M60, FastCast, 0, "has no link to one"),
        (Mutant::V13, FastCast, 0, "has an application that hangs"),
        (Mutant::V14, Lcr, 0, "does not hear one"),
        (Mutant::V15, Lcr, 2, "does not hear one"),
        (Mutant::U87, URingPaxos, 0, "does not hear one"),
    ];
    for (mutant, which, ill, name) in broken {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.expect("there is such a kind");
        mutants::set(Some(mutant));
        let together = look(which, 3, kind, ill);
        mutants::set(None);
        assert!(together < LEAST, "{mutant}: {together}");
    }
}
