//! The rate at which a process multicasts if the capacity of the links is known: a share of them, as in FastCast, but
//! by what all members can see. Values reach all members, so each knows how much every other sends, and no member has
//! to be told.
//!
//! A sender that sends as much as it may seems to want more. A sender that sends less gets as much, and a fourth more;
//! the others share the rest. A sender begins slowly, so that the others have noticed before it is fast.
//! `docs/protocols/ring-paxos.md` says what that is worth.

use alloc::vec;
use alloc::vec::Vec;

use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};
use rota_core::shares::{Bursts, Capacity, Pacer, max_min};

/// The time over which sent bytes are added up, in nanoseconds.
const LOOK: u64 = 10_000_000;

/// Own values that leave in this time wait here, beside those that were sent and have not counted, in nanoseconds.
const IN_HAND: u64 = 4_000_000;

/// A sender begins with one part in this many of a link, and may have twice as much with each look.
const BEGINS: u64 = 8;

/// See the module's page.
#[derive(Debug)]
pub struct Rate {
    capacity: Capacity,
    pacer: Pacer,
    bursts: Bursts,
    me: usize,
    /// The time since which the sums are taken.
    since: Time,
    /// By place: the bytes that were sent since then.
    sums: Vec<u64>,
    /// By place: the rate of sending, in bits per second. It grows at once, but shrinks only by and by, since much
    /// comes in lumps.
    sent: Vec<u64>,
    /// The bytes of the burst that waits for nothing but the rate.
    held: Option<usize>,
    /// An own value that has left, and when it did.
    watched: Option<(u64, Time)>,
    /// The time that own values take until they count, in nanoseconds; it shrinks only by and by.
    commit: Option<u64>,
}

impl Rate {
    /// For links of this capacity, and the process at place `me` of `places`.
    pub fn new(now: Time, capacity: Capacity, me: usize, places: usize) -> Self {
        let bursts = Bursts::of(capacity);
        let mut rate = Self {
            capacity,
            pacer: Pacer::new(now, bursts),
            bursts,
            me,
            since: now,
            sums: vec![0; places],
            sent: vec![0; places],
            held: None,
            watched: None,
            commit: None,
        };
        rate.pacer.set_rate(now, rate.share());
        rate
    }

    /// The rate at which this process may send, in bits per second.
    pub fn bits_per_second(&self) -> u64 {
        self.pacer.rate()
    }

    /// Own values that may be under way, in bytes: more would only wait. No bound until one has counted.
    pub fn window(&self) -> usize {
        let Some(commit) = self.commit else {
            return usize::MAX;
        };
        let nanos = u128::from(commit.saturating_add(IN_HAND));
        let bytes = u128::from(self.bits_per_second()) * nanos / 8_000_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The time that own values of `bytes` take, in nanoseconds.
    pub fn takes(&self, bytes: usize) -> u64 {
        time_of(bytes, self.bits_per_second())
    }

    /// The time that they take on a link, whichever process sends them, in nanoseconds.
    pub fn takes_on_links(&self, bytes: usize) -> u64 {
        time_of(bytes, self.capacity.shared())
    }

    /// An own value leaves: one at a time is watched.
    pub fn watch(&mut self, now: Time, counter: u64) {
        self.watched.get_or_insert((counter, now));
    }

    /// Own values up to this one count.
    pub fn on_counted(&mut self, now: Time, counter: u64) {
        if let Some((_, left)) = self.watched.take_if(|(watched, _)| *watched <= counter) {
            let took = now.since(left);
            let before = self.commit.unwrap_or(0);
            self.commit = Some(took.max(before - before.div_ceil(8)));
        }
    }

    /// The process at this place has sent `bytes`.
    pub fn on_sent(&mut self, now: Time, place: usize, bytes: usize) {
        self.look(now);
        self.sums[place] += bytes as u64;
    }

    /// The value that waited may be gone.
    pub const fn forget(&mut self) {
        self.held = None;
    }

    /// Whether a value of `bytes` may leave now.
    pub fn lets(&mut self, now: Time, bytes: usize) -> bool {
        self.look(now);
        let step = bytes.min(self.bursts.bytes);
        let may = self.pacer.allowance(now) >= step || mutants::on(Mutant::U33);
        self.held = (!may).then_some(step);
        may
    }

    /// A burst of `bytes` leaves now.
    pub fn leaves(&mut self, now: Time, bytes: usize) {
        self.on_sent(now, self.me, bytes);
        self.pacer.sent(now, bytes);
    }

    /// Whether something waits for the rate.
    pub const fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// The time at which the value that waits may leave.
    pub fn next_time(&self) -> Option<Time> {
        self.held.and_then(|step| self.pacer.next_time(step))
    }

    /// Adds up, if it is time.
    fn look(&mut self, now: Time) {
        let took = now.since(self.since);
        if took < LOOK {
            return;
        }
        let looks = (took / LOOK).min(64) as u32;
        for (sum, sent) in self.sums.iter_mut().zip(&mut self.sent) {
            let bits = u128::from(core::mem::take(sum)) * 8 * 1_000_000_000;
            let now_sent = u64::try_from(bits / u128::from(took)).unwrap_or(u64::MAX);
            let before = (0..looks).fold(*sent, |sent, _| sent - sent.div_ceil(8));
            *sent = now_sent.max(before);
        }
        self.since = now;
        self.pacer.set_rate(now, self.share());
    }

    /// The rate at which this process may send, by the rates of all.
    fn share(&self) -> u64 {
        let places = 0..self.sent.len();
        let required: Vec<u64> = places.map(|place| self.required(place)).collect();
        let share = max_min(&required, self.me, self.capacity.shared());
        // All may begin at once.
        let others = self.sent.len() as u64 - 1;
        let begins = self.capacity.shared() / BEGINS.max(others);
        let begun = self.sent[self.me].saturating_mul(2).max(begins);
        share.min(begun) + self.capacity.reserved(self.sent.len())
    }

    /// The rate that a process seems to want, in bits per second.
    fn required(&self, place: usize) -> u64 {
        let sent = self.sent[place];
        let with_fourth = |sent: u64| sent.saturating_add(sent / 4);
        let mut required: Vec<u64> = self.sent.iter().map(|sent| with_fourth(*sent)).collect();
        required[place] = u64::MAX;
        let share = max_min(&required, place, self.capacity.shared());
        let is_all = place == self.me || sent >= share - share / 8;
        if is_all { u64::MAX } else { with_fourth(sent) }
    }
}

impl Rate {
    /// Its invariants.
    pub fn check(&self) {
        let places = self.sums.len();
        assert!(self.me < places, "this process has a place");
        assert!(self.sent.len() == places, "each process has its rate");
        assert!(
            self.held.is_none_or(|held| held <= self.bursts.bytes),
            "no value waits for more than a burst"
        );
    }
}

fn time_of(bytes: usize, bits_per_second: u64) -> u64 {
    let bits = bytes as u64 * 8;
    bits.saturating_mul(1_000_000_000) / bits_per_second.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: u64 = 1_000_000_000;
    const STEP: u64 = 100_000;

    /// Processes that see each other at once, each of which would send at its wanted rate, in bits per second. Returns
    /// the bits that each has sent per second, in the last half of a second, and the largest part of a link that was
    /// taken in any 10 ms.
    fn run(wanted: &[u64], starts: &[u64]) -> (Vec<u64>, u64) {
        let capacity = Capacity::new(LINK);
        let places = wanted.len();
        let new = |me| Rate::new(Time(0), capacity, me, places);
        let mut rates: Vec<Rate> = (0..places).map(new).collect();
        let (mut waits, mut sent) = (vec![0_u64; places], vec![0_u64; places]);
        let (mut lately, mut worst) = (vec![0_u64; places], 0);
        for step in 1..10_000 {
            let now = Time(step * STEP);
            for me in 0..places {
                if now.0 >= starts[me] {
                    waits[me] += wanted[me] / 8 * STEP / 1_000_000_000;
                }
                while waits[me] >= 33_000 && rates[me].lets(now, 33_000) {
                    waits[me] -= 33_000;
                    rates[me].leaves(now, 33_000);
                    lately[me] += 33_000;
                    sent[me] += if step > 5_000 { 33_000 * 16 } else { 0 };
                    let others = (0..places).filter(|other| *other != me);
                    others.for_each(|other| rates[other].on_sent(now, me, 33_000));
                }
            }
            if step % 100 == 0 {
                let all: u64 = lately.iter().sum();
                let link = all - lately.iter().min().unwrap();
                worst = worst.max(link * 8 * 100);
                lately.fill(0);
            }
        }
        (sent, worst)
    }

    fn is_near(sent: u64, wanted: u64) -> bool {
        sent.abs_diff(wanted) <= wanted / 25
    }

    #[test]
    fn all_who_want_it_share_the_links() {
        for places in [2_usize, 3, 5, 8, 16] {
            let (sent, _) = run(&vec![u64::MAX / 100_000; places], &vec![0; places]);
            let each = LINK / (places as u64 - 1);
            assert!(sent.iter().all(|sent| is_near(*sent, each)), "{sent:?}");
        }
    }

    #[test]
    fn what_one_does_not_want_others_get() {
        let (sent, _) = run(&[LINK / 10, 2 * LINK, 2 * LINK], &[0; 3]);
        assert!(is_near(sent[0], LINK / 10), "{sent:?}");
        // The link of the first is full of what the others send.
        let both = [sent[1], sent[2]];
        assert!(both.iter().all(|sent| is_near(*sent, LINK / 2)), "{sent:?}");
    }

    /// All but one share a link with what that one sends, and a fourth more.
    #[test]
    fn what_one_of_many_does_not_want_others_get() {
        let mut wanted = [2 * LINK; 4];
        (wanted[0], wanted[1]) = (LINK / 10, LINK / 10);
        let (sent, _) = run(&wanted, &[0; 4]);
        let rest = (LINK * 98 / 100 - LINK / 8) / 2;
        for (place, wanted) in [LINK / 10, LINK / 10, rest, rest].into_iter().enumerate() {
            assert!(is_near(sent[place], wanted), "{sent:?}");
        }
    }

    #[test]
    fn one_alone_fills_the_links() {
        let (sent, _) = run(&[0, 2 * LINK, 0], &[0; 3]);
        assert!(is_near(sent[1], LINK), "{sent:?}");
    }

    /// A queue that takes in a burst of each and 300 kB is enough.
    #[test]
    fn who_begins_does_not_overrun_the_links() {
        let at = 400_000_000;
        for starts in [
            &[0, at, at] as &[u64],
            &[0, 0, at + 3_000_000],
            &[0; 3],
            &[at; 16],
        ] {
            let (_, worst) = run(&vec![2 * LINK; starts.len()], starts);
            let too_much = worst.saturating_sub(LINK) / 8 / 100;
            let bursts = 33_000 * starts.len() as u64;
            assert!(too_much < 300_000 + bursts, "{starts:?}: {too_much}");
        }
    }
}
