//! The opening of the rings of a process, and what the application above them begins with.

use rota_core::contract::{Checked, NodeId, Process};
use rota_multiring::{Constants, Partition, Rank, Resume, ResumeRing, RingsLearner};
use std::cell::RefCell;
use std::rc::Rc;

use super::app::RingsApp;
use super::config::RingsConfig;
use super::error::RingsStartError;
use super::hub::MergedDelivery;
use super::lane::LaneApp;
use super::trace::{RingsTrace, StateSource};
use crate::config::NodeConfig;
use crate::driver::{Driver, DriverError};
use crate::engine::NodeEngine;
use crate::node::StartError;
use rota_net::sockets::Sockets;

/// The driver of one ring.
type RingDriver = Driver<Checked<NodeEngine>>;

/// What an application begins with.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The rings whose messages it gets; `None`: all that its process is on. With a state those of the state.
    pub(super) subscribe: Option<Vec<u16>>,
    /// The state that it has.
    pub(super) state: Option<(Resume, StateSource)>,
    /// The partition that it is a replica of, and whose subscriptions may change.
    pub(super) partition: Option<Partition>,
}

impl Beginning {
    /// The constants of the rings that it subscribes to, of those that its process is on. `of_file`: the number of those
    /// of the file, which come first; `may_come`: of a ring of which nothing is known yet, whether it may have been
    /// founded while others ran.
    pub(super) fn subscribed(
        &self,
        me: NodeId,
        (rings, of_file): (&[NodeConfig], usize),
        may_come: impl Fn(Rank) -> bool,
    ) -> Result<Vec<Constants>, RingsStartError> {
        let wanted = self.wanted((rings, of_file), may_come)?;
        let only_observes = |of: &&Constants| {
            let mut rings = rings.iter();
            let is_it =
                |ring: &&NodeConfig| ring.ring_of.is_some_and(|it| it.constants.rank == of.rank);
            let ring = rings.find(is_it);
            self.partition.is_some() && ring.is_some_and(|ring| ring.observers().contains(&me))
        };
        match wanted.iter().find(only_observes) {
            Some(of) => Err(RingsStartError::Observes(of.rank.0)),
            None => Ok(wanted),
        }
    }

    fn wanted(
        &self,
        (rings, of_file): (&[NodeConfig], usize),
        may_come: impl Fn(Rank) -> bool,
    ) -> Result<Vec<Constants>, RingsStartError> {
        let Some((resume, _)) = &self.state else {
            // Who delivers all rings delivers the same as others that were not started again since one was founded.
            return match &self.subscribe {
                Some(subscribe) => subscribed(rings, Some(subscribe)),
                None => subscribed(&rings[..of_file], None),
            };
        };
        let is_late = |of: &&Constants| self.partition.is_some() && may_come(of.rank);
        let states = || resume.rings.iter().map(|ring| &ring.of);
        let here = states().filter(|of| !is_late(of));
        let ranks: Vec<u16> = here.map(|of| of.rank.0).collect();
        let mut wanted = subscribed(rings, Some(&ranks))?;
        check_state(&wanted, resume)?;
        wanted.extend(states().filter(is_late));
        Ok(wanted)
    }

    /// The learner that merges these rings.
    pub(super) fn learner(
        &self,
        me: NodeId,
        (rings, absent): (&[NodeConfig], Option<Vec<Rank>>),
        wanted: Vec<Constants>,
    ) -> RingsLearner {
        let resume = self.state.as_ref().map(|(resume, _)| resume);
        let learner = RingsLearner::new(wanted, resume.map(|resume| resume.point));
        let Some(partition) = self.partition else {
            return learner;
        };
        let known = rings.iter().filter_map(|ring| ring.ring_of);
        let spent = resume.map_or(&[][..], |resume| &resume.spent);
        let learner = learner.of_partition(partition, known.map(|of| of.constants), spent);
        let observed = rings.iter().filter(|ring| ring.observers().contains(&me));
        let observed = observed.filter_map(|ring| ring.ring_of);
        let learner = learner.observes(observed.map(|of| of.constants.rank));
        match absent {
            Some(absent) => learner.hears_of_rings(absent),
            None => learner,
        }
    }

    /// What it knows of a ring with its state.
    fn state_of(&self, rank: Rank) -> Option<&ResumeRing> {
        let (resume, _) = self.state.as_ref()?;
        resume.rings.iter().find(|state| state.of.rank == rank)
    }

    /// The trace, where the configuration wants one.
    pub(super) fn trace(
        &self,
        config: &RingsConfig,
        me: NodeId,
        wanted: &[Constants],
    ) -> Result<Option<RingsTrace>, RingsStartError> {
        let Some(path) = config.common.trace_of(me) else {
            return Ok(None);
        };
        let failed =
            |error| RingsStartError::Ring(0, StartError::Driver(DriverError::Trace(error)));
        let me = process(me).map_err(|error| RingsStartError::Ring(0, error))?;
        let trace = RingsTrace::create(&path, me, (self.partition, wanted));
        let mut trace = trace.map_err(failed)?;
        if let Some((resume, source)) = &self.state {
            trace.on_install(resume, *source);
        }
        Ok(Some(trace))
    }
}

/// The constants of the rings that are wanted.
fn subscribed(
    rings: &[NodeConfig],
    subscribe: Option<&[u16]>,
) -> Result<Vec<Constants>, RingsStartError> {
    let all = rings.iter().filter_map(|ring| ring.ring_of);
    let mut wanted: Vec<Constants> = all.map(|of| of.constants).collect();
    if let Some(subscribe) = subscribe {
        let has = |id: &u16| wanted.iter().any(|of| of.rank == Rank(*id));
        if let Some(id) = subscribe.iter().find(|id| !has(id)) {
            return Err(RingsStartError::Subscription(*id));
        }
        wanted.retain(|of| subscribe.contains(&of.rank.0));
    }
    match wanted.is_empty() && (subscribe.is_none() || rings.is_empty()) {
        true => Err(RingsStartError::Subscription(0)),
        false => Ok(wanted),
    }
}

/// Checks that a state is of the same rings, founded alike.
fn check_state(wanted: &[Constants], resume: &Resume) -> Result<(), RingsStartError> {
    let states = || resume.rings.iter().map(|state| state.of);
    let is_other = |of: &&Constants| states().all(|state| state != **of);
    match wanted.iter().find(is_other) {
        Some(other) => Err(RingsStartError::State(other.rank.0)),
        None => Ok(()),
    }
}

/// Opens one ring, of whose nodes the names have been looked up, below the application of all.
pub(super) fn open_lane<A: RingsApp>(
    config: &NodeConfig,
    me: NodeId,
    begins: &Beginning,
    hub: &Rc<RefCell<MergedDelivery<A>>>,
) -> Result<(RingDriver, LaneApp<A>), RingsStartError> {
    let rank = config.ring_of.map_or(Rank(0), |of| of.constants.rank);
    let failed = |error| RingsStartError::Ring(rank.0, error);
    let process = process(me).map_err(failed)?;
    let driver = open(config, process, begins.state_of(rank)).map_err(failed)?;
    Ok((driver, LaneApp::new(rank, process, Rc::clone(hub))))
}

/// A new life of node `me`, on one ring.
fn process(me: NodeId) -> Result<Process, StartError> {
    rota_net::new_process(me).map_err(StartError::System)
}

fn open(
    config: &NodeConfig,
    process: Process,
    state: Option<&ResumeRing>,
) -> Result<RingDriver, StartError> {
    let me = process.node;
    config.check_for(me).map_err(StartError::Config)?;
    if let Some(directory) = &config.state_dir {
        std::fs::create_dir_all(directory).map_err(StartError::System)?;
    }
    let sockets = Sockets::open(&config.network(), me).map_err(StartError::Socket)?;
    let mut engine = NodeEngine::new(config, me).map_err(StartError::Config)?;
    if let (Some(engine), Some(state)) = (engine.leveled(), state) {
        engine.get_mut().resume(state.founded, state.base.clone());
    }
    let seed = rota_net::random_u64().map_err(StartError::System)?;
    let driver = Driver::with_process(Checked::new(engine), sockets, process, seed, config);
    driver.map_err(StartError::Driver)
}
