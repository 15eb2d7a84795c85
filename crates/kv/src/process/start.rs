//! The start and the end of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_front::access::Users;
use rota_front::metrics::{self, Text};
use rota_front::{Guests, Local, ReloadError, Sealer, Times};
use rota_multiring::Rank;
use rota_net::Landing;
use rota_replica::{Ready, Replica, ReplicaStatus};

use super::clock::Clock;
use super::desk::{AtDesk, Desk};
use super::door::{self, Room};
use super::error::StartError;
use super::gateway::{Gateway, Names, Route};
use super::link::{Link, Other};
use super::listen::{self, Server};
use super::maps::Maps;
use super::metrics::Of;
use super::moves::Carrier;
use super::outbox::Counts;
use super::peers::Peers;
use super::pulse::{Looked, Pulse};
use super::recent::Recent;
use super::walks::Walks;
use super::{Lane, lane};
use crate::config::{ConfigError, KvConfig, ProcessSection};
use crate::map::{Map, Partition};
use crate::redis::NodeView;
use crate::store::Store;

const USUAL_PATIENCE: u64 = 5_000;
const USUAL_MIB: u64 = 4_096;
const USUAL_CHANGES_BYTES: u64 = 16 << 20;

/// A running process. Dropping it stops it.
pub struct Kv {
    listeners: Option<Local>,
    door: Option<Landing>,
    pulse: Option<Pulse>,
    metrics: Option<Local>,
    replica: Arc<Replica<Store>>,
    guests: Arc<Guests>,
}

impl fmt::Debug for Kv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kv").finish_non_exhaustive()
    }
}

impl Kv {
    /// Starts the process of a node.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: &KvConfig, node: NodeId) -> Result<Self, StartError> {
        let config = &config.resolved(node);
        let process = config.process(node).ok_or(StartError::NoProcess(node))?;
        let partition = Partition(process.partition);
        let map = config.map().map_err(StartError::Config)?;
        let desk = Arc::new(Desk::new(partition, patience(config)));
        let unfounded = map.unfounded();
        let maps = Arc::new(Maps::new(unfounded.clone()));
        let most = config.kv.changes_bytes.unwrap_or(USUAL_CHANGES_BYTES);
        let recent = Arc::new(Recent::new(most));
        let witness = AtDesk(Arc::clone(&desk), Arc::clone(&maps), Arc::clone(&recent));
        let store = Store::new(partition, unfounded).with_witness(Box::new(witness));
        let (unreadable, of) = (store.unreadable(), config.replica(process, node));
        std::fs::create_dir_all(&of.checkpoints)
            .map_err(|error| StartError::System("its directory for states", error))?;
        let replica = Replica::start(&of, store).map_err(StartError::Replica)?;
        let has_other = |store: &Store| store.map().is_founded() && !store.map().has_begun_as(&map);
        if replica.read(has_other) == Some(true) {
            return Err(StartError::Slots);
        }
        let (replica, is_full) = (Arc::new(replica), Arc::new(AtomicBool::new(false)));
        let begins = Begins {
            config,
            process,
            node,
            desk,
            maps,
            recent,
            ready: Arc::new(Ready::new(replica.orders())),
            replica: Arc::clone(&replica),
            is_full: Arc::clone(&is_full),
            looks: lane(),
            counts: Arc::default(),
            clock: Arc::new(Clock::new(config.kv.process.len() > 1)),
            unreadable,
        };
        let (door, server) = (begins.door()?, begins.server()?);
        let looked = begins.looked(map, &server)?;
        let pulse = Pulse::start(looked).map_err(|error| StartError::System("a thread", error))?;
        let metrics = begins.metrics(&server)?;
        let guests = Arc::clone(&server.guests);
        let listeners = begins.listeners(server)?;
        Ok(Self {
            guests,
            listeners: Some(listeners),
            door: Some(door),
            pulse: Some(pulse),
            metrics,
            replica,
        })
    }

    /// Puts the users of a configuration into force, also for clients that are connected. `false`: they are the same.
    /// Nothing else of the configuration counts before the next start.
    ///
    /// # Errors
    /// [`ReloadError`]: then the users are those of before.
    pub fn reload(&self, config: &KvConfig) -> Result<bool, ReloadError> {
        self.guests.users.reload(&config.kv.user)
    }

    /// The reason why its replica has stopped, if it has.
    pub fn ended(&self) -> Option<String> {
        self.replica.ended()
    }

    /// The state of its replica.
    pub fn status(&self) -> ReplicaStatus {
        self.replica.status()
    }

    /// Stops the process. Commands without an answer may count or not.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Kv {
    fn drop(&mut self) {
        // Clients go first, and then the parts that they use.
        self.metrics = None;
        self.listeners = None;
        self.door = None;
        self.pulse = None;
    }
}

/// The parts that a start needs.
struct Begins<'a> {
    config: &'a KvConfig,
    process: &'a ProcessSection,
    node: NodeId,
    desk: Arc<Desk>,
    maps: Arc<Maps>,
    recent: Arc<Recent>,
    replica: Arc<Replica<Store>>,
    ready: Arc<Ready<Store>>,
    is_full: Arc<AtomicBool>,
    looks: Arc<Lane>,
    counts: Arc<Counts>,
    clock: Arc<Clock>,
    unreadable: Arc<AtomicU64>,
}

fn patience(config: &KvConfig) -> Duration {
    Duration::from_millis(config.kv.patience_ms.unwrap_or(USUAL_PATIENCE).max(1))
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

    fn keys(&self) -> Result<Option<rota_net::KeyRing>, StartError> {
        let keys = self.config.rings.common.keys();
        keys.map_err(|error| StartError::System("the cluster's key", io::Error::other(error)))
    }

    fn at(&self, process: &ProcessSection, port: u16) -> Result<SocketAddr, StartError> {
        let wrong = || StartError::Config(ConfigError::Node(process.node));
        let address = self.config.address(process.node).ok_or_else(wrong)?;
        Ok(SocketAddr::new(address, port))
    }

    fn others(&self) -> impl Iterator<Item = (&ProcessSection, NodeId)> {
        let all = self.config.kv.process.iter();
        let named = all.filter_map(|process| Some((process, NodeId::new(process.node)?)));
        named.filter(|(_, node)| *node != self.node)
    }

    fn ring(&self) -> Rank {
        let own = self.config.ring_of(Partition(self.process.partition));
        Rank(own.unwrap_or_default())
    }

    fn door(&self) -> Result<Landing, StartError> {
        let room = Room {
            own: self.own(),
            keys: self.keys()?,
            others: self.others().map(|(_, node)| node).collect::<BTreeSet<_>>(),
            orders: self.replica.orders(),
            ring: self.ring(),
            global: Rank(self.config.kv.global_ring),
            desk: Arc::clone(&self.desk),
            maps: Arc::clone(&self.maps),
            ready: Arc::clone(&self.ready),
            is_full: Arc::clone(&self.is_full),
            looks: Arc::clone(&self.looks),
            partition: Partition(self.process.partition),
            patience: patience(self.config),
            counts: Arc::clone(&self.counts),
        };
        let address = self.at(self.process, self.process.link_port)?;
        door::open(address, room)
            .map_err(|error| StartError::System("where other processes connect", error))
    }

    fn links(&self) -> Result<BTreeMap<NodeId, Link>, StartError> {
        let mut links = BTreeMap::new();
        for (process, node) in self.others() {
            let other = Other {
                node,
                partition: Partition(process.partition),
                address: self.at(process, process.link_port)?,
            };
            let (desk, maps) = (Arc::clone(&self.desk), Arc::clone(&self.maps));
            let clock = Arc::clone(&self.clock);
            let knows = (desk, maps, Arc::clone(&self.counts), clock);
            let link = Link::open(other, self.own(), self.keys()?, knows);
            links.insert(
                node,
                link.map_err(|error| StartError::System("a thread", error))?,
            );
        }
        Ok(links)
    }

    fn gateway(&self) -> Result<Gateway, StartError> {
        let own = Partition(self.process.partition);
        let mut others: BTreeMap<Partition, Vec<NodeId>> = BTreeMap::new();
        for (process, node) in self.others() {
            let partition = Partition(process.partition);
            others.entry(partition).or_default().push(node);
        }
        // Each process asks another one first.
        for nodes in others.values_mut() {
            let first = usize::from(self.node.get()) % nodes.len();
            nodes.rotate_left(first);
        }
        let of = |partition: &Partition| [Route::Other(*partition), Route::LookAt(*partition)];
        let routes = others.keys().flat_map(of);
        let routes = routes.chain([Route::Own, Route::All]);
        let lanes = routes.map(|route| (route, lane()));
        let looks = (Route::Look, Arc::clone(&self.looks));
        let here = (Arc::clone(&self.ready), Arc::clone(&self.is_full));
        Ok(Gateway {
            lanes: lanes.chain([looks]).collect(),
            own,
            ring: self.ring(),
            global: Rank(self.config.kv.global_ring),
            maps: Arc::clone(&self.maps),
            orders: self.replica.orders(),
            names: Names::new(drawn()?),
            desk: Arc::clone(&self.desk),
            peers: Peers::new(own, here, self.links()?, others),
            patience: patience(self.config),
            carrier: Carrier::default(),
            clock: Arc::clone(&self.clock),
            passes: tokio::sync::Mutex::default(),
            looked: Times::default(),
            ordered: Times::default(),
        })
    }

    fn server(&self) -> Result<Arc<Server>, StartError> {
        let kv = &self.config.kv;
        let node = |process: &ProcessSection| {
            let host = self.config.address(process.node)?;
            Some(NodeView {
                node: process.node,
                partition: Partition(process.partition),
                host: host.to_string(),
                port: process.cluster_port?,
                is_up: true,
            })
        };
        let most_mib = kv.partition_mib.unwrap_or(USUAL_MIB);
        let users = Users::new(&kv.user);
        let users = users.map_err(|error| StartError::Config(ConfigError::User(error)))?;
        Ok(Arc::new(Server {
            gateway: self.gateway()?,
            nodes: kv.process.iter().filter_map(node).collect(),
            cluster: self.config.rings.common.cluster,
            me: self.node.get(),
            lookout: listen::lookout(&kv.process, (self.own(), self.keys()?), |process| {
                self.at(process, process.link_port)
            })?,
            guests: Arc::new(Guests::new(users, self.sealer()?, kv.clients())),
            walks: Walks::new(drawn()?),
            recent: Arc::clone(&self.recent),
            seen: Mutex::default(),
            most_bytes: most_mib << 20,
            batches: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            unreadable: Arc::clone(&self.unreadable),
            counts: Arc::clone(&self.counts),
        }))
    }

    /// The things that are checked. `map`: the slots by the file.
    fn looked(&self, map: Map, server: &Server) -> Result<Looked, StartError> {
        Ok(Looked {
            orders: self.replica.orders(),
            ring: self.ring(),
            global: Rank(self.config.kv.global_ring),
            waits: Duration::from_millis(u64::from(self.node.get() % 8) * 250),
            giver: drawn()?,
            most_bytes: server.most_bytes,
            is_full: Arc::clone(&self.is_full),
            ready: Arc::clone(&self.ready),
            desk: Arc::clone(&self.desk),
            clock: Arc::clone(&self.clock),
            counts: Arc::clone(&self.counts),
            map,
        })
    }

    fn metrics(&self, server: &Arc<Server>) -> Result<Option<Local>, StartError> {
        let Some(port) = self.process.metrics_port else {
            return Ok(None);
        };
        let of = Of {
            server: Arc::clone(server),
            replica: Arc::clone(&self.replica),
        };
        let tells = Box::new(move |text: &mut Text| of.tell(text));
        let metrics = metrics::open(self.at(self.process, port)?, "kv", tells);
        let metrics = metrics.map_err(|error| StartError::System("metrics", error))?;
        Ok(Some(metrics))
    }

    fn sealer(&self) -> Result<Option<Sealer>, StartError> {
        let section = self.config.kv.tls.as_ref();
        let sealer = section.map(|section| Sealer::open(&section.of(self.node)));
        sealer.transpose().map_err(StartError::Seal)
    }

    fn listeners(&self, server: Arc<Server>) -> Result<Local, StartError> {
        let mut at = Vec::new();
        let ports = [
            (self.process.redis_port, false),
            (self.process.cluster_port, true),
        ];
        for (port, is_cluster) in ports {
            if let Some(port) = port {
                at.push((self.at(self.process, port)?, is_cluster));
            }
        }
        listen::open(server, &at)
            .map_err(|error| StartError::System("where clients connect", error))
    }
}
