//! What is to be ordered about what rings may forget: from any thread to the rings' own.

use rota_core::contract::SubmitError;
use rota_multiring::Rank;
use rota_paxos::uring::accounts::Command;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::app::RingsApp;
use super::driver::RingsDriver;
use crate::driver::DriverError;

/// So much waits, at most.
const MOST: usize = 1024;

/// The oldest first.
#[derive(Debug, Default)]
pub(super) struct Accounts(Mutex<VecDeque<(Rank, Command)>>);

impl Accounts {
    fn locked(&self) -> MutexGuard<'_, VecDeque<(Rank, Command)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is ordered soon.
    pub(super) fn push(&self, ring: Rank, command: Command) -> Result<(), SubmitError> {
        // Others would not take it.
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

    /// Has ordered what rings take of it. What one of them does not take yet waits, and what goes to that ring behind it.
    pub(super) fn order<A: RingsApp>(
        &self,
        driver: &mut RingsDriver<A>,
    ) -> Result<(), DriverError> {
        let waiting = std::mem::take(&mut *self.locked());
        let mut left: VecDeque<(Rank, Command)> = VecDeque::new();
        for (ring, command) in waiting {
            let is_behind = left.iter().any(|(other, _)| *other == ring);
            if is_behind || !driver.order(ring, &command)? {
                left.push_back((ring, command));
            }
        }
        if !left.is_empty() {
            let mut waiting = self.locked();
            left.append(&mut waiting);
            *waiting = left;
        }
        Ok(())
    }
}
