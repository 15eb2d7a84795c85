//! Licences of what is built into the programs: each is one that asks for no more than to be named.

use std::collections::BTreeMap;

use crate::gate::{Verdict, verdict};
use crate::workspace::{Workspace, output_of};

/// Licences that are taken. The Mozilla one asks for changes of its own files to be published; none is changed here.
const TAKEN: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0+",
    "Unicode-3.0",
    "Zlib",
];

/// Every package that is built for users, and its licence.
pub fn check(workspace: &Workspace) -> Verdict {
    let line = "tree --workspace -e normal,build --target all --prefix none --locked --format";
    let mut command = workspace.cargo(line);
    let tree = output_of(command.arg("{p}|{l}"))?;
    let packages: BTreeMap<&str, &str> = tree
        .lines()
        .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'))
        .collect();
    let findings: Vec<String> = packages
        .iter()
        // Those of this workspace say where they are.
        .filter(|(package, _)| !package.contains("(/"))
        .filter(|(_, licence)| !is_taken(licence))
        .map(|(package, licence)| format!("{package}: `{licence}` is not on the list"))
        .collect();
    verdict(&findings, format!("{} packages", packages.len()))
}

/// Whether an expression allows one of the licences on the list: `(A OR B) AND C`. An older way to write `OR` is `/`.
fn is_taken(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let taken = alternatives(&words, &mut at);
    taken && at == words.len()
}

fn alternatives(words: &[&str], at: &mut usize) -> bool {
    let mut taken = together(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        taken |= together(words, at);
    }
    taken
}

fn together(words: &[&str], at: &mut usize) -> bool {
    let mut taken = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        taken &= one(words, at);
    }
    taken
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let taken = alternatives(words, at);
        let is_closed = words.get(*at) == Some(&")");
        *at += 1;
        return taken && is_closed;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        name = format!("{name} WITH {exception}");
        *at += 2;
    }
    TAKEN.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough_and_all_together_are_needed() {
        for taken in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(GPL-3.0 OR MIT) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "ISC AND (GPL-3.0 OR ISC) AND (MIT)",
        ] {
            assert!(is_taken(taken), "{taken}");
        }
        for refused in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC",
            "MIT)",
            "Apache-2.0 WITH GPL-exception",
        ] {
            assert!(!is_taken(refused), "{refused}");
        }
    }
}
