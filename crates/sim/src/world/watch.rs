//! Everything that looks at a run and changes nothing in it.

use rota_check::event::Event;
use rota_core::contract::{ConfigurationKind, Delivery, Engine, NodeId, Process, Time};

use super::host::{Alive, Host};
use crate::observe::{Coverage, Finding, NoProbe, Observer, Probe, TraceHash};
use crate::plan::DiskLoss;

/// The observers, a probe, the hash of all events, and the first finding.
pub struct Watch<'a, E> {
    observers: Vec<&'a mut dyn Observer>,
    probe: Box<dyn Probe<E> + 'a>,
    hash: TraceHash,
    finding: Option<Finding>,
}

impl<'a, E: Engine> Watch<'a, E> {
    /// Only the hash.
    pub fn new() -> Self {
        Self {
            observers: Vec::new(),
            probe: Box::new(NoProbe),
            hash: TraceHash::default(),
            finding: None,
        }
    }

    /// Adds an observer.
    pub fn observe_by(&mut self, observer: &'a mut dyn Observer) {
        self.observers.push(observer);
    }

    /// Has a probe look into the engines, in place of the one before.
    pub fn probe_by(&mut self, probe: impl Probe<E> + 'a) {
        self.probe = Box::new(probe);
    }

    /// Tells all observers.
    pub fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        for observer in &mut self.observers {
            let seen = observer.observe(event);
            keep(&mut self.finding, seen);
        }
    }

    /// The engine of a process has made a step.
    pub fn on_step(&mut self, hosts: &[Host<E>], process: Process) {
        let seen = self.probe.stepped(&Alive(hosts), process);
        keep(&mut self.finding, seen);
    }

    /// A process is being handed a delivery in a configuration.
    pub fn on_delivery(
        &mut self,
        hosts: &[Host<E>],
        (process, conf): (Process, Option<ConfigurationKind>),
        delivery: &Delivery,
    ) {
        let alive = Alive(hosts);
        let seen = self.probe.delivered(&alive, process, conf, delivery);
        keep(&mut self.finding, seen);
    }

    /// A node is about to start with this much lost of what it had written.
    pub fn on_disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        for observer in &mut self.observers {
            observer.disk_lost(node, loss);
        }
    }

    /// All voters have lost everything, and these processes live on.
    pub fn on_founded_anew(&mut self, former: &[Process]) {
        for observer in &mut self.observers {
            observer.founded_anew(former);
        }
    }

    /// Everything is delivered, and nothing has changed for a while.
    pub fn on_quiet(&mut self, now: Time) {
        for observer in &mut self.observers {
            let seen = observer.quiesce(now);
            keep(&mut self.finding, seen);
        }
    }

    /// The world itself has found a property that does not hold.
    pub fn found(&mut self, property: &str, detail: impl Into<String>) {
        self.finding
            .get_or_insert_with(|| Finding::new(property, detail));
    }

    /// Whether some property does not hold.
    pub const fn has_found(&self) -> bool {
        self.finding.is_some()
    }

    /// Adds how often the observers had something to say.
    pub fn coverage(&self, coverage: &mut Coverage) {
        for observer in &self.observers {
            observer.coverage(coverage);
        }
    }

    /// The hash of all events, and the first property that does not hold.
    pub fn end(self) -> (u64, Option<Finding>) {
        (self.hash.get(), self.finding)
    }
}

/// Keeps the first finding.
fn keep(first: &mut Option<Finding>, seen: Result<(), Finding>) {
    if let Err(finding) = seen {
        first.get_or_insert(finding);
    }
}
