//! What an engine asks for: its outputs are carried out one by one, and its deliveries are taken.

use bytes::Bytes;
use rota_core::contract::{
    Burst, Class, ConfigurationKind, Delivery, Input, Message, Output, Target,
};

use crate::disk;
use crate::engines::Simulated;
use crate::setup::{Generated, Interface};
use crate::step::{index, is_token};
use crate::wire::To;
use crate::world::World;

impl<E: Simulated> World<'_, E> {
    /// Carries out all outputs, then takes all deliveries, until there are neither.
    pub fn drain(&mut self, at: usize, clock: &mut u64) {
        loop {
            while let Some(output) = self.nodes[at].engine.poll_output() {
                self.carry_out(at, clock, output);
            }
            if !self.take_deliveries(at, clock) {
                return;
            }
        }
    }

    fn take_deliveries(&mut self, at: usize, clock: &mut u64) -> bool {
        let costs = self.setup.costs;
        let mut has = false;
        while let Some(delivery) = self.nodes[at].engine.poll_delivery() {
            has = true;
            match delivery {
                Delivery::Message(message) => {
                    *clock += costs.deliver;
                    *clock += message.payload.len() as u64 * costs.deliver_byte / 1000;
                    self.deliver(at, *clock, &message);
                }
                Delivery::Configuration(configuration) => {
                    let is_regular = matches!(configuration.kind, ConfigurationKind::Regular(_));
                    if is_regular && configuration.members.len() == self.setup.nodes {
                        self.on_formed(at);
                    }
                }
                Delivery::Missed { .. } | Delivery::Excluded(_) => {
                    self.nodes[at].meter.missed += u64::from(self.nodes[at].is_formed);
                }
                Delivery::Passed { .. } | Delivery::Notice { .. } | Delivery::Primary(_) => {}
            }
        }
        has
    }

    #[inline]
    fn deliver(&mut self, at: usize, clock: u64, message: &Message) {
        let node = &mut self.nodes[at];
        if message.id.process == node.process {
            node.source.delivered();
        }
        node.meter.take(at, clock, message, &mut self.measured);
        self.tally.delivered += 1;
    }

    fn carry_out(&mut self, at: usize, clock: &mut u64, output: Output) {
        match output {
            Output::Send {
                after: Some(id), ..
            } if self.nodes[at].durable.is_none_or(|durable| durable < id) => {
                self.nodes[at].waiting.push((id, output));
            }
            Output::Send {
                class, to, burst, ..
            } => self.send(at, clock, (class, to, burst)),
            Output::LinkSend { peer, bytes, .. } => {
                let bytes = bytes.into_bytes();
                let to = index(peer);
                if let Some(links) = &mut self.links {
                    links.send(at, to, bytes.len());
                    *clock += links.cost(bytes.len());
                }
                *clock = self.wire.send_message(at, *clock, (to, 0), bytes);
                self.agenda.set(at, self.wire.next(at));
            }
            Output::Persist { id, records } => {
                let node = &mut self.nodes[at];
                let (done, persisted) = node.disk.persist(&self.setup.disk, *clock, (id, &records));
                node.mail.put(done, persisted);
            }
            Output::Fetch { log, from, to } => {
                self.nodes[at]
                    .mail
                    .put(*clock, disk::fetched(log, (from, to)));
            }
            Output::Originated { .. } => {}
            Output::Reopen | Output::Arbitrate { .. } => {
                unreachable!("no disk fails here, and nobody else chooses configurations")
            }
        }
    }

    /// Sends that waited for what is durable now leave, before the engine is told.
    pub fn release(&mut self, at: usize, input: &Input, clock: &mut u64) {
        let Input::Persisted { id } = input else {
            return;
        };
        let node = &mut self.nodes[at];
        node.durable = node.durable.max(Some(*id));
        for (after, output) in std::mem::take(&mut node.waiting) {
            if after <= *id {
                self.carry_out(at, clock, output);
            } else {
                self.nodes[at].waiting.push((after, output));
            }
        }
    }

    /// Sends a burst: one datagram after the other, each when the processor is done with it, or all with one call.
    fn send(&mut self, at: usize, clock: &mut u64, (class, to, burst): (Class, Target, Burst)) {
        let costs = self.setup.costs;
        let to = match to {
            Target::Others => To::Others,
            Target::Node(node) => To::One(index(node)),
        };
        let segment = burst.segment.max(1);
        let bytes = Bytes::from(burst.bytes);
        let is_token = is_token(&bytes);
        let (mut start, mut is_first) = (0, true);
        while start < bytes.len() {
            let end = (start + segment).min(bytes.len());
            *clock += if is_token {
                costs.token - costs.token / 2
            } else {
                let joins = costs.interface == Interface::Bursts && !is_first;
                let call = if joins { costs.call } else { 0 };
                costs.send - call + (end - start) as u64 * costs.send_byte / 1000
            };
            let datagram = bytes.slice(start..end);
            *clock = self.wire.send(at, *clock, to, class, datagram);
            (start, is_first) = (end, false);
        }
        self.agenda.set(at, self.wire.next(at));
        if is_token && self.nodes[at].source.generated() == Some(Generated::AfterRelease) {
            self.fill(at, *clock, *clock);
        }
    }
}
