//! The number of token rounds a second that one core simulates: five nodes, four messages a visit, two percent of the
//! data lost, all online checks on.
//!
//!     cargo run --release -p rota-sim --example rounds

use std::time::Instant;

use rota_core::contract::Service;
use rota_ring::Protocol;
use rota_sim::checks::Checks;
use rota_sim::plan::{Plan, SECONDS};
use rota_sim::ring::{Ring, SafeIsHeld};
use rota_sim::world::World;

const NODES: usize = 5;

fn main() {
    let plan = plan();
    let ring = Ring(Protocol::Accelerated);
    let started = Instant::now();
    let mut checks = Checks::online();
    let outcome = World::new(&plan, &ring)
        .probed_by(SafeIsHeld)
        .watched_by(&mut checks)
        .run();
    let seconds = started.elapsed().as_secs_f64();
    let rounds = outcome.tally.counter("token_rotations") / NODES as u64;
    let deliveries = outcome.tally.deliveries;
    println!("rounds            {rounds}");
    println!("deliveries        {deliveries}");
    println!(
        "retransmissions   {}",
        outcome.tally.counter("retransmissions")
    );
    println!(
        "virtual seconds   {:.2}",
        outcome.virtual_nanos as f64 / 1e9
    );
    println!("seconds           {seconds:.2}");
    println!("rounds a second   {:.0}", rounds as f64 / seconds);
    println!(
        "events a second   {:.0}",
        outcome.tally.events as f64 / seconds
    );
    println!("finding           {:?}", outcome.finding);
}

fn plan() -> Plan {
    let mut plan = Plan::plain(NODES, Protocol::Accelerated);
    plan.horizon = 5 * SECONDS;
    plan.net.lanes[0].loss = 20_000;
    for host in &mut plan.hosts {
        // Messages that fill a packet, more than the window takes.
        host.source.every = 200_000;
        host.source.batch = 40;
        host.source.budget = u32::MAX;
        (host.source.small_bytes, host.source.large_bytes) = (0, 1350);
        host.source.large = 1_000_000;
        host.source.services = vec![Service::Agreed, Service::Safe];
    }
    plan.ring.windows.personal = 4;
    plan.ring.windows.accelerated = 3;
    plan
}
