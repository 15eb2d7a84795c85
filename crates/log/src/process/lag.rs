//! The lag of the thread of the clients: with many readers of everything, readers wait for more at once, so that
//! writers have their turn.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The time between two measurements.
const LOOK: Duration = Duration::from_millis(5);
/// The lateness below which a timer counts as in time: timers are that coarse.
const NOISE: Duration = Duration::from_millis(2);
/// The longest pause of a reader.
const MOST: Duration = Duration::from_millis(50);

/// The lag of a thread, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Lag(AtomicU64);

impl Lag {
    /// Measures the lag, for ever, in the thread of the clients.
    pub(super) async fn watch(&self) {
        loop {
            let due = Instant::now() + LOOK;
            sleep(LOOK).await;
            let late = due.elapsed().saturating_sub(NOISE).as_micros() as u64;
            // The mean of the old value and the new one.
            self.0
                .store(u64::midpoint(self.0.load(Relaxed), late), Relaxed);
        }
    }

    /// The pause of a reader before it takes the entries that have come.
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
