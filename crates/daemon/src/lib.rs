//! The daemon: one for each host, which serves many clients on one ring.
//!
//! [`Daemon`] joins the ring of its configuration and opens the sockets of clients; clients are served by
//! the ring's own thread, as a wake-up of another one costs more than the ring itself. What they ask for is
//! ordered with everything else, and `rota_core::groups` says who gets what.
//!
//! | room | holds |
//! |---|---|
//! | [`config`] | the section `[daemon]` of the configuration |
//! | [`daemon`] | starting and stopping |
//! | `app` | what the ring's loop calls |
//! | [`access`] | who may do what |
//! | `control`, `reload` | what other threads want of the ring's: its status, other settings |
//! | `hub` | clients and their groups: who asked for what, who is told what |
//! | `door` | listeners, and which sockets are ready |
//! | `names` | what clients and daemons are called |
//! | [`status`] | what it says of itself |
//! | `http`, `metrics` | the same for Prometheus, in threads of their own |
//! | `lag` | how far a client is behind |
//! | `session` | one client's socket: bytes in, bytes out |
//! | `trace` | what clients do and are told, for checkers |
//! | `speech` | one client's protocol: bytes to requests, events to bytes |
//! | [`tls`] | clients of other hosts, in a thread of their own |
//! | `seats` | how many connections an address may have |
//! | [`spread`] | the protocol of Spread's clients, without sockets |

#![forbid(unsafe_code)]

pub mod access;
mod app;
pub mod config;
mod control;
pub mod daemon;
mod descriptors;
mod door;
mod farewells;
mod http;
mod hub;
mod lag;
mod metrics;
mod names;
mod reload;
mod seats;
mod session;
mod speech;
pub mod spread;
pub mod status;
mod stream;
pub mod tls;
mod trace;

pub use config::{DaemonConfig, DaemonConfigError, SlowClients, ThrottleThen};
pub use control::Control;
pub use daemon::{Daemon, OpenError};
pub use descriptors::ask_for_all as ask_for_descriptors;
pub use reload::{CertificateFiles, NewSettings};
pub use status::{
    ClientStatus, DaemonStatus, HistogramStatus, HoldStatus, PeerStatus, QueueStatus, ReloadStatus,
    TokenStatus,
};
