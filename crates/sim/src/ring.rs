//! The engine of `accelerated-ring` and `totem-ring`, as the simulator knows it.

use rota_core::contract::{
    ConfigurationKind, Delivery, Message, Process, RingId, Seq, Service, Time,
};
use rota_core::primary::{Primary, Rule};
use rota_ring::Protocol;
use rota_ring::RingEngine;

use crate::observe::{Engines, Finding, Probe};
use crate::plan::{Abilities, Plan, PrimaryLayer};
use crate::world::System;

/// The abilities of the rings.
pub const ABILITIES: Abilities = Abilities::ALL;

/// One of the two rings.
#[derive(Clone, Copy, Debug)]
pub struct Ring(pub Protocol);

impl System for Ring {
    type Engine = RingEngine;

    /// # Panics
    /// If the plan's configuration is not one that a ring can run with.
    fn engine(&self, plan: &Plan, me: Process, life: u32) -> RingEngine {
        match RingEngine::new(plan.ring_of(me.node, life)) {
            Ok(engine) => engine,
            Err(error) => panic!("a plan has a configuration that does not work: {error}"),
        }
    }

    fn ring(&self, engine: &RingEngine) -> Option<RingId> {
        engine.ordering().map(|ordering| ordering.ring())
    }

    fn forming(&self, engine: &RingEngine) -> Option<RingId> {
        engine.recovering()
    }

    fn leaves_alone_until(&self, engine: &RingEngine) -> Option<Time> {
        engine.leaves_alone_until()
    }

    fn state(&self, engine: &RingEngine) -> Option<&'static str> {
        Some(engine.phase_name())
    }
}

/// A ring with the layer that says which configurations are primary.
#[derive(Clone, Copy, Debug)]
pub struct Layered(pub Protocol, pub PrimaryLayer);

impl System for Layered {
    type Engine = Primary<RingEngine>;

    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Self::Engine {
        let rule = rule(self.1, plan, me, life);
        Primary::new(Ring(self.0).engine(plan, me, life), rule)
    }

    fn ring(&self, engine: &Self::Engine) -> Option<RingId> {
        Ring(self.0).ring(engine.engine())
    }

    fn forming(&self, engine: &Self::Engine) -> Option<RingId> {
        Ring(self.0).forming(engine.engine())
    }

    fn leaves_alone_until(&self, engine: &Self::Engine) -> Option<Time> {
        Ring(self.0).leaves_alone_until(engine.engine())
    }

    fn state(&self, engine: &Self::Engine) -> Option<&'static str> {
        Ring(self.0).state(engine.engine())
    }
}

/// The rule of a plan, as one of the nodes is told it.
pub(crate) fn rule(layer: PrimaryLayer, plan: &Plan, me: Process, life: u32) -> Rule {
    let members = &plan.ring.members;
    match layer {
        PrimaryLayer::Static => {
            let electorate = plan.apart.electorate(plan.seed, me.node, life);
            let configured = electorate.unwrap_or(members).clone();
            Rule::StaticMajority { configured }
        }
        PrimaryLayer::Dynamic { founders } => {
            let mut first = members.to_vec();
            first.truncate(founders);
            if !first.contains(&me.node) {
                first.clear();
            }
            Rule::DynamicLinear { first }
        }
    }
}

/// Knows which packets it has.
pub trait Holds {
    /// Whether this process has, or had, a packet of a ring; `None` if it knows that ring no more.
    fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool>;
}

impl Holds for RingEngine {
    fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool> {
        Self::has_received(self, ring, seq)
    }
}

impl Holds for Primary<RingEngine> {
    fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool> {
        self.engine().has_received(ring, seq)
    }
}

/// F3: when a process delivers a safe message in a regular configuration, every live member that is
/// in that configuration has it. Much sharper than what can be seen from outside, as it needs no
/// failure to show a mistake.
#[derive(Clone, Copy, Debug, Default)]
pub struct SafeIsHeld;

impl<E: Holds> Probe<E> for SafeIsHeld {
    fn delivered(
        &mut self,
        engines: &dyn Engines<E>,
        process: Process,
        conf: Option<ConfigurationKind>,
        delivery: &Delivery,
    ) -> Result<(), Finding> {
        let (Delivery::Message(message), Some(ConfigurationKind::Regular(ring))) = (delivery, conf)
        else {
            return Ok(());
        };
        if message.service != Service::Safe {
            return Ok(());
        }
        held_by_all(engines, process, ring, message)
    }
}

fn held_by_all<E: Holds>(
    engines: &dyn Engines<E>,
    process: Process,
    ring: RingId,
    message: &Message,
) -> Result<(), Finding> {
    let mut lacks = None;
    engines.each(&mut |other, engine| {
        if engine.has_received(ring, message.seq) == Some(false) {
            lacks = Some(other);
        }
    });
    lacks.map_or(Ok(()), |other| {
        let (node, seq) = (process.node, message.seq);
        let what = format!(
            "node {node} delivers {} at {seq} in {ring} as safe, and node {} does not have it",
            message.id, other.node
        );
        Err(Finding::new("F3", what))
    })
}
