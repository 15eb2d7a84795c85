//! The family of time-outs, as a configuration names it.

use rota_core::timing::{Timers, Timing};
use serde::{Deserialize, Serialize};

/// The family of time-outs that fits the network and its hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimingName {
    /// Dedicated cores on one switch.
    LanFast,
    /// Data centers.
    #[default]
    Default,
    /// Crowded or virtual hosts, wide areas.
    Relaxed,
}

impl TimingName {
    /// The time-outs of this family for so many nodes.
    pub(super) fn timers(self, nodes: usize) -> Timers {
        let timing = match self {
            Self::LanFast => Timing::LanFast,
            Self::Default => Timing::Default,
            Self::Relaxed => Timing::Relaxed,
        };
        Timers::derive(timing, nodes)
    }
}
