//! Draws the faults of a plan.
//!
//! Faults come in episodes: not the first failure breaks recoveries but the one that follows within a rotation, a
//! token-loss time or an agreement. Single ones are episodes of one.

use super::profile::Allowed;
use super::{DiskLoss, Fault, FaultKind, MICROS, Matrix, Plan};
use crate::rng::Rng;

impl Plan {
    pub(super) fn draw_faults(&mut self, rng: &mut Rng, allowed: Allowed) {
        let kinds = self.kinds(rng, allowed);
        if kinds.is_empty() {
            return;
        }
        for _ in 0..rng.range(0, 6) {
            let mut at = rng.range(self.horizon / 20, self.horizon * 9 / 10);
            for _ in 0..rng.pick(&[1, 1, 1, 2, 3, 5]) {
                let draw = kinds[rng.index(kinds.len())];
                let fault = draw(self, rng, at);
                self.faults.push(fault);
                at += match rng.below(4) {
                    0 => rng.below(500 * MICROS),
                    1 => rng.below(self.ring.timers.token_loss / 4),
                    2 => rng.range(
                        self.ring.timers.token_loss * 9 / 10,
                        self.ring.timers.token_loss * 3 / 2,
                    ),
                    _ => rng.range(self.consensus() / 2, self.consensus() * 2),
                };
            }
        }
        if allowed.network && (allowed.crashes || allowed.partitions) && self.nodes() > 1 {
            for _ in 0..rng.pick(&[0, 0, 0, 1, 3]) {
                self.draw_hole(rng, allowed);
            }
        }
        self.faults.retain(|fault| fault.at < self.horizon);
        self.faults.sort_by_key(|fault| fault.at);
        if self.hosts.len() > 2 && allowed.crashes && rng.percent(20) {
            self.let_one_rest();
        }
    }

    /// An episode that chance alone hardly ever brings about: a sender is lost together with messages that nobody else
    /// has, while the others have sent more behind them.
    fn draw_hole(&mut self, rng: &mut Rng, allowed: Allowed) {
        let hosts = self.nodes();
        let at = rng.range(self.horizon / 20, self.horizon * 9 / 10);
        let host = rng.index(hosts);
        let links = Matrix::mute(hosts, host);
        let lasts = rng.spread(100 * MICROS, 20_000 * MICROS);
        let mut faults = vec![
            FaultKind::Storm {
                links: links.clone(),
                percent: rng.pick(&[50, 90, 100]),
                data_only: true,
            },
            FaultKind::Rush {
                messages: rng.range(1, 60) as u32,
            },
        ];
        if rng.percent(50) {
            faults.reverse();
        }
        for (kind, later) in faults.into_iter().zip([0, rng.below(1000 * MICROS)]) {
            let at = at + later;
            self.faults.push(Fault { at, lasts, kind });
        }
        // It is lost while the storm still lasts.
        let last = at + rng.range(lasts / 4, lasts);
        if allowed.partitions {
            for _ in 0..rng.pick(&[0, 1, 1, 2]) {
                let lasts = self.duration(rng);
                let kind = FaultKind::Snipe;
                self.faults.push(Fault {
                    at: last,
                    lasts,
                    kind,
                });
            }
        }
        if allowed.crashes && (!allowed.partitions || rng.percent(50)) {
            let mut fault = kill(self, rng, last);
            if let FaultKind::Kill { host: victim, .. } = &mut fault.kind {
                *victim = host;
            }
            self.faults.push(fault);
        } else {
            let links = Matrix::alone(hosts, host);
            let kind = FaultKind::Cut {
                shape: "one alone",
                links,
            };
            let lasts = self.duration(rng);
            let at = last;
            self.faults.push(Fault { at, lasts, kind });
        }
    }

    /// The last one killed stays dead.
    fn let_one_rest(&mut self) {
        for fault in self.faults.iter_mut().rev() {
            if let FaultKind::Kill { for_good, .. } = &mut fault.kind {
                *for_good = true;
                fault.lasts = u64::MAX;
                return;
            }
        }
    }

    fn kinds(&self, rng: &mut Rng, allowed: Allowed) -> Vec<Draw> {
        let several = self.hosts.len() > 1;
        let mut kinds: Vec<Draw> = Vec::new();
        let mut add = |wanted: bool, draw: Draw| {
            if wanted && rng.percent(60) {
                kinds.push(draw);
            }
        };
        add(allowed.network, replay);
        add(allowed.network && allowed.partitions && several, storm);
        add(allowed.pauses, pause);
        add(allowed.pauses, stall);
        add(allowed.crashes, kill);
        add(allowed.crashes, kill);
        add(allowed.partitions && several, cut);
        add(allowed.partitions && several, cut);
        add(allowed.partitions && several, flap);
        add(allowed.disk, disk_fails);
        kinds
    }

    /// The duration of a fault: around the times that the protocol waits.
    fn duration(&self, rng: &mut Rng) -> u64 {
        let (token, consensus) = (self.ring.timers.token_loss, self.consensus());
        match rng.below(5) {
            0 => rng.range(token / 5, token),
            1 => rng.range(token * 9 / 10, token * 11 / 10),
            2 => rng.range(token, token + consensus),
            3 => rng.range(consensus, 3 * consensus),
            _ => rng.range(token / 5, 10 * consensus),
        }
    }
}

type Draw = fn(&Plan, &mut Rng, u64) -> Fault;

fn replay(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let host = rng.index(plan.nodes());
    let count = rng.spread(1, 100) as u32;
    let kind = FaultKind::Replay { host, count };
    Fault { at, lasts: 0, kind }
}

fn storm(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let (_, links) = shape(plan.nodes(), rng);
    let percent = rng.range(50, 99) as u8;
    let data_only = rng.percent(50);
    let kind = FaultKind::Storm {
        links,
        percent,
        data_only,
    };
    let lasts = plan.duration(rng);
    Fault { at, lasts, kind }
}

fn pause(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let host = rng.index(plan.nodes());
    let kind = FaultKind::Pause { host };
    let lasts = plan.duration(rng);
    Fault { at, lasts, kind }
}

fn stall(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let host = rng.index(plan.nodes());
    let kind = FaultKind::Stall { host };
    let lasts = plan.duration(rng);
    Fault { at, lasts, kind }
}

fn kill(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let kind = FaultKind::Kill {
        host: rng.index(plan.nodes()),
        outputs: rng.below(12) as u32,
        host_too: rng.percent(40),
        disk: rng.pick(&[
            DiskLoss::Nothing,
            DiskLoss::Unsynced,
            DiskLoss::Torn,
            DiskLoss::Everything,
            DiskLoss::Backup,
        ]),
        for_good: false,
    };
    let token = plan.ring.timers.token_loss;
    let lasts = match rng.below(4) {
        // Back before anybody has noticed.
        0 => rng.range(100 * MICROS, token / 5),
        1 => rng.range(token * 4 / 5, token * 5 / 4),
        2 => plan.duration(rng),
        _ => u64::MAX,
    };
    Fault { at, lasts, kind }
}

fn disk_fails(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let kind = FaultKind::DiskFails {
        host: rng.index(plan.nodes()),
        full: rng.percent(50),
    };
    let lasts = plan.duration(rng);
    Fault { at, lasts, kind }
}

fn cut(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let (shape, links) = shape(plan.nodes(), rng);
    let kind = FaultKind::Cut { shape, links };
    let lasts = if rng.percent(20) {
        u64::MAX
    } else {
        plan.duration(rng)
    };
    Fault { at, lasts, kind }
}

fn flap(plan: &Plan, rng: &mut Rng, at: u64) -> Fault {
    let (_, links) = shape(plan.nodes(), rng);
    let around = rng.pick(&[plan.ring.timers.token_loss, plan.consensus()]);
    let period = rng.range(around / 2, around * 3 / 2);
    let kind = FaultKind::Flap { links, period };
    let lasts = period * rng.range(2, 8);
    Fault { at, lasts, kind }
}

/// The directions that are cut, with the name of their shape.
fn shape(hosts: usize, rng: &mut Rng) -> (&'static str, Matrix) {
    type Shape = (&'static str, fn(&mut Matrix, &mut Rng));
    const SHAPES: [Shape; 8] = [
        ("groups", groups),
        ("one alone", one_alone),
        ("chain", chain),
        ("bridge", bridge),
        ("one way", one_way),
        ("ring neighbours", neighbours),
        ("mute", mute),
        ("deaf", deaf),
    ];
    let mut links = Matrix::open(hosts);
    let (name, cut) = SHAPES[rng.index(SHAPES.len())];
    cut(&mut links, rng);
    (name, links)
}

/// Two or three groups, of any sizes.
fn groups(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    let count = rng.range(2, 3);
    let group: Vec<u64> = (0..hosts).map(|_| rng.below(count)).collect();
    for one in 0..hosts {
        for other in (0..hosts).filter(|&other| group[one] != group[other]) {
            links.cut(one, other);
        }
    }
}

fn one_alone(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    *links = Matrix::alone(hosts, rng.index(hosts));
}

/// Everybody reaches its two neighbours in some order only.
fn chain(links: &mut Matrix, rng: &mut Rng) {
    let order = shuffled(links.0.len(), rng);
    for (place, &one) in order.iter().enumerate() {
        for &other in order.iter().skip(place + 2) {
            links.cut_both(one, other);
        }
    }
}

/// Two sides, and one host that both reach.
fn bridge(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    let bridge = rng.index(hosts);
    let side: Vec<bool> = (0..hosts).map(|_| rng.percent(50)).collect();
    for one in (0..hosts).filter(|&one| one != bridge) {
        for other in (0..hosts).filter(|&other| other != bridge && side[one] != side[other]) {
            links.cut(one, other);
        }
    }
}

fn one_way(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    let from = rng.index(hosts);
    links.cut(from, (from + 1 + rng.index(hosts - 1)) % hosts);
}

/// Only where the token passes.
fn neighbours(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    let from = rng.index(hosts);
    let to = (from + 1) % hosts;
    links.cut(from, to);
    if rng.percent(50) {
        links.cut(to, from);
    }
}

/// One host hears everybody, and nobody hears it.
fn mute(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    *links = Matrix::mute(hosts, rng.index(hosts));
}

/// Everybody hears one host, and it hears nobody.
fn deaf(links: &mut Matrix, rng: &mut Rng) {
    let hosts = links.0.len();
    *links = Matrix::deaf(hosts, rng.index(hosts));
}

pub(super) fn shuffled(hosts: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts).collect();
    for place in (1..hosts).rev() {
        order.swap(place, rng.index(place + 1));
    }
    order
}
