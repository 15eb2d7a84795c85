//! Links that are cut for good, one direction or both: every graph of three nodes, and random ones of five and eight.
//! Every node that can serve has to serve, and nobody may keep the others from it (P-12, P-13).

use std::cell::RefCell;
use std::rc::Rc;

use rota_core::contract::{
    Class, Delivery, Engine, Input, Output, Process, RingId, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_ring::Protocol;
use rota_ring::RingEngine;
use rota_sim::checks::Checks;
use rota_sim::plan::{Fault, FaultKind, MILLIS, Matrix, Plan, SECONDS};
use rota_sim::ring::Ring;
use rota_sim::rng::Rng;
use rota_sim::world::{Outcome, System, World};

/// The time for which the links stay cut.
const CUT_FOR: u64 = 120 * SECONDS;

/// When a node's ring has changed: the time, the node, and the ring on which it is operational.
type Changes = Rc<RefCell<Vec<(u64, usize, Option<RingId>)>>>;

/// A ring engine whose changes are written down.
struct Noted {
    ring: RingEngine,
    node: usize,
    last: Option<RingId>,
    changes: Changes,
}

impl Noted {
    fn note(&mut self, now: Time) {
        let operational = self.ring.phase_name() == "operational";
        let ring = self.ring.ordering().filter(|_| operational);
        let ring = ring.map(rota_ring::Ordering::ring);
        if ring != self.last {
            self.last = ring;
            self.changes.borrow_mut().push((now.0, self.node, ring));
        }
    }
}

impl Engine for Noted {
    fn handle(&mut self, now: Time, input: Input) {
        self.ring.handle(now, input);
        self.note(now);
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.ring.submit(now, service, payload)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.ring.poll_output()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.ring.poll_delivery()
    }

    fn reading(&self) -> Class {
        self.ring.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        self.ring.next_timer()
    }

    fn status(&self) -> Status {
        self.ring.status()
    }
}

struct Watched(Changes);

impl System for Watched {
    type Engine = Noted;

    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Noted {
        Noted {
            ring: Ring(Protocol::Accelerated).engine(plan, me, life),
            node: usize::from(me.node.get()) - 1,
            last: None,
            changes: Rc::clone(&self.0),
        }
    }

    fn ring(&self, engine: &Noted) -> Option<RingId> {
        Ring(Protocol::Accelerated).ring(&engine.ring)
    }
}

/// The outcome of a graph.
struct Seen {
    outcome: Outcome,
    /// Part of the time, from the tenth token loss on, in which two nodes that hear each other are
    /// operational on one ring; in thousandths. `None` if no two hear each other.
    service: Option<u64>,
    /// The same, of any node at all.
    alone: u64,
    /// The time at which the last node came to the last ring, after the links were mended; `None` if not all did.
    healed: Option<u64>,
    /// Times a node left an installed ring, in each sixth of the time.
    left: [u32; 6],
}

/// Time from the mending of all links until everybody shares one ring: the longest time a process is
/// left alone, and what it takes to agree.
fn heals_within(plan: &Plan) -> u64 {
    64 * plan.ring.timers.token_loss + plan.converges_within()
}

fn plan(links: &Matrix) -> Plan {
    let hosts = links.0.len();
    let mut plan = Plan::plain(hosts, Protocol::Accelerated);
    plan.horizon = CUT_FOR + heals_within(&plan);
    plan.faults = vec![Fault {
        at: 0,
        lasts: CUT_FOR,
        kind: FaultKind::Cut {
            shape: "graph",
            links: links.clone(),
        },
    }];
    for host in &mut plan.hosts {
        host.source.every = 100 * MILLIS;
        host.source.budget = 200;
        host.source.services = vec![Service::Agreed, Service::Safe];
    }
    plan
}

fn run(links: &Matrix) -> Seen {
    let plan = plan(links);
    let changes = Changes::default();
    let system = Watched(Rc::clone(&changes));
    let mut checks = Checks::online();
    let outcome = World::new(&plan, &system).watched_by(&mut checks).run();
    let changes = changes.borrow();
    judge(&plan, links, &changes, outcome)
}

fn judge(
    plan: &Plan,
    links: &Matrix,
    changes: &[(u64, usize, Option<RingId>)],
    outcome: Outcome,
) -> Seen {
    let hosts = plan.nodes();
    let hears = |a: usize, b: usize| !links.is_cut(a, b) && !links.is_cut(b, a);
    let pairs: Vec<(usize, usize)> = (0..hosts)
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .filter(|&(a, b)| hears(a, b))
        .collect();
    let from = 10 * plan.ring.timers.token_loss;
    let mut rings: Vec<Option<RingId>> = vec![None; hosts];
    let (mut together, mut anybody, mut last) = (0, 0, from);
    let mut left = [0; 6];
    let end = [(CUT_FOR, usize::MAX, None)];
    let before = changes.iter().filter(|change| change.0 < CUT_FOR);
    let after = changes
        .iter()
        .filter(|change| (CUT_FOR..plan.horizon).contains(&change.0));
    for &(at, node, ring) in before.chain(&end).chain(after) {
        let at = at.min(CUT_FOR);
        if at > last {
            let served = |&(a, b): &(usize, usize)| rings[a].is_some() && rings[a] == rings[b];
            together += if pairs.iter().any(served) {
                at - last
            } else {
                0
            };
            anybody += if rings.iter().any(Option::is_some) {
                at - last
            } else {
                0
            };
            last = at;
        }
        if ring.is_none() && at > 0 && at < CUT_FOR {
            left[(at * 6 / CUT_FOR) as usize] += 1;
        }
        if node < hosts {
            rings[node] = ring;
        }
    }
    let same = rings.iter().all(|ring| ring.is_some() && *ring == rings[0]);
    let times = changes.iter().map(|change| change.0);
    let last = times.filter(|&at| at < plan.horizon).max().unwrap_or(0);
    let healed = same.then(|| last.saturating_sub(CUT_FOR));
    let thousandths = |time: u64| time * 1000 / (CUT_FOR - from);
    Seen {
        outcome,
        service: (!pairs.is_empty()).then(|| thousandths(together)),
        alone: thousandths(anybody),
        healed,
        left,
    }
}

/// The graph in which the links of these bits are cut.
fn graph(hosts: usize, mut bits: u64) -> Matrix {
    let mut links = Matrix::open(hosts);
    for from in 0..hosts {
        for to in (0..hosts).filter(|&to| to != from) {
            if bits & 1 == 1 {
                links.cut(from, to);
            }
            bits >>= 1;
        }
    }
    links
}

fn random_graph(hosts: usize, seed: u64) -> Matrix {
    let mut rng = Rng::split(seed, 77);
    let percent = rng.range(5, 70);
    let mut links = Matrix::open(hosts);
    for from in 0..hosts {
        for to in 0..hosts {
            if rng.percent(percent) {
                links.cut(from, to);
            }
        }
    }
    links
}

/// The conditions for every graph: somebody serves nearly always, nobody disturbs the others for ever, and all share a
/// ring soon after the links were mended.
fn check(name: &str, links: &Matrix, least: u64, most: u32) {
    let seen = run(links);
    let text = format!(
        "{name}: service {:?}, anybody {}, left {:?}, healed after {:?} ms, {:?}; cut: {links}",
        seen.service,
        seen.alone,
        seen.left,
        seen.healed.map(|nanos| nanos / MILLIS),
        seen.outcome.finding
    );
    println!("{text}");
    assert_eq!(seen.outcome.finding, None, "{text}");
    assert!(
        seen.service.is_none_or(|service| service >= least),
        "{text}"
    );
    assert!(seen.alone >= least, "{text}");
    // In the beginning all are tried, and then there is a pause.
    assert!(seen.left[0] <= 4 * most, "{text}");
    assert!(seen.left[1..].iter().all(|&left| left <= most), "{text}");
    assert!(seen.healed.is_some(), "{text}");
}

/// Seeds of random graphs: a few, or as many as `ROTA_GRAPHS` says.
fn seeds() -> std::ops::Range<u64> {
    let many = std::env::var("ROTA_GRAPHS").map(|text| text.parse().expect("a number of graphs"));
    0..many.unwrap_or(10)
}

#[test]
fn every_graph_of_three_nodes() {
    for bits in 0..64 {
        // Ten re-formations in twenty seconds, over all three.
        check(&format!("graph {bits}"), &graph(3, bits), 900, 10);
    }
}

/// Nine tenths of the time is what is wanted of larger graphs, too, and what most get. One in twenty of
/// those with eight nodes gets a little less: while each node tries another that it cannot keep, somebody
/// is always trying.
#[test]
fn random_graphs_of_five_and_eight_nodes() {
    for seed in seeds() {
        check(&format!("five {seed}"), &random_graph(5, seed), 870, 50);
        check(&format!("eight {seed}"), &random_graph(8, seed), 850, 100);
    }
}
