//! Several rings and the application above them, in the thread that calls the driver.

use rota_core::contract::{Checked, NodeId, Status};
use rota_multiring::feed::Announced;
use rota_multiring::merge::Need;
use rota_multiring::subscribe::Change;
use rota_multiring::{Instance, Leveled, Point, Rank, Resume};
use rota_net::realtime_nanos;
use rota_paxos::uring::URing;
use rota_paxos::uring::accounts::{Command, Table};
use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use super::app::RingsApp;
use super::config::RingsConfig;
use super::error::RingsStartError;
use super::hub::MergedDelivery;
use super::lane::LaneApp;
use super::new_rings::{FoundedRing, NewRings};
use super::opening::{self, Beginning};
use super::trace::{RingsTrace, StateSource};
use super::waits::MergeWait;
use crate::config::NodeConfig;
use crate::driver::{App, DriverError, Many};
use crate::engine::NodeEngine;

/// The status of a process of several rings.
#[derive(Clone, Debug)]
pub struct RingsStatus {
    /// State and counters of each ring, by its rank.
    pub rings: Vec<(Rank, Status)>,
    /// The point up to which the process has delivered; `None` in the middle of an instance.
    pub point: Option<Point>,
    /// The accounts of what is needed of each ring, as this node has learnt them.
    pub accounts: Vec<(Rank, Table)>,
    /// The other nodes that each ring hears of.
    pub heard: Vec<(Rank, BTreeSet<NodeId>)>,
    /// The rings that were founded while processes ran, as far as this one knows.
    pub founded: Vec<(Rank, FoundedRing)>,
    /// The change of the partition's subscriptions that was ordered and is not in effect.
    pub pending: Option<Change>,
    /// The wishes of this process to change the subscriptions that have not come true.
    pub wishes: usize,
    /// The rings of which this process keeps what comes, for a subscription: each since this hold.
    pub standby: Vec<(Rank, Instance)>,
    /// The notices about subscriptions that this process could not read: they change nothing here.
    pub unreadable_notices: u64,
    /// The rings that the merge waits for, and up to which round.
    pub waits_for: Vec<Need>,
    /// The messages of each ring that wait for other rings, of those that the process delivers.
    pub merge: Vec<(Rank, MergeWait)>,
    /// Lines of its trace that could not be written.
    pub trace_lines_lost: u64,
}

/// All rings of a process, and the application above them.
pub struct RingsDriver<A> {
    pub(super) many: Many<Checked<NodeEngine>, LaneApp<A>>,
    pub(super) hub: Rc<RefCell<MergedDelivery<A>>>,
    pub(super) new_rings: NewRings,
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
        let subscribe = subscribe.map(<[u16]>::to_vec);
        let beginning = Beginning {
            subscribe,
            ..Beginning::default()
        };
        Self::begin(config, me, beginning, app)
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
        let beginning = Beginning {
            state: Some((resume, source)),
            ..Beginning::default()
        };
        Self::begin(config, me, beginning, app)
    }

    pub(super) fn begin(
        config: &RingsConfig,
        me: NodeId,
        begins: Beginning,
        app: A,
    ) -> Result<Self, RingsStartError> {
        config.check().map_err(RingsStartError::Config)?;
        // Once for all rings: each would wait for the names that have no address.
        let config = &config.resolved(me);
        let new_rings = NewRings::open(config, me, begins)?;
        let (rings, of_file) = new_rings.of_node()?;
        let begins = new_rings.begins();
        let may_come = |rank| new_rings.may_come(rank);
        let wanted = begins.subscribed(me, (&rings, of_file), may_come)?;
        let trace = begins.trace(config, me, &wanted)?;
        let configured = &rings[..of_file];
        let learner = begins.learner(me, (configured, new_rings.absent()), wanted);
        let hub = Rc::new(RefCell::new(MergedDelivery::new(learner, app, trace)));
        let open = |ring: &NodeConfig| opening::open_lane(ring, me, begins, &hub);
        let drivers = configured.iter().map(open);
        let drivers: Vec<_> = drivers.collect::<Result<_, RingsStartError>>()?;
        let many = Many::new(drivers, config.common.busy_poll_us);
        let mut driver = Self {
            many,
            hub,
            new_rings,
        };
        driver.open_kept()?;
        Ok(driver)
    }

    /// Each ring does some of its work, and hears of what others need of it. If none has anything to do then, this
    /// rests until something happens, at most for `max_wait_nanos`.
    ///
    /// # Errors
    /// [`DriverError`] of any ring.
    pub fn turn(&mut self, max_wait_nanos: Option<u64>) -> Result<(), DriverError> {
        self.many.work()?;
        self.announce()?;
        self.look_at_charters();
        self.look_at_states();
        self.note();
        self.hub.borrow_mut().pump_more();
        self.change()?;
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
        let time = realtime_nanos();
        let mut lanes = self.many.lanes().iter_mut();
        let Some(lane) = lanes.find(|lane| lane.app.rank == ring) else {
            return Ok(false);
        };
        let is_taken = lane.driver.command(|engine, now| {
            let engine = engine.leveled();
            engine.is_some_and(|engine| engine.get_mut().order_account(now, (command, time)))
        })?;
        // Else the ring has nothing to do: a notice that is tried in each turn would keep the thread busy.
        if is_taken {
            lane.get_up();
        }
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
        let (mut accounts, mut heard) = (Vec::new(), Vec::new());
        for lane in self.many.lanes() {
            if let Some(engine) = lane.driver.engine_mut().get_mut().leveled() {
                accounts.push((lane.app.rank, engine.get().accounts().clone()));
                heard.push((lane.app.rank, engine.get().heard()));
            }
        }
        let hub = self.hub.borrow();
        RingsStatus {
            rings,
            accounts,
            heard,
            point,
            founded: self.new_rings.list(),
            pending: hub.learner.pending(),
            wishes: hub.learner.wishes(),
            standby: hub.learner.standby().collect(),
            unreadable_notices: hub.learner.unreadable(),
            waits_for,
            merge: hub.waits(),
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
            lane.driver.command(|engine, now| {
                if let Some(engine) = engine.leveled() {
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
            lane.driver.command(|engine, now| {
                if let Some(engine) = engine.leveled() {
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
