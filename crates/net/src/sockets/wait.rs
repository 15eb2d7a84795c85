//! The events that a loop waits for, and those that came.

use rota_core::contract::Class;
use std::os::fd::RawFd;

/// The sockets that have something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// The data socket can be read.
    pub data: bool,
    /// The token socket can be read.
    pub token: bool,
    /// The waker was signalled.
    pub woken: bool,
    /// One of the links has something.
    pub links: bool,
}

/// The events to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wait {
    /// At most this long, in nanoseconds; `None`: without end.
    pub nanos: Option<u64>,
    /// Not for tokens: none may be read now.
    pub no_token: bool,
    /// Until this class can be sent.
    pub writable: Option<Class>,
    /// Until this descriptor is readable.
    pub waker: Option<RawFd>,
    /// Or this one, which is for the driver itself.
    pub stored: Option<RawFd>,
    /// Or this one, which stands for all links.
    pub links: Option<RawFd>,
}

/// The descriptors that the kernel is asked about for one driver: data, token, waker, the data's own sender, what is
/// stored, links.
pub type PollSet = [libc::pollfd; 6];
