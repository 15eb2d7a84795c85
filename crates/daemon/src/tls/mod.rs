//! Clients of other hosts, by TLS.
//!
//! The listener has a thread of its own, so that neither a handshake nor the encryption ever costs the ring.
//! When a client has shown who it is, the ring's thread gets one end of a Unix socket pair and who the client
//! is; from then on it is a client like all others, and this thread carries bytes between the pair and the
//! client. Who does not take its bytes is held back by the pair, which holds only so much.

mod arrive;
mod config;
mod door;
mod expiry;
mod judged;
mod link;
mod revoked;
mod terms;
mod thread;

pub use config::{TlsConfig, TlsError};
pub use revoked::ListsEnd;

pub(crate) use config::{Certificates, Stamp};
pub(crate) use door::{Arrival, News, NotOpen, Terms, TlsDoor};
