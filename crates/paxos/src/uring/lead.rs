//! The coordinator's part: phase 1, then one proposal after the other.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::vote_bytes;
use super::snapshot::Snapshot;
use crate::{
    AcceptorId, Config, Coordinator, Instance, Progress, Promise, Proposers, Round, Value, ValueId,
    Vote,
};
use rota_core::contract::{NodeId, Time};
use rota_core::mutants::{self, Mutant};

/// The most instances that are skipped at once.
const MOST_SKIPPED: u64 = 1 << 30;

/// The most bytes that are kept of one acceptor's promise.
const MOST_PROMISE: usize = 1 << 30;

/// The coordinator of a round: the core's machine, and the state beside it.
#[derive(Debug)]
pub struct RoundCoordinator {
    machine: Coordinator,
    /// The table of counted values for the time when all proposals are decided; `None` until that is known.
    admits: Option<Proposers>,
    /// Promises of which more parts have to come, and the bytes of their votes.
    parts: BTreeMap<AcceptorId, (Promise, usize)>,
    /// By acceptor: the instance before which it holds everything, and the most that it has told with that.
    told: BTreeMap<AcceptorId, (Instance, u64)>,
    /// The first instance without the votes of a majority.
    reached: Instance,
    /// The time at which that last grew, or at which no proposal waited for votes.
    moved: Time,
}

impl RoundCoordinator {
    /// The coordinator of this configuration. `decided`: the decided values of all instances before are known;
    /// `complete`: the newest configuration known to be complete.
    pub fn new(config: Arc<Config>, decided: Instance, complete: Round, now: Time) -> Self {
        let mut machine = Coordinator::new(config, decided);
        machine.on_complete(complete);
        Self {
            machine,
            admits: None,
            parts: BTreeMap::new(),
            told: BTreeMap::new(),
            reached: 0,
            moved: now,
        }
    }

    /// A majority has voted for everything before `reached`. Returns whether the configuration is complete with that.
    pub fn on_reached(&mut self, reached: Instance, now: Time) -> bool {
        let waits = reached < self.machine.next();
        if reached > self.reached || !waits {
            (self.reached, self.moved) = (reached, now);
        }
        if self.knows_what_counts() {
            self.machine.on_reached(reached);
        }
        self.machine.is_complete(reached)
    }

    /// The time since which a majority has voted for no further proposal; `None` if no proposal waits.
    pub fn waits_since(&self) -> Option<Time> {
        let begun = self.machine.start().is_some();
        (begun && self.reached < self.machine.next()).then_some(self.moved)
    }

    /// Whether it is known which values count. Until then the open proposals are kept, as they say so.
    pub const fn knows_what_counts(&self) -> bool {
        self.admits.is_some()
    }

    /// The table of counted values for the time when all proposals are decided, if that is known.
    pub const fn table(&self) -> Option<&Proposers> {
        self.admits.as_ref()
    }

    /// Forgets the promises that a node has told in part: the link is another one.
    pub fn forget_parts(&mut self, node: NodeId) {
        self.parts.retain(|who, _| who.node != node);
    }

    /// Phase 1A: the round for which promises are asked, and the first instance that they tell of; `None` if none are
    /// asked.
    pub fn asks(&self) -> Option<(Round, Instance)> {
        let from = self.machine.from()?;
        Some((self.machine.round(), from))
    }

    /// The nodes whose promises may help the round to begin.
    pub fn unpromised(&self, config: &Config) -> Vec<NodeId> {
        let prior = config.prior.iter().map(|set| &set.acceptors);
        let sets = prior.chain([&config.acceptors]);
        let asked = sets.flatten().filter(|who| self.machine.lacks(**who));
        let mut asked: Vec<NodeId> = asked.map(|who| who.node).collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Whether phase 1 has ended.
    pub fn has_begun(&self) -> bool {
        self.machine.start().is_some()
    }

    /// Phase 1B: takes a promise, or a part of one. Returns what follows, and the amount of it that was never told
    /// before.
    pub fn on_promise(&mut self, part: Promise, more: bool) -> (Progress, u64) {
        let who = part.acceptor;
        if part.round != self.machine.round() || !self.machine.lacks(who) {
            return (Progress::Waiting, 0);
        }
        let Some((whole, bytes)) = self.assemble(part) else {
            return (Progress::Waiting, 0);
        };
        let news = self.news(&whole);
        if more && !mutants::on(Mutant::U23) {
            self.parts.insert(who, (whole, bytes));
            return (Progress::Waiting, news);
        }
        (self.machine.on_promise(whole), news)
    }

    /// The amount that this acceptor has told beyond its most before: votes that it tells again, over a link that comes
    /// and goes, bring the round no nearer.
    fn news(&mut self, whole: &Promise) -> u64 {
        let told = 1 + whole.votes.len() as u64;
        let most = self.told.entry(whole.acceptor).or_default();
        if whole.held > most.0 || mutants::on(Mutant::U112) {
            *most = (whole.held, 0);
        }
        let before = most.1;
        most.1 = before.max(told);
        told.saturating_sub(before)
    }

    /// This is the newest configuration known to be complete: fewer acceptors may have to be asked. Returns what
    /// follows.
    pub fn on_complete(&mut self, complete: Round) -> Progress {
        match self.has_begun() {
            true => Progress::Waiting,
            false => self.machine.on_complete(complete),
        }
    }

    /// The mutant: all promises are asked for once more.
    pub fn ask_again(&mut self) {
        self.parts.clear();
        self.machine.ask_again();
    }

    /// Phase 1 has ended: the first instance of the round, and the one before which values are forgotten.
    pub fn begin(&mut self) -> Option<(Instance, Instance)> {
        self.parts.clear();
        Some((self.machine.start()?, self.machine.kept()))
    }

    /// The first proposals of the round: the values that may have been decided in earlier ones, and the members from
    /// here on.
    pub fn open(&mut self, config: &Config) -> Vec<Vote> {
        let members = Value::Members(config.number, config.ring.clone().into());
        if !mutants::on(Mutant::U21) {
            self.machine.propose(members);
        }
        self.machine.open().iter().cloned().collect()
    }

    /// When everything before the round is learnt, it is known which values count behind its open proposals. `learnt`:
    /// the snapshot of everything learnt.
    pub fn admit(&mut self, learnt: &Snapshot) {
        let next = learnt.next;
        let begun = self.machine.start().is_some_and(|start| next >= start);
        if self.admits.is_some() || !begun {
            return;
        }
        let mut table = learnt.table.clone();
        for vote in self.machine.open() {
            match &vote.value {
                _ if vote.first < next => {}
                Value::Packet { id, .. } => {
                    table.take(*id);
                }
                Value::Members(number, members) => {
                    table.install(*number, members);
                }
                Value::Skip(_) => {}
            }
        }
        self.admits = Some(table);
    }

    /// The first instance without a proposal; `None` while nothing may be proposed.
    pub fn proposed(&self) -> Option<Instance> {
        self.knows_what_counts().then(|| self.machine.next())
    }

    /// Proposes a value if it is the next of its proposer. Otherwise forgets it, and returns whether it comes too
    /// early.
    pub fn propose(&mut self, id: ValueId, frame: Option<Bytes>) -> Result<Option<Vote>, bool> {
        let Some(table) = self.admits.as_mut() else {
            return Ok(None);
        };
        let admitted = table.admits(id) || mutants::on(Mutant::U07);
        if let Some(frame) = frame.filter(|_| admitted) {
            table.take(id);
            let value = Value::Packet { id, frame };
            return Ok(self.machine.propose(value).cloned());
        }
        Err(table.last(id.process).is_some_and(|last| id.counter > last))
    }

    /// Proposes a skip of all instances before `next` that have no proposal, at most `MOST_SKIPPED` at once.
    pub fn skip_to(&mut self, next: Instance) -> Option<Vote> {
        let count = match mutants::on(Mutant::U93) {
            true => next,
            false => next.saturating_sub(self.machine.next()).min(MOST_SKIPPED),
        };
        let skip = (count > 0).then_some(Value::Skip(count))?;
        self.machine.propose(skip).cloned()
    }

    /// The promise as far as it has come with this part, and its bytes; `None` if they are too many.
    fn assemble(&mut self, part: Promise) -> Option<(Promise, usize)> {
        let bytes: usize = part.votes.iter().map(vote_bytes).sum();
        let (whole, bytes) = match self.parts.remove(&part.acceptor) {
            Some((mut first, before)) if goes_on(&first, &part) => {
                first.votes.extend(part.votes);
                (first, before + bytes)
            }
            _ => (part, bytes),
        };
        (bytes <= MOST_PROMISE).then_some((whole, bytes))
    }
}

/// Whether this is the next part of that promise, and not the beginning of another that was made later.
fn goes_on(first: &Promise, part: &Promise) -> bool {
    let head = |promise: &Promise| (promise.round, promise.from, promise.held, promise.kept);
    let ends = first.votes.last().map_or(0, Vote::end);
    let begins = part.votes.first().map_or(u64::MAX, |vote| vote.first);
    head(first) == head(part) && ends <= begins
}

impl RoundCoordinator {
    /// Its invariants.
    pub fn check(&self) {
        self.machine.check();
        assert!(
            self.admits.is_none() || self.has_begun(),
            "nothing is proposed before the round has begun"
        );
        assert!(
            self.parts.is_empty() || !self.has_begun(),
            "no promise is waited for then"
        );
        if let Some(table) = &self.admits {
            table.check();
        }
    }
}
