//! The engine that a configuration asks for: a ring, alone or with the layer for primary configurations; or a data path
//! beside one.

use rota_core::contract::{
    Class, Delivery, Engine, Input, NodeId, Output, RingId, Seq, Service, Status, SubmitError,
    Time, TimerReason,
};
use rota_core::primary::{Primary, Rule};
use rota_core::shares::Capacity;
use rota_multiring::Leveled;
use rota_paxos::uring::URing;
use rota_ring::RingConfig;
use rota_ring::RingEngine;
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::lcr::{self, Lcr};
use rota_views::{Backlog, ViewEngine, ring_beside};

use crate::config::engine::capacity;
use crate::config::{ConfigError, EngineName, NodeConfig};
use rota_net::Transport;

/// A node's engine, as its configuration's `primary` asks for.
#[derive(Debug)]
pub enum NodeEngine {
    /// `primary = "none"`.
    Ring(Box<RingEngine>),
    /// Any other rule.
    Primary(Box<Primary<RingEngine>>),
    /// `engine = "fastcast"`.
    FastCast(Box<ViewEngine<FastCast>>),
    /// `engine = "lcr"`.
    Lcr(Box<ViewEngine<Lcr>>),
    /// `engine = "ring-paxos"` and `engine = "u-ring-paxos"`.
    URing(Box<URing>),
    /// The same, where it is one ring of several.
    Leveled(Box<Leveled<URing>>),
}

/// The same for all.
macro_rules! either {
    ($engine:expr, $it:ident => $does:expr) => {
        match $engine {
            NodeEngine::Ring($it) => $does,
            NodeEngine::Primary($it) => $does,
            NodeEngine::FastCast($it) => $does,
            NodeEngine::Lcr($it) => $does,
            NodeEngine::URing($it) => $does,
            NodeEngine::Leveled($it) => $does,
        }
    };
}

impl NodeEngine {
    /// The engine of node `me`.
    ///
    /// # Errors
    /// [`ConfigError`]: what is wrong with the configuration.
    pub fn new(config: &NodeConfig, me: NodeId) -> Result<Self, ConfigError> {
        Self::with(config, me, false)
    }

    /// The same for groups of clients: no message is delivered late that was ordered while this node was no member.
    ///
    /// # Errors
    /// [`ConfigError`]: what is wrong with the configuration.
    pub fn for_groups(config: &NodeConfig, me: NodeId) -> Result<Self, ConfigError> {
        Self::with(config, me, true)
    }

    fn with(config: &NodeConfig, me: NodeId, for_groups: bool) -> Result<Self, ConfigError> {
        let ring = config.ring_config_at(me)?;
        Ok(match (config.engine, config.primary_rule(me)) {
            (EngineName::FastCast, Some(rule)) => Self::fastcast(config, &ring, rule)?,
            (EngineName::Lcr, Some(rule)) => Self::lcr(&ring, rule)?,
            (EngineName::RingPaxos | EngineName::URingPaxos, _) => {
                Self::uring(config, &ring, for_groups)
            }
            (_, None) => Self::Ring(Box::new(engine(ring)?)),
            (_, Some(rule)) => Self::Primary(Box::new(Primary::new(engine(ring)?, rule))),
        })
    }

    fn fastcast(node: &NodeConfig, ring: &RingConfig, rule: Rule) -> Result<Self, ConfigError> {
        let mut config = FastConfig::beside(ring).shared_by(ring.members.len());
        config.capacity = capacity(node.link_mbps, ring);
        config.yields = node.link_yields;
        if config.yields {
            config.capacity.get_or_insert(Capacity::UNKNOWN);
        }
        if matches!(node.transport, Transport::Multicast(_)) && ring.members.len() > 2 {
            // One datagram for all instead of one for each.
            config.control = Class::Data;
        }
        let frame_bytes = config.frame_bytes();
        let backlog = Backlog::new(frame_bytes, ring.message_bytes, ring.backlog_bytes);
        let beside = engine(ring_beside(ring))?;
        let path = FastCast::new(config);
        Ok(Self::FastCast(Box::new(ViewEngine::new(
            beside, rule, path, backlog,
        ))))
    }

    fn lcr(ring: &RingConfig, rule: Rule) -> Result<Self, ConfigError> {
        let config = lcr::Config::shared_by(ring.members.len());
        let frame_bytes = config.frame_bytes;
        let backlog = Backlog::new(frame_bytes, ring.message_bytes, ring.backlog_bytes);
        let beside = engine(ring_beside(ring))?;
        let path = Lcr::new(config);
        Ok(Self::Lcr(Box::new(ViewEngine::new(
            beside, rule, path, backlog,
        ))))
    }

    fn uring(node: &NodeConfig, ring: &RingConfig, for_groups: bool) -> Self {
        let warnings = [
            node.votes_warning(),
            node.coordination_warning(),
            node.login_warning(),
        ];
        for warning in warnings.into_iter().flatten() {
            tracing::warn!("{warning}");
        }
        let mut config = node.uring_config(ring);
        config.learner.only_as_member = for_groups;
        let engine = URing::new(config);
        match node.ring_of {
            Some(of) => Self::Leveled(Box::new(Leveled::new(engine, of))),
            None => Self::URing(Box::new(engine)),
        }
    }

    /// These nodes, ascending, are configured from now on. Only a ring without primaries can take other nodes than it
    /// started with: says whether this is one and has taken them.
    pub fn set_members(&mut self, members: Vec<NodeId>) -> bool {
        match self {
            Self::Ring(ring) => ring.set_members(members).is_ok(),
            _ => false,
        }
    }

    /// The engine, where it is one ring of several.
    pub(crate) fn leveled(&mut self) -> Option<&mut Leveled<URing>> {
        match self {
            Self::Leveled(engine) => Some(engine),
            _ => None,
        }
    }

    /// The ring of the current configuration, if that is primary and was delivered as such.
    pub fn primary(&self) -> Option<RingId> {
        match self {
            Self::Ring(_) | Self::URing(_) | Self::Leveled(_) => None,
            Self::Primary(layer) => layer.primary(),
            Self::FastCast(views) => views.view().map(|view| view.ring),
            Self::Lcr(views) => views.view().map(|view| view.ring),
        }
    }

    /// Whether this node has, as far as is known, the state of all primaries up to the current one. See
    /// [`Primary::is_caught_up`].
    pub fn is_caught_up(&self) -> bool {
        match self {
            Self::Ring(_) | Self::URing(_) | Self::Leveled(_) => false,
            Self::Primary(layer) => layer.is_caught_up(),
            Self::FastCast(views) => views.ring().is_caught_up(),
            Self::Lcr(views) => views.ring().is_caught_up(),
        }
    }

    /// The application has got the state of the primary with this ring, and has made it durable. Says
    /// nothing where another configuration is current by now: its state may be another one.
    pub fn caught_up(&mut self, now: Time, ring: RingId) {
        if self.primary() != Some(ring) {
            return;
        }
        match self {
            Self::Ring(_) | Self::URing(_) | Self::Leveled(_) => {}
            Self::Primary(layer) => layer.caught_up(now),
            Self::FastCast(views) => views.caught_up(now),
            Self::Lcr(views) => views.caught_up(now),
        }
    }
}

impl Engine for NodeEngine {
    fn handle(&mut self, now: Time, input: Input) {
        either!(self, engine => engine.handle(now, input));
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        either!(self, engine => engine.submit(now, service, payload))
    }

    fn submit_skips_to(&mut self, now: Time, next: Seq) -> Result<(), SubmitError> {
        either!(self, engine => engine.submit_skips_to(now, next))
    }

    fn leave(&mut self, now: Time) {
        either!(self, engine => engine.leave(now));
    }

    fn poll_output(&mut self) -> Option<Output> {
        either!(self, engine => engine.poll_output())
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        either!(self, engine => engine.poll_delivery())
    }

    fn reading(&self) -> Class {
        either!(self, engine => engine.reading())
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        either!(self, engine => engine.next_timer())
    }

    fn wants_links(&self) -> bool {
        either!(self, engine => engine.wants_links())
    }

    fn status(&self) -> Status {
        either!(self, engine => engine.status())
    }
}

fn engine(ring: RingConfig) -> Result<RingEngine, ConfigError> {
    RingEngine::new(ring).map_err(ConfigError::Ring)
}
