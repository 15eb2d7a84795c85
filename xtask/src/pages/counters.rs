//! The counters that a node watches: an operator finds each in the manual, in the list of those that are watched and in a
//! row that says what to do.

use std::collections::BTreeSet;

use super::{blocks, quoted};
use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

const SOURCE: &str = "crates/node/src/driver/watch.rs";
const BEGIN: &str = "const WATCHED";
const END: &str = "\n];";
const PAGE: &str = "docs/operations.md";
const SECTION: &str = "\n## Counters, and what to do\n";
/// Where the list begins, in its paragraph.
const LIST: &str = "Watched are ";

/// The names in the table of the source: its strings without a space.
fn watched(source: &str) -> Option<BTreeSet<&str>> {
    let (_, table) = source.split_once(BEGIN)?;
    let (table, _) = table.split_once(END)?;
    let strings = table.split('"').skip(1).step_by(2);
    Some(strings.filter(|string| is_name(string)).collect())
}

fn is_name(text: &str) -> bool {
    let is_of_name =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    !text.is_empty() && text.chars().all(is_of_name)
}

fn findings(watched: &BTreeSet<&str>, page: &str) -> Vec<String> {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = blocks(section);
    let lists = blocks
        .iter()
        .filter_map(|(_, block)| block.split_once(LIST));
    let listed: BTreeSet<&str> = lists.flat_map(|(_, list)| quoted(list)).collect();
    let rows = blocks.iter().filter_map(|(_, row)| row.strip_prefix("| "));
    let first = rows.filter_map(|row| row.split(" | ").next());
    let rows: BTreeSet<&str> = first.flat_map(quoted).collect();
    let mut findings = Vec::new();
    for (names, what) in [
        (
            watched.difference(&listed),
            "is watched, and not in the list",
        ),
        (
            listed.difference(watched),
            "is in the list, and not watched",
        ),
        (watched.difference(&rows), "is watched, and has no row"),
    ] {
        findings.extend(names.map(|name| format!("{PAGE}: {name} {what}")));
    }
    findings
}

/// The table against the page.
pub fn check(workspace: &Workspace) -> Verdict {
    let (source, page) = (workspace.text(SOURCE)?, workspace.text(PAGE)?);
    let watched = watched(&source).ok_or_else(|| format!("{SOURCE}: there is no {BEGIN}"))?;
    if watched.is_empty() {
        return Err(format!("{SOURCE}: {BEGIN} has no names"));
    }
    let remark = format!("{} counters", watched.len());
    verdict(&findings(&watched, &page), remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "const WATCHED: [(&str, &str); 2] = [\n    (\n        \"one_slow\",\n        \"a word, \\\n         more\",\n    ),\n    \
                         (\"two_lost\", \"transport, \\\"unicast\\\"\"),\n];\nconst OTHER: &str = \"three\";\n";

    #[test]
    fn names_are_read_from_the_table() {
        let names = watched(TABLE).unwrap_or_default();
        assert!(names.contains("one_slow") && names.contains("two_lost"));
        assert!(!names.contains("three") && !names.iter().any(|name| name.contains(' ')));
        assert_eq!(watched("nothing"), None);
    }

    fn found(list: &str, rows: &str) -> Vec<String> {
        let page = format!(
            "# A\n\n| `two_lost` | elsewhere |\n\n## Counters, and what to do\n\nThese. Watched are {list}.\n\n\
             | you see | it means | do |\n|---|---|---|\n{rows}\n## Other\n\n| `one_slow` | no |\n"
        );
        findings(&BTreeSet::from(["one_slow", "two_lost"]), &page)
    }

    const BOTH: &str = "| `one_slow`, `two_lost` grow | a | b |\n";

    #[test]
    fn a_page_with_list_and_rows_passes() {
        assert_eq!(found("`one_slow` and\n`two_lost`", BOTH), [""; 0]);
    }

    #[test]
    fn what_lacks_in_one_of_them_is_named() {
        for (list, rows, says) in [
            (
                "`one_slow`",
                BOTH,
                "two_lost is watched, and not in the list",
            ),
            (
                "`one_slow`, `two_lost`, `more`",
                BOTH,
                "more is in the list, and not watched",
            ),
            (
                "`one_slow`, `two_lost`",
                "| `one_slow` grows | `two_lost` | b |\n",
                "two_lost is watched, and has no row",
            ),
        ] {
            let found = found(list, rows);
            assert!(
                found.len() == 1 && found[0].ends_with(says),
                "{list}: {found:?}"
            );
        }
    }
}
