//! One turn of a process's loop: its next action, and the time that this takes.

use bytes::Bytes;
use rota_check::event::{Conf, EventKind, Placed, Sent, nowhere};
use rota_core::contract::{
    Class, ConfigurationKind, Delivery, Engine, Input, Message, MessageId, Seq, Service,
    SubmitError, Time, position,
};

use super::{System, World};
use crate::plan::{Appetite, FaultKind, MICROS};

/// The time that an application waits after the engine was full.
const FULL_FOR: u64 = 200 * MICROS;
/// Messages that an application wants to submit, at most.
const PENDING: u32 = 256;

impl<S: System> World<'_, S> {
    /// A host's loop turns, or would.
    pub(super) fn step(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let until = host.paused_until;
        let Some(life) = &mut host.life else { return };
        if until > self.now {
            return self.wake(at, until);
        }
        life.busy = false;
        let process = life.process;
        let cost = self.turn(at);
        self.watch.on_step(&self.hosts, process);
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        if let Some(cost) = cost {
            life.busy = true;
            self.wake(at, self.now + cost.max(1));
        } else if let Some(next) = self.next_turn(at) {
            self.wake(at, next);
        }
    }

    /// Does one thing, and says how long that takes; `None` if there is nothing to do.
    fn turn(&mut self, at: usize) -> Option<u64> {
        if let Some(cost) = self.next_output(at) {
            return Some(cost);
        }
        let stuck = self.hosts[at].life.as_ref()?.stuck.is_some();
        if !stuck && let Some(input) = self.hosts[at].life.as_mut()?.inputs.pop_front() {
            self.release(at, &input);
            return Some(self.hand_in(at, input));
        }
        if let Some(cost) = self.deliver(at) {
            return Some(cost);
        }
        // No loop promises an order when several things are due.
        let things = if self.links.is_some() { 4 } else { 3 };
        let order = self.hosts[at].rng.below(things);
        (0..things).find_map(|place| match (order + place) % things {
            0 => self.read(at, stuck),
            1 => self.fire_timer(at),
            3 => self.read_link(at),
            _ if stuck => None,
            _ => self.submit(at),
        })
    }

    pub(super) fn hand_in(&mut self, at: usize, input: Input) -> u64 {
        let now = self.local(at);
        let system = self.system;
        let (mut installed, mut said) = (None, None);
        let mute = self.is_armed(&FaultKind::Mute);
        if let Some(life) = &mut self.hosts[at].life {
            let before = system.ring(life.engine.get());
            let kept = system.outcomes(life.engine.get());
            let said_before = mute.then(|| system.said(life.engine.get()));
            self.tally.on_input(system, life.engine.get(), &input);
            life.engine.handle(now, input);
            (life.undrained, life.app.more) = (true, true);
            let engine = system.voting(life.engine.get());
            let who = (life.process, life.former);
            self.votes.knowledge.look_at(self.now, engine, who);
            installed = system
                .ring(life.engine.get())
                .filter(|ring| before != Some(*ring));
            if let Some(before) = said_before {
                said = system
                    .said(life.engine.get())
                    .filter(|said| before != Some(*said));
            }
            if system.outcomes(life.engine.get()) > kept {
                for (process, counters) in system.undelivered(life.engine.get()) {
                    self.payloads.settle(process, counters);
                }
            }
        }
        self.judge_configs();
        self.take_submitted(at);
        if let Some(ring) = installed.filter(|_| self.ambush.is_armed()) {
            self.snipe(at, ring);
        }
        if let Some(said) = said {
            self.mute(at, said);
        }
        self.plan.cost.turn
    }

    /// Reads the next burst of the class that the engine asks for, or else of the other one.
    fn read(&mut self, at: usize, stuck: bool) -> Option<u64> {
        let life = self.hosts[at].life.as_mut()?;
        let first = life.engine.reading();
        // No token while an output has not left.
        let mut readable = [first, first.other()]
            .into_iter()
            .filter(|&class| class == Class::Data || !stuck);
        let (class, (bytes, segment)) =
            readable.find_map(|class| life.socket(class).pop().map(|burst| (class, burst)))?;
        let datagrams = bytes.len().div_ceil(segment) as u64;
        let channel = Default::default();
        self.hand_in(
            at,
            Input::Datagrams {
                class,
                channel,
                bytes,
                segment,
            },
        );
        let cost = &self.plan.cost;
        Some(cost.receive + datagrams * cost.receive_datagram)
    }

    fn fire_timer(&mut self, at: usize) -> Option<u64> {
        let now = self.local(at);
        let life = self.hosts[at].life.as_ref()?;
        let life = Some(life).filter(|life| life.knows_outputs())?;
        let (due, _) = life.engine.next_timer()?;
        (due <= now).then(|| self.hand_in(at, Input::Timer))
    }

    /// When there is something to do again, as far as the process itself knows.
    fn next_turn(&self, at: usize) -> Option<u64> {
        let host = &self.hosts[at];
        let life = host.life.as_ref()?;
        let app = &life.app;
        let known = Some(life).filter(|life| life.knows_outputs());
        let timer = known.and_then(|life| life.engine.next_timer());
        let timer = timer.map(|(Time(due), _)| self.plan.hosts[at].clock.when(due));
        let stuck = life.stuck.as_ref().map(|stuck| stuck.until);
        let hungry = app.more.then(|| app.hungry_at.max(host.stalled_until));
        let submit = (app.pending > 0 && stuck.is_none()).then_some(app.retry_at);
        let next = [timer, stuck, hungry, submit].into_iter().flatten().min();
        next.map(|next| next.max(self.now + 1))
    }

    /// The application takes what it has an appetite for.
    fn deliver(&mut self, at: usize) -> Option<u64> {
        let Appetite { take, pause } = self.appetite(at);
        let host = &self.hosts[at];
        let app = &host.life.as_ref()?.app;
        if !app.more || app.hungry_at.max(host.stalled_until) > self.now {
            return None;
        }
        let mut taken = 0;
        while taken < u64::from(take) && !self.watch.has_found() && self.deliver_one(at) {
            taken += 1;
        }
        self.hear(at);
        let life = self.hosts[at].life.as_mut()?;
        if taken == 0 {
            return None;
        }
        life.undrained = true;
        life.app.hungry_at = self.now + pause;
        Some(taken * self.plan.cost.turn)
    }

    fn appetite(&self, at: usize) -> Appetite {
        if self.healed() {
            return Appetite {
                take: 256,
                pause: 0,
            };
        }
        self.plan.hosts[at].appetite
    }

    /// Hands the next delivery to the application, if there is one.
    pub(super) fn deliver_one(&mut self, at: usize) -> bool {
        let Some(life) = self.hosts[at].life.as_mut() else {
            return false;
        };
        let Some(delivery) = life.engine.poll_delivery() else {
            life.app.more = false;
            return false;
        };
        let (process, conf) = (life.process, life.app.conf);
        self.watch
            .on_delivery(&self.hosts, (process, conf), &delivery);
        match delivery {
            Delivery::Configuration(configuration) => {
                if let ConfigurationKind::Regular(ring) = configuration.kind {
                    self.tally.on_ring(ring);
                }
                if let Some(life) = &mut self.hosts[at].life {
                    let members = configuration.members.clone();
                    life.app.configured(configuration.kind, members);
                    if let ConfigurationKind::Regular(ring) = configuration.kind {
                        life.app.got(position(ring.ring_seq, 0));
                    }
                }
                let conf = Conf {
                    id: configuration.kind,
                    members: configuration.members,
                };
                self.emit(process, EventKind::Configuration(conf));
            }
            Delivery::Message(message) => self.deliver_message(at, &message, conf),
            Delivery::Primary(ring) => {
                self.tally.cover("primary_reports");
                self.emit(process, EventKind::Primary(ring));
            }
            Delivery::Excluded(ring) => {
                self.tally.cover("excluded");
                self.emit(process, EventKind::Excluded(ring));
            }
            Delivery::Missed { seq, count, own } => {
                self.judge_missed(at, (seq, count));
                self.missed(at, seq + count, own);
            }
            Delivery::Passed { .. } => self.found("skips", "nobody asked for skips"),
            Delivery::Notice { .. } => self.found("notices", "nobody has given a notice"),
        }
        true
    }

    fn missed(&mut self, at: usize, next: Seq, own: u64) {
        self.tally.cover("missed");
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        life.app.upto = life.app.upto.max(position(next, 0));
        let (process, upto) = (life.process, position(next, 0));
        self.emit(process, EventKind::Missed { upto, own });
    }

    fn deliver_message(&mut self, at: usize, message: &Message, conf: Option<ConfigurationKind>) {
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        let process = life.process;
        life.app.delivered(message.id, process);
        life.app.got(message.position());
        self.votes.last_words.on_delivered(message.id);
        if message.payload.len() > 1 << 20 {
            self.tally.cover("messages_of_megabytes");
        }
        self.tally.on_delivery();
        if self.plan.views.is_some() {
            let counter = message.id.counter;
            self.payloads.settle(message.id.process, counter..=counter);
        }
        // Where it was to come may be forgotten.
        let unknown = self.plan.uring.as_ref().map(|_| nowhere(process));
        let Some(conf) = conf.or(unknown) else {
            let what = format!("{} before any configuration, at {process:?}", message.id);
            return self.found("E4", what);
        };
        if matches!(conf, ConfigurationKind::Transitional { .. }) {
            self.tally.cover("transitional_deliveries");
            if message.service == Service::Safe {
                self.tally.cover("transitional_safe_deliveries");
            }
        }
        let placed = Placed {
            message: message.id,
            conf,
            position: message.position(),
            service: message.service,
            hash: self.payloads.hash_of(message.id, &message.payload),
        };
        self.emit(process, EventKind::Delivered(placed));
    }

    /// It is time for a host's application to want more.
    pub(super) fn want_to_submit(&mut self, at: usize) {
        let source = &self.plan.hosts[at].source;
        if self.healed() {
            return;
        }
        let host = &mut self.hosts[at];
        if let Some(life) = &mut host.life {
            let room = PENDING.saturating_sub(life.app.pending);
            let more = source.batch.min(host.budget).min(room);
            life.app.pending += more;
            host.budget -= more;
        }
        self.order_skips(at);
        let host = &mut self.hosts[at];
        if host.budget > 0 {
            let later = host.rng.range(source.every / 2, source.every / 2 * 3);
            let next = self.now + later.max(1);
            self.queue.push(next, super::What::Submit(at as u16));
        }
        self.wake_now(at);
    }

    /// The guarantee and the payload of a host's next message.
    pub(super) fn draw_message(&mut self, at: usize) -> (Service, Bytes) {
        let source = &self.plan.hosts[at].source;
        let host = &mut self.hosts[at];
        let rng = &mut host.rng;
        let most = if rng.ppm(source.large) {
            source.large_bytes
        } else {
            source.small_bytes
        };
        let length = rng.below(most + 1).min(self.plan.ring.message_bytes as u64);
        let service = source.services[rng.index(source.services.len())];
        (service, host.pool.draw(rng, length))
    }

    fn submit(&mut self, at: usize) -> Option<u64> {
        let now = self.local(at);
        let app = &self.hosts[at].life.as_ref()?.app;
        if app.pending == 0 || app.retry_at > self.now {
            return None;
        }
        if self.plan.groups.is_some() {
            let taken = self.ask(at);
            let app = &mut self.hosts[at].life.as_mut()?.app;
            match taken {
                Some(true) => app.pending -= 1,
                _ => app.retry_at = self.now + FULL_FOR,
            }
            return Some(self.plan.cost.turn);
        }
        let (service, payload) = self.draw_message(at);
        let length = payload.len();
        let life = self.hosts[at].life.as_mut()?;
        let answer = life.engine.submit(now, service, &payload);
        (life.undrained, life.app.more) = (true, true);
        match answer {
            Ok(counter) => {
                life.app.pending -= 1;
                life.app.sent += 1;
                let process = life.process;
                let message = MessageId { process, counter };
                self.submitted(message, service, payload);
            }
            Err(SubmitError::Full) => life.app.retry_at = self.now + FULL_FOR,
            Err(SubmitError::Unsupported) => life.app.pending -= 1,
            Err(error) => self.found("submit", format!("{length} bytes: {error}")),
        }
        Some(self.plan.cost.turn)
    }

    pub(super) fn submitted(&mut self, message: MessageId, service: Service, payload: Bytes) {
        let Some(hash) = self.payloads.submitted(message, service, payload) else {
            let what = format!("{message} does not follow the counter before");
            return self.found("E3", what);
        };
        let sent = Sent {
            message,
            service,
            hash,
        };
        self.emit(message.process, EventKind::Send(sent));
        if self.healed() {
            self.votes.last_words.on_submitted(message);
        }
        if self.plan.is_uniform() {
            // Others give it its place.
            self.emit(message.process, EventKind::Broadcast(sent));
        }
    }
}
