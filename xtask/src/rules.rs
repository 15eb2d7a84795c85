//! Rules of the papers, and of this project, in the pages of the protocols: each names where it is implemented and where it is
//! tested, and what is named has to be there. And that each broken version of the protocols is in some test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::gate::{Verdict, verdict};
use crate::source;
use crate::workspace::Workspace;

const PAGES: &str = "docs/protocols";
/// The headings of tables with three columns: what, where, and the test.
const HEADINGS: [&str; 3] = [
    "## Rules and where they are",
    "## Amendments",
    "## Broken versions",
];
const BELOW: &str = "Paths are below `";
const NO_TEST: &str = "**none**";

/// What the pages say.
#[derive(Debug, Default)]
struct Rules {
    rules: usize,
    /// Rules that no test shows.
    untested: Vec<String>,
    wrong: Vec<String>,
    texts: BTreeMap<String, Option<String>>,
}

impl Rules {
    /// The text of a file, if there is one.
    fn text(&mut self, root: &Path, path: &str) -> Option<&str> {
        let text = self.texts.entry(path.to_owned());
        let text = text.or_insert_with(|| fs::read_to_string(root.join(path)).ok());
        text.as_deref()
    }

    fn page(&mut self, root: &Path, name: &str, page: &str) {
        let below = page.split_once(BELOW);
        let below = below.and_then(|(_, rest)| rest.split('`').next());
        let below = below.unwrap_or("crates");
        for heading in HEADINGS {
            self.table(root, (name, page), (heading, below));
        }
    }

    fn table(&mut self, root: &Path, (name, page): (&str, &str), (heading, below): (&str, &str)) {
        let rules = page.split_once(heading).map_or("", |(_, rest)| rest);
        let rules = rules.split("\n## ").next().unwrap_or_default();
        for row in rules.lines().filter(|line| line.starts_with('|')).skip(2) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let [rule, implemented, tested] = cells[..] else {
                self.wrong.push(format!("{name}: not three cells: {row}"));
                continue;
            };
            self.rules += 1;
            let at = format!("{name}: {}", rule.trim());
            if tested.contains(NO_TEST) {
                self.untested.push(at.clone());
            }
            for cell in [implemented, tested] {
                self.cell(root, (&at, below), cell);
            }
            if !tested.contains(NO_TEST) && !tested.contains('/') {
                self.wrong.push(format!("{at}: names no test"));
            }
        }
    }

    /// Files, and behind each what is in it.
    fn cell(&mut self, root: &Path, (at, below): (&str, &str), cell: &str) {
        let mut file: Option<String> = None;
        for token in cell.split('`').skip(1).step_by(2) {
            if token.contains('/') {
                let is_whole = token.starts_with("docs/");
                if token.starts_with("crates/") && below == "crates" {
                    let said = "paths are below crates";
                    self.wrong.push(format!("{at}: {token}: {said}"));
                    file = None;
                    continue;
                }
                let path = match is_whole {
                    true => token.to_owned(),
                    false => format!("{below}/{token}"),
                };
                let is_there = root.join(&path).exists();
                if !is_there {
                    self.wrong.push(format!("{at}: there is no {path}"));
                }
                file = is_there.then_some(path);
            } else if let Some(path) = file.clone() {
                let text = self.text(root, &path).unwrap_or_default();
                if !source::defines(text, token) {
                    self.wrong.push(format!("{at}: no {token} in {path}"));
                }
            }
        }
    }
}

/// The rules of all pages.
pub fn check(workspace: &Workspace) -> Verdict {
    let mut rules = Rules::default();
    let root = workspace.root();
    for file in workspace.files()? {
        if file.starts_with(PAGES)
            && let Ok(page) = fs::read_to_string(root.join(&file))
        {
            rules.page(root, &file, &page);
        }
    }
    let mut remark = format!(
        "{} rules, {} without a test",
        rules.rules,
        rules.untested.len()
    );
    for rule in &rules.untested {
        let _ = write!(remark, "\n      {rule}");
    }
    verdict(&rules.wrong, remark)
}

/// Where broken versions are listed, and the files of which each has to be in one.
const MUTANTS: [&str; 5] = [
    "crates/core/src/mutants.rs",
    "crates/kv/src/mutants.rs",
    "crates/log/src/mutants.rs",
    "crates/multiring/src/mutants.rs",
    "crates/net/src/mutants.rs",
];

/// Each broken version is named by something that shows that it is found out, or says why that is not run.
pub fn mutants(workspace: &Workspace) -> Verdict {
    let root = workspace.root();
    let mut tests = String::new();
    for file in workspace.files()? {
        let name = &file;
        let is_test = name.ends_with(".rs")
            && (name.contains("tests")
                || name.contains("/bin/rota-mutants")
                || name.contains("explore"));
        if is_test {
            tests += &fs::read_to_string(root.join(&file)).unwrap_or_default();
        }
    }
    let named: BTreeSet<&str> = tests
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| is_mutant(word))
        .collect();
    let (mut all, mut wrong) = (0, Vec::new());
    for list in MUTANTS {
        let text =
            fs::read_to_string(root.join(list)).map_err(|error| format!("{list}: {error}"))?;
        let names = text.split(|letter: char| !letter.is_alphanumeric());
        let names: BTreeSet<&str> = names.filter(|word| is_mutant(word)).collect();
        all += names.len();
        let alone = names.difference(&named);
        wrong.extend(alone.map(|name| format!("{list}: no test names {name}")));
    }
    verdict(&wrong, format!("{all} broken versions, each in a test"))
}

/// A letter and two digits or three.
fn is_mutant(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_uppercase());
    let digits = letters.as_str();
    first && (2..=3).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_crates_does_not_begin_there_again() {
        let mut rules = Rules::default();
        let cell = "`crates/net/tests/sockets.rs`: `own_multicasts_do_not_come_back`";
        rules.cell(Path::new("/"), ("a page", "crates"), cell);
        let wrong = "a page: crates/net/tests/sockets.rs: paths are below crates";
        assert_eq!(rules.wrong, [wrong]);
    }
}
