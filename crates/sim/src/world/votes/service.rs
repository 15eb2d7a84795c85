//! The coordination service.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Input, Process};

use super::super::queue::What;
use super::super::{System, World};

/// A service that stores one value under each number.
#[derive(Default, Debug)]
pub struct Service {
    stored: BTreeMap<u64, Bytes>,
    questions: Vec<Question>,
    /// It neither hears nor answers until then.
    stops_until: u64,
}

/// A question of a process.
#[derive(Clone, Debug)]
struct Question {
    at: usize,
    process: Process,
    number: u64,
    wanted: Bytes,
}

impl Service {
    /// A question is on its way. Returns its place among all questions.
    fn ask(&mut self, question: Question) -> u32 {
        let place = self.questions.len() as u32;
        self.questions.push(question);
        place
    }

    /// Gets to a question: the first value stored under a number stays. Returns the question, with that value.
    fn store(&mut self, place: u32) -> Question {
        let mut question = self.questions[place as usize].clone();
        let stored = self.stored.entry(question.number);
        let stored = stored.or_insert_with(|| question.wanted.clone());
        question.wanted.clone_from(stored);
        question
    }

    /// The service stops until then.
    pub const fn stop(&mut self, until: u64) {
        self.stops_until = until;
    }

    const fn is_stopped(&self, now: u64) -> bool {
        self.stops_until > now
    }
}

impl<S: System> World<'_, S> {
    /// A process asks the service.
    pub(in crate::world) fn ask_service(&mut self, at: usize, number: u64, wanted: Bytes) {
        let Some(process) = self.hosts[at].life.as_ref().map(|life| life.process) else {
            return;
        };
        let service = self.plan.uring.as_ref().and_then(|uring| uring.service);
        let Some(service) = service else {
            return self.found("service", "asked where there is none");
        };
        let takes = self.votes.rng.spread(1, service.latency);
        let place = self.votes.service.ask(Question {
            at,
            process,
            number,
            wanted,
        });
        self.queue.push(self.now + takes, What::Serve(place));
    }

    /// The service gets to a question.
    pub(in crate::world) fn serve(&mut self, question: u32) {
        let healed = self.healed();
        let lost = self.plan.uring.as_ref().and_then(|uring| uring.service);
        let lost = lost.map_or(0, |service| service.lost);
        if !healed && self.votes.service.is_stopped(self.now) {
            self.tally.cover("questions_lost");
            return;
        }
        let Question {
            at,
            process,
            number,
            wanted: chosen,
        } = self.votes.service.store(question);
        if !healed && self.votes.rng.ppm(lost) {
            self.tally.cover("questions_lost");
            return;
        }
        let life = self.hosts[at].life.as_mut();
        if let Some(life) = life.filter(|life| life.process == process) {
            life.inputs.push_back(Input::Arbitrated { number, chosen });
            self.tally.cover("questions_answered");
            self.wake_now(at);
        }
    }
}
