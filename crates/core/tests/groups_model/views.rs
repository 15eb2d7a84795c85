//! The promises of engines of primary views: one view after the other, each of a majority with a member of the one
//! before. Each message that a member delivers, all members of its view have; a process in no view delivers nothing.

use rota_core::contract::{Delivery, Process};

use super::bus::{Bus, Port};

impl Port {
    /// It is in no view, where there are any.
    pub fn is_cut_off(&self) -> bool {
        self.frozen
    }
}

impl Bus {
    /// These daemons are together from here on, and the next view if they are the `majority`. Who is told that it is
    /// in no view, says `told`.
    pub fn change_view(
        &mut self,
        ports: &mut [&mut Port],
        majority: bool,
        mut told: impl FnMut() -> bool,
    ) {
        for port in ports.iter_mut() {
            port.frozen = true;
        }
        let last = self.confs.len().checked_sub(1);
        let known = last.is_none_or(|last| ports.iter().any(|port| port.conf == last));
        if !(majority && known) {
            for port in ports.iter_mut().filter(|_| told()) {
                let ring = self.confs.last().map(|conf| conf.ring);
                port.deliveries.extend(ring.map(Delivery::Excluded));
            }
            return;
        }
        if let Some(last) = last {
            self.force(ports, last);
        }
        let mut members: Vec<Process> = ports.iter().map(|port| port.process).collect();
        members.sort_unstable();
        self.install(members);
        for port in ports.iter_mut() {
            let own = self.marks.get(&port.process).copied().unwrap_or(0);
            if port.conf != usize::MAX && Some(port.conf) != last {
                let (seq, count) = (1, 1);
                port.deliveries
                    .push_back(Delivery::Missed { seq, count, own });
            }
            port.backlog.retain(|message| message.counter > own);
            port.placed = 0;
            self.enter(port);
        }
    }

    /// The view ends: who was in it delivers all that any of these has of it.
    fn force(&mut self, ports: &mut [&mut Port], last: usize) {
        let conf = &self.confs[last];
        let survivors = || ports.iter().filter(|port| port.conf == last);
        let received = survivors().map(|port| conf.received[conf.place(port.process)]);
        let all = received.max().unwrap_or(0);
        for message in &conf.order[..all] {
            let mark = self.marks.entry(message.id.process).or_default();
            *mark = message.id.counter.max(*mark);
        }
        for port in ports.iter_mut().filter(|port| port.conf == last) {
            let rest = conf.order[port.delivered..all].iter().cloned();
            port.deliveries.extend(rest.map(Delivery::Message));
            port.delivered = all;
        }
    }

    /// Whether the newest view is remembered without this daemon.
    pub fn is_remembered_by<'a>(&self, mut others: impl Iterator<Item = &'a Port>) -> bool {
        let last = self.confs.len().checked_sub(1);
        last.is_none_or(|last| others.any(|port| port.conf == last))
    }
}
