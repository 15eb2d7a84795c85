//! Linearizability of a history of a store: one order explains all answers, in which each step happened between its
//! question and its answer, where answers say at which place of the store's order they stand.
//!
//! The places make the check cheap, and lose nothing. The check does all answered steps again in the order of places:
//! each read has to find what it found. Then it makes a graph: the steps on each key, one after the other, and each
//! step that was answered before another one was asked for. If the graph has no cycle, any order of it explains
//! everything. The place of a step that was never answered is not known: it may have happened when some client has read
//! a value that it writes, once, and at most there.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the order: round, ring, instance, and the message of the instance.
pub type Place = (u64, u16, u64, u32);

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
    /// The place at which the step was done. A step that only reads may have been done right behind the step at its
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The values of keys before; `None`: there was no such key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<(String, Option<String>)>,
    /// The values of keys afterwards, `None`: no value. No value is written twice to a key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<(String, Option<String>)>,
}

/// The numbers of steps, reads and writes that were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Summary {
    /// Steps that were answered.
    pub answered: u64,
    /// Steps that were not answered.
    pub unanswered: u64,
    /// Unanswered steps of which some client has read a write.
    pub seen: u64,
    /// Keys that were read.
    pub reads: u64,
    /// Keys that were written.
    pub writes: u64,
    /// Steps with several keys.
    pub several: u64,
}

/// The part of a history that no order explains. Steps are named by their places in the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// An answer has no place, or the end is before the beginning.
    NoPlace(usize),
    /// Two steps that write were done at one place.
    SamePlace(usize, usize),
    /// A read has found another value than the key had there.
    Read {
        /// The step.
        step: usize,
        /// The key.
        key: String,
        /// The value that the read has found.
        found: Option<String>,
        /// The value that the key had.
        was: Option<String>,
    },
    /// Each of these has to stand before the next, and the last before the first.
    Cycle(Vec<usize>),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace(step) => write!(f, "step {step} is answered, and has no place"),
            Self::SamePlace(one, other) => {
                write!(f, "steps {one} and {other} have written at one place")
            }
            Self::Read {
                step,
                key,
                found,
                was,
            } => write!(
                f,
                "step {step} has read {found:?} of key {key:?}, which had {was:?} there"
            ),
            Self::Cycle(steps) => {
                let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
                let steps = steps.join(", ");
                write!(
                    f,
                    "each of these stands before the next one, by what was done to keys or by time, and the last before the first: steps {steps}"
                )
            }
        }
    }
}

impl std::error::Error for Wrong {}

/// The state of a key while all steps are done again.
#[derive(Debug, Default)]
struct Key {
    value: Option<String>,
    last: Option<usize>,
    readers: Vec<usize>,
    /// The place of the last step that has written it, or before which an unanswered step has written it.
    written: Option<Place>,
    /// The place of the last step that has read or written it.
    touched: Option<Place>,
}

struct Replay<'a> {
    steps: &'a [Step],
    keys: HashMap<&'a str, Key>,
    /// Unanswered steps whose write has not been seen, by key and value: the step that was asked for first comes last.
    maybe: HashMap<(&'a str, Option<&'a str>), Vec<usize>>,
    behind: Vec<Vec<usize>>,
    is_done: Vec<bool>,
    summary: Summary,
}

/// Judges whether one order explains a history.
///
/// # Errors
/// The part that no order explains.
pub fn judge(steps: &[Step]) -> Result<Summary, Wrong> {
    let mut replay = Replay::new(steps)?;
    let mut order: Vec<usize> = (0..steps.len())
        .filter(|at| steps[*at].ended.is_some())
        .collect();
    let reads = |at: usize| steps[at].writes.is_empty();
    order.sort_by_key(|at| (steps[*at].place, reads(*at)));
    let same = |pair: &&[usize]| !reads(pair[1]) && steps[pair[0]].place == steps[pair[1]].place;
    if let Some(pair) = order.windows(2).find(same) {
        return Err(Wrong::SamePlace(pair[0], pair[1]));
    }
    for at in order {
        replay.step(at)?;
    }
    replay.by_time();
    match replay.cycle() {
        Some(cycle) => Err(Wrong::Cycle(cycle)),
        None => Ok(replay.summary),
    }
}

impl<'a> Replay<'a> {
    fn new(steps: &'a [Step]) -> Result<Self, Wrong> {
        let mut replay = Self {
            steps,
            keys: HashMap::new(),
            maybe: HashMap::new(),
            behind: vec![Vec::new(); steps.len()],
            is_done: vec![false; steps.len()],
            summary: Summary::default(),
        };
        for (at, step) in steps.iter().enumerate() {
            match step.ended {
                Some(ended) if step.place.is_none() || ended < step.began => {
                    return Err(Wrong::NoPlace(at));
                }
                Some(_) => replay.summary.answered += 1,
                None => {
                    replay.summary.unanswered += 1;
                    for (key, value) in &step.writes {
                        let of = replay.maybe.entry((key, value.as_deref()));
                        of.or_default().push(at);
                    }
                }
            }
        }
        // A missing key does not tell which step took it away: the step that was asked for first could have been done
        // at any time that others could.
        for of in replay.maybe.values_mut() {
            of.sort_unstable_by_key(|at| std::cmp::Reverse(steps[*at].began));
        }
        Ok(replay)
    }

    fn step(&mut self, at: usize) -> Result<(), Wrong> {
        let step = &self.steps[at];
        self.is_done[at] = true;
        self.summary.several += u64::from(step.reads.len() + step.writes.len() > 1);
        // All steps done before this one stand before all that it reads.
        for (key, found) in &step.reads {
            self.explain(at, (key, found))?;
        }
        for (key, found) in &step.reads {
            self.read(at, (key, found))?;
        }
        for (key, value) in &step.writes {
            self.write(at, (key, value), step.place);
        }
        Ok(())
    }

    /// If a read has found another value than the key had, a step that was never answered has been done before.
    fn explain(
        &mut self,
        at: usize,
        (key, found): (&'a str, &'a Option<String>),
    ) -> Result<(), Wrong> {
        let was = self.keys.entry(key).or_default().value.clone();
        if was == *found {
            return Ok(());
        }
        let of = self.maybe.get_mut(&(key, found.as_deref()));
        let Some(unanswered) = of.and_then(Vec::pop) else {
            let (key, found) = (key.to_owned(), found.clone());
            let step = at;
            return Err(Wrong::Read {
                step,
                key,
                found,
                was,
            });
        };
        self.summary.seen += u64::from(!self.is_done[unanswered]);
        self.is_done[unanswered] = true;
        let since = self.keys.get(key).and_then(|key| key.touched);
        self.write(unanswered, (key, found), self.steps[at].place);
        self.complete(unanswered, since, self.steps[at].place);
        Ok(())
    }

    fn read(
        &mut self,
        at: usize,
        (key, found): (&'a str, &'a Option<String>),
    ) -> Result<(), Wrong> {
        self.summary.reads += 1;
        self.explain(at, (key, found))?;
        let key = self.keys.entry(key).or_default();
        key.readers.push(at);
        key.touched = self.steps[at].place;
        if let Some(last) = key.last {
            self.behind[last].push(at);
        }
        Ok(())
    }

    /// An unanswered step was done between two places, as a read has shown. So were all its other writes, to keys that
    /// no step has written since the first of these places.
    fn complete(&mut self, at: usize, since: Option<Place>, place: Option<Place>) {
        for (key, value) in &self.steps[at].writes {
            let of = self.maybe.get_mut(&(key, value.as_deref()));
            let is_open = of.as_ref().is_some_and(|of| of.contains(&at));
            let written = self.keys.get(&key[..]).and_then(|key| key.written);
            if let Some(of) = of.filter(|_| is_open && written <= since) {
                of.retain(|other| *other != at);
                self.write(at, (key, value), place);
            }
        }
    }

    fn write(
        &mut self,
        at: usize,
        (key, value): (&'a str, &'a Option<String>),
        place: Option<Place>,
    ) {
        self.summary.writes += 1;
        let key = self.keys.entry(key).or_default();
        for before in key.readers.drain(..).chain(key.last) {
            if before != at {
                self.behind[before].push(at);
            }
        }
        (key.last, key.value) = (Some(at), value.clone());
        (key.written, key.touched) = (place, place);
    }

    /// Times are steps of their own, one before the other: a step that has ended stands before the time of its end, and
    /// a step that begins later behind that time.
    fn by_time(&mut self) {
        let of = self.steps.iter().enumerate();
        let done = of.filter(|(at, _)| self.is_done[*at]);
        let mut times: Vec<(u64, bool, usize)> = done
            .flat_map(|(at, step)| {
                let ended = step.ended.map(|ended| (ended, true, at));
                [Some((step.began, false, at)), ended]
            })
            .flatten()
            .collect();
        // A step that ends when another begins is taken to overlap it.
        times.sort_unstable();
        let mut last = None;
        for (_, is_end, at) in times {
            if is_end {
                let time = self.behind.len();
                self.behind.push(Vec::new());
                self.behind[at].push(time);
                if let Some(last) = last.replace(time) {
                    self.behind[last].push(time);
                }
            } else if let Some(last) = last {
                self.behind[last].push(at);
            }
        }
    }

    /// Steps of which each has to stand before the next, and the last before the first.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut before = vec![0_u32; self.behind.len()];
        self.behind.iter().flatten().for_each(|at| before[*at] += 1);
        let mut free: Vec<usize> = (0..before.len()).filter(|at| before[*at] == 0).collect();
        while let Some(at) = free.pop() {
            for next in &self.behind[at] {
                before[*next] -= 1;
                if before[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        let first = before.iter().position(|before| *before > 0)?;
        // Each step that is left has one before it that is left, too: going back comes to one again.
        let mut from = vec![usize::MAX; before.len()];
        for (at, behind) in self.behind.iter().enumerate() {
            if before[at] > 0 {
                behind.iter().for_each(|next| from[*next] = at);
            }
        }
        let (mut at, mut seen) = (first, vec![false; before.len()]);
        while !seen[at] {
            seen[at] = true;
            at = from[at];
        }
        let (end, mut cycle) = (at, Vec::new());
        loop {
            if at < self.steps.len() {
                cycle.push(at);
            }
            at = from[at];
            if at == end {
                cycle.reverse();
                return Some(cycle);
            }
        }
    }
}

#[cfg(test)]
mod tests;
