//! The ways between the nodes of a script.

use std::collections::BTreeMap;

use rota_core::contract::{Session, Time};

use super::Event;
use super::host::{Answer, Arrival};

/// The time that a message takes, in nanoseconds.
const LATENCY: u64 = 100_000;
/// The time that a disk takes, in nanoseconds.
const DISK: u64 = 200_000;
/// The time after which a link is up, in nanoseconds.
const CONNECT: u64 = 1_000_000;

/// From one node to another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub from: usize,
    pub to: usize,
}

/// Which messages, and on which way.
struct Pattern {
    word: String,
    from: Option<usize>,
    to: Option<usize>,
}

impl Pattern {
    fn new(word: &str, way: &str) -> Self {
        let (from, to) = way.split_once('>').expect("FROM>TO");
        let end = |name: &str| (name != "*").then(|| super::index(name));
        Self {
            word: word.to_owned(),
            from: end(from),
            to: end(to),
        }
    }

    fn fits(&self, word: &str, way: Way) -> bool {
        self.word == word
            && self.from.is_none_or(|from| from == way.from)
            && self.to.is_none_or(|to| to == way.to)
    }
}

/// All that is under way.
#[derive(Default)]
pub struct Network {
    /// The parts it is in; none if it is whole.
    pub parts: Vec<Vec<usize>>,
    events: BTreeMap<(Time, u64), Event>,
    counter: u64,
    session: u64,
    lost: Vec<(u32, Pattern)>,
    held: Vec<Pattern>,
    holds: Vec<(Way, Arrival)>,
}

impl Network {
    pub fn reaches(&self, one: usize, other: usize) -> bool {
        let part_of = |node: usize| self.parts.iter().position(|part| part.contains(&node));
        self.parts.is_empty() || part_of(one) == part_of(other)
    }

    pub fn lose(&mut self, count: u32, what: &str, way: &str) {
        self.lost.push((count, Pattern::new(what, way)));
    }

    pub fn hold(&mut self, what: &str, way: &str) {
        self.held.push(Pattern::new(what, way));
    }

    pub fn release(&mut self, now: Time) {
        self.held.clear();
        for (way, arrival) in std::mem::take(&mut self.holds) {
            self.push(now.after(LATENCY), Event::Arrives(way, arrival));
        }
    }

    pub fn send(&mut self, now: Time, way: Way, word: &str, arrival: Arrival) {
        let lost = self.lost.iter_mut();
        let mut lost = lost.filter(|(left, pattern)| *left > 0 && pattern.fits(word, way));
        if let Some((left, _)) = lost.next() {
            *left -= 1;
        } else if self.held.iter().any(|pattern| pattern.fits(word, way)) {
            self.holds.push((way, arrival));
        } else {
            self.push(now.after(LATENCY), Event::Arrives(way, arrival));
        }
    }

    pub fn answer(&mut self, now: Time, (at, life): (usize, u64), answer: Answer) {
        self.push(now.after(DISK), Event::Answers(at, life, answer));
    }

    pub fn connect(&mut self, now: Time, one: usize, other: usize) {
        if one != other {
            self.push(now.after(CONNECT), Event::Connects(one, other));
        }
    }

    pub const fn next_session(&mut self) -> Session {
        self.session += 1;
        Session(self.session)
    }

    fn push(&mut self, at: Time, event: Event) {
        self.counter += 1;
        self.events.insert((at, self.counter), event);
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn pop(&mut self) -> Event {
        self.events.pop_first().expect("something happens").1
    }
}
