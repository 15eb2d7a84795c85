//! What applications use to speak with a daemon.
//!
//! [`protocol`] is the bytes between the two, without sockets, threads or clock; daemons use it too.

#![forbid(unsafe_code)]

pub mod protocol;
