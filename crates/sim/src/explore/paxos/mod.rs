//! All schedules of the consensus that Ring Paxos and U-Ring Paxos have in common, up to a depth or to the end.
//!
//! The machines are those of `rota_paxos`, wired together as the engines do it; nothing of them is modelled once more.
//! A state is, for each node, its disk, the effects that wait for the disk, its acceptor, learner and perhaps
//! coordinator; and all messages ever sent. From each state the search makes every step that may happen (`moves.rs` has
//! the list). A ledger has what was proposed, voted for and decided, whoever knows it, and judges each step by that
//! (`ledger.rs`, `judge.rs`).
//!
//! # What is not enumerated, and why that loses nothing
//!
//! * **Messages stay.** Proposals, and the word of an acceptor how far it has voted, may arrive at any later time, any
//!   number of times, in any order, or never. So losses, repetitions and delays of these need no steps of their own,
//!   and a node that is down is one to which nothing comes.
//! * **Promises and answers** are told in the step in which they are made, as the steps that their receiver takes of
//!   itself with them are independent of others. Promises and answers that come later than messages sent after them are
//!   counted ([`Budget::late`]). A promise that is lost only takes steps away: its acceptor votes in no earlier round.
//! * **A learner** takes from votes only how far a majority has voted, so it hears of all acceptors at once, up to the
//!   end of any proposal, and a hearing from which it learns nothing is no step.
//! * **A configuration** is chosen in one step, by an arbiter that cannot err ([`register`] is searched by itself).
//! * **Nodes to which nothing has happened**, and which cannot coordinate, are as good as each other.
//! * **A disk** is the records that a reader finds: votes by instance, the highest promise, the place of the trim.
//!
//! [`PROPERTIES`] lists the checks. States are told apart by a hash of 64 bits: of `n` states, two have one hash with a
//! probability of about `n² / 2⁶⁵`, and the search then does not look at the steps from one of the two.

mod close;
mod describe;
mod judge;
mod lead;
mod ledger;
mod moves;
mod node;
pub mod register;
mod report;
mod search;
mod state;
mod step;
mod story;

use std::rc::Rc;

use rota_core::mutants::Mutant;

pub use report::Report;
pub use story::Start;

use state::State;

/// The properties that hold in all states, and their meanings.
pub const PROPERTIES: [(&str, &str); 11] = [
    (
        "agreement",
        "no instance is decided as two values: durable votes of a majority, in one round",
    ),
    ("round", "what is voted for was proposed in its round"),
    (
        "learnt",
        "a learner takes only what is decided, and as that",
    ),
    ("log", "what an acceptor has learnt it can hand out"),
    (
        "held",
        "who says in a promise that it holds all before an instance has it on disk",
    ),
    (
        "held-round",
        "and with a round that is no lower than the first that decided it (a lemma)",
    ),
    (
        "proposal",
        "what is decided is proposed in all later rounds, if anything is (a lemma)",
    ),
    (
        "complete",
        "of a complete configuration a majority has all that earlier rounds decided",
    ),
    (
        "trimmed",
        "no round starts before what somebody who was asked has forgotten",
    ),
    (
        "wait",
        "who lacks something that it knows to be decided asks for it",
    ),
    (
        "silence",
        "when nothing more goes wrong, everybody learns all that is decided, and something new",
    ),
];

/// The most times that each kind of event may happen on the way to a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Configurations after those of the start.
    pub stands: u8,
    /// Packets that are proposed.
    pub values: u8,
    /// Proposals of instances that carry nothing.
    pub skips: u8,
    /// Processes that are restarted.
    pub crashes: u8,
    /// Disks that are lost.
    pub disks: u8,
    /// Acceptors that forget what is far behind.
    pub trims: u8,
    /// Promises and answers that come late.
    pub late: u8,
    /// Acceptors that are added, or taken away.
    pub changes: u8,
    /// Nodes that hear a number of another cluster, as F2 in the review had it: the engines must not let that happen.
    pub foreign: u8,
}

/// The rules of a search, the same in all of its states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Acceptors of the first configuration.
    pub acceptors: usize,
    /// Nodes that are no acceptors at first.
    pub spares: usize,
    /// The number of nodes that may coordinate, the first ones.
    pub coordinators: usize,
    /// The most instances of one proposal of nothing.
    pub span: u8,
    /// A round begins with a value that says who is a member.
    pub members: bool,
    /// A disk write is a step of its own; otherwise records are durable at once.
    pub lazy: bool,
    /// Questions begin anywhere in what is missing; otherwise at its first instance. Answers always end anywhere.
    pub gaps: bool,
    /// Questions reach beyond what is known to be decided, as no engine's do.
    pub ahead: bool,
    /// Proposals of a round arrive in any order, and again; otherwise in the order of the round, once in a life.
    pub reorder: bool,
    /// Proposals of earlier rounds than a node knows of may arrive there; engines drop them.
    pub loose: bool,
    /// The questions and proposals of a coordinator take their time to its own acceptor, too; in the engines they do
    /// not.
    pub apart: bool,
    /// A coordinator may ask all acceptors once more, for more.
    pub ask_again: bool,
    /// The properties that are checked.
    pub checks: Checks,
}

/// Some of [`PROPERTIES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks(u16);

impl Checks {
    /// All of them.
    pub const ALL: Self = Self(u16::MAX);

    /// Adds one property.
    ///
    /// # Errors
    /// No property has this name.
    pub fn with(self, property: &str) -> Result<Self, String> {
        let at = PROPERTIES.iter().position(|(name, _)| *name == property);
        let at = at.ok_or_else(|| format!("there is no property '{property}'"))?;
        Ok(Self(self.0 | 1 << at))
    }

    /// Only these properties.
    ///
    /// # Errors
    /// One of these names is no property's.
    pub fn only<'a>(properties: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = properties.into_iter();
        all.try_fold(Self(0), |checks, property| checks.with(property))
    }

    fn has(self, property: &str) -> bool {
        let mut names = PROPERTIES.iter().map(|(name, _)| *name);
        let at = names.position(|name| name == property);
        at.is_none_or(|at| self.0 & 1 << at != 0)
    }
}

/// The options of a search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The rules of the search, the same in all of its states.
    pub rules: Rules,
    /// The most times that each kind of event may happen.
    pub budget: Budget,
    /// The state that the search starts from.
    pub start: Start,
    /// Steps in a row, at most.
    pub depth: u32,
    /// Distinct states after which the search ends.
    pub states: u64,
    /// Of this number of states one is run on, to see whether all nodes learn everything.
    pub close: u64,
    /// Go on behind violations, for the shortest way to each property.
    pub all: bool,
    /// A protocol bug to put in, in builds that have them.
    pub mutant: Option<Mutant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules {
                acceptors: 3,
                spares: 0,
                coordinators: 2,
                span: 2,
                members: true,
                lazy: false,
                gaps: false,
                ahead: false,
                reorder: false,
                loose: false,
                apart: false,
                ask_again: true,
                checks: Checks::ALL,
            },
            budget: Budget {
                stands: 1,
                ..Budget::default()
            },
            start: Start::First,
            depth: 1000,
            states: 10_000_000,
            close: 64,
            all: false,
            mutant: None,
        }
    }
}

impl Options {
    /// Checks that a search with these options is possible.
    ///
    /// # Errors
    /// A line for people.
    pub fn check(&self) -> Result<(), String> {
        let rules = &self.rules;
        let nodes = rules.acceptors + rules.spares;
        if !(1..=5).contains(&rules.acceptors) || nodes > 6 {
            return Err("a search is of 1 to 5 acceptors, and 6 nodes".to_owned());
        }
        if nodes + usize::from(self.budget.disks) > 16 {
            return Err("a search has at most 16 disks".to_owned());
        }
        if !(1..=nodes).contains(&rules.coordinators) || !(1..=8).contains(&rules.span) {
            return Err("a node coordinates, and a proposal has 1 to 8 instances".to_owned());
        }
        if rules.acceptors < self.start.acceptors() {
            let (start, least) = (self.start.name(), self.start.acceptors());
            return Err(format!("the start '{start}' takes {least} acceptors"));
        }
        if self.close == 0 || self.states == 0 {
            return Err("at least one state has to be looked at".to_owned());
        }
        Ok(())
    }

    fn first(&self) -> State {
        let rules = Rc::new(self.rules);
        self.start.state(rules, self.budget)
    }
}

/// Searches all schedules, or as many as the options say.
pub fn explore(options: &Options) -> Report {
    #[cfg(feature = "mutants")]
    rota_core::mutants::set(options.mutant);
    let found = search::search(options.first(), search::Limits::of(options));
    #[cfg(feature = "mutants")]
    rota_core::mutants::set(None);
    Report::new(options, found)
}
