//! One UDP socket: how it is opened, and how bursts pass through it.

use bytes::Bytes;
use rota_core::contract::Burst;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

mod filter;

use crate::message::{self, SendError};
use crate::mutants::{self, Mutant};
use crate::network::Tuning;
use crate::pool::Pool;
use crate::stats::NetStats;
use crate::sys;
use filter::{RETURN_NOTHING, own_filter};

/// The outcome of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All of the burst has left, or was given up and counted.
    Done,
    /// The socket is full: wait until it is writable, then go on.
    Full,
    /// A queue below the socket is full, and nothing tells when it has room: try again shortly.
    NoBuffers,
}

/// A burst as it was read, not checked yet. Its bytes are still the port's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBurst {
    pub(crate) len: usize,
    pub(crate) segment: usize,
    pub(crate) source: Option<SocketAddr>,
    /// The time that the burst has waited to be read, in nanoseconds, where the kernel says so.
    pub(crate) waited: u64,
}

/// A UDP socket with its receive buffers.
#[derive(Debug)]
pub(crate) struct Port {
    socket: Socket,
    pool: Pool,
    segmentation: bool,
    /// Bursts since segmentation was refused.
    refused_for: Option<u32>,
    dropped: u32,
    /// Units handed to the kernel so far: an offloaded burst is one.
    units: u64,
    /// Own units that this socket's filter will drop, and the kernel count with its drops.
    own_units: u64,
    /// The number of an error by which the kernel has refused something for good, until a caller takes it.
    refusal: Option<i32>,
}

/// Bursts that go one by one before segmentation is tried again: a refusal costs a system call.
const TRIED_AGAIN: u32 = 50_000;

impl Port {
    /// Opens a socket bound to `address`. `shared`: other sockets of the host may be bound to the
    /// same (multicast) address.
    pub(crate) fn open(address: SocketAddr, shared: bool, tuning: Tuning) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(shared)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SockAddr::from(address))?;
        let fd = socket.as_raw_fd();
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1_i32)?;
        if address.is_ipv4() && !mutants::on(Mutant::O02) {
            // Claims about the path, which anybody can make, do not count: routers cut what they have to.
            let ignore = libc::IP_PMTUDISC_OMIT;
            sys::set_option(fd, libc::SOL_IP, libc::IP_MTU_DISCOVER, ignore)?;
        }
        if tuning.offload
            && let Err(error) = sys::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1_i32)
        {
            // The kernel then hands out every datagram alone: slower, and nothing else.
            tracing::warn!(%error, "no UDP receive offload");
        }
        let port = Self {
            socket,
            pool: Pool::default(),
            segmentation: tuning.offload,
            refused_for: None,
            dropped: 0,
            units: 0,
            own_units: 0,
            refusal: None,
        };
        port.set_buffers(tuning)?;
        Ok(port)
    }

    fn set_buffers(&self, tuning: Tuning) -> io::Result<()> {
        let asked = tuning.receive_buffer_bytes;
        let got = self.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, asked)?;
        if got < asked {
            tracing::warn!(
                asked,
                got,
                "the receive buffer is smaller than configured: raise net.core.rmem_max"
            );
        }
        if let Some(asked) = tuning.send_buffer_bytes {
            let got = self.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, asked)?;
            if got < asked {
                tracing::warn!(
                    asked,
                    got,
                    "the send buffer is smaller than configured: raise net.core.wmem_max"
                );
            }
        }
        Ok(())
    }

    /// Asks for a buffer of `bytes`, beyond the system's limit where that is allowed; answers with
    /// the size it has. The kernel books twice the size for its own needs and reports that number.
    fn set_buffer(&self, force: i32, plain: i32, bytes: usize) -> io::Result<usize> {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
        let fd = self.socket.as_raw_fd();
        if sys::set_option(fd, libc::SOL_SOCKET, force, value).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, plain, value)?;
        }
        let booked = sys::option(fd, libc::SOL_SOCKET, plain)?;
        Ok(usize::try_from(booked).unwrap_or(0) / 2)
    }

    /// The receive buffer's size in bytes, as it was asked for (half of what the kernel books).
    pub(crate) fn receive_buffer_bytes(&self) -> io::Result<usize> {
        let booked = sys::option(self.raw(), libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(booked).unwrap_or(0) / 2)
    }

    /// The socket itself, to join groups.
    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The descriptor, to poll.
    pub(crate) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Asks the kernel to report datagrams that nobody took.
    pub(crate) fn report_errors(&self, v6: bool) -> io::Result<()> {
        let (level, name) = if v6 {
            (libc::SOL_IPV6, libc::IPV6_RECVERR)
        } else {
            (libc::SOL_IP, libc::IP_RECVERR)
        };
        sys::set_option(self.raw(), level, name, 1_i32)
    }

    /// Asks the kernel for the arrival time of what is read.
    pub(crate) fn stamp_arrivals(&self) -> io::Result<()> {
        sys::set_option(self.raw(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1_i32)
    }

    /// Sends the rest of a burst, from byte `at` on, and moves `at` over what has left.
    ///
    /// # Errors
    /// An error that may be about an earlier datagram: the caller looks at the error queue. If nothing is there, the
    /// error is about this burst ([`Self::on_send_error`]).
    pub(crate) fn send(
        &mut self,
        to: &SockAddr,
        burst: &Burst,
        at: &mut usize,
        stats: &mut NetStats,
    ) -> io::Result<Progress> {
        self.try_segmentation_again();
        while *at < burst.bytes.len() {
            let rest = &burst.bytes[*at..];
            let sent = if self.segmentation && rest.len() > burst.segment {
                self.send_whole(to, rest, burst.segment)
            } else {
                message::send_each(self.raw(), to, rest, burst.segment)
                    .map(|count| (count * burst.segment).min(rest.len()))
            };
            match sent {
                Ok(bytes) => {
                    stats.datagrams_out += bytes.div_ceil(burst.segment) as u64;
                    stats.bytes_out += bytes as u64;
                    *at += bytes;
                    let whole = self.segmentation && bytes > burst.segment;
                    let units = if whole {
                        1
                    } else {
                        bytes.div_ceil(burst.segment)
                    };
                    self.units += units as u64;
                }
                Err(error) if may_be_about_another(&error) => return Err(error),
                Err(error) => {
                    if let Some(progress) = self.on_send_error(&error, burst, at, stats) {
                        return Ok(progress);
                    }
                }
            }
        }
        stats.bursts_out += 1;
        Ok(Progress::Done)
    }

    /// The cause of the refusal may have been short: an interface whose MTU was changed for a moment.
    fn try_segmentation_again(&mut self) {
        if let Some(bursts) = &mut self.refused_for {
            *bursts += 1;
            if *bursts == TRIED_AGAIN {
                (self.segmentation, self.refused_for) = (true, None);
            }
        }
    }

    fn send_whole(&self, to: &SockAddr, bytes: &[u8], segment: usize) -> io::Result<usize> {
        let Ok(segment) = u16::try_from(segment) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        message::send_segmented(self.raw(), to, bytes, segment)?;
        Ok(bytes.len())
    }

    /// Handles an error of a send. A datagram that was refused for good is left out; `None`: the rest of the burst may
    /// be sent.
    pub(crate) fn on_send_error(
        &mut self,
        error: &io::Error,
        burst: &Burst,
        at: &mut usize,
        stats: &mut NetStats,
    ) -> Option<Progress> {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => {
                stats.would_block += 1;
                return Some(Progress::Full);
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                stats.would_block += 1;
                return Some(Progress::NoBuffers);
            }
            Some(libc::EINTR) => return None,
            Some(libc::EIO | libc::EINVAL | libc::ENOPROTOOPT | libc::EMSGSIZE)
                if self.segmentation && burst.bytes.len() - *at > burst.segment =>
            {
                // The device, the path or the kernel cannot, for now: the next bursts go one by one.
                if stats.gso_fallback == 0 {
                    tracing::warn!(%error, "segmentation offload was refused; sending one by one");
                }
                stats.gso_fallback += 1;
                (self.segmentation, self.refused_for) = (false, Some(0));
                return None;
            }
            Some(libc::EMSGSIZE) => {
                if stats.too_large == 0 {
                    let bytes = burst.segment.min(burst.bytes.len() - *at);
                    tracing::warn!(bytes, "the kernel refused a datagram as too large");
                }
                stats.too_large += 1;
                self.refusal = Some(libc::EMSGSIZE);
            }
            code => {
                // As good as lost on the way, which the protocol repairs; the next may get through.
                tracing::debug!(%error, "a datagram could not be sent");
                stats.send_errors += 1;
                self.refusal = code;
            }
        }
        *at = (*at + burst.segment).min(burst.bytes.len());
        None
    }

    /// Reads a burst; `None` when nothing waits.
    pub(crate) fn receive(&mut self, stats: &mut NetStats) -> io::Result<Option<RawBurst>> {
        let received = match message::receive(self.socket.as_raw_fd(), self.pool.buffer()) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(dropped) = received.dropped {
            let drops = u64::from(dropped.wrapping_sub(self.dropped));
            let own = drops.min(self.own_units);
            self.own_units -= own;
            stats.kernel_drops += drops - own;
            self.dropped = dropped;
        }
        stats.bursts_in += 1;
        stats.bytes_in += received.len as u64;
        stats.short += u64::from(received.len == 0);
        stats.truncated += u64::from(received.truncated);
        Ok(Some(RawBurst {
            len: if received.truncated { 0 } else { received.len },
            // An empty datagram has no segment size.
            segment: received.segment.max(1),
            source: received.source,
            waited: received.stamp.map_or(0, waited_since),
        }))
    }

    /// The bytes of the burst that was read last.
    pub(crate) fn read_mut(&mut self, len: usize) -> &mut [u8] {
        &mut self.pool.buffer()[..len]
    }

    /// Takes the bytes of the burst that was read last.
    pub(crate) fn take_read(&mut self, len: usize) -> Bytes {
        self.pool.take(len)
    }

    /// Takes one entry from the error queue; `None` when it is empty.
    pub(crate) fn take_error(&self) -> Option<SendError> {
        if let Ok(entry) = message::receive_error(self.raw()) {
            return Some(entry);
        }
        // An error may be pending without an entry; reading it clears it.
        let _ = sys::option(self.raw(), libc::SOL_SOCKET, libc::SO_ERROR);
        None
    }

    /// The number of the error by which the kernel has refused something for good since the last call.
    #[inline]
    pub(crate) const fn take_refusal(&mut self) -> Option<i32> {
        self.refusal.take()
    }

    /// The units handed to the kernel since the last call.
    pub(crate) const fn take_units(&mut self) -> u64 {
        std::mem::replace(&mut self.units, 0)
    }

    /// Notes units that the filter will drop, and that are no loss.
    pub(crate) const fn expect_own(&mut self, units: u64) {
        self.own_units += units;
    }

    /// Lets nothing queue at a socket that only sends.
    pub(crate) fn receive_nothing(&self) -> io::Result<()> {
        sys::attach_filter(self.raw(), &mut [RETURN_NOTHING])
    }

    /// Keeps datagrams that `own` sent from ever waking this socket's reader.
    pub(crate) fn drop_own(&self, own: SocketAddr) -> io::Result<()> {
        sys::attach_filter(self.raw(), &mut own_filter(own))
    }
}

/// Whether networks report this error about datagrams (by ICMP): the kernel hands it to the next send, whatever that
/// is. Anybody can make such a report, too.
fn may_be_about_another(error: &io::Error) -> bool {
    let of_networks = [
        libc::EACCES,
        libc::ECONNREFUSED,
        libc::EHOSTDOWN,
        libc::EHOSTUNREACH,
        libc::EMSGSIZE,
        libc::ENETUNREACH,
        libc::ENONET,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EPROTO,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| of_networks.contains(&code))
}

/// The time since the kernel stamped something, in nanoseconds. A clock that was set in between makes it 0, or too long
/// to be believed.
fn waited_since(stamp: u64) -> u64 {
    const MOST: u64 = 60_000_000_000;
    let waited = sys::realtime_nanos().saturating_sub(stamp);
    if waited > MOST { 0 } else { waited }
}
