//! Stories that chance alone hardly ever brings about where views count: a few faults that follow each other at the
//! right times. They come behind the others, so that those have the places that they have without.

use super::draw_faults::shuffled;
use super::{DiskLoss, Fault, FaultKind, MILLIS, Matrix, Plan};
use crate::rng::Rng;

impl Plan {
    /// Adds a story to some seeds.
    pub fn add_story(&mut self) {
        let mut rng = Rng::split(self.seed, 12);
        let over_links = self.links.is_some();
        match rng.below(10) {
            0 | 1 if self.nodes() > 1 => self.a_view_that_one_alone_may_have_begun(&mut rng),
            2 | 3 if self.nodes() > 2 => self.two_majorities(&mut rng),
            // Links lose nothing behind which more arrives.
            4 | 5 if self.nodes() > 1 && !over_links => self.lost_in_a_storm(&mut rng),
            _ => {}
        }
    }

    /// The time, about, from a cut to the configuration that comes of it.
    const fn change(&self) -> u64 {
        self.ring.timers.token_loss + self.consensus()
    }

    /// The time at which a story begins: mostly when the other faults are over, and else among them.
    fn begins(&mut self, rng: &mut Rng) -> u64 {
        let (horizon, change) = (self.horizon, self.change());
        if rng.percent(30) {
            return rng.range(horizon / 20, horizon / 2);
        }
        for fault in &mut self.faults {
            fault.lasts = fault.lasts.min(horizon.saturating_sub(fault.at));
        }
        horizon + rng.range(change, 2 * change)
    }

    fn add(&mut self, at: u64, lasts: u64, kind: FaultKind) {
        self.faults.push(Fault { at, lasts, kind });
        // The fault has time to happen.
        self.horizon = self.horizon.max(at + 2 * self.change());
    }

    fn add_rush(&mut self, rng: &mut Rng, at: u64) {
        let messages = rng.range(1, 60) as u32;
        self.add(at, 0, FaultKind::Rush { messages });
    }

    /// The last of a bare majority that knows what all hold becomes mute; without it the others are no majority. All of
    /// them meet again before anybody begins another view: it may count on nothing that it was told alone.
    fn a_view_that_one_alone_may_have_begun(&mut self, rng: &mut Rng) {
        let (hosts, change) = (self.nodes(), self.change());
        let at = self.begins(rng);
        let order = shuffled(hosts, rng);
        let (majority, others) = order.split_at(hosts / 2 + 1);
        let shape = "bare majority";
        let (links, lasts) = if others.is_empty() {
            // They part only to meet again.
            (apart(hosts, &majority[..1]), rng.range(change, 2 * change))
        } else {
            (apart(hosts, majority), rng.range(4 * change, 6 * change))
        };
        self.add_rush(rng, at.saturating_sub(MILLIS));
        self.add(at, lasts, FaultKind::Cut { shape, links });
        self.add(at, rng.range(change / 2, 2 * change), FaultKind::Mute);
        self.add_rush(rng, at + lasts);
    }

    /// One majority begins a view and delivers; then those of it that are in the next majority as well are restarted: the
    /// others there remember only the view before.
    fn two_majorities(&mut self, rng: &mut Rng) {
        let (hosts, change) = (self.nodes(), self.change());
        let at = self.begins(rng);
        let order = shuffled(hosts, rng);
        let majority = hosts / 2 + 1;
        let then = at + rng.range(2 * change, 4 * change);
        let (first, second) = (&order[..majority], &order[hosts - majority..]);
        for (at, members) in [(at, first), (then, second)] {
            let (shape, links) = ("majority", apart(hosts, members));
            let lasts = if at == then { 4 * change } else { then - at };
            self.add(at, lasts, FaultKind::Cut { shape, links });
            self.add_rush(rng, at);
            self.add_rush(rng, at + change * 3 / 2);
        }
        for &host in &order[hosts - majority..majority] {
            let kind = FaultKind::Kill {
                host,
                outputs: rng.below(4) as u32,
                host_too: rng.percent(50),
                disk: rng.pick(&[DiskLoss::Nothing, DiskLoss::Unsynced, DiskLoss::Torn]),
                for_good: false,
            };
            let lasts = rng.range(change / 20, change / 2);
            self.add(then + rng.below(change / 10), lasts, kind);
        }
        self.add_rush(rng, then + 3 * change);
    }

    /// Messages of one host, mostly the leader, hardly arrive, and then it is gone: some processes have a packet
    /// without its place or a place without its packet, and some have only what comes behind.
    fn lost_in_a_storm(&mut self, rng: &mut Rng) {
        let (hosts, change) = (self.nodes(), self.change());
        let mut at = self.begins(rng);
        for _ in 0..rng.range(2, 4) {
            let host = if rng.percent(80) { 0 } else { rng.index(hosts) };
            let lasts = rng.spread(MILLIS, 20 * MILLIS);
            let kind = FaultKind::Storm {
                links: Matrix::mute(hosts, host),
                percent: rng.pick(&[30, 50, 70, 90]),
                data_only: rng.percent(25),
            };
            self.add(at, 2 * lasts, kind);
            let rush = at + rng.below(lasts / 2);
            self.add_rush(rng, rush);
            let (shape, links) = ("one alone", Matrix::alone(hosts, host));
            let cut = FaultKind::Cut { shape, links };
            let until = at + rng.range(lasts / 2, lasts);
            self.add(until, rng.range(2 * change, 3 * change), cut);
            at += rng.range(5 * change, 6 * change);
        }
    }
}

/// Some and the others do not reach each other.
fn apart(hosts: usize, some: &[usize]) -> Matrix {
    let mut links = Matrix::open(hosts);
    for one in some {
        for other in (0..hosts).filter(|other| !some.contains(other)) {
            links.cut_both(*one, other);
        }
    }
    links
}
