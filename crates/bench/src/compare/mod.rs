//! `rota bench compare`: two ways in turns, until the interval of their ratio is narrow enough, or "undecided".
//!
//! Two runs of the same program differ by more than most changes do, on a machine that others use as well. So the ways
//! take turns, in changing order, each pair gives a ratio, and rounds go on until the ratios agree.

mod report;
mod side;
mod stats;

pub use report::{CompareReport, CompareVerdict, Compared};
pub use side::Side;
pub use stats::Ratio;

use serde_json::Value;

use crate::error::BenchError;
use crate::options::{ParseError, wrong};
use side::Figures;

/// The interval is narrow enough when its half is this share of the margin: then a difference of twice the margin lies
/// outside it, and no difference inside it, nearly always.
const NARROW: f64 = 0.4;

/// A figure by which two ways are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Processor time of all nodes for each delivery.
    Cpu,
    /// Clean payload delivered at each node.
    Goodput,
    /// Median latency.
    P50,
    /// The 99th percentile of latencies.
    P99,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Goodput, Self::P50, Self::P99];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Goodput => "goodput",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Cpu => "ns",
            Self::Goodput => "Mbit/s",
            Self::P50 | Self::P99 => "us",
        }
    }

    const fn is_better_when_more(self) -> bool {
        matches!(self, Self::Goodput)
    }

    /// The figure in a report of `rota bench --json`.
    fn of(self, report: &Value) -> Option<f64> {
        match self {
            Self::Cpu => report["cpu_ns_per_delivery"].as_f64(),
            Self::Goodput => report["goodput_mbps"].as_f64(),
            Self::P50 => report["latency_us"]["p50"].as_f64(),
            Self::P99 => report["latency_us"]["p99"].as_f64(),
        }
    }
}

impl std::str::FromStr for Metric {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let all = Self::ALL.into_iter();
        let found = all.into_iter().find(|metric| metric.name() == text);
        found.map_or_else(|| wrong(text, "a figure: cpu, goodput, p50, p99"), Ok)
    }
}

/// Options of `rota bench compare`.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The first way.
    pub first: Side,
    /// The second way: the verdict is on this one.
    pub second: Side,
    /// The figure that decides.
    pub by: Metric,
    /// The smallest difference that counts, as a share of 1.
    pub margin: f64,
    /// The most rounds.
    pub rounds: usize,
}

/// The figures of all rounds so far.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<(Figures, Figures)>);

impl Rounds {
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The pairs of a figure, if every run had it.
    fn pairs(&self, metric: Metric) -> Option<Vec<(f64, f64)>> {
        let at = Metric::ALL.iter().position(|of| *of == metric)?;
        let pairs = self.0.iter();
        pairs
            .map(|(first, second)| first[at].zip(second[at]))
            .collect()
    }

    fn ratio(&self, metric: Metric) -> Option<Ratio> {
        stats::ratio(&self.pairs(metric)?)
    }

    fn median(&self, metric: Metric, of: fn(&(f64, f64)) -> f64) -> Option<f64> {
        stats::median(self.pairs(metric)?.iter().map(of))
    }
}

/// Runs both ways in turns until the interval is narrow enough, or the rounds are used up.
///
/// # Errors
/// [`BenchError`] where a run fails: a comparison with a run that does not count would tell nothing.
pub fn run_compare(
    options: &CompareOptions,
    tell: &mut dyn FnMut(String),
) -> Result<CompareReport, BenchError> {
    if options.rounds < stats::LEAST_ROUNDS {
        let least = stats::LEAST_ROUNDS;
        return Err(BenchError::Usage(format!("--rounds is at least {least}")));
    }
    let mut rounds = Rounds::default();
    while rounds.len() < options.rounds {
        // A drift of the machine meets both ways equally when the order changes.
        let (first, second) = if rounds.len().is_multiple_of(2) {
            let first = options.first.run()?;
            (first, options.second.run()?)
        } else {
            let second = options.second.run()?;
            (options.first.run()?, second)
        };
        rounds.0.push((first, second));
        let Some(ratio) = rounds.ratio(options.by) else {
            if rounds.pairs(options.by).is_none() {
                let what = format!("this load has no figure `{}`", options.by.name());
                return Err(BenchError::Usage(what));
            }
            continue;
        };
        let (round, by) = (rounds.len(), options.by.name());
        let Ratio {
            ratio: x,
            low,
            high,
        } = ratio;
        tell(format!(
            "round {round}: {by} x {x:.3} ({low:.3} to {high:.3})"
        ));
        if ratio.half_width() <= NARROW * options.margin {
            break;
        }
    }
    Ok(CompareReport::new(options, &rounds))
}

#[cfg(test)]
mod tests;
