//! The daemon: one for each host, which serves many clients on one ring.
//!
//! [`Daemon`] joins the ring of its configuration and opens the sockets of clients. The ring's own thread serves
//! clients, as a wake-up of another one costs more than the ring itself. The requests of clients are ordered with
//! everything else, and `rota_core::groups` computes the receivers of each event.
//!
//! | room | holds |
//! |---|---|
//! | [`config`] | the section `[daemon]` of the configuration |
//! | [`daemon`] | starting and stopping |
//! | `app` | the callbacks of the ring's loop |
//! | [`access`] | the rights of peers |
//! | `control`, `reload` | requests of other threads to the ring's: for its status, for other settings |
//! | `hub` | clients and their groups: the requests of clients, and the events for each |
//! | `door` | listeners, and the sockets that are ready |
//! | `names` | the names of clients and daemons |
//! | [`status`] | the status of the daemon |
//! | [`explain`] | the troubles of a ring, in words |
//! | `http`, `metrics` | status, troubles and metrics for people, probes and Prometheus, in threads of their own |
//! | `keys` | sessions and links that wait in a row |
//! | [`members`] | the nodes of the cluster, which change while daemons run |
//! | `lag` | how far a client is behind, and what follows |
//! | `session` | one client's socket: bytes in, bytes out |
//! | `trace` | requests of clients and the events for them, for checkers |
//! | `speech` | one client's protocol: bytes to requests, events to bytes |
//! | [`teller`] | the status of all daemons through any one of them |
//! | [`tls`] | clients of other hosts, in a thread of their own |
//! | `seats` | the limits of connections of an address or a user |
//! | [`spread`] | the protocol of Spread's clients, without sockets |

#![forbid(unsafe_code)]

pub mod access;
mod app;
pub mod config;
mod control;
pub mod daemon;
mod descriptors;
mod door;
pub mod explain;
mod farewells;
mod http;
mod hub;
mod keys;
mod lag;
pub mod members;
mod metrics;
mod names;
mod reload;
mod seats;
mod session;
mod speech;
pub mod spread;
pub mod status;
mod stream;
pub mod teller;
pub mod tls;
mod trace;

pub use config::{DaemonConfig, DaemonConfigError, SlowClients, ThrottleThen};
pub use control::{Control, NotAnswered};
pub use daemon::{Daemon, OpenError};
pub use descriptors::ask_for_all as ask_for_descriptors;
pub use members::{
    AcceptorStatus, MemberPlace, MemberReply, MemberRequest, MemberStatus, members_socket,
};
pub use reload::{CertificateFiles, NewSettings};
pub use status::{
    ClientStatus, DaemonStatus, HistogramStatus, HoldStatus, PeerStatus, QueueStatus, ReloadStatus,
    TokenStatus,
};
