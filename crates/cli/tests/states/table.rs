//! The table: what is said of which state where, for people and for the test.

use std::fmt::{self, Write as _};

use rota_node::EngineName::{
    self, AcceleratedRing, FastCast, Lcr, RingPaxos, TotemRing, URingPaxos,
};

use crate::cluster::Cluster;
use crate::states::STATES;

pub const ALL: &[EngineName] = &EngineName::ALL;
pub const RINGS: &[EngineName] = &[AcceleratedRing, TotemRing];
pub const VIEWS: &[EngineName] = &[FastCast, Lcr];
pub const VOTES: &[EngineName] = &[RingPaxos, URingPaxos];

/// What has been done to a cluster, and what is said of it.
pub struct State {
    pub name: &'static str,
    /// How the test makes it.
    pub made: &'static str,
    pub make: fn(&mut Cluster<'_>),
    pub end: fn(&mut Cluster<'_>),
    /// For each engine one.
    pub cells: &'static [Cell],
}

/// What is said in some engines.
pub struct Cell {
    pub engines: &'static [EngineName],
    pub is: Is,
}

pub enum Is {
    /// In the log, by `rota status`, by `rota status --explain`, and in the metrics.
    Said([Say; PLACES.len()]),
    /// It is nothing ill, and nothing is said.
    Well(&'static str),
    /// There is no such state, and why.
    Never(&'static str),
}

/// What is said at one place.
#[derive(Clone, Copy)]
pub enum Say {
    /// These words are in it; of metrics, that an alert like this is raised.
    Words(&'static str),
    /// Nothing, and why.
    Nothing(&'static str),
}

/// Where something is said.
pub const PLACES: [&str; 4] = ["log", "status", "explain", "metrics"];

impl State {
    /// What is said with this engine.
    pub fn of(&self, engine: EngineName) -> &'static Is {
        let mut cells = self
            .cells
            .iter()
            .filter(|cell| cell.engines.contains(&engine));
        let cell = cells.next();
        assert!(
            cells.next().is_none(),
            "{}: two cells for {}",
            self.name,
            engine.name()
        );
        &cell
            .unwrap_or_else(|| panic!("{}: no cell for {}", self.name, engine.name()))
            .is
    }
}

/// The page of the manual.
pub struct Page;

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        f.write_str("| state |")?;
        for engine in ALL {
            write!(f, " {} |", engine.name())?;
        }
        f.write_str("\n|---|")?;
        f.write_str(&"---|".repeat(ALL.len()))?;
        f.write_char('\n')?;
        for state in STATES {
            write!(f, "| [{}](#{}) |", state.name, anchor(state.name))?;
            for engine in ALL {
                write!(f, " {} |", letters(state.of(*engine)))?;
            }
            f.write_char('\n')?;
        }
        STATES.iter().try_for_each(|state| section(f, state))
    }
}

const HEAD: &str = "\
# What is said of which trouble

Each row is a state in which a cluster of three is put by a test (`crates/cli/tests/states`), in each engine, with a client at each
daemon that sends twenty messages a second; each letter a place that has to name it within ten seconds: **L** the log, **S** `rota
status`, **E** `rota status --explain --config FILE`, **M** the metrics. A dash is a state that an engine cannot be in. Where a letter
is missing, the section below says why. The same test looks at clusters that are well, and fails if anything is said of them; for as
long as `ROTA_SECONDS` says: `ROTA_SECONDS=3600 cargo test -p rota --test states well -- --include-ignored`. This page is written by
the test, too: `ROTA_BLESS=1 cargo test -p rota --test states page`. What the words mean and what to do is in [watching a
ring](watching.md) and [operations](../operations.md).

";

/// How a heading is linked to.
fn anchor(name: &str) -> String {
    let kept = name
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn letters(is: &Is) -> String {
    match is {
        Is::Never(_) => "–".to_owned(),
        Is::Well(_) => "well".to_owned(),
        Is::Said(said) => {
            let letters = said.iter().zip(["L", "S", "E", "M"]);
            let said = letters.filter(|(say, _)| matches!(say, Say::Words(_)));
            said.map(|(_, letter)| letter).collect::<Vec<_>>().join(" ")
        }
    }
}

fn section(f: &mut fmt::Formatter<'_>, state: &State) -> fmt::Result {
    write!(f, "\n## {}\n\n{}.\n", state.name, state.made)?;
    for cell in state.cells {
        let engines: Vec<&str> = cell.engines.iter().map(|engine| engine.name()).collect();
        let engines = match cell.engines.len() {
            count if count == ALL.len() => "all engines".to_owned(),
            _ => engines.join(", "),
        };
        write!(f, "\n*{engines}*:")?;
        match &cell.is {
            Is::Never(why) => writeln!(f, " –, {why}.")?,
            Is::Well(why) => writeln!(f, " nothing is said: {why}.")?,
            Is::Said(said) => {
                f.write_str("\n\n")?;
                for (place, say) in PLACES.iter().zip(said) {
                    match say {
                        Say::Words(words) => writeln!(f, "* {place}: `{words}`")?,
                        Say::Nothing(why) => writeln!(f, "* {place}: nothing, {why}")?,
                    }
                }
            }
        }
    }
    Ok(())
}
