//! Several rings in one process, whose messages come in one order: [`RingsNode`].
//!
//! All rings of a process run in one thread, each an engine with sockets of its own; what they deliver is merged there
//! ([`rota_multiring::Merge`]) and handed to the application. Two processes that both have two rings deliver the messages of these in the same order,
//! whatever else they have.
//!
//! | where | what |
//! |---|---|
//! | `accounts` | what is to be ordered about what rings may forget |
//! | `app` | what runs above the rings, in their thread |
//! | `config` | a configuration with `[[ring]]` sections, and that of each ring |
//! | `driver` | the rings in the thread that calls it, and what they tell each other there |
//! | `hub` | what the rings of a process deliver, merged |
//! | `lane` | what runs above one of the rings |
//! | `node` | the library: [`RingsNode`] |
//! | `trace` | what such a process sees, for `rota check` |

mod accounts;
mod app;
mod config;
mod driver;
mod error;
mod hub;
mod lane;
mod node;
mod trace;

pub use app::RingsApp;
pub(crate) use config::mark;
pub use config::{LevelingName, RingSection, RingsConfig};
pub use driver::{RingsDriver, RingsStatus};
pub use error::{RingsError, RingsStartError};
pub use node::{RingsNode, RingsPublisher, RingsWatch};
pub use rota_multiring::RingsDelivery;
pub use trace::StateSource;
