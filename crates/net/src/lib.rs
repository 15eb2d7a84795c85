//! Runs Rota's engines on real sockets.
//!
//! `rota-core` decides; this crate carries out. It owns everything the core must not have: UDP
//! sockets, the monotonic clock, threads, files, and with them most `unsafe` code of the project.
//!
//! Reading order: [`Node`] is what an application uses; [`driver`] is the loop that keeps the
//! contract's law; [`socket`] and [`Sockets`] move bursts; [`seal`] guards what arrives; [`fault`]
//! loses datagrams on purpose.
//!
//! The unit of the data path is the burst, never the packet: a wake-up or a system call costs more
//! than copying a whole burst.

pub mod config;
pub mod coordination;
pub mod driver;
mod engine;
mod epoll;
pub mod fault;
mod interfaces;
pub mod keys;
pub mod links;
mod memory;
mod message;
pub mod mutants;
pub mod node;
mod paths;
mod peer;
mod pool;
mod private;
mod probe;
pub mod rings;
mod runs;
pub mod seal;
mod slab;
mod slices;
pub mod socket;
pub mod sockets;
mod stats;
mod sys;
pub mod trace;

pub use config::{
    ConfigError, CoordinationName, DIFFERENCES, Difference, DifferencesTable, EngineName,
    HostError, NodeAddress, NodeConfig, Outcome, PaxosConfig, PrimaryName, ResetPrimary,
    TimingName, Transport, VoteStorage, path_of,
};
pub use coordination::{Coordination, CoordinationError, Etcd, EtcdFileError, EtcdLogin, EtcdTls};
pub use driver::{App, Driver, DriverError, Submitter, TokenTimes, watched_counters};
pub use engine::NodeEngine;
pub use fault::FaultConfig;
pub use keys::{KeyError, KeyRing};
pub use links::Talk;
pub use memory::{give_memory_back_at_rest, keep_large_buffers};
pub use node::{Node, NodeStatus, Publisher, StartError};
pub use paths::whole_path;
pub use peer::{peer_groups, peer_process};
pub use probe::probe_multicast;
pub use rings::{RingsConfig, RingsDelivery, RingsNode};
pub use seal::{Keys, KeysInUse};
pub use slices::ask_for_short_slices;
pub use sockets::{DatagramSize, PathMtu, SocketError, Sockets};
pub use stats::NetStats;
pub use sys::{WakeFd, monotonic, new_process, random_u64, set_realtime};
