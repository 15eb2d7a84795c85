//! The loop that runs an engine on sockets, in the thread that calls it.
//!
//! It keeps the caller's law of `rota_core::contract`. System calls and wake-ups are the costs here: after a burst was
//! read, only the socket that the engine prefers is tried again before the loop asks the kernel about all of them at
//! once.

mod acceptor;
mod app;
mod arbiter;
mod arrivals;
mod arrived;
mod disk_faults;
mod durable;
#[cfg(test)]
mod durable_tests;
mod error;
mod hand_out;
mod helper;
mod links;
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
mod rest;
mod store;
mod stored;
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

use rota_core::contract::{Delivery, Engine, Input, NodeId, Process, StartState, Status, Time};
use std::collections::VecDeque;
use std::fmt;

use crate::config::NodeConfig;
use crate::trace::{TraceFile, Tracer};
use arbiter::Arbiter;
use arrivals::Arrivals;
use durable::Durable;
use rest::Doze;
use rota_net::NetStats;
use rota_net::fault::FaultLayer;
use rota_net::links::Links;
use rota_net::seal::Keys;
use rota_net::sockets::{Outgoing, Sockets};
use tokens::Tokens;
use watch::Watch;
pub use watch::watched_counters;

/// Bursts that may be handed in while a timer is due: datagrams that wait in a socket may be the
/// very ones whose absence the timer would report.
const BURSTS_BEFORE_TIMER: u32 = 16;

/// Bursts of data that may be handed in before the application submits again: not every engine gets a token.
const BURSTS_BEFORE_FILL: u32 = 8;

/// Runs one engine on one node's sockets.
pub struct Driver<E> {
    engine: E,
    sockets: Sockets,
    arrivals: Arrivals,
    tracer: Option<Tracer>,
    /// A burst that the kernel has not taken whole.
    stuck: Option<Outgoing>,
    /// The kernel said it has no buffers, and not when it will have.
    no_buffers: bool,
    /// A message that was pulled early, to see whether a configuration comes first.
    peeked: Option<Delivery>,
    /// Inputs that arose while outputs were carried out.
    answers: VecDeque<Input>,
    durable: Durable,
    /// `None`: no coordination service is configured.
    arbiter: Option<Arbiter>,
    /// `None`: the engine wants none.
    links: Option<Box<Links>>,
    bursts_past_timer: u32,
    bursts_past_links: u32,
    bursts_past_fill: u32,
    /// A timer that is noticed so late, in nanoseconds, says that this process stood still.
    overslept: u64,
    doze: Doze,
    watch: Watch,
    tokens: Tokens,
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
        let arbiter = service.map(|service| Arbiter::start(service, durable.waker()));
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
        Ok(Self {
            engine,
            sockets,
            arrivals: Arrivals::new(faults),
            tracer,
            stuck: None,
            no_buffers: false,
            peeked: None,
            answers: VecDeque::new(),
            durable,
            arbiter,
            links: links.map(Box::new),
            bursts_past_timer: 0,
            bursts_past_links: 0,
            bursts_past_fill: 0,
            overslept: config.overslept_nanos(),
            doze: Doze::new(
                config.busy_poll_us.saturating_mul(1000),
                rota_net::is_realtime(),
            ),
            watch: Watch::new(me.node, config.members(), now),
            tokens: Tokens::default(),
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
        self.rest(app, if more { Some(0) } else { max_wait_nanos })?;
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
        status
            .notes
            .extend(self.sockets.refusals(rota_net::monotonic()));
        self.describe_arbiter(&mut status);
        self.describe_votes(&mut status);
        status
    }

    /// The times for which this node had the token, and their parts.
    pub const fn token_times(&self) -> &TokenTimes {
        &self.tokens.times
    }

    /// The sockets' counters.
    pub fn stats(&self) -> NetStats {
        NetStats {
            faults: self.arrivals.faults(),
            trace_lines_lost: self.tracer.as_ref().map_or(0, Tracer::lost),
            ..*self.sockets.stats()
        }
    }

    /// Tells the engine something that the contract has no word for, as of now.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn tell(&mut self, what: impl FnOnce(&mut E, Time)) -> Result<(), DriverError> {
        what(&mut self.engine, rota_net::monotonic());
        self.carry_out()
    }

    /// The file of this node's trace, for callers that write lines of their own there; `None` if there is no trace.
    pub fn trace_file(&self) -> Option<TraceFile> {
        Some(self.tracer.as_ref()?.file().clone())
    }

    /// The handle for giving this node other keys, from any thread; `None` if the node has none.
    pub fn keys(&self) -> Option<Keys> {
        self.sockets.keys()
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
        self.flush_links()
    }

    /// Reads or takes the next burst and hands it in, or a timer that is due.
    fn hand_in_next<A: App>(&mut self, app: &mut A) -> Result<bool, DriverError> {
        let now = rota_net::monotonic();
        self.sockets.tend(now);
        if self.watch.is_due(now) {
            let status = self.status();
            self.watch.look(now, &status);
        }
        while let Some(peer) = self.sockets.next_refused() {
            self.engine.handle(now, Input::Unreachable { peer });
            self.carry_out()?;
        }
        if self.take_stored()? {
            return Ok(true);
        }
        let timer = self.engine.next_timer().map(|(at, _)| at);
        if timer.is_some_and(|at| now.since(at) >= self.overslept) {
            self.forget_arrivals();
            return Ok(true);
        }
        let due = timer.is_some_and(|at| at <= now);
        if due && self.bursts_past_timer >= BURSTS_BEFORE_TIMER {
            self.on_timer();
            return Ok(true);
        }
        self.arrivals.release(now);
        let links_first = self.bursts_past_links >= links::BURSTS_BEFORE_LINKS;
        if links_first && self.hand_in_links(app)? {
            self.bursts_past_timer += u32::from(due);
            return Ok(true);
        }
        let first = self.engine.reading();
        let tokens = self.stuck.is_none();
        let next = self.arrivals.next(&mut self.sockets, first, tokens, now);
        if let Some((class, arrival)) = next.map_err(DriverError::Socket)? {
            self.bursts_past_timer += u32::from(due);
            self.bursts_past_links += 1;
            self.on_arrival(app, class, arrival)?;
            return Ok(true);
        }
        if self.hand_in_links(app)? {
            self.bursts_past_timer += u32::from(due);
            return Ok(true);
        }
        if due {
            self.on_timer();
        }
        Ok(due)
    }
}

impl<E> fmt::Debug for Driver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("sockets", &self.sockets)
            .finish_non_exhaustive()
    }
}
