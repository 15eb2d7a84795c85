//! Membership of the ring: the newest configuration, the choice of the next one, and the knowledge of a process about
//! the others.
//!
//! Nothing here decides which configuration follows: the register of the acceptors does, or a coordination service, and
//! of all candidates for a number one gets its way. A mistake costs time and no more.

mod absent;
mod campaign;
mod candidacy;
mod due;
mod election;
mod foundation;
mod outside;
mod seats;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::Arbiter;
use super::context::Context;
use super::lead::RoundCoordinator;
use super::learning::Learning;
use super::peers::Peers;
use super::stream::Stream;
use super::voter::Voter;
use super::word::Hello;
use crate::{AcceptorId, Config, Register, Round};
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};
use rota_core::random::Random;

use absent::Absent;
use candidacy::Candidacy;
use election::Election;
use foundation::Foundation;
use outside::Outside;
use seats::Seats;

use campaign::votes_as;

pub use campaign::arbitrated;
pub use candidacy::{Answered, Asking};
pub use due::Due;
pub use foundation::Founding;
pub use seats::{has_seat, is_asked};

/// The wait to be taken in doubles up to this many times the first: a process that is left out again and again costs
/// the others a twentieth of the time at most.
const MOST_WAITS: u64 = 96;
/// A process waits at most this many times the first wait before it stands itself, or asks once more.
const MOST_PUT_OFF: u64 = 16;

/// The other parts of a process, for the decision on who is to be in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub cx: &'a Context,
    pub links: &'a Peers,
    pub voter: &'a Voter,
    pub learning: &'a Learning,
    /// The ring of the newest configuration, if this process is in it.
    pub ring: Option<&'a Stream>,
    /// The coordinator's part, if this process coordinates.
    pub leading: Option<&'a RoundCoordinator>,
}

/// The rest of an engine, beside its membership.
macro_rules! around {
    ($engine:expr) => {
        $crate::uring::membership::Around {
            cx: &$engine.cx,
            links: &$engine.links,
            voter: &$engine.voter,
            learning: &$engine.learning,
            ring: $engine.stream.as_ref(),
            leading: $engine.leading.as_ref(),
        }
    };
}
pub(super) use around;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Membership {
    /// The newest configuration; `None` before the first.
    config: Option<Arc<Config>>,
    /// The newest configuration known to be complete.
    complete: Round,
    register: Register<Arc<Config>>,
    pub foundation: Foundation,
    pub candidacy: Candidacy,
    pub election: Election,
    pub absent: Absent,
    pub outside: Outside,
    pub seats: Seats,
    random: Random,
}

impl Membership {
    /// A process starts, and draws from `random`.
    pub const fn start(&mut self, random: Random) {
        self.random = random;
    }

    /// A number for the name of a store.
    pub fn draw(&mut self) -> u64 {
        self.random.below(u64::MAX - 1) + 1
    }

    /// Takes the state that was found in the log when the process started.
    pub fn found(
        &mut self,
        complete: Round,
        slot: Option<(Round, Slot)>,
        config: Option<Arc<Config>>,
    ) {
        if let Some((number, slot)) = slot.filter(|_| !mutants::on(Mutant::U17)) {
            self.register.restore(number, slot);
        }
        self.complete = complete;
        if let Some(config) = config {
            self.register.forget(config.number);
            self.config = Some(config);
        }
    }

    /// The newest configuration; `None` before the first.
    pub const fn config(&self) -> Option<&Arc<Config>> {
        self.config.as_ref()
    }

    /// The number of the newest configuration; 0 before the first.
    pub fn number(&self) -> Round {
        self.config.as_ref().map_or(0, |config| config.number)
    }

    /// The newest configuration known to be complete.
    pub const fn complete(&self) -> Round {
        self.complete
    }

    /// The state of the register for the next configuration.
    pub fn slot(&self) -> Option<&Slot> {
        self.register.slot(self.number() + 1)
    }

    /// A configuration is known to be complete. Returns whether that is news.
    pub const fn on_complete(&mut self, number: Round) -> bool {
        let is_news = number > self.complete;
        if is_news {
            self.complete = number;
        }
        is_news
    }

    /// The foundation of this process; 0 if it has none yet.
    pub fn founded(&self) -> u64 {
        self.foundation.founded(self.newest())
    }

    fn newest(&self) -> Option<&Config> {
        self.config.as_deref()
    }

    /// Whether a foundation is another one than that of this process: its numbers say nothing here.
    pub fn is_foreign(&self, founded: u64) -> bool {
        self.foundation.is_foreign(self.newest(), founded)
    }

    /// Whether the ring was founded anew after the application's state, which then says nothing about this ring.
    pub fn is_refounded(&self, cx: &Context) -> bool {
        self.foundation.is_refounded(cx, self.newest())
    }

    /// Whether a configuration is of the foundation to which this process belongs.
    pub fn belongs(&self, config: &Config) -> bool {
        self.foundation.belongs(self.newest(), config)
    }

    /// Whether this process believes another one that this is the newest configuration.
    pub fn believes(&self, around: &Around<'_>, config: &Config) -> bool {
        self.config.is_some() || foundation::is_believed(around, config)
    }

    /// The first of the acceptors founds the cluster when all of them are there, and none has ever been in one.
    pub fn try_to_found(&mut self, around: &Around<'_>) -> Option<Founding> {
        if self.config.is_some() {
            return None;
        }
        let first = self.foundation.first(around, &mut self.random)?;
        let settings = &around.cx.settings;
        match settings.arbiter {
            Arbiter::Embedded => self.foundation.write().then_some(Founding::Durably(first)),
            Arbiter::Service if self.candidacy.stands() => None,
            Arbiter::Service => {
                let again = around.cx.now.after(settings.patience.retry);
                self.candidacy.found(first, again);
                Some(Founding::Asks)
            }
        }
    }

    /// Takes a newer configuration as the newest one: everything before is over. Returns whether the one before has
    /// lasted. `decided`: something was decided in that.
    pub fn install(&mut self, cx: &Context, config: &Arc<Config>, decided: bool) -> bool {
        let before = self.config.replace(config.clone());
        self.register.forget(config.number);
        self.candidacy.end();
        self.election
            .on_next(cx, before.as_deref(), (config, decided))
    }

    /// Whether this process tells configurations to a process that knows the one with this number. Only acceptors tell
    /// a process without a foundation: all of them may have lost their stores and be about to found another cluster,
    /// and the memory of a process that holds nothing must not hinder that.
    pub const fn tells(voter: &Voter, number: Round) -> bool {
        number > 0 || voter.is_acceptor()
    }

    /// Whether anybody wants to come in, or votes with another store.
    pub fn is_wanted(&self, around: &Around<'_>) -> bool {
        let ring = self.config.iter().flat_map(|config| &config.ring);
        let mut ring = ring.filter(|who| **who != around.cx.me || !mutants::on(Mutant::U106));
        let is_renamed = |who: &Process| self.is_renamed(around, *who);
        self.joining(around).next().is_some() || ring.any(is_renamed)
    }

    /// Whether a process votes with another store than the configuration has.
    fn is_renamed(&self, around: &Around<'_>, process: Process) -> bool {
        let now = campaign::votes_as(around, process);
        let config = self.config.as_ref();
        config.zip(now).is_some_and(|(config, now)| {
            let mut old = config.acceptors.iter();
            old.any(|who| who.node == now.node && *who != now)
        })
    }

    /// A process has said who it is: the coordinator takes processes in soon, if any are wanted.
    pub fn plan_to_admit(&mut self, around: &Around<'_>) {
        let leads = around.ring.is_some_and(Stream::leads);
        if leads && self.election.admits_at().is_none() && self.is_wanted(around) {
            self.election.admit_soon(around.cx);
        }
    }

    /// The acceptors one step nearer to their list, if the step may be taken now.
    fn nearer(&self, around: &Around<'_>) -> Option<Vec<AcceptorId>> {
        let config = self.config.as_ref()?;
        self.seats.nearer(around, (config, self.complete))
    }

    /// The coordinator takes a step nearer to the list of acceptors soon, if it may.
    pub fn plan_to_seat(&mut self, around: &Around<'_>) {
        let is_free = self.election.admits_at().is_none() && !self.candidacy.stands();
        if is_free && self.nearer(around).is_some() {
            self.election.admit_soon(around.cx);
        }
    }

    /// The message of this process about itself.
    pub fn here(&self, cx: &Context, voter: &Voter, ring: Option<&Stream>) -> Hello {
        // An acceptor needs a name first: it would be taken in without a vote.
        let is_out = ring.is_none() && !voter.waits_for_name();
        Hello {
            number: self.number(),
            acceptor: voter.votes().then(|| voter.id()),
            complete: self.complete,
            joins: is_out && cx.now >= self.outside.joins_at() && !cx.observes(),
        }
    }

    /// Whether a process is this one, or there is a link to it and it has not said that it leaves.
    pub fn is_there(&self, cx: &Context, links: &Peers, process: Process) -> bool {
        process == cx.me || links.has(process) && !self.absent.has_left(process)
    }

    /// The acceptors to which there is a link, and behind them those of earlier configurations that may have to be asked,
    /// where others vote now.
    pub fn informants(&self, cx: &Context, links: &Peers) -> Vec<NodeId> {
        let Some(config) = &self.config else {
            return Vec::new();
        };
        let is_there = |node: &NodeId| {
            let peer = links.at(*node);
            peer.is_some_and(|peer| self.is_there(cx, links, peer.process))
        };
        let prior = config
            .prior
            .iter()
            .filter(|set| set.number >= self.complete);
        let prior = prior.flat_map(|set| &set.acceptors);
        let mut nodes: Vec<NodeId> = Vec::new();
        for who in config.acceptors.iter().chain(prior) {
            if !nodes.contains(&who.node) {
                nodes.push(who.node);
            }
        }
        nodes.retain(is_there);
        nodes
    }

    /// Whether an acceptor of the configuration votes, as far as is known: its log may have failed.
    pub fn is_voting(links: &Peers, voter: &Voter, who: AcceptorId) -> bool {
        if who.node == voter.id().node {
            return voter.votes() && voter.id() == who;
        }
        let here = links.at(who.node).and_then(|peer| peer.here);
        here.is_none_or(|here| here.acceptor == Some(who))
    }
}

/// The state of the register for a configuration.
type Slot = crate::Slot<Arc<Config>>;

/// Processes in the order of the ring.
fn sort(cx: &Context, processes: impl Iterator<Item = Process>) -> Vec<Process> {
    let place = |node: NodeId| cx.settings.ring.iter().position(|other| *other == node);
    let mut sorted: Vec<Process> = processes.collect();
    sorted.sort_by_key(|process| (place(process.node), process.node));
    sorted
}

impl Membership {
    /// Its invariants.
    pub fn check(&self, cx: &Context) {
        self.foundation.check(cx);
        self.register.check();
        self.candidacy.check(self.number());
        self.absent.check();
        self.outside.check();
        if let Some(config) = &self.config {
            assert!(
                config.number > 0 && config.founded > 0,
                "a configuration has a number and a foundation"
            );
            assert!(
                config.ring.contains(&config.coordinator),
                "a coordinator is in its ring"
            );
        }
    }
}
