//! Subjects and bodies of commits, from one commit on.

use std::process::Command;

use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

/// Commits behind this one are looked at.
const BASE: &str = "79a77601d5c21b9cdcf29cd62b9482e773aed291";
/// Letters of a subject, at most.
const SUBJECT: usize = 72;

/// A commit, as far as it is looked at.
struct Commit<'a> {
    id: &'a str,
    subject: &'a str,
    body: &'a str,
    files: Vec<&'a str>,
}

impl Commit<'_> {
    /// What is wrong with it.
    fn findings(&self) -> Vec<String> {
        let Self { id, subject, .. } = self;
        let mut findings = Vec::new();
        let letters = subject.chars().count();
        if letters > SUBJECT {
            findings.push(format!("{id}: a subject of {letters} letters: {subject}"));
        }
        if !subject.split_once(": ").is_some_and(|(area, rest)| {
            !area.is_empty() && !area.contains('.') && !rest.trim().is_empty()
        }) {
            findings.push(format!("{id}: no area in front of the subject: {subject}"));
        }
        if subject.ends_with('.') {
            findings.push(format!("{id}: a subject is no sentence: {subject}"));
        }
        let is_about_docs = self.files.iter().all(|file| file.ends_with(".md"));
        if self.body.trim().is_empty() && !is_about_docs {
            findings.push(format!("{id}: no body says why: {subject}"));
        }
        findings
    }
}

/// All commits since the base. Without its history, as in an archive of the sources, there is nothing to look at.
pub fn check(workspace: &Workspace) -> Verdict {
    let range = format!("{BASE}..HEAD");
    let format = "--format=%x1e%h%x1f%s%x1f%b%x1f";
    let mut git = Command::new("git");
    git.current_dir(workspace.root());
    git.args(["log", "--no-merges", "--name-only", format, &range]);
    let said = git.output().map_err(|error| format!("git: {error}"))?;
    if !said.status.success() {
        return Ok("their history is not here".to_owned());
    }
    let text = String::from_utf8_lossy(&said.stdout);
    let commits: Vec<Commit<'_>> = text.split('\u{1e}').filter_map(parse).collect();
    let findings: Vec<String> = commits.iter().flat_map(Commit::findings).collect();
    verdict(&findings, format!("{} commits", commits.len()))
}

fn parse(text: &str) -> Option<Commit<'_>> {
    let mut parts = text.split('\u{1f}');
    Some(Commit {
        id: parts.next().filter(|id| !id.trim().is_empty())?,
        subject: parts.next()?,
        body: parts.next()?,
        files: parts.next()?.split_whitespace().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(subject: &str, body: &str, files: &str) -> usize {
        let text = format!("abc\u{1f}{subject}\u{1f}{body}\u{1f}\n{files}\n");
        parse(&text).expect("a commit").findings().len()
    }

    #[test]
    fn a_subject_has_an_area_and_a_body_says_why() {
        assert_eq!(findings("ring: less", "As so.", "a.rs"), 0);
        assert_eq!(findings("docs: less", "", "README.md\ndocs/a.md"), 0);
        assert_eq!(findings("ring: less", "\n", "a.rs\nb.md"), 1);
        assert_eq!(findings("less", "As so.", "a.rs"), 1);
        assert_eq!(findings("ring: less.", "As so.", "a.rs"), 1);
        let long = format!("ring: {}", "x".repeat(SUBJECT - 5));
        assert_eq!(findings(&long, "As so.", "a.rs"), 1);
        assert!(parse("\n").is_none());
    }
}
