//! Logs that are given up and opened again.

use rota_core::contract::Input;

use super::super::queue::What;
use super::super::{System, World};
use super::REOPENS;
use crate::plan::{DiskMode, MILLIS};

impl<S: System> World<'_, S> {
    /// A process has given its log up.
    pub(in crate::world) fn reopen(&mut self, at: usize) {
        self.tally.cover("logs_given_up");
        let is_async = self.mode(at) == Some(DiskMode::Async);
        let loses = self.hosts[at].disk.is_broken() && is_async && self.is_bounded();
        let host = &mut self.hosts[at];
        host.disk.give_up(self.now, loses, &mut self.votes.rng);
        host.reopens = true;
        let (host, life) = (at as u16, host.lives);
        let later = self.now + self.votes.rng.spread(MILLIS, 2 * REOPENS);
        self.queue.push(later, What::Reopen { host, life });
    }

    /// A log is opened again, if its disk is well.
    pub(in crate::world) fn open_again(&mut self, at: usize, life: u32) {
        let host = &mut self.hosts[at];
        if host.lives != life || !host.reopens || host.life.is_none() {
            return;
        }
        if !host.disk.is_well() {
            if !host.disk.is_dead {
                let host = at as u16;
                let later = self.now + REOPENS;
                self.queue.push(later, What::Reopen { host, life });
            }
            return;
        }
        host.reopens = false;
        let (records, lost_some) = (host.disk.records(), host.disk.lost_some);
        if let Some(life) = &mut host.life {
            life.inputs
                .push_back(Input::Reopened { records, lost_some });
        }
        if host.disk.is_read() {
            // What was to be read back meanwhile is read now.
            let (host, life) = (at as u16, host.lives);
            self.queue.push(self.now, What::Written { host, life });
        }
        self.tally.cover("logs_opened_again");
        self.wake_now(at);
    }

    /// A disk is well again, unless it is bad for good: it answers the requests that wait.
    pub(in crate::world) fn mend_disk(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.disk.mend();
        let (host, life) = (at as u16, host.lives);
        self.queue.push(self.now, What::Written { host, life });
    }
}
