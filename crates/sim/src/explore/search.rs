//! The search itself: depth first, each state once for each smaller depth.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use super::report::{Report, Violation};
use super::state::{Left, Move, Rules, State};
use super::{Options, settle, start};
use crate::observe::Finding;

/// The keys are hashes already.
#[derive(Default)]
pub(super) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// States seen, and the fewest steps to each.
type Seen = HashMap<u64, u16, BuildHasherDefault<Same>>;

/// A state on the way to the present one, and which of its moves come next.
struct Frame {
    state: State,
    moves: Vec<Move>,
    next: usize,
}

struct Search<'a> {
    options: &'a Options,
    rules: Rules,
    seen: Seen,
    stack: Vec<Frame>,
    report: Report,
}

/// Searches all schedules, or as many as the options say.
pub fn explore(options: &Options) -> Report {
    let started = Instant::now();
    let rules = Rules {
        config: start::config(options.nodes, options.protocol),
        reorder: options.reorder,
    };
    let left = Left {
        losses: options.losses,
        crashes: options.crashes,
        early: options.early,
    };
    let first = start::state(options.start, options.nodes, &rules, left);
    let mut search = Search {
        options,
        rules,
        seen: Seen::default(),
        stack: Vec::new(),
        report: Report {
            nodes: options.nodes,
            start: options.start.name().to_owned(),
            depth: options.depth,
            losses: options.losses,
            crashes: options.crashes,
            early: options.early,
            reorder: options.reorder,
            ..Report::default()
        },
    };
    search.run(first);
    search.report.states = search.seen.len() as u64;
    search.report.seconds = started.elapsed().as_secs_f64();
    search.report
}

impl Search<'_> {
    fn run(&mut self, first: State) {
        self.visit(first);
        while let Some(frame) = self.stack.last_mut() {
            let Some(&step) = frame.moves.get(frame.next) else {
                self.stack.pop();
                continue;
            };
            frame.next += 1;
            let mut state = frame.state.clone();
            self.report.transitions += 1;
            guarded(&mut state, |state| state.step(&self.rules, step), set);
            self.visit(state);
            if self.report.violation.is_some() {
                return;
            }
            if self.seen.len() as u64 >= self.options.states {
                return;
            }
        }
        self.report.complete = true;
    }

    /// Looks at a state, and puts it on the stack if it is to be gone on from.
    fn visit(&mut self, mut state: State) {
        let depth = self.stack.len() as u32;
        if state.finding.is_some() {
            return self.violated(&state);
        }
        let hash = state.hash();
        let new = match self.seen.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(depth as u16);
                true
            }
            Entry::Occupied(place) if u32::from(*place.get()) <= depth => return,
            Entry::Occupied(mut place) => {
                place.insert(depth as u16);
                false
            }
        };
        if new {
            self.note(&mut state, hash, depth);
        }
        if depth < self.options.depth && self.report.violation.is_none() {
            let moves = state.moves(&self.rules);
            self.stack.push(Frame {
                state,
                moves,
                next: 0,
            });
        }
    }

    /// Counts a new state.
    fn note(&mut self, state: &mut State, hash: u64, depth: u32) {
        let report = &mut self.report;
        report.deepest = report.deepest.max(depth);
        report.flights = report.flights.max(state.flights.len());
        report.together += u64::from(settle::is_together(state));
        if hash.is_multiple_of(self.options.settle) {
            report.settled += 1;
            let mut end = state.clone();
            guarded(&mut end, |end| settle::settle(end, &self.rules), set);
            if end.finding.is_some() {
                self.violated(&end);
            }
        }
    }

    /// Writes down what was found and how it came to it.
    fn violated(&mut self, state: &State) {
        let Some(Finding { property, detail }) = state.finding.clone() else {
            return;
        };
        let step = |frame: &Frame| {
            let taken = frame.next.checked_sub(1)?;
            frame
                .moves
                .get(taken)
                .map(|&step| frame.state.describe(step))
        };
        self.report.violation = Some(Violation {
            property,
            detail,
            path: self.stack.iter().filter_map(step).collect(),
        });
    }
}

/// An engine that panics is a finding like any other.
pub(super) fn guarded<S>(
    state: &mut S,
    step: impl FnOnce(&mut S),
    found: impl FnOnce(&mut S, Finding),
) {
    let run = AssertUnwindSafe(|| step(state));
    if let Err(what) = panic::catch_unwind(run) {
        let text = what.downcast_ref::<String>().cloned();
        let text = text.or_else(|| what.downcast_ref::<&str>().map(|&text| text.to_owned()));
        found(state, Finding::new("panic", text.unwrap_or_default()));
    }
}

fn set(state: &mut State, finding: Finding) {
    state.finding.get_or_insert(finding);
}
