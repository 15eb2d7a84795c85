//! The times at which a node's application submits.

use rota_core::random::Random;

use crate::agenda::NEVER;
use crate::setup::{Generated, Load, Setup};

/// Messages that a process takes from its client in a row.
const IN_A_ROW: u32 = 16;
/// The same where more are always there.
const FULL_IN_A_ROW: u32 = 4;

/// A load that several senders share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    pub load: Load,
    pub senders: usize,
    pub message_bytes: usize,
    /// The way from a client, in nanoseconds.
    pub client: u64,
}

impl Shared {
    /// The load of a setup.
    pub const fn of(setup: &Setup) -> Self {
        Self {
            load: setup.load,
            senders: setup.senders,
            message_bytes: setup.message_bytes,
            client: setup.costs.client,
        }
    }
}

/// See the module page.
#[derive(Clone, Debug)]
pub struct Source {
    kind: Kind,
    random: Random,
    /// The engine took no more when it was last asked.
    pub is_full: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Silent,
    Rate {
        /// When the next message reaches the process.
        due: u64,
        interval: u64,
        /// The part of a nanosecond that intervals have beyond, in billionths, and the sum of it.
        part: (u64, u64),
        at_random: bool,
    },
    Visit(Generated),
    Full,
    UnderWay {
        most: u32,
        now: u32,
    },
}

impl Source {
    pub fn silent(seed: u64, node: usize) -> Self {
        Self {
            kind: Kind::Silent,
            random: Random::new(seed ^ (node as u64 + 1) << 32),
            is_full: false,
        }
    }

    /// Begins its part of a load.
    pub fn begin(&mut self, shared: &Shared, now: u64) {
        self.kind = match shared.load {
            Load::Rate(rate) => self.rate(shared, now, (rate, false)),
            Load::Poisson(rate) => self.rate(shared, now, (rate, true)),
            Load::Visit(generated) => Kind::Visit(generated),
            Load::Full => Kind::Full,
            Load::UnderWay(most) => Kind::UnderWay { most, now: 0 },
        };
    }

    /// One sender's part of a rate, at a phase of its own.
    fn rate(&mut self, shared: &Shared, now: u64, (rate, at_random): (u64, bool)) -> Kind {
        let billionths = shared.message_bytes as u128 * 8 * shared.senders as u128 * 1_000_000_000;
        let whole = billionths * 1_000_000_000 / u128::from(rate.max(1));
        let (interval, part) = (whole / 1_000_000_000, whole % 1_000_000_000);
        let phase = self.random.below((interval as u64).max(1));
        Kind::Rate {
            due: now + phase + shared.client,
            interval: interval as u64,
            part: (part as u64, 0),
            at_random,
        }
    }

    /// Ends the load.
    pub const fn end(&mut self) {
        self.kind = Kind::Silent;
    }

    /// When there is something to submit, as far as the source itself knows.
    pub const fn next(&self, now: u64, backlog: usize, window: usize) -> u64 {
        match self.kind {
            _ if self.is_full => NEVER,
            Kind::Rate { due, .. } => due,
            Kind::Full if backlog < window => now,
            Kind::UnderWay {
                most,
                now: under_way,
            } if under_way < most => now,
            _ => NEVER,
        }
    }

    /// Messages in a row.
    pub const fn in_a_row(&self) -> u32 {
        match self.kind {
            Kind::Full => FULL_IN_A_ROW,
            _ => IN_A_ROW,
        }
    }

    /// The moment at which full windows are made, if they are.
    pub const fn generated(&self) -> Option<Generated> {
        match self.kind {
            Kind::Visit(generated) => Some(generated),
            _ => None,
        }
    }

    /// When the next message that is due was made, in front of the way from a client.
    pub const fn made(&self, now: u64, client: u64) -> u64 {
        match self.kind {
            Kind::Rate { due, .. } => due - client,
            _ => now.saturating_sub(client),
        }
    }

    /// The engine took the next message.
    pub fn took(&mut self) {
        match &mut self.kind {
            Kind::Rate {
                due,
                interval,
                part,
                at_random,
            } => {
                *due += if *at_random {
                    random_interval(&mut self.random, *interval)
                } else {
                    part.1 += part.0;
                    let carry = part.1 / 1_000_000_000;
                    part.1 %= 1_000_000_000;
                    *interval + carry
                };
            }
            Kind::UnderWay { now, .. } => *now += 1,
            _ => {}
        }
    }

    /// One of its own messages was delivered here.
    pub const fn delivered(&mut self) {
        if let Kind::UnderWay { now, .. } = &mut self.kind {
            *now -= 1;
        }
    }
}

/// The time to the next of events at random times with this mean between them.
fn random_interval(random: &mut Random, mean: u64) -> u64 {
    const PARTS: u64 = 1 << 53;
    let uniform = (random.below(PARTS) + 1) as f64 / PARTS as f64;
    (-uniform.ln() * mean as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::tests::setup;

    fn made(load: Load, messages: u64) -> Vec<u64> {
        let mut setup = setup(3, 3);
        (setup.load, setup.message_bytes) = (load, 1000);
        let mut source = Source::silent(7, 0);
        source.begin(&Shared::of(&setup), 1_000_000);
        let next = |_| {
            let made = source.made(0, 0);
            source.took();
            made
        };
        (0..messages).map(next).collect()
    }

    #[test]
    fn a_rate_is_kept_to_the_nanosecond() {
        // 700 Mbit/s of three senders: 29,166.67 messages a second of each.
        let made = made(Load::Rate(700_000_000), 29_167);
        assert!(made[0] >= 1_000_000 && made[0] < 1_034_286);
        let took = made.last().copied().unwrap_or(0) - made[0];
        assert_eq!(took, 29_166 * 24_000_000_000 / 700_000);
    }

    #[test]
    fn random_times_have_the_same_rate() {
        let made = made(Load::Poisson(700_000_000), 30_000);
        let took = (made.last().copied().unwrap_or(0) - made[0]) as f64;
        assert!((took / 30_000.0 / 34_285.7 - 1.0).abs() < 0.02, "{took}");
        assert!(made.windows(2).all(|two| two[0] <= two[1]));
    }
}
