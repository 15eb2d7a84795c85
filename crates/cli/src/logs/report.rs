//! The results of a load.

use std::fmt::Write as _;

use rota_check::logs::Summary;
use serde::Serialize;

use crate::service::Shown;
use crate::service::figures::Figures;

/// Of all.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The number of rings.
    pub rings: u16,
    /// The number of processes.
    pub processes: u16,
    /// The length of the load, in seconds.
    pub seconds: f64,
    /// Appends of one entry.
    pub single: Figures,
    /// Of several at once, of one log or more.
    pub several: Figures,
    /// Processes that were killed.
    pub kills: u64,
    /// The number of those that have lost their states.
    pub lost_states: u64,
    /// The longest time in which nothing was acknowledged, in milliseconds.
    pub longest_silence_ms: u64,
    /// The history that the check has looked at.
    pub history: Summary,
    /// All processes have the same logs.
    pub identical: bool,
}

impl Shown for Report {
    fn is_well(&self) -> bool {
        self.identical
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<16}{:>9}{:>10}{:>10}{:>10}{:>10}\n",
            "appends", "done", "a second", "p50 us", "p99 us", "max us"
        );
        for (name, of) in [("one entry", self.single), ("several", self.several)] {
            let _ = writeln!(
                text,
                "{name:<16}{:>9}{:>10}{:>10}{:>10}{:>10}",
                of.count, of.rate, of.p50, of.p99, of.max
            );
        }
        let history = self.history;
        let _ = write!(
            text,
            "history: the logs explain {} acknowledgements, {} refusals, and {} reads of {} entries ({} were never answered, {} of those were done)\n\
             killed {} times; longest time without any acknowledgement: {} ms; processes: {}",
            history.acknowledged,
            history.refused,
            history.reads,
            history.read,
            history.unanswered,
            history.seen,
            self.kills,
            self.longest_silence_ms,
            if self.identical {
                "the same logs"
            } else {
                "DIFFERENT logs"
            }
        );
        text
    }
}
