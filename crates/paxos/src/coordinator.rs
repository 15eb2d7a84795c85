//! The coordinator of a round: phase 1 once for all instances, then one proposal after the other.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;

use super::config::{AcceptorId, Config};
use super::promise::Promise;
use super::value::{Instance, Round, Value, Vote};
use rota_core::mutants::{self, Mutant};

/// Where a round is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More promises have to come.
    Waiting,
    /// No majority of the acceptors is known to have all that is decided before [`Coordinator::from`]. Others may promise,
    /// who have it; who lacks it may learn it, and promise once more; or all are asked once more
    /// ([`Coordinator::ask_again`]).
    Behind,
    /// Values can be proposed.
    Begun,
}

/// What is known while phase 1 goes on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asking {
    from: Instance,
    promises: BTreeMap<AcceptorId, Promise>,
}

/// The machine of one round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Coordinator {
    config: Arc<Config>,
    asking: Option<Asking>,
    /// This configuration, or an earlier one, is complete: sets before it need not be asked.
    complete: Round,
    /// Where the round starts, and the first instance behind what had to be proposed again.
    start: Instance,
    again: Instance,
    /// Somebody has forgotten what was decided before this instance.
    kept: Instance,
    /// The first instance without a proposal.
    next: Instance,
    /// Proposals that were not decided in this round.
    open: VecDeque<Vote>,
}

impl Coordinator {
    /// Of the round of this configuration. `decided`: the first instance of which it does not know what was decided.
    pub fn new(config: Arc<Config>, decided: Instance) -> Self {
        Self {
            config,
            asking: Some(Asking {
                from: decided,
                promises: BTreeMap::new(),
            }),
            complete: 0,
            start: 0,
            again: 0,
            kept: 1,
            next: 0,
            open: VecDeque::new(),
        }
    }

    /// Its round.
    pub fn round(&self) -> Round {
        self.config.number
    }

    /// From which instance on acceptors are to tell their votes; `None` when the round has begun.
    pub fn from(&self) -> Option<Instance> {
        self.asking.as_ref().map(|asking| asking.from)
    }

    /// Whose promise is missing, or was made while it lacked what is decided: another one may help.
    pub fn lacks(&self, who: AcceptorId) -> bool {
        let lacks = |asking: &Asking| {
            let promise = asking.promises.get(&who);
            promise.is_none_or(|promise| promise.held < asking.from)
        };
        self.config.asks(who) && self.asking.as_ref().is_some_and(lacks)
    }

    /// Phase 1B. When enough have come the round begins: what may have been decided is proposed again.
    pub fn on_promise(&mut self, promise: Promise) -> Progress {
        let Some(asking) = &mut self.asking else {
            return Progress::Begun;
        };
        let fits = promise.round == self.config.number && promise.from == asking.from;
        if !fits || !promise.is_sound() || !self.config.asks(promise.acceptor) {
            return Progress::Waiting;
        }
        asking.promises.insert(promise.acceptor, promise);
        self.try_to_begin()
    }

    /// A configuration is known to be complete. If it is a later one than this this round is over, and has not to begin.
    pub fn on_complete(&mut self, number: Round) -> Progress {
        if number <= self.config.number || mutants::on(Mutant::N26) {
            self.complete = self.complete.max(number);
        }
        self.try_to_begin()
    }

    fn try_to_begin(&mut self) -> Progress {
        let Some(asking) = &mut self.asking else {
            return Progress::Begun;
        };
        if !is_enough(&self.config, self.complete, asking) {
            return Progress::Waiting;
        }
        let start = start(&self.config, asking);
        if start < asking.from {
            return Progress::Behind;
        }
        self.begin(start);
        Progress::Begun
    }

    /// All promises are to be asked for once more, with all votes that a majority of the acceptors may lack. Where these
    /// are many that takes long, and so it is for coordinators that cannot tell others what was decided.
    pub fn ask_again(&mut self) {
        if let Some(asking) = &mut self.asking {
            asking.from = start(&self.config, asking).min(asking.from);
            asking.promises.clear();
        }
    }

    /// Phase 1 has ended: for each instance the value of the highest round that anybody voted in (Paxos' rule), and
    /// nothing where nobody did.
    fn begin(&mut self, start: Instance) {
        let Some(asking) = self.asking.take() else {
            return;
        };
        (self.start, self.next) = (start, start);
        self.kept = kept(&asking);
        let ends = asking.promises.values().map(Promise::end);
        let end = ends.max().unwrap_or(start).max(start);
        while self.next < end {
            let (value, upto) = choose(&asking, self.next, end);
            let vote = Vote {
                first: self.next,
                round: self.config.number,
                value,
            };
            debug_assert_eq!(vote.end(), upto);
            self.next = upto;
            self.open.push_back(vote);
        }
        let unknown = held(&self.config, &asking) < start && !mutants::on(Mutant::N25);
        self.again = end.max(start + u64::from(unknown));
    }

    /// Where the round starts, if it has begun.
    pub fn start(&self) -> Option<Instance> {
        self.asking.is_none().then_some(self.start)
    }

    /// Before this instance all is decided, and some acceptor has forgotten as what: it goes with each proposal.
    pub fn kept(&self) -> Instance {
        self.kept
    }

    /// Whether all that was decided before is with a majority of these acceptors, if that has voted in this round for all
    /// before `reached`. What somebody has forgotten is with those who know that it is decided, and where the round started behind
    /// what a majority held it knows that by a vote.
    pub fn is_complete(&self, reached: Instance) -> bool {
        self.asking.is_none() && (reached >= self.again || mutants::on(Mutant::N09))
    }

    /// Proposes a value in the next instance: phase 2A. `None` if the round has not begun.
    pub fn propose(&mut self, value: Value) -> Option<&Vote> {
        if self.asking.is_some() {
            return None;
        }
        let vote = Vote {
            first: self.next,
            round: self.config.number,
            value,
        };
        self.next = vote.end();
        self.open.push_back(vote);
        self.open.back()
    }

    /// Proposals that were not decided in this round, in order.
    pub fn open(&self) -> &VecDeque<Vote> {
        &self.open
    }

    /// The first instance without a proposal.
    pub fn next(&self) -> Instance {
        self.next
    }

    /// A majority has voted in this round for everything before this instance. That it is decided is not enough: an
    /// acceptor votes for nothing before it has what the round starts with.
    pub fn on_reached(&mut self, reached: Instance) {
        while self.open.front().is_some_and(|vote| vote.end() <= reached) {
            self.open.pop_front();
        }
    }
}

fn is_enough(config: &Config, complete: Round, asking: &Asking) -> bool {
    if mutants::on(Mutant::N06) {
        return asking.promises.len() >= config.majority().max(2) - 1;
    }
    if mutants::on(Mutant::N07) {
        let has = |who: &&AcceptorId| asking.promises.contains_key(*who);
        return config.acceptors.iter().filter(has).count() >= config.majority();
    }
    config.may_begin(complete, |who| asking.promises.contains_key(who))
}

/// Where the round has to start, so that a majority has what was decided before: an acceptor that was not there, or is new,
/// is not counted on for that. Not before what anybody has forgotten, which is decided: nobody may know as what.
fn start(config: &Config, asking: &Asking) -> Instance {
    if mutants::on(Mutant::N08) {
        return asking.from;
    }
    let start = held(config, asking).min(asking.from).max(1);
    if mutants::on(Mutant::N15) {
        return start;
    }
    start.max(kept(asking))
}

/// Before this instance a majority of the acceptors holds everything.
fn held(config: &Config, asking: &Asking) -> Instance {
    let held = |who: AcceptorId| asking.promises.get(&who).map_or(1, |promise| promise.held);
    config.reached_by_majority(held)
}

fn kept(asking: &Asking) -> Instance {
    let kept = asking.promises.values().map(|promise| promise.kept);
    kept.max().unwrap_or(1)
}

/// What has to be proposed at `at`, and up to where that is so.
fn choose(asking: &Asking, at: Instance, end: Instance) -> (Value, Instance) {
    let promises = || asking.promises.values();
    // What an acceptor holds is decided, in whatever round it has it.
    let vote = |promise: &'_ Promise| Some((promise.held > at, promise.at(at)?.clone()));
    let votes = promises().filter_map(vote);
    let best = if mutants::on(Mutant::N10) {
        votes.min_by_key(|(_, vote)| vote.round)
    } else {
        votes.max_by_key(|(is_held, vote)| (*is_held, vote.round))
    };
    let best = best.map(|(_, vote)| vote);
    // Up to there all that was told is the same.
    let ends = promises()
        .filter_map(|promise| promise.at(at))
        .map(Vote::end);
    let begins = promises().filter_map(|promise| promise.begins_after(at));
    let upto = ends.chain(begins).min().unwrap_or(end).min(end);
    let part = best.and_then(|vote| vote.part(at, upto));
    let value = part.map_or(Value::Skip(upto - at), |vote| vote.value);
    (value, upto)
}

impl Coordinator {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.complete <= self.config.number,
            "no later configuration is known"
        );
        let Some(asking) = &self.asking else {
            assert!(self.start >= 1, "a round starts somewhere");
            assert!(self.next >= self.start, "nothing is proposed before it");
            assert!(
                self.kept <= self.start,
                "a round starts behind what is forgotten"
            );
            let first = self.open.front();
            assert!(
                first.is_none_or(|vote| vote.first >= self.start),
                "no proposal is before the start"
            );
            let last = self.open.back();
            assert!(
                last.is_none_or(|vote| vote.end() == self.next),
                "proposals have no gap"
            );
            assert!(
                last.is_none_or(|vote| vote.round == self.config.number),
                "proposals are of the round"
            );
            return;
        };
        assert!(asking.from >= 1, "instances count from 1");
        assert!(self.open.is_empty(), "nothing is proposed in phase 1");
        assert!(
            asking.promises.keys().all(|who| self.config.asks(*who)),
            "promises are of those who are asked"
        );
    }
}
