//! The report of `rota bench compare`.

use std::fmt;

use serde::Serialize;

use super::stats::Ratio;
use super::{CompareOptions, Metric, Rounds};

/// What the rounds say about the second way beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareVerdict {
    /// Any difference is smaller than the margin.
    NoDifference,
    /// The second way is better.
    Better,
    /// The second way is worse.
    Worse,
    /// The rounds that were allowed do not tell.
    Undecided,
}

impl fmt::Display for CompareVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDifference => "no difference",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Undecided => "undecided",
        })
    }
}

/// One figure of both ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The figure.
    pub figure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Median of the first way.
    pub first: f64,
    /// Median of the second way.
    pub second: f64,
    /// The second to the first.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// The result; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    /// The command of the first way.
    pub first: String,
    /// The command of the second way.
    pub second: String,
    /// The number of rounds: each way ran once in each.
    pub rounds: usize,
    /// The figure that the verdict is about.
    pub by: &'static str,
    /// The smallest difference that counts, as a share of 1.
    pub margin: f64,
    /// The verdict on the second way.
    pub verdict: CompareVerdict,
    /// The reason why a script should stop here: a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// All figures that both ways have.
    pub figures: Vec<Compared>,
}

impl CompareReport {
    pub(super) fn new(options: &CompareOptions, rounds: &Rounds) -> Self {
        let compared = |metric: &Metric| {
            Some(Compared {
                figure: metric.name(),
                unit: metric.unit(),
                first: rounds.median(*metric, |(first, _)| *first)?,
                second: rounds.median(*metric, |(_, second)| *second)?,
                ratio: rounds.ratio(*metric)?,
            })
        };
        let verdict = verdict(rounds.ratio(options.by), options);
        Self {
            first: options.first.command(),
            second: options.second.command(),
            rounds: rounds.len(),
            by: options.by.name(),
            margin: options.margin,
            verdict,
            failure: failure(verdict, options, rounds.len()),
            figures: Metric::ALL.iter().filter_map(compared).collect(),
        }
    }
}

/// The reason why a script should stop here: the second way is worse, or the rounds did not tell.
fn failure(verdict: CompareVerdict, options: &CompareOptions, rounds: usize) -> Option<String> {
    match verdict {
        CompareVerdict::NoDifference | CompareVerdict::Better => None,
        CompareVerdict::Worse => Some(format!("the second way is worse by {}", options.by.name())),
        CompareVerdict::Undecided => Some(format!("{rounds} rounds do not tell: undecided")),
    }
}

/// The verdict that an interval gives.
pub(super) fn verdict(ratio: Option<Ratio>, options: &CompareOptions) -> CompareVerdict {
    let Some(ratio) = ratio else {
        return CompareVerdict::Undecided;
    };
    if ratio.is_within(options.margin) {
        return CompareVerdict::NoDifference;
    }
    let is_wide = ratio.half_width() > options.margin;
    if is_wide && (ratio.ratio.ln()).abs() < 2.0 * ratio.half_width() || !ratio.excludes_one() {
        return CompareVerdict::Undecided;
    }
    let is_more = ratio.low > 1.0;
    match is_more == options.by.is_better_when_more() {
        true => CompareVerdict::Better,
        false => CompareVerdict::Worse,
    }
}

impl fmt::Display for CompareReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "first   {}", self.first)?;
        writeln!(f, "second  {}", self.second)?;
        writeln!(
            f,
            "{} rounds in turns; medians, and the second to the first with its 95 % interval:",
            self.rounds
        )?;
        for figure in &self.figures {
            let Compared {
                figure,
                unit,
                first,
                second,
                ratio,
            } = figure;
            let Ratio { ratio, low, high } = ratio;
            writeln!(
                f,
                "  {figure:8} {first:10.1} {second:10.1} {unit:7}  x {ratio:.3} ({low:.3} to {high:.3})"
            )?;
        }
        let margin = 100.0 * self.margin;
        write!(
            f,
            "second beside first, by {}, margin {margin:.1} %: {}",
            self.by, self.verdict
        )
    }
}
