//! A rate as bursts: a token bucket that hands out its tokens in pieces (FastCast §3.5: senders that keep to
//! their shares lose nothing, if the buffers of the switch take in what comes at once).

use super::Capacity;
use crate::contract::Time;

/// Credit is counted in bits times nanoseconds per second, so that nothing is ever rounded.
const BYTE: i128 = 8 * 1_000_000_000;

/// No more credit or debt than this, and no more at once: an eighth of the range, so that sums stay in it.
const MOST: i128 = i128::MAX / 8;

/// The time whose bytes at the rate, and a burst, are the most that is owed for repairs, in nanoseconds.
const LONGEST_DEBT: u64 = 100_000_000;

/// The rules by which a rate is cut into bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// The largest burst of a sender that is in time, in bytes; one that is late may send at once what it has earned
    /// since its last. The buffer of each port of the switch has to take in one of each sender at once, and one must be
    /// at least as large as a datagram.
    pub bytes: usize,
    /// The least time from the beginning of a burst to that of the next, in nanoseconds.
    pub gap: u64,
    /// The delay of bursts that may be made up for, in nanoseconds: a timer may come late. The bytes that all senders
    /// make up for at once exceed a link by no more than it takes in during that time, and a burst of each.
    pub late: u64,
}

impl Bursts {
    /// The least time between two bursts, in nanoseconds.
    pub const GAP: u64 = 100_000;

    /// The rules for links of this capacity: bursts of 256 µs of it (32 kB at 1 Gbit/s), at least of 16 KiB; and 2 ms
    /// to make up for.
    pub const fn of(capacity: Capacity) -> Self {
        let bytes = capacity.bits_per_second() / 8 / 1_000_000 * 256;
        Self {
            bytes: if bytes < 16_384 {
                16_384
            } else {
                bytes as usize
            },
            gap: Self::GAP,
            late: 2_000_000,
        }
    }
}

/// A token bucket, which says when a sender may send how many bytes. A new rate counts from the moment it is set.
#[derive(Clone, Debug)]
pub struct Pacer {
    bursts: Bursts,
    /// The rate, in bits per second.
    rate: u64,
    /// The credit, below 0 if more has left than was earned.
    credit: i128,
    /// The repairs that have left and are not paid for: up to half of the earned credit goes there, so that a member
    /// that requests packets again and again takes no more than half of their sender's rate.
    debt: i128,
    /// The time at which `credit` and `debt` were computed.
    at: Time,
    /// The time at which the last burst began, and the bytes that it may still have.
    burst: Option<(Time, usize)>,
}

impl Pacer {
    /// Begins with the credit of one burst, and without a rate.
    pub fn new(now: Time, bursts: Bursts) -> Self {
        Self {
            bursts,
            rate: 0,
            credit: bytes(bursts.bytes),
            debt: 0,
            at: now,
            burst: None,
        }
    }

    /// Sets the rate, in bits per second. Credit of the old rate stays only as far as the new rate could have earned
    /// it.
    pub fn set_rate(&mut self, now: Time, bits_per_second: u64) {
        self.refill(now);
        self.rate = bits_per_second;
        self.credit = self.credit.min(self.most());
        self.debt = self.debt.min(self.most_owed());
    }

    /// Sets the rules by which bursts are cut.
    pub fn set_bursts(&mut self, now: Time, bursts: Bursts) {
        self.refill(now);
        self.bursts = bursts;
        self.credit = self.credit.min(self.most());
    }

    /// The rate that is set, in bits per second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The bytes that may leave now.
    pub fn allowance(&mut self, now: Time) -> usize {
        self.refill(now);
        let room = match self.burst {
            Some((began, left)) if now <= began => left,
            Some((began, _)) if now.since(began) < self.bursts.gap => 0,
            _ => self.largest(now),
        };
        let credit = usize::try_from((self.credit / BYTE).max(0));
        room.min(credit.unwrap_or(usize::MAX))
    }

    /// `count` bytes of a burst leave now.
    pub fn sent(&mut self, now: Time, count: usize) {
        self.owe(now, count);
        let left = match self.burst {
            Some((began, left)) if now.since(began) < self.bursts.gap => {
                self.burst = Some((began, left.saturating_sub(count)));
                return;
            }
            _ => self.largest(now).saturating_sub(count),
        };
        self.burst = Some((now, left));
    }

    /// The largest burst that may begin now, in bytes. A thread that gets a processor only every millisecond would
    /// otherwise send one burst in each, whatever its rate; what all senders make up for at once stays as it is.
    fn largest(&self, now: Time) -> usize {
        let since = self.burst.map_or(0, |(began, _)| now.since(began));
        let earned = product(self.rate, since) / BYTE;
        self.bursts
            .bytes
            .max(usize::try_from(earned).unwrap_or(usize::MAX))
    }

    /// `count` bytes leave now that wait for nothing, as control messages do: bursts after them wait instead.
    pub fn owe(&mut self, now: Time, count: usize) {
        self.refill(now);
        self.credit = (self.credit - bytes(count)).max(-MOST);
    }

    /// `count` bytes leave now that were sent before. They wait for nothing, and half of the credit earned afterwards
    /// does not go to them, either.
    pub fn repaired(&mut self, now: Time, count: usize) {
        self.refill(now);
        self.debt = (self.debt + bytes(count)).min(self.most_owed());
    }

    /// Nothing is owed for repairs any more.
    pub const fn forget_repairs(&mut self) {
        self.debt = 0;
    }

    /// The time at which `count` bytes, or a whole burst if that is less, may leave, if nothing else does before;
    /// `None` if there is no rate to wait for.
    pub fn next_time(&self, count: usize) -> Option<Time> {
        let count = count.min(self.bursts.bytes);
        let lacking = bytes(count) - self.credit;
        let paid = match u128::try_from(lacking) {
            Err(_) | Ok(0) => self.at,
            Ok(_) if self.rate == 0 => return None,
            Ok(lacking) => {
                let paid_beside = lacking.min(self.debt.unsigned_abs());
                let nanos = (lacking + paid_beside).div_ceil(u128::from(self.rate));
                self.at.after(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        };
        Some(match self.burst {
            Some((began, left)) if paid > began || count > left => {
                paid.max(began.after(self.bursts.gap))
            }
            _ => paid,
        })
    }

    /// The most credit that comes together while nothing leaves: more than one burst, as a timer cuts off parts of a
    /// nanosecond, and that would add up.
    fn most(&self) -> i128 {
        bytes(self.bursts.bytes) + product(self.rate, self.bursts.late)
    }

    fn most_owed(&self) -> i128 {
        bytes(self.bursts.bytes) + product(self.rate, LONGEST_DEBT)
    }

    fn refill(&mut self, now: Time) {
        let earned = product(self.rate, now.since(self.at));
        self.at = self.at.max(now);
        let paid = self.debt.min(earned / 2);
        self.debt -= paid;
        self.credit = (self.credit + earned - paid).min(self.most());
    }
}

fn bytes(count: usize) -> i128 {
    (count as i128 * BYTE).min(MOST)
}

fn product(rate: u64, nanos: u64) -> i128 {
    let product = u128::from(rate) * u128::from(nanos);
    i128::try_from(product).unwrap_or(MOST).min(MOST)
}
