//! What a load has shown.

use std::fmt::Write as _;
use std::time::Duration;

use rota_check::logs::Summary;
use serde::Serialize;

use super::load::Took;

/// Of one kind of append.
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
    /// So many rings, and processes.
    pub rings: u16,
    /// See above.
    pub processes: u16,
    /// How long it was loaded.
    pub seconds: f64,
    /// Appends of one entry.
    pub single: Figures,
    /// Of several at once, of one log or more.
    pub several: Figures,
    /// Processes that were killed.
    pub kills: u64,
    /// Of those, how many have lost their states.
    pub lost_states: u64,
    /// The longest time in which nothing was acknowledged, in milliseconds.
    pub longest_silence_ms: u64,
    /// What the check has looked at.
    pub history: Summary,
    /// All processes have the same logs.
    pub identical: bool,
}

/// Of what was measured.
pub fn figures(took: &[Took], is_several: bool, seconds: f64) -> Figures {
    let of = took.iter().filter(|took| took.is_several == is_several);
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

/// The longest time between two acknowledgements.
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
