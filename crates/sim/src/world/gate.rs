//! The sends of a process that wait for its disk. A driver keeps them back: the engine goes on meanwhile.

use std::collections::VecDeque;

use rota_core::contract::{Output, PersistId};

/// Sends that leave when a request is durable, and never if it failed.
#[derive(Default, Debug)]
pub struct Gate {
    /// The newest durable request.
    durable: Option<PersistId>,
    failed: Vec<PersistId>,
    waiting: Vec<(PersistId, Output)>,
    /// Sends that need not wait any more, in the order in which they came.
    released: VecDeque<Output>,
}

/// The fate of a send.
#[derive(Debug)]
pub enum Passage {
    /// It leaves now.
    Leaves(Output),
    Waits,
    /// Its request has failed.
    Never,
}

impl Gate {
    /// Takes a send that leaves when the request `after` is durable.
    pub fn take(&mut self, after: PersistId, output: Output) -> Passage {
        if self.durable.is_some_and(|durable| durable >= after) {
            return Passage::Leaves(output);
        }
        if self.failed.contains(&after) {
            return Passage::Never;
        }
        self.waiting.push((after, output));
        Passage::Waits
    }

    /// A request is durable, and so are all before it.
    pub fn on_durable(&mut self, id: PersistId) {
        self.durable = self.durable.max(Some(id));
        for (after, output) in std::mem::take(&mut self.waiting) {
            if after <= id {
                self.released.push_back(output);
            } else {
                self.waiting.push((after, output));
            }
        }
    }

    /// A request failed. Returns the number of sends that waited for it: they never leave.
    pub fn on_failed(&mut self, id: PersistId) -> usize {
        self.failed.push(id);
        let before = self.waiting.len();
        self.waiting.retain(|(after, _)| *after != id);
        before - self.waiting.len()
    }

    /// Whether some send has waited and can leave now.
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// The next send that has waited and can leave now.
    pub fn release(&mut self) -> Option<Output> {
        self.released.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output with a number.
    fn output(number: u64) -> Output {
        let wanted = bytes::Bytes::new();
        Output::Arbitrate { number, wanted }
    }

    fn number(output: Option<Output>) -> Option<u64> {
        match output {
            Some(Output::Arbitrate { number, .. }) => Some(number),
            _ => None,
        }
    }

    #[test]
    fn a_send_waits_for_its_request_and_leaves_in_its_turn() {
        let mut gate = Gate::default();
        for (after, name) in [(2, 20), (1, 10), (3, 30)] {
            assert!(matches!(
                gate.take(PersistId(after), output(name)),
                Passage::Waits
            ));
        }
        assert!(!gate.has_released());
        gate.on_durable(PersistId(2));
        assert_eq!(number(gate.release()), Some(20));
        assert_eq!(number(gate.release()), Some(10));
        assert_eq!(number(gate.release()), None);
        let late = gate.take(PersistId(1), output(11));
        assert!(matches!(late, Passage::Leaves(_)));
    }

    #[test]
    fn sends_that_wait_for_a_failed_request_never_leave() {
        let mut gate = Gate::default();
        for (after, name) in [(1, 10), (1, 11), (2, 20)] {
            assert!(matches!(
                gate.take(PersistId(after), output(name)),
                Passage::Waits
            ));
        }
        assert_eq!(gate.on_failed(PersistId(1)), 2);
        assert!(matches!(
            gate.take(PersistId(1), output(12)),
            Passage::Never
        ));
        gate.on_durable(PersistId(2));
        assert_eq!(number(gate.release()), Some(20));
        assert!(!gate.has_released());
    }
}
