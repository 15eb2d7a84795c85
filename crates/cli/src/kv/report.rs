//! What a load has shown.

use std::fmt::Write as _;
use std::time::Duration;

use rota_check::history::Summary;
use serde::Serialize;

use super::load::{Kind, Took};
use super::shifts::Shifted;

/// Of one kind of work.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// How many were done.
    pub count: u64,
    /// A second.
    pub rate: u64,
    /// Half took no longer, in microseconds.
    pub p50: u64,
    /// Ninety-nine of a hundred did not.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Of all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// So many partitions.
    pub partitions: u16,
    /// And replicas of each.
    pub replicas: u16,
    /// How long it was loaded.
    pub seconds: f64,
    /// Reads of a key.
    pub reads: Figures,
    /// Writes of one.
    pub writes: Figures,
    /// Several keys at once.
    pub several: Figures,
    /// What was refused: it was not done.
    pub refused: u64,
    /// Slots that have moved, where some were to.
    pub shifted: Option<Shifted>,
    /// Processes that were killed.
    pub kills: u64,
    /// Of those, how many have lost their states.
    pub lost_states: u64,
    /// The longest time in which nothing was answered, in milliseconds.
    pub longest_silence_ms: u64,
    /// What the check has looked at.
    pub history: Summary,
    /// All replicas have the same keys.
    pub identical: bool,
}

/// Of what was measured.
pub fn figures(took: &[Took], kind: Kind, seconds: f64) -> Figures {
    let of = took.iter().filter(|took| took.kind == kind);
    let mut all: Vec<u64> = of.map(|took| took.took.as_micros() as u64).collect();
    all.sort_unstable();
    let at = |part: f64| {
        let at = (all.len() as f64 * part) as usize;
        all.get(at).or(all.last()).copied().unwrap_or(0)
    };
    Figures {
        count: all.len() as u64,
        rate: (all.len() as f64 / seconds) as u64,
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
    }
}

/// The longest time between two answers.
pub fn longest_silence(took: &[Took], end: Duration) -> Duration {
    let mut at: Vec<Duration> = took.iter().map(|took| took.at).chain([end]).collect();
    at.sort_unstable();
    let gaps = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    gaps.max().unwrap_or_default()
}

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<18}{:>9}{:>10}{:>10}{:>10}{:>10}\n",
            "", "done", "a second", "p50 us", "p99 us", "max us"
        );
        let kinds = [
            ("read", self.reads),
            ("write", self.writes),
            ("two read, two written", self.several),
        ];
        for (name, of) in kinds {
            let _ = writeln!(
                text,
                "{name:<22}{:>5}{:>10}{:>10}{:>10}{:>10}",
                of.count, of.rate, of.p50, of.p99, of.max
            );
        }
        let history = self.history;
        let _ = write!(
            text,
            "history: one order explains all of {} answers ({} never came, {} of those were done); refused {}\n\
             killed {} times; longest time without any answer: {} ms; replicas: {}",
            history.answered,
            history.unanswered,
            history.seen,
            self.refused,
            self.kills,
            self.longest_silence_ms,
            if self.identical {
                "the same keys"
            } else {
                "DIFFERENT keys"
            }
        );
        if let Some(shifted) = self.shifted {
            let _ = write!(
                text,
                "\nmoved {} times {} slots ({} moves failed); writes to a group of slots waited {} ms at most",
                shifted.moves, shifted.slots, shifted.failed, shifted.longest_freeze_ms
            );
        }
        text
    }
}
