//! Worlds that are checked in every way there is.

use rota_check::event::Event;
use rota_check::online::Online;
use rota_check::trace::Trace;
use rota_check::{Options, check_all};
use rota_core::contract::{Service, Time};
use rota_ring::Protocol;
use rota_sim::observe::{Finding, Observer};
use rota_sim::plan::{Fault, FaultKind, MILLIS, Matrix, Plan};
use rota_sim::ring::{Ring, SafeIsHeld};
use rota_sim::world::{Outcome, World};

#[derive(Default)]
struct Checks {
    online: Online,
    trace: Trace,
}

impl Observer for Checks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        self.trace.push(event);
        let seen = self.online.observe(event);
        seen.map_err(|violation| Finding::new(violation.property, violation.detail))
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        self.trace.quiesce();
        let report = check_all(&self.trace, &Options::default());
        let mut violations = report.violations.into_iter();
        violations.next().map_or(Ok(()), |violation| {
            Err(Finding::new(violation.property, violation.detail))
        })
    }
}

/// Runs a world to its end, in which nothing may have been found.
pub fn run(plan: &Plan) -> Outcome {
    let mut checks = Checks::default();
    let ring = Ring(plan.ring.protocol);
    let world = World::new(plan, &ring).probed_by(SafeIsHeld);
    let outcome = world.watched_by(&mut checks).run();
    assert_eq!(outcome.finding, None, "{:?}", outcome.tally);
    outcome
}

/// Nodes that all send, of every service.
pub fn loaded(nodes: usize, protocol: Protocol, horizon: u64) -> Plan {
    let mut plan = Plan::plain(nodes, protocol);
    plan.horizon = horizon;
    for host in &mut plan.hosts {
        host.source.every = 2 * MILLIS;
        host.source.batch = 4;
        host.source.budget = 2000;
        (host.source.small_bytes, host.source.large_bytes) = (300, 4000);
        host.source.large = 100_000;
        host.source.services = Service::ALL.to_vec();
    }
    plan
}

pub fn fault(at: u64, lasts: u64, kind: FaultKind) -> Fault {
    Fault { at, lasts, kind }
}

/// Cuts the network into `group` and the others.
pub fn cut(nodes: usize, group: &[usize]) -> FaultKind {
    let mut links = Matrix::open(nodes);
    for one in group {
        for other in (0..nodes).filter(|other| !group.contains(other)) {
            links.cut_both(*one, other);
        }
    }
    let shape = "partition";
    FaultKind::Cut { shape, links }
}
