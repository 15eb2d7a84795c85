//! Limits on the length of files and functions, on fields of structs and on files with methods of one type, and a list of exceptions that can only
//! shrink.

mod shapes;

use std::collections::BTreeMap;

use crate::gate::{Verdict, verdict};
use crate::source;
use crate::workspace::Workspace;
use shapes::Shapes;

const RULES: &str = "xtask/ratchet.txt";
const KINDS: [&str; 6] = [
    "file",
    "function",
    "test-file",
    "test-function",
    "fields",
    "impls",
];

/// What numbers of a kind count.
fn unit(kind: &str) -> &'static str {
    match kind {
        "fields" => "fields",
        "impls" => "files with its methods",
        _ => "lines",
    }
}

/// What is measured, by kind and by path or `path::name`; of several of one name in one file the longest stands.
type Lengths = BTreeMap<(String, String), usize>;

/// The contents of `ratchet.txt`.
#[derive(Debug, Default)]
struct Rules {
    limits: BTreeMap<String, usize>,
    exceptions: Lengths,
}

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for (index, line) in text.lines().enumerate() {
            // Behind a `#` stands why.
            let line = line.split('#').next().unwrap_or_default();
            let fields: Vec<&str> = line.split_whitespace().collect();
            let wrong = || format!("{RULES}:{}: cannot read `{line}`", index + 1);
            let lines = |text: &str| text.parse::<usize>().map_err(|_| wrong());
            match fields.as_slice() {
                [] => {}
                ["limit", kind, number] if KINDS.contains(kind) => {
                    rules.limits.insert((*kind).to_owned(), lines(number)?);
                }
                ["except", kind, name, number] if KINDS.contains(kind) => {
                    let key = ((*kind).to_owned(), (*name).to_owned());
                    if rules.exceptions.insert(key, lines(number)?).is_some() {
                        return Err(format!("{RULES}:{}: {name} is listed twice", index + 1));
                    }
                }
                _ => return Err(wrong()),
            }
        }
        match KINDS.iter().find(|kind| !rules.limits.contains_key(**kind)) {
            Some(kind) => Err(format!("{RULES}: no limit for {kind}")),
            None => Ok(rules),
        }
    }

    /// Holds what was measured against limits and exceptions.
    fn judge(&self, lengths: &Lengths) -> Vec<String> {
        let mut findings = Vec::new();
        for (key, lines) in lengths {
            let (kind, name) = key;
            let (limit, unit) = (self.limits[kind], unit(kind));
            match self.exceptions.get(key) {
                None if *lines > limit => {
                    findings.push(format!(
                        "{name}: {lines} {unit}, the limit of {kind} is {limit}"
                    ));
                }
                Some(recorded) if lines > recorded => findings.push(format!(
                    "{name}: {lines} {unit}, grown beyond the {recorded} it was excepted with"
                )),
                Some(_) if *lines <= limit => findings.push(format!(
                    "{name}: {lines} {unit}, within the limit again: remove its line from {RULES}"
                )),
                Some(recorded) if lines < recorded => findings.push(format!(
                    "{name}: {lines} {unit}, {recorded} recorded: lower it in {RULES}"
                )),
                _ => {}
            }
        }
        for (kind, name) in self.exceptions.keys() {
            if !lengths.contains_key(&(kind.clone(), name.clone())) {
                findings.push(format!(
                    "{name}: no such {kind}: remove its line from {RULES}"
                ));
            }
        }
        findings
    }
}

/// Measures every Rust file.
pub fn check(workspace: &Workspace) -> Verdict {
    let rules = Rules::parse(&workspace.text(RULES)?)?;
    let (mut lengths, mut shapes) = (Lengths::new(), Shapes::default());
    for path in workspace.rust_files()? {
        let text = workspace.text(&path)?;
        measure(&path, &text, &mut lengths);
        shapes.look(&path, &text);
    }
    shapes.measure(&mut lengths);
    let remark = format!(
        "{} lengths, {} exceptions",
        lengths.len(),
        rules.exceptions.len()
    );
    verdict(&rules.judge(&lengths), remark)
}

fn measure(path: &str, text: &str, lengths: &mut Lengths) {
    let prefix = if source::is_test_file(path) {
        "test-"
    } else {
        ""
    };
    lengths.insert(
        (format!("{prefix}file"), path.to_owned()),
        text.lines().count(),
    );
    for function in source::functions(&source::blank(text)) {
        let key = (
            format!("{prefix}function"),
            format!("{path}::{}", function.name),
        );
        let longest = lengths.entry(key).or_default();
        *longest = function.lines.max(*longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "limit file 4\nlimit function 2\nlimit test-file 8\nlimit test-function 4\nlimit fields 2\nlimit impls 1\n";

    fn judge(exceptions: &str, path: &str, lines: usize) -> Vec<String> {
        let rules =
            Rules::parse(&format!("# head\n\n{LIMITS}{exceptions}")).expect("readable rules");
        let mut lengths = Lengths::new();
        measure(path, &"x;\n".repeat(lines), &mut lengths);
        rules.judge(&lengths)
    }

    #[test]
    fn a_file_may_reach_its_limit_and_not_pass_it() {
        assert_eq!(judge("", "a.rs", 4), Vec::<String>::new());
        assert!(judge("", "a.rs", 5)[0].contains("the limit of file is 4"));
        assert_eq!(judge("", "tests/a.rs", 8), Vec::<String>::new());
        assert_eq!(judge("", "tests/a.rs", 9).len(), 1);
    }

    #[test]
    fn an_exception_holds_for_its_exact_length() {
        assert_eq!(judge("except file a.rs 6", "a.rs", 6), Vec::<String>::new());
        assert!(judge("except file a.rs 6", "a.rs", 7)[0].contains("grown"));
        assert!(judge("except file a.rs 6", "a.rs", 5)[0].contains("lower it"));
        assert!(judge("except file a.rs 6", "a.rs", 4)[0].contains("remove"));
    }

    #[test]
    fn an_exception_for_nothing_has_to_go() {
        assert!(judge("except function a.rs::f 6", "a.rs", 1)[0].contains("no such function"));
    }

    #[test]
    fn of_functions_with_one_name_the_longest_counts() {
        let mut lengths = Lengths::new();
        measure("a.rs", "fn f() {\n}\nfn f() {\n\n}\n", &mut lengths);
        assert_eq!(lengths[&("function".to_owned(), "a.rs::f".to_owned())], 3);
    }

    #[test]
    fn rules_that_cannot_be_read_are_refused() {
        assert!(Rules::parse("limit file 4").is_err());
        assert!(Rules::parse(&format!("{LIMITS}limit page 3")).is_err());
        assert!(Rules::parse(&format!("{LIMITS}except file a.rs many")).is_err());
        assert!(Rules::parse(&format!("{LIMITS}except file a 5\nexcept file a 6")).is_err());
    }
}
