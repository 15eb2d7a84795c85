//! `rota check`: properties over recorded traces.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use rota_check::counters::Counters;
use rota_check::trace::Trace;
use rota_check::{Options, Report, Verdict, check_all};
use serde::Serialize;

use crate::say::{complain, print, print_json};

/// Options of `rota check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// Trace files, of one process or of several each
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Whoever did not crash or leave was alive and at rest at the end, even if the trace does not say so
    #[arg(long)]
    quiescent: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Checks the traces and prints what was found.
pub fn main(options: &CheckOptions) -> ExitCode {
    let trace = match Trace::from_files(&options.traces) {
        Ok(trace) => trace,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    let known = Options {
        quiescent: options.quiescent,
        ..Options::default()
    };
    let report = check_all(&trace, &known);
    if options.json {
        print_json(&Json::of(&report));
    } else {
        print(&text(&report).trim_end());
    }
    if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    holds: bool,
    /// The first of each property.
    violations: Vec<Finding<'a>>,
    properties: Vec<Property>,
    #[serde(flatten)]
    counters: Counters,
}

#[derive(Serialize)]
struct Finding<'a> {
    property: &'static str,
    detail: &'a str,
}

#[derive(Serialize)]
struct Property {
    property: &'static str,
    title: &'static str,
    checked: u64,
    violations: u64,
}

impl<'a> Json<'a> {
    fn of(report: &'a Report) -> Self {
        let violations = report.violations.iter().map(|violation| Finding {
            property: violation.property,
            detail: &violation.detail,
        });
        let properties = report.verdicts.iter().map(|verdict| Property {
            property: verdict.property,
            title: verdict.title,
            checked: verdict.checked,
            violations: verdict.violations,
        });
        Self {
            holds: report.holds(),
            violations: violations.collect(),
            properties: properties.collect(),
            counters: report.counters,
        }
    }
}

// Writing to a string cannot fail.
fn text(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        let Verdict {
            property,
            title,
            checked,
            violations,
        } = verdict;
        let _ = match (checked, violations) {
            (0, 0) => writeln!(text, "{property:<7} {title:<26} holds     no case"),
            (_, 0) => writeln!(
                text,
                "{property:<7} {title:<26} holds     {checked} checked"
            ),
            _ => writeln!(
                text,
                "{property:<7} {title:<26} VIOLATED  {violations} found"
            ),
        };
        let mine = report.violations.iter();
        let mine = mine.filter(|violation| violation.property == *property);
        let shown = mine.inspect(|violation| {
            let _ = writeln!(text, "        {}", violation.detail);
        });
        if (shown.count() as u64) < *violations {
            let _ = writeln!(text, "        and more");
        }
    }
    text.push('\n');
    count(&mut text, &report.counters);
    text
}

fn count(text: &mut String, counters: &Counters) {
    // As in JSON, so that a name is the same everywhere.
    let Ok(serde_json::Value::Object(values)) = serde_json::to_value(counters) else {
        return;
    };
    for (name, value) in values {
        let _ = writeln!(text, "{name:<34} {value}");
    }
    if counters.untraced > 0 {
        let _ = writeln!(
            text,
            "\nThe traces of {} processes are missing: what they did is not judged.",
            counters.untraced
        );
    }
}
