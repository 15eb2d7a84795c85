//! No text file names a path that exists on one machine only, or has a conflict of two changes in it.

use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

/// Put together from pieces, so that this file passes its own check.
const FORBIDDEN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("../sha", "red"),
];

/// A line of a conflict begins so.
const CONFLICT: &[&str] = &[concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

/// Looks through every text file.
pub fn check(workspace: &Workspace) -> Verdict {
    let files = workspace.files()?;
    let mut findings = Vec::new();
    for path in &files {
        let bytes = workspace.read(path)?;
        if bytes.contains(&0) {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        for (line, word) in machine_paths(&text) {
            findings.push(format!(
                "{path}:{line}: `{word}` means something on one machine only"
            ));
        }
        for line in conflicts(&text) {
            findings.push(format!("{path}:{line}: a conflict"));
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

/// The lines at which conflicts begin and end.
fn conflicts(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let is_one = |line: &str| CONFLICT.iter().any(|mark| line.starts_with(mark));
    lines
        .filter_map(|(index, line)| is_one(line).then_some(index + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_found_at_the_beginning_of_lines() {
        let [begins, ends] = [CONFLICT[0], CONFLICT[1]];
        let text = format!("a\n{begins}one\nb\n=======\nc\n{ends}other\n {begins}is no mark\n");
        assert_eq!(conflicts(&text), [2, 6]);
    }

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
