//! A node: its configuration, its loop, and [`Node`], the library for applications.
//!
//! The engines decide and `rota-net` moves bytes; this crate brings them together. Reading order: [`Node`] is what an
//! application uses; [`driver`] is the loop that keeps the contract's law; [`rings`] runs several rings in one loop.

pub mod config;
pub mod coordination;
pub mod driver;
mod engine;
pub mod members;
pub mod node;
pub mod rings;
pub mod trace;
mod voters;

pub use config::{
    ConfigError, CoordinationName, DIFFERENCES, DatagramSize, Difference, DifferencesTable,
    EngineName, HostError, NodeConfig, Outcome, PaxosConfig, PrimaryName, ResetPrimary, TimingName,
    VoteStorage, path_of,
};
pub use coordination::{Coordination, CoordinationError, Etcd, EtcdFileError, EtcdLogin, EtcdTls};
pub use driver::{App, Driver, DriverError, Submitter, TokenTimes, watched_counters};
pub use engine::NodeEngine;
pub use members::{MemberFile, MemberFileError, MemberList};
pub use node::{Node, NodeStatus, Publisher, StartError};
pub use rings::{RingsConfig, RingsDelivery, RingsNode};
pub use voters::{VoterChange, VoterError, Voters};
