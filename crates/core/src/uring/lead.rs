//! The coordinator's part: phase 1, then one proposal after the other.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::codec::vote_bytes;
use super::engine::URing;
use super::word::Word;
use crate::contract::{NodeId, Time};
use crate::mutants::{self, Mutant};
use crate::paxos::{
    AcceptorId, Config, Coordinator, Instance, Progress, Promise, Proposers, Round, Value, ValueId,
    Verdict, Vote,
};

/// So many instances are skipped at once.
const MOST_SKIPPED: u64 = 1 << 30;

/// What is kept of one acceptor's promise, in bytes.
const MOST_PROMISE: usize = 1 << 30;

/// What the coordinator of a round has beside the core's machine.
#[derive(Debug)]
pub struct Leading {
    pub machine: Coordinator,
    /// What counts when everything is decided that was proposed; `None` until that is known.
    admits: Option<Proposers>,
    /// Promises of which more parts have to come, and what their votes take, in bytes.
    parts: BTreeMap<AcceptorId, (Promise, usize)>,
    /// A majority has voted for all before this instance,
    reached: Instance,
    /// since then, or nothing was proposed that is not voted for.
    moved: Time,
}

impl Leading {
    pub fn new(config: Arc<Config>, decided: u64, now: Time) -> Self {
        Self {
            machine: Coordinator::new(config, decided),
            admits: None,
            parts: BTreeMap::new(),
            reached: 0,
            moved: now,
        }
    }

    /// How far a majority has voted.
    pub fn on_reached(&mut self, reached: Instance, now: Time) {
        let waits = reached < self.machine.next();
        if reached > self.reached || !waits {
            (self.reached, self.moved) = (reached, now);
        }
    }

    /// Since when nothing is voted for that was proposed; `None` if nothing is to be.
    pub fn waits_since(&self) -> Option<Time> {
        let begun = self.machine.start().is_some();
        (begun && self.reached < self.machine.next()).then_some(self.moved)
    }

    /// Open proposals say what counts, until that is known.
    pub const fn knows_what_counts(&self) -> bool {
        self.admits.is_some()
    }

    /// What counts when everything is decided that was proposed, if that is known.
    pub const fn table(&self) -> Option<&Proposers> {
        self.admits.as_ref()
    }

    /// What the acceptors of a node have told in part is not gone on with: the link is another one.
    pub fn forget_parts(&mut self, node: NodeId) {
        self.parts.retain(|who, _| who.node != node);
    }

    /// The whole promise, when its last part has come.
    fn assemble(&mut self, part: Promise, more: bool) -> Option<Promise> {
        let who = part.acceptor;
        if !self.machine.lacks(who) {
            return None;
        }
        let bytes: usize = part.votes.iter().map(vote_bytes).sum();
        let (whole, bytes) = match self.parts.remove(&who) {
            Some((mut first, before)) if goes_on(&first, &part) => {
                first.votes.extend(part.votes);
                (first, before + bytes)
            }
            _ => (part, bytes),
        };
        if bytes > MOST_PROMISE {
            return None;
        }
        if more && !mutants::on(Mutant::U23) {
            self.parts.insert(who, (whole, bytes));
            return None;
        }
        Some(whole)
    }
}

/// Whether this is the next part of that promise, and not the beginning of another that was made later.
fn goes_on(first: &Promise, part: &Promise) -> bool {
    let head = |promise: &Promise| (promise.round, promise.from, promise.held, promise.kept);
    let ends = first.votes.last().map_or(0, Vote::end);
    let begins = part.votes.first().map_or(u64::MAX, |vote| vote.first);
    head(first) == head(part) && ends <= begins
}

impl URing {
    /// This process coordinates from here on, if the configuration says so.
    pub(super) fn begin_to_lead(&mut self, config: &Arc<Config>) {
        self.leading = None;
        if config.coordinator != self.me {
            return;
        }
        self.counters.uring_rounds_led += 1;
        let mut leading = Leading::new(config.clone(), self.learner.next(), self.now);
        leading.machine.on_complete(self.complete);
        self.leading = Some(leading);
        self.say_prepare(None);
    }

    /// Phase 1A: to one acceptor, or to all whose promise is missing.
    pub(super) fn say_prepare(&mut self, to: Option<NodeId>) {
        let Some(leading) = &self.leading else {
            return;
        };
        let Some(from) = leading.machine.from() else {
            return;
        };
        let word = Word::Prepare(leading.machine.round(), from);
        for node in self.unpromised() {
            if to.is_none_or(|to| to == node) {
                self.say(node, word.clone());
            }
        }
    }

    /// Whose promises may help a round that this process coordinates to begin.
    pub(super) fn unpromised(&self) -> Vec<NodeId> {
        let (Some(leading), Some(config)) = (&self.leading, &self.config) else {
            return Vec::new();
        };
        let prior = config.prior.iter().map(|set| &set.acceptors);
        let sets = prior.chain([&config.acceptors]);
        let asked = sets.flatten().filter(|who| leading.machine.lacks(**who));
        let mut asked: Vec<NodeId> = asked.map(|who| who.node).collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    pub(super) fn on_promise(&mut self, node: NodeId, part: Promise, more: bool) {
        let config = self.config.as_ref();
        let is_asked = config.is_some_and(|config| config.asks(part.acceptor));
        if part.acceptor.node != node || !is_asked {
            // Perhaps it was, for the configuration before.
            self.counters.uring_messages_stale += 1;
            return;
        }
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.machine.start().is_some() {
            return;
        }
        // A round takes as long to begin as there is something to tell, and as what was told for earlier ones takes to come.
        self.election.told += 1 + part.votes.len() as u64;
        self.election.moved = self.now;
        if part.round != leading.machine.round() {
            return;
        }
        let Some(promise) = leading.assemble(part, more) else {
            return;
        };
        let progress = leading.machine.on_promise(promise);
        self.on_progress(progress);
    }

    /// A configuration is known to be complete: fewer may have to be asked.
    pub(super) fn on_complete(&mut self, number: Round) {
        if number <= self.complete {
            return;
        }
        self.complete = number;
        if self.is_acceptor() && !mutants::on(Mutant::U44) {
            self.disk.put_complete(number);
        }
        self.look_again();
    }

    /// Something has changed for a round that has not begun.
    pub(super) fn look_again(&mut self) {
        let leading = self.leading.as_mut();
        if let Some(leading) = leading.filter(|leading| leading.machine.start().is_none()) {
            let progress = leading.machine.on_complete(self.complete);
            self.on_progress(progress);
        }
    }

    fn on_progress(&mut self, progress: Progress) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        match progress {
            Progress::Waiting => {}
            Progress::Behind if mutants::on(Mutant::U38) => {
                leading.parts.clear();
                leading.machine.ask_again();
                self.say_prepare(None);
            }
            // Who lacks something knows it, and asks for it.
            Progress::Behind => {}
            Progress::Begun => self.begin_round(),
        }
    }

    /// Phase 1 has ended: what may have been decided is proposed again, and who is a member from here on.
    fn begin_round(&mut self) {
        let (Some(leading), Some(config)) = (&mut self.leading, &self.config) else {
            return;
        };
        leading.parts.clear();
        let Some(start) = leading.machine.start() else {
            return;
        };
        self.round_start = (start, leading.machine.kept());
        self.learner.begin(config, start);
        self.fetching.seek_again();
        let members = Value::Members(config.number, config.ring.clone().into());
        if !mutants::on(Mutant::U21) {
            leading.machine.propose(members);
        }
        let votes: Vec<Vote> = leading.machine.open().iter().cloned().collect();
        for vote in votes {
            self.adopt(vote, true);
        }
    }

    /// Proposes what has come from proposers; each value that is the next of its own. Not more than the own disk has room for.
    pub(super) fn lead(&mut self) {
        self.try_to_admit();
        let mut room = match self.votes() && !mutants::on(Mutant::U89) {
            true => self.disk.room(),
            false => usize::MAX,
        };
        while room > 0
            && let Some(id) = self.next_value()
        {
            // How far those who are slow lag behind is known with each.
            if let Some(vote) = self.propose(id) {
                room = room.saturating_sub(vote_bytes(&vote));
                self.adopt(vote, false);
            }
        }
    }

    /// Proposes that all instances before one carry nothing that it has proposed nothing for, and at most so many at once; if this
    /// process may propose something.
    pub(super) fn skip_to(&mut self, next: Instance) -> bool {
        let Some(proposed) = self.proposed() else {
            return false;
        };
        let count = match mutants::on(Mutant::U93) {
            true => next,
            false => next.saturating_sub(proposed).min(MOST_SKIPPED),
        };
        let leading = self.leading.as_mut().filter(|_| count > 0);
        let vote = leading.and_then(|leading| leading.machine.propose(Value::Skip(count)).cloned());
        if let Some(vote) = vote {
            self.adopt(vote, true);
        }
        true
    }

    /// What is to be proposed next: nothing while there is no room for it at the own disk.
    fn next_value(&mut self) -> Option<ValueId> {
        if self.is_full() {
            return None;
        }
        let table = self.leading.as_ref()?.table()?;
        self.stream.as_mut()?.next_value(table)
    }

    /// Proposes a value if it is the next of its proposer; otherwise it is forgotten.
    fn propose(&mut self, id: ValueId) -> Option<Vote> {
        let leading = self.leading.as_mut()?;
        let table = leading.admits.as_mut()?;
        let frame = self.stream.as_mut()?.take_value(id);
        let admitted = table.admits(id) || mutants::on(Mutant::U07);
        if let Some(frame) = frame.filter(|_| admitted) {
            table.take(id);
            let value = Value::Packet { id, frame };
            return leading.machine.propose(value).cloned();
        }
        if table.last(id.process).is_some_and(|last| id.counter > last) {
            self.counters.uring_values_early += 1;
        } else {
            self.counters.uring_values_late += 1;
        }
        None
    }

    /// When everything before the round is learnt, it is known what counts behind its open proposals.
    fn try_to_admit(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let next = self.learner.next();
        let begun = leading.machine.start().is_some_and(|start| next >= start);
        if leading.admits.is_some() || !begun {
            return;
        }
        let mut table = self.counted.table.clone();
        for vote in leading.machine.open() {
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
        leading.admits = Some(table);
    }

    /// The next proposal of this round, from its first instance on.
    pub(super) fn adopt_next(&mut self, first: Instance, (value, whole): (Value, bool)) {
        let round = self.number();
        let vote = Vote {
            first,
            round,
            value,
        };
        self.adopt(vote, whole);
    }

    /// A proposal of this round: voted for, learnt, and passed on.
    pub(super) fn adopt(&mut self, vote: Vote, whole: bool) {
        let (start, kept) = self.round_start;
        if self.votes() {
            // An earlier round is refused; then a word with a newer configuration is on its way.
            let verdict = self.acceptor.accept(start, kept, &vote);
            self.early |= verdict == Ok(Verdict::Early) && !mutants::on(Mutant::U50);
        }
        // Who votes has it anyway, and others ask those: were it forgotten by all, nobody could learn what is decided.
        let may_forget = !self.votes() || mutants::on(Mutant::U70);
        if !may_forget || self.learner.kept() < super::MOST_KEPT {
            self.learner.on_proposal(vote.clone());
        }
        if let Some(stream) = &mut self.stream {
            stream.propose(vote, whole);
        }
    }
}
