//! No text file names a path that exists on one machine only.

use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

/// Put together from pieces, so that this file passes its own check.
const FORBIDDEN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("../sha", "red"),
];

/// Looks through every text file.
pub fn check(workspace: &Workspace) -> Verdict {
    let files = workspace.files()?;
    let mut findings = Vec::new();
    for path in &files {
        let bytes = workspace.read(path)?;
        if bytes.contains(&0) {
            continue;
        }
        for (line, word) in machine_paths(&String::from_utf8_lossy(&bytes)) {
            findings.push(format!(
                "{path}:{line}: `{word}` means something on one machine only"
            ));
        }
    }
    verdict(&findings, format!("{} files", files.len()))
}

fn machine_paths(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
            found.push((index + 1, *word));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_path_is_found_with_its_line() {
        let text = format!("fine\nsee {}main\n", FORBIDDEN[0]);
        assert_eq!(machine_paths(&text), [(2, FORBIDDEN[0])]);
    }

    #[test]
    fn words_that_merely_resemble_one_are_left_alone() {
        assert_eq!(machine_paths("a framework/ and a root/ and shared/"), []);
    }
}
