//! The application of a benchmark node: submits by its plan, measures the deliveries.
//!
//! Free of coordinated omission: a message's latency counts from when the plan wanted it sent. A ring
//! that stalls delays its sender too, and those delays are in the figures. In a closed loop ([`Plan::UnderWay`]) there is no
//! such time: a latency counts from the submission, and a ring that stalls is given less.

mod pace;
mod record;
mod series;

pub(super) use pace::{Plan, Span};
pub(super) use record::{Delivered, Record};
pub(super) use series::{Slot, merged as merged_slots};

use std::time::Duration;

use rota_core::contract::{Configuration, ConfigurationKind, Delivery, Service, SubmitError, Time};
use rota_node::{App, Submitter};

use super::node::{Measuring, Task};
use crate::clock::now_ns;
use crate::hist::Latencies;
use pace::Pace;

/// Smallest payload: when it was due (8 bytes), its sender (4), its number (4).
pub(crate) const MIN_PAYLOAD: usize = 16;

/// See the module page.
pub(super) struct LoadApp {
    me: u16,
    members: usize,
    service: Service,
    payload: Vec<u8>,
    pace: Pace,
    /// The time that each submission wastes, to see whether the benchmark finds it.
    waste: Duration,
    /// The configuration with all members has been delivered.
    pub formed: bool,
    /// Regular configurations after the first.
    pub reconfigurations: u64,
    /// What was delivered.
    pub record: Record,
    /// How late the sender itself was with messages that had times of their own.
    pub lateness: Latencies,
    pub submitted: u64,
    pub refused: Option<SubmitError>,
    /// The number of times that this node was told that it missed messages that others have delivered.
    pub missed: u64,
}

impl LoadApp {
    /// The load of a task, by its own plan or by a part of it.
    pub(super) fn new(task: &Task, plan: Plan) -> Self {
        let payload = vec![0x5A; task.size.max(MIN_PAYLOAD)];
        let mut record = Record::new(task.node, payload.len());
        record.trials = task.trials.then(Vec::new);
        if let Some(length_ns) = task.series_ns {
            record.keep_series(length_ns);
        }
        Self {
            me: task.node,
            members: task.config.nodes.len(),
            service: task.service.into(),
            payload,
            pace: Pace::new(plan),
            waste: Duration::from_nanos(task.waste_ns),
            formed: false,
            reconfigurations: 0,
            record,
            lateness: Latencies::new(),
            submitted: 0,
            refused: None,
            missed: 0,
        }
    }

    /// Starts the plan.
    pub(super) fn begin(&mut self, span: Span) {
        self.pace.begin(span);
    }

    /// From now on this node has another number.
    pub(super) fn renumber(&mut self, me: u16) {
        self.me = me;
        self.record.renumber(me);
    }

    /// Submits one message that was due at `at`; `false` if the ring takes no more.
    fn submit(&mut self, now: Time, at: u64, submitter: &mut dyn Submitter) -> bool {
        self.payload[..8].copy_from_slice(&at.to_le_bytes());
        self.payload[8..12].copy_from_slice(&u32::from(self.me).to_le_bytes());
        self.payload[12..16].copy_from_slice(&self.pace.next().to_le_bytes());
        match submitter.submit(now, self.service, &self.payload) {
            Ok(_) => {
                self.pace.submitted();
                self.submitted += 1;
                if !self.waste.is_zero() {
                    waste(self.waste);
                }
                true
            }
            Err(SubmitError::Full) => false,
            Err(error) => {
                self.refused = Some(error);
                false
            }
        }
    }

    fn on_configuration(&mut self, configuration: &Configuration) {
        if let ConfigurationKind::Regular(_) = configuration.kind {
            if self.formed {
                self.reconfigurations += 1;
            }
            self.formed |= configuration.members.len() == self.members;
        }
    }
}

/// Uses the processor for so long.
fn waste(time: Duration) {
    let until = now_ns() + time.as_nanos() as u64;
    while now_ns() < until {
        std::hint::spin_loop();
    }
}

impl Measuring for LoadApp {
    fn formed(&self) -> bool {
        self.formed
    }

    fn refused(&self) -> Option<String> {
        if self.missed > 0 {
            return Some("a node fell behind what others keep, and missed messages".to_owned());
        }
        let error = self.refused.as_ref()?;
        Some(format!("a message was refused: {error}"))
    }
}

impl App for LoadApp {
    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => {
                if self.record.note(&message, self.pace.span()) {
                    self.pace.delivered_own();
                }
            }
            Delivery::Configuration(configuration) => self.on_configuration(&configuration),
            // Before the load there is nothing to miss.
            Delivery::Missed { .. } => self.missed += u64::from(self.pace.span().is_some()),
            Delivery::Passed { .. }
            | Delivery::Notice { .. }
            | Delivery::Primary(_)
            | Delivery::Excluded(_) => {}
        }
    }

    fn flush(&mut self) {
        self.record.flush();
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.pace.look(now);
        while let Some(at) = self.pace.wanted(now) {
            if self.refused.is_some() {
                return;
            }
            if let Some(late) = self.pace.lateness(now, at) {
                self.lateness.record(late);
            }
            if !self.submit(now, at, submitter) {
                return;
            }
        }
    }

    fn stop(&self) -> bool {
        self.refused.is_some()
    }

    fn may_sleep(&mut self) -> bool {
        self.pace.may_sleep()
    }

    fn next_wake(&self) -> Option<Time> {
        self.pace.next_wake()
    }
}

#[cfg(test)]
mod tests;
