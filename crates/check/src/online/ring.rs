//! The memory of a ring, and how it is forgotten.

use std::collections::{BTreeMap, VecDeque};

use rota_core::contract::{MessageId, Process, RingId, Service};

use super::wrong;
use crate::event::Placed;
use crate::name::Name;
use crate::report::Violation;

/// A message that has a place in a ring.
#[derive(Clone, Copy, Debug)]
struct Entry {
    message: MessageId,
    hash: u64,
    service: Service,
    /// The number of processes that have delivered it.
    deliveries: u32,
}

/// The progress of a process in a ring's total order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Progress {
    /// The number of messages delivered in the regular configuration.
    pub count: u64,
    /// The position of the last message.
    pub position: u64,
}

/// A ring in which some process may still deliver messages.
#[derive(Clone, Debug)]
pub(super) struct RingState {
    pub members: Vec<Process>,
    /// The transitional configurations that end it, by the new ring.
    pub transitional: Vec<(RingId, Vec<Process>)>,
    /// The processes that are in it or may still come.
    pub owing: Vec<Process>,
    /// Deliveries since the last search for what can be forgotten.
    pub unswept: u32,
    placed: BTreeMap<u64, Entry>,
    /// Positions in the total order, as delivered in the regular configuration, without the first
    /// `forgotten.count`.
    sequence: VecDeque<u64>,
    /// The progress that all processes have made.
    forgotten: Progress,
}

impl RingState {
    pub const fn new(members: Vec<Process>, owing: Vec<Process>) -> Self {
        Self {
            members,
            transitional: Vec::new(),
            owing,
            unswept: 0,
            placed: BTreeMap::new(),
            sequence: VecDeque::new(),
            forgotten: Progress {
                count: 0,
                position: 0,
            },
        }
    }

    /// The number of messages that are remembered.
    pub fn remembered(&self) -> usize {
        self.placed.len()
    }

    pub fn originate(&mut self, who: Process, placed: &Placed) -> Result<(), Violation> {
        let entry = Entry {
            message: placed.message,
            hash: placed.hash,
            service: placed.service,
            deliveries: 0,
        };
        let (message, position) = (placed.message, placed.position);
        let text = || format!("{} originated {message} at seq {position}", Name(who));
        if position <= self.forgotten.position {
            return Err(wrong("O4", format!("{}, which all have passed", text())));
        }
        match self.placed.insert(position, entry) {
            None => Ok(()),
            Some(other) => {
                let taken = format!("{}, where {} is", text(), other.message);
                Err(wrong("O4", taken))
            }
        }
    }

    /// Whether the message was originated here, with the same place, payload and service as in the delivery.
    pub fn deliver(&mut self, who: Process, placed: &Placed) -> Result<(), Violation> {
        let (message, position) = (placed.message, placed.position);
        let text = || {
            let conf = Name(placed.conf);
            format!(
                "{} delivered {message} at seq {position} of {conf}",
                Name(who)
            )
        };
        match self.placed.get_mut(&position) {
            Some(entry) if entry.message != message => {
                let taken = format!("{}, where {} is", text(), entry.message);
                Err(wrong("O4", taken))
            }
            Some(entry) if entry.hash != placed.hash => {
                let (is, was) = (placed.hash, entry.hash);
                let hash = format!("{} with payload {is:016x} instead of {was:016x}", text());
                Err(wrong("E1", hash))
            }
            Some(entry) if entry.service != placed.service => {
                let was = entry.service.name();
                let service = format!("{}, which was originated as {was}", text());
                Err(wrong("E1", service))
            }
            None if position > self.forgotten.position => {
                let nothing = format!("{}, where nothing was originated", text());
                Err(wrong("E1", nothing))
            }
            Some(entry) => {
                entry.deliveries += 1;
                Ok(())
            }
            // The message is forgotten.
            None => Ok(()),
        }
    }

    /// Checks that other processes had the same position as the `count`-th delivery in the regular configuration.
    pub fn follow(&mut self, who: Process, count: u64, placed: &Placed) -> Result<(), Violation> {
        let Some(place) = count.checked_sub(self.forgotten.count) else {
            return Ok(());
        };
        match self.sequence.get(place as usize) {
            None => self.sequence.push_back(placed.position),
            Some(position) if *position == placed.position => {}
            Some(position) => {
                let (who, conf, message) = (Name(who), Name(placed.conf), placed.message);
                let mine = placed.position;
                return Err(wrong(
                    "prefix",
                    format!(
                        "{who} delivered {message} at seq {mine} of {conf}, where others delivered \
                         seq {position}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Forgets the messages that all processes that are or may come here have delivered: all up to the common progress
    /// in the total order, and reliable and fifo messages that all of them have.
    pub fn forget(&mut self, passed: Progress) {
        while self.forgotten.count < passed.count && self.sequence.pop_front().is_some() {
            self.forgotten.count += 1;
        }
        self.forgotten.position = self.forgotten.position.max(passed.position);
        while let Some(first) = self.placed.first_entry() {
            let Entry {
                service,
                deliveries,
                ..
            } = *first.get();
            let early = matches!(service, Service::Reliable | Service::Fifo);
            let by_all = early && deliveries as usize >= self.owing.len();
            if *first.key() > self.forgotten.position && !by_all {
                break;
            }
            self.forgotten.position = self.forgotten.position.max(*first.key());
            first.remove();
        }
    }
}
