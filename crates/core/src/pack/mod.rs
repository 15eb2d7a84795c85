//! Packing of small messages and fragmentation of large ones, between submission and engine
//! (thesis §6.1.3): one packet is one datagram, so that the windows count what the network carries.
//!
//! [`Outbox`] turns submitted messages into frames as late as possible: the last frame stays open
//! until an engine takes it, so messages that wait together travel together. [`Inbox`] turns
//! delivered frames back into messages.

mod inbox;
mod outbox;

pub use inbox::{Inbox, InboxError, MOST_MESSAGE_BYTES, Unpacked};
pub use outbox::{OutFrame, Outbox};
