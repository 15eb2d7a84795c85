//! Total order on a ring: the Accelerated Ring and the original Totem ring (thesis ch. 3,
//! report §III).
//!
//! A token goes round. Whoever holds it numbers its waiting packets and multicasts them; in the
//! accelerated protocol part of them leave *after* the token, so that the next member starts while
//! this one is still sending. The token also says what everybody has (`aru`), what somebody misses
//! (`rtr`) and how much was sent in the last rotation (`fcc`).
//!
//! [`RingEngine`] is the engine; [`Ordering`] is the protocol on one installed ring. Forming rings is `membership`'s
//! business. What happens at a token is in `visit`, one step a function; the pieces it works with are small rooms of
//! their own:
//!
//! | file | holds |
//! |---|---|
//! | `visit` | what a member does with the token, step by step |
//! | `membership` | who is on the ring |
//! | `slot` | what is kept of a packet (in [`rota_core::buffer`], by sequence number) |
//! | `aru` | the rules for the token's aru |
//! | `flow` | how much may be sent |
//! | `agreed` | what members have in force in common, however each is configured |
//! | `requests` | what the token asks to be sent again |
//! | `delivery` | which packet may be delivered next |
//! | `hand_out` | from ordered packets to messages, and the ring of one |
//! | `priority` | token or data: what to read first |
//! | `resend` | repeating a token that may be lost |
//! | `receive` | packets that come in |
//! | `recovering` | the first rotations, in which packets of old rings go round |
//! | `change` | what membership does with a ring: ask it, end it, install it |
//! | `deaf` | who holds everybody back by missing the same packet for ever, and who is not heard |
//! | `ill` | which member is ill, by `deaf` and `lossy` |
//! | `lossy` | who loses much that the others get |
//! | `idle` | holding the token of a ring that has nothing to do |
//! | [`wire`] | the ring's datagrams |
//!
//! What every packet goes through on its way in and out is marked `inline(always)`, here and in `wire`: between two functions
//! a packet's hundred bytes go through memory, and reading them whole just after they were written in parts takes longer than
//! what the functions do.
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
mod hand_out;
mod idle;
mod ill;
mod invariants;
mod lossy;
mod membership;
mod ordering;
mod patience;
mod priority;
mod receive;
mod recovering;
#[cfg(test)]
mod recovery_tests;
mod requests;
mod resend;
mod slot;
mod visit;
pub mod wire;

pub(crate) use change::{Ended, OldPacket};
pub use config::{PriorityMethod, Protocol, RingConfig, RingConfigError};
pub use counters::Counters;
pub use membership::{ELECTORATES_LOG, RING_SEQ_LOG, RingEngine};
pub(crate) use ordering::send_to;
pub use ordering::{Context, Ordering};
