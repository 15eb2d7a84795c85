//! `rota sim reproduce`: the papers' claims, simulated and judged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use rota_papers::{Calibration, Claim, Judged, Lab, Options, Ours, Page, Totals, Verdict};
use serde::Serialize;

use crate::say::{complain, print, print_json};

#[derive(Clone, Debug, clap::Args)]
pub struct ReproduceArgs {
    /// Only these claims, by their ids in docs/papers/headlines.csv
    #[arg(long, value_name = "ID", value_delimiter = ',', num_args = 1..)]
    only: Vec<String>,
    /// How many seeds each figure has
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Threads; the result does not depend on them
    #[arg(long, value_name = "K")]
    jobs: Option<usize>,
    /// Say also how each figure is obtained, and why it is what it is
    #[arg(long)]
    explain: bool,
    /// Judge again with each number of the calibration a fifth smaller and a fifth larger: takes 28 times as long
    #[arg(long)]
    sensitivity: bool,
    /// The folder for claims.csv, claims.json and index.html
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What a run came to.
#[derive(Debug, Serialize)]
struct Summary {
    claims: usize,
    verdicts: BTreeMap<String, usize>,
    runs: u64,
    deliveries: u64,
    unsound: u64,
    seconds: f64,
    calibration_sha256: String,
}

impl ReproduceArgs {
    /// Simulates, judges and writes.
    pub fn run(&self) -> ExitCode {
        let (claims, calibration) = match (rota_papers::claims(), Calibration::built_in()) {
            (Ok(claims), Ok(calibration)) => (claims, calibration),
            (claims, calibration) => {
                claims.err().iter().for_each(complain);
                calibration.err().iter().for_each(complain);
                return ExitCode::FAILURE;
            }
        };
        if let Some(id) = self.unknown(&claims) {
            complain(&format_args!("docs/papers/headlines.csv has no claim {id}"));
            return ExitCode::from(2);
        }
        let started = Instant::now();
        let options = self.options();
        let lab = Lab::new(calibration);
        let judged = rota_papers::judge_all(&lab, &claims, &options);
        let mut page = Page::new(&lab, judged, &options);
        if self.sensitivity {
            page.sensitivity =
                rota_papers::sensitivity(&calibration, &claims, &page.judged, &options);
        }
        if let Err(error) = rota_papers::write(&page, &self.output, started.elapsed()) {
            complain(&format_args!("the report cannot be written: {error}"));
            return ExitCode::FAILURE;
        }
        let totals = lab.totals();
        self.say(&page.judged, &totals, started);
        if totals.unsound > 0 {
            complain(&"nodes did not deliver everything in one order");
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }

    fn unknown(&self, claims: &[Claim]) -> Option<&String> {
        let is_there = |id: &&String| !claims.iter().any(|claim| claim.id == **id);
        self.only.iter().find(is_there)
    }

    fn options(&self) -> Options {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            only: self.only.clone(),
            seeds: self.seeds,
            jobs: self.jobs.unwrap_or_else(processors),
            is_whole: self.only.is_empty(),
        }
    }

    fn say(&self, judged: &[Judged], totals: &Totals, started: Instant) {
        let mut verdicts = BTreeMap::new();
        for one in judged {
            *verdicts.entry(one.verdict.to_string()).or_insert(0) += 1;
        }
        let summary = Summary {
            claims: judged.len(),
            verdicts,
            runs: totals.runs,
            deliveries: totals.deliveries,
            unsound: totals.unsound,
            seconds: started.elapsed().as_secs_f64(),
            calibration_sha256: Calibration::hash(),
        };
        if self.json {
            return print_json(&summary);
        }
        judged.iter().for_each(|one| print(&self.line(one)));
        print(&"");
        for verdict in Verdict::EACH {
            if let Some(count) = summary.verdicts.get(&verdict.to_string()) {
                print(&format_args!("{count:5} {verdict}"));
            }
        }
        let page = self.output.join("index.html");
        print(&format_args!(
            "{} after {:.0} s",
            page.display(),
            summary.seconds
        ));
    }

    fn line(&self, one: &Judged) -> String {
        let ours = match &one.ours {
            Ours::Figure { mid, .. } if mid.abs() < 10.0 => format!("{mid:.2}"),
            Ours::Figure { mid, .. } => format!("{mid:.0}"),
            Ours::Seen(true, _) => "yes".to_owned(),
            Ours::Seen(false, _) => "no".to_owned(),
            Ours::Nothing(_) => "none".to_owned(),
        };
        let claim = &one.claim;
        let (said, way, verdict) = (&claim.said, claim.way.name(), one.verdict.to_string());
        let line = format!("{:4} {said:>24} {ours:>8}  {way:10} {verdict:10}", claim.id);
        if !self.explain {
            return format!("{line} {}", claim.setting);
        }
        format!("{line} {}\n     {}", claim.setting, one.why)
    }
}
