//! Requests to the disk of the layer and of the engine below: one sequence for the driver, and each answer to the one
//! that asked.

use alloc::collections::VecDeque;

use crate::contract::PersistId;
use crate::invariants::FEW;

/// The most failed requests that are remembered. There is one for each try of a broken disk, and a send that waits for
/// a failed request is given to the driver at once.
const MOST_FAILED: usize = 1024;

/// Requests that are under way.
#[derive(Debug, Default)]
pub(super) struct Requests {
    newest: u64,
    /// The requests by the driver's ids, ascending; `None` is a request of the layer itself.
    waiting: VecDeque<(PersistId, Option<PersistId>)>,
    /// The newest failed requests of the engine below: sends that wait for them are never made, so their names stay for
    /// as long as a send may be on its way.
    failed: VecDeque<(PersistId, PersistId)>,
}

/// The meaning of an answer.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// The newest answered request of the engine below.
    pub below: Option<PersistId>,
    pub own: bool,
}

impl Requests {
    /// Adds a request of the engine below; `None` is one of the layer itself.
    pub fn ask(&mut self, below: Option<PersistId>) -> PersistId {
        self.newest += 1;
        let id = PersistId(self.newest);
        self.waiting.push_back((id, below));
        id
    }

    /// The request, as the driver calls it, that a send of the engine below has to wait for.
    pub fn after(&self, below: PersistId) -> Option<PersistId> {
        let waiting = self.waiting.iter();
        let mut waiting = waiting.filter_map(|(id, of)| of.map(|of| (*id, of)));
        let mut failed = self.failed.iter().rev().copied();
        let named = |(_, of): &(PersistId, PersistId)| *of == below;
        let found = waiting.find(named).or_else(|| failed.find(named));
        found.map(|(id, _)| id)
    }

    /// Takes the answer that this request and all before it are durable.
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

impl Requests {
    /// Its invariants.
    pub fn check(&self) {
        let ids = self.waiting.iter().map(|(id, _)| *id);
        assert!(
            self.waiting.len() > FEW || ids.is_sorted_by(|one, next| one < next),
            "requests are answered in order"
        );
        let last = self.waiting.back();
        assert!(
            last.is_none_or(|(id, _)| id.0 <= self.newest),
            "no request is newer than the newest"
        );
        assert!(
            self.failed.len() <= MOST_FAILED,
            "few failures are remembered"
        );
    }
}
