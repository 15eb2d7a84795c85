//! The engines that order in primary views, as the simulator knows them: a data path beside an idle ring.

use std::ops::RangeInclusive;

use rota_core::contract::{
    Class, ConfigurationKind, Delivery, Engine, NodeId, Process, RingId, Time,
};
use rota_core::shares::Capacity;
use rota_ring::RingEngine;
use rota_ring::{Protocol, RingConfig};
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::lcr::{self, Lcr};
use rota_views::{Backlog, DataPath, PacketId, ViewEngine};

use crate::observe::{Engines, Finding, Probe};
use crate::plan::{Plan, PrimaryLayer, ViewsPlan};
use crate::ring::{Ring, rule};
use crate::world::System;

/// One with FastCast.
#[derive(Clone, Copy, Debug)]
pub struct FastCastSystem;

/// One with LCR.
#[derive(Clone, Copy, Debug)]
pub struct LcrSystem;

/// A data path, as a plan has it.
pub trait Path: DataPath + Sized {
    /// The data path beside this ring, and the largest frame that it takes.
    fn of(ring: &RingConfig, views: ViewsPlan) -> (Self, usize);
}

impl Path for FastCast {
    fn of(ring: &RingConfig, views: ViewsPlan) -> (Self, usize) {
        let mut config = FastConfig::beside(ring);
        config.window = views.window;
        config.capacity = views.capacity.map(Capacity::new);
        if views.control_with_data {
            config.control = Class::Data;
        }
        let frame_bytes = config.frame_bytes();
        (Self::new(config), frame_bytes)
    }
}

impl Path for Lcr {
    fn of(_: &RingConfig, views: ViewsPlan) -> (Self, usize) {
        let config = lcr::Config {
            frame_bytes: views.frame_bytes,
            window_bytes: views.window_bytes,
            batch_bytes: views.batch_bytes,
        };
        (Self::new(config), views.frame_bytes)
    }
}

/// # Panics
/// If the plan's configuration is not one that a ring can run with, or says nothing of views.
fn engine<P: Path>(plan: &Plan, me: Process, life: u32) -> ViewEngine<P> {
    let views = plan.views.expect("a plan for a data path");
    let own = plan.ring_of(me.node, life);
    let (path, frame_bytes) = P::of(&own, views);
    let backlog = Backlog::new(frame_bytes, own.message_bytes, own.backlog_bytes);
    let ring = match RingEngine::new(Plan::ring_beside(own)) {
        Ok(ring) => ring,
        Err(error) => panic!("a plan has a configuration that does not work: {error}"),
    };
    let layer = plan.primary.unwrap_or(PrimaryLayer::Static);
    ViewEngine::new(ring, rule(layer, plan, me, life), path, backlog)
}

macro_rules! system {
    ($name:ident, $path:ty) => {
        impl System for $name {
            type Engine = ViewEngine<$path>;

            fn engine(&self, plan: &Plan, me: Process, life: u32) -> Self::Engine {
                engine(plan, me, life)
            }

            fn ring(&self, engine: &Self::Engine) -> Option<RingId> {
                engine.view().map(|view| view.ring)
            }

            fn forming(&self, engine: &Self::Engine) -> Option<RingId> {
                engine.changing()
            }

            fn said(&self, engine: &Self::Engine) -> Option<(RingId, usize)> {
                engine.said()
            }

            fn leaves_alone_until(&self, engine: &Self::Engine) -> Option<Time> {
                let ring = engine.ring().engine();
                Ring(Protocol::Accelerated).leaves_alone_until(ring)
            }

            fn is_settled(&self, engine: &Self::Engine) -> Option<bool> {
                Some(engine.is_settled())
            }

            fn outcomes(&self, engine: &Self::Engine) -> u64 {
                engine.outcomes_kept()
            }

            fn undelivered(&self, engine: &Self::Engine) -> Vec<(Process, RangeInclusive<u64>)> {
                engine.undelivered().collect()
            }

            fn remembers(&self, engine: &Self::Engine) -> bool {
                engine.remembers()
            }
        }
    };
}

system!(FastCastSystem, FastCast);
system!(LcrSystem, Lcr);

/// Knows its view, and which of its packets it holds.
pub trait InViews {
    /// Of which packet the message is that was polled last; none if it came of a change of views.
    fn delivering(&self) -> Option<(RingId, PacketId)>;

    /// The members of the last view.
    fn last_members(&self) -> &[Process];

    /// Whether it has a packet of a view, with its place; `None` if it cannot tell any more.
    fn has_packet(&self, view: RingId, id: PacketId) -> Option<bool>;
}

impl<P: DataPath, E: Engine> InViews for ViewEngine<P, E> {
    fn delivering(&self) -> Option<(RingId, PacketId)> {
        Self::delivering(self)
    }

    fn last_members(&self) -> &[Process] {
        self.last_view().map_or(&[], |(_, members)| members)
    }

    fn has_packet(&self, view: RingId, id: PacketId) -> Option<bool> {
        self.holds(view, id)
    }
}

/// Uniformity, from inside: when a process delivers a packet of a view, every live member of that view has it, with
/// its place. It needs no failure to show a mistake.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllHold;

impl<E: InViews> Probe<E> for AllHold {
    fn delivered(
        &mut self,
        engines: &dyn Engines<E>,
        process: Process,
        _: Option<ConfigurationKind>,
        delivery: &Delivery,
    ) -> Result<(), Finding> {
        let Delivery::Message(message) = delivery else {
            return Ok(());
        };
        let mut members = Vec::new();
        let mut delivering = None;
        engines.each(&mut |other, engine| {
            if other == process {
                delivering = engine.delivering();
                members = engine.last_members().to_vec();
            }
        });
        let Some((view, id)) = delivering else {
            return Ok(());
        };
        let mut lacks: Option<NodeId> = None;
        engines.each(&mut |other, engine| {
            if members.contains(&other) && engine.has_packet(view, id) == Some(false) {
                lacks = Some(other.node);
            }
        });
        lacks.map_or(Ok(()), |other| {
            let (node, message) = (process.node, message.id);
            let what = format!(
                "node {node} delivers {message} in {view}, and node {other} does not have it"
            );
            Err(Finding::new("held", what))
        })
    }
}
