//! One order of all, of which no process leaves anything out, while a run goes on: engines in which members come and go
//! within the order, and processes that were away catch up.
//!
//! These properties are judged: UI, UTO, and each sender's order, event by event; UA and UV once all is at rest
//! ([`WholeOnline::rest`]). A configuration has a place like a message, and is the same there at all processes, whether
//! they are in it or not. A process that starts begins with the first place. If the next messages were forgotten
//! everywhere, the process has to be told how far the gap goes ([`EventKind::Missed`]): only that it may leave out.
//!
//! Events have to come in one order in which causes precede effects. Memory grows with the length of a run.

use std::collections::BTreeMap;

use rota_core::contract::{ConfigurationKind, MessageId, Process, position};
use rustc_hash::FxHashMap;

use super::views::{Wrong, is_as_sent};
use super::wrong;
use crate::event::{Conf, Event, EventKind, Placed, Sent};
use crate::name::Name;
use crate::report::Violation;

/// The entry at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Entry {
    Message(MessageId),
    Configuration(Vec<Process>),
}

/// The state of a process.
#[derive(Clone, Debug, Default)]
struct State {
    begun: bool,
    ended: Option<&'static str>,
    /// The position before which it has been given everything, or been told that it missed it.
    upto: u64,
    /// It was told that it missed messages.
    missed: bool,
    accepted: Option<Sent>,
    /// The counter of its last broadcast, and the counter up to which it was told that its messages are in the order.
    broadcast: u64,
    own: u64,
    /// True if it was told that it is no member, false if it is one again; `None` if it was told neither.
    outside: Option<bool>,
    /// The counter of the last message from each sender since it missed messages.
    last: FxHashMap<Process, u64>,
}

/// The checker of one order of all.
#[derive(Clone, Debug, Default)]
pub struct WholeOnline {
    /// Processes are given only what is ordered while they are members.
    only_as_member: bool,
    processes: BTreeMap<Process, State>,
    order: BTreeMap<u64, Entry>,
    places: FxHashMap<MessageId, u64>,
    sent: FxHashMap<MessageId, Sent>,
    /// Positions that some process has passed: from the first one to before another. The ranges do not overlap.
    passed: BTreeMap<u64, u64>,
}

impl WholeOnline {
    /// A checker that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A checker of processes that are given only messages ordered while they are members, and told when they are not.
    pub fn of_members_only() -> Self {
        Self {
            only_as_member: true,
            ..Self::default()
        }
    }

    /// The number of places that are known.
    pub fn places(&self) -> usize {
        self.order.len()
    }

    /// Looks at the next event. After a violation the checker does not know any more what is right.
    ///
    /// # Errors
    /// A property is violated.
    pub fn observe(&mut self, event: &Event) -> Result<(), Violation> {
        let result = self.observe_kind(event.process, &event.kind);
        said(event.process, event.time.0, result)
    }

    /// A message was broadcast by a process of which nothing else is known.
    pub(crate) fn trust(&mut self, sent: &Sent) {
        self.sent.insert(sent.message, *sent);
    }

    fn on_missed(&mut self, who: Process, upto: u64, own: u64) -> Result<(), Wrong> {
        let state = self.processes.entry(who).or_default();
        if upto < state.upto {
            let had = state.upto;
            Err((
                "UTO",
                format!("missed all before {upto}, and had it up to {had}"),
            ))
        } else if own > state.broadcast {
            let last = state.broadcast;
            Err((
                "UI",
                format!("is told of its message {own}, and broadcast {last}"),
            ))
        } else {
            state.upto = upto;
            (state.missed, state.outside) = (true, Some(false));
            state.own = state.own.max(own);
            state.last.clear();
            Ok(())
        }
    }

    /// All is at rest: these processes live, and have nothing to wait for.
    ///
    /// # Errors
    /// UA, or UV, does not hold.
    pub fn rest(&self, alive: impl IntoIterator<Item = Process>) -> Result<(), Violation> {
        for who in alive {
            let state = self.processes.get(&who);
            let upto = state.map_or(0, |state| state.upto);
            let lacks = self.order.range(upto..).next();
            let result = lacks.map_or(Ok(()), |(at, entry)| {
                Err((
                    "UA",
                    format!("did not deliver {} at {at}, as others did", shown(entry)),
                ))
            });
            said(who, 0, result)?;
            let (first, last) = state.map_or((1, 0), |state| (state.own + 1, state.broadcast));
            let message = |counter| MessageId {
                process: who,
                counter,
            };
            let lost = (first..=last).find(|counter| !self.places.contains_key(&message(*counter)));
            let result = lost.map_or(Ok(()), |counter| {
                let what = message(counter);
                Err((
                    "UV",
                    format!("broadcast {what}, and nobody has delivered it"),
                ))
            });
            said(who, 0, result)?;
        }
        Ok(())
    }

    fn observe_kind(&mut self, who: Process, kind: &EventKind) -> Result<(), Wrong> {
        let state = self.processes.entry(who).or_default();
        if let Some(ended) = state.ended {
            if *kind == EventKind::Crash {
                return Ok(());
            }
            return Err(("UI", format!("{ended} and saw something after that")));
        }
        let again = std::mem::replace(&mut state.begun, true);
        match kind {
            EventKind::Start if again => {
                Err(("UI", "started again in the same incarnation".into()))
            }
            EventKind::Start | EventKind::Client(_) => Ok(()),
            EventKind::Send(sent) => {
                state.accepted = Some(*sent);
                Ok(())
            }
            EventKind::Broadcast(sent) => self.on_broadcast(who, sent),
            EventKind::Configuration(conf) => self.on_configuration(who, conf),
            EventKind::Delivered(placed) => self.on_delivered(who, placed),
            EventKind::Originated(placed) => {
                let text = format!("gave {} a place of its own", placed.message);
                Err(("UI", text))
            }
            EventKind::Missed { upto, own } => self.on_missed(who, *upto, *own),
            EventKind::Excluded(_) if self.only_as_member => {
                if state.outside.replace(true) == Some(true) {
                    return Err(("UTO", "was told twice that it is no member".into()));
                }
                Ok(())
            }
            EventKind::Primary(ring) | EventKind::Excluded(ring) => Err((
                "UTO",
                format!("was told of ring {ring}, where there are none"),
            )),
            EventKind::Crash => {
                state.ended = Some("crashed");
                Ok(())
            }
            EventKind::Leave => {
                state.ended = Some("left");
                Ok(())
            }
        }
    }

    fn on_broadcast(&mut self, who: Process, sent: &Sent) -> Result<(), Wrong> {
        let message = sent.message;
        let text = |what: &str| Err(("UI", format!("broadcast {message}, {what}")));
        if message.process != who {
            return text("which is another's");
        }
        let state = self.processes.entry(who).or_default();
        if message.counter != state.broadcast + 1 {
            return text("which is not the next");
        }
        state.broadcast = message.counter;
        let accepted = state.accepted.filter(|sent| sent.message == message);
        if accepted.is_some_and(|accepted| accepted != *sent) {
            return text("not as it was accepted");
        }
        self.sent.insert(message, *sent);
        Ok(())
    }

    fn on_configuration(&mut self, who: Process, conf: &Conf) -> Result<(), Wrong> {
        let ConfigurationKind::Regular(id) = conf.id else {
            return Err(("UTO", "a transitional configuration".into()));
        };
        let entry = Entry::Configuration(conf.members.clone());
        let (at, next) = (position(id.ring_seq, 0), position(id.ring_seq + 1, 0));
        let state = self.processes.entry(who).or_default();
        if self.only_as_member && !conf.members.contains(&who) {
            return Err((
                "UTO",
                format!(
                    "was given members and is none: {}",
                    Name(conf.members.as_slice())
                ),
            ));
        }
        if self.only_as_member && state.upto == 0 {
            // It begins here.
            (state.upto, state.missed, state.outside) = (at, true, Some(false));
        }
        self.take(who, at, next, entry)
    }

    fn on_delivered(&mut self, who: Process, placed: &Placed) -> Result<(), Wrong> {
        let message = placed.message;
        let text = |(property, what): Wrong| (property, format!("delivered {message} {what}"));
        is_as_sent(self.sent.get(&message).copied(), placed).map_err(text)?;
        let at = placed.position;
        let first = *self.places.entry(message).or_insert(at);
        if first != at {
            return Err(text(("UTO", format!("at {at}, which is at {first}"))));
        }
        self.take(who, at, at + 1, Entry::Message(message))?;
        let state = self.processes.entry(who).or_default();
        let last = state.last.insert(message.process, message.counter);
        // A process that missed messages does not know how far each sender had got.
        let before = last.or((!state.missed).then_some(0));
        if before.is_some_and(|before| before + 1 != message.counter) {
            let after = before.unwrap_or(0);
            return Err(text((
                "fifo",
                format!("after number {after} of its sender"),
            )));
        }
        Ok(())
    }

    /// A process is given the entry at a position, and goes on to the next.
    fn take(&mut self, who: Process, at: u64, next: u64, entry: Entry) -> Result<(), Wrong> {
        let state = self.processes.get(&who);
        let from = state.map_or(0, |state| state.upto);
        let outside = state.and_then(|state| state.outside);
        if outside.unwrap_or(self.only_as_member) {
            let what = format!("was given {} at {at}, and is no member", shown(&entry));
            return Err(("UTO", what));
        }
        if at < from {
            let what = format!(
                "delivered {} at {at}, having got up to {from}",
                shown(&entry)
            );
            return Err(("UTO", what));
        }
        if let Some((known, skipped)) = self.order.range(from..at).next() {
            let (skipped, entry) = (shown(skipped), shown(&entry));
            let what = format!("delivered {entry} at {at}, and not {skipped} at {known}");
            return Err(("UTO", what));
        }
        match self.order.get(&at) {
            Some(known) if *known == entry => {}
            Some(known) => {
                let (known, entry) = (shown(known), shown(&entry));
                let what = format!("delivered {entry} at {at}, where others have {known}");
                return Err(("UTO", what));
            }
            None => {
                if self.passed(at, next) {
                    let what = format!(
                        "delivered {} at {at}, where others have nothing",
                        shown(&entry)
                    );
                    return Err(("UTO", what));
                }
                self.order.insert(at, entry);
            }
        }
        self.processes.entry(who).or_default().upto = next;
        self.pass(from, next);
        Ok(())
    }

    /// Whether some process has passed any of these positions.
    fn passed(&self, from: u64, upto: u64) -> bool {
        let before = self.passed.range(..upto).next_back();
        before.is_some_and(|(_, end)| *end > from)
    }

    fn pass(&mut self, mut from: u64, mut upto: u64) {
        while let Some((first, end)) = self.passed.range(..=upto).next_back()
            && *end >= from
        {
            (from, upto) = (from.min(*first), upto.max(*end));
            let first = *first;
            self.passed.remove(&first);
        }
        self.passed.insert(from, upto);
    }
}

fn shown(entry: &Entry) -> String {
    match entry {
        Entry::Message(message) => format!("message {message}"),
        Entry::Configuration(members) => format!("the members {}", Name(members.as_slice())),
    }
}

fn said(who: Process, time: u64, result: Result<(), Wrong>) -> Result<(), Violation> {
    result.map_err(|(property, what)| {
        let at = if time > 0 {
            format!(" (t={time})")
        } else {
            String::new()
        };
        wrong(property, format!("process {} {what}{at}", Name(who)))
    })
}
