//! The glossary: the item in the code behind each noun is in the file that its row names, and so is each word of the code
//! that is to be renamed.

use std::collections::BTreeMap;

use super::paths::{Named, Tree};
use super::quoted;
use crate::gate::{Verdict, verdict};
use crate::source;
use crate::workspace::Workspace;

const PAGE: &str = "docs/glossary.md";
/// The heading between the two tables.
const TO_RENAME: &str = "## Words in the code that are to be renamed";
/// Cells of a row of each.
const CELLS: (usize, usize) = (4, 5);

/// Names that a cell says are in files.
#[derive(Debug, PartialEq, Eq)]
struct Claim<'a> {
    name: &'a str,
    path: &'a str,
}

/// Reads "`A` and `B` in `path` and `path`; `C` in `path`".
fn claims(cell: &str) -> Vec<Claim<'_>> {
    let mut claims = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut at_paths = false;
    for (index, piece) in cell.split('`').enumerate() {
        if index % 2 == 1 {
            match at_paths {
                true => claims.extend(names.iter().map(|name| Claim { name, path: piece })),
                false => names.push(piece),
            }
            continue;
        }
        match piece.trim() {
            "in" => at_paths = true,
            // A list of names, or of paths.
            "and" | "," => {}
            _ => {
                names.clear();
                at_paths = false;
            }
        }
    }
    claims
}

/// The texts of files, each read once.
struct Texts<'a> {
    workspace: &'a Workspace,
    read: BTreeMap<String, String>,
}

impl Texts<'_> {
    fn of(&mut self, path: &str) -> Result<&str, String> {
        if !self.read.contains_key(path) {
            let text = self.workspace.text(path)?;
            self.read.insert(path.to_owned(), text);
        }
        Ok(self.read.get(path).map_or("", String::as_str))
    }
}

/// The rows of a table, whose head quotes nothing: a row has so many cells, and one that has not is wrong.
fn rows<'a>(text: &'a str, cells: usize, wrong: &mut Vec<String>) -> Vec<Vec<&'a str>> {
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut found = Vec::new();
    for row in rows {
        let parts: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        if parts.len() == cells {
            found.push(parts);
        } else {
            wrong.push(format!("{PAGE}: not {cells} cells: {row}"));
        }
    }
    found
}

/// Both tables.
pub fn check(workspace: &Workspace) -> Verdict {
    let page = workspace.text(PAGE)?;
    let (nouns, to_rename) = page
        .split_once(TO_RENAME)
        .ok_or_else(|| format!("{PAGE}: there is no {TO_RENAME}"))?;
    let tree = Tree::new(workspace.files()?);
    let mut texts = Texts {
        workspace,
        read: BTreeMap::new(),
    };
    let mut wrong = Vec::new();
    let nouns = rows(nouns, CELLS.0, &mut wrong);
    for row in &nouns {
        check_noun(row, &tree, &mut texts, &mut wrong)?;
    }
    for row in rows(to_rename, CELLS.1, &mut wrong) {
        check_word(&row, &tree, &mut texts, &mut wrong)?;
    }
    verdict(&wrong, format!("{} nouns", nouns.len()))
}

/// The files that a path of the glossary stands for; that paths are there is another check.
fn files(named: &mut Named<'_>, tree: &Tree, path: &str) -> Vec<String> {
    let found = named.find(path).ok().flatten();
    let files = found.iter().flat_map(|path| tree.below(path));
    files
        .filter(|file| file.ends_with(".rs"))
        .cloned()
        .collect()
}

fn check_noun(
    row: &[&str],
    tree: &Tree,
    texts: &mut Texts<'_>,
    wrong: &mut Vec<String>,
) -> Result<(), String> {
    let (noun, cell) = (row[0], row[2]);
    if quoted(cell).next().is_none() {
        wrong.push(format!("{PAGE}: {noun}: names nothing in the code"));
    }
    for Claim { name, path } in claims(cell) {
        let mut is_there = false;
        for file in files(&mut Named::new(tree), tree, path) {
            is_there |= source::defines(texts.of(&file)?, name);
        }
        if !is_there {
            wrong.push(format!("{PAGE}: {noun}: no {name} in {path}"));
        }
    }
    Ok(())
}

fn check_word(
    row: &[&str],
    tree: &Tree,
    texts: &mut Texts<'_>,
    wrong: &mut Vec<String>,
) -> Result<(), String> {
    let mut named = Named::new(tree);
    let places: Vec<String> = quoted(row[1])
        .flat_map(|path| files(&mut named, tree, path))
        .collect();
    for word in quoted(row[0]) {
        let last = word.rsplit("::").next().unwrap_or(word);
        let mut is_there = false;
        for file in &places {
            let code = source::blank(texts.of(file)?);
            is_there |= !source::lines_with_word(&code, last).is_empty();
        }
        if !is_there {
            wrong.push(format!("{PAGE}: {word} to be renamed is not in {}", row[1]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_of_a_cell_are_paired() {
        let claim = |name, path| Claim { name, path };
        assert_eq!(
            claims("`A` and `b` in `x/a.rs` and `x/b.rs`; `C` in `x/c.rs`"),
            [
                claim("A", "x/a.rs"),
                claim("b", "x/a.rs"),
                claim("A", "x/b.rs"),
                claim("b", "x/b.rs"),
                claim("C", "x/c.rs"),
            ]
        );
        let of_none = "no type of its own; `leads` in `x/a.rs` is false, as in `x/b.rs`";
        assert_eq!(claims(of_none), [claim("leads", "x/a.rs")]);
        assert_eq!(claims("`x/record.rs`"), []);
    }
}
