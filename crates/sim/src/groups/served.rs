//! The layer over an engine, seen as an engine: deliveries below the layer come to the world as ever.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

use bytes::Bytes;
use rota_core::contract::{
    Class, Delivery, Engine, Input, Output, Process, RingId, Seq, Service, Status, SubmitError,
    Time, TimerReason,
};
use rota_core::groups::{ClientEvent, Daemon, Groups};
use rota_views::PacketId;

use super::Layer;
use crate::plan::Plan;
use crate::ring::Holds;
use crate::views::InViews;
use crate::world::System;

/// Groups over the engines of another system, with the limits of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Grouped<S>(pub S);

/// Messages between the layer and the engine that nobody has looked at yet.
#[derive(Debug, Default)]
struct Seen {
    submitted: VecDeque<(u64, Service, Bytes)>,
    delivered: Option<Delivery>,
}

/// The engine below the layer. It hands out one delivery, and no other until that has been looked at: so
/// each event of a client has its place among the deliveries.
#[derive(Debug)]
struct Below<E> {
    engine: E,
    seen: RefCell<Seen>,
}

impl<E: Engine> Engine for Below<E> {
    fn handle(&mut self, now: Time, input: Input) {
        self.engine.handle(now, input);
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let counter = self.engine.submit(now, service, payload)?;
        let submitted = (counter, service, Bytes::copy_from_slice(payload));
        self.seen.get_mut().submitted.push_back(submitted);
        Ok(counter)
    }

    fn leave(&mut self, now: Time) {
        self.engine.leave(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.engine.poll_output()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        let seen = self.seen.get_mut();
        if seen.delivered.is_none() {
            seen.delivered = self.engine.poll_delivery();
            return seen.delivered.clone();
        }
        None
    }

    fn reading(&self) -> Class {
        self.engine.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        self.engine.next_timer()
    }

    fn wants_links(&self) -> bool {
        self.engine.wants_links()
    }

    fn status(&self) -> Status {
        self.engine.status()
    }
}

/// A daemon: an engine with groups over it.
#[derive(Debug)]
pub struct Served<E> {
    daemon: Daemon<Below<E>>,
    events: VecDeque<ClientEvent>,
}

impl<E: Engine> Served<E> {
    const fn below(&self) -> &E {
        &self.daemon.engine().engine
    }
}

impl<E: Engine> Engine for Served<E> {
    fn handle(&mut self, now: Time, input: Input) {
        self.daemon.handle(now, input);
    }

    /// All that is submitted comes of the layer.
    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Unsupported)
    }

    fn leave(&mut self, now: Time) {
        self.daemon.leave(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.daemon.poll_output()
    }

    /// The next delivery to the layer; [`Layer::next_event`] has the events that come of it at clients.
    fn poll_delivery(&mut self) -> Option<Delivery> {
        while let Some(event) = self.daemon.poll_event() {
            self.events.push_back(event);
        }
        self.daemon.engine().seen.borrow_mut().delivered.take()
    }

    fn reading(&self) -> Class {
        self.daemon.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        self.daemon.next_timer()
    }

    fn wants_links(&self) -> bool {
        self.daemon.engine().wants_links()
    }

    fn status(&self) -> Status {
        self.daemon.status()
    }
}

impl<E: Engine> Layer for Served<E> {
    fn groups(&self) -> &Groups {
        self.daemon.groups()
    }

    fn request(&mut self, now: Time, ask: &mut dyn FnMut(&mut Groups)) {
        self.daemon.request(now, ask);
    }

    fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    fn waiting_events(&self) -> usize {
        self.events.len()
    }

    fn next_submitted(&mut self) -> Option<(u64, Service, Bytes)> {
        self.daemon.engine().seen.borrow_mut().submitted.pop_front()
    }
}

impl<E: Engine + Holds> Holds for Served<E> {
    fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool> {
        self.below().has_received(ring, seq)
    }
}

impl<E: Engine + InViews> InViews for Served<E> {
    fn delivering(&self) -> Option<(RingId, PacketId)> {
        self.below().delivering()
    }

    fn last_members(&self) -> &[Process] {
        self.below().last_members()
    }

    fn has_packet(&self, view: RingId, id: PacketId) -> Option<bool> {
        self.below().has_packet(view, id)
    }
}

impl<S: System> System for Grouped<S> {
    type Engine = Served<S::Engine>;

    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Self::Engine {
        let below = Below {
            engine: self.0.engine(plan, me, life),
            seen: RefCell::default(),
        };
        let limits = plan.groups.map(|groups| groups.limits);
        Served {
            daemon: Daemon::new(below, me, limits.unwrap_or_default()),
            events: VecDeque::new(),
        }
    }

    fn ring(&self, engine: &Self::Engine) -> Option<RingId> {
        self.0.ring(engine.below())
    }

    fn forming(&self, engine: &Self::Engine) -> Option<RingId> {
        self.0.forming(engine.below())
    }

    fn said(&self, engine: &Self::Engine) -> Option<(RingId, usize)> {
        self.0.said(engine.below())
    }

    fn leaves_alone_until(&self, engine: &Self::Engine) -> Option<Time> {
        self.0.leaves_alone_until(engine.below())
    }

    fn state(&self, engine: &Self::Engine) -> Option<&'static str> {
        self.0.state(engine.below())
    }

    fn is_settled(&self, engine: &Self::Engine) -> Option<bool> {
        self.0.is_settled(engine.below())
    }

    fn outcomes(&self, engine: &Self::Engine) -> u64 {
        self.0.outcomes(engine.below())
    }

    fn undelivered(&self, engine: &Self::Engine) -> Vec<(Process, RangeInclusive<u64>)> {
        self.0.undelivered(engine.below())
    }

    fn remembers(&self, engine: &Self::Engine) -> bool {
        self.0.remembers(engine.below())
    }

    fn layer<'e>(&self, engine: &'e mut Self::Engine) -> Option<&'e mut dyn Layer> {
        Some(engine)
    }

    fn groups<'e>(&self, engine: &'e Self::Engine) -> Option<&'e dyn Layer> {
        Some(engine)
    }
}
