//! Several rings and the application above them, in the thread that calls the driver.

use rota_core::contract::{Checked, NodeId, Process, Status};
use rota_multiring::feed::Announced;
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Leveled, Point, Rank, Resume, ResumeRing};
use rota_paxos::uring::URing;
use rota_paxos::uring::accounts::{Command, Table};
use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;
use std::time::SystemTime;

use super::app::RingsApp;
use super::config::RingsConfig;
use super::error::RingsStartError;
use super::hub::MergedDelivery;
use super::lane::LaneApp;
use super::trace::{RingsTrace, StateSource};
use crate::config::NodeConfig;
use crate::driver::{App, Driver, DriverError, Many};
use crate::engine::NodeEngine;
use crate::node::StartError;
use rota_net::sockets::Sockets;

/// The status of a process of several rings.
#[derive(Clone, Debug)]
pub struct RingsStatus {
    /// State and counters of each ring, by its rank.
    pub rings: Vec<(Rank, Status)>,
    /// The point up to which the process has delivered; `None` in the middle of an instance.
    pub point: Option<Point>,
    /// The accounts of what is needed of each ring, as this node has learnt them.
    pub accounts: Vec<(Rank, Table)>,
    /// The rings that the merge waits for, and up to which round.
    pub waits_for: Vec<Need>,
    /// Lines of its trace that could not be written.
    pub trace_lines_lost: u64,
}

/// The place at which an application goes on, and the source of its state.
type Sourced = (Resume, StateSource);

/// All rings of a process, and the application above them.
pub struct RingsDriver<A> {
    many: Many<Checked<NodeEngine>, LaneApp<A>>,
    hub: Rc<RefCell<MergedDelivery<A>>>,
}

impl<A: RingsApp> RingsDriver<A> {
    /// Opens the rings that node `me` is on. `app` gets the messages of those to which it subscribes; `None`: of all of them.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn open(
        config: &RingsConfig,
        me: NodeId,
        subscribe: Option<&[u16]>,
        app: A,
    ) -> Result<Self, RingsStartError> {
        Self::begin(config, me, (subscribe, None), app)
    }

    /// Opens the rings that node `me` is on. `app` has a state that it kept at a point ([`Self::want_point`]), here or
    /// in another process: it gets the deliveries behind that point, of the same rings.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn resume(
        config: &RingsConfig,
        me: NodeId,
        (resume, source): (Resume, StateSource),
        app: A,
    ) -> Result<Self, RingsStartError> {
        let rings: Vec<u16> = resume.rings.iter().map(|ring| ring.of.rank.0).collect();
        Self::begin(config, me, (Some(&rings), Some((resume, source))), app)
    }

    fn begin(
        config: &RingsConfig,
        me: NodeId,
        (subscribe, resume): (Option<&[u16]>, Option<Sourced>),
        app: A,
    ) -> Result<Self, RingsStartError> {
        config.check().map_err(RingsStartError::Config)?;
        let of_ring = |at: usize| config.of_ring(at).map_err(RingsStartError::Config);
        let rings = config.rings_of(me).into_iter().map(of_ring);
        let rings: Vec<NodeConfig> = rings.collect::<Result<_, _>>()?;
        let wanted = subscribed(&rings, subscribe)?;
        let mut trace = trace(config, me, &wanted)?;
        let resume = match resume {
            Some((resume, source)) => {
                check_state(&wanted, &resume)?;
                let trace = trace.iter_mut();
                trace.for_each(|trace| trace.on_install(&resume, source));
                Some(resume)
            }
            None => None,
        };
        let point = resume.as_ref().map(|resume| resume.point);
        let hub = Rc::new(RefCell::new(MergedDelivery::new(wanted, point, app, trace)));
        let open = |ring: &NodeConfig| {
            let rank = ring.ring_of.map_or(Rank(0), |of| of.constants.rank);
            let failed = |error| RingsStartError::Ring(rank.0, error);
            let process = process(me).map_err(failed)?;
            let mut states = resume.iter().flat_map(|resume| &resume.rings);
            let state = states.find(|state| state.of.rank == rank);
            let driver = open(ring, process, state).map_err(failed)?;
            Ok((driver, LaneApp::new(rank, process, Rc::clone(&hub))))
        };
        let drivers: Vec<_> = rings
            .iter()
            .map(open)
            .collect::<Result<_, RingsStartError>>()?;
        let many = Many::new(drivers, config.common.busy_poll_us);
        Ok(Self { many, hub })
    }

    /// Each ring does some of its work, and hears of what others need of it. If none has anything to do then, this
    /// rests until something happens, at most for `max_wait_nanos`.
    ///
    /// # Errors
    /// [`DriverError`] of any ring.
    pub fn turn(&mut self, max_wait_nanos: Option<u64>) -> Result<(), DriverError> {
        self.many.work()?;
        self.announce()?;
        self.look_at_states();
        self.note();
        self.hub.borrow_mut().pump_more();
        self.need()?;
        let has_delivered = self.hub.borrow_mut().take_delivered();
        for lane in self.many.lanes() {
            // The progress of one ring may let messages be submitted to another.
            if lane.app.is_freed() || has_delivered && lane.is_asleep() && !lane.app.may_sleep() {
                lane.get_up();
            }
        }
        self.many.rest(max_wait_nanos)
    }

    /// Tells the other nodes of each ring that this one leaves.
    ///
    /// # Errors
    /// [`DriverError`] of the first that cannot.
    pub fn leave(&mut self) -> Result<(), DriverError> {
        self.note();
        self.hub.borrow_mut().leave();
        self.many.leave()
    }

    /// Has the application told of a point that all its rings come to soon ([`RingsDelivery::Point`](super::RingsDelivery::Point)), also where
    /// nothing is submitted; nothing changes while it is to be told of one already.
    pub fn want_point(&mut self) {
        let hub = Rc::clone(&self.hub);
        let mut engines: Vec<_> = self.wanted().collect();
        hub.borrow_mut().learner.want_point(&mut engines);
        for lane in self.many.lanes() {
            // The needs that come of this are told to the rings behind their next turn.
            lane.get_up();
        }
    }

    /// Has a command ordered in a ring about what that may forget. Says whether it will be: otherwise the ring has
    /// enough of them to order, or this node is not on it.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn order(&mut self, ring: Rank, command: &Command) -> Result<bool, DriverError> {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = since_1970.map_or(0, |since| since.as_nanos() as u64);
        let mut lanes = self.many.lanes().iter_mut();
        let Some(lane) = lanes.find(|lane| lane.app.rank == ring) else {
            return Ok(false);
        };
        let mut is_taken = false;
        lane.driver.tell(|engine, now| {
            if let Some(engine) = engine.get_mut().leveled() {
                is_taken = engine.get_mut().order_account(now, (command, time));
            }
        })?;
        lane.get_up();
        Ok(is_taken)
    }

    /// The engines of the rings whose messages are wanted.
    fn wanted(&mut self) -> impl Iterator<Item = &mut Leveled<URing>> {
        let hub = Rc::clone(&self.hub);
        let lanes = self.many.lanes().iter_mut();
        let lanes = lanes.filter(move |lane| hub.borrow().learner.has(lane.app.rank));
        lanes.filter_map(|lane| lane.driver.engine_mut().get_mut().leveled())
    }

    /// Looks at the rings for the point of which the application is to be told; and checks that the state that it began
    /// with is of these rings.
    fn look_at_states(&mut self) {
        let hub = Rc::clone(&self.hub);
        if !hub.borrow().learner.looks_at_rings() {
            return;
        }
        for engine in self.wanted() {
            let mut hub = hub.borrow_mut();
            if let Some(told) = hub.learner.look_at(engine) {
                hub.tell(told);
                hub.app.flush();
            }
        }
    }

    /// Writes the news into the trace.
    fn note(&mut self) {
        let mut hub = self.hub.borrow_mut();
        let Some(trace) = &mut hub.trace else {
            return;
        };
        for lane in self.many.lanes() {
            let Some(engine) = lane.driver.engine_mut().get_mut().leveled() else {
                continue;
            };
            if let Some(config) = engine.get().config() {
                trace.on_founded(&engine.of().constants, config.founded);
            }
        }
        trace.flush();
    }

    /// The application above the rings. Not to be kept over a turn.
    pub fn app(&self) -> Ref<'_, A> {
        Ref::map(self.hub.borrow(), |hub| &hub.app)
    }

    /// The same, to be changed.
    pub fn app_mut(&mut self) -> RefMut<'_, A> {
        RefMut::map(self.hub.borrow_mut(), |hub| &mut hub.app)
    }

    /// State and counters, as of now.
    pub fn status(&mut self) -> RingsStatus {
        let (point, waits_for) = self.hub.borrow().describe();
        let trace_lines_lost = self.hub.borrow().trace.as_ref().map_or(0, RingsTrace::lost);
        let lanes = self.many.lanes().iter();
        let rings = lanes.map(|lane| (lane.app.rank, lane.driver.status()));
        let rings = rings.collect();
        let mut accounts = Vec::new();
        for lane in self.many.lanes() {
            if let Some(engine) = lane.driver.engine_mut().get_mut().leveled() {
                accounts.push((lane.app.rank, engine.get().accounts().clone()));
            }
        }
        RingsStatus {
            rings,
            accounts,
            point,
            waits_for,
            trace_lines_lost,
        }
    }

    /// Tells the rings what the merge waits for.
    fn need(&mut self) -> Result<(), DriverError> {
        let needs = self.hub.borrow_mut().learner.take_needs();
        for need in needs {
            let mut lanes = self.many.lanes().iter_mut();
            let Some(lane) = lanes.find(|lane| lane.app.rank == need.rank) else {
                continue;
            };
            lane.driver.tell(|engine, now| {
                if let Some(engine) = engine.get_mut().leveled() {
                    engine.need(now, need.round);
                }
            })?;
            lane.get_up();
        }
        Ok(())
    }

    /// Tells other rings of an announced value: where this process coordinates several rings that it merges, a value of
    /// one is decided while the others skip up to it.
    fn announce(&mut self) -> Result<(), DriverError> {
        for at in 0..self.many.lanes().len() {
            let Some(lane) = self.many.lanes().get_mut(at) else {
                break;
            };
            let rank = lane.app.rank;
            let engine = lane.driver.engine_mut().get_mut().leveled();
            let Some(announced) = engine.and_then(|engine| engine.take_announced()) else {
                continue;
            };
            self.tell_others(rank, announced)?;
        }
        Ok(())
    }

    fn tell_others(&mut self, rank: Rank, announced: Announced) -> Result<(), DriverError> {
        let hub = Rc::clone(&self.hub);
        for lane in self.many.lanes() {
            let announces = hub
                .borrow()
                .learner
                .announces(rank, announced, lane.app.rank);
            let Some(announced) = announces else {
                continue;
            };
            lane.driver.tell(|engine, now| {
                if let Some(engine) = engine.get_mut().leveled() {
                    engine.announce(now, rank, announced);
                }
            })?;
            lane.get_up();
        }
        Ok(())
    }
}

impl<A> fmt::Debug for RingsDriver<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingsDriver").finish_non_exhaustive()
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

/// A new life of node `me`, on one ring.
fn process(me: NodeId) -> Result<Process, StartError> {
    rota_net::new_process(me).map_err(StartError::System)
}

/// The trace, where the configuration wants one.
fn trace(
    config: &RingsConfig,
    me: NodeId,
    wanted: &[Constants],
) -> Result<Option<RingsTrace>, RingsStartError> {
    let Some(path) = config.common.trace_of(me) else {
        return Ok(None);
    };
    let failed = |error| RingsStartError::Ring(0, StartError::Driver(DriverError::Trace(error)));
    let me = process(me).map_err(|error| RingsStartError::Ring(0, error))?;
    let trace = RingsTrace::create(&path, me, wanted).map_err(failed)?;
    Ok(Some(trace))
}

fn open(
    config: &NodeConfig,
    process: Process,
    state: Option<&ResumeRing>,
) -> Result<Driver<Checked<NodeEngine>>, StartError> {
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
