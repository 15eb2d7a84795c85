//! A node's sockets and the addresses of its peers.
//!
//! Each class of datagrams has a socket, so that the engine can choose what to read next. With
//! multicast there is a third: data leaves from the node's own port, which names the sender even
//! where several nodes share a host, while the group's port is shared by all receivers.

mod check;
mod error;
mod listed;
mod multicast;
mod notices;
mod path;
mod peers;
mod ports;
mod protection;
mod quotes;
mod refusals;
mod refused;
mod tend;
mod wait;

pub use error::SocketError;
pub use notices::{MOST_NOTICE_BYTES, NOTICE, NOTICE_HEADER_BYTES};
pub use path::PathMtu;
pub use wait::{PollSet, Ready, Wait};

use bytes::Bytes;
use rota_core::contract::{Burst, Class, NodeId, Target, Time};
use socket2::SockAddr;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::links::Context;
use crate::network::{Network, Transport};
use crate::seal::Keys;
use crate::socket::{Port, Progress, RawBurst};
use crate::stats::NetStats;
use crate::sys;
use notices::Notices;
use peers::Peers;
use ports::Ports;
use protection::Seal;
pub(crate) use quotes::COMPARED;
use refusals::Refusals;
use refused::{REFUSALS_AT_ONCE, Refused};
use tend::Upkeep;

/// Datagrams that arrived together, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The datagrams, one after the other.
    pub bytes: Bytes,
    /// Size of each but the last, in bytes.
    pub segment: usize,
}

/// A burst on its way out, sealed, with its progress.
#[derive(Debug)]
pub struct Outgoing {
    class: Class,
    to: Target,
    burst: Burst,
    /// The peer that is next, where each gets a copy of its own.
    peer: usize,
    /// Bytes that have left to that peer.
    at: usize,
}

impl Outgoing {
    /// The socket of the receivers that the burst goes to.
    pub const fn class(&self) -> Class {
        self.class
    }
}

/// Bursts that are dropped in one go: more than a receive buffer holds.
const FORGOTTEN_AT_ONCE: usize = 1 << 16;

/// A node's sockets.
pub struct Sockets {
    ports: Ports,
    group: Option<SockAddr>,
    peers: Peers,
    notices: Notices,
    own_data: SocketAddr,
    seal: Seal,
    stats: NetStats,
    refused: Refused,
    refusals: Refusals,
    /// The time that the burst read last had waited for that, in nanoseconds.
    waited: u64,
    upkeep: Upkeep,
}

impl Sockets {
    /// Opens the sockets of node `me`.
    ///
    /// # Errors
    /// [`SocketError`]: an address in use is the usual one.
    pub fn open(network: &Network, me: NodeId) -> Result<Self, SocketError> {
        let own = network.node(me).ok_or(SocketError::UnknownNode(me))?;
        if let Some(host) = own.host.as_ref().filter(|_| !own.is_known()) {
            return Err(SocketError::NoAddress(host.clone()));
        }
        let seal = Seal::new(network, me)?;
        let tuning = network.tuning;
        let bind = |address, shared| {
            Port::open(address, shared, tuning)
                .map_err(|error| SocketError::Bind { address, error })
        };
        let token = bind(own.token(), false)?;
        let own_port = bind(own.data(), false)?;
        let v6 = own.address.is_ipv6();
        let quiet = token
            .report_errors(v6)
            .and_then(|()| own_port.report_errors(v6));
        if let Err(error) = quiet {
            tracing::warn!(%error, "peers that are down will be noticed later");
        }
        if let Err(error) = token.stamp_arrivals() {
            tracing::warn!(%error, "how long tokens wait to be read will not be known");
        }
        let (data, sender, group, joined) = match network.transport {
            Transport::Unicast => (own_port, None, None, None),
            Transport::Multicast(group) => {
                let (group, index) = multicast::scoped(group, network)?;
                let data = bind(group, true)?;
                let joined = multicast::join(&data, &own_port, group, own, network, index)?;
                (
                    data,
                    Some(own_port),
                    Some(SockAddr::from(group)),
                    Some(joined),
                )
            }
        };
        let filtered = joined.as_ref().is_some_and(multicast::Joined::is_filtered);
        Ok(Self {
            ports: Ports::new(data, token, sender, filtered),
            group,
            peers: Peers::new(network, me),
            notices: Notices::default(),
            own_data: own.data(),
            seal,
            stats: NetStats::default(),
            refused: Refused::new(),
            refusals: Refusals::default(),
            waited: 0,
            upkeep: Upkeep::new(joined),
        })
    }

    /// Joins the multicast group again where the interface was made anew, follows a clock that was set forward, and the
    /// addresses of names. May be called at any time, and does nothing most of the time.
    #[inline]
    pub fn tend(&mut self, now: Time) {
        if self.upkeep.is_due(now) {
            self.upkeep.look(now, &self.ports, &mut self.seal);
            self.peers.follow_names();
        }
    }

    /// The counters so far.
    pub const fn stats(&self) -> &NetStats {
        &self.stats
    }

    /// The counters, to add to.
    pub const fn stats_mut(&mut self) -> &mut NetStats {
        &mut self.stats
    }

    /// The data socket's receive buffer, in bytes: less than asked for where the system's limit is
    /// lower.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        self.ports.receive_buffer_bytes()
    }

    /// The handle for giving this node other keys; `None` if it has none.
    pub fn keys(&self) -> Option<Keys> {
        self.seal.keys()
    }

    /// The context that the steps of links need.
    pub fn link_context(&mut self, now: Time) -> Context<'_> {
        let keys = match &mut self.seal {
            Seal::Plain(_) => None,
            Seal::Keyed(seal) => Some(seal.key_ring()),
        };
        Context {
            now,
            keys,
            stats: &mut self.stats,
        }
    }

    /// Seals a burst for sending.
    pub fn seal(&mut self, class: Class, to: Target, mut burst: Burst) -> Outgoing {
        self.seal.seal(class, to, &mut burst);
        Outgoing {
            class,
            to,
            burst,
            peer: 0,
            at: 0,
        }
    }

    /// Sends what is left of a burst. Data for a single node goes by multicast where there is one: its header names the
    /// receiver.
    ///
    /// # Errors
    /// None in practice: datagrams that the kernel refuses for good are counted and given up.
    pub fn send(&mut self, out: &mut Outgoing) -> io::Result<Progress> {
        if out.burst.bytes.is_empty() || out.burst.segment == 0 {
            return Ok(Progress::Done);
        }
        if out.class == Class::Data && self.group.is_some() {
            let progress = self.send_to(out, None);
            self.ports.expect_own();
            return progress;
        }
        if let Target::Node(node) = out.to {
            self.peers.use_of(node);
        }
        while let Some(peer) = self.peers.get(out.peer) {
            let wanted = peer.is_somewhere
                && match out.to {
                    Target::Others => true,
                    Target::Node(node) => peer.node == node,
                };
            if wanted {
                let progress = self.send_to(out, Some(out.peer))?;
                if progress != Progress::Done {
                    return Ok(progress);
                }
            }
            out.peer += 1;
            out.at = 0;
        }
        Ok(Progress::Done)
    }

    /// Sends what is left of a burst to one peer, or to the group.
    fn send_to(&mut self, out: &mut Outgoing, peer: Option<usize>) -> io::Result<Progress> {
        let peer = peer.and_then(|place| self.peers.get(place));
        if out.class == Class::Token
            && let Some(token) = peer.and_then(|peer| peer.token.as_socket())
            && let Some(first) = out.burst.datagrams().next()
        {
            self.refused.remember(token, first);
        }
        let to = match (peer, &self.group) {
            (Some(peer), _) if out.class == Class::Token => &peer.token,
            (Some(peer), _) => &peer.data,
            (None, Some(group)) => group,
            (None, None) => return Ok(Progress::Done),
        };
        let mut of_others = 0;
        while of_others < REFUSALS_AT_ONCE {
            let port = self.ports.sender(out.class);
            let sent = port.send(to, &out.burst, &mut out.at, &mut self.stats);
            if let Some(code) = port.take_refusal() {
                self.refusals.note_now(code, to);
            }
            let error = match sent {
                Ok(progress) => return Ok(progress),
                Err(error) => error,
            };
            // A refusal is reported by whatever is sent next and says nothing about that: it is tried again.
            let (ports, peers) = (&self.ports, &self.peers);
            if self.refused.read_errors(ports, peers, &mut self.stats) {
                of_others += 1;
                continue;
            }
            // This host's kernel refuses this burst itself.
            let port = self.ports.sender(out.class);
            let given_up = port.on_send_error(&error, &out.burst, &mut out.at, &mut self.stats);
            if let Some(code) = port.take_refusal() {
                self.refusals.note_now(code, to);
            }
            if let Some(progress) = given_up {
                return Ok(progress);
            }
        }
        self.stats.send_errors += 1;
        Ok(Progress::Done)
    }

    /// Reads the errors about datagrams that were sent before.
    fn read_errors(&mut self) {
        let (ports, peers) = (&self.ports, &self.peers);
        self.refused.read_errors(ports, peers, &mut self.stats);
    }

    /// Waits, spends no time where something is ready already, and says what is.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn wait(&mut self, wait: Wait) -> io::Result<Ready> {
        let mut fds = self.poll_set(&wait);
        if sys::poll(&mut fds, wait.nanos)? == 0 {
            return Ok(Ready::default());
        }
        Ok(self.heard(&fds))
    }

    /// The descriptors to ask the kernel about.
    pub fn poll_set(&self, wait: &Wait) -> PollSet {
        self.ports.poll_set(wait)
    }

    /// Takes over the answer of the kernel.
    pub fn heard(&mut self, fds: &[libc::pollfd]) -> Ready {
        if ports::has_errors(fds) {
            self.read_errors();
        }
        ports::ready(fds)
    }

    /// Reads one burst of a class and appends what of it is sound to `arrivals`; `false` when
    /// nothing waited.
    ///
    /// # Errors
    /// The kernel's own, other than refusals by peers.
    pub fn receive(&mut self, class: Class, arrivals: &mut VecDeque<Arrival>) -> io::Result<bool> {
        let Some(raw) = self.read(class)? else {
            return Ok(false);
        };
        self.waited = raw.waited;
        let before = arrivals.len();
        self.open_burst(class, raw, arrivals);
        if class == Class::Token {
            self.stats.notices_dropped += self.notices.take_out(arrivals, before);
        }
        Ok(true)
    }

    /// Reads one burst of a class, as it came; `None` when nothing waited.
    fn read(&mut self, class: Class) -> io::Result<Option<RawBurst>> {
        for _ in 0..REFUSALS_AT_ONCE {
            let port = self.ports.receiver(class);
            match port.receive(&mut self.stats) {
                Ok(raw) => return Ok(raw),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) => {
                        return Err(error);
                    }
                    // Everything else is about some datagram that was sent before.
                    _ => self.read_errors(),
                },
            }
        }
        Ok(None)
    }

    /// Reads all bursts that wait, and drops them; says how many they were. Later ones are left. For a process that
    /// stood still: they are of a time that is over.
    pub fn forget(&mut self) -> u64 {
        let mut forgotten = 0;
        for class in [Class::Data, Class::Token] {
            for _ in 0..FORGOTTEN_AT_ONCE {
                let Ok(Some(_)) = self.read(class) else { break };
                forgotten += 1;
            }
        }
        forgotten
    }

    /// The time that the burst read last, if it was a token, had waited for that, in nanoseconds.
    pub const fn waited(&self) -> u64 {
        self.waited
    }

    /// The refusals of this host's kernel to send lately, a sentence for each kind.
    pub fn refusals(&self, now: Time) -> Vec<String> {
        self.refusals.notes(now)
    }

    /// A peer at whose address no process listens, once for each sign of it.
    pub fn next_refused(&mut self) -> Option<NodeId> {
        self.refused.next()
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets")
            .field("own", &self.own_data)
            .finish_non_exhaustive()
    }
}
