//! Clients of other hosts, by TLS.
//!
//! The listener has a thread of its own, so that neither a handshake nor the encryption ever costs the ring. When a
//! client has shown who it is, the ring's thread gets one end of a Unix socket pair and the client's identity; from
//! then on it is a client like all others, and this thread carries bytes between the pair and the client. The pair
//! holds a bounded number of bytes, so it holds back a client that does not take its bytes.

mod arrive;
mod config;
mod door;
mod expiry;
mod judged;
mod link;
mod links;
mod listening;
mod revoked;
mod side;
mod terms;
mod thread;

pub use config::{TlsConfig, TlsError};
pub use revoked::ListsEnd;

pub(crate) use config::Certificates;
pub(crate) use door::{Arrival, News, NotOpen, Terms, TlsDoor};
