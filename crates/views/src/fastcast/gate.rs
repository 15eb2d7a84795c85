//! The gate at which bandwidth shares hold packets back (§3.5): all datagrams that leave pass here. Without a capacity
//! to share the gate is always open.

use alloc::vec::Vec;
use bytes::Bytes;

use rota_core::contract::Time;
use rota_core::shares::{
    Bursts, Capacity, Demand, Estimate, Losses, Note, Pacer, Shares, Waiting, Word,
};

/// Packets wait until this many may leave at once.
const STEP: usize = 16;

/// The number of packets that may leave now, and the time at which more may.
#[derive(Debug)]
pub(super) struct Gate {
    paced: Option<Paced>,
}

#[derive(Debug)]
struct Paced {
    shares: Shares,
    demand: Demand,
    pacer: Pacer,
    bursts: Bursts,
    /// The estimate of the own link's capacity, if that is to be found out.
    estimate: Option<Estimate>,
    /// All bytes of packets that have left.
    sent: u64,
    /// Bytes that wait for nothing but the rate.
    held: Option<usize>,
    /// Whether this member is in a view with others.
    on: bool,
    /// The increase under way, and its begin.
    increase: Option<(u64, Time)>,
    increases: Increases,
}

/// The durations of increases, from the request until they were in force (FastCast §4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Increases {
    pub count: u64,
    /// The sum of the durations, in microseconds.
    pub micros: u64,
    /// The number of increases that took longer than [`SLOW`].
    pub slow: u64,
}

/// An increase that takes longer than this, in nanoseconds, counts as slow.
const SLOW: u64 = 10_000_000;

impl Gate {
    /// A gate for a link of this capacity; without one, a gate that is always open. A gate that yields goes by less
    /// than the capacity while packets get lost.
    pub fn new(capacity: Option<Capacity>, yields: bool) -> Self {
        let paced = |capacity: Capacity| {
            let bursts = Bursts::of(capacity);
            Paced {
                shares: Shares::new(capacity),
                demand: Demand::new(Time(0), capacity.shared()),
                pacer: Pacer::new(Time(0), bursts),
                bursts,
                estimate: yields.then(|| Estimate::new(Time(0), capacity)),
                sent: 0,
                held: None,
                on: false,
                increase: None,
                increases: Increases::default(),
            }
        };
        Self {
            paced: capacity.map(paced),
        }
    }

    fn on(&self) -> Option<&Paced> {
        self.paced.as_ref().filter(|paced| paced.on)
    }

    fn on_mut(&mut self) -> Option<&mut Paced> {
        self.paced.as_mut().filter(|paced| paced.on)
    }

    /// The note to the others, before the next view.
    pub fn note(&self) -> Vec<u8> {
        let note = self
            .paced
            .as_ref()
            .map(|paced| paced.shares.note().encode());
        note.map(|note| note.to_vec()).unwrap_or_default()
    }

    /// Begins a view, with the notes of its members; `me` is the index of this one.
    pub fn install(&mut self, now: Time, me: usize, notes: &[Bytes]) {
        let Some(paced) = &mut self.paced else {
            return;
        };
        let notes: Vec<Option<Note>> = notes.iter().map(|note| Note::decode(note)).collect();
        paced.shares.install(me, &notes);
        paced.follow_capacity(now);
        if let Some(estimate) = &mut paced.estimate {
            estimate.restart(now);
        }
        paced.on = notes.len() > 1;
        paced.held = None;
        paced.pacer.forget_repairs();
        paced.increase = None;
        paced.apply(now);
    }

    /// The durations of increases.
    pub fn increases(&self) -> Increases {
        let paced = self.paced.as_ref();
        paced.map(|paced| paced.increases).unwrap_or_default()
    }

    /// The losses on the own link, if its capacity is to be found out.
    pub fn losses(&self) -> Losses {
        let paced = self.paced.as_ref();
        let estimate = paced.and_then(|paced| paced.estimate.as_ref());
        estimate.map(Estimate::losses).unwrap_or_default()
    }

    /// The levels of links and of the own rate, by name: values that may become less. `None` without a capacity.
    pub fn levels(&self) -> Option<[(&'static str, u64); 3]> {
        let shares = self.shares()?;
        // The level of an unknown link is 0.
        let kbps = |capacity: Capacity| match capacity {
            Capacity::UNKNOWN => 0,
            known => known.bits_per_second() / 1_000,
        };
        Some([
            ("fast_link_kbps", kbps(shares.link())),
            ("fast_slowest_link_kbps", kbps(shares.capacity())),
            ("fast_rate_kbps", shares.rate() / 1_000),
        ])
    }

    /// The shares, if there is a capacity to share.
    pub fn shares(&self) -> Option<&Shares> {
        self.paced.as_ref().map(|paced| &paced.shares)
    }

    /// Ends the view.
    pub fn freeze(&mut self, now: Time) {
        if let Some(paced) = &mut self.paced {
            paced.shares.freeze();
            paced.on = false;
            // The increase is cancelled.
            paced.increase = None;
            paced.apply(now);
        }
    }

    /// The number of the `wanted` packets of up to `size` bytes that may leave now, with `beside` bytes of control in
    /// their burst.
    pub fn let_through(&mut self, now: Time, wanted: usize, size: usize, beside: usize) -> usize {
        let Some(paced) = self.on_mut() else {
            return wanted;
        };
        paced.held = None;
        if wanted == 0 {
            return 0;
        }
        let step = (wanted.min(STEP) * size + beside).min(paced.bursts.bytes);
        let allowance = paced.pacer.allowance(now);
        if allowance < step {
            paced.held = Some(step);
            return 0;
        }
        (allowance.saturating_sub(beside) / size).clamp(1, wanted)
    }

    /// Notes that packets of `bytes` bytes leave now.
    pub fn sent(&mut self, now: Time, bytes: usize) {
        if let Some(paced) = self.on_mut() {
            paced.sent += bytes as u64;
            paced.pacer.sent(now, bytes);
        }
    }

    /// Notes that datagrams of `bytes` bytes leave now that wait for nothing.
    pub fn owe(&mut self, now: Time, bytes: usize) {
        if let Some(paced) = self.on_mut() {
            paced.pacer.owe(now, bytes);
        }
    }

    /// Notes that packets of `bytes` bytes are sent again now.
    pub fn repaired(&mut self, now: Time, bytes: usize) {
        if let Some(paced) = self.on_mut().filter(|_| bytes > 0) {
            paced.pacer.repaired(now, bytes);
        }
    }

    /// Notes a packet of `bytes` bytes that came: its sender and its number; whether it came for the first time, and
    /// whether it had been requested.
    pub fn on_packet(
        &mut self,
        now: Time,
        bytes: usize,
        which: (usize, u64),
        (new, asked_for): (bool, bool),
    ) {
        let Some(estimate) = self.on_mut().and_then(|paced| paced.estimate.as_mut()) else {
            return;
        };
        if new {
            estimate.on_packet(now, bytes, asked_for.then_some(which));
        } else {
            estimate.on_again(which);
        }
    }

    /// Notes that `waiting` bytes wait to be sent: the requirement follows.
    pub fn observe(&mut self, now: Time, waiting: usize) {
        if let Some(paced) = self.on_mut() {
            if let Some(estimate) = &mut paced.estimate
                && estimate.observe(now)
            {
                paced.shares.set_link(estimate.capacity());
            }
            let load = Waiting {
                sent: paced.sent,
                waiting: waiting as u64,
                for_rate: paced.held.is_some(),
                full: false,
            };
            let wanted = paced.demand.observe(now, load, paced.shares.rate());
            paced.shares.want(wanted);
            paced.apply(now);
        }
    }

    /// The next word to broadcast.
    pub fn poll_word(&mut self, now: Time) -> Option<Word> {
        let paced = self.on_mut()?;
        let word = paced.shares.poll_word()?;
        let under_way = paced.shares.increase_number();
        if under_way != paced.increase.map(|(number, _)| number) {
            paced.increase = under_way.map(|number| (number, now));
        }
        Some(word)
    }

    /// Takes a word that was delivered; returns whether it was sound.
    pub fn on_word(&mut self, now: Time, sender: u16, word: &[u8]) -> bool {
        let Some(paced) = self.on_mut() else {
            return true;
        };
        let known = paced.shares.on_word(usize::from(sender), word).is_ok();
        paced.follow_capacity(now);
        paced.apply(now);
        known
    }

    /// Notes the last request of this member that another one has applied.
    pub fn on_applied(&mut self, now: Time, member: usize, number: u64) {
        if let Some(paced) = self.on_mut() {
            paced.shares.on_applied(member, number);
            paced.apply(now);
        }
    }

    /// The requests of others that were applied here last, if one of them has come since this was asked.
    pub fn news(&mut self) -> Option<&[u64]> {
        let paced = self.on_mut()?;
        paced.shares.take_news().then(|| paced.shares.applied())
    }

    /// The number of others that have applied the increase that this member waits for, if it waits for one.
    pub fn waits_for_others(&self) -> Option<usize> {
        let shares = &self.on()?.shares;
        (shares.ongoing_increase() > 0 && shares.delivered()).then(|| shares.acks())
    }

    /// The time at which more may leave than now, or the requirement is looked at again.
    pub fn next_time(&self) -> Option<Time> {
        let paced = self.on()?;
        let more = paced.held.and_then(|bytes| paced.pacer.next_time(bytes));
        let estimate = paced.estimate.as_ref().and_then(Estimate::next_time);
        let demand = paced.demand.next_time();
        more.into_iter().chain(demand).chain(estimate).min()
    }
}

impl Gate {
    /// Its invariants.
    pub fn check(&self) {
        let Some(paced) = &self.paced else { return };
        paced.shares.check();
        assert_eq!(
            paced.pacer.rate(),
            paced.shares.rate(),
            "packets leave at the rate that was shared out"
        );
        assert!(
            paced.on || paced.increase.is_none(),
            "no view waits for an increase of the one before"
        );
    }
}

impl Paced {
    /// Adapts bursts and requirements to the capacity that all go by.
    fn follow_capacity(&mut self, now: Time) {
        let capacity = self.shares.capacity();
        let bursts = Bursts::of(capacity);
        if bursts != self.bursts {
            self.bursts = bursts;
            self.pacer.set_bursts(now, bursts);
        }
        self.demand.limit(capacity.shared());
    }

    /// Adapts the rate to the shares.
    fn apply(&mut self, now: Time) {
        let under_way = self.shares.increase_number();
        if let Some((number, since)) = self.increase
            && under_way != Some(number)
        {
            let took = now.since(since);
            self.increase = None;
            self.increases.count += 1;
            self.increases.micros += took / 1_000;
            self.increases.slow += u64::from(took > SLOW);
        }
        let rate = self.shares.rate();
        if rate != self.pacer.rate() {
            self.pacer.set_rate(now, rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SIZE: usize = 1_000;

    /// A gate in a view of two.
    fn gate() -> Gate {
        let capacity = Capacity::new(1_000_000_000);
        let mut gate = Gate::new(Some(capacity), false);
        view(&mut gate, Time(0));
        gate
    }

    fn view(gate: &mut Gate, now: Time) {
        gate.freeze(now);
        let note = Bytes::from(gate.note());
        gate.install(now, 0, &[note.clone(), note]);
    }

    /// The packets that leave in `millis` milliseconds, while any number waits.
    fn leave(gate: &mut Gate, from: Time, millis: u64) -> usize {
        let times = (0..millis).map(|at| from.after(at * MS));
        let counts = times.map(|now| {
            let count = gate.let_through(now, 1_000, SIZE, 0);
            gate.sent(now, count * SIZE);
            gate.observe(now, 1_000 * SIZE);
            count
        });
        counts.sum()
    }

    #[test]
    fn repairs_of_a_view_hold_back_nobody_in_the_next_one() {
        let (mut busy, mut quiet) = (gate(), gate());
        busy.repaired(Time(0), 1_000 * SIZE);
        let now = Time(MS);
        let [less, more] = [&mut busy, &mut quiet].map(|gate| leave(gate, now, 50));
        assert!(less < more, "{less} of {more}");
        let now = now.after(1_000 * MS);
        busy.repaired(now, 1_000 * SIZE);
        let [after, calm] = [&mut busy, &mut quiet].map(|gate| {
            view(gate, now);
            leave(gate, now, 50)
        });
        assert!(calm > 0);
        assert_eq!(after, calm);
    }
}
