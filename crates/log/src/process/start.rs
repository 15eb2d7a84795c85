//! The start and the end of a process.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_front::access::Users;
use rota_front::local::{bind, listen};
use rota_front::metrics::{self, Text};
use rota_front::{Guests, Local, ReloadError, SealError, Sealer};
use rota_multiring::Rank;
use rota_net::{KeyRing, Landing};
use rota_replica::{Orders, Ready, Replica, ReplicaStatus};
use rota_storage::acceptor::FileDir;
use tokio::task::spawn_local;

use super::around::{LogMachine, Neighbours, Told};
use super::client::serve;
use super::door::{self, Room};
use super::lag::Lag;
use super::metrics::Of;
use super::pulse::{Looked, Pulse};
use super::scrub::Scrub;
use super::server::Server;
use super::source::Source;
use super::waiters::Waiters;
use super::way::{Way, run};
use crate::config::{ConfigError, LogConfig, ProcessSection};
use crate::replicated::View;
use crate::store::{Options, Store};

/// The reason why a process does not start.
#[derive(Debug)]
pub enum StartError {
    /// No `[[log.process]]` has this node.
    NoProcess(NodeId),
    /// The file is wrong.
    Config(ConfigError),
    /// Its replica does not start.
    Replica(rota_replica::StartError),
    /// This node names these rings, and this process those: all processes have to have the same.
    Differs(NodeId, Vec<u16>, Vec<u16>),
    /// Its certificate cannot be used.
    Seal(SealError),
    /// An error of the system.
    System(&'static str, io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(node) => write!(f, "there is no `[[log.process]]` with node {node}"),
            Self::Config(error) => write!(f, "{error}"),
            Self::Replica(error) => write!(f, "{error}"),
            Self::Differs(node, theirs, own) => write!(
                f,
                "`rings` in `[log]` is {own:?} here, and {theirs:?} at node {node}: all processes have to have the same"
            ),
            Self::Seal(error) => write!(f, "[log.tls]: {error}"),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

fn system(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |error| StartError::System(what, error)
}

/// A running process. Dropping it stops it.
pub struct LogProcess {
    listeners: Option<Local>,
    metrics: Option<Local>,
    pulse: Option<Pulse>,
    door: Option<Landing>,
    source: Arc<Source>,
    replica: Arc<Replica<LogMachine>>,
    guests: Arc<Guests>,
}

impl fmt::Debug for LogProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogProcess").finish_non_exhaustive()
    }
}

impl LogProcess {
    /// Starts the process of a node.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: &LogConfig, node: NodeId) -> Result<Self, StartError> {
        let config = &config.resolved(node);
        let process = config.process(node).ok_or(StartError::NoProcess(node))?;
        let begins = Begins {
            config,
            process,
            node,
        };
        let store = begins.store()?;
        let source = Arc::new(begins.source()?);
        let waiters = Waiters::default();
        let neighbours = Neighbours {
            waiters: waiters.clone(),
            source: Arc::clone(&source),
            told: begins.told(&store)?,
        };
        let machine = LogMachine::new(Arc::clone(&store), Box::new(neighbours));
        let (view, unreadable) = (machine.view(), machine.unreadable());
        // Other processes may need the listener before this one has begun.
        let door = begins.door(&store, &view)?;
        begins.compare(&source)?;
        let replica = Replica::start(&config.replica(node), machine);
        let replica = Arc::new(replica.map_err(StartError::Replica)?);
        let ready = Arc::new(Ready::new(replica.orders()));
        let is_full = Arc::new(AtomicBool::new(false));
        let way = Way::new(
            (replica.orders(), Arc::clone(&ready)),
            &config.log.rings,
            drawn()?,
            (config.patience(), Arc::clone(&is_full)),
        );
        let has = (Arc::clone(&store), Arc::clone(&source), waiters);
        let server = Arc::new(begins.server(way, has, (view, unreadable))?);
        let pulse = begins.pulse((replica.orders(), ready), (&server, is_full))?;
        let metrics = begins.metrics(&server, &replica)?;
        Ok(Self {
            guests: Arc::clone(&server.guests),
            listeners: begins.listeners(server)?,
            metrics,
            pulse: Some(pulse),
            door: Some(door),
            source,
            replica,
        })
    }

    /// Puts the users of a configuration into force, also for clients that are connected. `false`: they are the same.
    /// Nothing else of the configuration counts before the next start.
    ///
    /// # Errors
    /// [`ReloadError`]: then the users are those of before.
    pub fn reload(&self, config: &LogConfig) -> Result<bool, ReloadError> {
        self.guests.users.reload(&config.log.user)
    }

    /// The reason why its replica has stopped, if it has.
    pub fn ended(&self) -> Option<String> {
        self.replica.ended()
    }

    /// The state of its replica. It waits while the replica takes in the state of another one.
    pub fn status(&self) -> ReplicaStatus {
        self.replica.status()
    }

    /// Stops the process. Commands without an answer may count or not.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for LogProcess {
    fn drop(&mut self) {
        self.source.stop.store(true, SeqCst);
        // Clients go first.
        self.metrics = None;
        self.listeners = None;
        self.pulse = None;
        self.door = None;
    }
}

/// The parts that a start needs.
struct Begins<'a> {
    config: &'a LogConfig,
    process: &'a ProcessSection,
    node: NodeId,
}

fn drawn() -> Result<u64, StartError> {
    getrandom::u64().map_err(|error| StartError::System("random numbers", error.into()))
}

impl Begins<'_> {
    fn own(&self) -> (Process, u32) {
        let process = Process {
            node: self.node,
            incarnation: Incarnation(1),
        };
        (process, self.config.rings.common.cluster)
    }

    fn keys(&self) -> Result<Option<KeyRing>, StartError> {
        let keys = self.config.rings.common.keys();
        keys.map_err(|error| StartError::System("the cluster's key", io::Error::other(error)))
    }

    fn at(&self, process: &ProcessSection, port: u16) -> Result<SocketAddr, StartError> {
        let wrong = || StartError::Config(ConfigError::Node(process.node));
        let address = self.config.address(process.node).ok_or_else(wrong)?;
        Ok(SocketAddr::new(address, port))
    }

    fn others(&self) -> impl Iterator<Item = (&ProcessSection, NodeId)> {
        let all = self.config.log.process.iter();
        let named = all.filter_map(|process| Some((process, NodeId::new(process.node)?)));
        named.filter(|(_, node)| *node != self.node)
    }

    fn store(&self) -> Result<Arc<Store<FileDir>>, StartError> {
        let directory = self.config.directory(self.node);
        let entries = directory.join("entries");
        for directory in [&entries, &directory.join("states")] {
            let made = std::fs::create_dir_all(directory);
            made.map_err(system("its directory for entries and states"))?;
        }
        let options = Options {
            cache_bytes: self.config.cache_bytes(),
            ..Options::default()
        };
        let store = Store::open(FileDir::new(entries), options);
        Ok(Arc::new(store.map_err(system("its entries"))?))
    }

    fn told(&self, store: &Store<FileDir>) -> Result<Told, StartError> {
        let told = Told::open(self.config.directory(self.node).join("told"));
        let told = told.and_then(|told| told.add(store.id()).map(|()| told));
        told.map_err(system("which states it has told that it has"))
    }

    fn door(&self, store: &Arc<Store<FileDir>>, view: &View) -> Result<Landing, StartError> {
        let room = Room {
            own: self.own(),
            keys: self.keys()?,
            others: self.others().map(|(_, node)| node).collect::<BTreeSet<_>>(),
            store: Arc::clone(store),
            rings: self.config.log.rings.clone(),
            view: view.clone(),
        };
        let address = self.at(self.process, self.process.link_port)?;
        door::open(address, room).map_err(system("where other processes connect"))
    }

    fn source(&self) -> Result<Source, StartError> {
        let mut others = Vec::new();
        for (process, node) in self.others() {
            others.push((node, self.at(process, process.link_port)?));
        }
        Ok(Source::new(self.own(), self.keys()?, others))
    }

    fn guests(&self) -> Result<Arc<Guests>, StartError> {
        let log = &self.config.log;
        let users = Users::new(&log.user);
        let users = users.map_err(|error| StartError::Config(ConfigError::User(error)))?;
        let sealer = log.tls.as_ref();
        let sealer = sealer.map(|section| Sealer::open(&section.of(self.node)));
        let sealer = sealer.transpose().map_err(StartError::Seal)?;
        Ok(Arc::new(Guests::new(users, sealer, self.config.clients())))
    }

    /// Compares the rings with those of the other processes that answer.
    fn compare(&self, source: &Source) -> Result<(), StartError> {
        let sorted = |rings: &[u16]| {
            let mut rings = rings.to_vec();
            rings.sort_unstable();
            rings
        };
        let own = sorted(&self.config.log.rings);
        let mut others = source.configurations().into_iter();
        match others.find(|(_, rings)| sorted(rings) != own) {
            Some((node, rings)) => Err(StartError::Differs(node, rings, own)),
            None => Ok(()),
        }
    }

    fn pulse(
        &self,
        (orders, ready): (Orders<LogMachine>, Arc<Ready<LogMachine>>),
        (server, is_full): (&Arc<Server>, Arc<AtomicBool>),
    ) -> Result<Pulse, StartError> {
        let draw = drawn()?;
        let looked = Looked {
            orders,
            ready,
            ring: Rank(self.config.log.rings.first().copied().unwrap_or(0)),
            givers: (drawn()?, drawn()?),
            view: server.view.clone(),
            store: Arc::clone(&server.store),
            source: Arc::clone(&server.source),
            directory: self.config.directory(self.node),
            free_bytes: self.config.free_bytes(),
            is_full,
            scrub: self.config.scrub_period().map(|period| Scrub {
                store: Arc::clone(&server.store),
                source: Arc::clone(&server.source),
                scrubbed: Arc::clone(&server.scrubbed),
                period,
                draw,
            }),
            waits: Duration::from_millis(u64::from(self.node.get() % 8) * 150),
        };
        Pulse::start(looked).map_err(system("a thread"))
    }

    fn server(
        &self,
        way: Way,
        (store, source, waiters): (Arc<Store<FileDir>>, Arc<Source>, Waiters),
        (view, unreadable): (View, Arc<AtomicU64>),
    ) -> Result<Server, StartError> {
        Ok(Server {
            view,
            unreadable,
            guests: self.guests()?,
            way,
            store,
            source,
            scrubbed: Arc::default(),
            waiters,
            lag: Lag::default(),
            others: self.config.log.process.len() - 1,
            batches: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            told: AtomicU64::new(0),
            told_bytes: AtomicU64::new(0),
        })
    }

    fn metrics(
        &self,
        server: &Arc<Server>,
        replica: &Arc<Replica<LogMachine>>,
    ) -> Result<Option<Local>, StartError> {
        let Some(port) = self.process.metrics_port else {
            return Ok(None);
        };
        let of = Of {
            server: Arc::clone(server),
            replica: Arc::clone(replica),
        };
        let tells = Box::new(move |text: &mut Text| of.tell(text));
        let metrics = metrics::open(self.at(self.process, port)?, "log", tells);
        metrics.map(Some).map_err(system("metrics"))
    }

    fn listeners(&self, server: Arc<Server>) -> Result<Option<Local>, StartError> {
        let Some(port) = self.process.redis_port else {
            return Ok(None);
        };
        let listener = bind(self.at(self.process, port)?);
        let listener = listener.map_err(system("where clients connect"))?;
        let local = Local::start("rota-log-redis", move || {
            run(&server);
            let watched = Arc::clone(&server);
            drop(spawn_local(async move { watched.lag.watch().await }));
            let guests = Arc::clone(&server.guests);
            let serve =
                move |stream, who, number| serve(Arc::clone(&server), (stream, who), number);
            listen(listener, move |listener| guests.accept(listener, serve));
        });
        local.map(Some).map_err(system("where clients connect"))
    }
}
