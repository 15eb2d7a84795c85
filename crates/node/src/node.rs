//! A node as a library: the ring in a thread of its own, and blocking calls for the application.
//!
//! ```no_run
//! use rota_core::contract::{Delivery, NodeId, Service};
//! use rota_node::{Node, NodeConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = NodeConfig::loopback(3, 7700);
//! let node = Node::start(config, NodeId::new(1).ok_or("no node")?)?;
//! while let Some(delivery) = node.recv() {
//!     match delivery {
//!         // It starts alone; what is sent before the others are there, they never get.
//!         Delivery::Configuration(now) if now.members.len() == 3 => {
//!             node.submit(Service::Agreed, b"hello")?;
//!         }
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub(crate) mod asked;
pub(crate) mod inbox;
pub(crate) mod outbox;
mod shared;

use rota_core::contract::{Checked, Delivery, NodeId, RingId, Service, Status, SubmitError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::config::{ConfigError, NodeConfig};
use crate::driver::{Driver, DriverError};
use crate::engine::NodeEngine;
use rota_net::NetStats;
use rota_net::ask_for_short_slices;
use rota_net::seal::Keys;
use rota_net::sockets::{SocketError, Sockets};
use shared::{RingApp, Shared};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// The configuration is wrong.
    Config(ConfigError),
    /// The sockets cannot be opened.
    Socket(SocketError),
    /// The driver cannot run.
    Driver(DriverError),
    /// No thread or no descriptor.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "configuration: {error}"),
            Self::Socket(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
            Self::System(error) => write!(f, "cannot start the ring's thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// The status of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    /// The engine's state, and the counters of engine and sockets by name.
    pub engine: Status,
    /// The sockets' counters.
    pub net: NetStats,
    /// The ring of the current configuration, if that is primary. The application may not have received that delivery
    /// yet.
    pub primary: Option<RingId>,
    /// This node has the state of all primaries up to that one, as far as the node knows: it was in each of
    /// them, or its application has said so. Only with `primary = "dynamic"`.
    pub caught_up: bool,
}

/// A running node. Dropping it stops the node.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    /// Taken from the ring's thread and not received yet.
    taken: RefCell<VecDeque<Delivery>>,
    keys: Option<Keys>,
    thread: Option<JoinHandle<Result<(), DriverError>>>,
}

/// Submits to a node from any thread.
#[derive(Clone, Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
}

impl Publisher {
    /// See [`Node::submit`].
    ///
    /// # Errors
    /// As there.
    pub fn submit(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.shared.inbox.submit(service, payload)
    }

    /// See [`Node::submit_blocking`].
    ///
    /// # Errors
    /// As there.
    pub fn submit_blocking(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.shared.inbox.submit_blocking(service, payload)
    }
}

impl Node {
    /// Starts node `me` of a cluster.
    ///
    /// # Errors
    /// [`StartError`]: most often an address in use or a mistake in the configuration.
    pub fn start(config: NodeConfig, me: NodeId) -> Result<Self, StartError> {
        let config = config.resolved(me);
        config.check_for(me).map_err(StartError::Config)?;
        let sockets = Sockets::open(&config.network(), me).map_err(StartError::Socket)?;
        let engine = NodeEngine::new(&config, me).map_err(StartError::Config)?;
        let limit = config.message_limit();
        let mut driver =
            Driver::new(Checked::new(engine), sockets, me, &config).map_err(StartError::Driver)?;
        let keys = driver.keys();
        let (shared, mut app) = shared::new(limit).map_err(StartError::System)?;
        let thread = std::thread::Builder::new()
            .name(format!("rota-{me}"))
            .spawn(move || run(&mut driver, &mut app))
            .map_err(StartError::System)?;
        Ok(Self {
            shared,
            taken: RefCell::default(),
            keys,
            thread: Some(thread),
        })
    }

    /// Submits a message; it will be delivered here, too. The payload is copied.
    ///
    /// # Errors
    /// [`SubmitError::Full`] while the ring cannot take more: try again later.
    pub fn submit(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.shared.inbox.submit(service, payload)
    }

    /// Submits a message, and waits while the ring cannot take more. Deliveries have to be received
    /// meanwhile, by another thread: a node that receives nothing ends up throttling all senders.
    ///
    /// # Errors
    /// [`SubmitError`], never `Full`.
    pub fn submit_blocking(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.shared.inbox.submit_blocking(service, payload)
    }

    /// A handle to submit with from other threads.
    pub fn publisher(&self) -> Publisher {
        Publisher {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Waits for the next delivery; `None` when the node has stopped and all were received.
    pub fn recv(&self) -> Option<Delivery> {
        self.next(None).ok()
    }

    /// The next delivery, if there is one already.
    pub fn try_recv(&self) -> Option<Delivery> {
        self.recv_timeout(Duration::ZERO).ok()
    }

    /// Waits for the next delivery at most this long.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`], or `Disconnected` when the node has stopped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Delivery, RecvTimeoutError> {
        // A time-out beyond what the clock can say is none.
        self.next(Instant::now().checked_add(timeout))
    }

    fn next(&self, deadline: Option<Instant>) -> Result<Delivery, RecvTimeoutError> {
        let mut taken = self.taken.borrow_mut();
        if taken.is_empty() {
            self.shared.take(&mut taken, deadline)?;
        }
        taken.pop_front().ok_or(RecvTimeoutError::Timeout)
    }

    /// State and counters, as of now. `None` when the node has stopped, or is too busy to answer
    /// within a second.
    pub fn status(&self) -> Option<NodeStatus> {
        self.shared.status()
    }

    /// The application has got the state of the primary with this ring, which it has received as [`Delivery::Primary`],
    /// from a node that had it, and has made it durable: from now on this node is one that carries it to a later
    /// primary. Without effect where another configuration is current by now, or the rule is not dynamic.
    pub fn caught_up(&self, ring: RingId) {
        self.shared.caught_up(ring);
    }

    /// The handle for giving this node other keys while it runs; `None` if its datagrams are not sealed.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    /// Stops the node and says how its thread ended.
    ///
    /// # Errors
    /// [`DriverError`] where it had failed.
    pub fn stop(mut self) -> Result<(), DriverError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DriverError> {
        self.shared.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(error) = self.end()
        {
            tracing::error!(%error, "a node had failed");
        }
        self.shared.stop();
    }
}

fn run(driver: &mut Driver<Checked<NodeEngine>>, app: &mut RingApp) -> Result<(), DriverError> {
    use crate::driver::App;
    ask_for_short_slices();
    while !app.stop() {
        driver.turn(app, None)?;
        if let Some(ring) = app.take_caught_up() {
            driver.command(|engine, now| engine.caught_up(now, ring))?;
        }
        if app.status_wanted() {
            let engine = driver.engine().get();
            app.publish_status(NodeStatus {
                engine: driver.status(),
                net: driver.stats(),
                primary: engine.primary(),
                caught_up: engine.is_caught_up(),
            });
        }
    }
    driver.leave()
}
