//! Faults that wait for their moment: they begin when some process installs a ring, or when all others have ended an
//! exchange.

use rota_core::contract::RingId;

use super::queue::What;
use super::{System, World};
use crate::plan::{Fault, FaultKind, Matrix};

/// Faults, by their places in the plan, that wait for their moment; and those that have begun.
#[derive(Default, Debug)]
pub struct Ambush {
    armed: Vec<u32>,
    /// Each with the links that it has cut.
    begun: Vec<(u32, Matrix)>,
}

impl Ambush {
    /// A fault waits from now on.
    pub fn arm(&mut self, index: u32) {
        self.armed.push(index);
    }

    /// Whether any fault waits.
    pub fn is_armed(&self) -> bool {
        !self.armed.is_empty()
    }

    /// Whether a fault of a kind waits.
    fn has(&self, kind: &FaultKind, faults: &[Fault]) -> bool {
        let mut armed = self.armed.iter();
        armed.any(|index| faults[*index as usize].kind == *kind)
    }

    /// Takes the last fault of a kind that waits.
    fn take(&mut self, kind: &FaultKind, faults: &[Fault]) -> Option<u32> {
        let is_it = |index: &u32| faults[*index as usize].kind == *kind;
        let place = self.armed.iter().rposition(is_it)?;
        Some(self.armed.remove(place))
    }

    /// A fault has cut links.
    fn begin(&mut self, index: u32, links: Matrix) {
        self.begun.push((index, links));
    }

    /// A fault ends. Returns the links that it had cut.
    fn end(&mut self, index: u32) -> Vec<Matrix> {
        let ended = self.begun.extract_if(.., |(by, _)| *by == index);
        ended.map(|(_, links)| links).collect()
    }

    /// No fault waits any more, and none that has begun has an end of its own.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<S: System> World<'_, S> {
    /// A process has installed a ring: if others are still recovering on it, an armed fault cuts it
    /// off from them.
    pub(super) fn snipe(&mut self, at: usize, ring: RingId) {
        let system = self.system;
        let mut others = self.hosts.iter().filter_map(|host| host.life.as_ref());
        if !others.any(|life| system.forming(life.engine.get()) == Some(ring)) {
            return;
        }
        if let Some(index) = self.ambush.take(&FaultKind::Snipe, &self.plan.faults) {
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
        if let Some(index) = self.ambush.take(&FaultKind::Mute, &self.plan.faults) {
            self.tally.cover("mutes");
            self.cut_armed(index, Matrix::mute(self.hosts.len(), at));
        }
    }

    /// Whether a fault of a kind waits for its moment.
    pub(super) fn is_armed(&self, kind: &FaultKind) -> bool {
        self.ambush.has(kind, &self.plan.faults)
    }

    fn cut_armed(&mut self, index: u32, links: Matrix) {
        self.network.cut(&links, true);
        self.ambush.begin(index, links);
        let lasts = self.plan.faults[index as usize].lasts;
        if lasts != u64::MAX {
            self.queue.push(self.now + lasts, What::End(index));
        }
    }

    pub(super) fn end_snipe(&mut self, index: u32) {
        for links in self.ambush.end(index) {
            self.network.cut(&links, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        let (at, lasts) = (0, 1);
        Fault { at, lasts, kind }
    }

    #[test]
    fn a_fault_waits_for_the_moment_of_its_kind_and_gives_its_links_back_once() {
        let faults = [
            fault(FaultKind::Snipe),
            fault(FaultKind::Mute),
            fault(FaultKind::Snipe),
        ];
        let mut ambush = Ambush::default();
        for index in 0..3 {
            ambush.arm(index);
        }
        assert_eq!(ambush.take(&FaultKind::Snipe, &faults), Some(2));
        assert_eq!(ambush.take(&FaultKind::Snipe, &faults), Some(0));
        assert!(!ambush.has(&FaultKind::Snipe, &faults));
        assert!(ambush.has(&FaultKind::Mute, &faults));
        ambush.begin(2, Matrix::alone(3, 1));
        ambush.begin(0, Matrix::alone(3, 2));
        assert_eq!(ambush.end(2), [Matrix::alone(3, 1)]);
        assert_eq!(ambush.end(2), []);
        ambush.clear();
        assert_eq!(ambush.end(0), []);
        assert!(!ambush.is_armed());
    }
}
