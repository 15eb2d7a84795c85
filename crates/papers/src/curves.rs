//! Figures that need more than one run: a rate for a delay, a delay of the library for a rate, where two curves cross.

use rota_ring::Protocol;

use crate::case::{Case, System};
use crate::claims::Claim;
use crate::lab::{Answer, Lab};
use crate::rings::WINDOWS;

/// Halvings of an interval of rates: to 1 % of what is looked for.
const HALVINGS: u32 = 6;
/// The rates between which two curves cross, Mbit/s.
const STEPS: [f64; 10] = [
    100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0,
];

/// The library at full load, by personal window: throughput and delay (report §IV-A: its throughput is set by the
/// window).
fn library(lab: &Lab, case: &Case, seed: u64) -> Vec<(f64, f64)> {
    let at = |window: u32| {
        let windows = Some((window, window));
        let full = lab.full(&Case { windows, ..*case }, seed);
        (full.mbps, full.delay)
    };
    WINDOWS.into_iter().map(at).collect()
}

/// The delay of the library at a rate: between the two windows around it.
pub fn delay_at(lab: &Lab, case: &Case, rate: f64, seed: u64) -> Result<f64, String> {
    let points = library(lab, case, seed);
    if points[0].0 >= rate {
        return Ok(points[0].1);
    }
    let around = points
        .windows(2)
        .find(|two| two[0].0 <= rate && rate <= two[1].0);
    let two = around.ok_or_else(|| format!("no window of the library gives {rate} Mbit/s here"))?;
    let share = (rate - two[0].0) / (two[1].0 - two[0].0);
    Ok(two[0].1 + share * (two[1].1 - two[0].1))
}

/// The largest rate with a mean delay of at most this many microseconds, Mbit/s.
pub fn rate_at(lab: &Lab, case: &Case, latency: f64, seed: u64) -> Result<f64, String> {
    if case.system == System::Library {
        let points = library(lab, case, seed);
        let around = points
            .windows(2)
            .find(|two| two[0].1 <= latency && latency <= two[1].1);
        let two = around.ok_or_else(|| format!("no window of the library takes {latency} us"))?;
        let share = (latency - two[0].1) / (two[1].1 - two[0].1);
        return Ok(two[0].0 + share * (two[1].0 - two[0].0));
    }
    let case = lab.with_windows(case);
    let bears = |rate: f64| {
        let run = lab.at_rate(&case, rate, seed);
        run.is_ok_and(|run| run.delays.mean <= latency)
    };
    let (mut low, mut high) = (50.0, lab.saturated(&case, seed));
    if !bears(low) {
        return Err(format!(
            "even {low} Mbit/s take longer than {latency} us here"
        ));
    }
    for _ in 0..HALVINGS {
        // Whole numbers, so that claims share their runs.
        let middle = f64::midpoint(low, high).round();
        if bears(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The rates between which the accelerated ring begins to be the faster one, for good.
pub fn crossing(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let case = Case::of(claim, &claim.judging.recipe)?;
    let mut last = 0.0;
    for rate in STEPS {
        let delay = |protocol| {
            let run = lab.at_rate(&Case { protocol, ..case }, rate, seed);
            run.map(|run| run.delays.mean)
        };
        let (accelerated, original) = (delay(Protocol::Accelerated)?, delay(Protocol::Original)?);
        if accelerated >= original {
            last = rate;
        }
    }
    if last == STEPS[STEPS.len() - 1] {
        return Err(format!(
            "the accelerated ring is not the faster one up to {last} Mbit/s"
        ));
    }
    Ok(Answer::Figures(vec![last, last + 100.0]))
}

/// Whether throughput falls where a message no longer shares a packet, and where it no longer fits one.
pub fn dips(lab: &Lab, claim: &Claim) -> Result<Answer, String> {
    let recipe = &claim.judging.recipe;
    let case = Case::of(claim, recipe)?;
    let at = |payload: usize| {
        let windows = Some((20, 20));
        let case = Case {
            payload,
            windows,
            ..case
        };
        lab.saturated(&case, 1)
    };
    let falls = |below: usize, above: usize| {
        let (below, above) = (at(below), at(above));
        (above < 0.9 * below, format!("{below:.0} to {above:.0}"))
    };
    let (shared, fits) = (falls(650, 700), falls(1350, 1400));
    let what = format!(
        "Mbit/s from 650 to 700 bytes: {}; from 1350 to 1400: {}",
        shared.1, fits.1
    );
    Ok(Answer::Seen(shared.0 && fits.0, what))
}
