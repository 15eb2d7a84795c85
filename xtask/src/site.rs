//! The documentation as a site that is read without a network, with a search: `cargo xtask site`.
//!
//! mdBook makes the pages. Its list of chapters is made here from the table of all pages in `docs/README.md`, so that a page
//! that the table lacks is missing in neither or in both.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;

/// The version of mdBook that the pages were looked at with.
const MDBOOK: &str = "0.5.4";
/// The table of all pages.
const INDEX: &str = "docs/README.md";

/// Makes the site below the target directory; says where it is.
pub fn run(workspace: &Workspace) -> bool {
    match make(workspace) {
        Ok(index) => {
            println!("site: {}", index.display());
            true
        }
        Err(error) => {
            println!("site: {error}");
            false
        }
    }
}

fn make(workspace: &Workspace) -> Result<PathBuf, String> {
    let (root, target) = (workspace.root(), workspace.root().join("target"));
    let source = target.join("site-source");
    let _ = fs::remove_dir_all(&source);
    let pages = pages(&read(&root.join(INDEX))?);
    for file in workspace.files()? {
        if is_of_site(&file) {
            copy(&root.join(&file), &source.join("src").join(&file))?;
        }
    }
    if let Some(page) = pages
        .iter()
        .find(|page| !source.join("src").join(&page.path).is_file())
    {
        return Err(format!("{INDEX} lists {}, which is not there", page.path));
    }
    write(&source.join("src/SUMMARY.md"), &summary(&pages))?;
    write(&source.join("book.toml"), &book(&target.join("site")))?;
    let mdbook = mdbook(workspace, &target)?;
    let built = Command::new(&mdbook).arg("build").arg(&source).status();
    let built = built.map_err(|error| format!("{}: {error}", mdbook.display()))?;
    match built.success() {
        true => Ok(target.join("site/docs/README.html")),
        false => Err(format!("mdbook ended with {built}")),
    }
}

/// The pages, and what they show.
fn is_of_site(file: &str) -> bool {
    let is_page = |top: &str| file == top;
    let tops = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "python/README.md",
    ];
    file.starts_with("docs/") || tops.into_iter().any(is_page)
}

/// A page of the site.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    /// From the root of the repository.
    path: String,
}

/// The pages of the table: rows that begin with a link to a page.
fn pages(index: &str) -> Vec<Page> {
    let rows = index.lines().filter_map(|line| line.strip_prefix("| ["));
    let pages = rows.filter_map(|row| {
        let (_, row) = row.split_once("](")?;
        let (link, _) = row.split_once(')')?;
        let path = match link.strip_prefix("../") {
            Some(above) => above.to_owned(),
            None => format!("docs/{link}"),
        };
        path.ends_with(".md").then_some(Page { path })
    });
    pages.collect()
}

/// mdBook's list of chapters: first what the index is, then its rows by their folders.
fn summary(pages: &[Page]) -> String {
    let mut text = format!("# Rota\n\n[Where to begin]({INDEX})\n\n");
    let mut folder = "";
    for page in pages.iter().filter(|page| page.path != INDEX) {
        let within = match page.path.rsplit_once('/') {
            Some(("docs", _)) => "Using it",
            Some(("docs/operations", _)) => "Operating it",
            Some(("docs/protocols", _)) => "Protocols",
            Some(("docs/decisions" | "docs/notebook", _)) => "Notes",
            _ => "The repository",
        };
        if within != folder {
            folder = within;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n# {folder}\n");
        }
        let name = heading(page);
        let _ = writeln!(text, "- [{name}]({})", page.path);
    }
    text
}

/// A chapter's name: that of its file, or of the folder that the file is about.
fn heading(page: &Page) -> String {
    let name = page.path.rsplit('/').next().unwrap_or(&page.path);
    let name = name.trim_end_matches(".md");
    let name = match (name, page.path.rsplit('/').nth(1)) {
        ("README", Some(folder)) => folder,
        ("README", None) => "Rota",
        (name, _) => name,
    };
    name.replace(['-', '_'], " ")
}

fn book(target: &Path) -> String {
    format!(
        "[book]\ntitle = \"Rota\"\nlanguage = \"en\"\n\n[build]\nbuild-dir = {:?}\ncreate-missing = false\n\n\
         [output.html]\nno-section-label = true\n\n[output.html.print]\nenable = false\n\n[output.html.search]\nlimit-results = 40\n",
        target.display().to_string()
    )
}

/// mdBook of the version that is asked for: the one below the target directory, which is installed there if it is not yet.
fn mdbook(workspace: &Workspace, target: &Path) -> Result<PathBuf, String> {
    let tools = target.join("tools");
    let program = tools.join("bin/mdbook");
    if !program.is_file() {
        let install = format!(
            "install --locked mdbook --version {MDBOOK} --no-default-features --features search --root"
        );
        let installed = workspace.cargo(&install).arg(&tools).status();
        let installed = installed.map_err(|error| error.to_string())?;
        if !installed.success() {
            return Err("mdbook could not be installed".to_owned());
        }
    }
    Ok(program)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    let copied = made.and_then(|()| fs::copy(from, to).map(drop));
    copied.map_err(|error| format!("{}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_pages_are_chapters_in_their_order() {
        let index = "| page | one line |\n|---|---|\n| [../README.md](../README.md) | what it is |\n\
                     | [guide.md](guide.md) | using it |\n| [figures](figures) | drawings |\n\
                     | [operations/states.md](operations/states.md) | states |\n";
        let pages = pages(index);
        let paths: Vec<&str> = pages.iter().map(|page| page.path.as_str()).collect();
        assert_eq!(
            paths,
            ["README.md", "docs/guide.md", "docs/operations/states.md"]
        );
        let summary = summary(&pages);
        let at = |text: &str| {
            summary
                .find(text)
                .unwrap_or_else(|| panic!("{text}: {summary}"))
        };
        assert!(at("[Rota](README.md)") < at("# Using it\n\n- [guide](docs/guide.md)"));
        assert!(at("[guide]") < at("# Operating it\n\n- [states](docs/operations/states.md)"));
    }

    #[test]
    fn only_pages_and_what_they_show_are_of_the_site() {
        for file in ["README.md", "docs/figures/a.svg", "docs/kv.md"] {
            assert!(is_of_site(file), "{file}");
        }
        for file in ["crates/core/README.md", "Cargo.toml", "docs.md"] {
            assert!(!is_of_site(file), "{file}");
        }
    }
}
