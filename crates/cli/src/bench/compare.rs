//! `rota bench compare`: from the command line to the two ways that are compared.

use std::path::PathBuf;
use std::process::ExitCode;

use rota_bench::{
    BenchError, CompareOptions, CompareReport, CompareVerdict, Metric, Side, run_compare,
};

use super::{one_of, show};
use crate::say::tell;

/// What the help says below the options.
pub(super) const AFTER_HELP: &str = "Examples:\n  \
    rota bench compare --with ./rota-before -- --nodes 3 --duration 2s\n  \
    rota bench compare --but '--engine totem-ring' --by goodput -- --nodes 4 --duration 2s\n\n\
    Both ways run once a round, in changing order. It ends when half of the 95 % interval of their ratio is narrower than\n\
    0.4 of the margin, or after --rounds.\n\n\
    Exit status: 0 if the second way is no worse, 1 if it is worse or a run failed, 2 for wrong use, 3 if undecided.";

/// Options of a comparison.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// The program of the first way [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    with: Option<PathBuf>,
    /// Options that only the second way has; they override those of both
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    but: String,
    /// The figure that decides: processor time a delivery, payload delivered, or a latency
    #[arg(long, default_value = "cpu", value_parser = one_of::<Metric>(&["cpu", "goodput", "p50", "p99"]))]
    by: Metric,
    /// The smallest difference that counts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.5)]
    margin: f64,
    /// The most rounds
    #[arg(long, value_name = "ROUNDS", default_value_t = 60)]
    rounds: usize,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Options of rota bench, for both ways
    #[arg(last = true, value_name = "OPTIONS OF BENCH")]
    options: Vec<String>,
}

impl CompareArgs {
    fn options(&self) -> Result<CompareOptions, BenchError> {
        if !(0.1..=50.0).contains(&self.margin) {
            let what = "--margin is from 0.1 to 50 percent";
            return Err(BenchError::Usage(what.to_owned()));
        }
        let this = std::env::current_exe().map_err(BenchError::io("cannot find this program"))?;
        let only = self.but.split_whitespace().map(str::to_owned);
        let second: Vec<String> = self.options.iter().cloned().chain(only).collect();
        Ok(CompareOptions {
            first: Side::new(self.with.as_deref().unwrap_or(&this), &self.options),
            second: Side::new(&this, &second),
            by: self.by,
            margin: self.margin / 100.0,
            rounds: self.rounds,
        })
    }
}

/// Compares, and prints the report.
pub(super) fn main(args: &CompareArgs) -> ExitCode {
    let compared = args
        .options()
        .and_then(|options| run_compare(&options, &mut |what| tell(&what)));
    let is_undecided = |report: &CompareReport| report.verdict == CompareVerdict::Undecided;
    let undecided = compared.as_ref().is_ok_and(is_undecided);
    let code = show(compared, args.json, |report| report.failure.as_deref());
    if undecided { ExitCode::from(3) } else { code }
}
