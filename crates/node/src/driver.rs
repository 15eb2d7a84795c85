//! The loop that runs an engine on sockets, in the thread that calls it.
//!
//! It keeps the caller's law of `rota_core::contract`. System calls and wake-ups are the costs here: after a burst was
//! read, only the socket that the engine prefers is tried again before the loop asks the kernel about all of them at
//! once.

mod acceptor;
mod answers;
mod app;
mod arbiter;
mod arrivals;
mod disk_faults;
mod doze;
mod durable;
#[cfg(test)]
mod durable_tests;
mod error;
mod fairness;
mod hand_in;
mod helper;
mod io;
mod log_beside;
mod log_keeper;
mod log_opening;
mod log_thread;
mod many;
#[cfg(test)]
mod no_buffers_tests;
mod outputs;
#[cfg(test)]
mod reopen_tests;
mod sending;
mod store;
mod tokens;
mod votes;
#[cfg(test)]
mod votes_tests;
mod waker;
mod watch;
mod worker;

pub use app::{App, Submitter};
pub use error::DriverError;
pub(crate) use many::Many;
pub use tokens::TokenTimes;

use rota_core::contract::{
    Checked, Delivery, Engine, Input, NodeId, Process, StartState, Status, Time,
};
use std::fmt;
use std::sync::Arc;

use crate::config::NodeConfig;
use crate::trace::{TraceFile, Tracer};
use answers::Answers;
use arbiter::Arbiter;
use arrivals::Arrivals;
use doze::Doze;
use durable::Durable;
use fairness::Fairness;
use io::{Awake, Io};
use rota_net::NetStats;
use rota_net::fault::FaultLayer;
use rota_net::links::Links;
use rota_net::seal::Keys;
use rota_net::sockets::Sockets;
use watch::Watch;
pub use watch::watched_counters;

/// Runs one engine on one node's sockets.
pub struct Driver<E> {
    engine: E,
    io: Io,
    tracer: Option<Tracer>,
    fairness: Fairness,
    /// A message that was pulled early, to see whether a configuration comes first.
    peeked: Option<Delivery>,
    /// A timer that is noticed so late, in nanoseconds, says that this process stood still.
    overslept: u64,
    watch: Watch,
}

impl<E: Engine> Driver<E> {
    /// Starts `engine` as node `me`, in a new incarnation.
    ///
    /// # Errors
    /// [`DriverError`] where the trace or the state directory cannot be used, or the system has no
    /// random numbers.
    pub fn new(
        engine: E,
        sockets: Sockets,
        me: NodeId,
        config: &NodeConfig,
    ) -> Result<Self, DriverError> {
        let me = rota_net::new_process(me).map_err(DriverError::System)?;
        let seed = rota_net::random_u64().map_err(DriverError::System)?;
        Self::with_process(engine, sockets, me, seed, config)
    }

    /// Starts `engine` as this very process, with this seed for its random decisions.
    ///
    /// # Errors
    /// [`DriverError`] where the trace or the state directory cannot be used.
    pub fn with_process(
        engine: E,
        sockets: Sockets,
        me: Process,
        seed: u64,
        config: &NodeConfig,
    ) -> Result<Self, DriverError> {
        let durable = Durable::open(config, me.node)?;
        Self::with_durable(engine, sockets, (me, seed), config, durable)
    }

    fn with_durable(
        mut engine: E,
        sockets: Sockets,
        (me, seed): (Process, u64),
        config: &NodeConfig,
        mut durable: Durable,
    ) -> Result<Self, DriverError> {
        let now = rota_net::monotonic();
        let tracer = config.trace_of(me.node);
        let tracer = tracer.map(|path| Tracer::create(&path, me, now, config.engine.is_uniform()));
        let tracer = tracer.transpose().map_err(DriverError::Trace)?;
        let faults = config.faults.clone();
        let faults = faults.map(|faults| FaultLayer::new(faults, me.node, &config.members()));
        let links = engine
            .wants_links()
            .then(|| Links::open(&config.network(), me, now));
        let links = links.transpose().map_err(DriverError::Links)?;
        let service = config.coordination_service(me.node);
        let service = service.map_err(DriverError::Coordination)?;
        let arbiter = service.map(|service| Arbiter::start(service, Arc::clone(durable.waker())));
        let arbiter = arbiter.transpose().map_err(DriverError::System)?;
        let (records, lost_some) = durable.records();
        engine.handle(
            now,
            Input::Start(StartState {
                me,
                seed,
                records,
                lost_some,
            }),
        );
        let busy_poll_nanos = config.busy_poll_us.saturating_mul(1000);
        Ok(Self {
            engine,
            io: Io::new(
                sockets,
                Arrivals::new(faults),
                Answers::new(durable, arbiter),
                links,
                Doze::new(busy_poll_nanos, rota_net::is_realtime()),
            ),
            tracer,
            fairness: Fairness::default(),
            peeked: None,
            overslept: config.overslept_nanos(),
            watch: Watch::new(me.node, config.members(), now),
        })
    }

    /// Turns until the application stops it. A trace then ends with `leave`.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn run<A: App>(&mut self, app: &mut A) -> Result<(), DriverError> {
        while !app.stop() {
            self.turn(app, None)?;
        }
        self.leave()
    }

    /// Tells the other nodes, and the trace, that this node leaves.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn leave(&mut self) -> Result<(), DriverError> {
        // The token that may be stuck in a full socket goes first; if it cannot, the others will
        // notice by its absence.
        self.engine.leave(rota_net::monotonic());
        self.carry_out()?;
        self.flush_links()?;
        if let Some(tracer) = &mut self.tracer {
            tracer.on_leave(rota_net::monotonic());
        }
        Ok(())
    }

    /// One round: carries out what the engine wants, hands in the next thing that happened, and
    /// sleeps at most `max_wait_nanos` if nothing did.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn turn<A: App>(
        &mut self,
        app: &mut A,
        max_wait_nanos: Option<u64>,
    ) -> Result<(), DriverError> {
        let Some(more) = self.work(app)? else {
            return Ok(());
        };
        self.flush_trace();
        let limit = if more { Some(0) } else { max_wait_nanos };
        self.io.rest(&self.engine, app, limit)?;
        self.settle(app)
    }

    /// Carries out what the engine wants, and hands in the next thing that happened: `None` if there was one. Else whether
    /// deliveries go on that there was no time for, or that the application has made room for.
    fn work<A: App>(&mut self, app: &mut A) -> Result<Option<bool>, DriverError> {
        self.settle(app)?;
        if self.hand_in_next(app)? {
            self.settle(app)?;
            return Ok(None);
        }
        self.fill(app)?;
        self.settle(app)?;
        Ok(Some(app.has_room() && self.deliver(app)? > 0))
    }

    /// The engine's state and counters, together with those of the sockets.
    pub fn status(&self) -> Status {
        let mut status = self.engine.status();
        status.counters.extend(self.stats().named());
        self.io.describe(&mut status);
        status
    }

    /// The times for which this node had the token, and their parts.
    pub const fn token_times(&self) -> &TokenTimes {
        self.io.token_times()
    }

    /// The sockets' counters.
    pub fn stats(&self) -> NetStats {
        NetStats {
            trace_lines_lost: self.tracer.as_ref().map_or(0, Tracer::lost),
            ..self.io.stats()
        }
    }

    /// Breaks the link to a node at once, and lets none begin; or lets it begin again. For tests of what an engine
    /// makes of it.
    pub fn cut_link(&mut self, peer: NodeId, is_cut: bool) {
        self.io.cut_link(peer, is_cut);
    }

    /// The file of this node's trace, for callers that write lines of their own there; `None` if there is no trace.
    pub fn trace_file(&self) -> Option<TraceFile> {
        Some(self.tracer.as_ref()?.file().clone())
    }

    /// The handle for giving this node other keys, from any thread; `None` if the node has none.
    pub fn keys(&self) -> Option<Keys> {
        self.io.keys()
    }

    /// Sends to the nodes that are listed there, and hears them and no others, from now on; the engine is told apart from
    /// that. `false`: a burst is on its way out, and nothing has changed.
    pub fn relist(&mut self, config: &NodeConfig) -> bool {
        let is_done = self.io.relist(&config.network());
        if is_done {
            self.watch.expect(config.members());
        }
        is_done
    }

    /// The next notice of another node: a datagram that is not for the engine, with the room for its seal at the end.
    pub fn next_notice(&mut self) -> Option<bytes::Bytes> {
        self.io.next_notice()
    }

    /// Sends a notice to a node; it may get lost.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn send_notice(&mut self, to: NodeId, notice: Vec<u8>) -> Result<(), DriverError> {
        self.io.send_notice(to, notice)
    }

    /// The engine.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine. The driver carries out its outputs in the next turn.
    pub(crate) const fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Carries out all outputs, in order, and hands out deliveries.
    fn settle<A: App>(&mut self, app: &mut A) -> Result<(), DriverError> {
        if self.tracer.is_some() {
            self.deliver_configurations(app)?;
        }
        self.carry_out()?;
        self.deliver(app)?;
        self.flush_links()?;
        if cfg!(debug_assertions) {
            self.io.check();
        }
        Ok(())
    }

    /// Hands the lines of the trace to the kernel.
    fn flush_trace(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.flush();
        }
    }

    /// The time until which the driver may sleep that rests together with others.
    fn lie_down<A: App>(&mut self, app: &mut A) -> Result<Option<Time>, Awake> {
        self.flush_trace();
        self.io.lie_down(&self.engine, app)
    }
}

impl<E: Engine> Driver<Checked<E>> {
    /// Gives the engine a command of its own, as of now, by the caller's law: `command` must not poll the engine.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn command<T>(
        &mut self,
        command: impl FnOnce(&mut E, Time) -> T,
    ) -> Result<T, DriverError> {
        let done = self.engine.command(rota_net::monotonic(), command);
        self.carry_out()?;
        Ok(done)
    }
}

impl<E> fmt::Debug for Driver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("io", &self.io)
            .finish_non_exhaustive()
    }
}
