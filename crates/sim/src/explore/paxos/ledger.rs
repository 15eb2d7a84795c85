//! All that was said in each round, and the decisions, whoever knows them: each state is judged by these.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use rota_paxos::{AcceptorId, Config, Instance, Round, Value, Vote};

use super::super::search::Same;
use super::Checks;
use crate::observe::Finding;

/// Logs that are the same in many states, by hash.
pub(super) type Logs = HashMap<u64, Rc<Log>, BuildHasherDefault<Same>>;

/// The messages of a round: each may arrive at any time, any number of times, or never.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub config: Arc<Config>,
    /// The first instance of the round, when it has begun.
    pub start: Instance,
    pub kept: Instance,
    pub proposals: Vec<Vote>,
    /// By place in the configuration: the end of the votes that the acceptor has told of.
    pub told: Vec<Instance>,
    /// By instance: the acceptors with durable votes, as bits by store.
    cast: Vec<u16>,
    /// The hash of all this; 0 while it is being changed.
    hash: u64,
}

/// The value that an instance is decided as, and the lowest round in which a majority has voted for that value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Decided {
    pub value: Value,
    pub since: Round,
}

/// The rounds, the decisions, and the first condition that does not hold.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// The conditions that count.
    checks: Checks,
    /// By number, from 1.
    logs: Vec<Rc<Log>>,
    /// By instance.
    decided: Rc<Vec<Option<Decided>>>,
    finding: Option<Finding>,
}

impl Ledger {
    /// The first round, which has not begun.
    pub fn new(checks: Checks, first: Arc<Config>) -> Self {
        Self {
            checks,
            logs: vec![Rc::new(Log::new(first))],
            decided: Rc::default(),
            finding: None,
        }
    }

    /// The number of the newest round.
    pub const fn newest(&self) -> Round {
        self.logs.len() as Round
    }

    /// The configuration of the newest round.
    pub fn config(&self) -> &Arc<Config> {
        &self.log(self.newest()).config
    }

    /// All rounds, from the first on.
    pub fn logs(&self) -> impl Iterator<Item = &Log> {
        self.logs.iter().map(|log| &**log)
    }

    pub fn log(&self, round: Round) -> &Log {
        &self.logs[round as usize - 1]
    }

    /// A round, as it is now.
    pub fn copy(&self, round: Round) -> Rc<Log> {
        self.logs[round as usize - 1].clone()
    }

    /// The decision about an instance.
    pub fn decided(&self, instance: Instance) -> Option<&Decided> {
        self.decided.get(instance as usize)?.as_ref()
    }

    /// The instance behind the last one that is decided.
    pub fn end(&self) -> Instance {
        self.decided.len() as Instance
    }

    /// Whether decisions are of more rounds than one.
    pub fn is_of_several_rounds(&self) -> bool {
        let mut rounds = self.decided.iter().flatten().map(|known| known.since);
        let first = rounds.next();
        rounds.any(|round| Some(round) != first)
    }

    /// A configuration is chosen: its round may begin.
    pub fn open(&mut self, config: Arc<Config>) {
        self.logs.push(Rc::new(Log::new(config)));
    }

    /// A round begins.
    pub fn begin(&mut self, round: Round, start: Instance, kept: Instance) {
        if start < kept {
            let detail = format!("round {round} starts at {start}; all before {kept} is forgotten");
            self.found("trimmed", detail);
        }
        let log = self.log_mut(round);
        (log.start, log.kept) = (start, kept);
    }

    /// A proposal is on its way, from now on. Returns its place among those of its round.
    pub fn propose(&mut self, vote: Vote) -> usize {
        let (round, instances) = (vote.round, vote.first..vote.end());
        self.log_mut(round).proposals.push(vote);
        for instance in instances {
            self.check_proposal(round, instance);
        }
        self.log(round).proposals.len() - 1
    }

    /// An acceptor tells of its votes in a round: that message is on its way from now on.
    pub fn tell(&mut self, who: AcceptorId, round: Round, next: Instance) {
        if round == 0 || round > self.newest() {
            return;
        }
        if let Some(place) = self.log(round).config.place(who)
            && self.log(round).told[place] < next
        {
            self.log_mut(round).told[place] = next;
        }
    }

    /// Notes that an acceptor has a durable vote for an instance. Returns whether a majority has one now.
    pub(super) fn note_cast(&mut self, who: &AcceptorId, round: Round, instance: Instance) -> bool {
        let cast = &mut self.log_mut(round).cast;
        if cast.len() <= instance as usize {
            cast.resize(instance as usize + 1, 0);
        }
        cast[instance as usize] |= bit(who);
        self.log(round).is_decided(instance)
    }

    /// Notes a decision.
    pub(super) fn note_decided(&mut self, instance: Instance, known: Decided) {
        let decided = Rc::make_mut(&mut self.decided);
        if decided.len() <= instance as usize {
            decided.resize(instance as usize + 1, None);
        }
        decided[instance as usize] = Some(known);
    }

    /// A condition does not hold.
    pub fn found(&mut self, property: &str, detail: String) {
        if self.checks.has(property) {
            self.finding
                .get_or_insert_with(|| Finding::new(property, detail));
        }
    }

    /// The first condition that does not hold.
    pub const fn finding(&mut self) -> &mut Option<Finding> {
        &mut self.finding
    }

    /// Whether some condition does not hold.
    pub const fn is_violated(&self) -> bool {
        self.finding.is_some()
    }

    /// Keeps logs that are the same in many states once.
    pub fn share(&mut self, shared: &mut Logs) {
        for log in &mut self.logs {
            if log.hash == 0 {
                Rc::make_mut(log).seal();
                let known = shared.entry(log.hash);
                *log = known.or_insert_with(|| log.clone()).clone();
            }
        }
    }

    fn log_mut(&mut self, round: Round) -> &mut Log {
        let log = Rc::make_mut(&mut self.logs[round as usize - 1]);
        log.hash = 0;
        log
    }
}

/// Decisions follow from votes, so two ledgers with the same rounds are the same.
impl Hash for Ledger {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for log in &self.logs {
            log.hash.hash(hasher);
        }
    }
}

impl Log {
    fn new(config: Arc<Config>) -> Self {
        Self {
            told: vec![0; config.acceptors.len()],
            config,
            start: 0,
            kept: 1,
            proposals: Vec::new(),
            cast: Vec::new(),
            hash: 0,
        }
    }

    /// Brings the hash up to date.
    fn seal(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.config, self.start, self.kept).hash(&mut hasher);
        (&self.proposals, &self.told, &self.cast).hash(&mut hasher);
        self.hash = hasher.finish().max(1);
    }

    /// The proposal for an instance.
    pub fn at(&self, instance: Instance) -> Option<&Vote> {
        let mut proposals = self.proposals.iter();
        proposals.find(|vote| (vote.first..vote.end()).contains(&instance))
    }

    /// Whether a majority of the acceptors has durable votes for an instance.
    fn is_decided(&self, instance: Instance) -> bool {
        let cast = self.cast.get(instance as usize).copied().unwrap_or(0);
        let voters = self.config.acceptors.iter();
        voters.filter(|who| cast & bit(who) != 0).count() >= self.config.majority()
    }
}

/// The bit of a store.
const fn bit(who: &AcceptorId) -> u16 {
    1 << who.store
}

/// Whether two values say the same of an instance.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::Skip(_), Value::Skip(_))) || one == other
}

/// A value, for people.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Skip(_) => "nothing".to_owned(),
        Value::Members(number, _) => format!("members of {number}"),
        Value::Packet { id, .. } => format!("packet {}", id.counter),
    }
}
