//! A node's sockets and the addresses of its peers.
//!
//! Each class of datagrams has a socket, so that the engine can choose what to read next. With
//! multicast there is a third: data leaves from the node's own port, which names the sender even
//! where several nodes share a host, while the group's port is shared by all receivers.

mod check;
mod error;
mod forget;
mod multicast;
mod path;
mod peers;
mod quotes;
mod refusals;
mod refused;
mod tend;
mod wait;

pub use error::SocketError;
pub use path::PathMtu;
pub use wait::{PollSet, Ready, Wait};

use bytes::Bytes;
use rota_core::contract::{Burst, Class, NodeId, Target, Time};
use socket2::SockAddr;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::keys::{KeyError, KeyRing};
use crate::links::Context;
use crate::network::{Network, Transport};
use crate::seal::checksum::{self, Bursts};
use crate::seal::{KeyedSeal, Keys};
use crate::socket::{Port, Progress, RawBurst};
use crate::stats::NetStats;
use peers::Peers;
pub(crate) use quotes::COMPARED;
use quotes::Quotes;
use refusals::Refusals;
use refused::REFUSALS_AT_ONCE;

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

/// The protection of datagrams.
enum Seal {
    Plain(Bursts),
    Keyed(Box<KeyedSeal>),
}

impl Seal {
    fn new(network: &Network, me: NodeId) -> Result<Self, SocketError> {
        let Some(path) = &network.key_file else {
            return Ok(Self::Plain(Bursts::new()));
        };
        let wrong = |error| SocketError::Key(path.clone(), error);
        let keys = KeyRing::load(path).map_err(wrong)?;
        let keyed = KeyedSeal::new(network, me, &keys);
        let keyed = keyed.map_err(|error| wrong(KeyError::Io(error)))?;
        Ok(Self::Keyed(Box::new(keyed)))
    }
}

/// A node's sockets.
pub struct Sockets {
    data: Port,
    token: Port,
    /// Sends data, where the data socket is bound to a multicast group.
    sender: Option<Port>,
    group: Option<SockAddr>,
    /// The way in which that was joined.
    joined: Option<multicast::Joined>,
    peers: Peers,
    own_data: SocketAddr,
    /// Own multicasts come back, and the data socket's filter drops them.
    filtered: bool,
    seal: Seal,
    stats: NetStats,
    refused: VecDeque<NodeId>,
    refusals: Refusals,
    quotes: Quotes,
    /// The time that the burst read last had waited for that, in nanoseconds.
    waited: u64,
    /// The time of the next look whether the sockets need something.
    tend_at: Time,
}

impl Sockets {
    /// Opens the sockets of node `me`.
    ///
    /// # Errors
    /// [`SocketError`]: an address in use is the usual one.
    pub fn open(network: &Network, me: NodeId) -> Result<Self, SocketError> {
        let own = network.node(me).ok_or(SocketError::UnknownNode(me))?;
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
        Ok(Self {
            data,
            token,
            sender,
            group,
            filtered: joined.as_ref().is_some_and(multicast::Joined::is_filtered),
            joined,
            peers: Peers::new(network, me),
            own_data: own.data(),
            seal,
            stats: NetStats::default(),
            refused: VecDeque::new(),
            refusals: Refusals::default(),
            quotes: Quotes::new(),
            waited: 0,
            tend_at: Time(0),
        })
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
        self.data.receive_buffer_bytes()
    }

    /// The handle for giving this node other keys; `None` if it has none.
    pub fn keys(&self) -> Option<Keys> {
        match &self.seal {
            Seal::Plain(_) => None,
            Seal::Keyed(seal) => Some(seal.keys()),
        }
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
        match &mut self.seal {
            Seal::Plain(_) => burst.datagrams_mut().for_each(checksum::seal),
            Seal::Keyed(seal) => seal.seal(class, to, burst.datagrams_mut()),
        }
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
            if self.filtered
                && let Some(sender) = &mut self.sender
            {
                self.data.expect_own(sender.take_units());
            }
            return progress;
        }
        if let Target::Node(node) = out.to {
            self.peers.use_of(node);
        }
        while let Some(peer) = self.peers.get(out.peer) {
            let wanted = match out.to {
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

    /// Remembers a control datagram that leaves: a refusal of it quotes it.
    fn remember(&mut self, out: &Outgoing, peer: Option<usize>) {
        let peer = peer.and_then(|place| self.peers.get(place));
        let to = peer.and_then(|peer| peer.token.as_socket());
        let first = out.burst.datagrams().next();
        if let (Class::Token, Some(to), Some(first)) = (out.class, to, first) {
            self.quotes.remember(to, first);
        }
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
        self.open_burst(class, raw, arrivals);
        Ok(true)
    }

    /// Reads one burst of a class, as it came; `None` when nothing waited.
    fn read(&mut self, class: Class) -> io::Result<Option<RawBurst>> {
        for _ in 0..REFUSALS_AT_ONCE {
            let Self {
                data, token, stats, ..
            } = self;
            let port = match class {
                Class::Data => data,
                Class::Token => token,
            };
            match port.receive(stats) {
                Ok(raw) => return Ok(raw),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) => {
                        return Err(error);
                    }
                    // Everything else is about some datagram that was sent before.
                    _ => {
                        self.read_errors();
                    }
                },
            }
        }
        Ok(None)
    }

    /// The time that the burst read last, if it was a token, had waited for that, in nanoseconds.
    pub const fn waited(&self) -> u64 {
        self.waited
    }

    const fn port(&mut self, class: Class) -> &mut Port {
        match class {
            Class::Data => &mut self.data,
            Class::Token => &mut self.token,
        }
    }

    /// The refusals of this host's kernel to send lately, a sentence for each kind.
    pub fn refusals(&self, now: Time) -> Vec<String> {
        self.refusals.notes(now)
    }

    /// A peer at whose address no process listens, once for each sign of it.
    pub fn next_refused(&mut self) -> Option<NodeId> {
        self.refused.pop_front()
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets")
            .field("own", &self.own_data)
            .finish_non_exhaustive()
    }
}
