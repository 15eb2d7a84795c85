//! A process of several rings, as a library.

use rota_core::contract::{Checked, NodeId, Service, SubmitError};
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Point, Rank};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::config::RingsConfig;
use super::error::{RingsError, RingsStartError};
use super::hub::{Hub, RingsDelivery};
use super::lane::LaneApp;
use super::turns::Turns;
use crate::config::NodeConfig;
use crate::driver::{Driver, DriverError, Many};
use crate::engine::NodeEngine;
use crate::node::inbox::Inbox;
use crate::node::outbox::Outbox;
use crate::node::{StartError, lock};
use crate::slices::ask_for_short_slices;
use crate::sockets::Sockets;

/// What a process of several rings shows of itself.
#[derive(Clone, Debug)]
pub struct RingsStatus {
    /// State and counters of each ring, by its rank.
    pub rings: Vec<(Rank, rota_core::contract::Status)>,
    /// How far it has delivered; `None` in the middle of an instance.
    pub point: Option<Point>,
    /// The rings that what it has is waiting for, and up to which round.
    pub waits_for: Vec<Need>,
}

/// One of the rings, for those who submit to it.
#[derive(Clone, Debug)]
struct Way {
    rank: Rank,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    ended: AtomicBool,
    status_wanted: AtomicBool,
    status: Mutex<Option<RingsStatus>>,
    status_there: Condvar,
}

/// A running process of several rings. Dropping it stops it.
#[derive(Debug)]
pub struct RingsNode {
    ways: Vec<Way>,
    outbox: Arc<Outbox<RingsDelivery>>,
    /// Taken from the rings' thread and not received yet.
    taken: RefCell<VecDeque<RingsDelivery>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), DriverError>>>,
}

/// Submits from any thread.
#[derive(Clone, Debug)]
pub struct RingsPublisher {
    ways: Vec<Way>,
}

impl RingsPublisher {
    /// Submits a message to a ring, and waits while that cannot take more. Deliveries have to be received meanwhile, by another thread.
    ///
    /// # Errors
    /// [`SubmitError`], never `Full`; `Unsupported`: this node is not on that ring.
    pub fn submit_blocking(&self, ring: Rank, payload: &[u8]) -> Result<(), SubmitError> {
        let inbox = inbox(&self.ways, ring)?;
        inbox.submit_blocking(Service::Safe, payload)
    }
}

fn inbox(ways: &[Way], ring: Rank) -> Result<&Inbox, SubmitError> {
    let way = ways.iter().find(|way| way.rank == ring);
    way.map(|way| &*way.inbox).ok_or(SubmitError::Unsupported)
}

impl RingsNode {
    /// Starts node `me`, which delivers the messages of all rings that it is on.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn start(config: &RingsConfig, me: NodeId) -> Result<Self, RingsStartError> {
        let rings = config.rings_of(me);
        let all: Vec<u16> = rings.iter().map(|at| config.rings[*at].id).collect();
        Self::start_with(config, me, &all)
    }

    /// Starts node `me`, which delivers the messages of these rings. Of the others that it is on it is a part, and delivers nothing.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn start_with(
        config: &RingsConfig,
        me: NodeId,
        subscribe: &[u16],
    ) -> Result<Self, RingsStartError> {
        config.check().map_err(RingsStartError::Config)?;
        let of_ring = |at: usize| config.of_ring(at).map_err(RingsStartError::Config);
        let rings: Vec<NodeConfig> = config
            .rings_of(me)
            .into_iter()
            .map(of_ring)
            .collect::<Result<_, _>>()?;
        let constants = subscribed(&rings, subscribe)?;
        let (shared, outbox) = (Arc::<Shared>::default(), Arc::default());
        let mut ways = Vec::new();
        for ring in &rings {
            let of = ring.ring_of.expect("one of several");
            let system =
                |error| RingsStartError::Ring(of.constants.rank.0, StartError::System(error));
            let inbox = Arc::new(Inbox::new(ring.message_limit()).map_err(system)?);
            ways.push(Way {
                rank: of.constants.rank,
                inbox,
            });
        }
        let first = ways.first().map_or(0, |way| way.rank.0);
        let (started, starts) = mpsc::channel();
        let begin = {
            let (ways, outbox, shared) = (ways.clone(), Arc::clone(&outbox), Arc::clone(&shared));
            // What runs above the rings stays in their thread, so that is where all of it begins.
            move || begin(me, &rings, (&constants, &ways), outbox, (&shared, &started))
        };
        let thread = std::thread::Builder::new()
            .name(format!("rota-{me}"))
            .spawn(begin)
            .map_err(|error| RingsStartError::Ring(first, StartError::System(error)))?;
        match starts.recv() {
            Ok(Err(error)) => {
                let _ = thread.join();
                Err(error)
            }
            Ok(Ok(())) | Err(_) => Ok(Self {
                ways,
                outbox,
                taken: RefCell::default(),
                shared,
                thread: Some(thread),
            }),
        }
    }

    /// Submits a message to a ring; it will be delivered here, too, if this process wants that ring. The payload is copied.
    ///
    /// # Errors
    /// [`SubmitError`]; `Full` while the ring cannot take more, `Unsupported` where this node is not on it.
    pub fn submit(&self, ring: Rank, payload: &[u8]) -> Result<(), SubmitError> {
        inbox(&self.ways, ring)?.submit(Service::Safe, payload)
    }

    /// A handle to submit with from other threads.
    pub fn publisher(&self) -> RingsPublisher {
        RingsPublisher {
            ways: self.ways.clone(),
        }
    }

    /// Waits for the next delivery; `None` when the node has stopped and all were received.
    pub fn recv(&self) -> Option<RingsDelivery> {
        self.next(None).ok()
    }

    /// Waits for the next delivery at most this long.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`], or `Disconnected` when the node has stopped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<RingsDelivery, RecvTimeoutError> {
        self.next(Instant::now().checked_add(timeout))
    }

    fn next(&self, deadline: Option<Instant>) -> Result<RingsDelivery, RecvTimeoutError> {
        let mut taken = self.taken.borrow_mut();
        if taken.is_empty() && self.outbox.take(&mut taken, deadline)? {
            self.ways.iter().for_each(|way| way.inbox.wake());
        }
        taken.pop_front().ok_or(RecvTimeoutError::Timeout)
    }

    /// State and counters, as of now. `None` when the node has stopped, or is too busy to answer within a second.
    pub fn status(&self) -> Option<RingsStatus> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let mut status = lock(&self.shared.status);
        *status = None;
        self.shared.status_wanted.store(true, SeqCst);
        self.ways.iter().for_each(|way| way.inbox.wake());
        let missing =
            |status: &mut Option<RingsStatus>| status.is_none() && !self.shared.ended.load(SeqCst);
        let there = &self.shared.status_there;
        let waited = there.wait_timeout_while(status, PATIENCE, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Stops the node and says how its thread ended.
    ///
    /// # Errors
    /// [`DriverError`] where it had failed.
    pub fn stop(mut self) -> Result<(), DriverError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DriverError> {
        self.shared.stop.store(true, SeqCst);
        self.ways.iter().for_each(|way| way.inbox.wake());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for RingsNode {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(error) = self.end()
        {
            tracing::error!(%error, "a node had failed");
        }
        self.shared.stop.store(true, SeqCst);
        self.ways.iter().for_each(|way| way.inbox.wake());
    }
}

/// The constants of the rings that are wanted.
fn subscribed(rings: &[NodeConfig], subscribe: &[u16]) -> Result<Vec<Constants>, RingsStartError> {
    let of = |id: &u16| {
        let mut all = rings.iter().filter_map(|ring| ring.ring_of);
        let of = all.find(|of| of.constants.rank == Rank(*id));
        of.map(|of| of.constants)
            .ok_or(RingsStartError::Subscription(*id))
    };
    match subscribe {
        [] => Err(RingsStartError::Subscription(0)),
        _ => subscribe.iter().map(of).collect(),
    }
}

/// In the rings' thread: opens all of them, says how that went, and runs them.
fn begin(
    me: NodeId,
    rings: &[NodeConfig],
    (constants, ways): (&[Constants], &[Way]),
    outbox: Arc<Outbox<RingsDelivery>>,
    (shared, started): (&Shared, &mpsc::Sender<Result<(), RingsStartError>>),
) -> Result<(), DriverError> {
    let hub = Hub::new(constants.iter().copied(), outbox);
    let hub = Rc::new(RefCell::new(hub));
    let opened = rings.iter().zip(ways).map(|(ring, way)| {
        let app = LaneApp::new(way.rank, Arc::clone(&way.inbox), Rc::clone(&hub));
        let driver = open(ring, me).map_err(|error| RingsStartError::Ring(way.rank.0, error))?;
        Ok((driver, app))
    });
    let opened: Result<Vec<_>, RingsStartError> = opened.collect();
    let drivers = match opened {
        Ok(drivers) => drivers,
        Err(error) => {
            let _ = started.send(Err(error));
            return Ok(());
        }
    };
    let _ = started.send(Ok(()));
    let busy_poll_us = rings.first().map_or(0, |ring| ring.busy_poll_us);
    let many = Many::new(drivers, busy_poll_us);
    let result = run(
        &mut Turns {
            many,
            hub: Rc::clone(&hub),
        },
        shared,
    );
    hub.borrow().outbox.end();
    shared.ended.store(true, SeqCst);
    // With the lock held nobody can be between looking at `ended` and waiting.
    drop(lock(&shared.status));
    shared.status_there.notify_all();
    result
}

fn open(config: &NodeConfig, me: NodeId) -> Result<Driver<Checked<NodeEngine>>, StartError> {
    config.check_for(me).map_err(StartError::Config)?;
    if let Some(directory) = &config.state_dir {
        std::fs::create_dir_all(directory).map_err(StartError::System)?;
    }
    let sockets = Sockets::open(config, me).map_err(StartError::Socket)?;
    let engine = NodeEngine::new(config, me).map_err(StartError::Config)?;
    Driver::new(Checked::new(engine), sockets, me, config).map_err(StartError::Driver)
}

fn run(turns: &mut Turns, shared: &Shared) -> Result<(), DriverError> {
    ask_for_short_slices();
    while !shared.stop.load(SeqCst) {
        turns.turn()?;
        if shared.status_wanted.swap(false, SeqCst) {
            *lock(&shared.status) = Some(describe(turns));
            shared.status_there.notify_all();
        }
    }
    turns.many.leave()
}

fn describe(turns: &mut Turns) -> RingsStatus {
    let (point, waits_for) = turns.hub.borrow().describe();
    let lanes = turns.many.lanes().iter();
    RingsStatus {
        rings: lanes
            .map(|lane| (lane.app.rank, lane.driver.status()))
            .collect(),
        point,
        waits_for,
    }
}

impl From<RingsError> for RingsStartError {
    fn from(error: RingsError) -> Self {
        Self::Config(error)
    }
}
