//! The engine of `accelerated-ring` and `totem-ring`.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;

use super::forming::Forming;
use crate::contract::{
    Class, Configuration, ConfigurationKind, Delivery, Engine, Input, NodeId, Output, Service,
    StartState, Status, SubmitError, Time, TimerReason,
};
use crate::pack::Outbox;
use crate::ring::{Context, Counters, Ordering, RingConfig, RingConfigError, send_to};
use crate::wire::{self, Form, Hello, Packet};

/// One process's ring: membership and, once a ring is installed, its ordering.
#[derive(Debug)]
pub struct RingEngine {
    config: RingConfig,
    forming: Option<Forming>,
    ordering: Option<Ordering>,
    /// A configuration that the application has not seen yet.
    announced: Option<Configuration>,
    outbox: Outbox,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl RingEngine {
    /// An engine that waits for its `Start`.
    pub fn new(config: RingConfig) -> Result<Self, RingConfigError> {
        config.check()?;
        let outbox = Outbox::new(
            config.frame_bytes(),
            config.message_bytes,
            config.backlog_bytes,
        );
        Ok(Self {
            config,
            forming: None,
            ordering: None,
            announced: None,
            outbox,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Its configuration.
    pub const fn config(&self) -> &RingConfig {
        &self.config
    }

    /// The ordering of the installed ring.
    pub const fn ordering(&self) -> Option<&Ordering> {
        self.ordering.as_ref()
    }

    /// What it has counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets waiting for a token.
    pub fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Calls the installed ring with what it needs for one call.
    fn with_ring<T>(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let Self {
            ordering,
            outbox,
            outputs,
            counters,
            ..
        } = self;
        let mut context = Context {
            now,
            outbox,
            outputs,
            counters,
        };
        ordering
            .as_mut()
            .map(|ordering| call(ordering, &mut context))
    }

    fn start(&mut self, now: Time, start: &StartState) {
        self.forming = Some(Forming::new(start.me, self.config.members.clone(), now));
        self.proceed(now);
    }

    fn on_datagram(&mut self, now: Time, bytes: Bytes) {
        let packet = match wire::decode(bytes) {
            Ok(packet) => packet,
            Err(_) => {
                self.counters.datagrams_malformed += 1;
                return;
            }
        };
        if cluster(&packet) != self.config.cluster {
            self.counters.datagrams_foreign_cluster += 1;
            return;
        }
        match packet {
            Packet::Data(data) if self.is_installed(data.ring) => {
                self.with_ring(now, |ring, ctx| ring.on_data(ctx, data));
                self.ring_runs();
            }
            Packet::Token(token) if self.is_installed(token.ring) => {
                self.with_ring(now, |ring, ctx| ring.on_token(ctx, token));
                self.ring_runs();
            }
            Packet::Hurry(hurry) if self.is_installed(hurry.ring) => {
                self.with_ring(now, |ring, ctx| ring.on_hurry(ctx, &hurry));
            }
            Packet::Hello(hello) => self.on_hello(now, &hello),
            Packet::Form(form) => self.on_form(now, &form),
            Packet::Data(_) | Packet::Token(_) | Packet::Hurry(_) => {
                self.counters.datagrams_foreign_ring += 1;
            }
        }
    }

    fn is_installed(&self, ring: crate::contract::RingId) -> bool {
        self.ordering
            .as_ref()
            .is_some_and(|ordering| ordering.ring() == ring)
    }

    /// Somebody's token or data came: everybody has the ring, nothing is left to form.
    fn ring_runs(&mut self) {
        let rep_waits = self.forming.as_ref().is_some_and(Forming::is_rep);
        if !rep_waits {
            self.forming = None;
        }
    }

    fn on_hello(&mut self, now: Time, hello: &Hello) {
        if !self.config.members.contains(&hello.process.node) {
            self.counters.datagrams_foreign_ring += 1;
            return;
        }
        let Some(forming) = self.forming.as_mut() else {
            self.on_late_hello(hello);
            return;
        };
        if forming.is_me(hello) {
            self.counters.datagrams_foreign_ring += 1;
            return;
        }
        self.counters.members_restarted += u64::from(forming.on_hello(hello));
        let announced = forming.ring().is_some() && hello.installed != forming.ring();
        self.proceed(now);
        if announced {
            self.announce_to(hello.process.node);
        }
    }

    /// The ring runs. A member that says hello without the ring has restarted: it stays outside, as
    /// the membership is static.
    fn on_late_hello(&mut self, hello: &Hello) {
        let process = hello.process;
        let member = self
            .ordering
            .as_ref()
            .is_some_and(|ring| ring.is_member(process.node, process.incarnation));
        if !member {
            self.counters.datagrams_foreign_ring += 1;
        }
    }

    /// Names the ring, or starts it, if it is time.
    fn proceed(&mut self, now: Time) {
        let Some(forming) = self.forming.as_mut() else {
            return;
        };
        if let Some(form) = forming.name_ring() {
            self.install(now, form.clone());
            for member in &form.members {
                self.announce_to(member.node);
            }
        }
        if self
            .forming
            .as_ref()
            .is_some_and(|f| f.is_rep() && f.is_complete())
        {
            self.forming = None;
            self.with_ring(now, Ordering::start);
        }
    }

    fn announce_to(&mut self, node: NodeId) {
        let Some(forming) = self.forming.as_ref().filter(|forming| forming.is_rep()) else {
            return;
        };
        let Some(ring) = forming.ring().filter(|ring| ring.rep != node) else {
            return;
        };
        let form = Form {
            cluster: self.config.cluster,
            ring,
            members: forming.members(),
        };
        self.outputs.push_back(send_to(node, &Packet::Form(form)));
    }

    fn on_form(&mut self, now: Time, form: &Form) {
        let Some(forming) = self.forming.as_mut() else {
            // The own ring is announced until everybody has it.
            self.counters.datagrams_foreign_ring += u64::from(!self.is_installed(form.ring));
            return;
        };
        if forming.fits(form) {
            forming.install(form);
            self.install(now, form.clone());
            self.say_hello(now);
        } else if forming.ring() != Some(form.ring) {
            self.counters.datagrams_foreign_ring += 1;
        }
    }

    fn install(&mut self, now: Time, form: Form) {
        let Some(me) = self
            .forming
            .as_ref()
            .map(|forming| forming.hello(0).process)
        else {
            return;
        };
        let kind = ConfigurationKind::Regular(form.ring);
        self.announced = Some(Configuration {
            kind,
            members: form.members.clone(),
        });
        let config = self.config.clone();
        self.ordering = Some(Ordering::new(config, form.ring, form.members, me.node, now));
        self.with_ring(now, |ring, ctx| ring.on_submit(ctx));
    }

    fn say_hello(&mut self, now: Time) {
        let Some(forming) = self.forming.as_mut() else {
            return;
        };
        forming.next_hello = now.after(self.config.timers.form);
        let hello = forming.hello(self.config.cluster);
        for node in self.config.members.clone() {
            if node != hello.process.node {
                self.outputs.push_back(send_to(node, &Packet::Hello(hello)));
            }
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self
            .forming
            .as_ref()
            .is_some_and(|forming| now >= forming.next_hello)
        {
            self.say_hello(now);
        }
        self.with_ring(now, Ordering::on_timer);
    }

    fn state(&self) -> String {
        match (&self.forming, &self.ordering) {
            (Some(forming), None) => {
                let missing: alloc::vec::Vec<String> =
                    forming.missing().iter().map(ToString::to_string).collect();
                if missing.is_empty() {
                    String::from("forming: waiting for the representative")
                } else {
                    format!("forming: waiting for {}", missing.join(", "))
                }
            }
            (Some(_), Some(_)) => String::from("forming: waiting for the first token"),
            (None, Some(_)) => String::from("operational"),
            (None, None) => String::from("not started"),
        }
    }
}

const fn cluster(packet: &Packet) -> u32 {
    match packet {
        Packet::Data(data) => data.cluster,
        Packet::Token(token) => token.cluster,
        Packet::Hurry(hurry) => hurry.cluster,
        Packet::Hello(hello) => hello.cluster,
        Packet::Form(form) => form.cluster,
    }
}

impl Engine for RingEngine {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Start(start) => self.start(now, &start),
            Input::Datagrams { bytes, segment, .. } => {
                let segment = segment.max(1);
                let mut at = 0;
                while at < bytes.len() {
                    let end = (at + segment).min(bytes.len());
                    self.on_datagram(now, bytes.slice(at..end));
                    at = end;
                }
            }
            Input::Timer => self.on_timer(now),
            // Without membership there is nothing to do about a peer that is gone, and the ring
            // uses neither links nor persistence yet.
            Input::Unreachable { .. }
            | Input::LinkUp { .. }
            | Input::LinkDown { .. }
            | Input::LinkMessage { .. }
            | Input::Writable { .. }
            | Input::Persisted { .. }
            | Input::PersistFailed { .. }
            | Input::Fetched { .. } => {}
        }
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let counter = self.outbox.push(service, payload)?;
        self.with_ring(now, |ring, ctx| ring.on_submit(ctx));
        Ok(counter)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if let Some(configuration) = self.announced.take() {
            return Some(Delivery::Configuration(configuration));
        }
        // Delivering needs no time: nothing in it waits.
        self.with_ring(Time(0), |ring, ctx| ring.poll_message(ctx))
            .flatten()
            .map(Delivery::Message)
    }

    fn reading(&self) -> Class {
        self.ordering
            .as_ref()
            .map_or(Class::Token, Ordering::reading)
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let forming = self
            .forming
            .as_ref()
            .map(|f| (f.next_hello, TimerReason::Form));
        let ring = self.ordering.as_ref().and_then(Ordering::next_timer);
        [forming, ring].into_iter().flatten().min()
    }

    fn status(&self) -> Status {
        Status {
            state: self.state(),
            counters: self.counters.by_name(),
        }
    }
}
