//! Our figures of the two rings, at full load and at a rate.

use rota_core::contract::Service;
use rota_ring::Protocol;
use rota_wire::{Generated, Load, Run};

use crate::case::{Case, System, mbps};
use crate::claims::Claim;
use crate::curves;
use crate::lab::{Answer, Lab};
use crate::recipe::Recipe;

/// Personal windows that are tried.
pub const WINDOWS: [u32; 9] = [5, 10, 15, 20, 25, 30, 40, 60, 100];
/// The share of the largest throughput that the smallest window has to reach (report §IV-A: "reach its maximum").
const REACHED: f64 = 0.98;
/// The share of a rate that has to be delivered: with less the ring does not bear it.
const BORNE: f64 = 0.97;
/// The throughput that the thesis looks for in its introduction to chapter 5, Mbit/s.
const LOOKED_FOR: f64 = 980.0;

/// A ring at full load: the mean of the thesis's two ways to generate messages (§5.1.2).
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// Payload delivered at a node, Mbit/s.
    pub mbps: f64,
    /// Mean delay, microseconds.
    pub delay: f64,
    /// Datagrams that a port had no room for.
    pub dropped: u64,
    /// The longest queue of a port, in bytes.
    pub queue: u64,
}

impl Lab {
    /// A case at full load.
    pub fn full(&self, case: &Case, seed: u64) -> Full {
        let run = |generated| {
            let setup = case.setup(&self.calibration, Load::Visit(generated), seed);
            self.run(&setup)
        };
        let (receipt, release) = (run(Generated::AtReceipt), run(Generated::AfterRelease));
        Full {
            mbps: f64::midpoint(receipt.goodput_mbps, release.goodput_mbps),
            delay: f64::midpoint(receipt.delays.mean, release.delays.mean),
            dropped: receipt.traffic.dropped + release.traffic.dropped,
            queue: receipt
                .traffic
                .longest_queue
                .max(release.traffic.longest_queue),
        }
    }

    /// A case in which clients send as much as is taken.
    pub fn saturated(&self, case: &Case, seed: u64) -> f64 {
        let load = match case.system {
            System::Library => Load::Visit(Generated::AtReceipt),
            _ => Load::Full,
        };
        self.run(&case.setup(&self.calibration, load, seed))
            .goodput_mbps
    }

    /// The case with the smallest windows that reach its maximum, unless it has windows.
    pub fn with_windows(&self, case: &Case) -> Case {
        if case.windows.is_some() {
            return *case;
        }
        let key = Case {
            loss: None,
            ..*case
        };
        let found = self.windows(key, || {
            let each = WINDOWS.map(|window| {
                let windows = Some((window, window));
                (window, self.saturated(&Case { windows, ..key }, 1))
            });
            let most = each.iter().map(|(_, mbps)| *mbps).fold(0.0, f64::max);
            let first = each.iter().find(|(_, mbps)| *mbps >= REACHED * most);
            let window = first.map_or(30, |(window, _)| *window);
            (window, window)
        });
        Case {
            windows: Some(found),
            ..*case
        }
    }

    /// The case at a rate, if it bears it.
    pub fn at_rate(&self, case: &Case, rate: f64, seed: u64) -> Result<Run, String> {
        let case = self.with_windows(case);
        let run = self.run(&case.setup(&self.calibration, Load::Rate(mbps(rate)), seed));
        if run.goodput_mbps < BORNE * rate {
            let (name, got) = (name(case.protocol), run.goodput_mbps);
            return Err(format!(
                "the {name} ring does not bear {rate} Mbit/s here: {got:.0} are delivered"
            ));
        }
        Ok(run)
    }

    /// The accelerated window of the lowest safe delay for a personal one (thesis §5.2.1).
    pub fn best(&self, case: &Case, personal: u32) -> Case {
        let tried = [personal / 4, personal / 2, personal * 3 / 4, personal];
        let cases = tried.map(|window| Case {
            windows: Some((personal, window)),
            ..*case
        });
        let delay = |case: &Case| {
            let safe = Case {
                service: Service::Safe,
                ..*case
            };
            self.full(&safe, 1).delay
        };
        let best = cases
            .into_iter()
            .min_by(|a, b| delay(a).total_cmp(&delay(b)));
        best.unwrap_or(*case)
    }

    /// The smallest personal window with which the accelerated ring passes what the thesis looks for.
    fn first_over(&self, case: &Case) -> Result<u32, String> {
        let accelerated = Case {
            protocol: Protocol::Accelerated,
            ..*case
        };
        let passes = |window: &&u32| {
            let best = self.best(&accelerated, **window);
            self.full(&best, 1).mbps > LOOKED_FOR
        };
        let first = WINDOWS.iter().find(passes).copied();
        first.ok_or_else(|| format!("no window passes {LOOKED_FOR} Mbit/s here"))
    }
}

/// Its name.
pub const fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Original => "original",
        Protocol::Accelerated => "accelerated",
    }
}

/// Our figures for a claim.
pub fn answer(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    match recipe.what() {
        "crossing" => return curves::crossing(lab, claim, seed),
        "dips" => return curves::dips(lab, claim),
        "dropped" => return dropped(lab, claim, seed),
        _ => {}
    }
    let all = recipe.spread().into_iter();
    let all: Vec<_> = all.map(|one| figure(lab, claim, &one, seed)).collect();
    picked(recipe, all).map(Answer::Figures)
}

/// What of a sweep is wanted. A rate that a protocol does not bear is left out, as the papers' curves end there.
pub fn picked(recipe: &Recipe, all: Vec<Result<f64, String>>) -> Result<Vec<f64>, String> {
    let first = all.iter().find_map(|one| one.clone().err());
    let figures: Vec<f64> = all.into_iter().flatten().collect();
    if figures.is_empty() {
        return Err(first.unwrap_or_default());
    }
    let fold = |of: fn(f64, f64) -> f64| -> Vec<f64> {
        figures.iter().copied().reduce(of).into_iter().collect()
    };
    Ok(match recipe.get("pick") {
        Some("max") => fold(f64::max),
        Some("min") => fold(f64::min),
        Some("mean") => vec![figures.iter().sum::<f64>() / figures.len() as f64],
        _ => figures,
    })
}

/// One figure, or the ratio of the accelerated ring's to the original's.
fn figure(lab: &Lab, claim: &Claim, recipe: &Recipe, seed: u64) -> Result<f64, String> {
    let case = Case::of(claim, recipe)?;
    if recipe.get("ratio") != Some("protocol") {
        return single(lab, &case, recipe, seed);
    }
    let of = |protocol| single(lab, &Case { protocol, ..case }, recipe, seed);
    Ok(of(Protocol::Accelerated)? / of(Protocol::Original)?)
}

fn single(lab: &Lab, case: &Case, recipe: &Recipe, seed: u64) -> Result<f64, String> {
    let case = windows(lab, case, recipe)?;
    let what = recipe.what();
    if let Some(latency) = recipe.number("latency").filter(|_| what == "rate-at") {
        return curves::rate_at(lab, &case, latency, seed);
    }
    if recipe.get("rate") == Some("max") {
        return Ok(lab.saturated(&lab.with_windows(&case), seed));
    }
    let Some(rate) = recipe.number("rate") else {
        let full = lab.full(&case, seed);
        return match what {
            "throughput" => Ok(full.mbps),
            "latency" => Ok(full.delay),
            _ => Err(format!("nothing is called {what} at full load")),
        };
    };
    if case.system == System::Library {
        return curves::delay_at(lab, &case, rate, seed);
    }
    let run = lab.at_rate(&case, rate, seed)?;
    match what {
        "latency" => Ok(run.delays.mean),
        "worst" => Ok(run.delays.worst),
        "throughput" => Ok(run.goodput_mbps),
        _ => Err(format!("nothing is called {what} at a rate")),
    }
}

/// The case with the windows of the recipe: numbers, the best, or the first that passes what the thesis looks for.
fn windows(lab: &Lab, case: &Case, recipe: &Recipe) -> Result<Case, String> {
    let is_original = case.protocol == Protocol::Original;
    let own = recipe.get("opw").filter(|_| is_original);
    let personal = match own.or_else(|| recipe.get("pw")) {
        None => return Ok(*case),
        Some("first") => lab.first_over(case)?,
        Some(window) => window
            .parse()
            .map_err(|_| format!("a window of {window}"))?,
    };
    if is_original {
        let windows = Some((personal, 0));
        return Ok(Case { windows, ..*case });
    }
    match recipe.get("aw") {
        Some("best") => Ok(lab.best(case, personal)),
        Some(window) => {
            let accelerated = window
                .parse()
                .map_err(|_| format!("a window of {window}"))?;
            Ok(Case {
                windows: Some((personal, accelerated)),
                ..*case
            })
        }
        None => Ok(Case {
            windows: Some((personal, personal)),
            ..*case
        }),
    }
}

/// Whether packets are lost at full load, where the claim says they are, or not where it says they are not.
fn dropped(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    let case = windows(lab, &Case::of(claim, recipe)?, recipe)?;
    let full = lab.full(&case, seed);
    let dropped = full.dropped;
    let is_expected = recipe.get("pick") != Some("none");
    let what = format!(
        "{dropped} packets find no room in a port, whose longest queue has {:.0} kB",
        full.queue as f64 / 1000.0
    );
    Ok(Answer::Seen((dropped > 0) == is_expected, what))
}
