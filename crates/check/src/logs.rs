//! The check of a history of shared logs: the contents of the logs at the end, which are one order of everything, have
//! to explain all answers.
//!
//! Clients never append the same value twice, so each entry says where it came from. Then each step can be looked at by
//! itself: an acknowledged value is where the answer said; a refused value is nowhere; values that were appended to
//! several logs at once are in all of them or in none; a value that was asked for again is there once; an append that
//! was answered before another one was asked for stands before it; and a reader has seen exactly what is there, nothing
//! left out, and all that was acknowledged before it asked.

mod wrong;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::history::Place;

pub use wrong::Wrong;

/// The place of an entry: its log, and its position there.
pub type At = (String, u64);

/// All that a client asked for at once, and the answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The client.
    pub client: u64,
    /// The time of the question, in nanoseconds of one clock.
    pub began: u64,
    /// The time of the answer. Without it the client was told nothing, and the step may have been done or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// The kind of the step.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of steps: see [`Step`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// These values are appended, all or none: the log of each, and its position according to the answer.
    Append {
        /// Log, value, position.
        values: Vec<(String, String, Option<u64>)>,
    },
    /// The answer said that these values were not appended.
    Refused {
        /// Log and value.
        values: Vec<(String, String)>,
    },
    /// A log is read from a position on, one position behind the other. `to_end`: the answer said that there is no
    /// more.
    Read {
        /// The log.
        log: String,
        /// The first position that was asked for.
        from: u64,
        /// The positions and values that were read.
        found: Vec<(u64, String)>,
        /// The answer has all there was.
        to_end: bool,
    },
    /// Several logs are read as one: the entries in the order in which they came.
    Merged {
        /// The logs.
        logs: Vec<String>,
        /// Log, position, value, and place of each entry.
        found: Vec<(String, u64, String, Place)>,
    },
}

/// A log at the end: the first position that is kept, and the values from there on.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Log {
    /// The first position.
    pub first: u64,
    /// The values.
    pub values: Vec<String>,
}

/// All logs at the end.
pub type Logs = BTreeMap<String, Log>;

/// The numbers of steps and entries that were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Summary {
    /// Appends that were acknowledged.
    pub acknowledged: u64,
    /// Appends that were not answered.
    pub unanswered: u64,
    /// Unanswered appends of which a value is there.
    pub seen: u64,
    /// Appends that were refused.
    pub refused: u64,
    /// Appends to several logs.
    pub several: u64,
    /// Reads.
    pub reads: u64,
    /// Entries that were read.
    pub read: u64,
    /// Entries at the end.
    pub entries: u64,
}

/// Judges a history by the contents of the logs at the end. A trimmed entry counts as being where the answer said.
///
/// # Errors
/// The first contradiction.
pub fn judge(steps: &[Step], logs: &Logs) -> Result<Summary, Wrong> {
    let mut judging = Judging {
        logs,
        at: HashMap::new(),
        asked: HashMap::new(),
        places: HashMap::new(),
        summary: Summary::default(),
    };
    judging.index()?;
    for (number, step) in steps.iter().enumerate() {
        if step.ended.is_some_and(|ended| ended < step.began) {
            return Err(Wrong::Time(number));
        }
        judging.append(number, step)?;
    }
    judging.origins()?;
    order(steps, &judging)?;
    let acknowledged = acknowledged(steps);
    for (number, step) in steps.iter().enumerate() {
        judging.read(number, step, &acknowledged)?;
    }
    Ok(judging.summary)
}

struct Judging<'a> {
    logs: &'a Logs,
    /// The place of each value.
    at: HashMap<&'a str, (&'a str, u64)>,
    /// The step that has asked for each value.
    asked: HashMap<&'a str, usize>,
    /// The places that readers were told.
    places: HashMap<(&'a str, u64), Place>,
    summary: Summary,
}

fn owned((log, position): (&str, u64)) -> At {
    (log.to_owned(), position)
}

impl<'a> Judging<'a> {
    fn index(&mut self) -> Result<(), Wrong> {
        for (name, log) in self.logs {
            for (value, position) in log.values.iter().zip(log.first..) {
                let at = (&name[..], position);
                if let Some(other) = self.at.insert(value, at) {
                    return Err(Wrong::Twice(value.clone(), owned(other), owned(at)));
                }
                self.summary.entries += 1;
            }
        }
        Ok(())
    }

    /// The value of a log at a position, `Some(None)` if there is none; `None` if the position is not known any more.
    fn value(&self, log: &str, position: u64) -> Option<Option<&'a str>> {
        let log = self.logs.get(log)?;
        let at = position.checked_sub(log.first)?;
        Some(log.values.get(at as usize).map(String::as_str))
    }

    fn append(&mut self, number: usize, step: &'a Step) -> Result<(), Wrong> {
        match &step.what {
            What::Append { values } => {
                self.summary.several += u64::from(values.len() > 1);
                match step.ended {
                    Some(_) => self.acknowledged(number, values),
                    None => self.unanswered(number, values),
                }
            }
            What::Refused { values } => {
                self.summary.refused += 1;
                for (_, value) in values {
                    self.asked.insert(value, number);
                    if let Some(at) = self.at.get(&value[..]) {
                        return Err(Wrong::Refused(number, value.clone(), owned(*at)));
                    }
                }
                Ok(())
            }
            What::Read { .. } | What::Merged { .. } => Ok(()),
        }
    }

    fn acknowledged(
        &mut self,
        number: usize,
        values: &'a [(String, String, Option<u64>)],
    ) -> Result<(), Wrong> {
        self.summary.acknowledged += 1;
        for (log, value, position) in values {
            self.asked.insert(value, number);
            let position = position.unwrap_or(0);
            let lost = || Wrong::Lost(number, value.clone(), (log.clone(), position));
            match self.value(log, position) {
                Some(Some(found)) if found == value => {}
                // The entry was trimmed.
                None if position > 0 && self.logs.contains_key(log) => {}
                _ => return Err(lost()),
            }
        }
        Ok(())
    }

    fn unanswered(
        &mut self,
        number: usize,
        values: &'a [(String, String, Option<u64>)],
    ) -> Result<(), Wrong> {
        self.summary.unanswered += 1;
        let is_there =
            |(_, value, _): &&(String, String, Option<u64>)| self.at.contains_key(&value[..]);
        let there = values.iter().filter(is_there).count();
        self.summary.seen += u64::from(there > 0);
        for (log, value, _) in values {
            self.asked.insert(value, number);
            // In a log that was trimmed the value may have been there.
            let may_be_gone = self.logs.get(log).is_none_or(|log| log.first > 1);
            if there > 0 && !self.at.contains_key(&value[..]) && !may_be_gone {
                return Err(Wrong::Part(number, value.clone()));
            }
        }
        Ok(())
    }

    /// Checks that each value that is there was asked for.
    fn origins(&self) -> Result<(), Wrong> {
        for (value, at) in &self.at {
            if !self.asked.contains_key(value) {
                return Err(Wrong::Invented((*value).to_owned(), owned(*at)));
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        number: usize,
        step: &'a Step,
        acknowledged: &Acknowledged<'_>,
    ) -> Result<(), Wrong> {
        match &step.what {
            What::Read {
                log,
                from,
                found,
                to_end,
            } => {
                self.summary.reads += 1;
                let mut next = None;
                for (position, value) in found {
                    self.found(number, (log, *position), value)?;
                    if next.is_some_and(|next| next != *position) || position < from {
                        return Err(Wrong::Merged(number, (log.clone(), *position)));
                    }
                    next = Some(position + 1);
                }
                let seen = next.unwrap_or(*from);
                match (to_end, acknowledged.before(log, step.began)) {
                    (true, Some((last, append))) if last >= seen => {
                        Err(Wrong::Stale(number, append, (log.clone(), last)))
                    }
                    _ => Ok(()),
                }
            }
            What::Merged { found, .. } => {
                self.summary.reads += 1;
                self.merged(number, found)
            }
            What::Append { .. } | What::Refused { .. } => Ok(()),
        }
    }

    fn found(
        &mut self,
        number: usize,
        (log, position): (&str, u64),
        value: &str,
    ) -> Result<(), Wrong> {
        self.summary.read += 1;
        match self.value(log, position) {
            Some(Some(is)) if is == value => Ok(()),
            None if self.logs.contains_key(log) => Ok(()),
            _ => Err(Wrong::Read(
                number,
                (log.to_owned(), position),
                value.to_owned(),
            )),
        }
    }

    fn merged(
        &mut self,
        number: usize,
        found: &'a [(String, u64, String, Place)],
    ) -> Result<(), Wrong> {
        let mut last: Option<Place> = None;
        let mut next: HashMap<&str, u64> = HashMap::new();
        for (log, position, value, place) in found {
            self.found(number, (log, *position), value)?;
            let expected = next.insert(log, position + 1);
            let is_gap = expected.is_some_and(|expected| expected != *position);
            if is_gap || last.is_some_and(|last| last >= *place) {
                return Err(Wrong::Merged(number, (log.clone(), *position)));
            }
            last = Some(*place);
            let known = self.places.insert((log, *position), *place);
            if known.is_some_and(|known| known != *place) {
                return Err(Wrong::Place(number, (log.clone(), *position)));
            }
        }
        Ok(())
    }
}

/// The time of an answer about a log, the greatest position that had been told by then, and the step that told it.
type Told = (u64, u64, usize);

/// The answers about each log, by time.
struct Acknowledged<'a>(HashMap<&'a str, Vec<Told>>);

impl Acknowledged<'_> {
    /// The greatest position that was told before this time, and the step that told it.
    fn before(&self, log: &str, time: u64) -> Option<(u64, usize)> {
        let all = self.0.get(log)?;
        let count = all.partition_point(|(ended, ..)| *ended < time);
        let (_, position, step) = all.get(count.checked_sub(1)?)?;
        Some((*position, *step))
    }
}

fn acknowledged(steps: &[Step]) -> Acknowledged<'_> {
    let mut of: HashMap<&str, Vec<Told>> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        if let (What::Append { values }, Some(ended)) = (&step.what, step.ended) {
            for (log, _, position) in values {
                let all = of.entry(log).or_default();
                all.push((ended, position.unwrap_or(0), number));
            }
        }
    }
    for all in of.values_mut() {
        all.sort_unstable();
        let mut greatest = (0, 0);
        for (_, position, step) in all {
            greatest = greatest.max((*position, *step));
            (*position, *step) = greatest;
        }
    }
    Acknowledged(of)
}

/// Checks that an append that was answered before another one was asked for stands before it.
fn order<'a>(steps: &'a [Step], judging: &Judging<'a>) -> Result<(), Wrong> {
    let mut of: HashMap<&str, Vec<(u64, usize)>> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        if let What::Append { values } = &step.what {
            for (log, value, position) in values {
                let found = judging.at.get(&value[..]).map(|(_, position)| *position);
                let position = found.or(position.filter(|_| step.ended.is_some()));
                let all = of.entry(log).or_default();
                all.extend(position.map(|position| (position, number)));
            }
        }
    }
    for (log, mut all) in of {
        all.sort_unstable();
        // From the end on: no entry was asked for after the answer about one that stands behind it.
        let mut told: Option<(u64, usize)> = None;
        for (_, number) in all.into_iter().rev() {
            let step = &steps[number];
            if let Some((ended, behind)) = told
                && ended < step.began
            {
                return Err(Wrong::Order(behind, number, log.to_owned()));
            }
            let ended = step.ended.map(|ended| (ended, number));
            told = [told, ended].into_iter().flatten().min();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
