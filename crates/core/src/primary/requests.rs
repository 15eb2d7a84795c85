//! The layer and the engine below both ask for things to be durable: one sequence of requests for the
//! driver, and each answer to the one who asked.

use alloc::collections::VecDeque;

use crate::contract::PersistId;

/// So many failed requests are remembered. There is one for each time that a broken disk is tried, and what waits for one is sent at once.
const MOST_FAILED: usize = 1024;

/// Requests that are under way.
#[derive(Debug, Default)]
pub(super) struct Requests {
    newest: u64,
    /// By the driver's ids, ascending; `None` is the layer's own.
    waiting: VecDeque<(PersistId, Option<PersistId>)>,
    /// Failed requests of the engine below, the newest: sends that wait for them are never made, so their names
    /// stay for as long as one may be on its way.
    failed: VecDeque<(PersistId, PersistId)>,
}

/// What an answer means.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// The newest of the engine below.
    pub below: Option<PersistId>,
    pub own: bool,
}

impl Requests {
    /// Someone asks: `None` is the layer itself.
    pub fn ask(&mut self, below: Option<PersistId>) -> PersistId {
        self.newest += 1;
        let id = PersistId(self.newest);
        self.waiting.push_back((id, below));
        id
    }

    /// What a send of the engine below has to wait for.
    pub fn after(&self, below: PersistId) -> Option<PersistId> {
        let waiting = self.waiting.iter();
        let mut waiting = waiting.filter_map(|(id, of)| of.map(|of| (*id, of)));
        let mut failed = self.failed.iter().rev().copied();
        let named = |(_, of): &(PersistId, PersistId)| *of == below;
        let found = waiting.find(named).or_else(|| failed.find(named));
        found.map(|(id, _)| id)
    }

    /// This and everything before is durable.
    pub fn persisted(&mut self, id: PersistId) -> Answered {
        let mut answered = Answered::default();
        while let Some((_, of)) = self.waiting.pop_front_if(|(waiting, _)| *waiting <= id) {
            answered.own |= of.is_none();
            answered.below = of.or(answered.below);
        }
        answered
    }

    pub fn failed(&mut self, id: PersistId) -> Answered {
        let mut answered = Answered::default();
        let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == id) else {
            return answered;
        };
        match self.waiting.remove(at).and_then(|(_, of)| of) {
            Some(of) => {
                self.failed.push_back((id, of));
                if self.failed.len() > MOST_FAILED {
                    self.failed.pop_front();
                }
                answered.below = Some(of);
            }
            None => answered.own = true,
        }
        answered
    }
}
