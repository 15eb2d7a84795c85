//! A process of several rings, as a library.

use rota_core::contract::{NodeId, Service, SubmitError};
use rota_multiring::{Rank, Resume, RingsDelivery};
use rota_paxos::uring::accounts::Command;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::above::{NodeApp, Taking};
use super::accounts::Accounts;
use super::changes::Wishes;
use super::config::RingsConfig;
use super::driver::{RingsDriver, RingsStatus};
use super::error::RingsStartError;
use super::foundings::Foundings;
use super::trace::StateSource;
use super::ways::Ways;
use crate::driver::DriverError;
use crate::node::StartError;
use crate::node::asked::Asked;
use crate::node::inbox::Inbox;
use crate::node::outbox::{Filling, Outbox};
use rota_net::ask_for_short_slices;

/// The longest time, in nanoseconds, after which the rings are handed again what they did not take.
const AGAIN_NANOS: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(super) struct Shared {
    stop: AtomicBool,
    /// A point is wanted.
    point: AtomicBool,
    /// The process is a replica of a partition.
    pub(super) is_of_partition: bool,
    pub(super) wishes: Wishes,
    pub(super) foundings: Foundings,
    accounts: Accounts,
    pub(super) status: Asked<RingsStatus>,
}

/// A running process of several rings. Dropping it stops it.
#[derive(Debug)]
pub struct RingsNode {
    ways: Ways,
    outbox: Arc<Outbox<RingsDelivery>>,
    /// Taken from the rings' thread and not received yet.
    taken: RefCell<VecDeque<RingsDelivery>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), DriverError>>>,
}

/// Submits from any thread.
#[derive(Clone, Debug)]
pub struct RingsPublisher {
    ways: Ways,
}

/// Asks a node for its status, from any thread.
#[derive(Clone, Debug)]
pub struct RingsWatch {
    pub(super) ways: Ways,
    pub(super) shared: Arc<Shared>,
}

impl RingsWatch {
    /// As [`RingsNode::status`].
    pub fn status(&self) -> Option<RingsStatus> {
        self.shared.status.ask(|| self.ways.wake())
    }

    /// As [`RingsNode::order`].
    ///
    /// # Errors
    /// The same.
    pub fn order(&self, ring: Rank, command: Command) -> Result<(), SubmitError> {
        self.ways.with(ring, |inbox| {
            self.shared.accounts.push(ring, command)?;
            inbox.wake();
            Ok(())
        })?
    }
}

impl RingsPublisher {
    /// Submits a message to a ring.
    ///
    /// # Errors
    /// As [`RingsNode::submit`].
    pub fn submit(&self, ring: Rank, payload: &[u8]) -> Result<(), SubmitError> {
        let submit = |inbox: &Inbox| inbox.submit(Service::Safe, payload);
        self.ways.with(ring, submit)?
    }

    /// Submits a message to a ring, and waits while that cannot take more. Deliveries have to be received meanwhile, by another thread.
    ///
    /// # Errors
    /// [`SubmitError`], never `Full`; `Unsupported`: this node is not on that ring, or only observes it.
    pub fn submit_blocking(&self, ring: Rank, payload: &[u8]) -> Result<(), SubmitError> {
        let submit = |inbox: &Inbox| inbox.submit_blocking(Service::Safe, payload);
        self.ways.with(ring, submit)?
    }
}

impl RingsNode {
    /// Starts node `me`, which delivers the messages of all rings that it is on.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn start(config: &RingsConfig, me: NodeId) -> Result<Self, RingsStartError> {
        Self::start_with(config, me, None)
    }

    /// Starts node `me`, which delivers the messages of these rings. Of the other rings that it is on it is a member,
    /// and delivers nothing: so for all of them where it subscribes to none, as an acceptor without an application.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn start_with(
        config: &RingsConfig,
        me: NodeId,
        subscribe: Option<&[u16]>,
    ) -> Result<Self, RingsStartError> {
        let wanted = subscribe.map(<[u16]>::to_vec);
        Self::begin(config, me, false, move |config, app| {
            RingsDriver::open(config, me, wanted.as_deref(), app)
        })
    }

    /// Starts node `me`, whose application has a state that was kept at a point ([`Self::want_point`]), here or in
    /// another process. It delivers what is behind that, of the rings that were delivered there. Its trace names the
    /// point at which it begins, and the source of the state.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn resume(
        config: &RingsConfig,
        me: NodeId,
        (resume, source): (Resume, StateSource),
    ) -> Result<Self, RingsStartError> {
        Self::begin(config, me, false, move |config, app| {
            RingsDriver::resume(config, me, (resume, source), app)
        })
    }

    pub(super) fn begin(
        config: &RingsConfig,
        me: NodeId,
        is_of_partition: bool,
        open: impl FnOnce(&RingsConfig, NodeApp) -> Result<RingsDriver<NodeApp>, RingsStartError>
        + Send
        + 'static,
    ) -> Result<Self, RingsStartError> {
        config.check().map_err(RingsStartError::Config)?;
        let ways = Ways::of(config, me)?;
        let shared = Shared {
            is_of_partition,
            ..Shared::default()
        };
        let (shared, outbox) = (Arc::new(shared), Arc::default());
        let app = NodeApp {
            taken: ways.configured().iter().cloned().map(Taking::new).collect(),
            ways: ways.clone(),
            filling: Filling::default(),
            outbox: Arc::clone(&outbox),
            shared: Arc::clone(&shared),
        };
        let (started, starts) = mpsc::channel();
        let config = config.clone();
        // The application above the rings stays in their thread, so all of it begins there.
        let begin = move || {
            let driver = match open(&config, app) {
                Ok(driver) => driver,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return Ok(());
                }
            };
            let _ = started.send(Ok(()));
            run(driver)
        };
        let thread = std::thread::Builder::new().name(format!("rota-{me}"));
        let thread = thread
            .spawn(begin)
            .map_err(|error| RingsStartError::Ring(0, StartError::System(error)))?;
        if let Ok(Err(error)) = starts.recv() {
            let _ = thread.join();
            return Err(error);
        }
        Ok(Self {
            ways,
            outbox,
            taken: RefCell::default(),
            shared,
            thread: Some(thread),
        })
    }

    /// Submits a message to a ring; it will be delivered here, too, if this process wants that ring. The payload is copied.
    ///
    /// # Errors
    /// [`SubmitError`]; `Full` while the ring cannot take more, `Unsupported` where this node is not on it.
    pub fn submit(&self, ring: Rank, payload: &[u8]) -> Result<(), SubmitError> {
        let submit = |inbox: &Inbox| inbox.submit(Service::Safe, payload);
        self.ways.with(ring, submit)?
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
            self.ways.wake();
        }
        taken.pop_front().ok_or(RecvTimeoutError::Timeout)
    }

    /// Asks for a point: a place of the order that all rings come to soon. It is delivered there ([`RingsDelivery::Point`]), between the messages
    /// before it and those behind it, and a state that is kept just then goes on with [`Self::resume`].
    pub fn want_point(&self) {
        self.shared.point.store(true, SeqCst);
        self.ways.wake();
    }

    /// Has a command about what a ring may forget ordered soon.
    ///
    /// # Errors
    /// [`SubmitError`]; `Full` while much waits already, `Unsupported` where this node is not on that ring or only observes it, and where a number in it is too large.
    pub fn order(&self, ring: Rank, command: Command) -> Result<(), SubmitError> {
        self.watch().order(ring, command)
    }

    /// State and counters, as of now. `None` when the node has stopped, or is too busy to answer within a second.
    pub fn status(&self) -> Option<RingsStatus> {
        self.watch().status()
    }

    /// A handle to ask for the status with, from any thread.
    pub fn watch(&self) -> RingsWatch {
        RingsWatch {
            ways: self.ways.clone(),
            shared: Arc::clone(&self.shared),
        }
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
        self.ways.wake();
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
        self.ways.wake();
    }
}

fn run(mut driver: RingsDriver<NodeApp>) -> Result<(), DriverError> {
    ask_for_short_slices();
    let shared = Arc::clone(&driver.app().shared);
    let mut some_wait = false;
    while !shared.stop.load(SeqCst) {
        driver.turn(some_wait.then_some(AGAIN_NANOS))?;
        if shared.point.swap(false, SeqCst) {
            driver.want_point();
        }
        some_wait = shared.wishes.hand_in(&mut driver).is_err();
        some_wait |= shared.accounts.order(&mut driver)?;
        some_wait |= shared.foundings.hand_in(&mut driver)?;
        if shared.status.take_wanted() {
            shared.status.answer(driver.status());
        }
    }
    driver.leave()
}
