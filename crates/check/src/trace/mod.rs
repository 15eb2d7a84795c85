//! The events of all processes, in memory and in files.
//!
//! A [`Trace`] keeps one list of events for each process, in the order in which they were pushed.
//! Nothing is assumed about the clocks of different processes. Names are replaced by numbers when an
//! event comes in, so that ten million events fit into half a gigabyte.

pub(crate) mod clients;
mod line;
mod read;

use rota_core::contract::{ConfigurationKind, MessageId, Process, RingId, Service, Time};
use rustc_hash::FxHashMap;
use std::hash::Hash;

use crate::event::{Conf, Event, EventKind, Placed};
use crate::report::Order;
use clients::Clients;

pub use read::TraceError;
pub use rota_trace::TraceWriter;

/// Gives things numbers, from 0, in the order in which they are first seen.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    numbers: FxHashMap<T, u32>,
    things: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
            things: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn number(&mut self, thing: &T) -> u32 {
        if let Some(number) = self.numbers.get(thing) {
            return *number;
        }
        // Four thousand million distinct names do not fit into memory.
        let number = u32::try_from(self.things.len()).unwrap_or(u32::MAX);
        self.things.push(thing.clone());
        self.numbers.insert(thing.clone(), number);
        number
    }

    pub(crate) fn all(&self) -> &[T] {
        &self.things
    }
}

/// A message at a place, by numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub position: u64,
    pub hash: u64,
    pub message: u32,
    pub conf: u32,
    pub service: Service,
}

/// An event, by numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Start,
    Conf {
        conf: u32,
        members: u32,
    },
    Send {
        message: u32,
        hash: u64,
    },
    Orig(Place),
    Broadcast {
        message: u32,
        service: Service,
        hash: u64,
    },
    Deliver(Place),
    Primary {
        conf: u32,
    },
    /// The process is excluded, on the ring of this configuration.
    Excluded {
        conf: u32,
    },
    Missed {
        upto: u64,
        own: u64,
    },
    Crash,
    Leave,
}

/// The events of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub steps: Vec<Step>,
    pub times: Vec<Time>,
}

/// The events of all processes.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    processes: Interner<Process>,
    messages: Interner<MessageId>,
    configurations: Interner<ConfigurationKind>,
    /// Lists of members, as listed.
    members: Interner<Vec<Process>>,
    stories: Vec<Story>,
    clients: Clients,
    /// The processes that saw something, in the order of their first events: the order of a node's lives.
    began: Vec<u32>,
    quiescent: bool,
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event of a process, behind all its earlier events.
    ///
    /// The lives of a node have to be pushed one after the other: its restarted process says nothing
    /// before its predecessor has said its last.
    pub fn push(&mut self, event: &Event) {
        let process = self.process(event.process);
        let step = match &event.kind {
            EventKind::Start => Step::Start,
            EventKind::Configuration(Conf { id, members }) => {
                for member in members {
                    self.process(*member);
                }
                Step::Conf {
                    conf: self.configurations.number(id),
                    members: self.members.number(members),
                }
            }
            EventKind::Send(sent) => {
                self.process(sent.message.process);
                Step::Send {
                    message: self.messages.number(&sent.message),
                    hash: sent.hash,
                }
            }
            EventKind::Originated(placed) => Step::Orig(self.place(placed)),
            EventKind::Broadcast(sent) => {
                self.process(sent.message.process);
                Step::Broadcast {
                    message: self.messages.number(&sent.message),
                    service: sent.service,
                    hash: sent.hash,
                }
            }
            EventKind::Delivered(placed) => Step::Deliver(self.place(placed)),
            EventKind::Primary(ring) => Step::Primary {
                conf: self.ring(*ring),
            },
            EventKind::Excluded(ring) => Step::Excluded {
                conf: self.ring(*ring),
            },
            EventKind::Missed { upto, own } => Step::Missed {
                upto: *upto,
                own: *own,
            },
            EventKind::Client(client) => {
                self.clients.push(process, event.time, client);
                return;
            }
            EventKind::Crash => Step::Crash,
            EventKind::Leave => Step::Leave,
        };
        let story = &mut self.stories[process as usize];
        if story.steps.is_empty() {
            self.began.push(process);
        }
        story.steps.push(step);
        story.times.push(event.time);
    }

    /// All faults are healed, all rings stable and all queues empty at the end of the trace: a process that has not
    /// crashed or left by then is alive.
    pub const fn quiesce(&mut self) {
        self.quiescent = true;
    }

    /// The number of events.
    pub fn events(&self) -> usize {
        let processes = self.stories.iter().map(|story| story.steps.len());
        processes.sum::<usize>() + self.clients.events()
    }

    fn process(&mut self, process: Process) -> u32 {
        let number = self.processes.number(&process);
        if self.stories.len() <= number as usize {
            self.stories.push(Story::default());
        }
        number
    }

    fn ring(&mut self, ring: RingId) -> u32 {
        let id = ConfigurationKind::Regular(ring);
        self.configurations.number(&id)
    }

    fn place(&mut self, placed: &Placed) -> Place {
        self.process(placed.message.process);
        Place {
            position: placed.position,
            hash: placed.hash,
            message: self.messages.number(&placed.message),
            conf: self.configurations.number(&placed.conf),
            service: placed.service,
        }
    }

    /// All processes that saw something or are named.
    pub(crate) fn processes(&self) -> &[Process] {
        self.processes.all()
    }

    pub(crate) fn process_number(&self, process: Process) -> Option<u32> {
        self.processes.numbers.get(&process).copied()
    }

    pub(crate) fn messages(&self) -> &[MessageId] {
        self.messages.all()
    }

    pub(crate) fn configurations(&self) -> &[ConfigurationKind] {
        self.configurations.all()
    }

    pub(crate) fn configuration_number(&self, id: ConfigurationKind) -> Option<u32> {
        self.configurations.numbers.get(&id).copied()
    }

    pub(crate) fn member_lists(&self) -> &[Vec<Process>] {
        self.members.all()
    }

    pub(crate) fn story(&self, process: u32) -> &Story {
        &self.stories[process as usize]
    }

    pub(crate) const fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn began(&self) -> &[u32] {
        &self.began
    }

    /// The order that the trace is of, as far as it shows.
    pub fn shown_order(&self) -> Order {
        let steps = || self.stories.iter().flat_map(|story| &story.steps);
        if !self.is_uniform() {
            return Order::Evs;
        }
        // A view is reported as primary at once.
        if steps().any(|step| matches!(step, Step::Primary { .. })) {
            return Order::Uniform;
        }
        let named = steps().any(|step| matches!(step, Step::Conf { .. } | Step::Missed { .. }));
        match steps().any(|step| matches!(step, Step::Excluded { .. })) {
            _ if !named => Order::Uniform,
            true => Order::OfMembers,
            false => Order::Whole,
        }
    }

    /// Whether it is certain that one order gave the places, and not each ring its own: some process shows it, by a
    /// broadcast without a place or by an exclusion, and no process has an event that is only seen on rings.
    pub fn is_uniform(&self) -> bool {
        let mut uniform = false;
        for step in self.stories.iter().flat_map(|story| &story.steps) {
            match step {
                Step::Broadcast { .. } | Step::Excluded { .. } => uniform = true,
                Step::Orig(_) => return false,
                _ => {}
            }
        }
        let mut configurations = self.configurations.all().iter();
        uniform && configurations.all(|id| matches!(id, ConfigurationKind::Regular(_)))
    }

    pub(crate) const fn is_quiescent(&self) -> bool {
        self.quiescent
    }
}

impl<'a> Extend<&'a Event> for Trace {
    fn extend<I: IntoIterator<Item = &'a Event>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl<'a> FromIterator<&'a Event> for Trace {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        let mut trace = Self::new();
        trace.extend(events);
        trace
    }
}
