//! UDP sockets with segmentation offload and nothing else, for the raw benchmark.
//!
//! A read that finds nothing lets other processes run for a moment, then blocks, with a time-out.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

/// The kernel's limit for one offloaded send: the largest UDP payload over IPv4.
pub const MAX_BURST_BYTES: usize = 65_507;
/// The kernel's limit on the datagrams of one offloaded send.
pub const MAX_BURST_PACKETS: usize = 64;

/// Receive buffer asked for, in bytes.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Looks at an empty socket before sleeping: all together as dear as a sleep and its wake-up.
pub const LOOKS: u32 = 32;
/// Send buffer on a shaped link: smaller than the port's queue, so that a sender waits for its own
/// link instead of losing packets in it.
pub const SHAPED_SEND_BUFFER: usize = 200 << 10;
/// Send buffer elsewhere. A burst counts against it until the last receiver has read it, so a small
/// one would put the sender to sleep after every few bursts.
pub const OPEN_SEND_BUFFER: usize = 8 << 20;

/// Datagrams that arrived together.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Bytes in the buffer.
    pub len: usize,
    /// Bytes of each datagram but the last.
    pub segment: usize,
}

/// A UDP socket.
#[derive(Debug)]
pub struct UdpPort {
    socket: Socket,
    offload: bool,
}

impl UdpPort {
    /// A socket for datagrams to `address` itself.
    pub fn unicast(address: SocketAddrV4, offload: bool) -> io::Result<Self> {
        let port = Self::open(offload)?;
        port.socket.bind(&address.into())?;
        port.socket.set_multicast_if_v4(address.ip())?;
        port.socket.set_multicast_loop_v4(false)?;
        port.socket.set_multicast_ttl_v4(1)?;
        Ok(port)
    }

    /// A socket for datagrams to `group`, which arrive at the interface with address `interface`.
    pub fn multicast(group: SocketAddrV4, interface: Ipv4Addr, offload: bool) -> io::Result<Self> {
        let port = Self::open(offload)?;
        port.socket.set_reuse_address(true)?;
        port.socket.bind(&group.into())?;
        port.socket.join_multicast_v4(group.ip(), &interface)?;
        Ok(port)
    }

    fn open(offload: bool) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // Beyond the system's limit needs a privilege; what is granted without it will do.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        if offload {
            setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        }
        Ok(Self { socket, offload })
    }

    /// Sets the number of bytes that may be on their way before a send waits.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        if setsockopt(&self.socket, sockopt::SndBufForce, &bytes).is_err() {
            self.socket.set_send_buffer_size(bytes)?;
        }
        Ok(())
    }

    /// Sets the time that a read waits before it gives up.
    pub fn set_patience(&self, wait: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(wait))
    }

    /// Datagrams of this size share one send from now on.
    pub fn set_segment(&self, bytes: usize) -> io::Result<()> {
        if self.offload {
            setsockopt(&self.socket, sockopt::UdpGsoSegment, &(bytes as i32))?;
        }
        Ok(())
    }

    /// Reads what arrived; `None` when nothing came in time. As the ring's own loop does, it looks a
    /// few times and lets others run before it sleeps.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        if let Some(arrived) = self.look(buffer)? {
            return Ok(Some(arrived));
        }
        self.read(buffer, MsgFlags::empty())
    }

    /// As [`Self::receive`], for a wait that ends in time: that of a read ends with the system's clock tick.
    pub fn receive_within(&self, buffer: &mut [u8], wait: Duration) -> io::Result<Option<Arrived>> {
        if let Some(arrived) = self.look(buffer)? {
            return Ok(Some(arrived));
        }
        let wait = Timespec::try_from(wait).ok();
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut ready, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.receive_now(buffer),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks a few times whether something is there, and lets others run in between.
    fn look(&self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        for _ in 0..LOOKS {
            if let Some(arrived) = self.receive_now(buffer)? {
                return Ok(Some(arrived));
            }
            thread::yield_now();
        }
        Ok(None)
    }

    /// Reads what is there; `None` when nothing is.
    pub fn receive_now(&self, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        self.read(buffer, MsgFlags::MSG_DONTWAIT)
    }

    fn read(&self, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Option<Arrived>> {
        let mut control = [0; 64];
        let mut slices = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        match recvmsg::<SockaddrIn>(fd, &mut slices, Some(&mut control), flags) {
            Ok(message) => {
                let len = message.bytes;
                let segment = message.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|c| match c {
                        ControlMessageOwned::UdpGroSegments(bytes) => usize::try_from(bytes).ok(),
                        _ => None,
                    })
                });
                Ok(Some(Arrived {
                    len,
                    segment: segment.unwrap_or(len),
                }))
            }
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends `bytes` as datagrams of `segment` bytes (see [`UdpPort::set_segment`]), waiting for
    /// room.
    pub fn send_burst(&self, bytes: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        let to = to.into();
        if self.offload {
            return self.socket.send_to(bytes, &to).map(drop);
        }
        bytes
            .chunks(segment)
            .try_for_each(|one| self.socket.send_to(one, &to).map(drop))
    }

    /// Sends one datagram.
    pub fn send(&self, bytes: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.socket.send_to(bytes, &to.into()).map(drop)
    }
}
