//! One order over primary views, while a run goes on.
//!
//! These properties can be judged at once: UI, UTO, VS1, VS3 and VS5 as far as they speak of past events, and each
//! sender's order. The rest needs the whole trace and [`crate::check_uniform`].
//!
//! Events have to come in one order in which causes precede effects. Memory does not grow with the length of a run: of
//! a view only messages that a living member has still to deliver are remembered.
//!
//! The order may begin anew, if no process that was in a view is alive, or more than half of the nodes have forgotten:
//! [`UniformOnline::of`] says which nodes count, else all do that have been seen. In the second case it may also go
//! back to an older view that some processes remember.

use std::collections::BTreeMap;

use rota_core::contract::{ConfigurationKind, MessageId, NodeId, Process, RingId};
use rustc_hash::FxHashMap;

use super::clients::Clients;
use super::intervals::Intervals;
use super::views::{Views, Wrong};
use super::wrong;
use crate::event::{Conf, Event, EventKind, Placed, Sent};
use crate::name::Name;
use crate::report::Violation;

/// The state of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    begun: bool,
    ended: Option<&'static str>,
    pub view: Option<RingId>,
    /// It has been in a view.
    pub been: bool,
    /// The newest view that it is listed in.
    pub listed: Option<RingId>,
    /// It delivers the end of its view as an order has it that goes back to the view; if no order does, this is its
    /// violation.
    pub aside: Option<Wrong>,
    /// It has still to report its view as primary.
    unreported: bool,
    /// The number of messages it has delivered in its view.
    count: u64,
    /// The position of its last delivery in any view.
    position: u64,
    /// The ring on which it was excluded from its view.
    excluded: Option<RingId>,
    /// It has delivered a message since it was excluded.
    rest: bool,
    /// The first view after its own that it is not in.
    missed: Option<RingId>,
    accepted: Option<Sent>,
    /// The counter of its last broadcast.
    broadcast: u64,
    /// Counters of delivered messages, by sender.
    delivered: FxHashMap<Process, Delivered>,
}

impl State {
    /// The state that is left when its process has ended.
    fn ended(&self, how: &'static str) -> Self {
        Self {
            begun: true,
            ended: Some(how),
            been: self.been,
            listed: self.listed,
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Delivered {
    counters: Intervals,
    last: u64,
}

/// The checker of one order over primary views.
#[derive(Clone, Debug, Default)]
pub struct UniformOnline {
    pub(super) processes: FxHashMap<Process, State>,
    /// For each node that has been seen: its last life, and whether it is not the first.
    pub(super) nodes: BTreeMap<NodeId, (Process, bool)>,
    /// The nodes among which a majority is counted; `None` for all that have been seen.
    pub(super) configured: Option<Vec<NodeId>>,
    pub(super) views: Views,
    clients: Clients,
}

impl UniformOnline {
    /// A checker that has seen nothing yet.
    pub fn new() -> Self {
        Self {
            clients: Clients::without_transitions(),
            ..Self::default()
        }
    }

    /// A checker of views that begin in a majority of these nodes.
    pub fn of(configured: Vec<NodeId>) -> Self {
        Self {
            configured: Some(configured),
            ..Self::new()
        }
    }

    /// The number of messages that are remembered, over all views.
    pub fn remembered(&self) -> usize {
        self.views.remembered()
    }

    /// The number of views that are remembered.
    pub fn views(&self) -> usize {
        self.views.len()
    }

    /// Looks at the next event. After a violation the checker does not know any more what is right.
    ///
    /// # Errors
    /// A property is violated.
    pub fn observe(&mut self, event: &Event) -> Result<(), Violation> {
        let who = event.process;
        let result = match &event.kind {
            EventKind::Client(client) if self.is_alive(who) => {
                return self.clients.observe(who, client);
            }
            kind => self.observe_kind(who, kind),
        };
        result.map_err(|(property, what)| {
            let detail = format!("process {} {what} (t={})", Name(who), event.time.0);
            wrong(property, detail)
        })
    }

    fn is_alive(&self, who: Process) -> bool {
        let state = self.processes.get(&who);
        state.is_none_or(|state| state.ended.is_none())
    }

    fn observe_kind(&mut self, who: Process, kind: &EventKind) -> Result<(), Wrong> {
        let state = self.processes.entry(who).or_default();
        if let Some(ended) = state.ended {
            if *kind == EventKind::Crash {
                return Ok(());
            }
            return Err(("VS3", format!("{ended} and saw something after that")));
        }
        if !std::mem::replace(&mut state.begun, true) {
            self.begin(who);
        } else if *kind == EventKind::Start {
            return Err(("VS3", "started again in the same incarnation".into()));
        }
        match kind {
            EventKind::Start | EventKind::Client(_) | EventKind::Missed { .. } => Ok(()),
            EventKind::Send(sent) => {
                self.state(who).accepted = Some(*sent);
                Ok(())
            }
            EventKind::Broadcast(sent) => self.on_broadcast(who, sent),
            EventKind::Originated(placed) => {
                let text = format!("gave {} a place of its own", placed.message);
                Err(("UI", text))
            }
            EventKind::Configuration(conf) => {
                self.on_configuration(who, conf)
                    .map_err(|(property, what)| {
                        let (conf, members) = (Name(conf.id), Name(conf.members.as_slice()));
                        (property, format!("installed {conf} of {members}, {what}"))
                    })
            }
            EventKind::Primary(ring) => self.on_primary(who, *ring),
            EventKind::Excluded(ring) => self.on_excluded(who, *ring),
            EventKind::Delivered(placed) => {
                let text =
                    |(property, what)| (property, format!("delivered {} {what}", placed.message));
                self.on_delivered(who, placed).map_err(text)
            }
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

    fn state(&mut self, who: Process) -> &mut State {
        self.processes.entry(who).or_default()
    }

    /// A process is seen for the first time: the earlier process of its node is no more.
    fn begin(&mut self, who: Process) {
        let before = self.nodes.insert(who.node, (who, false));
        if let Some((before, again)) = before {
            let again = again || before != who;
            self.nodes.insert(who.node, (who, again));
            if before != who {
                self.end(before, "was followed by another life of its node");
            }
        }
    }

    fn end(&mut self, who: Process, how: &'static str) {
        let state = self.state(who);
        if state.ended.is_none() {
            *state = state.ended(how);
            self.clients.end(who);
            self.views.leave(who, |_| true);
        }
    }

    fn on_broadcast(&mut self, who: Process, sent: &Sent) -> Result<(), Wrong> {
        let message: MessageId = sent.message;
        let text = |what: &str| Err(("UI", format!("broadcast {message}, {what}")));
        if message.process != who {
            return text("which is another's");
        }
        let state = self.state(who);
        if state.broadcast >= message.counter {
            return text("again or after a later one");
        }
        state.broadcast = message.counter;
        let accepted = state.accepted.filter(|sent| sent.message == message);
        if accepted.is_some_and(|accepted| accepted != *sent) {
            return text("not as it was accepted");
        }
        self.views.broadcast(sent);
        Ok(())
    }

    fn on_configuration(&mut self, who: Process, conf: &Conf) -> Result<(), Wrong> {
        let state = self.state(who);
        let before = state.view;
        let (unreported, rest, missed) = (state.unreported, state.rest, state.missed);
        let ConfigurationKind::Regular(id) = conf.id else {
            return Err(("VS1", "a transitional configuration".into()));
        };
        if !conf.members.contains(&who) {
            return Err(("VS1", "without itself".into()));
        }
        if let Some(before) = before.filter(|before| *before >= id) {
            return Err(("VS1", format!("after {before}")));
        }
        if let (true, Some(before)) = (unreported, before) {
            return Err(("VS1", format!("without a report of {before} as primary")));
        }
        let listed = self
            .views
            .members(id)
            .filter(|listed| *listed != conf.members);
        if let Some(listed) = listed {
            return Err(("VS1", format!("which others had as {}", Name(listed))));
        }
        if let Some(rival) = self.views.rival(id) {
            return Err(("VS1", format!("which has the number of {rival}")));
        }
        if !self.views.knows(id) {
            self.begin_view(id, &conf.members);
        }
        let goes_back = before.is_some() && self.views.back(id) == before;
        let between = before.and_then(|before| self.views.between(before, id));
        let between = between.or(missed.filter(|missed| *missed < id));
        if let (true, Some(missed), false) = (rest, between, goes_back) {
            let what =
                format!("after {missed}, in which it was not, and the rest of its last view");
            return Err(("VS3", what));
        }
        if let Some(wrong) = self.state(who).aside.take().filter(|_| !goes_back) {
            return Err(wrong);
        }
        self.enter(who, id);
        Ok(())
    }

    fn begin_view(&mut self, id: RingId, members: &[Process]) {
        let begins = self.begins(members);
        let mut owing = Vec::new();
        for (process, state) in &mut self.processes {
            if members.contains(process) {
                state.listed = state.listed.max(Some(id));
            }
            let to_come = state.ended.is_none() && state.view.is_none_or(|view| view < id);
            if !to_come {
                continue;
            }
            if members.contains(process) {
                owing.push(*process);
            } else if state.view.is_some() {
                let missed = state.missed.get_or_insert(id);
                *missed = id.min(*missed);
            }
        }
        self.views.begin(id, members, owing, begins);
    }

    fn enter(&mut self, who: Process, id: RingId) {
        let missed = self.state(who).missed.filter(|missed| *missed > id);
        let state = self.state(who);
        state.view = Some(id);
        state.been = true;
        state.unreported = true;
        state.count = 0;
        state.excluded = None;
        state.rest = false;
        state.missed = missed;
        self.views.enter(who, id);
    }

    fn on_primary(&mut self, who: Process, ring: RingId) -> Result<(), Wrong> {
        let state = self.state(who);
        let current = state.view == Some(ring);
        if current && std::mem::take(&mut state.unreported) {
            return Ok(());
        }
        let how = if current {
            "again"
        } else {
            "which was not its view"
        };
        Err(("VS1", format!("reported {ring} as primary, {how}")))
    }

    fn on_excluded(&mut self, who: Process, ring: RingId) -> Result<(), Wrong> {
        let state = self.state(who);
        let text = |what: &str| format!("was excluded on ring {ring}, {what}");
        if state.unreported {
            return Err(("VS1", text("and had not reported its view as primary")));
        }
        if state.rest {
            let what = "after it had the rest of its last view, and before the next";
            return Err(("VS3", text(what)));
        }
        let last = state.view.max(state.excluded);
        if let Some(last) = last.filter(|last| *last >= ring) {
            return Err(("VS1", text(&format!("after ring {last}"))));
        }
        state.excluded = Some(ring);
        Ok(())
    }

    fn on_delivered(&mut self, who: Process, placed: &Placed) -> Result<(), Wrong> {
        let state = self.state(who);
        let Some(view) = state.view else {
            return Err(("VS3", "before its first view".into()));
        };
        if placed.conf != ConfigurationKind::Regular(view) {
            return Err(("VS3", format!("as in {}, but in {view}", Name(placed.conf))));
        }
        if state.unreported {
            return Err(("VS1", "before it reported its view as primary".into()));
        }
        let (sender, counter) = (placed.message.process, placed.message.counter);
        let from = state.delivered.entry(sender).or_default();
        if !from.counters.insert(counter) {
            return Err(("UI", "again".into()));
        }
        if from.last > counter {
            return Err(("fifo", format!("after number {}", from.last)));
        }
        from.last = counter;
        if state.position >= placed.position {
            let what = format!("at {} after {}", placed.position, state.position);
            return Err(("UTO", what));
        }
        state.position = placed.position;
        state.rest = state.excluded.is_some();
        state.count += 1;
        let count = state.count - 1;
        if self.deliver(who, (view, count), placed)? {
            let processes = &self.processes;
            self.views.sweep(view, |who| {
                let state = processes.get(&who);
                let here = state.filter(|state| state.view == Some(view));
                here.map_or(0, |state| state.count)
            });
        }
        Ok(())
    }
}
