//! Where clients of Redis' protocol connect.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_net::Complaints;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use super::client::serve;
use super::gateway::Gateway;
use super::held::Held;
use super::local::{Local, bind, listen};
use super::lock;
use super::order::run;
use super::sealed::{Sealer, Stream};
use super::walks::Walks;
use crate::access::Users;
use crate::redis::{NodeView, View};

/// How often it is looked how the cluster is.
const LOOK: Duration = Duration::from_millis(50);
/// Slots that have moved less than so long ago are asked for anywhere.
const YOUNG: Duration = Duration::from_secs(2);
/// A client that says nothing for so long is asked whether it is there.
const IDLE: Duration = Duration::from_secs(60);
/// How long a listener waits that got an error.
const PAUSE: Duration = Duration::from_millis(20);

/// What all clients of a process have in common.
pub(super) struct Server {
    pub(super) gateway: Gateway,
    /// The cluster, as it is configured.
    pub(super) nodes: Vec<NodeView>,
    pub(super) cluster: u32,
    pub(super) me: u16,
    pub(super) users: Users,
    /// None: clients speak no TLS.
    pub(super) sealer: Option<Sealer>,
    pub(super) walks: Walks,
    /// What is kept for clients.
    pub(super) held: Held,
    /// The cluster as it was a moment ago.
    pub(super) seen: Mutex<Option<(Instant, Arc<View>)>>,
    pub(super) began: Instant,
    pub(super) most_clients: u64,
    pub(super) most_bytes: u64,
    pub(super) clients: AtomicU64,
    /// Connections so far: each has its number.
    pub(super) connections: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) protocol_errors: AtomicU64,
    /// Handshakes and passwords that were wrong, and clients that said nothing of themselves.
    pub(super) not_let_in: AtomicU64,
    pub(super) complaints: Mutex<Complaints>,
}

impl Server {
    /// A client is not let in, and why.
    pub(super) fn turn_away(&self, who: SocketAddr, what: &dyn Display) {
        self.not_let_in.fetch_add(1, SeqCst);
        self.complain("a client is not let in", &who, what);
    }

    fn complain(&self, reason: &'static str, who: &dyn Display, what: &dyn Display) {
        lock(&self.complaints).say(reason, who, what);
    }

    /// The cluster as it is now, or was less than a moment ago.
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

    fn look(&self) -> View {
        let node = |node: &NodeView| NodeView {
            is_up: NodeId::new(node.node).is_some_and(|node| self.gateway.is_open(node)),
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

/// Listens at each address, until what is returned is dropped; `true`: for clients that know a cluster.
pub(super) fn open(server: Arc<Server>, at: &[(SocketAddr, bool)]) -> io::Result<Local> {
    let bind = |(address, is_cluster): &(SocketAddr, bool)| Ok((bind(*address)?, *is_cluster));
    let listeners: io::Result<Vec<_>> = at.iter().map(bind).collect();
    let listeners = listeners?;
    Local::start("rota-kv-redis", move || {
        for (listener, is_cluster) in listeners {
            let server = Arc::clone(&server);
            listen(listener, move |listener| {
                accept(server, listener, is_cluster)
            });
        }
        for route in server.gateway.lanes.keys().copied() {
            drop(tokio::task::spawn_local(run(Arc::clone(&server), route)));
        }
    })
}

/// A client whose host is gone is gone, too.
fn keep_alive(stream: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(IDLE).with_interval(IDLE / 4);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes.with_retries(4));
}

async fn accept(server: Arc<Server>, listener: TcpListener, is_cluster: bool) {
    let server = Rc::new(server);
    loop {
        let (stream, who) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                server.complain("a client cannot be accepted", &"", &error);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if server.clients.load(SeqCst) >= server.most_clients {
            server.refused.fetch_add(1, SeqCst);
            // As Redis says it; whoever does not take it at once does not get it.
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
            continue;
        }
        let _ = stream.set_nodelay(true);
        keep_alive(&stream);
        server.clients.fetch_add(1, SeqCst);
        let of = Rc::clone(&server);
        drop(tokio::task::spawn_local(async move {
            let ended = match Stream::of(stream, of.sealer.as_ref()).await {
                Ok(stream) => serve(&of, (stream, who), is_cluster).await,
                Err(error) => {
                    of.turn_away(who, &error);
                    Err(error)
                }
            };
            of.clients.fetch_sub(1, SeqCst);
            if let Err(error) = ended {
                tracing::debug!(%error, "a client is gone");
            }
        }));
    }
}
