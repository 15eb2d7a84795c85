//! A trace, in the terms of the properties: the members of each ring, the messages ordered there, and the deliveries of
//! each process.
//!
//! The names are those of Extended Virtual Synchrony (Moser et al. 1994, §2): a process's *tenure* of a ring is its
//! time in the regular configuration and in the transitional one that ends it, written com(r) there. A tenure is
//! *failed* when the process crashed or left in it, or its trace ends in it and no event says that all was quiet: then
//! nothing is known about what it would have delivered.

mod build;
mod names;

use std::ops::Range;

use rota_core::contract::{ConfigurationKind, MessageId, Process, RingId, Service};

use crate::bits::Bits;
use crate::groups::Groups;
use crate::report::Options;
use crate::trace::{Place, Step, Trace};

/// The end of a process's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Alive, and everything had come to rest.
    Alive,
    /// Crashed, or followed by another life of its node.
    Crashed,
    Left,
    /// The trace stops, and no event says that all was quiet.
    Unknown,
    /// It is named by others and has no events: its trace was not given.
    Untraced,
}

/// A part of a process's events: those in one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub conf: u32,
    pub members: u32,
    /// The event that delivered the configuration.
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The events in the configuration.
    pub const fn steps(&self) -> Range<usize> {
        self.start + 1..self.end
    }
}

/// A process's time in a ring.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    pub process: u32,
    pub ring: u32,
    pub regular: Option<Span>,
    pub transitional: Option<Span>,
    /// The ring of the regular configuration that the process delivered next.
    pub next: Option<u32>,
    pub failed: bool,
    /// The ranks of the messages it delivered.
    pub delivered: Bits,
}

impl Tenure {
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.regular.iter().chain(&self.transitional)
    }
}

/// The home of a message: the ring in which it was originated or, if that was not seen, first delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    pub ring: u32,
    /// Its place among the messages of the ring, dense, from 0.
    pub rank: u32,
    pub position: u64,
    pub hash: u64,
    pub sender: u32,
    pub service: Service,
    /// True if its origination was seen. If not, its first delivery is its home.
    pub originated: bool,
}

/// A ring and everything ordered in it.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub id: RingId,
    /// Its messages, by rank.
    pub order: Vec<u32>,
    /// The tenures of it, by process.
    pub tenures: Vec<u32>,
}

/// A message that a process delivered in the ring where it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub message: u32,
    pub rank: u32,
    pub sender: u32,
    pub service: Service,
}

/// Whether messages of this service are delivered in the one total order; the others come early.
pub(crate) const fn is_ordered(service: Service) -> bool {
    matches!(service, Service::Causal | Service::Agreed | Service::Safe)
}

/// A trace in the terms of the module.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub trace: &'a Trace,
    pub options: &'a Options,
    /// The end of each process.
    pub ends: Vec<End>,
    /// By process: its tenures, in their order.
    pub lives: Vec<Vec<u32>>,
    pub tenures: Vec<Tenure>,
    pub rings: Vec<Ring>,
    /// By configuration: its ring, or the one it ends.
    pub ring_of: Vec<u32>,
    /// By message; `None` for a message that was never ordered nor delivered.
    pub homes: Vec<Option<Home>>,
    /// By list of members: the processes, sorted.
    pub members: Vec<Vec<u32>>,
    /// The events of clients.
    pub groups: Groups<'a>,
}

impl View<'_> {
    pub fn process(&self, process: u32) -> Process {
        self.trace.processes()[process as usize]
    }

    pub fn message(&self, message: u32) -> MessageId {
        self.trace.messages()[message as usize]
    }

    pub fn end(&self, process: u32) -> End {
        self.ends[process as usize]
    }

    pub fn steps(&self, process: u32) -> &[Step] {
        &self.trace.story(process).steps
    }

    /// All events: process, number among its events, and event.
    pub fn all_steps(&self) -> impl Iterator<Item = (u32, usize, &Step)> {
        let processes = self.trace.began().iter();
        processes.flat_map(|process| {
            let steps = self.steps(*process).iter().enumerate();
            steps.map(move |(at, step)| (*process, at, step))
        })
    }

    pub fn id(&self, conf: u32) -> ConfigurationKind {
        self.trace.configurations()[conf as usize]
    }

    pub fn is_member(&self, members: u32, process: u32) -> bool {
        let members = &self.members[members as usize];
        members.binary_search(&process).is_ok()
    }

    /// A process's time in a ring, if it delivered the ring's configuration.
    pub fn tenure(&self, ring: u32, process: u32) -> Option<&Tenure> {
        let tenures = &self.rings[ring as usize].tenures;
        let holder = |tenure: &u32| self.tenures[*tenure as usize].process;
        let place = tenures.partition_point(|tenure| holder(tenure) < process);
        let tenure = tenures
            .get(place)
            .filter(|tenure| holder(tenure) == process)?;
        Some(&self.tenures[*tenure as usize])
    }

    /// Whether a process may have been on a ring that its application never got to: installed by the protocol, and the
    /// process failed before its application had taken the earlier deliveries. From outside that looks as if it had
    /// failed on an earlier ring.
    pub fn may_lag(&self, ring: u32, process: u32) -> bool {
        let number = |ring: u32| self.rings[ring as usize].id.ring_seq;
        let mut lives = self.lives[process as usize].iter();
        let before = lives.all(|life| number(self.tenures[*life as usize].ring) < number(ring));
        before && self.end(process) != End::Alive
    }

    /// The tenures of a ring.
    pub fn tenures_of(&self, ring: usize) -> impl Iterator<Item = &Tenure> {
        let tenures = self.rings[ring].tenures.iter();
        tenures.map(|tenure| &self.tenures[*tenure as usize])
    }

    /// The deliveries of a process in a span of a tenure, in its order; without messages of another ring, which E1
    /// reports.
    pub fn deliveries<'b>(
        &'b self,
        tenure: &'b Tenure,
        span: &Span,
    ) -> impl Iterator<Item = Delivered> + 'b {
        let steps = &self.steps(tenure.process)[span.steps()];
        steps.iter().filter_map(|step| match step {
            Step::Deliver(place) => self.delivered(tenure.ring, place),
            _ => None,
        })
    }

    /// The same deliveries, of messages in the total order only.
    pub fn ordered<'b>(
        &'b self,
        tenure: &'b Tenure,
        span: &Span,
    ) -> impl Iterator<Item = Delivered> + 'b {
        let all = self.deliveries(tenure, span);
        all.filter(|delivered| is_ordered(delivered.service))
    }

    pub fn delivered(&self, ring: u32, place: &Place) -> Option<Delivered> {
        let home = self.homes[place.message as usize]?;
        (home.ring == ring).then_some(Delivered {
            message: place.message,
            rank: home.rank,
            sender: home.sender,
            service: home.service,
        })
    }
}
