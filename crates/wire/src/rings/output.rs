//! What an engine of several asks for, carried out one by one.

use rota_core::contract::{Engine, Output};

use super::turn::Clock;
use super::world::World;
use crate::disk;
use crate::step::index;

impl World<'_> {
    /// Carries out all outputs of a ring.
    pub fn drain(&mut self, (at, lane): (usize, usize), clock: &mut Clock) {
        while let Some(output) = self.hosts[at].lanes[lane].engine.poll_output() {
            self.carry_out((at, lane), clock, output);
        }
    }

    fn carry_out(&mut self, (at, lane): (usize, usize), clock: &mut Clock, output: Output) {
        match output {
            Output::LinkSend { peer, bytes, .. } => {
                let (to, bytes) = (index(peer), bytes.into_bytes());
                let ring = self.hosts[at].lanes[lane].ring;
                let links = &mut self.links[ring];
                links.send(at, to, bytes.len());
                clock.pay(links.cost(bytes.len()));
                clock.now = self.wire.send_message(at, clock.now, (to, ring), bytes);
                self.agenda.set(at, self.wire.next(at));
            }
            Output::Persist { id, records } => {
                let lane = &mut self.hosts[at].lanes[lane];
                let (plan, now) = (&self.setup.disk, clock.now);
                let (done, persisted) = lane.disk.persist(plan, now, (id, &records));
                lane.post(done, persisted);
            }
            Output::Fetch { log, from, to } => {
                let answer = disk::fetched(log, (from, to));
                self.hosts[at].lanes[lane].post(clock.now, answer);
            }
            Output::Originated { .. } => {}
            Output::Send { .. } => unreachable!("u-ring-paxos has no datagrams"),
            Output::Reopen | Output::Arbitrate { .. } => {
                unreachable!("no disk fails here, and nobody else chooses configurations")
            }
        }
    }
}
