//! One member is ill, for good: whatever it has, the others serve each other nearly all the time, after a short while.

mod kinds;

use std::collections::BTreeSet;

use rota_check::event::{Event, EventKind};
use rota_core::contract::Service;
use rota_core::ring::Protocol;
use rota_sim::checks::Checks;
use rota_sim::observe::{Finding, Observer};
use rota_sim::plan::{MILLIS, Plan, Power, SECONDS};
use rota_sim::ring::Ring;
use rota_sim::uring::{Along, WholeChecks};
use rota_sim::view_checks::ViewChecks;
use rota_sim::views::{Chain, Fast};
use rota_sim::world::{System, World};

use kinds::{KINDS, Kind};

/// The illness begins.
const BEGINS: u64 = SECONDS;
/// From then on it is looked whether the others are served.
const LOOKS: u64 = BEGINS + 10 * SECONDS;
/// Until then.
const ENDS: u64 = LOOKS + 40 * SECONDS;
/// A healthy node is served where it gets something of each other one in each of these.
const SLOT: u64 = 300 * MILLIS;

/// Who got something of whom, and when.
#[derive(Default)]
struct Served {
    /// Slot, receiver, sender.
    got: BTreeSet<(u64, u16, u16)>,
}

impl Observer for Served {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        if std::env::var("ROTA_SHOW").is_ok()
            && let EventKind::Configuration(conf) = &event.kind
        {
            let members: Vec<u16> = conf.members.iter().map(|m| m.node.get()).collect();
            println!(
                "{:>9.3} node {}: {:?} {:?}",
                event.time.0 as f64 / 1e9,
                event.process.node,
                conf.id,
                members
            );
        }
        if let EventKind::Delivered(placed) = &event.kind {
            let (to, from) = (event.process.node.get(), placed.message.process.node.get());
            self.got.insert((event.time.0 / SLOT, to, from));
        }
        Ok(())
    }
}

impl Served {
    /// Part of the time in which all but one get what all but that one say, in thousandths.
    fn together(&self, nodes: u16, ill: u16) -> u64 {
        let healthy: Vec<u16> = (1..=nodes).filter(|node| *node != ill).collect();
        let slots = LOOKS / SLOT..ENDS / SLOT;
        let all = slots.end - slots.start;
        let is_good = |slot: &u64| {
            let pairs = healthy
                .iter()
                .flat_map(|to| healthy.iter().map(move |from| (*to, *from)));
            let mut pairs = pairs;
            pairs.all(|(to, from)| self.got.contains(&(*slot, to, from)))
        };
        slots.filter(is_good).count() as u64 * 1000 / all
    }
}

/// Which engine.
#[derive(Clone, Copy, Debug)]
enum Which {
    Accelerated,
    Totem,
    Fast,
    Chain,
    RingPaxos,
    URing,
}

const EACH: [Which; 6] = [
    Which::Accelerated,
    Which::Totem,
    Which::Fast,
    Which::Chain,
    Which::RingPaxos,
    Which::URing,
];

fn plan(which: Which, nodes: usize, kind: &Kind, ill: usize) -> Plan {
    let protocol = match which {
        Which::Totem => Protocol::Original,
        _ => Protocol::Accelerated,
    };
    let mut plan = Plan::plain(nodes, protocol);
    plan.horizon = ENDS + SECONDS;
    for host in &mut plan.hosts {
        host.source.every = 20 * MILLIS;
        host.source.budget = 1_000_000;
        host.source.services = vec![Service::Agreed];
    }
    match which {
        Which::Accelerated | Which::Totem => {}
        Which::Fast => plan.set_views(false),
        Which::Chain => plan.set_views(true),
        Which::RingPaxos => plan.set_uring(Power::Lasts, true),
        Which::URing => plan.set_uring(Power::Lasts, false),
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

fn look(which: Which, nodes: usize, kind: &Kind, ill: usize) -> u64 {
    let plan = plan(which, nodes, kind, ill);
    let (served, finding) = match which {
        Which::Accelerated => run(&plan, &Ring(Protocol::Accelerated), Checks::new(&plan)),
        Which::Totem => run(&plan, &Ring(Protocol::Original), Checks::new(&plan)),
        Which::Fast => run(&plan, &Fast, ViewChecks::new(&plan)),
        Which::Chain => run(&plan, &Chain, ViewChecks::new(&plan)),
        Which::RingPaxos | Which::URing => run(&plan, &Along, WholeChecks::new(&plan)),
    };
    let peer = match kind.name.contains("one") {
        true => (ill + 1) % nodes,
        false => ill,
    };
    let of = |ill: usize| served.together(nodes as u16, ill as u16 + 1);
    let together = of(ill).max(of(peer));
    println!(
        "{which:?}, {nodes} nodes, {} {}: {together} {finding:?}",
        ill + 1,
        kind.name
    );
    together
}

#[test]
fn the_others_are_served() {
    let sizes = std::env::var("ROTA_NODES").unwrap_or("3,8".into());
    let only = std::env::var("ROTA_KIND").ok();
    let engine = std::env::var("ROTA_ENGINE").ok();
    for size in sizes.split(',') {
        let nodes: usize = size.parse().unwrap();
        for which in EACH {
            if engine
                .as_ref()
                .is_some_and(|name| *name != format!("{which:?}"))
            {
                continue;
            }
            for kind in KINDS {
                if only
                    .as_ref()
                    .is_some_and(|only| !kind.name.contains(only.as_str()))
                {
                    continue;
                }
                for ill in [0, nodes - 1] {
                    look(which, nodes, kind, ill);
                }
            }
        }
    }
}
