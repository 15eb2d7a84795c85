//! The context that every part of a process knows.

use super::config::URingConfig;
use rota_core::contract::{NodeId, Process, Time};

/// See the module's page.
#[derive(Debug)]
pub struct Context {
    pub settings: URingConfig,
    /// This process.
    pub me: Process,
    /// The time at which the engine was last told something.
    pub now: Time,
}

impl Context {
    /// Whether a node is an observer.
    pub fn is_observer(&self, node: NodeId) -> bool {
        self.settings.observers.contains(&node)
    }

    /// Whether this process observes.
    pub fn observes(&self) -> bool {
        self.is_observer(self.me.node)
    }
}
