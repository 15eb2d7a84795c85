//! The analytical model of the original and the accelerated ring (thesis ch. 4): the time of a rotation, the
//! throughput, and the delay of a message until its delivery, at a light and at full load.
//!
//! The model knows a time to send and a time to arrive, and nothing else: no loss, no queue, no bound of a link or a
//! processor. [`Bounds`] adds the missing bounds, and [`at_rate`] a load between the two; both are ours, not the
//! thesis's.
//!
//! All times are microseconds, all rates Mbit/s of payload (10⁶ bits), clean of headers.

#![no_std]

mod bounds;
mod delays;
mod measured;
mod rate;
mod ring;

pub use bounds::Bounds;
pub use delays::{Delays, Load, agreed, average_broadcast, head_start, safe, safe_exact};
pub use measured::{MEASURED, Measured, Network, judge};
pub use rate::{AtRate, at_rate};
pub use ring::{Error, Protocol, Ring};
