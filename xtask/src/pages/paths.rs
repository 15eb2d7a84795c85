//! Files that pages name: each is there, from the root or `crates`, or near what the page has named before it.

use std::collections::BTreeSet;

use super::{blocks, quoted};
use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

/// The crates: paths in pages may begin below.
const CRATES: &str = "crates";
/// Pages that speak of what was, and not of what is.
const OF_THE_PAST: &str = "CHANGELOG.md";

/// The files that git knows, and their folders.
pub(super) struct Tree {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

impl Tree {
    pub fn new(files: impl IntoIterator<Item = String>) -> Self {
        let files: BTreeSet<String> = files.into_iter().collect();
        let mut folders = BTreeSet::new();
        for file in &files {
            folders.extend(above(file).map(str::to_owned));
        }
        Self { files, folders }
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains(path) || self.folders.contains(path)
    }

    /// The file or folder with this path from the root, or from `crates`.
    fn whole(&self, path: &str) -> Option<String> {
        let below = format!("{CRATES}/{path}");
        [path.to_owned(), below]
            .into_iter()
            .find(|path| self.has(path))
    }

    /// The file or folder with this path from the folder of `last`, from the module that `last` begins, or from a
    /// folder above these in the same crate.
    fn near(&self, path: &str, last: &str) -> Option<String> {
        let itself = [last.strip_suffix(".rs").unwrap_or(last)];
        let folders = itself.into_iter().chain(above(last));
        let mut paths = folders
            .take_while(|folder| *folder != CRATES)
            .map(|folder| format!("{folder}/{path}"));
        paths.find(|path| self.has(path))
    }

    /// Whether a path begins with a folder of the root, and so can be looked up.
    fn is_of_root(&self, path: &str) -> bool {
        let first = path.split_once('/');
        first.is_some_and(|(first, _)| self.folders.contains(first))
    }

    /// The files of a folder and of those below it, or the file itself.
    pub fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a String> {
        let is_below = move |file: &&String| {
            let rest = file.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files.iter().filter(is_below)
    }
}

/// The folders that a path is in, the nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let places = path.rmatch_indices('/');
    places.map(|(at, _)| &path[..at])
}

/// What a page has named so far.
pub(super) struct Named<'a> {
    tree: &'a Tree,
    /// All folders.
    folders: Vec<String>,
    /// The last path of the current block.
    last: Option<String>,
}

impl<'a> Named<'a> {
    pub const fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            folders: Vec::new(),
            last: None,
        }
    }

    /// Another block begins.
    pub fn begin(&mut self) {
        self.last = None;
    }

    /// Looks a path up, and takes note of it. `Err`: it is not there; `Ok(None)`: nothing is known of such paths.
    pub fn find(&mut self, token: &str) -> Result<Option<String>, ()> {
        let is_path = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
        if !token.chars().all(is_path) {
            return Ok(None);
        }
        let path = token.trim_end_matches('/');
        let found = match path.contains('/') || path.ends_with(".rs") {
            true => self.look_up(path),
            // A folder of the root; other words without a slash are words.
            false => Some(path.to_owned()).filter(|path| self.is_root_folder(path)),
        };
        if let Some(found) = found {
            if self.tree.folders.contains(&found) {
                self.folders.push(found.clone());
            }
            self.last = Some(found.clone());
            return Ok(Some(found));
        }
        // A name in capitals stands for any.
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name);
        let is_any = !stem.contains(|letter: char| letter.is_ascii_lowercase());
        let has_to_be = path.ends_with(".rs") || self.tree.is_of_root(path);
        match has_to_be && !is_any {
            true => Err(()),
            false => Ok(None),
        }
    }

    fn is_root_folder(&self, path: &str) -> bool {
        path != CRATES && self.tree.folders.contains(path)
    }

    fn look_up(&self, path: &str) -> Option<String> {
        let near = |last: &String| self.tree.near(path, last);
        let found = self.tree.whole(path);
        let found = found.or_else(|| self.last.as_ref().and_then(near));
        // Behind a file only its neighbours may be meant.
        let is_behind_file = self.last.as_ref().is_some_and(|last| last.ends_with(".rs"));
        found.or_else(|| match is_behind_file || !path.ends_with(".rs") {
            true => None,
            false => self.below_folders(path),
        })
    }

    /// The file below a folder that the page has named, or below its sources or tests.
    fn below_folders(&self, path: &str) -> Option<String> {
        let folders = self.folders.iter().rev();
        let mut paths = folders
            .flat_map(|folder| ["", "src/", "tests/"].map(|part| format!("{folder}/{part}{path}")));
        paths.find(|path| self.tree.has(path))
    }
}

/// Whether a file is a page that speaks of the code as it is.
fn is_page(file: &str) -> bool {
    let is_ours = file.starts_with("docs/") || !file.contains('/');
    file.ends_with(".md") && is_ours && file != OF_THE_PAST
}

/// The paths of a page that are not there; and the number of those that are.
fn look_at(tree: &Tree, name: &str, page: &str) -> (usize, Vec<String>) {
    let (mut there, mut wrong) = (0, Vec::new());
    let mut named = Named::new(tree);
    for (line, block) in blocks(page) {
        named.begin();
        for token in quoted(&block) {
            match named.find(token) {
                Ok(found) => there += usize::from(found.is_some()),
                Err(()) => wrong.push(format!("{name}:{line}: there is no {token}")),
            }
        }
    }
    (there, wrong)
}

/// All pages.
pub fn check(workspace: &Workspace) -> Verdict {
    let tree = Tree::new(workspace.files()?);
    let (mut all, mut wrong) = (0, Vec::new());
    for file in tree.files.iter().filter(|file| is_page(file)) {
        let (there, missing) = look_at(&tree, file, &workspace.text(file)?);
        all += there;
        wrong.extend(missing);
    }
    verdict(&wrong, format!("{all} paths in pages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(page: &str) -> Vec<String> {
        let files = [
            "docs/page.md",
            "python/src/line.rs",
            "crates/ring/src/lib.rs",
            "crates/ring/src/engine.rs",
            "crates/ring/src/engine/timer.rs",
            "crates/ring/tests/table.rs",
            "crates/node/src/lib.rs",
            "crates/node/src/waker.rs",
        ];
        let tree = Tree::new(files.map(str::to_owned));
        let (_, wrong) = look_at(&tree, "page", page);
        wrong
    }

    #[test]
    fn paths_begin_at_the_root_at_crates_or_near_the_last_one() {
        for page in [
            "`crates/ring/src/lib.rs`, and `ring/src/engine.rs`",
            "`crates/ring/src/lib.rs`, `engine.rs`, `timer.rs` and `tests/table.rs`",
            "| `crates/ring/src/engine.rs` | `engine/timer.rs`, `lib.rs` |",
            "`crates/ring`: `engine.rs`",
            "`crates/ring`: `table.rs`",
            "The code is `crates/ring`.\n\n* `engine.rs`",
            "**`python`**: `src/line.rs`",
        ] {
            assert_eq!(wrong(page), [""; 0], "{page}");
        }
    }

    #[test]
    fn what_is_not_there_or_elsewhere_is_wrong() {
        for (page, missing) in [
            ("`crates/node/src/lib.rs`, `bell.rs`", "bell.rs"),
            ("`node/src/bell.rs`", "node/src/bell.rs"),
            ("`crates/ring/src/lib.rs`, `waker.rs`", "waker.rs"),
            (
                "`crates/node`.\n\n`crates/ring/src/lib.rs`, `waker.rs`",
                "waker.rs",
            ),
            ("`lib.rs`", "lib.rs"),
            ("`crates/gone`", "crates/gone"),
            ("`docs/gone.md`", "docs/gone.md"),
        ] {
            let found = wrong(page);
            let says = format!("there is no {missing}");
            assert!(
                found.len() == 1 && found[0].ends_with(&says),
                "{page}: {found:?}"
            );
        }
    }

    #[test]
    fn words_commands_and_placeholders_are_no_paths() {
        let page = "`client`, `rota status`, `crates/*/tests`, `docs/NAME.md`, `#a#n1`, `target/debug`\n\n\
                    ```text\n`gone.rs`\n```\n";
        assert_eq!(wrong(page), [""; 0]);
    }
}
