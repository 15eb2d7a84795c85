//! What failed, said again at the end: of a long log, readers have often only the last page.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most lines of one test program's own report that are said again.
const LINES: usize = 120;

static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn failed() -> MutexGuard<'static, Vec<String>> {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something failed: its name, and what it said.
pub fn note(what: impl Into<String>) {
    failed().push(what.into());
}

/// Prints all that was noted.
pub fn say() {
    for what in failed().iter() {
        println!("failed: {what}");
    }
}

/// Finds in what test programs print what they report of failures: from `failures:` to the summary.
#[derive(Default)]
pub struct Reports(Option<Vec<String>>);

impl Reports {
    /// The next line; a whole report, when it ends with this one.
    pub fn line(&mut self, line: &str) -> Option<String> {
        let line = line.trim_end();
        if line == "failures:" && self.0.is_none() {
            self.0 = Some(Vec::new());
        } else if line.starts_with("test result: ") {
            return self.0.take().map(|lines| lines.join("\n"));
        } else if let Some(lines) = self.0.as_mut().filter(|lines| lines.len() < LINES) {
            lines.push(line.to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_test_said_is_found_between_other_lines() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nit panicked\n\n\
            failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\ntest c ... ok\ntest result: ok. 1 passed\n";
        let mut reports = Reports::default();
        let found: Vec<String> = output
            .lines()
            .filter_map(|line| reports.line(line))
            .collect();
        assert_eq!(found.len(), 1);
        assert!(
            found
                .iter()
                .all(|report| report.contains("---- b stdout ----\nit panicked"))
        );
    }
}
