//! The candidacy of this process: the configuration for which it stands, and its questions to the arbiter.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::super::codec::put_config;
use super::super::context::Context;
use super::super::word::{Arbitration, Word};
use super::election::{MOST_DOUBLED, doubled};
use crate as paxos;
use crate::{AcceptorId, Ballot, Candidate, Config, Round};
use rota_core::contract::{NodeId, Process, Time};
use rota_core::mutants::{self, Mutant};

/// The configuration that this process wants, and the authority that it asks.
#[derive(Debug)]
pub enum Campaign {
    /// The acceptors are asked.
    Register(Candidate<Arc<Config>>),
    /// The service is asked.
    Service(Arc<Config>),
}

/// The reason why a process stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct CampaignReason {
    /// The process that it leaves out though there is a link.
    pub suspect: Option<Process>,
    /// The coordinator is to be another one.
    pub lead: bool,
    /// It lets the next process coordinate instead of itself.
    pub yields: bool,
}

/// The question of a candidate.
#[derive(Debug)]
pub enum Asking {
    /// A message to these voters.
    Voters(Vec<NodeId>, Word),
    /// The service is asked for a configuration with this number.
    Service(Round, Bytes),
}

/// The result of an answer of the register.
#[derive(Debug)]
pub enum Answered {
    /// This configuration follows.
    Chosen(Arc<Config>),
    /// The candidate asks the next question.
    GoesOn,
    /// Nothing yet.
    Waits,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Candidacy {
    campaign: Option<Campaign>,
    why: CampaignReason,
    /// It let another process coordinate when it last wanted another coordinator.
    yielded: bool,
    /// The time at which it tries again.
    again: Time,
    /// The number of its tries.
    tries: u32,
}

impl Candidacy {
    /// Whether this process stands.
    pub const fn stands(&self) -> bool {
        self.campaign.is_some()
    }

    /// The reason why it stands, or stood last.
    pub const fn why(&self) -> CampaignReason {
        self.why
    }

    /// Whether it let another process coordinate when it last wanted another coordinator.
    pub const fn has_yielded(&self) -> bool {
        self.yielded
    }

    /// The time at which it tries again, if it stands.
    pub fn again_at(&self) -> Option<Time> {
        self.stands().then_some(self.again)
    }

    /// It begins to count its tries.
    pub const fn begin(&mut self) {
        self.tries = 0;
    }

    /// It stands, and wants another coordinator or the same.
    pub fn stand(&mut self, campaign: Campaign, why: CampaignReason, is_other: bool) {
        self.why = why;
        if is_other {
            self.yielded = why.yields;
        }
        self.campaign = Some(campaign);
    }

    /// It asks the service to found the cluster with this configuration, and asks again at this time.
    pub fn found(&mut self, first: Arc<Config>, again: Time) {
        self.again = again;
        self.campaign = Some(Campaign::Service(first));
    }

    /// It stands again, for the configuration that is wanted now: with a ballot beyond what its own acceptor has
    /// promised. `false` if it does not stand.
    pub fn stand_again(&mut self, promised: Option<Ballot>, wanted: Option<Arc<Config>>) -> bool {
        match (&mut self.campaign, wanted) {
            (Some(Campaign::Register(candidate)), wanted) => candidate.again(promised, wanted),
            (Some(Campaign::Service(old)), Some(wanted)) => *old = wanted,
            (Some(Campaign::Service(_)), None) => {}
            (None, _) => return false,
        }
        true
    }

    /// Sets the time at which it tries again: each time later, until slow disks have answered. `random`: draws a number
    /// below the wait and one retry time.
    pub fn try_later(&mut self, cx: &Context, random: impl FnOnce(u64) -> u64) {
        let patience = cx.settings.patience;
        let tries = match mutants::on(Mutant::U55) {
            true => 0,
            false => self.tries,
        };
        // Twice for each ballot, and once more for the ring's thread.
        let most = (4 * patience.disk).max(patience.retry << MOST_DOUBLED);
        let wait = match mutants::on(Mutant::U78) {
            true => doubled(patience.retry, tries),
            false => (patience.retry << tries.min(2 * MOST_DOUBLED)).min(most),
        };
        let random = random(patience.retry + wait);
        self.again = cx.now.after(wait / 2 + random);
        self.tries += 1;
    }

    /// A configuration has been chosen: it does not stand any more.
    pub fn end(&mut self) {
        self.campaign = None;
    }

    /// Its question: to one of the voters, or to all of them, or to the service.
    pub fn asking(&self, to: Option<NodeId>) -> Option<Asking> {
        let candidate = match self.campaign.as_ref()? {
            Campaign::Register(candidate) => candidate,
            Campaign::Service(wanted) => {
                let mut bytes = Vec::new();
                put_config(&mut bytes, wanted);
                let asking = Asking::Service(wanted.number, bytes.into());
                return to.is_none().then_some(asking);
            }
        };
        let voters = candidate.voters().iter().map(|who| who.node);
        let voters = voters.filter(|node| to.is_none_or(|to| to == *node));
        let word = Word::Ask(candidate.number(), candidate.word());
        Some(Asking::Voters(voters.collect(), word))
    }

    /// An acceptor has answered.
    pub fn on_answer(
        &mut self,
        (node, number): (NodeId, Round),
        who: AcceptorId,
        word: Arbitration,
    ) -> Answered {
        let Some(Campaign::Register(candidate)) = &mut self.campaign else {
            return Answered::Waits;
        };
        if candidate.number() != number || who.node != node {
            return Answered::Waits;
        }
        let is_asking = |word: &Arbitration| matches!(word, paxos::Word::Prepare(_));
        let asked = is_asking(&candidate.word());
        let chosen = candidate.on_word(who, word);
        let goes_on = asked && !is_asking(&candidate.word());
        match chosen {
            Some(config) => Answered::Chosen(config),
            None if goes_on => Answered::GoesOn,
            None => Answered::Waits,
        }
    }

    /// Its invariants, behind the configuration with this number; 0 before the first.
    pub fn check(&self, number: Round) {
        if let Some(Campaign::Register(candidate)) = &self.campaign {
            assert!(
                number > 0,
                "there is no register before the first configuration"
            );
            candidate.check();
            assert_eq!(
                candidate.number(),
                number + 1,
                "the next configuration is stood for"
            );
        }
    }
}
