//! A client's side of a connection without its socket: what blocking and async clients have in common.
//!
//! [`Handshake`] is the beginning. [`Incoming`] takes bytes and gives events, and what is [`Settled`] by
//! them; [`Outgoing`] takes messages and requests and gives bytes. [`OutstandingRequests`] is what the two halves share.

mod account;
mod handshake;
mod incoming;
mod outgoing;
mod stop;

pub use account::{Answer, OutstandingRequests};
pub use handshake::{Handshake, Taken};
pub use incoming::{Incoming, Settled};
pub use outgoing::Outgoing;
pub use stop::Stop;
