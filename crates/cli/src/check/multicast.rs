//! `rota check` over the traces of processes of several rings.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_check::multicast::{Event, Line, MulticastReport, check_multicast, read};

use super::{Json, judged, list};
use crate::say::{complain, print, print_json};

/// A process of several rings says so in its first lines.
const FIRST_LINES: usize = 100;

/// Whether a trace is of such a process.
pub fn is_meant(file: &Path) -> bool {
    let Ok(file) = std::fs::File::open(file) else {
        return false;
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut first = lines.take(FIRST_LINES);
    first.any(|line| line.contains(r#""ev":"sub""#) || line.contains(r#""ev":"genesis""#))
}

/// Checks the traces and prints what was found.
pub fn main(traces: &[PathBuf], quiescent: bool, json: bool) -> ExitCode {
    let mut lines = match read(traces) {
        Ok(lines) => lines,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    if quiescent {
        lines.push(Line {
            t: u64::MAX,
            node: 0,
            inc: 0,
            event: Event::Quiesce,
        });
    }
    let report = check_multicast(&lines);
    if json {
        let counters = (report.counters, None);
        let (verdicts, violations) = (&report.verdicts, &report.violations);
        print_json(&Json::of("multicast", verdicts, violations, counters));
    } else {
        print(&text(&report).trim_end());
    }
    if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn text(report: &MulticastReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "order: multicast (one order over several rings)\n");
    judged(&mut text, &report.verdicts, &report.violations);
    text.push('\n');
    list(&mut text, &report.counters);
    text
}
