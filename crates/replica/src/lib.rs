//! Replicated, partitioned state machines over several rings (Benz et al. 2014, §5, §6).
//!
//! A partition is a state that several replicas have. Each applies the commands of the partition's rings in their one order, so all have the same state
//! at the same place. A command that goes to a ring that several partitions have is applied by all of them, at one place of the order of everything.
//!
//! ```no_run
//! use std::io;
//! use std::time::Duration;
//!
//! use rota_core::contract::NodeId;
//! use rota_multiring::Rank;
//! use rota_node::RingsConfig;
//! use rota_replica::{Command, Machine, Replica, ReplicaConfig};
//!
//! /// A number that commands add to.
//! #[derive(Default)]
//! struct Sum(u64);
//!
//! impl Machine for Sum {
//!     type Frozen = Vec<u8>;
//!
//!     fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
//!         self.0 += command.bytes.len() as u64;
//!         self.0.to_le_bytes().to_vec()
//!     }
//!
//!     fn freeze(&mut self) -> Vec<u8> {
//!         self.0.to_le_bytes().to_vec()
//!     }
//!
//!     fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
//!         let mut bytes = [0; 8];
//!         state.read_exact(&mut bytes)?;
//!         self.0 = u64::from_le_bytes(bytes);
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rings = RingsConfig::from_toml(&std::fs::read_to_string("rota.toml")?)?;
//! let node = NodeId::new(1).ok_or("no node")?;
//! let config = ReplicaConfig::new(rings, node, (1, &[1, 2]), "/var/lib/sum".into());
//! let replica = Replica::start(&config, Sum::default())?;
//! let second = Duration::from_secs(1);
//! let mut client = replica.client(second)?;
//! let answer = client.call(Rank(1), b"twelve bytes", second)?;
//! println!("{answer:?}");
//! # Ok(())
//! # }
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`Machine`], [`Frozen`] | what is replicated, and how its state is kept |
//! | [`Replica`] | a replica in this process |
//! | [`Client`] | a session: commands that count once |
//! | [`Orders`] | commands that are given once, and whose answers are called for |
//! | [`Ready`] | whether a replica has caught up |
//! | [`sessions`] | the same, as a part of the state |

#![forbid(unsafe_code)]

/// The examples of the manual compile: this crate is the one that may use all the others that they use.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
mod guide {}

/// Likewise the example of the first page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

mod account;
mod checkpoint;
mod client;
mod command;
mod config;
mod door;
mod error;
mod keeper;
mod kept;
mod machine;
#[cfg(feature = "mutants")]
pub mod mutants;
mod orders;
mod peers;
mod ready;
mod recover;
mod replica;
pub mod sessions;
mod shared;
#[cfg(test)]
mod shared_tests;

pub use client::Client;
pub use config::ReplicaConfig;
pub use error::{CallError, StartError};
pub use machine::{Command, Frozen, Machine};
pub use orders::Orders;
pub use ready::{Given, Ready};
pub use replica::{Replica, ReplicaStatus};
pub use shared::Counts;
