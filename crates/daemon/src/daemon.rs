//! The start and the stop of a daemon.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rota_core::contract::{Checked, NodeId, Time};
use rota_net::{
    Keys, SocketError, Sockets, ask_for_short_slices, monotonic, new_process, random_u64,
    set_realtime,
};
use rota_node::{
    App, ConfigError, Driver, DriverError, MemberFileError, NodeConfig, NodeEngine, path_of,
};

use crate::access::Access;
use crate::app::ClientsApp;
use crate::config::{Allow, DaemonConfig, DaemonConfigError};
use crate::control::{Control, Phase, Wanted};
use crate::descriptors;
use crate::door::{Door, Port};
use crate::http::Exporter;
use crate::hub::Hub;
use crate::members::{self, Secretary};
use crate::seats::ConnectionLimits;
use crate::spread::{Settings, SettingsError};
use crate::status::DaemonStatus;
use crate::teller::Teller;
use crate::tls::{Certificates, Terms, TlsConfig, TlsError};
use crate::trace::ClientTrace;

/// Why a daemon does not start.
#[derive(Debug)]
pub enum OpenError {
    /// The configuration of the node is wrong.
    Config(ConfigError),
    /// The list of nodes that is kept on disk cannot be used.
    Members(MemberFileError),
    /// The section `[daemon]` is wrong.
    Daemon(DaemonConfigError),
    /// The ring's sockets cannot be opened.
    Socket(SocketError),
    /// The ring cannot run.
    Driver(DriverError),
    /// Clients cannot connect at this path.
    Unix(PathBuf, io::Error),
    /// Clients cannot connect at this address.
    Tcp(SocketAddr, io::Error),
    /// The certificates for TLS.
    Tls(TlsError),
    /// Metrics cannot be served at this address.
    Metrics(SocketAddr, io::Error),
    /// The system refuses a real-time priority.
    Realtime(u8, io::Error),
    /// Spread's clients cannot be told the daemon's name.
    Spread(SettingsError),
    /// No descriptors, or no random numbers.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Members(error) => error.fmt(f),
            Self::Daemon(error) => error.fmt(f),
            Self::Socket(error) => error.fmt(f),
            Self::Driver(error) => error.fmt(f),
            Self::Unix(path, error) if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{}: another daemon listens there", path.display())
            }
            Self::Unix(path, error) => write!(f, "cannot listen at {}: {error}", path.display()),
            Self::Tcp(address, error) => write!(f, "cannot listen at {address}: {error}"),
            Self::Tls(error) => error.fmt(f),
            Self::Metrics(address, error) => {
                write!(f, "cannot serve metrics at {address}: {error}")
            }
            Self::Realtime(priority, error) => write!(
                f,
                "[daemon]: realtime = {priority} was refused ({error}): it takes CAP_SYS_NICE, or a limit on \
                 real-time priorities of at least that (ulimit -r, LimitRTPRIO=); or take the setting out"
            ),
            Self::Spread(error) => error.fmt(f),
            Self::System(error) => write!(f, "the system does not let a daemon run: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// The number of lines of the log that are lost.
struct LogLost(Option<Box<dyn Fn() -> u64 + Send>>);

impl fmt::Debug for LogLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogLost")
            .field(&self.0.as_ref().map(|count| count()))
            .finish()
    }
}

/// A daemon: a node of the ring, and its clients.
#[derive(Debug)]
pub struct Daemon {
    driver: Driver<Checked<NodeEngine>>,
    app: ClientsApp,
    control: Control,
    _exporter: Option<Exporter>,
    _teller: Option<Teller>,
    secretary: Secretary,
    nodes: Vec<u16>,
    started: Time,
    log_lost: LogLost,
}

impl Daemon {
    /// Starts as node `me`: opens all sockets. It runs until `stop` is set and it
    /// is woken ([`Control::wake`]). A real-time priority is given to
    /// the thread that calls this, which is to be the one that runs it.
    ///
    /// # Errors
    /// [`OpenError`]; then nothing is open.
    pub fn open(
        config: &NodeConfig,
        daemon: DaemonConfig,
        me: NodeId,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, OpenError> {
        let (found, listed) = members::find(config, me).map_err(OpenError::Members)?;
        let config = &listed.resolved(me);
        config.check_for(me).map_err(OpenError::Config)?;
        daemon.check().map_err(OpenError::Daemon)?;
        daemon.check_ring(config).map_err(OpenError::Daemon)?;
        daemon.check_paths(me).map_err(OpenError::Daemon)?;
        let certificates = daemon.tls.as_ref().map(|tls| Certificates::open(tls, me));
        let certificates = certificates.transpose().map_err(OpenError::Tls)?;
        if let Some(Err(error)) = certificates.as_ref().map(Certificates::check_lists) {
            tracing::error!(%error, "no client is let in by TLS");
        }
        if let Some(priority) = daemon.realtime {
            set_realtime(priority).map_err(|error| OpenError::Realtime(priority, error))?;
        }
        ask_for_short_slices();
        descriptors::ask_for_all(daemon.clients);
        let directory = config.directory().map_err(OpenError::Config)?;
        let spread = Settings::new(directory.daemon(me).as_bytes()).map_err(OpenError::Spread)?;
        let sockets = Sockets::open(&config.network(), me).map_err(OpenError::Socket)?;
        let engine = NodeEngine::for_groups(config, me).map_err(OpenError::Config)?;
        let process = new_process(me).map_err(OpenError::System)?;
        let seed = random_u64().map_err(OpenError::System)?;
        let access = daemon.look_up_access().map_err(OpenError::Daemon)?;
        let access = Arc::new(access);
        let door = open_door(&daemon, &access, (me, certificates))?;
        let control = Control::new(door.waker(), Arc::clone(&access));
        let admin = path_of(&daemon.admin, me);
        let secretary = Secretary::start(&listed, process, found, (admin, &control));
        let (secretary, members) = secretary.map_err(OpenError::System)?;
        let names = (directory, Arc::new(spread));
        let mut hub = Hub::new(door, process, &daemon, access, names);
        let exporter = serve_metrics(&daemon, me, &control)?;
        let teller = daemon.cluster_status.then(|| {
            let socket = path_of(&daemon.socket, me);
            Teller::start(socket, control.clone()).map_err(OpenError::System)
        });
        let engine = Checked::new(engine);
        let driver = Driver::with_process(engine, sockets, process, seed, config);
        let driver = driver.map_err(OpenError::Driver)?;
        if let Some(file) = driver.trace_file() {
            hub.trace_to(ClientTrace::new(file, process));
        }
        Ok(Self {
            driver,
            app: ClientsApp::new(hub, members, stop, control.clone()),
            control,
            _exporter: exporter,
            _teller: teller.transpose()?,
            secretary,
            nodes: config.members().into_iter().map(NodeId::get).collect(),
            started: monotonic(),
            log_lost: LogLost(None),
        })
    }

    /// The handle to give this daemon's node other keys while it runs; `None` if its datagrams are not sealed.
    pub fn keys(&self) -> Option<Keys> {
        self.driver.keys()
    }

    /// Registers the number of lost lines of the log, which the writer of the log counts, among the counters of this
    /// daemon.
    pub fn count_lost_lines(&mut self, count: impl Fn() -> u64 + Send + 'static) {
        self.log_lost = LogLost(Some(Box::new(count)));
    }

    fn turn_until_stopped(&mut self, stopping: impl FnOnce()) -> Result<(), DriverError> {
        self.control.enter(Phase::Running);
        while !self.app.stop() {
            let wait = self.secretary.patience(&self.app.members);
            self.driver.turn(&mut self.app, wait)?;
            self.look_at_members()?;
            if let Some(wanted) = self.control.take_wanted() {
                self.tend(wanted);
            }
            if self.app.hub.is_asked() {
                let status = self.status();
                // Strings and numbers are always JSON.
                let line = serde_json::to_string(&status).unwrap_or_default();
                self.app.hub.answer(&line);
            }
        }
        self.control.enter(Phase::Stopping);
        stopping();
        self.driver.leave()
    }

    /// The handle by which other threads ask this daemon while it runs.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Takes over what has become of the list of nodes.
    fn look_at_members(&mut self) -> Result<(), DriverError> {
        let (secretary, members) = (&mut self.secretary, &mut self.app.members);
        if let Some(directory) = secretary.turn(&mut self.driver, members, monotonic())? {
            let nodes = members.list().nodes.iter();
            self.nodes = nodes.map(|node| node.id).collect();
            self.app.hub.rename(directory);
        }
        Ok(())
    }

    fn tend(&mut self, wanted: Wanted) {
        if wanted.members() {
            let members = &mut self.app.members;
            while let Some(asking) = self.control.next_about_members() {
                if let Some(asking) = self.secretary.take(asking) {
                    members.ask(asking.request, asking.answer, asking.until);
                }
            }
            self.secretary.look_at_disk(members);
        }
        if let Some(settings) = self.control.take_settings() {
            self.app.hub.reconfigure(settings, monotonic());
            self.control.set_access(Arc::clone(self.app.hub.access()));
        }
        let status = wanted.status().then(|| self.status());
        self.control.answer(wanted, status);
    }

    fn status(&mut self) -> DaemonStatus {
        let mut status = self.app.hub.status(self.driver.status());
        let times = self.driver.token_times();
        status.token.held = (&times.held).into();
        status.token.waited_us = times.waited_nanos / 1000;
        status.token.clients_us = times.application_nanos / 1000;
        status.token.blocked_us = times.blocked_nanos / 1000;
        status.latency = (&self.app.latency).into();
        status.keys = self.driver.keys().map(|keys| keys.in_use());
        status.nodes.clone_from(&self.nodes);
        status.uptime_us = monotonic().since(self.started) / 1000;
        status.reload = self.control.last_reload();
        if let LogLost(Some(count)) = &self.log_lost {
            status.counters.insert("log_lines_lost".into(), count());
        }
        let reloads = status.reload.as_ref().map_or(0, |reload| reload.count);
        let members = &self.app.members;
        let counted = [
            ("members_list", members.list().version.number),
            ("members_malformed", members.malformed()),
            ("members_unkept", u64::from(members.is_unkept())),
            ("reloads", reloads),
            ("reloads_failed", self.control.failed_reloads()),
        ];
        let counted = counted.map(|(name, count)| (name.into(), count));
        status.counters.extend(counted);
        let refused = status.counters.entry("admins_not_allowed".into());
        *refused.or_default() += self.control.refused();
        status
    }

    /// Serves clients until it is stopped. Then it leaves the ring: the others need not wait for it.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn run(&mut self) -> Result<(), DriverError> {
        self.run_and_say(|| ())
    }

    /// The same, and calls `stopping` when it is about to leave the ring.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn run_and_say(&mut self, stopping: impl FnOnce()) -> Result<(), DriverError> {
        let ran = self.turn_until_stopped(stopping);
        self.control.enter(Phase::Stopping);
        self.app.hub.close();
        ran?;
        match self.app.failed.take() {
            Some(error) => Err(DriverError::System(error)),
            None => Ok(()),
        }
    }
}

fn serve_metrics(
    daemon: &DaemonConfig,
    me: NodeId,
    control: &Control,
) -> Result<Option<Exporter>, OpenError> {
    let Some(address) = daemon.metrics else {
        return Ok(None);
    };
    let telling = daemon.cluster_status.then(|| path_of(&daemon.socket, me));
    let hosts = daemon.metrics_hosts.clone();
    let started = Exporter::start(address, hosts, telling, control.clone());
    started
        .map(Some)
        .map_err(|error| OpenError::Metrics(address, error))
}

/// All listeners for clients, of node `me`.
fn open_door(
    daemon: &DaemonConfig,
    access: &Access,
    (me, certificates): (NodeId, Option<Certificates>),
) -> Result<Door, OpenError> {
    let limits = ConnectionLimits::new(daemon.per_address, daemon.per_user);
    let mut door = Door::new(limits).map_err(OpenError::System)?;
    listen(&mut door, daemon, access, me)?;
    if let (Some(tls), Some(certificates)) = (&daemon.tls, certificates) {
        listen_tls(&mut door, daemon, tls, certificates)?;
    }
    Ok(door)
}

fn listen(
    door: &mut Door,
    daemon: &DaemonConfig,
    access: &Access,
    me: NodeId,
) -> Result<(), OpenError> {
    let mut unix = |port, path: &Path| {
        let path = path_of(path, me);
        let listening = door.listen_unix(port, &path, access);
        listening.map_err(|error| OpenError::Unix(path, error))
    };
    unix(Port::Native, &daemon.socket)?;
    unix(Port::Admin, &daemon.admin)?;
    let spread = daemon.spread.clone().unwrap_or_default();
    if let Some(path) = &spread.socket {
        unix(Port::Spread, path)?;
    }
    let mut tcp = |port, address, all: &[SocketAddr], allow: &Allow| {
        let listening = door.listen_tcp(port, (address, all), allow);
        listening.map_err(|error| OpenError::Tcp(address, error))
    };
    for &address in &daemon.tcp {
        tcp(Port::Native, address, &daemon.tcp, &Allow::default())?;
    }
    for &address in &spread.tcp {
        tcp(Port::Spread, address, &spread.tcp, &spread.allow)?;
    }
    Ok(())
}

fn listen_tls(
    door: &mut Door,
    daemon: &DaemonConfig,
    tls: &TlsConfig,
    certificates: Certificates,
) -> Result<(), OpenError> {
    door.listen_tls(&tls.listen, Terms::new(daemon, certificates))
        .map_err(|(address, error)| match address {
            Some(address) => OpenError::Tcp(address, error),
            None => OpenError::System(error),
        })
}
