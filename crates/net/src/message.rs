//! Sending and receiving with ancillary data: segmentation offload, receive offload, drop counters
//! and the error queue.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;

use rota_core::contract::Burst;
use socket2::SockAddr;

use crate::sockets::COMPARED;

/// Room for the ancillary data we ask for, aligned as the kernel lays it out.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// The result of one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Bytes read.
    pub(crate) len: usize,
    /// Bytes of each datagram but the last.
    pub(crate) segment: usize,
    /// The sender of the datagrams.
    pub(crate) source: Option<SocketAddr>,
    /// The buffer was too small.
    pub(crate) truncated: bool,
    /// Datagrams the kernel has dropped on this socket so far (it counts modulo 2³²).
    pub(crate) dropped: Option<u32>,
    /// The time at which the kernel got the datagrams, on the clock of [`crate::sys::realtime_nanos`], if the socket
    /// was asked to say.
    pub(crate) stamp: Option<u64>,
}

/// An empty message header.
fn blank() -> libc::msghdr {
    // SAFETY: a msghdr is plain data for which all zeros (no address, no buffers) is a valid value.
    unsafe { mem::zeroed() }
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Sends `bytes` as datagrams of `segment` bytes with one call and one trip through the stack.
pub(crate) fn send_segmented(
    fd: RawFd,
    to: &SockAddr,
    bytes: &[u8],
    segment: u16,
) -> io::Result<()> {
    let mut control = Control([0; 256]);
    let mut vector = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut header = blank();
    header.msg_name = to.as_ptr().cast_mut().cast();
    header.msg_namelen = to.len();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure arithmetic on the size of the one field.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize;
    // SAFETY: `header` points to `control`, which has room for a header and a u16 and is aligned for
    // both, so the first header exists and its data may be written.
    unsafe {
        let field = libc::CMSG_FIRSTHDR(&raw const header);
        (*field).cmsg_level = libc::SOL_UDP;
        (*field).cmsg_type = libc::UDP_SEGMENT;
        (*field).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
        libc::CMSG_DATA(field)
            .cast::<u16>()
            .write_unaligned(segment);
    }
    // SAFETY: everything `header` points to is alive; the kernel only reads it.
    check(unsafe { libc::sendmsg(fd, &raw const header, libc::MSG_DONTWAIT) }).map(drop)
}

/// Sends `bytes` as datagrams of `segment` bytes one by one, at most [`Burst::MAX_SEGMENTS`]; says
/// how many datagrams left.
pub(crate) fn send_each(
    fd: RawFd,
    to: &SockAddr,
    bytes: &[u8],
    segment: usize,
) -> io::Result<usize> {
    const ROOM: usize = Burst::MAX_SEGMENTS;
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; ROOM];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; ROOM];
    let mut count = 0;
    for datagram in bytes.chunks(segment.max(1)).take(ROOM) {
        let vector = vectors[count].write(libc::iovec {
            iov_base: datagram.as_ptr().cast_mut().cast(),
            iov_len: datagram.len(),
        });
        let mut header = blank();
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len();
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        headers[count].write(libc::mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
        count += 1;
    }
    let first = headers.as_mut_ptr().cast::<libc::mmsghdr>();
    // SAFETY: the first `count` headers are initialised and point to initialised vectors, to `to` and
    // to parts of `bytes`, all alive; the kernel writes only each header's `msg_len`.
    let sent = unsafe { libc::sendmmsg(fd, first, count as u32, libc::MSG_DONTWAIT) };
    check(sent as isize)
}

/// Reads what waits on a socket into `buffer`: one datagram, or several of one sender when the
/// socket has receive offload on. Never waits.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<Received> {
    let mut received = Received {
        len: 0,
        segment: 0,
        source: None,
        truncated: false,
        dropped: None,
        stamp: None,
    };
    let mut segment = 0;
    let (len, flags, source) =
        receive_with(fd, buffer, libc::MSG_DONTWAIT, |level, kind, data| {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => segment = number(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => received.dropped = Some(number(data)),
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received.stamp = nanos(data),
                _ => {}
            }
        })?;
    received.len = len;
    received.segment = if segment == 0 { len } else { segment as usize };
    received.truncated = flags & libc::MSG_TRUNC != 0;
    received.source = source;
    Ok(received)
}

/// The first four bytes of an ancillary field as a number.
fn number(data: &[u8]) -> u32 {
    data.first_chunk()
        .map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// A `timespec` of 64-bit numbers, in nanoseconds.
fn nanos(data: &[u8]) -> Option<u64> {
    let (seconds, rest) = data.split_first_chunk()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    let nanos = u64::try_from(i64::from_ne_bytes(*rest.first_chunk()?)).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// The error about a datagram that was sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SendError {
    /// The beginning of that datagram, as it is quoted.
    quote: [u8; COMPARED],
    quoted: usize,
    /// The address that the datagram was sent to.
    pub(crate) to: Option<SocketAddr>,
    /// The error number.
    pub(crate) code: i32,
    /// This host's kernel reports the error, and has reported it to the sender, too; not a peer or a router.
    pub(crate) local: bool,
}

impl SendError {
    /// The beginning of the datagram that the error is about.
    pub(crate) fn quote(&self) -> &[u8] {
        &self.quote[..self.quoted]
    }
}

/// Takes one entry from a socket's error queue.
pub(crate) fn receive_error(fd: RawFd) -> io::Result<SendError> {
    let (mut code, mut local) = (0, false);
    let flags = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
    let mut quote = [0; COMPARED];
    let (len, _, to) = receive_with(fd, &mut quote, flags, |level, kind, data| {
        let v4 = (level, kind) == (libc::SOL_IP, libc::IP_RECVERR);
        let v6 = (level, kind) == (libc::SOL_IPV6, libc::IPV6_RECVERR);
        if v4 || v6 {
            // `sock_extended_err` starts with the error number and its origin.
            code = number(data).cast_signed();
            local = data.get(4) == Some(&libc::SO_EE_ORIGIN_LOCAL);
        }
    })?;
    Ok(SendError {
        quote,
        quoted: len.min(COMPARED),
        to,
        code,
        local,
    })
}

/// One `recvmsg`; `field` sees level, type and data of every ancillary field. Answers with the
/// length, the flags and the address.
fn receive_with(
    fd: RawFd,
    buffer: &mut [u8],
    flags: i32,
    mut field: impl FnMut(i32, i32, &[u8]),
) -> io::Result<(usize, i32, Option<SocketAddr>)> {
    let mut control = Control([0; 256]);
    // SAFETY: an address of all zeros is valid: one of no family.
    let mut name: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut header = blank();
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = size_of_val(&name) as u32;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: `header` describes `name`, `buffer` and `control` with their real sizes, and all three
    // may be written.
    let len = check(unsafe { libc::recvmsg(fd, &raw mut header, flags) })?;
    // SAFETY: the kernel has set `msg_controllen` to what it wrote into `control`, which is alive, so
    // the macros stay inside it; `cmsg_len` covers the field's header and data.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const header);
        while !at.is_null() {
            let size = ((*at).cmsg_len).saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(at), size);
            field((*at).cmsg_level, (*at).cmsg_type, data);
            at = libc::CMSG_NXTHDR(&raw const header, at);
        }
    }
    Ok((len, header.msg_flags, address(&name)))
}

/// An address as the kernel wrote it.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage, which is larger and aligned, holds this type.
            let v4 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}
