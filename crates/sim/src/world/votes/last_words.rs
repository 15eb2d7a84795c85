//! The messages that processes submit after the faults: all of them have to be ordered in time.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{MessageId, Process};

use super::SILENT;

/// The messages that were submitted after the faults.
#[derive(Default, Debug)]
pub struct LastWords {
    /// Those that are delivered nowhere yet.
    open: BTreeSet<MessageId>,
    /// Some other one was delivered.
    is_ordered: bool,
    /// Processes that were left out again and again, each with the time until which it does not ask to be taken in.
    out_until: BTreeMap<Process, u64>,
}

impl LastWords {
    /// A message is submitted.
    pub fn on_submitted(&mut self, message: MessageId) {
        self.open.insert(message);
    }

    /// Some application gets a message, which may be an earlier one.
    pub fn on_delivered(&mut self, message: MessageId) {
        self.is_ordered |= self.open.remove(&message);
    }

    /// A process does not ask to be taken in before this time.
    pub fn stays_out(&mut self, process: Process, until: u64) {
        self.out_until.insert(process, until);
    }

    /// Whether the messages of a process have to be ordered by now: one that stays out has as long from then on.
    pub fn is_due(&self, process: Process, now: u64) -> bool {
        let until = self.out_until.get(&process);
        until.is_none_or(|until| now > until + SILENT)
    }

    /// Whether something is to be ordered by now: nothing was at all, or some message is due.
    pub fn are_missing(&self, now: u64) -> bool {
        let mut open = self.open.iter();
        open.any(|message| self.is_due(message.process, now)) || !self.is_ordered
    }
}

#[cfg(test)]
mod tests {
    use rota_core::contract::{Incarnation, NodeId};

    use super::*;

    #[test]
    fn a_message_of_a_process_that_stays_out_is_due_later() {
        let process = |node| Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(1),
        };
        let message = |node| MessageId {
            process: process(node),
            counter: 1,
        };
        let mut words = LastWords::default();
        assert!(words.are_missing(0));
        words.on_submitted(message(1));
        words.on_submitted(message(2));
        words.on_delivered(message(1));
        assert!(words.are_missing(0));
        words.stays_out(process(2), 100);
        assert!(!words.are_missing(100 + SILENT));
        assert!(words.are_missing(101 + SILENT));
        words.on_delivered(message(2));
        assert!(!words.are_missing(101 + SILENT));
    }
}
