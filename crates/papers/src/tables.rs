//! Claims that are read in the code, or are arithmetic: no run is needed.

use rota_core::contract::NodeId;
use rota_core::shares::max_min;
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::URingConfig;

use crate::claims::Claim;
use crate::lab::Answer;

/// Payload and all bytes of a full frame of TCP with timestamps.
const TCP: (f64, f64) = (1448.0, 1538.0);

/// Our answer for a claim.
pub fn answer(claim: &Claim) -> Result<Answer, String> {
    match claim.judging.recipe.what() {
        "table-tcp" => Ok(Answer::Figures(vec![TCP.0 / TCP.1 * 1000.0])),
        "table-kept" => kept(),
        "table-shares" => shares(claim),
        what => Err(format!("nothing is called {what}")),
    }
}

/// Instances that an acceptor keeps for processes that are behind.
fn kept() -> Result<Answer, String> {
    let node = NodeId::new(1).ok_or("a node has a number")?;
    let timers = Timers::derive(Timing::Default, 3);
    let kept = URingConfig::new(vec![node], &timers)
        .acceptor
        .kept_instances;
    Ok(Answer::Figures(vec![kept as f64]))
}

/// The steps of FastCast's tables: what the three processes require, by table.
const REQUIRED: [(&str, [u64; 3]); 3] = [
    ("f12", [800, 300, 0]),
    ("f13", [800, 300, 600]),
    ("f14", [800, 300, 100]),
];

/// The shares of the three processes, in Mbit/s, of a link of 1000.
fn shares(claim: &Claim) -> Result<Answer, String> {
    let found = REQUIRED.iter().find(|(id, _)| *id == claim.id);
    let (_, required) = found.ok_or("no table of shares")?;
    let each = [0, 1, 2].map(|me| max_min(required, me, 1000).to_string());
    let ours = each.join("/");
    let is_said = claim.said.split(' ').next() == Some(ours.as_str());
    Ok(Answer::Seen(is_said, ours))
}
