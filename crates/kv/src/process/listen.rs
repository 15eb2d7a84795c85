//! The listeners for clients of Redis' protocol.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, Process};
use rota_front::local::{bind, listen};
use rota_front::rings::Lookout;
use rota_front::{Guests, Local};
use rota_net::KeyRing;

use super::client::serve;
use super::gateway::Gateway;
use super::lock;
use super::order::run;
use super::outbox::Counts;
use super::recent::Recent;
use super::walks::Walks;
use crate::config::ProcessSection;
use crate::redis::{NodeView, View};

/// The time for which a view of the cluster is used.
const LOOK: Duration = Duration::from_millis(50);
/// The time after a move of slots for which any process takes commands for them.
const YOUNG: Duration = Duration::from_secs(2);

/// The state that all clients of a process share.
pub(super) struct Server {
    pub(super) gateway: Gateway,
    /// The processes of the cluster, as they are configured.
    pub(super) nodes: Vec<NodeView>,
    pub(super) cluster: u32,
    pub(super) me: u16,
    /// The replicas of all partitions, for whoever asks whether they are there.
    pub(super) lookout: Lookout,
    pub(super) guests: Arc<Guests>,
    pub(super) walks: Walks,
    pub(super) recent: Arc<Recent>,
    /// The last view of the cluster.
    pub(super) seen: Mutex<Option<(Instant, Arc<View>)>>,
    pub(super) most_bytes: u64,
    pub(super) batches: AtomicU64,
    pub(super) unknown: AtomicU64,
    /// The number of messages and batches that were ordered and could not be read.
    pub(super) unreadable: Arc<AtomicU64>,
    /// The counters of messages that wait for other processes.
    pub(super) counts: Arc<Counts>,
}

impl Server {
    /// The view of the cluster, which is at most [`LOOK`] old.
    pub(super) fn view(&self) -> Arc<View> {
        let mut seen = lock(&self.seen);
        match &*seen {
            Some((at, view)) if at.elapsed() < LOOK => Arc::clone(view),
            _ => {
                let view = Arc::new(self.look());
                *seen = Some((Instant::now(), Arc::clone(&view)));
                view
            }
        }
    }

    /// The view of the cluster as it is now.
    pub(super) fn look(&self) -> View {
        let node = |node: &NodeView| NodeView {
            is_up: NodeId::new(node.node).is_some_and(|node| self.gateway.peers.is_open(node)),
            ..node.clone()
        };
        View {
            cluster: self.cluster,
            me: self.me,
            map: self.gateway.maps.now(),
            young: self.gateway.maps.young(YOUNG),
            nodes: self.nodes.iter().map(node).collect(),
        }
    }
}

/// The replicas of these processes, where each waits for the others. `own`: the process that asks, and its keys.
pub(super) fn lookout<E>(
    processes: &[ProcessSection],
    (own, keys): ((Process, u32), Option<KeyRing>),
    at: impl Fn(&ProcessSection) -> Result<SocketAddr, E>,
) -> Result<Lookout, E> {
    let named = processes
        .iter()
        .filter_map(|process| Some((process, NodeId::new(process.node)?)));
    let replica =
        |(process, node): (&ProcessSection, _)| Ok((process.partition.into(), node, at(process)?));
    let replicas: Result<Vec<_>, E> = named.map(replica).collect();
    Ok(Lookout::new(own, keys, replicas?))
}

/// Listens at each address, until the returned value is dropped; `true`: for clients that know a cluster.
pub(super) fn open(server: Arc<Server>, at: &[(SocketAddr, bool)]) -> io::Result<Local> {
    let bind = |(address, is_cluster): &(SocketAddr, bool)| Ok((bind(*address)?, *is_cluster));
    let listeners: io::Result<Vec<_>> = at.iter().map(bind).collect();
    let listeners = listeners?;
    Local::start("rota-kv-redis", move || {
        for (listener, is_cluster) in listeners {
            let server = Arc::clone(&server);
            let guests = Arc::clone(&server.guests);
            let serve = move |stream, who, number| {
                serve(Arc::clone(&server), (stream, who), (number, is_cluster))
            };
            listen(listener, move |listener| guests.accept(listener, serve));
        }
        for route in server.gateway.lanes.keys().copied() {
            drop(tokio::task::spawn_local(run(Arc::clone(&server), route)));
        }
    })
}
