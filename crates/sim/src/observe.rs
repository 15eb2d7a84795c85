//! The watchers of a run: checkers, the trace hash, trace files, and probes that look into the engines.

use std::collections::BTreeMap;
use std::fmt;

use rota_check::event::{Event, EventKind};
use rota_core::contract::{ConfigurationKind, Delivery, NodeId, Process, RingId, Service, Time};

use crate::plan::DiskLoss;

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The property that does not hold.
    pub property: String,
    /// The details.
    pub detail: String,
}

impl Finding {
    /// A property does not hold, as `detail` shows.
    pub fn new(property: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            property: property.into(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.detail)
    }
}

/// Counts, by name, of the events that a campaign has to have seen.
pub type Coverage = BTreeMap<&'static str, u64>;

/// Sees all events of a run in one order that agrees with their causes.
pub trait Observer {
    /// Something happened.
    ///
    /// # Errors
    /// A property that does not hold; the run ends with it.
    fn observe(&mut self, event: &Event) -> Result<(), Finding>;

    /// A node is about to start with this much lost of what it had written.
    fn disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        let _ = (node, loss);
    }

    /// All who vote have lost everything they had, and will found the cluster anew. These live and belong to what was before.
    fn founded_anew(&mut self, former: &[Process]) {
        let _ = former;
    }

    /// The world has healed, everything is delivered, and nothing has changed for a while.
    ///
    /// # Errors
    /// A property that does not hold.
    fn quiesce(&mut self, now: Time) -> Result<(), Finding> {
        let _ = now;
        Ok(())
    }

    /// Adds how often its properties had something to say.
    fn coverage(&self, coverage: &mut Coverage) {
        let _ = coverage;
    }
}

/// The processes that are alive, for a [`Probe`].
pub trait Engines<E> {
    /// Calls `look` with each of them, by ascending node.
    fn each(&self, look: &mut dyn FnMut(Process, &E));
}

/// Looks into the engines themselves: sharper than what processes see of each other.
pub trait Probe<E> {
    /// `process` is being handed `delivery` while `conf` is its configuration.
    ///
    /// # Errors
    /// A property that does not hold; the run ends with it.
    fn delivered(
        &mut self,
        engines: &dyn Engines<E>,
        process: Process,
        conf: Option<ConfigurationKind>,
        delivery: &Delivery,
    ) -> Result<(), Finding>;

    /// The engine of `process` has made a step.
    ///
    /// # Errors
    /// A property that does not hold; the run ends with it.
    fn stepped(&mut self, engines: &dyn Engines<E>, process: Process) -> Result<(), Finding> {
        let _ = (engines, process);
        Ok(())
    }
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl<E> Probe<E> for NoProbe {
    fn delivered(
        &mut self,
        _: &dyn Engines<E>,
        _: Process,
        _: Option<ConfigurationKind>,
        _: &Delivery,
    ) -> Result<(), Finding> {
        Ok(())
    }
}

/// A hash over all events of a run: two runs are the same if their hashes are.
#[derive(Clone, Copy, Debug)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl TraceHash {
    /// The hash so far.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Adds a number.
    pub const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) {
        self.add(event.time.0);
        self.process(event.process);
        match &event.kind {
            EventKind::Start => self.add(1),
            EventKind::Configuration(conf) => {
                self.add(2);
                self.conf(conf.id);
                for &member in &conf.members {
                    self.process(member);
                }
            }
            EventKind::Send(sent) => {
                self.add(3);
                self.message(sent.message.process, sent.message.counter);
                self.payload(sent.service, sent.hash);
            }
            EventKind::Broadcast(sent) => {
                self.add(11);
                self.message(sent.message.process, sent.message.counter);
                self.payload(sent.service, sent.hash);
            }
            EventKind::Originated(placed) | EventKind::Delivered(placed) => {
                let originated = matches!(event.kind, EventKind::Originated(_));
                self.add(if originated { 4 } else { 5 });
                self.message(placed.message.process, placed.message.counter);
                self.conf(placed.conf);
                self.add(placed.position);
                self.payload(placed.service, placed.hash);
            }
            EventKind::Crash => self.add(6),
            EventKind::Leave => self.add(7),
            EventKind::Primary(ring) => {
                self.add(8);
                self.ring(*ring);
            }
            EventKind::Excluded(ring) => {
                self.add(10);
                self.ring(*ring);
            }
            EventKind::Missed { upto, own } => {
                self.add(12);
                self.add(*upto);
                self.add(*own);
            }
            EventKind::Client(event) => {
                self.add(9);
                event.name().bytes().for_each(|byte| self.add(byte.into()));
                event
                    .fields()
                    .bytes()
                    .for_each(|byte| self.add(byte.into()));
            }
        }
    }

    fn process(&mut self, process: Process) {
        self.add(u64::from(process.node.get()) << 53 ^ process.incarnation.0);
    }

    fn message(&mut self, process: Process, counter: u64) {
        self.process(process);
        self.add(counter);
    }

    const fn payload(&mut self, service: Service, hash: u64) {
        self.add(service as u64);
        self.add(hash);
    }

    fn ring(&mut self, ring: RingId) {
        self.add(ring.ring_seq);
        self.add(u64::from(ring.rep.get()) << 53 ^ ring.incarnation.0);
    }

    fn conf(&mut self, conf: ConfigurationKind) {
        match conf {
            ConfigurationKind::Regular(ring) => self.ring(ring),
            ConfigurationKind::Transitional { old, new } => {
                self.ring(old);
                self.ring(new);
            }
        }
    }
}
