//! What a loop waits for, and what it is told.

use rota_core::contract::Class;
use std::os::fd::RawFd;

/// Which sockets have something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// The data socket can be read.
    pub data: bool,
    /// The token socket can be read.
    pub token: bool,
    /// The waker was signalled.
    pub woken: bool,
}

/// What to wait for.
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
}
