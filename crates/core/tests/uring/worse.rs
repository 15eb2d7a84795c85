//! A world that is worse: a disk that hangs again and again, logs that are opened again late, an application that is always
//! behind, ways that take seconds for a message, and a log of before the cluster was founded anew that is put back.

use super::disk::{Disk, Mode};
use super::world::{MILLI, World};

/// What is worse here.
#[derive(Default)]
pub struct Worse {
    /// Whose disk hangs again and again.
    ill: usize,
    /// Whose application is always behind.
    behind: usize,
    /// All stores are lost, and a log of before is put back: until then nothing else is worse.
    founds_anew: bool,
    /// An acceptor's log of before all stores were lost.
    old: Option<(usize, Disk)>,
}

impl World {
    /// From the start on.
    pub fn make_worse(&mut self) {
        let nodes = self.nodes.len() as u64;
        self.worse = Some(Worse {
            ill: self.below(nodes) as usize,
            behind: self.below(nodes) as usize,
            founds_anew: self.below(3) == 0,
            old: None,
        });
    }

    /// Goes on with what never ends while there are faults.
    pub fn worsen(&mut self) {
        let Some(worse) = &self.worse else {
            return;
        };
        let (ill, behind) = (worse.ill, worse.behind);
        if worse.founds_anew {
            return match self.former {
                None => self.lose_all_stores(),
                Some(_) => self.put_back(),
            };
        }
        if self.below(2) == 0 {
            self.add("hangs again");
            let until = self.now + self.below(1500) * MILLI;
            let device = &mut self.nodes[ill].device;
            device.hangs_until = until.max(device.hangs_until);
        }
        let until = self.now + self.below(1500) * MILLI;
        if let Some(life) = &mut self.nodes[behind].life {
            life.busy = until.max(life.busy);
        }
        if self.below(4) == 0 {
            self.narrow();
        }
    }

    /// A way on which a message may take longer than a process may be silent.
    fn narrow(&mut self) {
        let nodes = self.nodes.len() as u64;
        let (from, to) = (self.below(nodes) as usize, self.below(nodes) as usize);
        if from == to {
            return;
        }
        self.add("narrow ways");
        let per_milli = [10, 50, 200][self.below(3) as usize];
        self.links.way(from, to).per_milli = per_milli;
    }

    /// How long a log may take until it is opened again.
    pub fn opening_takes(&mut self) -> u64 {
        let late = self.worse.is_some() && self.below(2) == 0;
        if late {
            self.add("late openings");
        }
        self.below(if late { 6000 } else { 200 } * MILLI)
    }

    /// All stores are about to be lost: the log of one of them is set aside.
    pub fn set_aside(&mut self, index: usize) {
        let has_log = self.nodes[index].mode != Mode::Memory;
        let disk = std::mem::take(&mut self.nodes[index].disk);
        if let Some(worse) = &mut self.worse
            && has_log
            && !disk.is_empty()
        {
            worse.old = Some((index, disk));
        }
    }

    /// Whoever has a log of another foundation belongs to nobody.
    fn put_back(&mut self) {
        let old = self.worse.as_ref().and_then(|worse| worse.old.as_ref());
        let Some(index) = old.map(|(index, _)| *index) else {
            return;
        };
        let is_founded = self.former.is_some() && self.is_well();
        if !is_founded || !self.may_break_for_good(index) {
            return;
        }
        self.add("old logs put back");
        self.kill(index);
        let Some(worse) = &mut self.worse else {
            return;
        };
        worse.founds_anew = false;
        if let Some((_, disk)) = worse.old.take() {
            self.nodes[index].disk = disk;
            self.nodes[index].has_old_log = true;
        }
    }

    /// The old log is put away.
    pub fn put_away(&mut self, index: usize) {
        if std::mem::take(&mut self.nodes[index].has_old_log) {
            self.kill(index);
            self.nodes[index].disk.replace();
        }
    }
}
