//! The acceptor's part of phase 1: it promises, and if it lacks what is decided it learns that and promises once more.
//!
//! A round starts where a majority of the acceptors has everything before. Who was restarted without its votes lacks all
//! of it; were the round to start there, everybody would have to tell, and propose, the whole history again before
//! anything new is ordered. So a coordinator with enough promises waits for others that begin later, or for those who
//! lack something to fetch it, which goes beside whatever else is said.

use super::disk::Effect;
use super::engine::URing;
use super::word::Word;
use crate::contract::Process;
use crate::mutants::{self, Mutant};
use crate::paxos::{Instance, Round};

/// What an acceptor lacked when it promised.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// To whom, and for which round.
    coordinator: Process,
    round: Round,
    /// All before this is decided.
    pub(super) upto: Instance,
}

impl URing {
    /// Phase 1A. `from`: all before is decided, and the coordinator knows as what.
    pub(super) fn on_prepare(&mut self, process: Process, round: Round, from: Instance) {
        let Some(config) = &self.config else {
            return;
        };
        if round < config.number {
            let known = Word::Known(config.clone());
            return self.say(process.node, known);
        }
        let is_asked = round == config.number
            && config.coordinator == process
            && self.votes()
            && config.asks(self.acceptor.id());
        if !is_asked || from == 0 {
            return;
        }
        self.promise(process, round, from);
        // It may have begun meanwhile, with the promises of others.
        let lacks = from > self.learner.next() && self.learner.round() < round;
        self.lack = lacks.then_some(Lack {
            coordinator: process,
            round,
            upto: from,
        });
        if lacks {
            self.learner.end_round(from);
            self.fetching.seek_again();
            self.ask_first(process.node);
        }
    }

    fn promise(&mut self, to: Process, round: Round, from: Instance) {
        let held = self.learner.next();
        if !mutants::on(Mutant::N18) {
            self.hold(held);
        }
        if let Ok(promise) = self.acceptor.prepare(round, from, held) {
            self.when_durable(Effect::Promise(to.node, promise), Mutant::U01);
        }
    }

    /// When it has learnt what it lacked it promises once more, unless the round has begun with others: then it would tell
    /// all that it has voted for since.
    pub(super) fn promise_again(&mut self) {
        let (next, round) = (self.learner.next(), self.learner.round());
        if !mutants::on(Mutant::U41) {
            self.lack.take_if(|lack| round >= lack.round);
        }
        let Some(lack) = self.lack.take_if(|lack| next >= lack.upto) else {
            return;
        };
        if self.votes() && !mutants::on(Mutant::U36) {
            self.promise(lack.coordinator, lack.round, lack.upto);
        }
    }
}
