//! Uniform total order in primary views: what FastCast and LCR have in common (FastCast §3.4).
//!
//! A [`DataPath`] orders packets within one view. Beside it runs an idle ring of this project's own
//! membership, which detects failures and says which configurations are primary: those are the views.
//! `docs/protocols/views.md` has the rules of the change from one view to the next.
//!
//! | file | holds |
//! |---|---|
//! | `engine` | [`ViewEngine`]: one view after the other |
//! | `change` | from a primary configuration to a view, step by step |
//! | `driven` | the engine as its driver sees it |
//! | `path` | [`DataPath`]: what a protocol has to be that orders within a view |
//! | `backlog` | what this process has to send |
//! | `account` | what was delivered: from packets to messages |
//! | `watermarks` | of each process, the last message that was delivered |
//! | `exchange` | how far members are with telling each other what they hold |
//! | `message` | the bytes of that |
//! | `names` | those of what packets are called and where they stand |
//! | `outcome` | what follows from it, the same at all members |
//! | `memory` | what a process knows of its views, and what it delivers when one ends |
//! | `quorum` | whether enough members remember |
//! | `standstill` | an application that hangs, and a view in which nothing moves |
//!
//! Nothing here has a socket, a clock, a thread or a file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod backlog;
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
pub use engine::ViewEngine;
pub use message::WORD_BYTES;
pub use path::{DataPath, Frozen, Held, Link, Load, Packet, PacketId, View};
