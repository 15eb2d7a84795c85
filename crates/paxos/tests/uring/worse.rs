//! A world that is worse: a disk that hangs again and again, logs that are opened again late, an application that is always
//! behind, ways that take seconds for a message, and a log of before the cluster was founded anew that is put back. Or one
//! in which nothing is wrong but one disk: then the others may never stand for long.

use super::disk::{Disk, Mode};
use super::world::{BEGUN, MILLI, World};

/// When faults end in a world in which there are few.
const LONG: u64 = 40_000 * MILLI;

/// So many times the silence the others may stand beside what a disk may take.
const SLACK: u64 = 4;

/// What there is in a world.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All at once.
    Mixed,
    /// All stores are lost, and a log of before is put back: until then nothing else is worse.
    FoundedAnew,
    /// One acceptor's disk hangs and fails again and again, and nothing else is wrong.
    OneDisk,
}

/// What is worse here.
pub struct Worse {
    kind: Kind,
    /// Whose disk hangs again and again.
    ill: usize,
    /// Whose application is always behind.
    behind: usize,
    /// An acceptor's log of before all stores were lost.
    old: Option<(usize, Disk)>,
    /// So many messages were ordered, at that time.
    ordered: (usize, u64),
    /// The longest time in which there were some to order, and none was.
    pub stood: u64,
}

impl World {
    /// From the start on.
    pub fn make_worse(&mut self) {
        let nodes = self.nodes.len() as u64;
        let kind = [Kind::Mixed, Kind::FoundedAnew, Kind::OneDisk][self.below(3) as usize];
        let of_three = self.config.acceptors.len() > 2;
        let kind = if of_three { kind } else { Kind::Mixed };
        let mut ill = self.below(nodes) as usize;
        let behind = self.below(nodes) as usize;
        if kind == Kind::OneDisk {
            let acceptors = &self.config.acceptors;
            ill = usize::from(acceptors[ill % acceptors.len()].get()) - 1;
            self.nodes[ill].mode = Mode::Sync;
            self.ends = LONG;
            self.pace.latency = (MILLI, 0);
            self.nodes[ill].device.per_milli = [0, 100][self.below(2) as usize];
            self.config.acceptor.disk_bytes = [3000, 20_000][self.below(2) as usize];
        }
        self.worse = Some(Worse {
            kind,
            ill,
            behind,
            old: None,
            ordered: (0, 0),
            stood: 0,
        });
    }

    /// Goes on with what never ends while there are faults. Whether nothing else may go wrong now.
    pub fn worsen(&mut self) -> bool {
        let Some(worse) = &self.worse else {
            return false;
        };
        let (ill, behind) = (worse.ill, worse.behind);
        match worse.kind {
            Kind::Mixed => {}
            Kind::FoundedAnew => {
                match self.former {
                    None => self.lose_all_stores(),
                    Some(_) => self.put_back(),
                }
                return self.former.is_some();
            }
            Kind::OneDisk => {
                if self.now > BEGUN && self.below(4) == 0 {
                    let most = 2 * self.config.patience.disk + 2000 * MILLI;
                    let until = self.now + self.below(most);
                    self.break_until(ill, until);
                }
                return true;
            }
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
        false
    }

    /// Where nothing is wrong but one disk, the others wait for that as long as they say, and for what follows from it.
    pub fn judge_standing(&mut self) {
        let (now, ordered) = (self.now, self.judge.order.len());
        let oldest = self.taken.values().min().copied();
        let patience = self.config.patience;
        let Some(worse) = self
            .worse
            .as_mut()
            .filter(|worse| worse.kind == Kind::OneDisk)
        else {
            return;
        };
        if ordered > worse.ordered.0 {
            worse.ordered = (ordered, now);
        }
        let Some(since) = oldest.map(|oldest| oldest.max(worse.ordered.1)) else {
            return;
        };
        let stands = now - since;
        worse.stood = worse.stood.max(stands);
        if stands > patience.disk + SLACK * patience.silence {
            let state = self.states();
            let stands = stands / MILLI;
            self.judge
                .found(format!("standing: {stands} ms at {now}, {state}"));
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
        let is_former = |at: &usize| {
            let life = self.nodes[*at].life.as_ref();
            life.is_some_and(|life| life.former)
        };
        if let Some(former) = (0..self.nodes.len()).find(is_former) {
            return self.kill(former);
        }
        let is_founded = self.former.is_some() && self.is_well();
        if !is_founded || !self.may_do_without(index) {
            return;
        }
        self.add("old logs put back");
        self.kill(index);
        let Some(worse) = &mut self.worse else {
            return;
        };
        worse.kind = Kind::Mixed;
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
