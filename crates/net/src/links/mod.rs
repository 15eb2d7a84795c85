//! Reliable links to the other nodes: TCP, in the ring's own thread.
//!
//! Two nodes have at most one session at a time. The one with the smaller number connects, the other listens at the
//! TCP port with the number of its token port; so no two connections can meet half way. A session begins with a
//! handshake in which both prove that they have the cluster's key and speak now; from then on messages travel in
//! sealed records. Anything wrong ends the session: it is never mended, a new one begins.
//!
//! Links do not say which nodes are alive. A link that is down says that bytes do not pass; the membership decides what
//! that means, and hears nothing from here. `docs/protocols/links.md` has the bytes and the promises.

mod cipher;
mod dial;
mod door;
mod handshake;
mod landing;
mod peer;
mod record;
mod session;
mod stream;
mod talk;
#[cfg(test)]
mod tests;

use rota_core::contract::{Channel, Input, NodeId, Pieces, Process, Session, Time};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::time::Duration;

use crate::epoll::Epoll;
use crate::network::{Network, NodeAddress};
use crate::{keys::KeyRing, pool::Pool, stats::NetStats, sys};
use door::PendingConnections;
use handshake::{NONCE_BYTES, Own, Refusal};
pub use landing::Landing;
use peer::Peer;
use record::Found;
use session::Ending;
pub use talk::{Hearing, RpcConnection, Saying};

/// The limit, in bytes, of what waits for a link in this process; the kernel holds more.
pub const QUEUE_BYTES: usize = 1 << 20;

/// The largest message: a link with nothing to do always has room for one.
pub const MESSAGE_BYTES: usize = QUEUE_BYTES / 2;

/// The time in which a connection has to become a session.
const HANDSHAKE_NANOS: u64 = 2_000_000_000;

/// The listener's name among the connections.
const LISTENER: u64 = 0;

/// The parts of a node that the steps of links need.
pub struct Context<'a> {
    /// The time of this call.
    pub now: Time,
    /// The keys of the cluster, as of now.
    pub keys: Option<&'a KeyRing>,
    /// The counters of what happens.
    pub stats: &'a mut NetStats,
}

impl Context<'_> {
    fn refuse(&mut self, why: Refusal) {
        let counter = match why {
            Refusal::Foreign | Refusal::Stranger | Refusal::Stale => &mut self.stats.link_refused,
            Refusal::Version => &mut self.stats.link_other_version,
            Refusal::UnknownKey => &mut self.stats.link_unknown_key,
            Refusal::Forged => &mut self.stats.link_forged,
        };
        *counter += 1;
    }
}

/// All links of a node.
#[derive(Debug)]
pub struct Links {
    own: Own,
    address: SocketAddr,
    /// The time without a sign of life after which a link is down: longer than the membership takes to notice.
    patience: Duration,
    epoll: Epoll,
    next_name: u64,
    /// `None` where no node connects to this one.
    door: Option<PendingConnections>,
    /// By ascending number.
    peers: Vec<Peer>,
    /// The place of the peer that was read last.
    turn: usize,
    pool: Pool,
    found: Vec<Found>,
    events: VecDeque<Input>,
    /// Something may be ready to leave.
    dirty: bool,
}

impl Links {
    /// Opens the port for links of process `me`, and connects to nobody yet.
    pub fn open(network: &Network, me: Process, now: Time) -> io::Result<Self> {
        let address = network.node(me.node).map(NodeAddress::link);
        let address = address.ok_or_else(|| io::Error::other("the node is not listed"))?;
        let epoll = Epoll::new()?;
        let mut peers = Vec::new();
        for node in &network.nodes {
            let id = NodeId::new(node.id).filter(|id| *id != me.node);
            peers.extend(id.map(|id| Peer::new(id, node.link(), me.node, now)));
        }
        peers.sort_unstable_by_key(|peer| peer.node);
        let dialers = peers.iter().filter(|peer| !peer.is_dialed());
        let dialers: Vec<_> = dialers.map(|peer| (peer.node, peer.address.ip())).collect();
        let door =
            (!dialers.is_empty()).then(|| PendingConnections::open(address, dialers, &epoll));
        let timers = &network.timers;
        Ok(Self {
            own: Own {
                me,
                cluster: network.cluster,
                magic: handshake::LINKS,
            },
            address,
            patience: Duration::from_nanos(2 * (timers.token_loss + timers.consensus))
                .max(Duration::from_secs(2)),
            epoll,
            next_name: LISTENER,
            door: door.transpose()?,
            peers,
            turn: 0,
            pool: Pool::default(),
            found: Vec::new(),
            events: VecDeque::new(),
            dirty: false,
        })
    }

    /// The name of a node has another address than before: the node may be there now. Links go by who proves to be it.
    pub fn may_be_at(&mut self, node: NodeId, ip: IpAddr) {
        if let Some(at) = self.place_of(node) {
            self.peers[at].may_be_at(ip);
            if let Some(door) = &mut self.door {
                door.expect_at(node, ip);
            }
        }
    }

    /// Readable while there is something to do.
    pub fn raw(&self) -> RawFd {
        self.epoll.raw()
    }

    /// The next event for the engine.
    pub fn next_event(&mut self) -> Option<Input> {
        self.events.pop_front()
    }

    /// Whether there are events for the engine.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the next event for the engine is a message.
    pub fn goes_on(&self) -> bool {
        matches!(self.events.front(), Some(Input::LinkMessage { .. }))
    }

    /// The time at which there is something to do even if nothing comes.
    pub fn next_due(&self) -> Option<Time> {
        let peers = self.peers.iter().filter_map(Peer::next_due);
        let door = self.door.as_ref().and_then(PendingConnections::next_due);
        peers.chain(door).min()
    }

    /// Asks the kernel what has changed; says whether there is something to do.
    pub fn look(&mut self, now: Time) -> io::Result<bool> {
        let Self {
            epoll, door, peers, ..
        } = self;
        let dirty = &mut self.dirty;
        epoll.changes(|change| match change.name {
            LISTENER => door.iter_mut().for_each(PendingConnections::knock),
            name => {
                *dirty |= change.writable;
                let stream = peers.iter_mut().find_map(|peer| peer.stream(name));
                match stream {
                    Some(stream) => stream.know(change),
                    None => door.iter_mut().for_each(|door| door.know(change)),
                }
            }
        })?;
        let due = self.next_due().is_some_and(|due| due <= now);
        let ready = || self.door.as_ref().is_some_and(PendingConnections::is_ready);
        // The kernel says only once that there is room: the caller has to have it used.
        Ok(due || self.dirty || ready() || self.peers.iter().any(Peer::is_ready))
    }

    /// Does what is ready, and of reading one stretch; events for the engine wait to be taken. Says whether there was
    /// anything to do.
    pub fn work(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        if !self.look(context.now)? {
            return Ok(false);
        }
        self.let_in(context);
        for at in 0..self.peers.len() {
            self.dial(at, context);
        }
        self.read_next(context);
        Ok(true)
    }

    /// Takes a message for a session. A message for a session that has ended is dropped.
    pub fn send(
        &mut self,
        (peer, session): (NodeId, Session),
        (channel, bytes): (Channel, Pieces),
        stats: &mut NetStats,
    ) {
        let live = self.live(peer).filter(|live| live.number == session);
        let Some(live) = live else { return };
        live.send(channel, bytes);
        self.dirty = true;
        stats.link_messages_out += 1;
    }

    /// Hands to the kernel what it takes, and notes where there is room again.
    pub fn flush(&mut self, now: impl Fn() -> Time, stats: &mut NetStats) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        for at in 0..self.peers.len() {
            let Some(live) = self.peers[at].live() else {
                continue;
            };
            match live.flush(stats) {
                Ok(()) => self.tell_room(at),
                Err(ending) => self.end(at, &ending, now(), stats),
            }
        }
    }

    /// Breaks the link to a node and lets none begin, as a fault; or lets it begin again.
    pub fn cut(&mut self, node: NodeId, is_cut: bool, now: Time, stats: &mut NetStats) {
        let Some(at) = self.place_of(node) else {
            return;
        };
        self.peers[at].cut(is_cut, now);
        if is_cut && self.peers[at].live().is_some() {
            self.end(at, &Ending::Cut, now, stats);
        }
    }

    fn place_of(&self, node: NodeId) -> Option<usize> {
        self.peers.binary_search_by_key(&node, |p| p.node).ok()
    }

    fn live(&mut self, node: NodeId) -> Option<&mut session::Live> {
        let at = self.place_of(node)?;
        self.peers[at].live()
    }

    /// Goes on with the connections that others have made.
    fn let_in(&mut self, context: &mut Context<'_>) {
        let Self {
            door: Some(door),
            peers,
            own,
            ..
        } = self
        else {
            return;
        };
        door.expire(context.now, context.stats);
        let last = |node: NodeId| {
            let at = peers.binary_search_by_key(&node, |peer| peer.node).ok()?;
            peers[at].may_dial_here()
        };
        let mut begun = Vec::new();
        while let Some(agreed) = door.next(*own, context, last) {
            begun.push(agreed);
        }
        door.accept(context.now, &self.epoll, &mut self.next_name, context.stats);
        for (agreed, stream) in begun {
            if let Some(at) = self.place_of(agreed.peer.node) {
                self.begin(at, agreed, stream, context);
            }
        }
    }

    /// Goes on with the connection to a node.
    fn dial(&mut self, at: usize, context: &mut Context<'_>) {
        let peer = &mut self.peers[at];
        let from = self.address.ip();
        match peer.dial((self.own, from), &self.epoll, &mut self.next_name, context) {
            Ok(None) => {}
            Ok(Some((agreed, stream))) => self.begin(at, agreed, stream, context),
            Err(dial::Failure::Refused(refusal)) => context.refuse(refusal),
            Err(dial::Failure::Io(error)) => {
                let node = self.peers[at].node.get();
                tracing::trace!(node, %error, "no link yet");
            }
        }
    }

    /// A session begins.
    fn begin(
        &mut self,
        at: usize,
        agreed: handshake::Agreed,
        stream: stream::Stream,
        context: &mut Context<'_>,
    ) {
        if self.peers[at].live().is_some() {
            self.end(at, &Ending::Replaced, context.now, context.stats);
        }
        if let Err(error) = stream.tune(self.patience) {
            tracing::warn!(%error, "a link's socket cannot be tuned");
        }
        let (peer, session) = (agreed.peer, agreed.session);
        let node = peer.node.get();
        tracing::info!(node, session = session.0, "the link is up");
        context.stats.link_sessions += 1;
        self.peers[at].begin(session::Live::new(agreed, stream, context.now));
        self.events.push_back(Input::LinkUp { peer, session });
        self.tell_room(at);
    }

    fn end(&mut self, at: usize, ending: &Ending, now: Time, stats: &mut NetStats) {
        let Some(live) = self.peers[at].end(now) else {
            return;
        };
        let (peer, session) = (live.peer.node, live.number);
        stats.link_ends += 1;
        if let Ending::Broken(_) = ending {
            stats.link_forged += 1;
        }
        if ending.is_plain() {
            tracing::info!(node = peer.get(), session = session.0, %ending, "the link is down");
        } else {
            tracing::warn!(node = peer.get(), session = session.0, %ending, "the link is down");
        }
        self.events.push_back(Input::LinkDown { peer, session });
    }

    fn tell_room(&mut self, at: usize) {
        let Some(live) = self.peers[at].live() else {
            return;
        };
        if let Some(bytes) = live.room_to_tell() {
            let (peer, session) = (live.peer.node, live.number);
            self.events.push_back(Input::Writable {
                peer,
                session,
                bytes,
            });
        }
    }

    /// Reads once from the next link that has something.
    fn read_next(&mut self, context: &mut Context<'_>) {
        for _ in 0..self.peers.len() {
            self.turn = (self.turn + 1) % self.peers.len();
            let at = self.turn;
            let Some(live) = self.peers[at].live() else {
                continue;
            };
            let (pool, found) = (&mut self.pool, &mut self.found);
            match live.read(pool, found, &mut self.events, context.stats) {
                Ok(false) => {}
                Ok(true) => return,
                Err(ending) => {
                    self.found.clear();
                    self.end(at, &ending, context.now, context.stats);
                    return;
                }
            }
        }
    }
}

/// Random bytes for one handshake.
fn draw_nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    for word in nonce.as_chunks_mut::<8>().0 {
        *word = sys::random_u64()?.to_ne_bytes();
    }
    Ok(nonce)
}
