//! The lists of nodes that count in the newest configuration, and static majorities of them.

use alloc::vec::Vec;

use super::layer::Primary;
use super::session::Rule;
use crate::contract::{
    Configuration, ConfigurationKind, Engine, NodeId, RingId, Time, has_majority,
};
use crate::mutants::{self, Mutant};

impl<E: Engine> Primary<E> {
    /// The same layer, where [`carried_on`](Self::carried_on) is called when a primary carries on what was before it.
    pub const fn carried_on_by_hand(mut self) -> Self {
        self.carried_on_by_hand = true;
        self
    }

    /// The primary on this ring carries on the order of the primaries before it: after it, lists of counting nodes that
    /// no node is configured with any more need not be asked for.
    pub fn carried_on(&mut self, now: Time, ring: RingId) {
        self.now = now;
        self.engine.carries_on(now, ring);
    }

    /// The lists of nodes that count in the newest configuration, as its members are configured: a primary needs a
    /// majority of each list.
    pub fn electorates(&self) -> &[Vec<NodeId>] {
        &self.electorates
    }

    pub(super) fn on_configuration(&mut self, configuration: &Configuration) {
        self.primary = None;
        let Configuration { kind, members } = configuration;
        if let ConfigurationKind::Regular(ring) = kind {
            let told = self.engine.electorates(*ring);
            self.electorates = told
                .filter(|_| !mutants::on(Mutant::M54))
                .unwrap_or_default();
        }
        let of_all = || {
            self.electorates
                .iter()
                .all(|nodes| has_majority(nodes, members))
        };
        match (kind, &self.rule) {
            (ConfigurationKind::Regular(ring), Rule::StaticMajority { configured }) => {
                let is_primary = Rule::majority(configured, members) && of_all();
                self.report = is_primary.then_some(*ring);
            }
            (ConfigurationKind::Regular(ring), Rule::DynamicLinear { .. }) => {
                self.voting.on_regular(*ring, members, &self.electorates);
            }
            (ConfigurationKind::Transitional { .. }, _) => {
                self.report = None;
                self.voting.on_transitional();
            }
        }
    }
}
