//! Traits of some seeds of engines that vote beside those that are drawn for all: storage that is slow, full of gaps or
//! lost, voters that are gone for good, settings that differ from node to node.
//!
//! The traits are drawn from a stream of their own, and faults come behind the others, so that seeds without them are
//! what they always were. A loss waits for a moment at which it may be: a majority keeps what it has to keep.

use super::profile::Allowed;
use super::{
    Abilities, DiskLoss, DiskMode, Fault, FaultKind, Loss, MICROS, MILLIS, Matrix, Plan, Power,
    Profile, SECONDS, ServicePlan,
};
use crate::rng::Rng;

/// Lives of a node that a churn has time for: more than the 64 ended ones that a process that proposes remembers.
const LIVES: u64 = 80;
/// Bits in a second.
const GIGABIT: u64 = 1_000_000_000;
/// The longest time for which a loss waits for its moment, in losses of a token.
const WAITS: u64 = 40;

impl Plan {
    /// Draws traits that some seeds have beside those that are drawn for all; with [`Profile::Stores`] all seeds.
    pub fn widen(&mut self, profile: Profile) {
        let mut rng = Rng::split(self.seed, 17);
        let is_drawn = rng.percent(60);
        if profile == Profile::Observers {
            self.have_observers();
        }
        let wanted = is_drawn || matches!(profile, Profile::Stores | Profile::Archive);
        if !wanted || profile == Profile::None || self.uring.is_none() {
            return;
        }
        self.widen_settings(&mut rng, profile.power());
        self.widen_devices(&mut rng);
        if profile == Profile::Archive {
            self.keep_little_in_memory();
        }
        if rng.percent(8) {
            self.enlarge(&mut rng);
        }
        let allowed = profile.allowed(Abilities::ALL);
        if allowed.crashes {
            let faults = match profile {
                Profile::Stores => rng.range(4, 10),
                _ => rng.range(0, 7),
            };
            self.draw_losses(&mut rng, allowed, faults);
        }
    }

    fn widen_settings(&mut self, rng: &mut Rng, power: Power) {
        let nodes = self.nodes();
        let Some(uring) = &mut self.uring else { return };
        uring.is_wide = true;
        // Without a capacity some processes drown each other in datagrams, and this is about storage.
        uring.dissemination.pace(GIGABIT);
        let keeps = rng.pick(&[40, 200, 1000, 15_000]);
        let kept = |_| rng.pick(&[keeps, keeps, 60, 1000]);
        uring.kept.instances = (0..nodes).map(kept).collect();
        let modes = [
            DiskMode::Memory,
            DiskMode::Async,
            DiskMode::Async,
            DiskMode::Sync,
            DiskMode::Sync,
        ];
        if rng.percent(40) && power != Power::Fails {
            uring.modes = (0..nodes).map(|_| rng.pick(&modes)).collect();
        }
        uring.forgets = rng.percent(50);
        // Members are what observers never are.
        uring.only_as_member = rng.percent(20) && uring.places.observers == 0;
        let service = ServicePlan {
            latency: rng.spread(MILLIS, 2 * self.ring.timers.token_loss),
            lost: rng.pick(&[0, 100_000, 300_000]),
        };
        uring.service = rng.percent(20).then_some(service);
        uring.skips = rng.pick(&[0, 0, 10_000, 300_000]);
        uring.disk_patience = rng.pick(&[None, None, Some(400 * MILLIS), Some(SECONDS)]);
    }

    /// Some of the nodes that do not vote observe: the last ones.
    fn have_observers(&mut self) {
        let (nodes, most) = (self.nodes(), Rng::split(self.seed, 22).pick(&[1, 1, 2]));
        if let Some(uring) = &mut self.uring {
            uring.places.observers = (nodes - uring.voters).min(most);
        }
    }

    /// Values leave memory soon, and some of them cannot be read back. Disks keep them, and for long enough.
    fn keep_little_in_memory(&mut self) {
        let mut rng = Rng::split(self.seed, 19);
        let Some(uring) = &mut self.uring else { return };
        uring.kept.memory_bytes = Some(rng.pick(&[0, 2_000, 20_000, 100_000]));
        uring.forgets &= rng.percent(20);
        let keeps = rng.pick(&[200, 1000, 15_000]);
        uring
            .kept
            .instances
            .iter_mut()
            .for_each(|kept| *kept = keeps.max(*kept));
        if let Some(disks) = &mut self.disks {
            disks.unreadable = rng.pick(&[10_000, 100_000]);
        }
    }

    fn widen_devices(&mut self, rng: &mut Rng) {
        let per_milli = rng.pick(&[0, 0, 100_000, 20_000, 3_000]);
        let always_slow = rng.percent(20);
        let least = rng.spread(5 * MILLIS, 100 * MILLIS);
        if let Some(disks) = &mut self.disks {
            disks.per_milli = per_milli;
            if always_slow {
                disks.latency = (least, 2 * least);
            }
        }
        if let Some(uring) = self.uring.as_mut().filter(|_| always_slow) {
            // A window takes as long as a write; all has to be over some time.
            uring.window_bytes = uring.window_bytes.max(64 << 10);
        }
        let byte_nanos = rng.pick(&[8, 8, 8, 80, 400]);
        if let Some(links) = &mut self.links {
            links.byte_nanos = byte_nanos;
        }
    }

    /// Messages of megabytes, few of them, and windows for them.
    fn enlarge(&mut self, rng: &mut Rng) {
        let nodes = self.nodes();
        let Some(uring) = &mut self.uring else { return };
        if uring.dissemination.is_multicast() && nodes > 7 {
            return;
        }
        let largest = rng.pick(&[2 << 20, 6 << 20, 16 << 20]);
        self.ring.message_bytes = largest;
        self.ring.backlog_bytes = 2 * largest;
        uring.frame_bytes = 16_000;
        uring.window_bytes = rng.pick(&[1 << 20, 4 << 20, 16 << 20]);
        uring.batch_bytes = 64 << 10;
        if let Some(links) = &mut self.links {
            links.byte_nanos = links.byte_nanos.min(80);
            links.queue_bytes = 1 << 20;
        }
        // All nodes together send about 96 MiB of them.
        let count = (96 << 20) / largest as u64 / self.hosts.len() as u64;
        for host in &mut self.hosts {
            let source = &mut host.source;
            source.large_bytes = largest as u64;
            source.large = 200_000;
            let most = 5 * count.max(1);
            source.budget = source.budget.min(most as u32);
            source.batch = 1;
            source.every = source.every.max(self.horizon / 2 / most);
        }
    }

    fn draw_losses(&mut self, rng: &mut Rng, allowed: Allowed, count: u64) {
        let token = self.ring.timers.token_loss;
        let before = self.horizon;
        let mut at = rng.range(before / 20, before / 2);
        let mut faults = Vec::new();
        for _ in 0..count {
            let (lasts, kind) = self.draw_loss(rng, allowed);
            faults.push(Fault { at, lasts, kind });
            at += rng.spread(token / 4, 8 * token);
        }
        // A disk was replaced, and another old voter does not come back from a restart of all.
        let voters = self.voters();
        if count > 0 && rng.percent(30) && voters > 2 {
            let first = rng.index(voters);
            let other = (first + rng.range(1, voters as u64 - 1) as usize) % voters;
            let replaced = FaultKind::Loses {
                host: first,
                what: Loss::Disk,
            };
            let restart = restart(rng, Some(other));
            for kind in [replaced, restart] {
                let lasts = WAITS * token;
                faults.push(Fault { at, lasts, kind });
                at += rng.range(6 * token, 10 * token);
            }
        }
        if count > 0 && rng.percent(20) && voters < self.nodes() {
            let (lasts, kind) = (WAITS * token, FaultKind::LoseAll);
            faults.push(Fault { at, lasts, kind });
            at += rng.range(token, 10 * token);
        }
        // The second is a stream of its own, as it came later: most seeds stay what they were.
        let is_drawn = rng.percent(4) || Rng::split(self.seed, 20).percent(8);
        if is_drawn && token < 200 * MILLIS {
            let host = rng.index(self.nodes());
            let lasts = LIVES * 2 * token;
            let kind = FaultKind::Churn { host };
            let at = before / 2;
            faults.push(Fault { at, lasts, kind });
            self.horizon = self.horizon.max(at + lasts);
        }
        self.horizon = self.horizon.max(at + 8 * token);
        self.faults.extend(faults);
        let stretch =
            |every: u64| (u128::from(every) * u128::from(self.horizon) / u128::from(before)) as u64;
        for host in &mut self.hosts {
            host.source.every = stretch(host.source.every);
        }
    }

    fn voters(&self) -> usize {
        self.uring.as_ref().map_or(0, |uring| uring.voters)
    }

    /// The time that a loss lasts, or is waited for, and its kind.
    fn draw_loss(&self, rng: &mut Rng, allowed: Allowed) -> (u64, FaultKind) {
        let token = self.ring.timers.token_loss;
        let among = if rng.percent(80) {
            self.voters()
        } else {
            self.nodes()
        };
        let host = rng.index(among);
        let waits = WAITS * token;
        let patience = self.uring.as_ref().and_then(|uring| uring.disk_patience);
        let patience = patience.unwrap_or(3 * SECONDS);
        let hangs = rng.percent(50);
        let loses = |what| (waits, FaultKind::Loses { host, what });
        match rng.below(32) {
            0..=5 => loses(Loss::Disk),
            6..=9 => loses(Loss::Power),
            10 | 11 => loses(Loss::Newest),
            12 => loses(Loss::Node),
            13 | 14 if allowed.disk => loses(Loss::Device { hangs }),
            15..=17 => (waits, restart(rng, None)),
            18 => (waits, restart(rng, Some(host))),
            19 => (waits, FaultKind::LoseAll),
            20..=23 if allowed.disk => {
                let lasts = rng.spread(token / 2, 2 * patience);
                (lasts, FaultKind::DiskHangs { host })
            }
            24..=26 if allowed.disk => {
                let full = rng.percent(50);
                (
                    rng.spread(MICROS, 4 * token),
                    FaultKind::DiskFails { host, full },
                )
            }
            27 => (rng.spread(token / 4, 8 * token), FaultKind::ServiceStops),
            28 if allowed.partitions => {
                let (shape, links) = ("one alone", Matrix::alone(self.nodes(), host));
                (rng.range(token, 4 * token), FaultKind::Cut { shape, links })
            }
            _ => {
                let kind = FaultKind::Kill {
                    host,
                    outputs: rng.below(12) as u32,
                    host_too: rng.percent(40),
                    disk: left(rng),
                    for_good: false,
                };
                (rng.spread(MILLIS, 4 * token), kind)
            }
        }
    }
}

fn left(rng: &mut Rng) -> DiskLoss {
    rng.pick(&[DiskLoss::Nothing, DiskLoss::Unsynced, DiskLoss::Torn])
}

fn restart(rng: &mut Rng, dead: Option<usize>) -> FaultKind {
    FaultKind::RestartAll {
        dead,
        power: rng.percent(50),
        disk: left(rng),
    }
}
