//! Commands about what rings may forget, on their way from any thread to the rings' own.

use rota_core::contract::SubmitError;
use rota_multiring::Rank;
use rota_paxos::uring::accounts::Command;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::app::RingsApp;
use super::driver::RingsDriver;
use crate::driver::DriverError;

/// The number of commands, at most, that wait.
const MOST: usize = 1024;

/// The oldest first.
#[derive(Debug, Default)]
pub(super) struct Accounts(Mutex<VecDeque<(Rank, Command)>>);

impl Accounts {
    fn locked(&self) -> MutexGuard<'_, VecDeque<(Rank, Command)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a command ordered soon.
    pub(super) fn push(&self, ring: Rank, command: Command) -> Result<(), SubmitError> {
        // Other nodes would not take the command.
        if Command::decode(command.encode(0).into()).as_ref() != Some(&(command.clone(), 0)) {
            return Err(SubmitError::Unsupported);
        }
        let mut waiting = self.locked();
        if waiting.len() >= MOST {
            return Err(SubmitError::Full);
        }
        waiting.push_back((ring, command));
        Ok(())
    }

    /// Has commands ordered as far as the rings take them. A command that its ring does not take yet waits, and so do
    /// those behind it for that ring. Returns whether some wait.
    pub(super) fn order<A: RingsApp>(
        &self,
        driver: &mut RingsDriver<A>,
    ) -> Result<bool, DriverError> {
        let waiting = std::mem::take(&mut *self.locked());
        let mut left: VecDeque<(Rank, Command)> = VecDeque::new();
        for (ring, command) in waiting {
            if !driver.hub.borrow().learner.may_order(ring, &command) {
                tracing::warn!(
                    ring = ring.0,
                    ?command,
                    "the partition may still need what it releases: it neither has left the ring nor let the hold go"
                );
                continue;
            }
            let is_behind = left.iter().any(|(other, _)| *other == ring);
            if is_behind || !driver.order(ring, &command)? {
                left.push_back((ring, command));
            }
        }
        let some_wait = !left.is_empty();
        if some_wait {
            let mut waiting = self.locked();
            left.append(&mut waiting);
            *waiting = left;
        }
        Ok(some_wait)
    }
}
