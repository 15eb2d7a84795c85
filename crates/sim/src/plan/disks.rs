//! The disks of hosts, where engines keep logs on them.

use super::{DiskLoss, Fault, FaultKind, MICROS, MILLIS, Plan};
use crate::rng::{Ppm, Rng};

/// The guarantee that an answer of a disk gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskMode {
    /// Nothing: all is lost with the process.
    Memory,
    /// The records are in the hands of the system: all is lost with the machine's power.
    Async,
    /// The records are on the disk.
    Sync,
}

/// The disks that an engine keeps a log on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DisksPlan {
    /// The guarantee that an answer gives.
    pub mode: DiskMode,
    /// The time that it takes to write all that waits, in nanoseconds: at least, and at most.
    pub latency: (u64, u64),
    /// The share of writes that take much longer.
    pub slow: Ppm,
    /// The longest time of such a write, in nanoseconds.
    pub slow_for: u64,
    /// The longest time from an answer to the disk where the answer does not say that the records are there, in
    /// nanoseconds.
    pub lag: u64,
    /// Bytes that are written in a millisecond; 0: any number.
    pub per_milli: u64,
    /// The share of attempts to read records back that fail.
    pub unreadable: Ppm,
    /// All that a fault names is lost, also of a majority, and nobody is told. Never drawn.
    pub lies: bool,
    /// A request that failed is answered like any other: a driver that does so is wrong. Never drawn.
    pub hides_failures: bool,
}

/// Whether machines lose their power, where what is answered is on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// They do not.
    Lasts,
    /// Some seeds have it.
    MayFail,
    /// They do, and what is answered is on disk in every seed.
    Fails,
}

impl DisksPlan {
    fn drawn(rng: &mut Rng, token_loss: u64, power: Power) -> Self {
        let drawn = rng.pick(&[
            DiskMode::Sync,
            DiskMode::Sync,
            DiskMode::Sync,
            DiskMode::Async,
            DiskMode::Memory,
        ]);
        let mode = match power {
            Power::Fails => DiskMode::Sync,
            Power::Lasts | Power::MayFail => drawn,
        };
        let least = match mode {
            DiskMode::Sync => rng.spread(10 * MICROS, 5 * MILLIS),
            DiskMode::Async | DiskMode::Memory => MICROS,
        };
        Self {
            mode,
            latency: (least, least * rng.range(1, 10)),
            slow: rng.pick(&[0, 1000, 20_000]),
            slow_for: rng.spread(10 * MILLIS, 4 * token_loss),
            lag: rng.spread(MILLIS, 4 * token_loss),
            per_milli: 0,
            unreadable: 0,
            lies: false,
            hides_failures: false,
        }
    }
}

impl Plan {
    /// The same world for an engine that keeps a log at the first `voters` nodes.
    pub fn set_disks(&mut self, voters: usize, power: Power) {
        let mut rng = Rng::split(self.seed, 14);
        let disks = DisksPlan::drawn(&mut rng, self.ring.timers.token_loss, power);
        self.disks = Some(disks);
        match power {
            Power::Lasts => {}
            Power::MayFail => self.draw_losses_of_power(&mut rng, [0, 1, 1, 2]),
            Power::Fails => self.draw_losses_of_power(&mut rng, [1, 1, 2, 3]),
        }
        self.bound_losses(voters);
    }

    /// Losses of power come behind the other faults, so that those have the places that they have without.
    fn draw_losses_of_power(&mut self, rng: &mut Rng, counts: [u32; 4]) {
        let nodes = self.nodes();
        for _ in 0..rng.pick(&counts) {
            let at = rng.range(self.horizon / 20, self.horizon * 9 / 10);
            let all = rng.percent(60);
            let one = rng.index(nodes);
            let hosts = (0..nodes).filter(|host| all || *host == one || rng.percent(30));
            let kind = FaultKind::PowerLoss {
                hosts: hosts.collect(),
                disk: rng.pick(&[DiskLoss::Nothing, DiskLoss::Unsynced, DiskLoss::Torn]),
            };
            let lasts = rng.spread(MILLIS, 3 * self.ring.timers.token_loss);
            self.faults.push(Fault { at, lasts, kind });
        }
    }

    /// The records that a majority of the voters has on disk have to stay there: so each of their disks is replaced
    /// once at most, and fewer than half of them. Nobody puts an older copy back. A machine loses no power if an answer
    /// does not say that something is on its disk; a disk ends with its process if an answer says nothing.
    fn bound_losses(&mut self, voters: usize) {
        let Some(DisksPlan { mode, .. }) = self.disks else {
            return;
        };
        let is_loss = |kind: &FaultKind| matches!(kind, FaultKind::PowerLoss { .. });
        self.faults
            .retain(|fault| mode == DiskMode::Sync || !is_loss(&fault.kind));
        // Memory does not fail.
        let fails = |kind: &FaultKind| matches!(kind, FaultKind::DiskFails { .. });
        self.faults
            .retain(|fault| mode != DiskMode::Memory || !fails(&fault.kind));
        let mut replaced: Vec<usize> = Vec::new();
        let most = voters.saturating_sub(1) / 2;
        self.faults.retain_mut(|fault| {
            let FaultKind::Kill {
                host,
                host_too,
                disk,
                for_good,
                ..
            } = &mut fault.kind
            else {
                return true;
            };
            if mode != DiskMode::Sync {
                *host_too = false;
            }
            if mode == DiskMode::Memory {
                *disk = DiskLoss::Everything;
            } else if *disk == DiskLoss::Backup {
                *disk = DiskLoss::Torn;
            }
            if *host >= voters {
                return true;
            }
            let again = replaced.len() >= most || replaced.contains(host);
            // A cluster that is not founded needs all voters.
            *for_good = false;
            if *disk == DiskLoss::Everything && again {
                *disk = DiskLoss::Unsynced;
                // A disk in memory alone cannot be spared.
                return mode != DiskMode::Memory;
            }
            if *disk == DiskLoss::Everything {
                replaced.push(*host);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use rota_ring::Protocol;

    use super::super::{Abilities, Profile};
    use super::*;

    const VOTERS: usize = 5;

    fn plans(power: Power) -> impl Iterator<Item = Plan> {
        (0..300).map(move |seed| {
            let mut plan = Plan::random(seed, Protocol::Accelerated, Profile::All, Abilities::ALL);
            plan.set_disks(VOTERS, power);
            plan
        })
    }

    #[test]
    fn power_fails_in_every_seed_where_it_is_asked_for() {
        let is_loss = |fault: &Fault| matches!(fault.kind, FaultKind::PowerLoss { .. });
        let mut more = 0;
        for plan in plans(Power::Fails) {
            let losses = plan.faults.iter().filter(|fault| is_loss(fault)).count();
            let mode = plan.disks.expect("they were drawn").mode;
            assert!(mode == DiskMode::Sync && losses > 0, "seed {}", plan.seed);
            more += usize::from(losses > 1);
        }
        assert!(more > 100, "{more}");
        let lasts = plans(Power::Lasts).flat_map(|plan| plan.faults);
        assert_eq!(lasts.filter(is_loss).count(), 0);
    }

    #[test]
    fn nothing_is_lost_that_a_majority_has_to_keep() {
        let mut seen = [0; 3];
        for plan in plans(Power::MayFail) {
            let mode = plan.disks.expect("they were drawn").mode;
            let mut replaced = Vec::new();
            for fault in &plan.faults {
                match &fault.kind {
                    FaultKind::PowerLoss { hosts, .. } => {
                        assert!(mode == DiskMode::Sync && !hosts.is_empty());
                        seen[0] += usize::from(hosts.len() == plan.nodes());
                    }
                    FaultKind::Kill {
                        host,
                        host_too,
                        disk,
                        ..
                    } => {
                        assert!(mode == DiskMode::Sync || !host_too);
                        assert_ne!(*disk, DiskLoss::Backup);
                        assert!(mode != DiskMode::Memory || *disk == DiskLoss::Everything);
                        // A node that does not vote may lose anything.
                        let is_lost = *disk == DiskLoss::Everything && *host < VOTERS;
                        replaced.extend(is_lost.then_some(*host));
                    }
                    _ => {}
                }
            }
            let count = replaced.len();
            replaced.sort_unstable();
            replaced.dedup();
            assert!(
                replaced.len() == count && 2 * count < VOTERS,
                "seed {}",
                plan.seed
            );
            seen[1] += usize::from(count == 2);
            seen[2] += usize::from(mode == DiskMode::Memory && count > 0);
        }
        assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    }
}
