//! The highest rate that keeps within a bound on latency, found by halving.
//!
//! What a system takes at full load says little about a service with a promise to keep. The full load gives the upper end;
//! a rate that breaks the bound once is tried again, since a shared host breaks it by itself now and then.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use crate::error::BenchError;
use crate::library::{BenchReport, run_bench};
use crate::options::{BenchOptions, BitRate, Load, ParseError, parse_duration, wrong};

/// The rates tried between nothing and full load: the result is within 1.6 % of full load.
const STEPS: u32 = 6;
/// A rate counts as kept where most of this many runs keep it.
const RUNS: u32 = 3;
/// The share of the offered load that the ring has to take.
const TAKEN: f64 = 0.98;

/// A bound on the latency that others see: `p99=1ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The share of all messages that keep it.
    pub quantile: f64,
    /// The latency, in microseconds.
    pub us: f64,
}

impl FromStr for Bound {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let hint = "a bound on latency: p50=200us, p99=1ms, p99.9=5ms";
        let read = || {
            let (quantile, latency) = text.strip_prefix('p')?.split_once('=')?;
            let percent: f64 = quantile.parse().ok()?;
            let latency: Duration = parse_duration(latency).ok()?;
            let is_quantile = (1.0..100.0).contains(&percent) && !latency.is_zero();
            is_quantile.then(|| Self {
                quantile: percent / 100.0,
                us: latency.as_secs_f64() * 1e6,
            })
        };
        read().map_or_else(|| wrong(text, hint), Ok)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tenths of a percent, without the error of the division.
        let percent = (self.quantile * 1000.0).round() / 10.0;
        write!(f, "p{percent} of {} us", self.us)
    }
}

/// A run of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Try {
    /// Clean payload of all senders together.
    pub offered_mbps: f64,
    /// What the ring took of it.
    pub submitted_mbps: f64,
    /// The latency at the bound's quantile; none where nothing was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// Whether all was taken and delivered, within the bound.
    pub kept: bool,
}

/// The result; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// The engine.
    pub engine: &'static str,
    /// The bound.
    pub bound: Bound,
    /// Clean payload delivered at full load.
    pub full_mbps: f64,
    /// The highest rate that keeps the bound; none if not even the lowest that was tried does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_mbps: Option<f64>,
    /// All runs, in their order.
    pub tries: Vec<Try>,
}

impl SearchReport {
    /// The reason why there is no result.
    pub fn failure(&self) -> Option<&'static str> {
        let none = self.best_mbps.is_none();
        none.then_some("no rate that was tried keeps the bound")
    }
}

/// Searches for the highest rate within the bound.
///
/// # Errors
/// As of [`run_bench`]; and where nodes disagree about the order.
pub fn run_search(
    options: &BenchOptions,
    bound: Bound,
    tell: &mut dyn FnMut(String),
) -> Result<SearchReport, BenchError> {
    if options.times.first_message.is_some() || matches!(options.traffic.load, Load::Outstanding(_))
    {
        let what = "--within is for a load with a rate, which it finds out";
        return Err(BenchError::Usage(what.to_owned()));
    }
    let at = |load: Load| {
        let mut options = options.clone();
        options.traffic.load = load;
        options.traffic.is_random &= load != Load::Max;
        run_bench(&options)
    };
    let full = at(Load::Max)?;
    tell(format!("full load: {:.1} Mbit/s", full.goodput_mbps));
    let mut tries = Vec::new();
    let mut run = |mbps: f64| {
        let report = at(Load::Fixed(BitRate((mbps * 1e6) as u64)))?;
        let tried = judge(&report, bound, mbps)?;
        tell(format!(
            "{mbps:.1} Mbit/s: {:.1} us, {}",
            tried.latency_us.unwrap_or(0.0),
            if tried.kept { "kept" } else { "not kept" }
        ));
        tries.push(tried);
        Ok(tried.kept)
    };
    let best_mbps = halve(full.goodput_mbps, &mut |mbps| most_keep(|| run(mbps)))?;
    Ok(SearchReport {
        engine: full.setting.engine,
        bound,
        full_mbps: full.goodput_mbps,
        best_mbps,
        tries,
    })
}

fn judge(report: &BenchReport, bound: Bound, offered_mbps: f64) -> Result<Try, BenchError> {
    if let Some(failure) = report.failure.as_ref().filter(|_| !report.identical) {
        return Err(BenchError::Compared(failure.clone()));
    }
    let latency_us = report.latencies.quantile(bound.quantile);
    let is_taken = report.submitted_mbps >= TAKEN * offered_mbps && report.complete;
    Ok(Try {
        offered_mbps,
        submitted_mbps: report.submitted_mbps,
        latency_us,
        kept: is_taken && latency_us.is_some_and(|us| us <= bound.us),
    })
}

/// Whether most of the runs keep the bound; the last is not made where it cannot change that.
fn most_keep(mut run: impl FnMut() -> Result<bool, BenchError>) -> Result<bool, BenchError> {
    let (mut kept, mut broken) = (0, 0);
    while kept <= RUNS / 2 && broken <= RUNS / 2 {
        match run()? {
            true => kept += 1,
            false => broken += 1,
        }
    }
    Ok(kept > broken)
}

/// The highest rate between 0 and `most` that is kept, as far as halving finds it.
fn halve(
    most: f64,
    keeps: &mut dyn FnMut(f64) -> Result<bool, BenchError>,
) -> Result<Option<f64>, BenchError> {
    let (mut kept, mut broken) = (0.0, most);
    for _ in 0..STEPS {
        let middle = f64::midpoint(kept, broken);
        match keeps(middle)? {
            true => kept = middle,
            false => broken = middle,
        }
    }
    Ok((kept > 0.0).then_some(kept))
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: the highest rate with {}", self.engine, self.bound)?;
        for one in &self.tries {
            let Try {
                offered_mbps,
                submitted_mbps,
                latency_us,
                kept,
            } = one;
            let kept = if *kept { "kept" } else { "not kept" };
            let us = latency_us.unwrap_or(0.0);
            writeln!(
                f,
                "  {offered_mbps:10.1} Mbit/s offered, {submitted_mbps:.1} taken, {us:.1} us, {kept}"
            )?;
        }
        match self.best_mbps {
            Some(best) => {
                let share = 100.0 * best / self.full_mbps.max(1e-9);
                write!(
                    f,
                    "{best:.1} Mbit/s, {share:.0} % of full load ({:.1})",
                    self.full_mbps
                )
            }
            None => write!(f, "none, with full load at {:.1} Mbit/s", self.full_mbps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read() {
        let bound: Bound = "p99.9=5ms".parse().expect("a bound");
        assert!((bound.quantile - 0.999).abs() < 1e-9 && (bound.us - 5000.0).abs() < 1e-9);
        assert_eq!(bound.to_string(), "p99.9 of 5000 us");
        for text in ["99=1ms", "p99", "p0=1ms", "p100=1ms", "p99=0s", "p99=1", ""] {
            assert!(text.parse::<Bound>().is_err(), "{text}");
        }
    }

    #[test]
    fn halving_comes_close_from_below() {
        let best = halve(1000.0, &mut |mbps| Ok(mbps <= 613.0)).expect("no run fails");
        let best = best.expect("some rate is kept");
        assert!((597.0..=613.0).contains(&best), "{best}");
        assert_eq!(
            halve(1000.0, &mut |_| Ok(false)).expect("no run fails"),
            None
        );
    }

    #[test]
    fn one_run_that_a_noisy_host_spoils_does_not_decide() {
        let runs = |answers: &[bool]| {
            let mut answers = answers.iter();
            let kept = most_keep(|| Ok(*answers.next().expect("no more runs than needed")));
            (kept.expect("no run fails"), answers.len())
        };
        assert_eq!(runs(&[true, true]), (true, 0));
        assert_eq!(runs(&[false, true, true]), (true, 0));
        assert_eq!(runs(&[false, false]), (false, 0));
        assert_eq!(runs(&[true, false, false]), (false, 0));
    }
}
