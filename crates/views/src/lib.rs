//! Uniform total order in primary views: the common part of FastCast and LCR (FastCast §3.4).
//!
//! A [`DataPath`] orders packets within one view. Beside it runs an idle ring of this project's own
//! membership, which detects failures and says which configurations are primary: those are the views.
//! `docs/protocols/views.md` has the rules of the change from one view to the next.
//!
//! | file | holds |
//! |---|---|
//! | `engine` | [`ViewEngine`]: one view after the other |
//! | `change` | the way from a primary configuration to a view, step by step |
//! | `driven` | the engine as its driver sees it |
//! | `path` | [`DataPath`]: the contract of a protocol that orders within a view |
//! | `backlog` | the messages that this process has to send |
//! | `account` | deliveries: from packets to messages |
//! | `watermarks` | for each process, the last message that was delivered |
//! | `exchange` | the exchange of a configuration: its members tell each other which packets they hold |
//! | `message` | the words of the exchange, as bytes |
//! | `names` | the names and places of packets, as bytes |
//! | `outcome` | the outcome of an exchange, the same at all members |
//! | `memory` | the memory of a process of its views, and its deliveries when one ends |
//! | `quorum` | the quorum of members that remember |
//! | `standstill` | an application that hangs, and a view in which nothing moves |
//!
//! Nothing here has a socket, a clock, a thread or a file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod backlog;
mod beside;
mod change;
mod driven;
mod engine;
mod exchange;
pub mod fastcast;
pub mod lcr;
mod memory;
mod message;
mod names;
mod outcome;
mod path;
mod quorum;
mod standstill;
#[cfg(test)]
mod tests;
mod watermarks;

pub use backlog::Backlog;
pub use beside::ring_beside;
pub use engine::ViewEngine;
pub use message::WORD_BYTES;
pub use path::{DataPath, Frozen, Held, Link, Load, Packet, PacketId, View};
