//! Faults that wait for their moment: they begin when some process installs a ring, or when all others have ended an
//! exchange.

use rota_core::contract::RingId;

use super::queue::What;
use super::{System, World};
use crate::plan::{FaultKind, Matrix};

impl<S: System> World<'_, S> {
    /// A process has installed a ring: if others are still recovering on it, an armed fault cuts it
    /// off from them.
    pub(super) fn snipe(&mut self, at: usize, ring: RingId) {
        let system = self.system;
        let mut others = self.hosts.iter().filter_map(|host| host.life.as_ref());
        if !others.any(|life| system.forming(life.engine.get()) == Some(ring)) {
            return;
        }
        if let Some(index) = self.take_armed(&FaultKind::Snipe) {
            self.tally.cover("snipes");
            self.cut_armed(index, Matrix::alone(self.hosts.len(), at));
        }
    }

    /// A process is about to say the last of what members of a configuration lack: if all others have said theirs, an
    /// armed fault makes it mute.
    pub(super) fn mute(&mut self, at: usize, said: (RingId, usize)) {
        let system = self.system;
        let lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        let have = lives.filter(|life| system.said(life.engine.get()) == Some(said));
        if have.count() < said.1 {
            return;
        }
        if let Some(index) = self.take_armed(&FaultKind::Mute) {
            self.tally.cover("mutes");
            self.cut_armed(index, Matrix::mute(self.hosts.len(), at));
        }
    }

    /// Whether a fault of a kind waits for its moment.
    pub(super) fn is_armed(&self, kind: &FaultKind) -> bool {
        let mut armed = self.armed.iter();
        armed.any(|index| self.plan.faults[*index as usize].kind == *kind)
    }

    /// The last fault of a kind that waits for its moment.
    fn take_armed(&mut self, kind: &FaultKind) -> Option<u32> {
        let faults = &self.plan.faults;
        let is_it = |index: &u32| faults[*index as usize].kind == *kind;
        let place = self.armed.iter().rposition(is_it)?;
        Some(self.armed.remove(place))
    }

    fn cut_armed(&mut self, index: u32, links: Matrix) {
        self.network.cut(&links, true);
        self.sniped.push((index, links));
        let lasts = self.plan.faults[index as usize].lasts;
        if lasts != u64::MAX {
            self.queue.push(self.now + lasts, What::End(index));
        }
    }

    pub(super) fn end_snipe(&mut self, index: u32) {
        for (_, links) in self.sniped.extract_if(.., |(by, _)| *by == index) {
            self.network.cut(&links, false);
        }
    }
}
