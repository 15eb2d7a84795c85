//! An estimate of a link's capacity from losses: for links whose capacity nobody has configured, and for links that
//! others use, too (the extensions that FastCast's conclusion asks for).

use alloc::collections::BTreeSet;

use super::Capacity;
use crate::contract::Time;

const MILLIS: u64 = 1_000_000;

/// The interval over which received and lost packets are added up, in nanoseconds: longer than lost packets take to be
/// sent again.
const INTERVAL: u64 = 50 * MILLIS;

/// Losses count only if more than one packet in this number is lost, and more than [`FEW`].
const RARE: u64 = 200;

/// The number of lost packets up to which losses say nothing.
const FEW: u64 = 4;

/// The least capacity that is believed of a link, in bits per second.
const LEAST: u64 = 10_000_000;

/// The eighths of the rate at which packets got lost that are believed to get through.
const EIGHTHS: u64 = 7;

/// The estimate of the capacity of one member's link, which follows the packets that come in by it.
///
/// If packets get lost, the link is believed to take in seven eighths of the rate meanwhile. From then on the estimate
/// grows: quickly far below the rate that lost packets, slowly around it, quickly above, and hardly while too little
/// comes to show anything.
#[derive(Clone, Debug)]
pub struct Estimate {
    most: u64,
    now: u64,
    /// The rate at which packets got lost last.
    lossy: Option<u64>,
    /// The current interval: its beginning, the bytes and packets that came, and the packets that got lost.
    began: Time,
    bytes: u64,
    packets: u64,
    lost: u64,
    /// The lost packets of the interval: their senders and their numbers.
    missing: BTreeSet<(usize, u64)>,
    /// Losses may still come from the rate before.
    settling: bool,
    losses: Losses,
}

/// The losses that an [`Estimate`] has seen since it began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Losses {
    /// Packets that got lost, in all intervals that are over.
    pub packets: u64,
    /// The number of intervals with losses after which the estimate was lowered.
    pub lowered: u64,
}

impl Estimate {
    /// The estimate of a link that takes in `most`; without losses that is believed.
    pub fn new(now: Time, most: Capacity) -> Self {
        let most = most.bits_per_second();
        Self {
            most,
            now: most,
            lossy: None,
            began: now,
            bytes: 0,
            packets: 0,
            lost: 0,
            missing: BTreeSet::new(),
            settling: false,
            losses: Losses::default(),
        }
    }

    /// The losses since the estimate began.
    pub const fn losses(&self) -> Losses {
        self.losses
    }

    /// The estimated capacity.
    pub fn capacity(&self) -> Capacity {
        Capacity::new(self.now)
    }

    /// A view begins: packets from before say nothing of what comes now, and none came since.
    pub fn restart(&mut self, now: Time) {
        self.begin(now);
        self.settling = false;
    }

    fn begin(&mut self, now: Time) {
        self.began = now;
        (self.bytes, self.packets, self.lost) = (0, 0, 0);
        self.missing.clear();
    }

    /// A packet of `bytes` bytes came for the first time; `missing` names it if it had been missing and requested.
    pub fn on_packet(&mut self, now: Time, bytes: usize, missing: Option<(usize, u64)>) {
        if self.packets == 0 {
            // Nothing came before that, which says nothing of the link.
            self.began = self.began.max(now);
        }
        self.packets += 1;
        self.bytes += bytes as u64;
        self.lost += u64::from(missing.is_some());
        self.missing.extend(missing);
    }

    /// A packet came again. If it had been missing, it was only late; others may have been sent again for other
    /// members.
    pub fn on_again(&mut self, which: (usize, u64)) {
        let was_late = self.missing.remove(&which);
        self.lost = self.lost.saturating_sub(u64::from(was_late));
    }

    /// Looks at an interval that is over; returns whether the estimate has changed.
    pub fn observe(&mut self, now: Time) -> bool {
        let length = now.since(self.began);
        if length < INTERVAL {
            return false;
        }
        let rate = u128::from(self.bytes) * 8_000_000_000 / u128::from(length);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        let before = self.now;
        let lossy = self.lost > FEW && self.lost.saturating_mul(RARE) > self.packets;
        match (lossy, self.settling) {
            (true, false) => self.lower(rate),
            (true, true) => self.settling = false,
            (false, _) => self.raise(rate),
        }
        self.losses.packets += self.lost;
        self.losses.lowered += u64::from(self.now < before);
        self.begin(now);
        self.now != before
    }

    /// The time at which to call [`Self::observe`] at the latest; `None` while there is nothing to find out.
    pub fn next_time(&self) -> Option<Time> {
        let open = self.packets > 0 || self.now < self.most;
        open.then(|| self.began.after(INTERVAL))
    }

    fn lower(&mut self, rate: u64) {
        let rate = rate.min(self.now);
        self.lossy = Some(rate);
        self.now = (rate / 8 * EIGHTHS).max(LEAST).min(self.now);
        self.settling = true;
    }

    fn raise(&mut self, rate: u64) {
        self.settling = false;
        let lossy = self.lossy.unwrap_or(u64::MAX);
        let part = if rate < self.now / 2 {
            512
        } else if self.now < lossy / 16 * 15 {
            16
        } else if self.now < lossy.saturating_add(lossy / 16) {
            256
        } else {
            32
        };
        self.now = self.now.saturating_add(self.now / part).min(self.most);
    }
}
