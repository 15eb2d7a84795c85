//! A client's side of a connection without its socket: the common part of blocking and async clients.
//!
//! [`Handshake`] is the beginning. [`Incoming`] takes bytes and gives events and, as [`Settled`], the news for the
//! sending half; [`Outgoing`] takes messages and requests and gives bytes. The two halves share
//! [`OutstandingRequests`].

mod account;
mod handshake;
mod incoming;
mod outgoing;
mod stop;
#[cfg(test)]
mod table_tests;

pub use account::{Answer, OutstandingRequests};
pub use handshake::{Handshake, Taken};
pub use incoming::{Incoming, Settled};
pub use outgoing::Outgoing;
pub use stop::{Stop, is_long_over};
