//! The time at which records are durable: a disk writes one thing at a time.

use rota_core::contract::{Input, LogId, LogRecord, PersistId};

use crate::setup::DiskPlan;

/// A disk.
#[derive(Debug, Default)]
pub struct Disk {
    /// The end of the write that goes on.
    until: u64,
    /// The end of the write behind it, of all that waits, where that is written together.
    waiting: Option<u64>,
}

impl Disk {
    /// The time at which `bytes` that are handed over now are durable.
    pub fn write(&mut self, plan: &DiskPlan, now: u64, bytes: usize) -> u64 {
        let bytes = bytes as u64 * plan.byte / 1000;
        if let Some(end) = self.waiting.filter(|_| now >= self.until) {
            (self.until, self.waiting) = (end, None);
        }
        if now >= self.until || !plan.groups {
            self.until = self.until.max(now) + plan.write + bytes;
            return self.until;
        }
        let end = self.waiting.unwrap_or(self.until + plan.write) + bytes;
        self.waiting = Some(end);
        end
    }

    /// The time at which records that are handed over now are durable, and what the engine is told then.
    pub fn persist(
        &mut self,
        plan: &DiskPlan,
        now: u64,
        (id, records): (PersistId, &[LogRecord]),
    ) -> (u64, Input) {
        let bytes = records.iter().map(|record| match record {
            LogRecord::Put { bytes, .. } => bytes.len(),
            LogRecord::Trim { .. } => 0,
        });
        let done = self.write(plan, now, bytes.sum());
        (done, Input::Persisted { id })
    }
}

/// The answer to an engine that reads its log back: nothing is there, as no engine begins again here.
pub fn fetched(log: LogId, (from, to): (u64, u64)) -> Input {
    Input::Fetched {
        log,
        from,
        to,
        records: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: DiskPlan = DiskPlan {
        write: 1000,
        byte: 10_000,
        groups: true,
        votes: true,
    };

    #[test]
    fn what_waits_is_written_together() {
        let mut disk = Disk::default();
        assert_eq!(disk.write(&PLAN, 0, 10), 1100);
        assert_eq!(disk.write(&PLAN, 5, 10), 2200);
        assert_eq!(disk.write(&PLAN, 6, 20), 2400);
        // The second write has begun: this is the third.
        assert_eq!(disk.write(&PLAN, 1200, 0), 3400);
        assert_eq!(disk.write(&PLAN, 9000, 0), 10_000);
    }

    #[test]
    fn one_by_one_each_takes_its_time() {
        let plan = DiskPlan {
            groups: false,
            ..PLAN
        };
        let mut disk = Disk::default();
        let ends: Vec<u64> = (0..3).map(|_| disk.write(&plan, 0, 0)).collect();
        assert_eq!(ends, [1000, 2000, 3000]);
    }
}
