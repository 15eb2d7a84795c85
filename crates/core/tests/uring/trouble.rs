//! What goes wrong.

use rota_core::contract::{Input, Session};

use super::disk::Mode;
use super::node::Life;
use super::world::{MILLI, World, node_id};

impl World {
    fn disconnect(&mut self, one: usize, other: usize) {
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
        self.nodes[index].again = self.now + pause * MILLI;
        for other in (0..self.nodes.len()).filter(|other| *other != index) {
            self.disconnect(index, other);
        }
    }

    fn lose_power(&mut self, index: usize) {
        self.kill(index);
        let unsynced = self.nodes[index].disk.unsynced() as u64;
        let count = self.below(unsynced + 1) as usize;
        let mode = self.mode;
        self.nodes[index].disk.lose(count, mode);
    }

    /// With acceptors in memory the next one dies only when the last one's place is filled.
    fn may_kill(&self, index: usize) -> bool {
        if self.mode != Mode::Memory {
            return true;
        }
        let is_acceptor = self.config.acceptors.contains(&node_id(index));
        let all = self.nodes.iter().filter_map(|node| node.life.as_ref());
        let all: Vec<&Life> = all.collect();
        let newest = all.iter().map(|life| life.engine.get().number()).max();
        let well = |life: &&Life| {
            let engine = life.engine.get();
            Some(engine.number()) == newest && engine.is_operational() && engine.is_complete()
        };
        !is_acceptor
            || self.config.acceptors.len() > 1
                && all.len() == self.nodes.len()
                && all.iter().all(well)
    }

    pub fn trouble(&mut self) {
        let index = self.below(self.nodes.len() as u64) as usize;
        let other = self.below(self.nodes.len() as u64) as usize;
        match self.below(23) {
            0..=5 if self.may_kill(index) => self.kill(index),
            6 if self.mode != Mode::Memory => {
                self.add("kills of all");
                (0..self.nodes.len()).for_each(|index| self.kill(index));
            }
            7 if self.mode == Mode::Sync => {
                self.add("losses of power");
                (0..self.nodes.len()).for_each(|index| self.lose_power(index));
            }
            8 if self.mode == Mode::Sync => self.lose_power(index),
            9..=11 if index != other => {
                self.add("breaks");
                self.disconnect(index, other);
            }
            12 | 13 if index != other => {
                self.add("cuts");
                self.disconnect(index, other);
                self.links.between(index, other).cut = true;
            }
            14 | 15 => self.mend(),
            16 => {
                self.add("partitions");
                let side: Vec<bool> = (0..self.nodes.len()).map(|_| self.below(2) == 0).collect();
                for one in 0..side.len() {
                    for other in one + 1..side.len() {
                        if side[one] != side[other] {
                            self.disconnect(one, other);
                            self.links.between(one, other).cut = true;
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
            19 if self.mode != Mode::Memory => {
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
            _ => {}
        }
        let pause = [40, 300, 1500][self.below(3) as usize];
        self.fault = self.now + self.below(pause) * MILLI;
    }
}
