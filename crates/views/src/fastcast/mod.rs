//! FastCast: a fixed sequencer, packets by multicast from everybody at once, and delivery when all have
//! acknowledged (G. Berthou and V. Quéma, *FastCast*, Middleware 2013, §3.3 and figure 2).
//!
//! [`FastCast`] is the data path of a view: changes of views are `crate`' business.
//! `docs/protocols/fastcast.md` says how it works here, and where it differs from the paper.
//!
//! | file | holds |
//! |---|---|
//! | `path` | [`FastCast`]: from the calls of a view engine to the view that is on |
//! | `in_view` | all that a member knows in one view; what may be delivered |
//! | `receive` | datagrams that come in (fig. 2 l. 13 to 28) |
//! | `flight` | packets of its own: when, and how many at once (fig. 2 l. 8 to 12) |
//! | `tell` | what it tells the others, and when (fig. 2 l. 19 and 24) |
//! | `repair` | asking for what is missing, sending again (fig. 2 l. 34 to 37) |
//! | `acks` | what the others have told |
//! | `gap` | when to ask for what is missing |
//! | `patience` | round trips; how long to wait before saying something again |
//! | `gate` | where bandwidth shares hold packets back (§3.5) |
//! | [`rota_core::shares`] | those shares |

mod acks;
mod config;
mod counters;
mod flight;
mod gap;
mod gate;
mod in_view;
mod path;
mod patience;
mod receive;
mod repair;
mod tell;
#[cfg(test)]
mod tests;
mod wire;

pub use config::FastConfig;
pub use counters::FastCounters;
pub use path::FastCast;
pub use wire::{FastControl, FastData, FastHead, FastPacket, FastPlaces, FastRequest, FastRun};
