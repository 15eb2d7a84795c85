//! The ways from any thread to the rings' own: one for each ring.

use rota_core::contract::{NodeId, SubmitError};
use rota_multiring::Rank;
use std::sync::{Arc, PoisonError, RwLock};

use super::config::RingsConfig;
use super::error::RingsStartError;
use crate::node::StartError;
use crate::node::inbox::Inbox;

/// One of the rings, for threads that submit to it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) rank: Rank,
    pub(super) inbox: Arc<Inbox>,
    /// Nothing goes there: this node only observes the ring.
    pub(super) is_closed: bool,
}

/// All of them. Those of the configuration stay as they are and cost no lock; more come with rings that are founded.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    configured: Arc<[Way]>,
    founded: Arc<RwLock<Vec<Way>>>,
}

impl Ways {
    /// Those of the rings of a configuration that node `me` is on.
    pub(super) fn of(config: &RingsConfig, me: NodeId) -> Result<Self, RingsStartError> {
        let mut configured = Vec::new();
        for at in config.rings_of(me) {
            let (id, ring) = (config.rings[at].id, config.of_ring(at)?);
            let (limit, is_closed) = (ring.message_limit(), ring.observers().contains(&me));
            let system = |error| RingsStartError::Ring(id, StartError::System(error));
            let inbox = Arc::new(Inbox::new(limit).map_err(system)?);
            let rank = Rank(id);
            configured.push(Way {
                rank,
                inbox,
                is_closed,
            });
        }
        Ok(Self {
            configured: configured.into(),
            founded: Arc::default(),
        })
    }

    /// The ways of the configuration.
    pub(super) fn configured(&self) -> &[Way] {
        &self.configured
    }

    /// The way to a ring that was founded.
    pub(super) fn add(&self, way: Way) {
        let mut founded = self.founded.write().unwrap_or_else(PoisonError::into_inner);
        founded.push(way);
    }

    /// Calls this with the way to a ring, and may wait in that.
    ///
    /// # Errors
    /// `Unsupported`: this node is not on the ring, or only observes it.
    pub(super) fn with<T>(
        &self,
        ring: Rank,
        call: impl FnOnce(&Inbox) -> T,
    ) -> Result<T, SubmitError> {
        let is_it = |way: &&Way| way.rank == ring;
        if let Some(way) = self.configured.iter().find(is_it) {
            return match way.is_closed {
                true => Err(SubmitError::Unsupported),
                false => Ok(call(&way.inbox)),
            };
        }
        let founded = self.founded.read().unwrap_or_else(PoisonError::into_inner);
        let inbox = founded.iter().find(is_it).map(|way| Arc::clone(&way.inbox));
        drop(founded);
        let inbox = inbox.ok_or(SubmitError::Unsupported)?;
        Ok(call(&inbox))
    }

    /// Whether there is a way to a ring.
    pub(super) fn has(&self, ring: Rank) -> bool {
        self.with(ring, |_| ()).is_ok()
    }

    /// Wakes the rings' thread.
    pub(super) fn wake(&self) {
        self.configured.iter().for_each(|way| way.inbox.wake());
        let founded = self.founded.read().unwrap_or_else(PoisonError::into_inner);
        founded.iter().for_each(|way| way.inbox.wake());
    }
}
