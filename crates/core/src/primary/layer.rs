//! The layer as an engine: it passes on the deliveries of the engine below, and adds which configurations are primary.

use super::message::{Parsed, parse, wrap};
use super::own::OwnMessages;
use super::patience::DiskPatience;
use super::requests::{Answered, Requests};
use super::session::Rule;
use super::voting::Voting;
use crate::contract::{
    Class, Delivery, Engine, Input, Message, NodeId, Output, PersistId, Process, RingId, Seq,
    Service, Status, SubmitError, Time, TimerReason,
};
use crate::invariants;
use alloc::vec::Vec;

/// An engine that also says which configurations are primary. See the module page of [`super`].
///
/// Messages of the application carry a number before them, so all nodes of a cluster have the layer
/// or none.
#[derive(Debug)]
pub struct Primary<E> {
    pub(super) engine: E,
    pub(super) rule: Rule,
    /// The application above the layer says when a primary carries on what was before it.
    pub(super) carried_on_by_hand: bool,
    /// The lists of nodes that count in the newest configuration.
    pub(super) electorates: Vec<Vec<NodeId>>,
    me: Option<Process>,
    pub(super) now: Time,
    pub(super) voting: Voting,
    /// The ring of the configuration that was delivered last, if it is primary.
    pub(super) primary: Option<RingId>,
    /// The ring to report next under the static rule.
    pub(super) report: Option<RingId>,
    requests: Requests,
    patience: DiskPatience,
    /// Deliveries may have given the layer something to do.
    due: bool,
    own: OwnMessages,
    malformed: u64,
    reported: u64,
}

impl<E: Engine> Primary<E> {
    /// Wraps `engine`, which must not have been started yet.
    pub fn new(engine: E, rule: Rule) -> Self {
        Self {
            engine,
            rule,
            carried_on_by_hand: false,
            electorates: Vec::new(),
            me: None,
            now: Time(0),
            voting: Voting::default(),
            primary: None,
            report: None,
            requests: Requests::default(),
            patience: DiskPatience::default(),
            due: false,
            own: OwnMessages::default(),
            malformed: 0,
            reported: 0,
        }
    }

    /// The engine below.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    #[cfg(test)]
    pub(super) const fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    #[cfg(test)]
    pub(super) const fn me(&self) -> Option<Process> {
        self.me
    }

    /// The ring of the current configuration, if that is primary and was delivered as such.
    pub const fn primary(&self) -> Option<RingId> {
        self.primary
    }

    /// Whether this node has, as far as the layer knows, the state of all primaries up to the current one:
    /// it was in all of them, or its application has said so. With the static rule nothing is known.
    pub fn is_caught_up(&self) -> bool {
        self.primary.is_some() && self.voting.is_caught_up()
    }

    /// The application has got the state of its primary from a member that had it, and has made it durable. Only then
    /// does this node carry the state to a later primary.
    pub fn caught_up(&mut self, now: Time) {
        self.now = now;
        if let Some(ring) = self.primary {
            self.voting.caught_up(ring);
        }
    }

    /// Does what deliveries and answers have made due.
    fn work(&mut self) {
        self.due = false;
        while let Some(bytes) = self.voting.unsent() {
            // A message that finds no room is tried again with the next input: room comes of tokens.
            let Ok(counter) = self.engine.submit(self.now, Service::Safe, bytes) else {
                return;
            };
            self.own.counters.push_back(counter);
            self.voting.sent();
        }
    }

    /// Sets the time until which deliveries wait for the disk, or lets them go when it is over.
    fn watch_hold(&mut self) {
        if self.patience.is_over(self.now) {
            self.voting.hold_no_longer();
        }
        let is_holding = self.voting.is_holding();
        self.patience.on_holding(self.now, is_holding);
    }

    fn on_answer(&mut self, answered: &Answered, failed: bool) {
        match (answered.own, failed) {
            (false, _) => {}
            (true, false) => self.voting.on_persisted(),
            (true, true) => {
                self.voting.on_persist_failed();
                self.patience.on_failed(self.now);
            }
        }
    }

    /// The message as the application gets it; `None` for a message of the layer, or a malformed one.
    fn on_message(&mut self, mut message: Message) -> Option<Message> {
        let (from, counter) = (message.id.process, message.id.counter);
        match parse(&message.payload) {
            Some(Parsed::Application(own_before, payload)) => {
                message.id.counter = counter.saturating_sub(own_before);
                message.payload = payload;
                return Some(message);
            }
            Some(Parsed::Own(own)) => {
                if self.me == Some(from) {
                    self.own.returned(counter);
                }
                self.voting.on_own(from, own);
            }
            None => self.malformed += 1,
        }
        None
    }

    /// The output of the engine below as the driver gets it; `None` where the driver gets nothing of it.
    fn on_output(&mut self, output: Output) -> Option<Output> {
        Some(match output {
            Output::Persist { id, records } => Output::Persist {
                id: self.requests.ask(Some(id)),
                records,
            },
            Output::Originated {
                counter,
                seq,
                index,
            } => Output::Originated {
                counter: counter - self.own.before(counter)?,
                seq,
                index,
            },
            Output::Send {
                class,
                channel,
                to,
                burst,
                after,
            } => Output::Send {
                class,
                channel,
                to,
                burst,
                after: self.after(after),
            },
            Output::LinkSend { .. }
            | Output::Fetch { .. }
            | Output::Reopen
            | Output::Arbitrate { .. } => output,
        })
    }

    fn after(&self, below: Option<PersistId>) -> Option<PersistId> {
        below.and_then(|below| self.requests.after(below))
    }
}

impl<E: Engine> Engine for Primary<E> {
    fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        match input {
            Input::Start(start) => {
                self.me = Some(start.me);
                if let Rule::DynamicLinear { first } = &self.rule {
                    self.voting = Voting::new(&start, first);
                }
                self.engine.handle(now, Input::Start(start));
            }
            Input::Persisted { id } => {
                let answered = self.requests.persisted(id);
                if let Some(id) = answered.below {
                    self.engine.handle(now, Input::Persisted { id });
                }
                self.on_answer(&answered, false);
            }
            Input::PersistFailed { id, error } => {
                let answered = self.requests.failed(id);
                if let Some(id) = answered.below {
                    let failed = Input::PersistFailed { id, error };
                    self.engine.handle(now, failed);
                }
                self.on_answer(&answered, true);
            }
            Input::Timer => {
                let below = self.engine.next_timer();
                if below.is_some_and(|(due, _)| due <= now) {
                    self.engine.handle(now, Input::Timer);
                }
            }
            input => self.engine.handle(now, input),
        }
        self.watch_hold();
        self.work();
        if invariants::are_checked() {
            self.check();
        }
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.now = now;
        let own = self.own.count();
        let bytes = wrap(own, payload);
        let header = bytes.len() - payload.len();
        let submitted = self.engine.submit(now, service, &bytes);
        submitted
            .map(|counter| counter - own)
            .map_err(|error| match error {
                SubmitError::TooLarge { limit } => SubmitError::TooLarge {
                    limit: limit.saturating_sub(header),
                },
                error => error,
            })
    }

    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        self.now = now;
        self.engine.submit_skips_to(now, next)
    }

    fn leave(&mut self, now: Time) {
        self.now = now;
        self.engine.leave(now);
    }

    fn application_hangs(&mut self, now: Time, hangs: bool) {
        self.now = now;
        self.engine.application_hangs(now, hangs);
    }

    fn look_again(&mut self, now: Time) {
        self.now = now;
        self.engine.look_again(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        if self.patience.may_write(self.now)
            && let Some(records) = self.voting.poll_records()
        {
            let id = self.requests.ask(None);
            return Some(Output::Persist { id, records });
        }
        loop {
            let output = self.engine.poll_output()?;
            let output = self.on_output(output);
            if output.is_some() {
                return output;
            }
        }
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        loop {
            let report = self.report.take().or_else(|| self.voting.take_report());
            if let Some(ring) = report {
                self.primary = Some(ring);
                self.reported += 1;
                if !self.carried_on_by_hand {
                    self.engine.carries_on(self.now, ring);
                }
                return Some(Delivery::Primary(ring));
            }
            if self.voting.is_holding() {
                self.watch_hold();
                return None;
            }
            let delivery = match self.engine.poll_delivery()? {
                Delivery::Message(message) => self.on_message(message).map(Delivery::Message),
                Delivery::Configuration(configuration) => {
                    self.on_configuration(&configuration);
                    Some(Delivery::Configuration(configuration))
                }
                other => Some(other),
            };
            self.due |= self.voting.unsent().is_some() || self.voting.has_to_write();
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    fn reading(&self) -> Class {
        self.engine.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let reason = TimerReason::Other("primary");
        let due = self.due.then_some((self.now, reason));
        let write = self.voting.has_to_write();
        let write = write.then(|| (self.patience.write_at(self.now), reason));
        let hold = self.patience.hold_until().map(|until| (until, reason));
        [self.engine.next_timer(), due, write, hold]
            .into_iter()
            .flatten()
            .min()
    }

    fn wants_links(&self) -> bool {
        self.engine.wants_links()
    }

    fn status(&self) -> Status {
        let mut status = self.engine.status();
        let counted = self.voting.counters;
        status.counters.extend([
            ("primary_attempts", counted.attempts),
            ("primary_refused", counted.refused),
            ("primary_formed", counted.formed),
            ("primary_forgotten", counted.forgotten),
            ("primary_reported", self.reported),
            ("primary_malformed", self.malformed),
        ]);
        status
    }
}

impl<E> Primary<E> {
    /// Its invariants.
    fn check(&self) {
        self.voting.check();
        self.requests.check();
        self.own.check();
        assert_eq!(
            self.patience.hold_until().is_some(),
            self.voting.is_holding(),
            "deliveries wait for the disk no longer than a time"
        );
    }
}
