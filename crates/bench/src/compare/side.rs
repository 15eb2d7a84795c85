//! One of the two ways that are compared: a program and its options, run once a round.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Metric;
use crate::error::BenchError;

/// A program, and the options of its `rota bench`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    program: PathBuf,
    options: Vec<OsString>,
}

/// What one run measured, in the order of [`Metric::ALL`]; `None` where the load has no such figure.
pub(super) type Figures = [Option<f64>; Metric::ALL.len()];

impl Side {
    /// `program bench OPTIONS`.
    pub fn new(program: &Path, options: &[String]) -> Self {
        Self {
            program: program.to_owned(),
            options: options.iter().map(OsString::from).collect(),
        }
    }

    /// The command in words, for reports.
    pub(super) fn command(&self) -> String {
        let program = self.program.file_name().unwrap_or(self.program.as_os_str());
        let words = [program, "bench".as_ref()].into_iter();
        let words = words.chain(self.options.iter().map(OsString::as_os_str));
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Runs it once.
    pub(super) fn run(&self) -> Result<Figures, BenchError> {
        let output = Command::new(&self.program)
            .arg("bench")
            .args(&self.options)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(BenchError::io("cannot run a program that is compared"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let (command, said) = (self.command(), said.trim());
            let what = format!("`{command}` failed ({}): {said}", output.status);
            return Err(match output.status.code() {
                Some(2) => BenchError::Usage(what),
                _ => BenchError::Compared(what),
            });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        figures(&text).ok_or_else(|| {
            let what = format!("`{}` printed no report of a benchmark", self.command());
            BenchError::Compared(what)
        })
    }
}

/// Reads the JSON object on the last line.
fn figures(text: &str) -> Option<Figures> {
    let report: Value = serde_json::from_str(text.lines().last()?).ok()?;
    report.as_object()?;
    let number = |metric: &Metric| metric.of(&report);
    Some(Metric::ALL.each_ref().map(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read_and_what_is_not_there_is_none() {
        let text = "words\n{\"cpu_ns_per_delivery\": 700.5, \"goodput_mbps\": 900, \"latency_us\": {\"p50\": 80.0}}\n";
        let [cpu, goodput, p50, p99] = figures(text).expect("a report");
        assert_eq!(
            (cpu, goodput, p50, p99),
            (Some(700.5), Some(900.0), Some(80.0), None)
        );
        assert_eq!(figures("no report\n"), None);
        assert_eq!(figures(""), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        let side = Side::new(Path::new("/nowhere/rota"), &[]);
        let error = side.run().expect_err("nothing to run").to_string();
        assert!(error.contains("cannot run"), "{error}");
    }
}
