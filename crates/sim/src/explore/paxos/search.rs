//! The search: breadth first, so that the first way to anything is a shortest one, and each state is gone on from once.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::time::Instant;

use super::super::report::Violation;
use super::super::search::{Same, guarded};
use super::Options;
use crate::observe::Finding;

/// Something with states and steps.
pub(super) trait World: Clone {
    /// A step.
    type Move: Copy;

    /// All steps that may be made.
    fn moves(&self) -> Vec<Self::Move>;

    /// Makes one.
    fn step(&mut self, step: Self::Move);

    /// The hash that tells a state from others.
    fn hash(&self) -> u64;

    /// The violation that the last step made, if it made one.
    fn finding(&mut self) -> &mut Option<Finding>;

    /// A step, for people.
    fn describe(&self, step: Self::Move) -> String;

    /// Goes on from here with nothing more going wrong.
    fn close(&mut self);

    /// Does the same, and tells the steps on the way.
    fn trail(&mut self) -> Vec<String>;

    /// Whether this state shows that the search goes far enough to mean something.
    fn is_far(&self) -> bool;
}

/// The results of a search.
#[derive(Default)]
pub(super) struct Found {
    pub states: u64,
    pub transitions: u64,
    pub deepest: u32,
    /// Nothing was left to be gone on from.
    pub whole: bool,
    /// Everything within the depth was seen.
    pub complete: bool,
    pub closed: u64,
    pub far: u64,
    /// Most states that waited to be gone on from.
    pub widest: usize,
    pub seconds: f64,
    pub violations: Vec<Violation>,
}

/// The first way to a state: the state before, and the step. States that can be told apart have one way each.
struct Way<M> {
    from: u32,
    step: M,
}

/// The limits of a search.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    depth: u32,
    states: u64,
    close: u64,
    all: bool,
}

impl Limits {
    pub const fn of(options: &Options) -> Self {
        Self {
            depth: options.depth,
            states: options.states,
            close: options.close,
            all: options.all,
        }
    }
}

struct Search<W: World> {
    limits: Limits,
    first: W,
    seen: HashSet<u64, BuildHasherDefault<Same>>,
    ways: Vec<Option<Way<W::Move>>>,
    found: Found,
}

/// Searches from this state on.
pub(super) fn search<W: World>(first: W, limits: Limits) -> Found {
    let started = Instant::now();
    let mut search = Search {
        limits,
        first: first.clone(),
        seen: HashSet::default(),
        ways: Vec::new(),
        found: Found::default(),
    };
    search.run(first);
    search.found.states = search.ways.len() as u64;
    search.found.seconds = started.elapsed().as_secs_f64();
    search.found
}

impl<W: World> Search<W> {
    fn run(&mut self, first: W) {
        let mut layer = Vec::new();
        self.visit(first, None, &mut layer);
        for depth in 0..self.limits.depth {
            let mut next = Vec::new();
            for (from, state) in layer.drain(..) {
                for step in state.moves() {
                    let mut state = state.clone();
                    self.found.transitions += 1;
                    guarded(&mut state, |state| state.step(step), set);
                    self.visit(state, Some(Way { from, step }), &mut next);
                }
                let is_enough = !self.limits.all && !self.found.violations.is_empty();
                if is_enough || self.ways.len() as u64 >= self.limits.states {
                    self.found.deepest = depth + 1;
                    return;
                }
            }
            self.found.widest = self.found.widest.max(next.len());
            if next.is_empty() {
                (self.found.whole, self.found.complete) = (true, true);
                return;
            }
            self.found.deepest = depth + 1;
            layer = next;
        }
        self.found.complete = true;
    }

    /// Looks at a state, and keeps it if it is to be gone on from.
    fn visit(&mut self, mut state: W, way: Option<Way<W::Move>>, next: &mut Vec<(u32, W)>) {
        if let Some(finding) = state.finding().take() {
            return self.violated(finding, way);
        }
        let hash = state.hash();
        if !self.seen.insert(hash) {
            return;
        }
        let number = self.ways.len() as u32;
        self.ways.push(way);
        self.found.far += u64::from(state.is_far());
        if hash.is_multiple_of(self.limits.close) {
            self.found.closed += 1;
            let mut end = state.clone();
            guarded(&mut end, World::close, set);
            if let Some(finding) = end.finding().take() {
                self.note(finding, number, true);
            }
        }
        next.push((number, state));
    }

    fn violated(&mut self, finding: Finding, way: Option<Way<W::Move>>) {
        let number = self.ways.len() as u32;
        self.ways.push(way);
        self.note(finding, number, false);
        self.ways.pop();
    }

    /// Writes down the first finding of each property, and the way to it.
    fn note(&mut self, finding: Finding, number: u32, closes: bool) {
        let Finding { property, detail } = finding;
        let mut known = self.found.violations.iter();
        if known.any(|known| known.property == property) {
            return;
        }
        let path = self.path(number, closes);
        self.found.violations.push(Violation {
            property,
            detail,
            path,
        });
    }

    fn path(&self, mut number: u32, closes: bool) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some(way) = &self.ways[number as usize] {
            steps.push(way.step);
            number = way.from;
        }
        let mut state = self.first.clone();
        let mut path = Vec::new();
        for step in steps.into_iter().rev() {
            path.push(state.describe(step));
            guarded(&mut state, |state| state.step(step), set);
        }
        if closes {
            path.push("when nothing more goes wrong:".to_owned());
            path.extend(state.trail());
        }
        path
    }
}

fn set<W: World>(state: &mut W, finding: Finding) {
    state.finding().get_or_insert(finding);
}
