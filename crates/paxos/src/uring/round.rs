//! The round of the newest configuration, as far as a process knows it: its start, and the progress of each acceptor.

use alloc::vec;
use alloc::vec::Vec;

use crate::{AcceptorId, Config, Instance};
use rota_core::contract::NodeId;

/// See the module's page.
#[derive(Debug, Default)]
pub struct RoundState {
    /// The first instance of the round, and the one before which values are forgotten; 0 until that is known.
    pub start: (Instance, Instance),
    /// By acceptor of the configuration: the first instance that it has not learnt, as far as is known.
    learnt: Vec<Instance>,
    /// Likewise: whether it votes for nothing more in the round.
    log_failed: Vec<bool>,
}

impl RoundState {
    /// A round of which nothing is known yet.
    pub fn of(config: &Config) -> Self {
        let acceptors = config.acceptors.len();
        Self {
            start: (0, 0),
            learnt: vec![0; acceptors],
            log_failed: vec![false; acceptors],
        }
    }

    /// An acceptor has learnt everything before this. Returns whether that is news; `None` if there is no such
    /// acceptor.
    pub fn on_learnt(&mut self, at: usize, next: Instance) -> Option<bool> {
        let learnt = self.learnt.get_mut(at)?;
        let is_news = *learnt < next;
        *learnt = next.max(*learnt);
        Some(is_news)
    }

    /// An acceptor votes for nothing more in this round. Returns whether there is such an acceptor.
    pub fn on_log_failed(&mut self, at: usize) -> bool {
        let failed = self.log_failed.get_mut(at);
        failed.map(|failed| *failed = true).is_some()
    }

    /// By acceptor: the first instance that it has not learnt, as far as is known.
    pub fn learnt(&self) -> &[Instance] {
        &self.learnt
    }

    /// By acceptor: whether it votes for nothing more.
    pub fn log_failed(&self) -> &[bool] {
        &self.log_failed
    }

    /// A majority of the acceptors has learnt everything before this.
    pub fn learnt_by_majority(&self, config: &Config) -> Instance {
        let learnt = |who| config.place(who).and_then(|at| self.learnt.get(at));
        config.reached_by_majority(|who| learnt(who).copied().unwrap_or(0))
    }

    /// The acceptors in the ring that vote, by their places in the configuration. `votes`: as far as is known.
    fn voting(
        &self,
        config: &Config,
        votes: impl Fn(AcceptorId) -> bool,
    ) -> impl Iterator<Item = usize> {
        let in_ring = |node: NodeId| config.ring.iter().any(|process| process.node == node);
        let has_failed = |at: usize| self.log_failed.get(at).is_some_and(|failed| *failed);
        let acceptors = config.acceptors.iter().enumerate();
        let voting = acceptors
            .filter(move |(at, who)| in_ring(who.node) && !has_failed(*at) && votes(**who));
        voting.map(|(at, _)| at)
    }

    /// Whether a majority of the acceptors votes, as far as is known.
    pub fn can_decide(&self, config: &Config, votes: impl Fn(AcceptorId) -> bool) -> bool {
        2 * self.voting(config, votes).count() > config.acceptors.len()
    }

    /// The instance that all voting acceptors in the ring have reached. `reached`: by place in the configuration.
    /// `votes`: as far as is known.
    pub fn reached_by_all(
        &self,
        config: &Config,
        votes: impl Fn(AcceptorId) -> bool,
        reached: impl Fn(usize) -> Instance,
    ) -> Instance {
        self.voting(config, votes).map(reached).min().unwrap_or(0)
    }
}

impl RoundState {
    /// Its invariants, in this configuration.
    pub fn check(&self, config: Option<&Config>) {
        assert_eq!(
            self.learnt.len(),
            self.log_failed.len(),
            "each acceptor has both"
        );
        let acceptors = config.map_or(0, |config| config.acceptors.len());
        assert!(
            self.learnt.is_empty() || self.learnt.len() == acceptors,
            "each acceptor has its place"
        );
        assert!(
            self.start.1 <= self.start.0,
            "a round starts behind what is forgotten"
        );
    }
}
