//! The context that every part of a process knows.

use super::config::URingConfig;
use rota_core::contract::{Process, Time};

/// See the module's page.
#[derive(Debug)]
pub struct Context {
    pub settings: URingConfig,
    /// This process.
    pub me: Process,
    /// The time at which the engine was last told something.
    pub now: Time,
}
