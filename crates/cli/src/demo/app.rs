//! The demo's application: submits a share of the input, takes stock of everything.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_bench::Latencies;
use rota_core::contract::{Delivery, Message, NodeId, Service, SubmitError, Time};
use rota_net::monotonic;
use rota_node::{App, Submitter};

use super::in_flight::InFlight;
use super::node::Orders;
use super::source::{Share, Step};
use super::tally::Tally;
use super::witness::Witness;

/// Bytes of input to read at once: the ring waits meanwhile.
const EFFORT_BYTES: usize = 1 << 20;
/// Time between two reports of progress.
const REPORT_NANOS: u64 = 250_000_000;

/// See the module.
#[derive(Debug)]
pub struct DemoApp {
    me: NodeId,
    service: Service,
    share: Share,
    /// There may be more to submit as soon as the window is open: the input has not ended, and the
    /// engine was not full.
    more: bool,
    output: Option<BufWriter<File>>,
    orders: Arc<Orders>,
    /// The number of nodes.
    nodes: usize,
    in_ring: bool,
    tally: Tally,
    /// The notes, where a node is killed.
    witness: Option<Witness>,
    /// Own messages.
    in_flight: InFlight,
    finished: Time,
    next_report: Time,
    error: Option<String>,
}

impl DemoApp {
    pub fn new(
        me: NodeId,
        service: Service,
        nodes: usize,
        share: Share,
        output: Option<File>,
        orders: Arc<Orders>,
        witness: Option<Witness>,
    ) -> Self {
        Self {
            me,
            service,
            share,
            more: false,
            output: output.map(|file| BufWriter::with_capacity(256 << 10, file)),
            orders,
            nodes,
            in_ring: false,
            tally: Tally::default(),
            witness,
            in_flight: InFlight::new(),
            finished: Time(0),
            next_report: monotonic().after(REPORT_NANOS),
            error: None,
        }
    }

    /// Whether the coordinator has ended the run.
    pub fn stopped(&self) -> bool {
        self.orders.stop.load(SeqCst)
    }

    /// Whether a ring of all nodes was installed.
    pub const fn is_in_ring(&self) -> bool {
        self.in_ring
    }

    /// The error, if something went wrong.
    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }

    /// The demo cannot go on.
    pub fn fail(&mut self, what: String) {
        self.error.get_or_insert(what);
    }

    /// The deliveries so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The members of the group from here on.
    pub fn saw(&mut self, view: &str) {
        if let Some(witness) = &mut self.witness {
            witness.saw(view);
        }
    }

    /// The notes, where a node is killed.
    pub const fn witness(&self) -> Option<&Witness> {
        self.witness.as_ref()
    }

    /// The times from submit to delivery, own messages only.
    pub const fn latencies(&self) -> &Latencies {
        self.in_flight.latencies()
    }

    /// When the first own message was submitted.
    pub const fn started(&self) -> Option<Time> {
        self.in_flight.started()
    }

    /// When the last message so far was delivered.
    pub const fn finished(&self) -> Time {
        self.finished
    }

    /// Whether to say how far it is.
    pub fn report_due(&mut self) -> bool {
        let now = monotonic();
        let due = now >= self.next_report;
        if due {
            self.next_report = now.after(REPORT_NANOS);
        }
        due
    }

    /// Gives everything delivered so far to the system.
    pub fn finish_output(&mut self) -> Result<(), String> {
        match &mut self.output {
            Some(output) => output
                .flush()
                .map_err(|error| format!("cannot write: {error}")),
            None => Ok(()),
        }
    }

    fn on_message(&mut self, message: &Message) {
        self.tally.add(&message.payload);
        if let Some(witness) = &mut self.witness {
            witness.on_message(message.id.process.node.get(), &message.payload);
        }
        if let Some(output) = &mut self.output {
            let written = output
                .write_all(&message.payload)
                .and_then(|()| output.write_all(b"\n"));
            if let Err(error) = written {
                self.error = Some(format!("cannot write the output: {error}"));
            }
        }
        if message.id.process.node == self.me {
            let bytes = message.payload.len();
            self.in_flight
                .on_delivered(monotonic(), message.id.counter, bytes);
        }
    }

    /// Submits until the window is full or the input has ended.
    fn submit_all(&mut self, now: Time, submitter: &mut dyn Submitter) -> Result<(), String> {
        let mut effort = EFFORT_BYTES;
        let allowance = self.witness.as_ref().map_or(u64::MAX, Witness::allowance);
        self.more = true;
        while self.in_flight.is_open() {
            if self.in_flight.sent() >= allowance {
                self.more = false;
                return Ok(());
            }
            let step = self.share.load(&mut effort);
            match step.map_err(|error| format!("cannot read the input: {error}"))? {
                Step::Ready => {}
                Step::More => return Ok(()),
                Step::End => {
                    self.more = false;
                    return Ok(());
                }
            }
            match submitter.submit(now, self.service, self.share.current()) {
                Ok(_) => {}
                Err(SubmitError::Full) => {
                    // It has room again after a visit of the token, which wakes the loop anyway.
                    self.more = false;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
            let bytes = self.share.current().len();
            self.in_flight.on_submitted(now, bytes);
            self.share.advance();
        }
        Ok(())
    }
}

impl App for DemoApp {
    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.on_message(&message),
            Delivery::Configuration(configuration) => {
                self.in_ring |= configuration.members.len() == self.nodes;
                if let Some(witness) = &mut self.witness {
                    witness.on_configuration(&configuration);
                    // It may allow more now.
                    self.more = self.orders.go.load(SeqCst);
                }
            }
            Delivery::Passed { .. }
            | Delivery::Notice { .. }
            | Delivery::Primary(_)
            | Delivery::Excluded(_)
            | Delivery::Missed { .. } => {}
        }
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        if self.error.is_some() || !self.orders.go.load(SeqCst) {
            return;
        }
        if let Some(witness) = &mut self.witness {
            witness.begin(now);
        }
        if let Err(error) = self.submit_all(now, submitter) {
            self.error = Some(error);
        }
    }

    fn stop(&self) -> bool {
        self.stopped()
    }

    fn next_wake(&self) -> Option<Time> {
        Some(self.next_report)
    }

    fn flush(&mut self) {
        self.finished = monotonic();
        if let Some(witness) = &mut self.witness {
            witness.on_flush(self.finished);
        }
    }

    /// Own deliveries after the last `fill` may have opened the window again.
    fn may_sleep(&mut self) -> bool {
        !self.more || !self.in_flight.is_open()
    }
}
