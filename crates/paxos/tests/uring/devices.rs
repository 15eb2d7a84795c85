//! The disks of the world: the times that they take, and those at which they fail, hang, and are opened again.

use rota_core::contract::{Input, LogRecord, PersistError, PersistId};

use super::disk::Mode;
use super::world::{MILLI, World};

/// What is wrong with a node's disk.
#[derive(Default)]
pub struct Device {
    /// It writes nothing until then.
    pub bad_until: u64,
    /// It answers nothing until then.
    pub hangs_until: u64,
    /// Up to which request it writes now.
    pub writes: Option<PersistId>,
    /// So many bytes it writes in a millisecond; 0: as many as others.
    pub per_milli: u64,
    /// When its log is opened again.
    pub reopens: Option<u64>,
}

/// How quick all disks are.
#[derive(Clone, Copy, Default)]
pub struct Pace {
    /// How long it takes to write what waits, at most, in nanoseconds, and at least.
    pub latency: (u64, u64),
    /// Bytes in a millisecond; 0: any number.
    pub per_milli: u64,
}

impl World {
    /// What the disk is handed.
    pub fn persist(&mut self, index: usize, id: PersistId, records: Vec<LogRecord>) {
        let node = &mut self.nodes[index];
        node.disk.waiting.push_back((id, records));
        if node.answers.is_none() {
            self.write(index);
        }
    }

    /// A first part of what waits, or all of it, is written and synced together. What comes meanwhile has to wait for the next
    /// time.
    fn write(&mut self, index: usize) {
        let count = self.nodes[index].disk.waiting.len();
        if count == 0 {
            self.nodes[index].answers = None;
            return;
        }
        // Slow disks write what has gathered.
        let is_slow = self.pace.latency.1 > 0;
        let some = self.below(count as u64) as usize;
        let upto = if is_slow { count - 1 } else { some };
        let node = &self.nodes[index];
        let bytes = node.disk.bytes(upto);
        let delay = match node.mode {
            Mode::Memory => 0,
            Mode::Async | Mode::Sync => self.write_takes(index, bytes),
        };
        let node = &mut self.nodes[index];
        node.device.writes = Some(node.disk.waiting[upto].0);
        node.answers = Some(self.now + delay);
    }

    fn write_takes(&mut self, index: usize, bytes: u64) -> u64 {
        let Pace {
            latency: (most, least),
            per_milli,
        } = self.pace;
        let own = self.nodes[index].device.per_milli;
        let per_milli = if own > 0 { own } else { per_milli };
        let most = if self.below(50) == 0 {
            300 * MILLI
        } else {
            most
        };
        let writes = (bytes * MILLI).checked_div(per_milli).unwrap_or(0);
        least + self.below(most.max(1)) + writes
    }

    /// The disk has written what it was handed, or a first part of that.
    pub fn answer(&mut self, index: usize) {
        let (now, mode) = (self.now, self.nodes[index].mode);
        let is_due = self.nodes[index].answers.is_some_and(|at| at <= now);
        if !(is_due && self.is_awake(index)) {
            return;
        }
        let node = &mut self.nodes[index];
        let Some(id) = node.device.writes.filter(|_| !node.disk.waiting.is_empty()) else {
            node.answers = None;
            return;
        };
        if node.device.hangs_until > now {
            node.answers = Some(node.device.hangs_until);
            return;
        }
        if node.device.bad_until > now {
            return self.fail(index);
        }
        node.disk.answer(id, mode);
        self.write(index);
        if self.below(8) == 0 {
            let unsynced = self.nodes[index].disk.unsynced() as u64;
            let count = self.below(unsynced + 1) as usize;
            self.nodes[index].disk.sync(count);
        }
        self.handle(index, Input::Persisted { id });
    }

    /// The disk could not write: of what it was handed there is a first part at most.
    fn fail(&mut self, index: usize) {
        let Some((id, _)) = self.nodes[index].disk.waiting.front() else {
            return;
        };
        let id = *id;
        self.end_disk(index);
        // What the system has not written is gone.
        let node = &mut self.nodes[index];
        let (unsynced, mode) = (node.disk.unsynced() as u64, node.mode);
        if mode == Mode::Async {
            let count = self.below(unsynced + 1) as usize;
            self.nodes[index].disk.lose(count, mode);
        }
        self.add("failed writes");
        let error = PersistError::Io("no".to_owned());
        self.handle(index, Input::PersistFailed { id, error });
    }

    /// What it was handed and has not answered is there, or a first part of it.
    fn end_disk(&mut self, index: usize) {
        let waiting = self.nodes[index].disk.waiting.iter();
        let waiting: usize = waiting.map(|(_, records)| records.len()).sum();
        let there = self.below(waiting as u64 + 1) as usize;
        let node = &mut self.nodes[index];
        node.disk.end(there);
        node.answers = None;
    }

    /// The process has given its log up.
    pub fn reopen(&mut self, index: usize) {
        self.add("given up");
        self.end_disk(index);
        let takes = self.opening_takes();
        self.nodes[index].device.reopens = Some(self.now + takes);
    }

    /// Opens a log again, if its disk is well.
    pub fn open_again(&mut self, index: usize) {
        let (now, mode) = (self.now, self.nodes[index].mode);
        let node = &mut self.nodes[index];
        let device = &mut node.device;
        let is_due = device.reopens.is_some_and(|at| at <= now);
        if !is_due || node.life.is_none() {
            return;
        }
        if device.bad_until.max(device.hangs_until) > now {
            device.reopens = Some(now + 100 * MILLI);
            return;
        }
        if !self.is_awake(index) {
            return;
        }
        let node = &mut self.nodes[index];
        node.device.reopens = None;
        let records = match mode {
            Mode::Memory => Vec::new(),
            Mode::Async | Mode::Sync => node.disk.found(),
        };
        let lost_some = node.disk.lost_some;
        self.add("opened again");
        self.handle(index, Input::Reopened { records, lost_some });
    }

    /// Disks are well from here on, but for those that are bad for good.
    pub fn mend_disks(&mut self) {
        for node in &mut self.nodes {
            if node.device.bad_until < u64::MAX {
                node.device.bad_until = 0;
            }
            if node.device.hangs_until < u64::MAX {
                node.device.hangs_until = 0;
            }
        }
    }

    /// A disk fails or hangs for a while, and perhaps for good when that may be.
    pub fn break_disk(&mut self, index: usize) {
        if self.below(3) > 0 {
            self.wears_out.get_or_insert(index);
        }
        let until = self.now + self.below(3000) * MILLI;
        self.break_until(index, until);
    }

    /// The disk of a minority that is to fail or hang for good does so, if that may be now.
    pub fn wear_out(&mut self) {
        let may = |index: &usize| self.may_do_without(*index);
        if let Some(index) = self.wears_out.filter(may) {
            self.wears_out = None;
            self.add("disks that are bad for good");
            self.break_until(index, u64::MAX);
        }
    }

    pub fn break_until(&mut self, index: usize, until: u64) {
        let hangs = self.below(2) == 0;
        let device = &mut self.nodes[index].device;
        match hangs {
            true => device.hangs_until = until.max(device.hangs_until),
            false => device.bad_until = until.max(device.bad_until),
        }
        self.add(if hangs { "hanging disks" } else { "bad disks" });
    }

    /// Whether a majority is left without this one; and what others have to know of it they know.
    pub fn may_do_without(&self, index: usize) -> bool {
        let acceptors = self.acceptors();
        let all = acceptors.iter().map(|node| usize::from(node.get()) - 1);
        let out = all.filter(|at| *at == index || self.is_out_for_good(*at));
        2 * out.count() < acceptors.len() && self.is_at_list() && self.is_well()
    }

    /// Whether a node votes no more, whatever happens.
    pub fn is_out_for_good(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        let device = &node.device;
        node.retired || device.bad_until.max(device.hangs_until) == u64::MAX
    }
}
