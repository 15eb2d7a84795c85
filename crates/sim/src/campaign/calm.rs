//! A world in which nothing is lost and nothing is late.

use rota_core::contract::Service;

use super::{Options, run_plan};
use crate::observe::Finding;
use crate::plan::Plan;
use crate::world::Outcome;

/// Runs so many nodes under load in a perfect network. Nothing may be sent again there: the finding
/// `spurious` says that it was (thesis §3.1.2.2: requests reach only up to the `seq` of the last visit).
pub fn run_calm(options: &Options, nodes: usize) -> Outcome {
    let mut plan = Plan::plain(nodes, super::engine::protocol(options.engine));
    for host in &mut plan.hosts {
        host.source.every = 1;
        host.source.budget = 3000;
        host.source.services = vec![Service::Agreed, Service::Safe];
    }
    let mut outcome = run_plan(options, &plan, None);
    let again = outcome.tally.counter("retransmissions");
    if outcome.finding.is_none() && again > 0 {
        let detail = format!("{again} packets were sent again, and none was lost");
        outcome.finding = Some(Finding::new("spurious", detail));
    }
    outcome
}
