//! Our figures under loss: how much is sent again, and whose losses are dear (report §IV-A4).

use rota_ring::Protocol;
use rota_wire::{LossPlan, Run};

use crate::case::Case;
use crate::claims::Claim;
use crate::lab::{Answer, Lab};
use crate::recipe::Recipe;
use crate::rings::name;

/// The share by which a delay may fall from one distance to the next and still not count as a fall: chance.
const CHANCE: f64 = 0.02;

/// Our figures for a claim.
pub fn answer(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    match recipe.what() {
        "loss-resent" => resent(lab, claim, seed),
        "loss-never" => Ok(Answer::Figures(vec![never_resent(claim, recipe)])),
        "loss-distance" => distance(lab, claim, seed),
        what => Err(format!("nothing is called {what}")),
    }
}

fn run(lab: &Lab, case: &Case, recipe: &Recipe, seed: u64) -> Result<Run, String> {
    let rate = recipe.number("rate").ok_or("a loss needs a rate")?;
    lab.at_rate(case, rate, seed)
}

/// How many packets are sent again for each that is sent, over the share that each node loses.
fn resent(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let mut figures = Vec::new();
    for recipe in claim.judging.recipe.spread() {
        let case = Case::of(claim, &recipe)?;
        let share = recipe.number("loss").ok_or("a loss in percent")? / 100.0;
        for protocol in [Protocol::Original, Protocol::Accelerated] {
            let run = run(lab, &Case { protocol, ..case }, &recipe, seed)?;
            let sent = run.traffic.sent.max(1) as f64;
            figures.push(run.traffic.resent as f64 / sent / share);
        }
    }
    Ok(Answer::Figures(figures))
}

/// The share of packets that all others get at once.
fn never_resent(claim: &Claim, recipe: &Recipe) -> f64 {
    let others = claim.nodes.unwrap_or(8) as i32 - 1;
    let kept = 1.0 - recipe.number("loss").unwrap_or(0.0) / 100.0;
    kept.powi(others)
}

/// Whether delays grow with the distance of the node whose packets are lost.
fn distance(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    let case = Case::of(claim, recipe)?;
    let Some(loss) = case.loss else {
        return Err("no loss".to_owned());
    };
    let (mut grows, mut what) = (true, Vec::new());
    for protocol in [Protocol::Original, Protocol::Accelerated] {
        let mut delays = Vec::new();
        for distance in 1..case.nodes {
            let loss = Some(LossPlan {
                distance: Some(distance),
                ..loss
            });
            let case = Case {
                protocol,
                loss,
                ..case
            };
            delays.push(run(lab, &case, recipe, seed)?.delays.mean);
        }
        grows &= delays
            .windows(2)
            .all(|two| two[1] >= two[0] * (1.0 - CHANCE));
        grows &= delays.last() > delays.first();
        let shown: Vec<String> = delays.iter().map(|delay| format!("{delay:.0}")).collect();
        what.push(format!("{} {} us", name(protocol), shown.join(" ")));
    }
    Ok(Answer::Seen(grows, what.join("; ")))
}
