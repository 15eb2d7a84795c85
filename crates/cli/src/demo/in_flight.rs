//! A node's own messages on their way: submitted, and not delivered here yet.

use std::collections::VecDeque;

use rota_bench::Latencies;
use rota_core::contract::Time;

/// Bytes submitted and not yet delivered here: enough for several visits of the token. More would
/// only wait, and show as latency.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes that a message counts beside its payload, so that empty ones are bounded as well.
const MESSAGE_BYTES: usize = 32;

/// Own messages, the window for them, and the time that they take.
#[derive(Debug)]
pub struct InFlight {
    /// Messages so far.
    sent: u64,
    /// The submission time of each message from counter `oldest` on; taken out on delivery.
    submitted: VecDeque<Option<Time>>,
    oldest: u64,
    bytes: usize,
    latencies: Latencies,
    started: Option<Time>,
}

impl InFlight {
    /// No message was submitted.
    pub fn new() -> Self {
        Self {
            sent: 0,
            submitted: VecDeque::new(),
            oldest: 1,
            bytes: 0,
            latencies: Latencies::new(),
            started: None,
        }
    }

    /// Whether another message may be submitted.
    pub const fn is_open(&self) -> bool {
        self.bytes < WINDOW_BYTES
    }

    /// Messages submitted so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// When the first message was submitted.
    pub const fn started(&self) -> Option<Time> {
        self.started
    }

    /// The times from submit to delivery.
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// A message with so many bytes is submitted.
    pub fn on_submitted(&mut self, now: Time, bytes: usize) {
        self.submitted.push_back(Some(now));
        self.started.get_or_insert(now);
        self.bytes += bytes + MESSAGE_BYTES;
        self.sent += 1;
    }

    /// The message with this counter is delivered.
    pub fn on_delivered(&mut self, now: Time, counter: u64, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes + MESSAGE_BYTES);
        let index = counter
            .checked_sub(self.oldest)
            .and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.submitted.get_mut(index));
        if let Some(at) = slot.and_then(Option::take) {
            self.latencies.record(now.since(at));
        }
        while let Some(None) = self.submitted.front() {
            self.submitted.pop_front();
            self.oldest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_opens_again_with_deliveries_and_each_message_is_timed_once() {
        let mut messages = InFlight::new();
        assert_eq!(messages.started(), None);
        let half = WINDOW_BYTES / 2;
        messages.on_submitted(Time(5), half);
        assert!(messages.is_open());
        messages.on_submitted(Time(7), half);
        assert!(!messages.is_open());
        assert_eq!((messages.sent(), messages.started()), (2, Some(Time(5))));
        messages.on_delivered(Time(17), 2, half);
        messages.on_delivered(Time(25), 1, half);
        assert!(messages.is_open());
        assert_eq!(messages.latencies().len(), 2);
        messages.on_delivered(Time(30), 1, half);
        assert_eq!(messages.latencies().len(), 2);
    }
}
