//! FastCast: a fixed sequencer, packets by multicast from all members at once, and delivery when all have acknowledged
//! (G. Berthou and V. Quéma, *FastCast*, Middleware 2013, §3.3 and figure 2).
//!
//! [`FastCast`] is the data path of a view; the root of the crate changes views. `docs/protocols/fastcast.md` has the
//! protocol as it works here, and its differences from the paper.
//!
//! | file | holds |
//! |---|---|
//! | `path` | [`FastCast`]: the calls of a view engine, and the view that is on |
//! | `in_view` | a member in one view, and the packets that may be delivered |
//! | `known` | the packets and places that it knows |
//! | `own` | its own packets on their way, and the window |
//! | `in_view/receive` | datagrams that come in (fig. 2 l. 13 to 28) |
//! | `in_view/flight` | the sending of own packets, in bursts (fig. 2 l. 8 to 12) |
//! | `tell` | the control datagrams of a member (fig. 2 l. 19 and 24) |
//! | `repair` | requests for missing packets, and retransmissions (fig. 2 l. 34 to 37) |
//! | `acks` | the acknowledgements of the members |
//! | `gap` | the times of requests for a gap |
//! | `patience` | round trips, and the waits before messages are repeated |
//! | `gate` | the gate at which bandwidth shares hold packets back (§3.5) |
//! | [`rota_core::shares`] | those shares |

mod acks;
mod config;
mod counters;
mod gap;
mod gate;
mod in_view;
mod known;
mod own;
mod path;
mod patience;
mod repair;
mod tell;
#[cfg(test)]
mod tests;
mod wire;

pub use config::FastConfig;
pub use counters::FastCounters;
pub use path::FastCast;
pub use wire::{FastControl, FastData, FastHead, FastPacket, FastPlaces, FastRequest, FastRun};
