//! The results of a load.

use std::fmt::Write as _;

use rota_check::history::Summary;
use serde::Serialize;

use crate::service::Shown;
use crate::service::figures::Figures;

use super::shifts::Shifted;

/// Of all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The number of partitions.
    pub partitions: u16,
    /// The number of replicas of each.
    pub replicas: u16,
    /// The length of the load, in seconds.
    pub seconds: f64,
    /// Reads of a key.
    pub reads: Figures,
    /// Writes of one.
    pub writes: Figures,
    /// Several keys at once.
    pub several: Figures,
    /// The number of operations that were refused: they were not done.
    pub refused: u64,
    /// Slots that have moved, where some were to.
    pub shifted: Option<Shifted>,
    /// Processes that were killed.
    pub kills: u64,
    /// The number of those that have lost their states.
    pub lost_states: u64,
    /// The longest time in which nothing was answered, in milliseconds.
    pub longest_silence_ms: u64,
    /// The history that the check has looked at.
    pub history: Summary,
    /// All replicas have the same keys.
    pub identical: bool,
}

impl Shown for Report {
    fn is_well(&self) -> bool {
        self.identical
    }

    fn text(&self) -> String {
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
