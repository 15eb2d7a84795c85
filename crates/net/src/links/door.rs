//! Connections that others make to this node, until these have proved who they are.
//!
//! Anybody who can reach the port can connect. So a connection from an address that is no node's is closed at once; one
//! from a node's address has a short time for its proof, in messages of fixed sizes; and the number of such connections
//! is bounded, in all and from one address: the oldest goes when one more comes.

use rota_core::contract::{NodeId, Session, Time};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::handshake::{Accepting, Agreed, CONFIRM_BYTES, HELLO_BYTES, Own, Refusal};
use super::stream::{Gather, Stream};
use super::{Context, HANDSHAKE_NANOS, LISTENER, draw_nonce};
use crate::epoll::{Change, Epoll};
use crate::stats::NetStats;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// Connections accepted in one go: their messages are looked at before the next ones come.
const ACCEPTS: usize = SPARE_PER_ADDRESS;
/// The number of unknown connections from one address, beyond the number of nodes.
const SPARE_PER_ADDRESS: usize = 8;
/// The number of all unknown connections, beyond the number of nodes.
const SPARE: usize = 64;

/// The message that is awaited from a connection.
#[derive(Debug)]
enum Step {
    Hello(Gather<HELLO_BYTES>),
    Confirm(Box<Accepting>, Gather<CONFIRM_BYTES>),
}

/// A connection whose other end has proved nothing yet.
#[derive(Debug)]
struct Unknown {
    stream: Stream,
    ip: IpAddr,
    deadline: Time,
    step: Step,
}

/// The listener for other nodes, with the connections that are unknown yet.
#[derive(Debug)]
pub(super) struct PendingConnections {
    listener: Socket,
    /// A connection may wait to be accepted.
    ready: bool,
    /// The addresses that nodes may connect from; those of a node that may have moved are two.
    nodes: Vec<(NodeId, IpAddr)>,
    /// Oldest first.
    unknown: Vec<Unknown>,
}

impl PendingConnections {
    /// Listens at `address` for nodes at the addresses `nodes`.
    pub(super) fn open(
        address: SocketAddr,
        nodes: Vec<(NodeId, IpAddr)>,
        epoll: &Epoll,
    ) -> io::Result<Self> {
        let kind = (Domain::for_address(address), Type::STREAM);
        let listener = Socket::new(kind.0, kind.1, Some(Protocol::TCP))?;
        listener.set_nonblocking(true)?;
        // Connections of an earlier life of this node may linger at the port.
        listener.set_reuse_address(true)?;
        if address.is_ipv6() {
            listener.set_only_v6(true)?;
        }
        listener.bind(&SockAddr::from(address))?;
        listener.listen(BACKLOG)?;
        epoll.add(&listener, LISTENER)?;
        Ok(Self {
            listener,
            ready: true,
            nodes,
            unknown: Vec::new(),
        })
    }

    /// A node may connect from this address, too; from the one before it as well, and from no earlier one.
    pub(super) fn expect_at(&mut self, node: NodeId, ip: IpAddr) {
        if self.nodes.contains(&(node, ip)) {
            return;
        }
        let its = |(_, of): &(usize, &(NodeId, IpAddr))| of.0 == node;
        let its: Vec<usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(its)
            .map(|(at, _)| at)
            .collect();
        if let [oldest, _, ..] = its[..] {
            self.nodes.remove(oldest);
        }
        self.nodes.push((node, ip));
    }

    pub(super) const fn knock(&mut self) {
        self.ready = true;
    }

    /// Takes over what the kernel says of one of its connections.
    pub(super) fn know(&mut self, change: Change) {
        let mut unknown = self.unknown.iter_mut();
        if let Some(it) = unknown.find(|it| it.stream.name == change.name) {
            it.stream.know(change);
        }
    }

    /// Whether there is something to go on with.
    pub(super) fn is_ready(&self) -> bool {
        self.ready || self.unknown.iter().any(|it| it.stream.is_readable())
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.unknown.iter().map(|it| it.deadline).min()
    }

    /// Closes the connections that took too long.
    pub(super) fn expire(&mut self, now: Time, stats: &mut NetStats) {
        let before = self.unknown.len();
        self.unknown.retain(|it| it.deadline > now);
        stats.link_silent += (before - self.unknown.len()) as u64;
    }

    /// Accepts connections that wait; says whether there were any.
    pub(super) fn accept(
        &mut self,
        now: Time,
        epoll: &Epoll,
        next_name: &mut u64,
        stats: &mut NetStats,
    ) -> bool {
        if !self.ready {
            return false;
        }
        for _ in 0..ACCEPTS {
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    // Without descriptors or memory it is no use to go on; the kernel tells of those that wait when the
                    // next one comes.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::warn!(%error, "a connection to the port for links was not accepted");
                    }
                    self.ready = false;
                    return true;
                }
            };
            let ip = from.as_socket().map(|from| from.ip());
            let Some(ip) = ip.filter(|ip| self.nodes.iter().any(|(_, of)| of == ip)) else {
                stats.link_foreign += 1;
                continue;
            };
            *next_name += 1;
            let stream = Stream::accepted(socket, *next_name);
            let Ok(stream) = stream.and_then(|it| epoll.add(&it, it.name).map(|()| it)) else {
                continue;
            };
            self.make_room_for(ip, stats);
            self.unknown.push(Unknown {
                stream,
                ip,
                deadline: now.after(HANDSHAKE_NANOS),
                step: Step::Hello(Gather::new()),
            });
        }
        true
    }

    fn make_room_for(&mut self, ip: IpAddr, stats: &mut NetStats) {
        let nodes = self.nodes.len();
        let from_there = self.unknown.iter().filter(|it| it.ip == ip).count();
        let full = self.unknown.len() >= nodes + SPARE;
        let oldest = if from_there >= nodes + SPARE_PER_ADDRESS {
            self.unknown.iter().position(|it| it.ip == ip)
        } else {
            full.then_some(0)
        };
        if let Some(oldest) = oldest {
            self.unknown.remove(oldest);
            stats.link_crowded += 1;
        }
    }

    /// Goes on with all handshakes that can. Hands out the next one that has come to its end.
    pub(super) fn next(
        &mut self,
        own: Own,
        context: &mut Context<'_>,
        last: impl Fn(NodeId) -> Option<Session>,
    ) -> Option<(Agreed, Stream)> {
        let mut at = 0;
        while let Some(unknown) = self.unknown.get_mut(at) {
            if !unknown.stream.is_readable() {
                at += 1;
                continue;
            }
            match unknown.go_on(own, context, &last) {
                Ok(None) => at += 1,
                Ok(Some(agreed)) => return Some((agreed, self.unknown.remove(at).stream)),
                Err(why) => {
                    let from = self.unknown.remove(at).ip;
                    tracing::debug!(%from, ?why, "a connection is no link");
                    if let Failure::Refused(refusal) = why {
                        context.refuse(refusal);
                    }
                }
            }
        }
        None
    }
}

/// The failure of a connection.
#[derive(Debug)]
enum Failure {
    Refused(Refusal),
    /// The connection was closed, which needs no counter.
    Io(#[allow(dead_code, reason = "shown in the log")] io::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Unknown {
    /// Reads what has come of the awaited message; returns the session where the handshake is over.
    fn go_on(
        &mut self,
        own: Own,
        context: &Context<'_>,
        last: &impl Fn(NodeId) -> Option<Session>,
    ) -> Result<Option<Agreed>, Failure> {
        if let Step::Hello(hello) = &mut self.step {
            let Some(hello) = hello.read(&mut self.stream)? else {
                return Ok(None);
            };
            let nonce = draw_nonce()?;
            let (accepting, welcome) = Accepting::begin(own, hello, context.keys, nonce, last)?;
            self.stream.write_whole(&welcome)?;
            self.step = Step::Confirm(Box::new(accepting), Gather::new());
        }
        let Step::Confirm(accepting, confirm) = &mut self.step else {
            return Ok(None);
        };
        let Some(confirm) = confirm.read(&mut self.stream)? else {
            return Ok(None);
        };
        let last = last(accepting.peer());
        Ok(Some(accepting.confirmed(confirm, last)?))
    }
}
