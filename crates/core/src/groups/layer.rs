//! The state machine over an engine: the driver of the engine drives this as well.

use super::event::ClientEvent;
use super::limits::Limits;
use super::machine::Groups;
use crate::contract::{
    Class, Engine, Input, Output, Process, Status, SubmitError, Time, TimerReason,
};
use crate::invariants;

/// Groups over an engine. Inputs, outputs and timers are the engine's, by the law of [`crate::contract`];
/// instead of deliveries there are events of clients.
///
/// All nodes of a cluster have the layer or none.
#[derive(Debug)]
pub struct Daemon<E> {
    engine: E,
    groups: Groups,
    now: Time,
    due: bool,
}

impl<E: Engine> Daemon<E> {
    /// Puts groups over `engine`, which is, or is going to be, started as process `me`.
    pub fn new(engine: E, me: Process, limits: Limits) -> Self {
        Self {
            engine,
            groups: Groups::new(me, limits),
            now: Time(0),
            due: false,
        }
    }

    /// The engine below.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// The state of the groups.
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// A request of a client. Then poll the outputs.
    pub fn request<T>(&mut self, now: Time, request: impl FnOnce(&mut Groups) -> T) -> T {
        self.now = now;
        let answer = request(&mut self.groups);
        self.submit();
        answer
    }

    /// Tells the engine what happened at `now`.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        let mine = self.due && matches!(input, Input::Timer);
        let below = self.engine.next_timer();
        if !mine || below.is_some_and(|(due, _)| due <= now) {
            self.engine.handle(now, input);
        }
        self.submit();
        if invariants::are_checked() {
            self.groups.check();
        }
    }

    /// The application leaves of its own will.
    pub fn leave(&mut self, now: Time) {
        self.now = now;
        self.engine.leave(now);
    }

    /// The next thing to do in the world.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.engine.poll_output()
    }

    /// The next event for clients. Call it only while they have room, or are dropped for having none.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        loop {
            if let Some(event) = self.groups.poll_event() {
                return Some(event);
            }
            self.groups.deliver(self.engine.poll_delivery()?);
            self.due |= self.groups.has_to_submit();
        }
    }

    /// The class to read first now.
    pub fn reading(&self) -> Class {
        self.engine.reading()
    }

    /// The time at which to hand in [`Input::Timer`] next, and its purpose: at once, when deliveries have given the
    /// layer something to send.
    pub fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let mine = self.due.then_some((self.now, TimerReason::Other("groups")));
        [self.engine.next_timer(), mine].into_iter().flatten().min()
    }

    /// The engine's, and counters of groups.
    pub fn status(&self) -> Status {
        let mut status = self.engine.status();
        let counted = self.groups.counters();
        status.counters.extend([
            ("groups_malformed", counted.malformed),
            ("groups_late", counted.late),
            ("groups_again", counted.again),
            ("groups_exchanges", counted.exchanges),
            ("groups_interrupted", counted.interrupted),
            ("groups_refused", counted.refused),
            ("groups_parts", counted.parts),
            ("groups_holds_expired", counted.expired),
            ("groups_missed", counted.missed),
            ("groups_elsewhere", counted.elsewhere),
        ]);
        status
    }

    /// Submits what is due. A message that finds no room is tried again with the next input: room comes of tokens.
    fn submit(&mut self) {
        self.due = false;
        while let Some((service, bytes)) = self.groups.to_submit() {
            match self.engine.submit(self.now, service, bytes) {
                Ok(counter) => self.groups.submitted(counter),
                Err(SubmitError::Full | SubmitError::Stopped) => return,
                Err(SubmitError::TooLarge { .. } | SubmitError::Unsupported) => {
                    self.groups.refused();
                }
            }
        }
    }
}
