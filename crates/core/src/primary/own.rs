//! The counters of this process's messages that are the layer's: the application does not count them.

use alloc::collections::VecDeque;

use crate::invariants::FEW;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct OwnMessages {
    /// The number of the layer's messages before those listed.
    before: u64,
    /// The counters of those that may still be on their way.
    pub counters: VecDeque<u64>,
}

impl OwnMessages {
    pub fn count(&self) -> u64 {
        self.before + self.counters.len() as u64
    }

    /// The number of the layer's messages before a message; `None` if it is one of them.
    pub fn before(&self, counter: u64) -> Option<u64> {
        let at = self.counters.binary_search(&counter).err()?;
        Some(self.before + at as u64)
    }

    /// One of them has come back: all places up to it have been assigned.
    pub fn returned(&mut self, counter: u64) {
        while self
            .counters
            .pop_front_if(|first| *first <= counter)
            .is_some()
        {
            self.before += 1;
        }
    }
}

impl OwnMessages {
    /// Its invariants.
    pub fn check(&self) {
        let counters = self.counters.iter();
        assert!(
            self.counters.len() > FEW || counters.is_sorted_by(|one, next| one < next),
            "messages are counted in the order in which they were submitted"
        );
    }
}
