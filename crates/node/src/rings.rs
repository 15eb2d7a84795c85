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
//! | `changes` | subscriptions of a partition that change while its processes run |
//! | `config` | a configuration with `[[ring]]` sections, and that of each ring |
//! | `driver` | the rings in the thread that calls it, and what they tell each other there |
//! | `hub` | what the rings of a process deliver, merged |
//! | `lane` | what runs above one of the rings |
//! | `node` | the library: [`RingsNode`] |
//! | `opening` | the opening of the rings, and what the application begins with |
//! | `trace` | what such a process sees, for `rota check` |
//! | `waits` | how long messages of a ring wait for other rings |

mod accounts;
mod app;
mod changes;
mod config;
mod driver;
mod error;
mod hub;
#[cfg(test)]
mod hub_tests;
mod lane;
mod node;
mod opening;
mod trace;
mod waits;

pub use app::RingsApp;
pub(crate) use config::mark;
pub use config::{LevelingName, RingSection, RingsConfig};
pub use driver::{RingsDriver, RingsStatus};
pub use error::{RingsError, RingsStartError};
pub use node::{RingsNode, RingsPublisher, RingsWatch};
pub use rota_multiring::RingsDelivery;
pub use trace::StateSource;
pub use waits::MergeWait;
