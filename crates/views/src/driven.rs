//! The engine as its driver sees it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

use super::engine::{Phase, ViewEngine};
use super::exchange::Step;
use super::path::{DataPath, Link};
use rota_core::contract::{
    Channel, Class, Delivery, Engine, Input, NodeId, Output, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_core::invariants;
use rota_core::wire::is_for_data_path;

/// The channel of the ring's traffic. The data path has channel 0.
const RING_CHANNEL: Channel = Channel(1);

/// Nanoseconds after which datagrams of the token's class are read first, whatever the data path says:
/// under load the ring beside it must not starve.
const TOKEN_PATIENCE: u64 = 5_000_000;

const REASON: TimerReason = TimerReason::Other("views");

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// Datagrams go to the ring or to the data path by their kind; those of a burst that go the same way
    /// stay together.
    fn on_datagrams(&mut self, class: Class, channel: Channel, bytes: &Bytes, segment: usize) {
        let segment = segment.max(1);
        let mut of_ring = 0;
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + segment).min(bytes.len());
            if is_for_data_path(&bytes[at..end]) {
                self.on_ring_datagrams(class, channel, bytes.slice(of_ring..at), segment);
                self.path.on_datagram(self.now, class, bytes.slice(at..end));
                of_ring = end;
            }
            at = end;
        }
        self.on_ring_datagrams(class, channel, bytes.slice(of_ring..), segment);
    }

    fn on_ring_datagrams(&mut self, class: Class, channel: Channel, bytes: Bytes, segment: usize) {
        if bytes.is_empty() {
            return;
        }
        let segment = segment.min(bytes.len());
        let input = Input::Datagrams {
            class,
            channel,
            bytes,
            segment,
        };
        self.ring.handle(self.now, input);
    }

    fn on_timer(&mut self) {
        let is_due =
            |timer: Option<(Time, TimerReason)>| timer.is_some_and(|(at, _)| at <= self.now);
        let (ring, path) = (
            is_due(self.ring.next_timer()),
            is_due(self.path.next_timer()),
        );
        if ring {
            self.ring.handle(self.now, Input::Timer);
        }
        if path {
            self.path.on_timer(self.now);
        }
    }

    fn on_link(&mut self, link: Link) {
        self.path.on_link(self.now, link);
    }

    /// Whether tokens and control datagrams have waited long enough.
    fn is_token_due(&self) -> bool {
        self.now.since(self.tokens_read) > TOKEN_PATIENCE
    }

    fn state(&self, ring: String) -> String {
        let names = |nodes: &[NodeId]| {
            let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
            names.join(", ")
        };
        match &self.phase {
            Phase::Changing(exchange) if !exchange.primary => format!("in no view; {ring}"),
            Phase::Changing(exchange) if exchange.step == Step::Forgotten => {
                format!("in no view: too few remember the last one; {ring}")
            }
            Phase::Changing(exchange) => {
                format!(
                    "changing the view: waiting for {}",
                    names(&exchange.waiting_for())
                )
            }
            Phase::Between | Phase::Operating(_) | Phase::Left => ring,
        }
    }
}

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// Tells the ring beside of an application that hangs, and has the members found anew if nothing moves in the view.
    fn mind_standstill(&mut self, now: Time) {
        if self.appetite.wait(now.since(self.now)) {
            self.ring.application_hangs(now, true);
        }
        let operating = matches!(self.phase, Phase::Operating(_));
        let progress = || self.path.progress().filter(|_| operating);
        if self.standstill.look(now, progress) {
            self.counters.stuck += 1;
            self.ring.look_again(now);
        }
    }
}

impl<P: DataPath, E: Engine> Engine for ViewEngine<P, E> {
    fn handle(&mut self, now: Time, input: Input) {
        self.mind_standstill(now);
        self.now = now;
        if matches!(self.phase, Phase::Left) {
            return;
        }
        match input {
            Input::Start(start) => {
                self.tokens_read = now;
                self.on_start(&start);
                self.ring.handle(now, Input::Start(start));
            }
            Input::Datagrams {
                class,
                channel,
                bytes,
                segment,
            } => {
                // Data that is read when tokens were wanted shows that there are no tokens.
                if class == Class::Token || self.is_token_due() {
                    self.tokens_read = now;
                }
                self.on_datagrams(class, channel, &bytes, segment);
            }
            Input::Timer => self.on_timer(),
            Input::LinkUp { peer, session } => self.on_link(Link::Up { peer, session }),
            Input::LinkDown { peer, session } => self.on_link(Link::Down { peer, session }),
            Input::LinkMessage {
                peer,
                session,
                bytes,
                ..
            } => self.on_link(Link::Message {
                peer,
                session,
                bytes,
            }),
            Input::Writable {
                peer,
                session,
                bytes,
            } => self.on_link(Link::Writable {
                peer,
                session,
                bytes,
            }),
            input => self.ring.handle(now, input),
        }
        self.pump();
        if invariants::are_checked() {
            self.check();
            self.path.check();
        }
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.now = now;
        if matches!(self.phase, Phase::Left) {
            return Err(SubmitError::Stopped);
        }
        self.backlog.push(service, payload)
    }

    fn leave(&mut self, now: Time) {
        self.now = now;
        self.ring.leave(now);
        if matches!(self.phase, Phase::Operating(_)) {
            self.path.freeze(now);
        }
        self.phase = Phase::Left;
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.ring.poll_output();
        match output {
            Some(Output::Send {
                class,
                to,
                burst,
                after,
                ..
            }) => Some(Output::Send {
                class,
                channel: RING_CHANNEL,
                to,
                burst,
                after,
            }),
            Some(output) => Some(output),
            None if matches!(self.phase, Phase::Operating(_)) => {
                self.path.poll_output(self.now, &mut self.backlog)
            }
            None => None,
        }
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if self.appetite.on_asked() {
            self.ring.application_hangs(self.now, false);
        }
        loop {
            if let Some(delivery) = self.deliveries.pop_front() {
                return Some(delivery);
            }
            if !self.take_packet() {
                return None;
            }
        }
    }

    fn reading(&self) -> Class {
        match &self.phase {
            Phase::Operating(_) if !self.is_token_due() => self.path.reading(),
            Phase::Operating(_) => Class::Token,
            _ => self.ring.reading(),
        }
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if matches!(self.phase, Phase::Left) {
            return None;
        }
        let telling = self.is_telling_due().then_some(self.now);
        let own = [telling, self.excluded_at()].into_iter().flatten();
        let own = own.map(|at| (at, REASON)).min();
        [self.ring.next_timer(), self.path.next_timer(), own]
            .into_iter()
            .flatten()
            .min()
    }

    fn wants_links(&self) -> bool {
        self.path.uses_links()
    }

    fn status(&self) -> Status {
        let mut status = self.ring.status();
        self.path.count(&mut status.counters);
        let (counters, account) = (self.counters, self.memory.account.counters);
        status.counters.extend([
            ("views_exchanges", counters.exchanges),
            ("views_installed", counters.installed),
            ("views_tentative", counters.tentative),
            ("views_forced_packets", counters.forced),
            ("views_excluded", counters.excluded),
            ("views_forgotten", counters.forgotten),
            ("views_stuck", counters.stuck),
            ("views_malformed", counters.malformed),
            ("views_incomplete", counters.incomplete),
            ("views_packets_malformed", account.malformed),
            ("views_duplicates", account.duplicates),
        ]);
        status.state = self.state(core::mem::take(&mut status.state));
        status.waiting = self.backlog.len();
        status
    }
}
