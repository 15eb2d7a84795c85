//! What is written down of clients: counts, lines for the log, and the trace.

use std::fmt::Display;

use rota_core::groups::{Event, Member, Send};
use rota_net::Complaints;
use rota_trace::event::ClientSaw;

use super::counters::{Counter, Counters};
use crate::farewells::Farewells;
use crate::names::Names;
use crate::trace::{self, ClientTrace};

/// The counts of clients, the lines about them, and their trace if there is one.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    counters: Counters,
    complaints: Complaints,
    farewells: Farewells,
    trace: Option<ClientTrace>,
}

impl Journal {
    /// From here on, events of clients are also traced.
    pub fn trace_to(&mut self, trace: ClientTrace) {
        self.trace = Some(trace);
    }

    pub const fn count(&mut self, counter: Counter) {
        self.counters.add(counter, 1);
    }

    pub const fn add(&mut self, counter: Counter, more: u64) {
        self.counters.add(counter, more);
    }

    #[cfg(test)]
    pub const fn counted(&self, counter: Counter) -> u64 {
        self.counters.get(counter)
    }

    /// All counts, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counters.named()
    }

    /// A line for the log about a client, unless there was one for this reason just now.
    pub fn complain(&mut self, reason: &'static str, who: &dyn Display, what: &dyn Display) {
        self.complaints.say(reason, who, what);
    }

    /// A line for the log about a client that has gone, unless there were many just now.
    pub fn farewell(&mut self, name: &str, why: &str) {
        self.farewells.say(name, why);
    }

    /// Traces what a client did or saw.
    pub fn note(&mut self, client: &Member, saw: ClientSaw, names: &mut Names) {
        if let Some(trace) = &mut self.trace {
            trace.note(client, saw, names);
        }
    }

    /// Whether there is a trace: what is only for that need not be made otherwise.
    pub const fn is_tracing(&self) -> bool {
        self.trace.is_some()
    }

    /// The event as clients see it, if that is to be traced.
    pub fn saw(&self, event: &Event, names: &mut Names) -> Option<ClientSaw> {
        self.trace.as_ref().and_then(|_| trace::saw(event, names))
    }

    /// Numbers a message that a client sends, if that is to be traced. The result is for [`Self::sent`].
    pub fn number(&self, send: &mut Send, names: &mut Names) -> Option<ClientSaw> {
        let trace = self.trace.as_ref()?;
        Some(trace.number(send, names))
    }

    /// A message that was numbered has been taken.
    pub fn sent(&mut self, client: &Member, saw: ClientSaw, names: &mut Names) {
        if let Some(trace) = &mut self.trace {
            trace.sent(client, saw, names);
        }
    }

    /// Hands the lines of the trace to the kernel: before a socket gets what they are about.
    pub fn flush(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
    }
}
