//! Tables of event × state: text files from which a test reads each cell.
//!
//! An event stands in a line of its own, and below it, indented, a line for each state: the name of the state, `->`, the
//! state that follows, and the effects. `#` begins a comment. `ROTA_BLESS=1` writes the cells of today into the file;
//! the diff is what to review.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Compares each cell of `testdata/tables/NAME.txt` of the crate at `crate_dir` with what `cell` says of its event and
/// state. Each event has a cell for each state.
pub fn check(
    crate_dir: &str,
    name: &str,
    (events, states): (&[&str], &[&str]),
    mut cell: impl FnMut(&str, &str) -> String,
) {
    let path = Path::new(crate_dir)
        .join("testdata/tables")
        .join(name)
        .with_extension("txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = read(&text);
    let mut now = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in events {
        for state in states {
            let is = cell(event, state);
            let key = ((*event).to_owned(), (*state).to_owned());
            match written.get(&key) {
                Some(was) if *was == is => {}
                was => wrong.push(format!(
                    "{event}, {state}: {is}\n    and not: {}",
                    was.map_or("no such cell", String::as_str)
                )),
            }
            now.insert(key, is);
        }
    }
    let unknown = written.keys().filter(|key| !now.contains_key(*key));
    wrong.extend(unknown.map(|(event, state)| format!("{event}, {state}: nothing tests it")));
    if std::env::var_os("ROTA_BLESS").is_some() {
        fs::write(&path, print(&text, (events, states), &now)).expect("a writable table");
    } else {
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }
}

type Cells = BTreeMap<(String, String), String>;

fn read(text: &str) -> Cells {
    let mut cells = BTreeMap::new();
    let mut event = String::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_prefix("  ") {
            None => line.clone_into(&mut event),
            Some(cell) => {
                let (state, then) = cell.split_once("->").expect("STATE -> what follows");
                let key = (event.clone(), state.trim().to_owned());
                assert!(!cells.contains_key(&key), "{key:?} stands there twice");
                cells.insert(key, then.trim().to_owned());
            }
        }
    }
    cells
}

/// The comments at the head of the file, then the events with their cells, each with the comments that stand before it.
fn print(text: &str, (events, states): (&[&str], &[&str]), cells: &Cells) -> String {
    let mut comments: BTreeMap<&str, String> = BTreeMap::new();
    let mut pending = String::new();
    let mut head = None;
    for line in text.lines() {
        if line.is_empty() && head.is_none() {
            head = Some(std::mem::take(&mut pending));
        } else if line.starts_with('#') {
            pending = pending + line + "\n";
        } else if !line.is_empty() && !line.starts_with(' ') {
            comments.insert(line, std::mem::take(&mut pending));
        }
    }
    let mut out = head.unwrap_or(pending);
    let width = states.iter().map(|state| state.len()).max().unwrap_or(0);
    for event in events {
        let before = comments.get(event).map_or("", String::as_str);
        write!(out, "\n{before}{event}\n").expect("a string");
        for state in states {
            let cell = &cells[&((*event).to_owned(), (*state).to_owned())];
            writeln!(out, "  {state:<width$} -> {cell}").expect("a string");
        }
    }
    out
}
