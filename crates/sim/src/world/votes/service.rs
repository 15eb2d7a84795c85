//! The coordination service.

use bytes::Bytes;
use rota_core::contract::Input;

use super::super::queue::What;
use super::super::{System, World};
use super::Question;

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
        let question = Question {
            at,
            process,
            number,
            wanted,
        };
        let place = self.votes.questions.len() as u32;
        self.votes.questions.push(question);
        self.queue.push(self.now + takes, What::Serve(place));
    }

    /// The service gets to a question: the first value stored under a number stays.
    pub(in crate::world) fn serve(&mut self, question: u32) {
        let healed = self.healed();
        let lost = self.plan.uring.as_ref().and_then(|uring| uring.service);
        let lost = lost.map_or(0, |service| service.lost);
        if !healed && self.votes.service_stops > self.now {
            self.tally.cover("questions_lost");
            return;
        }
        let Question {
            at,
            process,
            number,
            ref wanted,
        } = self.votes.questions[question as usize];
        let chosen = self
            .votes
            .stored
            .entry(number)
            .or_insert_with(|| wanted.clone())
            .clone();
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
