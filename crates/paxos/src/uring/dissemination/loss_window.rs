//! The own values that may be under way with multicast: fewer after losses anywhere, and more as values count.

use super::super::config::URingConfig;
use rota_core::contract::Time;

/// See the module's page.
#[derive(Debug)]
pub struct LossWindow {
    bytes: usize,
    most: usize,
    /// One value may always be under way.
    least: usize,
    /// The time at which it was last made smaller.
    slowed: Time,
}

impl LossWindow {
    /// As wide as is set.
    pub const fn new(settings: &URingConfig) -> Self {
        Self {
            bytes: settings.proposer.window_bytes,
            most: settings.proposer.window_bytes,
            least: settings.proposer.frame_bytes,
            slowed: Time(0),
        }
    }

    /// Own values that may be under way now, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Halves the window, as values had to be asked for somewhere, but not twice for what may be the same loss.
    pub fn slow_down(&mut self, now: Time, pause: u64) {
        if now >= self.slowed.after(pause) {
            self.slowed = now;
            self.bytes = (self.bytes / 2).max(self.least);
        }
    }

    /// Own values have counted: the window grows by one value for each window of them.
    pub fn on_counted(&mut self, bytes: usize) {
        let more = (self.least * bytes).div_ceil(self.bytes.max(1));
        self.bytes = (self.bytes + more).min(self.most);
    }

    /// Its invariants.
    pub fn check(&self) {
        let most = self.most.max(self.least);
        assert!(self.bytes <= most, "no more is under way than may be");
        let least = self.least.min(self.most);
        assert!(self.bytes >= least, "one value may always be");
    }
}
