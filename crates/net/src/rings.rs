//! Several rings in one process, whose messages come in one order: [`RingsNode`].
//!
//! All rings of a process run in one thread, each an engine with sockets of its own; what they deliver is merged there
//! ([`rota_multiring::Merge`]) and handed to the application. Two processes that both have two rings deliver the messages of these in the same order,
//! whatever else they have.
//!
//! | where | what |
//! |---|---|
//! | `config` | a configuration with `[[ring]]` sections, and that of each ring |
//! | `hub` | what the rings of a process deliver, merged |
//! | `lane` | what runs above one of the rings |
//! | `node` | the library: [`RingsNode`] |
//! | `turns` | the thread, and what rings tell each other in it |

mod config;
mod error;
mod hub;
mod lane;
mod node;
mod turns;

pub(crate) use config::mark;
pub use config::{LevelingName, RingSection, RingsConfig};
pub use error::{RingsError, RingsStartError};
pub use hub::RingsDelivery;
pub use node::{RingsNode, RingsPublisher, RingsStatus};
