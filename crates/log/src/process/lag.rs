//! How late the thread of the clients is: when many readers are told of everything, they are told of more at once, so that writers have their turn.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(5);
/// Less is no lateness: timers are that coarse.
const NOISE: Duration = Duration::from_millis(2);
/// Readers wait no longer.
const MOST: Duration = Duration::from_millis(50);

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Lag(AtomicU64);

impl Lag {
    /// Looks, for ever, in the thread of the clients.
    pub(super) async fn watch(&self) {
        loop {
            let due = Instant::now() + LOOK;
            sleep(LOOK).await;
            let late = due.elapsed().saturating_sub(NOISE).as_micros() as u64;
            // Half of what it was, and half of what it is.
            self.0
                .store(u64::midpoint(self.0.load(Relaxed), late), Relaxed);
        }
    }

    /// So long a reader waits before it is told of what has come.
    pub(super) fn pause(&self) -> Duration {
        Duration::from_micros(4 * self.0.load(Relaxed)).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_wait_as_long_as_the_thread_is_late_and_not_longer_than_a_little() {
        let lag = Lag::default();
        assert_eq!(lag.pause(), Duration::ZERO);
        lag.0.store(1_000, Relaxed);
        assert_eq!(lag.pause(), Duration::from_millis(4));
        lag.0.store(1 << 40, Relaxed);
        assert_eq!(lag.pause(), MOST);
    }
}
