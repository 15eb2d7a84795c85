//! Faults: broken links, killed processes, and the like.

use rota_core::contract::{Engine, Input, Session, Time};
use rota_paxos::uring::Arbiter;

use super::disk::Mode;
use super::node::{Life, Node};
use super::world::{MILLI, World, node_id};

impl World {
    pub fn disconnect(&mut self, one: usize, other: usize) {
        let retry = self.now + self.below(80 * MILLI);
        let link = self.links.between(one, other);
        let Some(session) = link.break_up(retry).map(Session) else {
            return;
        };
        for (at, peer) in [(one, other), (other, one)] {
            let peer = node_id(peer);
            self.handle(at, Input::LinkDown { peer, session });
        }
    }

    pub fn kill(&mut self, index: usize) {
        self.judge_life(index);
        if self.nodes[index].life.take().is_none() {
            return;
        }
        self.add("kills");
        let node = &mut self.nodes[index];
        node.answers = None;
        let waiting: usize = node.disk.waiting.iter().map(|(_, all)| all.len()).sum();
        let count = self.below(waiting as u64 + 1) as usize;
        self.nodes[index].disk.end(count);
        let pause = self.below(1500);
        let again = self.now + pause * MILLI;
        self.nodes[index].again = again;
        for other in (0..self.nodes.len()).filter(|other| *other != index) {
            self.disconnect(index, other);
        }
    }

    fn lose_power(&mut self, index: usize) {
        self.kill(index);
        let node = &mut self.nodes[index];
        let (unsynced, mode) = (node.disk.unsynced() as u64, node.mode);
        let count = self.below(unsynced + 1) as usize;
        self.nodes[index].disk.lose(count, mode);
    }

    /// Whether all processes live, in one configuration that has begun, of which everybody knows that it is complete; and no
    /// disk is bad; but for those that are out for good. Before that no acceptor may lose what it knows.
    pub fn is_well(&self) -> bool {
        let is_left = |index: &usize| !self.is_out_for_good(*index);
        let left: Vec<&Node> = (0..self.nodes.len())
            .filter(is_left)
            .map(|index| &self.nodes[index])
            .collect();
        let all: Vec<&Life> = left.iter().filter_map(|node| node.life.as_ref()).collect();
        let newest = all.iter().map(|life| life.engine.get().number()).max();
        let well = |life: &&Life| {
            let engine = life.engine.get();
            let is_in = Some(engine.number()) == newest && engine.is_operational();
            is_in && engine.is_complete() && !life.former
        };
        let is_bad = |node: &Node| node.device.bad_until.max(node.device.hangs_until) > self.now;
        all.len() == left.len()
            && newest > Some(1)
            && all.iter().all(well)
            && !left.iter().any(|node| is_bad(node))
    }

    /// Coordinators order that some instances carry nothing.
    fn skip(&mut self) {
        let now = Time(self.now);
        for index in 0..self.nodes.len() {
            let count = 1 + self.below(300);
            if self.is_awake(index)
                && let Some(life) = &mut self.nodes[index].life
                && let next = life.engine.get().proposed().unwrap_or(1) + count
            {
                if life.engine.submit_skips_to(now, next).is_ok() {
                    self.add("skips");
                }
                self.drain(index);
            }
        }
    }

    fn is_acceptor(&self, index: usize) -> bool {
        // Where lists are ordered anybody may be one soon.
        self.lists.is_some() || self.config.acceptors.contains(&node_id(index))
    }

    /// Whether a node may lose all that it knows: one after the other, when the last one's place is filled.
    fn may_forget(&self, index: usize) -> bool {
        !self.is_acceptor(index) || self.may_do_without(index)
    }

    fn may_kill(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        let remembers = node.mode != Mode::Memory && !node.disk.lost_some;
        remembers || self.may_forget(index)
    }

    /// The end of all processes is that of no store.
    fn all_have_disks(&self) -> bool {
        let mut acceptors = (0..self.nodes.len()).filter(|index| self.is_acceptor(*index));
        acceptors.all(|index| {
            let node = &self.nodes[index];
            node.mode != Mode::Memory && !node.disk.lost_some
        })
    }

    fn all_sync(&self) -> bool {
        let mut acceptors = (0..self.nodes.len()).filter(|index| self.is_acceptor(*index));
        acceptors.all(|index| self.nodes[index].mode == Mode::Sync)
    }

    /// Everything that any acceptor knew is gone, and others live on. All acceptors found a cluster: none of them may be
    /// out for good.
    pub fn lose_all_stores(&mut self) {
        let mut acceptors = (0..self.nodes.len()).filter(|index| self.is_acceptor(*index));
        let cannot_found = acceptors.any(|index| self.is_out_for_good(index));
        if self.lists.is_some()
            || self.former.is_some()
            || self.config.arbiter == Arbiter::Service
            || cannot_found
        {
            return;
        }
        self.add("foundations");
        let only_as_member = self.judge.only_as_member;
        let former = std::mem::take(&mut self.judge);
        (self.judge.only_as_member, self.judge.keeps) = (only_as_member, former.keeps);
        self.former = Some(former);
        for index in 0..self.nodes.len() {
            if self.is_acceptor(index) {
                self.kill(index);
                self.set_aside(index);
            }
            if let Some(life) = &mut self.nodes[index].life {
                // Who has not heard of a configuration yet belongs to none.
                life.former = life.engine.get().number() > 0;
            }
        }
    }

    pub fn trouble(&mut self) {
        let pause = [40, 300, 1500][self.below(3) as usize];
        self.fault = self.now + self.below(pause) * MILLI;
        if self.worsen() {
            return;
        }
        self.order_lists();
        self.wear_out();
        let index = self.below(self.nodes.len() as u64) as usize;
        let other = self.below(self.nodes.len() as u64) as usize;
        match self.below(29) {
            0..=5 if self.may_kill(index) => self.kill(index),
            6 if self.all_have_disks() => {
                self.add("kills of all");
                (0..self.nodes.len()).for_each(|index| self.kill(index));
            }
            7 if self.all_sync() => {
                self.add("losses of power");
                (0..self.nodes.len()).for_each(|index| self.lose_power(index));
            }
            8 if self.nodes[index].mode == Mode::Sync || self.may_forget(index) => {
                self.add("losses of power of one");
                self.lose_power(index);
            }
            9..=11 if index != other => {
                self.add("breaks");
                self.disconnect(index, other);
            }
            12 | 13 if index != other => {
                self.add("cuts");
                self.cut(index, other);
            }
            14 | 15 => self.mend(),
            16 => {
                self.add("partitions");
                let side: Vec<bool> = (0..self.nodes.len()).map(|_| self.below(2) == 0).collect();
                for one in 0..side.len() {
                    for other in one + 1..side.len() {
                        if side[one] != side[other] {
                            self.cut(one, other);
                        }
                    }
                }
            }
            17 => {
                self.add("stops");
                let until = self.now + self.below(1200) * MILLI;
                if let Some(life) = &mut self.nodes[index].life {
                    life.stopped = until;
                }
            }
            18 if index != other => {
                // The link is up, and nothing comes one way.
                self.add("held");
                let until = self.now + self.below(1500) * MILLI;
                self.links.way(index, other).held = until;
            }
            19 if self.nodes[index].mode != Mode::Memory => {
                let until = self.now + self.below(2) * 800 * MILLI;
                self.break_disk(index);
                if let Some(life) = &mut self.nodes[index].life {
                    life.busy = until;
                }
            }
            20 => {
                let until = self.now + self.below(1000) * MILLI;
                if let Some(life) = &mut self.nodes[index].life {
                    life.busy = until;
                }
            }
            21 => self.service.stopped = self.now + self.below(2000) * MILLI,
            22 | 23 if self.may_forget(index) => {
                self.add("replaced disks");
                self.kill(index);
                self.nodes[index].disk.replace();
            }
            24 if self.below(2) == 0 && self.may_do_without(index) => {
                self.add("nodes that are gone for good");
                self.kill(index);
                self.nodes[index].retired = true;
            }
            25 if self.below(12) == 0 => self.lose_all_stores(),
            26 | 27 => self.skip(),
            _ => {}
        }
    }
}
