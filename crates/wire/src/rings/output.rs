//! What an engine of several asks for, carried out one by one.

use rota_core::contract::{Engine, Input, LogRecord, Output, PersistId};

use super::turn::Clock;
use super::world::World;
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
            Output::Persist { id, records } => self.persist((at, lane), clock.now, id, &records),
            Output::Fetch { log, from, to } => {
                let records = Vec::new();
                let answer = Input::Fetched {
                    log,
                    from,
                    to,
                    records,
                };
                self.hosts[at].lanes[lane].post(clock.now, answer);
            }
            Output::Originated { .. } => {}
            Output::Send { .. } => unreachable!("u-ring-paxos has no datagrams"),
            Output::Reopen | Output::Arbitrate { .. } => {
                unreachable!("no disk fails here, and nobody else chooses configurations")
            }
        }
    }

    fn persist(
        &mut self,
        (at, lane): (usize, usize),
        now: u64,
        id: PersistId,
        records: &[LogRecord],
    ) {
        let bytes = records.iter().map(|record| match record {
            LogRecord::Put { bytes, .. } => bytes.len(),
            LogRecord::Trim { .. } => 0,
        });
        let bytes = bytes.sum();
        let lane = &mut self.hosts[at].lanes[lane];
        let done = lane.disk.write(&self.setup.disk, now, bytes);
        lane.post(done, Input::Persisted { id });
    }
}
