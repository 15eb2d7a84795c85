//! Carries out the outputs of an engine, one after the other.

use bytes::Bytes;
use rota_check::event::{EventKind, Placed};
use rota_core::contract::{
    Burst, Class, ConfigurationKind, Engine, Input, LogId, LogRecord, MessageId, Output, PersistId,
    Seq, Target,
};
use rota_views::fastcast::FastControl;

use super::gate::Passage;
use super::host::Stuck;
use super::network::Sending;
use super::queue::What;
use super::{System, World};
use crate::plan::MICROS;

impl<S: System> World<'_, S> {
    /// Carries out the next output, if one can leave, and says how long that takes.
    pub(super) fn next_output(&mut self, at: usize) -> Option<u64> {
        let life = self.hosts[at].life.as_mut()?;
        if let Some(stuck) = &life.stuck {
            if stuck.until > self.now {
                return None;
            }
            let stuck = life.stuck.take()?;
            return Some(self.carry_out(at, stuck.output));
        }
        let is_old = life.gate.has_released();
        let output = self.poll(at)?;
        let life = self.hosts[at].life.as_mut()?;
        match &mut life.doom {
            Some((0, fault)) => {
                let fault = *fault;
                self.kill(at, fault);
                // A process that is spared goes on with its output.
                self.hosts[at].life.as_ref()?;
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        let cost = &self.plan.cost;
        let host = &mut self.hosts[at];
        if matches!(output, Output::Send { .. }) && host.rng.ppm(cost.stuck) && !healed(&self.phase)
        {
            let until = self.now + host.rng.spread(1, cost.stuck_for);
            let stuck = Stuck {
                output,
                until,
                is_old,
            };
            host.life.as_mut()?.stuck = Some(stuck);
            self.tally.cover("outputs_stuck");
            return Some(cost.turn);
        }
        Some(self.carry_out(at, output))
    }

    /// The next output: first what waited for something that is durable now.
    fn poll(&mut self, at: usize) -> Option<Output> {
        let life = self.hosts[at].life.as_mut()?;
        if let Some(released) = life.gate.release() {
            return Some(released);
        }
        if !life.undrained {
            return None;
        }
        let output = life.engine.poll_output();
        if output.is_none() {
            // Deliveries that waited for the outputs may take place now.
            (life.undrained, life.app.more) = (false, true);
        }
        output
    }

    fn carry_out(&mut self, at: usize, output: Output) -> u64 {
        let turn = self.plan.cost.turn;
        match output {
            Output::Send {
                after: Some(id), ..
            } => {
                let Some(life) = &mut self.hosts[at].life else {
                    return turn;
                };
                match life.gate.take(id, output) {
                    Passage::Leaves(output) => return self.send(at, output),
                    Passage::Never => self.tally.cover("sends_not_made"),
                    Passage::Waits => {}
                }
            }
            Output::Send { .. } => return self.send(at, output),
            Output::Persist { id, records } => self.persist(at, id, records),
            Output::Reopen => self.reopen(at),
            Output::Arbitrate { number, wanted } => self.ask_service(at, number, wanted),
            Output::Fetch { log, from, to } => self.fetch(at, (log, from, to)),
            Output::Originated {
                counter,
                seq,
                index,
            } => self.originated(at, counter, (seq, index)),
            Output::LinkSend {
                peer,
                session,
                bytes,
                ..
            } => return self.send_over_link(at, peer, session, bytes.into_bytes()),
        }
        turn
    }

    fn persist(&mut self, at: usize, id: PersistId, records: Vec<LogRecord>) {
        let (least, most) = self.plan.disk_latency;
        let host = &mut self.hosts[at];
        if self.plan.disks.is_some() {
            host.disk.hand_over(id, records);
            return self.begin_to_write(at);
        }
        let done = self.now + host.rng.range(least, most);
        let done = host.disk.persist(id, records, done);
        let (host, life) = (at as u16, host.lives);
        self.queue.push(done, What::Written { host, life });
    }

    fn fetch(&mut self, at: usize, (log, from, to): (LogId, u64, u64)) {
        let plan = self.plan.disk_of(at);
        let host = &mut self.hosts[at];
        let Some(plan) = plan else {
            let answer = host.disk.fetch(log, from, to);
            if let Some(life) = &mut host.life {
                life.inputs.push_back(answer);
            }
            return;
        };
        let done = host
            .disk
            .read((log, from, to), &plan, (self.now, &mut host.rng));
        let (host, life) = (at as u16, host.lives);
        self.queue.push(done, What::Written { host, life });
    }

    /// A host's disk writes what waits, unless it is writing.
    fn begin_to_write(&mut self, at: usize) {
        let Some(plan) = self.plan.disk_of(at) else {
            return;
        };
        let host = &mut self.hosts[at];
        if let Some(done) = host.disk.begin(&plan, self.now, &mut host.rng) {
            let (host, life) = (at as u16, host.lives);
            self.queue.push(done, What::Written { host, life });
        }
    }

    /// Sends a burst: it leaves when the sending is done.
    fn send(&mut self, at: usize, output: Output) -> u64 {
        let Output::Send {
            class, to, burst, ..
        } = output
        else {
            return 0;
        };
        self.check_burst(&burst);
        let datagrams = burst.bytes.len().div_ceil(burst.segment.max(1)) as u64;
        let one_each = self.network.unicast() && to == Target::Others;
        let times = if one_each {
            self.hosts.len() as u64 - 1
        } else {
            1
        };
        let plan = &self.plan.cost;
        let cost = times * (plan.send + datagrams * plan.send_datagram);
        let bytes = Bytes::from(burst.bytes);
        let sending = Sending {
            from: at,
            class,
            bytes: &bytes,
            segment: burst.segment,
            at: self.now + cost,
        };
        self.network.note(&mut self.queue, &sending);
        for receiver in 0..self.hosts.len() {
            let wanted = match to {
                Target::Others => receiver != at,
                Target::Node(node) => self.hosts[receiver].node == node,
            };
            if wanted {
                self.network.carry(&mut self.queue, &sending, receiver);
            }
        }
        cost
    }

    fn check_burst(&mut self, burst: &Burst) {
        let (bytes, segment) = (burst.bytes.len(), burst.segment);
        let ring = &self.plan.ring;
        // IP cuts what may be larger than a datagram of the path: what forms rings, and what says something for each of very many
        // members.
        let most = match burst.bytes.get(1).map(|kind| kind & 0x0f) {
            Some(3 | 4) if bytes == segment => Burst::MAX_BYTES,
            Some(9) if bytes == segment => {
                let least = FastControl::least_len(self.plan.nodes(), ring.seal_bytes);
                ring.datagram_bytes.max(least)
            }
            _ => ring.datagram_bytes,
        };
        if bytes == 0
            || bytes > Burst::MAX_BYTES
            || segment == 0
            || segment > most
            || bytes.div_ceil(segment) > Burst::MAX_SEGMENTS
        {
            let what = format!(
                "a burst of kind {:?} {bytes} bytes in datagrams of {segment}",
                burst.bytes.get(1)
            );
            self.found("contract", what);
        }
    }

    /// A message got its place: in the configuration that the application has seen last.
    fn originated(&mut self, at: usize, counter: u64, (seq, index): (Seq, u16)) {
        let Some(life) = &self.hosts[at].life else {
            return;
        };
        let process = life.process;
        let message = MessageId { process, counter };
        let Some((service, hash)) = self
            .payloads
            .get(message)
            .map(|sent| (sent.service, sent.hash))
        else {
            let what = format!("{message} got a place and was not submitted");
            return self.found("E1", what);
        };
        let Some(conf) = self.conf(at) else {
            let what = format!("{message} got a place before any configuration");
            return self.found("E4", what);
        };
        let placed = Placed {
            message,
            conf,
            position: position(seq, index),
            service,
            hash,
        };
        self.emit(process, EventKind::Originated(placed));
    }

    fn conf(&self, at: usize) -> Option<ConfigurationKind> {
        self.hosts[at].life.as_ref()?.app.conf
    }

    /// Datagrams arrive at a host.
    pub(super) fn arrive(&mut self, slot: u32) {
        let Some(arrival) = self.network.take(slot) else {
            return;
        };
        let (from, to, class) = (arrival.from, arrival.to, arrival.class);
        let room = self.network.socket_bytes();
        let host = &mut self.hosts[to];
        if let Some(life) = &mut host.life {
            if !life
                .socket(class)
                .push(arrival.bytes, arrival.segment, room)
            {
                self.tally.cover("sockets_overflown");
            }
            return self.wake_now(to);
        }
        let answers = class == Class::Token || self.network.unicast();
        let heard = from != to && !self.network.is_cut(to, from);
        if !host.gone && answers && heard && self.rng.percent(90) {
            let at = self.now + self.rng.range(10, 100) * MICROS;
            let (host, peer) = (from as u16, to as u16);
            self.queue.push(at, What::Unreachable { host, peer });
        }
    }

    /// A host learns that nobody listens at a peer.
    pub(super) fn unreachable(&mut self, at: usize, peer: usize) {
        let peer = self.hosts[peer].node;
        if let Some(life) = &mut self.hosts[at].life {
            life.inputs.push_back(Input::Unreachable { peer });
            self.tally.cover("unreachable");
        }
        self.wake_now(at);
    }

    /// A host's disk is done with something.
    pub(super) fn written(&mut self, at: usize, life: u32) {
        let plan = self.plan.disk_of(at);
        let plan = plan.as_ref();
        let host = &mut self.hosts[at];
        if host.lives != life || host.life.is_none() {
            return;
        }
        let mut together = 0;
        while let Some(answer) = host.disk.written(plan, self.now, &mut self.rng) {
            together += 1;
            if let Some(life) = &mut host.life {
                life.inputs.push_back(answer);
            }
        }
        if let Some(plan) = plan.filter(|_| !host.reopens) {
            while let Some(answer) = host.disk.has_read(plan, self.now, &mut self.rng) {
                let Some(life) = &mut host.life else { break };
                life.inputs.push_back(answer);
            }
        }
        if plan.is_some() && together > 1 {
            self.tally.cover("written_together");
        }
        self.begin_to_write(at);
        self.wake_now(at);
    }

    /// A process is about to hear that something is durable or failed: what waited for it can leave,
    /// or never will.
    pub(super) fn release(&mut self, at: usize, answer: &Input) {
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        match answer {
            Input::Persisted { id } => life.gate.on_durable(*id),
            Input::PersistFailed { id, .. } => {
                if life.gate.on_failed(*id) > 0 {
                    self.tally.cover("sends_not_made");
                }
                self.tally.cover("persist_failures");
            }
            _ => {}
        }
    }
}

fn healed(phase: &super::Phase) -> bool {
    *phase != super::Phase::Faulty
}

/// `rota_core::contract::Message::position`, of a place that has no message yet.
const fn position(seq: Seq, index: u16) -> u64 {
    seq.wrapping_shl(16) | index as u64
}
