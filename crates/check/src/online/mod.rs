//! Checks while a run goes on, which stop the run at the first wrong step.
//!
//! These properties can be judged at once: E1 to E4, C1 to C3, C7, O4, and the prefix test in regular configurations;
//! and of clients K1 to K3, the receivers of K5, and the places of transitions of K6. The rest needs the whole trace
//! and [`crate::check_all`].
//!
//! Events have to come in one order in which causes precede effects, as in a simulation. Memory does not grow with the
//! length of a run: of a ring only messages that a member has still to deliver are remembered, and nothing once all its
//! members have gone on or died.
//!
//! [`Online`] does so for Extended Virtual Synchrony, [`UniformOnline`] for one order over primary views,
//! [`WholeOnline`] for one order of which no process leaves anything out.

mod back;
mod clients;
mod conf;
mod intervals;
mod ring;
mod spans;
mod uniform;
mod views;
mod whole;

use rota_core::contract::{ConfigurationKind, NodeId, Process, RingId, Service};
use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind, Placed, regular_of};
use crate::name::Name;
use crate::report::Violation;
use clients::Clients;
use intervals::Intervals;
use ring::{Progress, RingState};

pub use uniform::UniformOnline;
pub use whole::WholeOnline;

/// Deliveries of a ring between two searches for what can be forgotten.
const SWEEP: u32 = 1024;

/// The state of a process.
#[derive(Clone, Debug, Default)]
struct State {
    /// True once it has seen anything.
    begun: bool,
    ended: Option<&'static str>,
    current: Option<ConfigurationKind>,
    /// Its progress in the ring of the current configuration.
    progress: Progress,
    originated: Intervals,
    /// Counters of delivered messages, by sender.
    delivered: FxHashMap<Process, Intervals>,
    /// The rings that it is in or may still come to.
    rings: Vec<RingId>,
}

/// The state of a node, over its lives.
#[derive(Clone, Copy, Debug)]
struct Life {
    process: Process,
    /// Its last regular configuration.
    ring: Option<RingId>,
}

/// The checker of Extended Virtual Synchrony.
#[derive(Clone, Debug, Default)]
pub struct Online {
    processes: FxHashMap<Process, State>,
    nodes: FxHashMap<NodeId, Life>,
    rings: FxHashMap<RingId, RingState>,
    clients: Clients,
}

/// A violation of a property.
fn wrong(property: &'static str, detail: String) -> Violation {
    Violation { property, detail }
}

impl Online {
    /// A checker that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of messages that are remembered, over all rings.
    pub fn remembered(&self) -> usize {
        self.rings.values().map(RingState::remembered).sum()
    }

    /// The number of rings that are remembered.
    pub fn rings(&self) -> usize {
        self.rings.len()
    }

    /// The number of views of groups that are remembered.
    pub fn views(&self) -> usize {
        self.clients.remembered()
    }

    /// A node lost its durable state: nothing keeps it from using numbers of rings again.
    pub fn disk_lost(&mut self, node: NodeId) {
        if let Some(life) = self.nodes.get_mut(&node) {
            life.ring = None;
        }
    }

    /// Looks at the next event. After a violation the checker does not know any more what is right.
    ///
    /// # Errors
    /// A property is violated.
    pub fn observe(&mut self, event: &Event) -> Result<(), Violation> {
        let who = event.process;
        let at = |mut violation: Violation| {
            violation.detail += &format!(" (t={})", event.time.0);
            violation
        };
        self.observe_unplaced(who, &event.kind).map_err(at)
    }

    fn observe_unplaced(&mut self, who: Process, kind: &EventKind) -> Result<(), Violation> {
        let state = self.processes.entry(who).or_default();
        if let Some(ended) = state.ended {
            if *kind == EventKind::Crash {
                return Ok(());
            }
            let text = format!("{} {ended} and saw something after that", Name(who));
            return Err(wrong("E4", text));
        }
        if !std::mem::replace(&mut state.begun, true) {
            self.begin(who);
        } else if *kind == EventKind::Start {
            let text = format!("{} started again in the same incarnation", Name(who));
            return Err(wrong("E4", text));
        }
        match kind {
            // The whole trace shows whether there is one primary (P1 to P3).
            EventKind::Start
            | EventKind::Send(_)
            | EventKind::Primary(_)
            | EventKind::Excluded(_)
            | EventKind::Missed { .. } => Ok(()),
            EventKind::Broadcast(sent) => {
                let text = format!("{} originated {} without a place", Name(who), sent.message);
                Err(wrong("E3", text))
            }
            EventKind::Client(event) => self.clients.observe(who, event),
            EventKind::Configuration(conf) => self.on_configuration(who, conf),
            EventKind::Originated(placed) => self.on_originated(who, placed),
            EventKind::Delivered(placed) => self.on_delivered(who, placed),
            EventKind::Crash => {
                self.end(who, "crashed");
                Ok(())
            }
            EventKind::Leave => {
                self.end(who, "left");
                Ok(())
            }
        }
    }

    /// A process is seen for the first time: the earlier process of its node is no more.
    fn begin(&mut self, who: Process) {
        let life = Life {
            process: who,
            ring: None,
        };
        let node = self.nodes.entry(who.node).or_insert(life);
        let before = std::mem::replace(&mut node.process, who);
        if before != who {
            self.end(before, "was followed by another life of its node");
        }
    }

    fn end(&mut self, who: Process, how: &'static str) {
        if let Some(state) = self.processes.get_mut(&who)
            && state.ended.is_none()
        {
            self.clients.end(who);
            let rings = std::mem::take(&mut state.rings);
            *state = State {
                begun: true,
                ended: Some(how),
                ..State::default()
            };
            rings.iter().for_each(|ring| self.gone(who, *ring));
        }
    }

    /// A process will deliver nothing more of a ring.
    fn gone(&mut self, who: Process, ring: RingId) {
        if let Some(state) = self.rings.get_mut(&ring) {
            state.owing.retain(|process| *process != who);
            if state.owing.is_empty() {
                self.rings.remove(&ring);
            }
        }
    }

    fn on_originated(&mut self, who: Process, placed: &Placed) -> Result<(), Violation> {
        let state = self.processes.entry(who).or_default();
        let text = |what: &str| format!("{} originated {}, {what}", Name(who), placed.message);
        let Some(current) = state.current else {
            return Err(wrong("E4", text("before its first configuration")));
        };
        if placed.message.process != who {
            return Err(wrong("E3", text("which is another's")));
        }
        let ConfigurationKind::Regular(ring) = current else {
            return Err(wrong("E3", text("in a transitional configuration")));
        };
        if placed.conf != current {
            let (named, current) = (Name(placed.conf), Name(current));
            let where_ = format!("in {named} while {current} was current");
            return Err(wrong("E3", text(&where_)));
        }
        if !state.originated.insert(placed.message.counter) {
            return Err(wrong("E3", text("which had been originated before")));
        }
        let ring = self.rings.get_mut(&ring);
        ring.map_or(Ok(()), |ring| ring.originate(who, placed))
    }

    fn on_delivered(&mut self, who: Process, placed: &Placed) -> Result<(), Violation> {
        let state = self.processes.entry(who).or_default();
        let text = |what: &str| format!("{} delivered {} {what}", Name(who), placed.message);
        let Some(current) = state.current else {
            return Err(wrong("E4", text("before its first configuration")));
        };
        if placed.conf != current {
            let what = format!("as in {}, but in {}", Name(placed.conf), Name(current));
            return Err(wrong("E4", text(&what)));
        }
        let sender = placed.message.process;
        let seen = state.delivered.entry(sender).or_default();
        if !seen.insert(placed.message.counter) {
            return Err(wrong("E2", text("again")));
        }
        let id = regular_of(current);
        let Some(ring) = self.rings.get_mut(&id) else {
            return Ok(());
        };
        ring.deliver(who, placed)?;
        if !matches!(placed.service, Service::Reliable | Service::Fifo) {
            in_order(who, state, ring, placed)?;
        }
        ring.unswept += 1;
        if ring.unswept >= SWEEP {
            ring.unswept = 0;
            let passed = passed(&self.processes, id, &ring.owing);
            ring.forget(passed);
        }
        Ok(())
    }
}

/// A message of the total order is delivered in its turn.
fn in_order(
    who: Process,
    state: &mut State,
    ring: &mut RingState,
    placed: &Placed,
) -> Result<(), Violation> {
    let last = std::mem::replace(&mut state.progress.position, placed.position);
    if last >= placed.position {
        let (who, message, conf) = (Name(who), placed.message, Name(placed.conf));
        let mine = placed.position;
        let text = format!("{who} delivered {message} at seq {mine} of {conf} after seq {last}");
        return Err(wrong("O4", text));
    }
    if matches!(placed.conf, ConfigurationKind::Regular(_)) {
        ring.follow(who, state.progress.count, placed)?;
        state.progress.count += 1;
    }
    Ok(())
}

/// The progress in a ring that all these processes have made.
fn passed(processes: &FxHashMap<Process, State>, ring: RingId, owing: &[Process]) -> Progress {
    let progress = |who: &Process| {
        let state = processes.get(who);
        let here = state.filter(|state| state.current.map(regular_of) == Some(ring));
        here.map_or_else(Progress::default, |state| state.progress)
    };
    let least = |a: Progress, b: Progress| Progress {
        count: a.count.min(b.count),
        position: a.position.min(b.position),
    };
    owing.iter().map(progress).reduce(least).unwrap_or_default()
}
