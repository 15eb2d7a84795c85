//! Our figures of FastCast, LCR and Ring Paxos on the cluster of FastCast's paper, and of U-Ring Paxos on the report's.

use rota_core::contract::Service;
use rota_wire::{Costs, DiskPlan, EnginePlan, LinkPlan, Load, Setup, Span};

use crate::case::mbps;
use crate::claims::Claim;
use crate::lab::{Answer, Lab};
use crate::recipe::Recipe;
use crate::rings::picked;

/// Nanoseconds in a millisecond.
const MILLIS: u64 = 1_000_000;
/// The link of the paper as netperf measures it (FastCast §4.1), Mbit/s.
const LINK: f64 = 942.0;
/// Bytes of the largest datagram in one frame.
const ONE_FRAME: usize = 1472;
/// Bytes of a full segment of TCP.
const SEGMENT: u64 = 1448;
/// A segment of a stream costs so much less than a datagram, as many go in one call.
const SEGMENTS: u64 = 4;

/// The engines of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// FastCast.
    FastCast,
    /// LCR.
    Lcr,
    /// Ring Paxos, with a majority of the nodes as acceptors.
    RingPaxos,
}

impl Engine {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "fastcast" => Ok(Self::FastCast),
            "lcr" => Ok(Self::Lcr),
            "ringpaxos" => Ok(Self::RingPaxos),
            _ => Err(format!("no engine of that cluster is called {name}")),
        }
    }

    fn plan(self, nodes: usize) -> EnginePlan {
        match self {
            Self::FastCast => EnginePlan::FastCast {
                datagram_bytes: ONE_FRAME,
                shares: true,
            },
            Self::Lcr => EnginePlan::Lcr,
            Self::RingPaxos => EnginePlan::Paxos {
                acceptors: nodes / 2 + 1,
                multicast: Some(ONE_FRAME),
            },
        }
    }
}

/// Links of TCP on machines with these costs.
pub fn links(costs: &Costs) -> LinkPlan {
    LinkPlan {
        queue_bytes: LinkPlan::default().queue_bytes,
        call: costs.send,
        byte: costs.send_byte + costs.send * 1000 / SEGMENTS / SEGMENT,
    }
}

/// A run on the cluster.
pub fn setup(
    lab: &Lab,
    engine: Engine,
    (nodes, senders): (usize, usize),
    load: Load,
    seed: u64,
) -> Setup {
    let costs = lab.calibration.cluster_costs();
    let is_quiet = load == Load::Rate(1_000_000);
    Setup {
        nodes,
        wire: lab.calibration.cluster_wire(),
        links: links(&costs),
        costs,
        engine: engine.plan(nodes),
        load,
        senders,
        message_bytes: 10_000,
        service: Service::Safe,
        loss: None,
        disk: DiskPlan::MEMORY,
        span: Span {
            warm_up: 200 * MILLIS,
            measured: if is_quiet {
                2000 * MILLIS
            } else {
                300 * MILLIS
            },
        },
        seed,
    }
}

/// Our figures for a claim.
pub fn answer(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    let all = recipe.spread().into_iter();
    let all = all.map(|one| figure(lab, claim, &one, seed)).collect();
    picked(recipe, all).map(Answer::Figures)
}

fn figure(lab: &Lab, claim: &Claim, recipe: &Recipe, seed: u64) -> Result<f64, String> {
    if recipe.what() == "cluster-growth" {
        let with = |nodes: &str| {
            let recipe = recipe.with("nodes", nodes).with("get", "cluster-response");
            single(lab, claim, (&claim.system, &recipe), seed)
        };
        return Ok(with("8")? / with("2")?);
    }
    if let Some((above, below)) = recipe.get("ratio").and_then(|ratio| ratio.split_once('/')) {
        let of = |name: &str| single(lab, claim, (name, recipe), seed);
        return Ok(of(above)? / of(below)?);
    }
    single(lab, claim, (&claim.system, recipe), seed)
}

fn single(
    lab: &Lab,
    claim: &Claim,
    (system, recipe): (&str, &Recipe),
    seed: u64,
) -> Result<f64, String> {
    if recipe.what() == "cluster-uring" {
        return uring(lab, claim, seed);
    }
    let engine = Engine::parse(system)?;
    let nodes = recipe.number("nodes").map(|nodes| nodes as usize);
    let nodes = nodes.or(claim.nodes).unwrap_or(8);
    // In the paper's Ring Paxos one process sends for all (§4.3): values leave by the coordinator.
    let leads = engine == Engine::RingPaxos && recipe.what() != "cluster-response";
    let senders = recipe.number("senders").map(|senders| senders as usize);
    let senders = senders.unwrap_or(if leads { 1 } else { nodes });
    let Some(rate) = recipe.number("rate") else {
        let run = lab.run(&setup(lab, engine, (nodes, senders), Load::Full, seed));
        let best = LINK * nodes as f64 / (nodes as f64 - 1.0);
        return Ok(match recipe.what() {
            "cluster-share" => run.goodput_mbps / best,
            _ => run.goodput_mbps,
        });
    };
    let load = Load::Rate(mbps(rate));
    let run = lab.run(&setup(lab, engine, (nodes, senders), load, seed));
    if run.goodput_mbps < 0.97 * rate {
        return Err(format!(
            "{system} does not bear {rate} Mbit/s with {nodes} nodes"
        ));
    }
    Ok(run.delays.at_sender)
}

/// U-Ring Paxos with three acceptors on the servers of the report (§V).
fn uring(lab: &Lab, claim: &Claim, seed: u64) -> Result<f64, String> {
    let calibration = &lab.calibration;
    let costs = calibration.costs(0.0, 0.0);
    let numbers = match claim.network.as_str() {
        "1g" => &calibration.one_gig,
        _ => &calibration.ten_gig,
    };
    let setup = Setup {
        nodes: claim.nodes.unwrap_or(8),
        wire: calibration.wire(numbers),
        links: links(&costs),
        costs,
        engine: EnginePlan::Paxos {
            acceptors: 3,
            multicast: None,
        },
        load: Load::Full,
        senders: claim.nodes.unwrap_or(8),
        message_bytes: claim.payload.unwrap_or(1350),
        service: Service::Safe,
        loss: None,
        disk: DiskPlan::MEMORY,
        span: Span {
            warm_up: 100 * MILLIS,
            measured: 150 * MILLIS,
        },
        seed,
    };
    Ok(lab.run(&setup).goodput_mbps)
}
