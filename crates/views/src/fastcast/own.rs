//! The packets of this member on their way: the number that was sent, and the window.

use alloc::collections::VecDeque;

use super::FastConfig;
use rota_core::contract::Seq;

/// Packets that the window has to let through before a burst is worth it.
const WINDOW_STEP: u64 = 16;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Own {
    /// The most packets that may be under way.
    window: u32,
    /// The last that was sent.
    sent: u64,
    /// All members have acknowledged the packets up to here.
    acked: u64,
    /// All members have delivered the packets up to here.
    released: u64,
    /// The known places of the packets above `released`.
    places: VecDeque<Seq>,
    /// Whether the window kept packets back.
    blocked: bool,
    /// Whether the rate kept packets back: a burst will leave, and take control with it.
    held: bool,
}

impl Own {
    /// None was sent.
    pub const fn new(config: &FastConfig) -> Self {
        Self {
            window: config.window,
            sent: 0,
            acked: 0,
            released: 0,
            places: VecDeque::new(),
            blocked: false,
            held: false,
        }
    }

    /// The number of packets that the window still lets through.
    pub const fn room(&self) -> u64 {
        let window = self.window as u64;
        window.saturating_sub(self.sent - self.released)
    }

    /// The number of packets that it has to let through before a burst is worth it.
    pub fn step(&self) -> u64 {
        WINDOW_STEP.min(u64::from(self.window / 4)).max(1)
    }

    /// A fourth of the window, in packets.
    pub fn quarter(&self) -> u64 {
        u64::from(self.window / 4).max(1)
    }

    /// Whether packets that the window kept back may leave now.
    pub fn is_unblocked(&self) -> bool {
        self.blocked && self.room() >= self.step()
    }

    /// Whether the window keeps packets back.
    pub const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The window keeps packets back, or it does not. Returns whether it did before.
    pub const fn block(&mut self, blocked: bool) -> bool {
        core::mem::replace(&mut self.blocked, blocked)
    }

    /// Whether the rate keeps packets back.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// The rate keeps packets back, or it does not.
    pub const fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Whether packets are under way.
    pub const fn is_in_flight(&self) -> bool {
        self.sent > self.acked
    }

    /// The number of the last packet that was sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// All members have acknowledged the packets up to here.
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// The next packet is sent. Returns its number.
    pub const fn send(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// The next packet without a known place has this one.
    pub fn on_place(&mut self, seq: Seq) {
        self.places.push_back(seq);
    }

    /// All members have acknowledged the places up to `ready`, and delivered those up to `released`.
    pub fn settle(&mut self, ready: Seq, released: Seq) {
        while let Some(&seq) = self.places.get((self.acked - self.released) as usize)
            && seq <= ready
        {
            self.acked += 1;
        }
        while self.acked > self.released
            && let Some(&seq) = self.places.front()
            && seq <= released
        {
            self.places.pop_front();
            self.released += 1;
        }
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.acked <= self.sent, "what was acknowledged was sent");
        assert!(
            self.released <= self.acked,
            "what was delivered by all was acknowledged by all"
        );
        assert!(
            self.places.len() as u64 <= self.sent - self.released,
            "places are of what is on its way"
        );
    }
}
