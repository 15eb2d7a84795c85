//! Several rings in one process, whose messages come in one order: [`RingsNode`].
//!
//! All rings of a process run in one thread, each an engine with sockets of its own; what they deliver is merged there
//! ([`rota_multiring::Merge`]) and handed to the application. Two processes that both have two rings deliver the messages of these in the same order,
//! whatever else they have.
//!
//! | where | what |
//! |---|---|
//! | `above` | the application of the library, in the rings' thread |
//! | `accounts` | what is to be ordered about what rings may forget |
//! | `app` | what runs above the rings, in their thread |
//! | `changes` | subscriptions of a partition that change while its processes run |
//! | `charter_file` | the charters of rings on a node's disk |
//! | `config` | a configuration with `[[ring]]` sections, and that of each ring |
//! | `driver` | the rings in the thread that calls it, and what they tell each other there |
//! | `founding` | rings that are founded while processes run |
//! | `foundings` | the same, as the library has it |
//! | `hub` | what the rings of a process deliver, merged |
//! | `lane` | what runs above one of the rings |
//! | `new_rings` | the rings that were founded, as a process has them |
//! | `node` | the library: [`RingsNode`] |
//! | `opening` | the opening of the rings, and what the application begins with |
//! | `section` | a `[[ring]]` section |
//! | `trace` | what such a process sees, for `rota check` |
//! | `waits` | how long messages of a ring wait for other rings |
//! | `ways` | the ways from any thread to the rings |

mod above;
mod accounts;
mod app;
mod changes;
mod charter_file;
mod config;
mod driver;
mod error;
mod founding;
mod foundings;
mod hub;
#[cfg(test)]
mod hub_tests;
mod lane;
mod new_rings;
#[cfg(test)]
mod new_rings_tests;
mod node;
mod opening;
mod section;
mod trace;
mod waits;
mod ways;

pub use app::RingsApp;
pub use charter_file::CharterFileError;
pub use config::RingsConfig;
pub(crate) use config::mark;
pub use driver::{RingsDriver, RingsStatus};
pub use error::{RingsError, RingsStartError};
pub use foundings::{FoundError, Founding};
pub use new_rings::FoundedRing;
pub use node::{RingsNode, RingsPublisher, RingsWatch};
pub use rota_multiring::Charter;
pub use rota_multiring::RingsDelivery;
pub use section::{LevelingName, RingSection};
pub use trace::StateSource;
pub use waits::MergeWait;
