//! The measurements for a figure, as a file of comma-separated values that says where and how they were made.
//!
//! Lines that begin with `#` come first; then the names of the columns, then one line for each run. Nothing in it has a
//! comma or needs quotes: names, numbers, `yes` and `no`.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::BenchError;

/// See the module page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// The way in which it was measured, and what else there is to say.
    pub notes: Vec<String>,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(notes: Vec<String>, columns: &[&str]) -> Self {
        Self {
            notes,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Reads a file; an error says what is wrong with which line.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let failed = |what: String| BenchError::Figure(format!("{}: {what}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            if let Some(note) = line.strip_prefix("# ") {
                table.notes.push(note.to_owned());
                continue;
            }
            let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            if table.columns.is_empty() {
                table.columns = cells;
            } else if cells.len() == table.columns.len() {
                table.rows.push(cells);
            } else {
                let (has, wants) = (cells.len(), table.columns.len());
                return Err(format!("line {}: {has} values, not {wants}", index + 1));
            }
        }
        if table.columns.is_empty() {
            return Err("no names of columns".to_owned());
        }
        Ok(table)
    }

    fn text(&self) -> String {
        let notes = self.notes.iter().map(|note| format!("# {note}\n"));
        let lines = std::iter::once(&self.columns).chain(&self.rows);
        let lines = lines.map(|cells| format!("{}\n", cells.join(",")));
        notes.chain(lines).collect()
    }

    /// Writes the file anew; who reads it meanwhile sees the one before.
    pub fn write(&self, path: &Path) -> Result<(), BenchError> {
        let write = || -> io::Result<()> {
            let new = path.with_extension("csv.new");
            fs::write(&new, self.text())?;
            fs::rename(&new, path)
        };
        write().map_err(BenchError::io("cannot write what was measured"))
    }

    /// Goes on with the rows of `before`, if it was measured in the same way. Series that are compared for the first
    /// time may come to it.
    pub fn append_to(self, mut before: Self) -> Result<Self, BenchError> {
        let mut at = 0;
        let mut same = before.columns == self.columns;
        for note in self.notes {
            if let Some(there) = before.notes.iter().position(|other| *other == note) {
                at = there + 1;
                continue;
            }
            let name = command_of(&note);
            same &= name.is_some() && before.notes.iter().all(|other| command_of(other) != name);
            before.notes.insert(at, note);
            at += 1;
        }
        if !same {
            let was = before.notes.first().map_or("nothing", String::as_str);
            return Err(BenchError::Usage(format!(
                "--append goes on with what was measured in the same way, and not with `{was}`"
            )));
        }
        before.rows.extend(self.rows);
        Ok(before)
    }

    /// The largest number of a column; 0 where there is none.
    pub fn largest(&self, column: &str) -> u32 {
        let numbers = self.rows.iter().filter_map(|row| self.number(row, column));
        numbers.fold(0.0, f64::max) as u32
    }

    /// A value of a row; empty if there is none.
    pub fn cell<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| row.get(at)).map_or("", String::as_str)
    }

    /// The same as a number.
    pub fn number(&self, row: &[String], column: &str) -> Option<f64> {
        self.cell(row, column)
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
    }
}

/// The name of a series, of a note that has its command.
fn command_of(note: &str) -> Option<&str> {
    let (name, command) = note.split_once(": ")?;
    command.starts_with("rota bench --engine ").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(
            vec!["rota bench figures".to_owned()],
            &["nodes", "series", "mbps"],
        );
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.rows = vec![row(["2", "lcr", "1900.5"]), row(["8", "lcr", ""])];
        table
    }

    #[test]
    fn what_was_written_is_read_again() {
        let table = table();
        assert_eq!(Table::parse(&table.text()), Ok(table.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        table.write(&path).expect("it can be written");
        assert_eq!(Table::read(&path).expect("it can be read"), table);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 1);
    }

    #[test]
    fn values_are_found_by_their_names() {
        let table = table();
        assert_eq!(table.number(&table.rows[0], "mbps"), Some(1900.5));
        assert_eq!(table.number(&table.rows[1], "mbps"), None);
        assert_eq!(table.cell(&table.rows[1], "series"), "lcr");
        assert_eq!(table.cell(&table.rows[1], "no such"), "");
        assert_eq!(table.largest("nodes"), 8);
    }

    #[test]
    fn a_line_that_lacks_a_value_is_named() {
        let wrong = Table::parse("# how\na,b\n1,2\n3\n").expect_err("two columns");
        assert_eq!(wrong, "line 4: 1 values, not 2");
        assert!(Table::parse("# how\n").is_err());
    }

    #[test]
    fn only_what_was_measured_in_the_same_way_is_put_together() {
        let both = table().append_to(table()).expect("the same way");
        assert_eq!(both.rows.len(), 4);
        let mut later = table();
        later.notes.push("round 1: something of its own".to_owned());
        assert!(table().append_to(later.clone()).is_ok());
        assert!(later.append_to(table()).is_err());
        let mut other = table();
        other.columns.pop();
        assert!(table().append_to(other).is_err());
    }

    #[test]
    fn an_engine_may_be_compared_later_but_not_in_another_way() {
        let with = |commands: &[&str]| {
            let mut table = table();
            let commands = commands.iter().map(|command| (*command).to_owned());
            table.notes.extend(commands);
            table
        };
        let (lcr, paxos) = ("lcr: rota bench --engine lcr", "p: rota bench --engine p");
        let tcp = "raw-tcp: rota bench raw --tcp";
        let before = with(&[lcr, tcp, "round 1: a word"]);
        let both = with(&[lcr, paxos, tcp]).append_to(before.clone());
        let both = both.expect("only an engine is new");
        assert_eq!(both.notes[1..], [lcr, paxos, tcp, "round 1: a word"]);
        for other in ["lcr: rota bench --engine lcr --size 1", "another testbed"] {
            let wrong = with(&[other, tcp]).append_to(before.clone());
            assert!(
                wrong
                    .expect_err("not the same")
                    .to_string()
                    .contains("same way")
            );
        }
    }
}
