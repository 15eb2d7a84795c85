//! Sockets for Rota's nodes.
//!
//! The engines decide; this crate moves what they say. It owns UDP sockets, links, the monotonic clock, keys, and with them
//! most `unsafe` code of the project.
//!
//! Reading order: [`socket`] and [`Sockets`] move bursts; [`links`] are reliable, over TCP; [`seal`] guards what arrives;
//! [`fault`] loses datagrams on purpose; [`Network`] is what all of them are told.
//!
//! The unit of the data path is the burst, never the packet: a wake-up or a system call costs more
//! than copying a whole burst.

mod complaints;
mod epoll;
pub mod fault;
mod interfaces;
pub mod keys;
pub mod links;
mod memory;
mod message;
pub mod mutants;
mod names;
mod network;
mod origin;
mod paths;
mod peer;
mod pool;
pub mod private;
mod probe;
mod runs;
pub mod seal;
mod slab;
mod slices;
pub mod socket;
pub mod sockets;
mod stamps;
mod stats;
mod sys;

pub use complaints::Complaints;
pub use fault::FaultConfig;
pub use keys::{KeyError, KeyRing};
pub use links::{Hearing, Landing, RpcConnection, Saying};
pub use memory::{give_memory_back_at_rest, keep_large_buffers};
pub use names::look_up;
pub use network::{Network, NodeAddress, Transport, Tuning};
pub use origin::is_meant_for;
pub use paths::whole_path;
pub use peer::{peer_groups, peer_process};
pub use probe::probe_multicast;
pub use seal::{Keys, KeysInUse};
pub use slices::{ask_for_short_slices, ask_not_to_interrupt};
pub use sockets::{MOST_NOTICE_BYTES, NOTICE, NOTICE_HEADER_BYTES, PathMtu, SocketError, Sockets};
pub use stamps::FileStamps;
pub use stats::NetStats;
pub use sys::{
    WakeFd, effective_user, interface_index, is_realtime, monotonic, new_process, poll, random_u64,
    realtime_nanos, set_realtime,
};
