//! What is done for the engine by the disk and by a coordination service, and the answers: some at once, most by
//! threads beside the ring's.

use bytes::Bytes;
use rota_core::contract::{Input, LogId, LogRecord, PersistId, Status};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::Duration;

use super::acceptor::Acceptor;
use super::arbiter::Arbiter;
use super::durable::{Durable, Held, Reply};
use super::log_keeper::SLOW;
use super::log_thread::Use;

/// The outcome of a request of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is done, or will be.
    Yes,
    /// It has failed at once.
    Failed,
    /// This driver cannot carry it out.
    Unsupported,
}

/// Whether a send may leave that names a request for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaves {
    Now,
    /// When the request is durable.
    Later,
    /// The request has failed; the engine may not have heard of it yet.
    Never,
}

/// The requests under way, and the inputs that answer them.
#[derive(Debug)]
pub(super) struct Answers {
    durable: Durable,
    /// `None`: no coordination service is configured.
    arbiter: Option<Arbiter>,
    /// Inputs that arose while outputs were carried out, or that the threads have given.
    inputs: VecDeque<Input>,
}

impl Answers {
    pub(super) const fn new(durable: Durable, arbiter: Option<Arbiter>) -> Self {
        Self {
            durable,
            arbiter,
            inputs: VecDeque::new(),
        }
    }

    /// Makes records durable.
    pub(super) fn persist(&mut self, id: PersistId, records: &[LogRecord]) -> Taken {
        let (answer, taken) = match self.durable.request(id, records) {
            Reply::None => return Taken::Yes,
            Reply::Now(answer @ Input::PersistFailed { .. }) => (answer, Taken::Failed),
            Reply::Now(answer) => (answer, Taken::Yes),
            Reply::Unsupported(answer) => (answer, Taken::Unsupported),
        };
        self.inputs.push_back(answer);
        taken
    }

    /// Reads records.
    pub(super) fn fetch(&mut self, log: LogId, from: u64, to: u64) {
        self.inputs.extend(self.durable.fetch(log, from, to));
    }

    /// Asks the coordination service which configuration has a number.
    pub(super) fn arbitrate(&mut self, number: u64, wanted: Bytes) -> Taken {
        match &mut self.arbiter {
            Some(arbiter) => {
                arbiter.ask(number, wanted);
                Taken::Yes
            }
            None => Taken::Unsupported,
        }
    }

    /// Has the engine's log of votes opened again. Answers to earlier requests are not handed in any more: not where
    /// there is no such log.
    pub(super) fn reopen(&mut self) -> Taken {
        let Some(found) = self.durable.reopen() else {
            return Taken::Unsupported;
        };
        // An engine with votes has nothing else made durable.
        self.inputs.retain(|answer| {
            !matches!(
                answer,
                Input::Persisted { .. } | Input::PersistFailed { .. }
            )
        });
        self.inputs.extend(found);
        Taken::Yes
    }

    /// Whether a send may leave that names this request.
    pub(super) fn leaves(&self, after: PersistId) -> Leaves {
        let is_of_it =
            |answer: &Input| matches!(answer, Input::PersistFailed { id, .. } if *id == after);
        if self.durable.is_void(after) || self.inputs.iter().any(is_of_it) {
            Leaves::Never
        } else if self.durable.is_pending(after) {
            Leaves::Later
        } else {
            Leaves::Now
        }
    }

    /// Keeps a send until the request that it names is durable.
    pub(super) fn hold(&mut self, held: Held) {
        self.durable.hold(held);
    }

    /// The oldest send that was held back and need not wait any more.
    pub(super) fn next_ready(&mut self) -> Option<Held> {
        self.durable.next_ready()
    }

    /// The next input for the engine.
    pub(super) fn next_input(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    pub(super) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Whether a thread beside the ring's has an answer to give.
    fn waits_for_threads(&self) -> bool {
        let arbiter = self.arbiter.as_ref();
        self.durable.waits() || arbiter.is_some_and(Arbiter::waits)
    }

    /// Readable when there may be answers of those threads.
    pub(super) fn raw(&self) -> Option<RawFd> {
        self.waits_for_threads().then(|| self.durable.waker().raw())
    }

    /// Whether there are answers of those threads.
    pub(super) fn are_there(&self) -> bool {
        self.waits_for_threads() && self.durable.waker().is_rung()
    }

    /// Takes over what the threads answered: durable and failed requests, and the word of a coordination service. `None`
    /// if there was nothing; else the number of requests that have failed.
    pub(super) fn take(&mut self) -> Option<u64> {
        if !self.waits_for_threads() || !self.durable.waker().answer() {
            return None;
        }
        let mut answers = self.durable.answers();
        answers.extend(self.arbiter.as_mut().and_then(Arbiter::take));
        if answers.is_empty() {
            return None;
        }
        let failed = |answer: &&Input| matches!(answer, Input::PersistFailed { .. });
        let failed = answers.iter().filter(failed).count() as u64;
        self.inputs.extend(answers);
        Some(failed)
    }

    /// Adds the state of the disk for votes and of the coordination service to the status.
    pub(super) fn describe(&self, status: &mut Status) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.describe(status);
        }
        self.describe_votes(status);
    }

    fn describe_votes(&self, status: &mut Status) {
        let Some(health) = self.durable.acceptor().and_then(Acceptor::health) else {
            return;
        };
        if health.is == Use::Failed {
            status.state += "; its log has failed, it votes for nothing";
        } else if health.is == Use::GivenUp {
            status.state +=
                "; its log was given up and is being opened again, it votes for nothing";
        } else if health.waits > SLOW {
            let seconds = health.waits.as_secs_f64();
            status.state += &format!("; its disk has had votes for {seconds:.1} s");
        } else if health.syncs > SLOW {
            let seconds = health.syncs.as_secs_f64();
            status.state += &format!("; its disk has been syncing for {seconds:.1} s");
        }
        let millis = |took: Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        status.counters.extend([
            ("vote_groups", health.groups),
            ("vote_groups_slow", health.slow),
            ("votes_waiting_bytes", health.waiting_bytes as u64),
            ("votes_waiting_ms", millis(health.waits)),
            ("votes_syncing_ms", millis(health.syncs)),
            ("votes_failed", u64::from(health.is != Use::Works)),
            ("votes_reopened", health.openings),
        ]);
    }

    /// What holds between inputs.
    pub(super) fn check(&self) {
        self.durable.check();
    }

    #[cfg(test)]
    pub(super) const fn durable(&mut self) -> &mut Durable {
        &mut self.durable
    }
}
