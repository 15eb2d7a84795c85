//! The answers of the threads beside the ring's: of the disk, and of a coordination service.

use rota_core::contract::{Engine, Input, PersistId, Status};
use std::os::fd::RawFd;
use std::time::Duration;

use super::acceptor::Acceptor;
use super::arbiter::Arbiter;
use super::log_keeper::SLOW;
use super::log_thread::Use;
use super::{Driver, DriverError};

impl<E: Engine> Driver<E> {
    /// Has the engine's log of votes opened again. Answers to earlier requests are not handed in any more.
    pub(super) fn reopen(&mut self) {
        let Some((void, found)) = self.durable.reopen() else {
            self.sockets.stats_mut().unsupported += 1;
            return;
        };
        if let Some(links) = &mut self.links {
            void.iter().for_each(|id| links.forget(*id));
        }
        // An engine with votes has nothing else made durable.
        self.answers.retain(|answer| {
            !matches!(
                answer,
                Input::Persisted { .. } | Input::PersistFailed { .. }
            )
        });
        self.answers.extend(found);
    }

    /// Adds the state of the disk for votes to the status.
    pub(super) fn describe_votes(&self, status: &mut Status) {
        let Some(health) = self.durable.acceptor.as_ref().and_then(Acceptor::health) else {
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

    /// Whether a thread beside the ring's has an answer to give.
    fn waits_for_threads(&self) -> bool {
        let arbiter = self.arbiter.as_ref();
        self.durable.waits() || arbiter.is_some_and(|arbiter| arbiter.waits)
    }

    /// Readable when there may be answers of those threads.
    pub(super) fn stored(&self) -> Option<RawFd> {
        self.waits_for_threads().then(|| self.durable.waker.raw())
    }

    /// Whether there are answers of those threads.
    pub(super) fn has_stored(&self) -> bool {
        self.waits_for_threads() && self.durable.waker.is_rung()
    }

    /// Takes over what the threads answered: durable and failed requests, and the word of a coordination service; says
    /// whether there was any. Not while an output is stuck: the engine hears of it after its outputs have left, as with
    /// everything that answers them.
    pub(super) fn take_stored(&mut self) -> Result<bool, DriverError> {
        if self.stuck.is_some() || !self.waits_for_threads() || !self.durable.waker.answer() {
            return Ok(false);
        }
        let mut answers = self.durable.answers();
        answers.extend(self.arbiter.as_mut().and_then(Arbiter::take));
        if answers.is_empty() {
            return Ok(false);
        }
        for answer in &answers {
            self.forget_on_links(answer);
            let failed = matches!(answer, Input::PersistFailed { .. });
            self.sockets.stats_mut().persist_failures += u64::from(failed);
        }
        self.answers.extend(answers);
        self.carry_out()?;
        Ok(true)
    }

    /// Whether a send names a request that has failed; the engine may not have heard of it yet.
    pub(super) fn has_failed(&self, wanted: PersistId) -> bool {
        let is_of_it =
            |answer: &Input| matches!(answer, Input::PersistFailed { id, .. } if *id == wanted);
        self.durable.is_void(wanted) || self.answers.iter().any(is_of_it)
    }
}
