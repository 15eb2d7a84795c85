//! The blocking client.
//!
//! [`Client`] is a [`Sender`] and a [`Receiver`] in one hand. [`Wait`] is the way of a sender to wait: a whole client
//! reads meanwhile, a sender that was split off waits for its receiver.

mod builder;
mod client;
mod dial;
mod link;
mod receiver;
mod reconnecting;
mod sender;
mod shared;
mod stepwise;

pub use builder::Builder;
pub use client::{Client, Messages};
pub use receiver::Receiver;
pub use reconnecting::Reconnecting;
pub use sender::Sender;
pub use stepwise::{GroupSizes, Pending};
