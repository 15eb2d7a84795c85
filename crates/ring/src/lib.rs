//! Total order on a ring: the Accelerated Ring and the original Totem ring (thesis ch. 3,
//! report §III).
//!
//! A token goes round. Its holder numbers its waiting packets and multicasts them; in the accelerated protocol part of
//! them leave *after* the token, so that the next member starts while this one is still sending. The token also carries
//! the sequence number up to which all members have every packet (`aru`), the packets that some member lacks (`rtr`)
//! and the number of packets sent in the last rotation (`fcc`).
//!
//! [`RingEngine`] is the engine; [`Ordering`] is the protocol on one installed ring. Module `membership` forms rings.
//! Module `visit` has the visit of the token, one function for each step. A ring is made of a few machines, each with
//! state of its own:
//!
//! | file | holds |
//! |---|---|
//! | `visit` | the visit of the token at a member, step by step |
//! | `membership` | the forming of rings: the members of each, and the end of the ring before |
//! | `ordering` | a member's part of one ring: packets, messages and times come in here |
//! | `change` | the operations of membership on a ring: to query it, to end it, to install it |
//! | `roster` | the members of a ring, and the place of one of them |
//! | `packets` | packets from receipt until all have them and they are delivered; their messages |
//! | `requests` | the requests of a member for packets that it lacks; the token's list of them |
//! | `flow` | flow control: the number of packets that may be sent |
//! | `rotation` | the token as it goes round past a member: new, sent on, held, lost |
//! | `deaf` | the detection of a member that lacks the same packet for ever, and of one that is not heard |
//! | `recovering` | the first rotations, in which packets of old rings go round |
//!
//! and of smaller ones, each part of one of these:
//!
//! | file | holds |
//! |---|---|
//! | `slot` | the entry of a packet (in [`rota_core::buffer`], by sequence number) |
//! | `stability` | the safe line: packets that all members are known to have |
//! | `delivery` | the choice of the packet that may be delivered next |
//! | `aru` | the rules for the token's aru |
//! | `windows` | the bounds on the packets that may be sent |
//! | `agreed` | the settings in force on a ring, however each member is configured |
//! | `patience` | the delay before a missing packet is requested |
//! | `lossy` | the detection of a member that loses much that the others get |
//! | `priority` | the choice of the class to read first, token or data |
//! | `resend` | a token that may be lost: when to send it again, and when the ring counts as broken |
//! | `idle` | the hold of the token of an idle ring |
//! | [`wire`] | the ring's datagrams |
//!
//! The functions that every packet passes on its way in and out are marked `inline(always)`, here and in `wire`:
//! between two functions a packet's hundred bytes go through memory, and reading them whole just after they were
//! written in parts takes longer than the work of the functions.
//!
//! Nothing here has a socket, a clock, a thread or a file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agreed;
mod aru;
mod change;
mod config;
mod counters;
mod deaf;
mod delivery;
mod flow;
mod idle;
mod lossy;
mod membership;
mod ordering;
mod packets;
mod patience;
mod priority;
mod recovering;
#[cfg(test)]
mod recovery_tests;
mod requests;
mod resend;
mod roster;
mod rotation;
mod slot;
mod stability;
mod visit;
mod windows;
pub mod wire;

pub(crate) use change::{Ended, OldPacket};
pub use config::{PriorityMethod, Protocol, RingConfig, RingConfigError};
pub use counters::Counters;
pub use membership::{ELECTORATES_LOG, RING_SEQ_LOG, RingEngine};
pub use ordering::Ordering;
pub(crate) use ordering::{Context, send_to};
pub use windows::Windows;
