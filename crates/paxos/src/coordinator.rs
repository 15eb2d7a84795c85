//! The coordinator of a round: phase 1 once for all instances, then one proposal after the other.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;

use super::config::{AcceptorId, Config};
use super::promise::Promise;
use super::value::{Instance, Round, Value, Vote};
use rota_core::mutants::{self, Mutant};

/// The progress of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More promises have to come.
    Waiting,
    /// No majority of the acceptors is known to have all that is decided before [`Coordinator::from`]. Others that have
    /// it may promise; an acceptor that lacks it may learn it, and promise once more; or all are asked once more
    /// ([`Coordinator::ask_again`]).
    Behind,
    /// Values can be proposed.
    Begun,
}

/// The state of phase 1.
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
    /// The first instance of the round, and the first one behind those that had to be proposed again.
    start: Instance,
    again: Instance,
    /// Some acceptor has forgotten the values decided before this instance.
    kept: Instance,
    /// The first instance without a proposal.
    next: Instance,
    /// Proposals that were not decided in this round.
    open: VecDeque<Vote>,
}

impl Coordinator {
    /// The coordinator of this configuration. `decided`: the first instance whose decided value it does not know.
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

    /// The first instance of which acceptors are to tell their votes; `None` when the round has begun.
    pub fn from(&self) -> Option<Instance> {
        self.asking.as_ref().map(|asking| asking.from)
    }

    /// Whether the promise of an acceptor is missing, or was made while the acceptor lacked decided values: another one
    /// may help.
    pub fn lacks(&self, who: AcceptorId) -> bool {
        let lacks = |asking: &Asking| {
            let promise = asking.promises.get(&who);
            promise.is_none_or(|promise| promise.held < asking.from)
        };
        self.config.asks(who) && self.asking.as_ref().is_some_and(lacks)
    }

    /// Phase 1B: takes a promise. When enough have come the round begins, and values that may have been decided are
    /// proposed again.
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

    /// A configuration is known to be complete. A later one than this does not help: this round is over then, and need
    /// not begin.
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

    /// Asks for all promises once more, with all votes that a majority of the acceptors may lack. Many votes take long,
    /// so this is for coordinators that cannot tell others the decided values.
    pub fn ask_again(&mut self) {
        if let Some(asking) = &mut self.asking {
            asking.from = start(&self.config, asking).min(asking.from);
            asking.promises.clear();
        }
    }

    /// Phase 1 has ended: proposes for each instance the value of the highest round with a vote (Paxos' rule), and a
    /// skip for instances without votes.
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

    /// The first instance of the round, if the round has begun.
    pub fn start(&self) -> Option<Instance> {
        self.asking.is_none().then_some(self.start)
    }

    /// The instance before which everything is decided and some acceptor has forgotten the values. It goes with each
    /// proposal.
    pub fn kept(&self) -> Instance {
        self.kept
    }

    /// Whether a majority of these acceptors holds everything that was decided before the round, if it has voted in
    /// this round for all instances before `reached`. An acceptor holds forgotten instances if it knows that they are
    /// decided; if the round started behind the instances that a majority held, the majority knows that by a vote.
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

    /// A majority has voted in this round for everything before this instance. A decision alone is not enough: an
    /// acceptor votes for nothing before it has the first proposals of the round.
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

/// The instance at which the round has to start, so that a majority holds everything decided before. An acceptor that
/// has not promised, or is new, does not count as a holder. No round starts below the floor of an acceptor that has
/// promised: those instances are decided, and perhaps nobody knows the values.
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

/// The value to propose at `at`, and the first instance behind those that it is for.
fn choose(asking: &Asking, at: Instance, end: Instance) -> (Value, Instance) {
    let promises = || asking.promises.values();
    // A value that an acceptor holds is decided, in whatever round the acceptor has it.
    let vote = |promise: &'_ Promise| Some((promise.held > at, promise.at(at)?.clone()));
    let votes = promises().filter_map(vote);
    let best = if mutants::on(Mutant::N10) {
        votes.min_by_key(|(_, vote)| vote.round)
    } else {
        votes.max_by_key(|(is_held, vote)| (*is_held, vote.round))
    };
    let best = best.map(|(_, vote)| vote);
    // All promises tell the same up to there.
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
