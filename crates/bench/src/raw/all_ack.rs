//! FastCast's traffic for a message, and no protocol: its sender multicasts it, in datagrams that fit the path, all
//! others acknowledge it by a multicast of their own, and the sender takes the time from when the message was due until
//! the last of them.

use super::NETNS_PAYLOAD;
use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns, wake_for};
use crate::error::BenchError;
use crate::hist::Latencies;
use crate::socket::{OPEN_SEND_BUFFER, UdpPort};
use std::collections::BTreeSet;
use std::time::Duration;

/// Sender 2, whose message it acknowledges 2 (0: it is part of a message), parts of the message 2, which of them 2,
/// number of the message 8.
const HEADER_BYTES: usize = 16;
/// Without all acknowledgements for so long, a message counts as lost.
const STALL_NS: u64 = 50_000_000;
/// The longest wait for anything.
const LOOK_NS: u64 = 50_000_000;

/// Datagrams that a message of this size is cut into.
pub(super) const fn packets(size: usize) -> usize {
    size.div_ceil(NETNS_PAYLOAD)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    sender: u16,
    origin: u16,
    parts: u16,
    part: u16,
    number: u64,
}

impl Header {
    fn write(&self, packet: &mut [u8]) {
        let fields = [self.sender, self.origin, self.parts, self.part];
        for (out, field) in packet.chunks_mut(2).zip(fields) {
            out.copy_from_slice(&field.to_le_bytes());
        }
        packet[8..HEADER_BYTES].copy_from_slice(&self.number.to_le_bytes());
    }

    /// `None` for what is too short to be ours.
    fn read(packet: &[u8]) -> Option<Self> {
        let (fields, rest) = packet.split_first_chunk::<8>()?;
        let field = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
        Some(Self {
            sender: field(0),
            origin: field(2),
            parts: field(4),
            part: field(6),
            number: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// A message that has not been acknowledged by all.
struct Outstanding {
    number: u64,
    due_at: u64,
    sent_at: u64,
    missing: BTreeSet<u16>,
}

/// One node: sends if it is its part, and acknowledges.
struct Node<'a> {
    task: &'a Task,
    port: UdpPort,
    inbox: UdpPort,
    message: Vec<u8>,
    next: u64,
    outstanding: Option<Outstanding>,
    /// For each sender the message whose parts come now, and how many have come.
    coming: Vec<(u64, u16)>,
    latencies: Latencies,
    measured: Measured,
    measuring: bool,
}

/// Sends and acknowledges until the time is over.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let io = BenchError::io;
    let port = UdpPort::unicast(task.unicast(task.node), task.offload)
        .map_err(io("cannot open a socket"))?;
    if task.burst > 1 {
        port.set_segment(NETNS_PAYLOAD)
            .map_err(io("cannot use segmentation offload"))?;
    }
    port.set_send_buffer(OPEN_SEND_BUFFER)
        .map_err(io("cannot set the send buffer"))?;
    let own = task.addresses[task.node - 1];
    let inbox = UdpPort::multicast(task.group(), own, task.offload)
        .map_err(io("cannot join the multicast group"))?;
    let mut node = Node {
        task,
        port,
        inbox,
        message: vec![0; task.size],
        next: 0,
        outstanding: None,
        coming: vec![(0, 0); task.addresses.len() + 1],
        latencies: Latencies::new(),
        measured: Measured::default(),
        measuring: false,
    };
    let start = coordinator.ready()?;
    sleep_until(start);
    node.run(start)?;
    node.measured.latencies = node.latencies.to_counts();
    Ok(node.measured)
}

impl Node<'_> {
    fn run(&mut self, start: u64) -> Result<(), BenchError> {
        let from = start + self.task.warm_up_ns;
        let until = from + self.task.duration_ns;
        let mut buffer = vec![0; 65_536];
        let (mut began, mut next_at) = (None, start);
        loop {
            let now = now_ns();
            if began.is_none() && now >= from {
                began = Some((now, thread_cpu_ns()));
                self.measuring = true;
            }
            if now >= until {
                break;
            }
            self.give_up(now);
            let idle = self.task.sends() && self.outstanding.is_none();
            if idle && now >= next_at {
                let due_at = if self.pause().is_some() { next_at } else { now };
                self.send(now, due_at)?;
                // A pace that cannot be kept is not made up for.
                next_at = self.pause().map_or(now, |pause| (next_at + pause).max(now));
                continue;
            }
            let wait = if idle {
                wake_for(now, next_at.min(until)) - now
            } else {
                LOOK_NS
            };
            self.receive(&mut buffer, wait.clamp(1_000, LOOK_NS))?;
        }
        let (at, cpu) = began.unwrap_or((until, 0));
        self.measured.elapsed_ns = now_ns() - at;
        self.measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
        Ok(())
    }

    /// From one message to the next, in nanoseconds; `None`: when the one before was acknowledged.
    fn pause(&self) -> Option<u64> {
        let rate = self.task.packets_per_second?;
        Some((1e9 * self.task.burst as f64 / rate) as u64)
    }

    fn send(&mut self, now: u64, due_at: u64) -> Result<(), BenchError> {
        self.next += 1;
        let (me, nodes) = (self.task.node as u16, self.task.addresses.len() as u16);
        let parts = self.message.len().div_ceil(NETNS_PAYLOAD) as u16;
        for (packet, part) in self.message.chunks_mut(NETNS_PAYLOAD).zip(0..) {
            let header = Header {
                sender: me,
                origin: 0,
                parts,
                part,
                number: self.next,
            };
            // The last packet of a message may be shorter than a header.
            if packet.len() >= HEADER_BYTES {
                header.write(packet);
            }
        }
        self.outstanding = Some(Outstanding {
            number: self.next,
            due_at,
            sent_at: now,
            missing: (1..=nodes).filter(|node| *node != me).collect(),
        });
        self.measured.sent_ever += u64::from(parts);
        self.measured.sent += if self.measuring { u64::from(parts) } else { 0 };
        self.port
            .send_burst(&self.message, NETNS_PAYLOAD, self.task.group())
            .map_err(BenchError::io("cannot send"))
    }

    fn give_up(&mut self, now: u64) {
        let lost = |message: &mut Outstanding| now >= message.sent_at + STALL_NS;
        if self.outstanding.take_if(lost).is_some() {
            self.measured.stalls += 1;
        }
    }

    fn receive(&mut self, buffer: &mut [u8], wait_ns: u64) -> Result<(), BenchError> {
        let wait = Duration::from_nanos(wait_ns);
        let arrived = self.inbox.receive_within(buffer, wait);
        let Some(arrived) = arrived.map_err(BenchError::io("cannot receive"))? else {
            return Ok(());
        };
        for packet in buffer[..arrived.len].chunks(arrived.segment.max(1)) {
            let known = |header: &Header| usize::from(header.sender) < self.coming.len();
            match Header::read(packet).filter(known) {
                // On loopback a sender hears itself.
                Some(header) if usize::from(header.sender) == self.task.node => {}
                Some(header) if header.origin == 0 => self.take_part(header, packet.len())?,
                Some(header) => self.take_ack(header),
                None => {}
            }
        }
        Ok(())
    }

    fn take_part(&mut self, header: Header, bytes: usize) -> Result<(), BenchError> {
        self.measured.received_ever += 1;
        if self.measuring {
            self.measured.received += 1;
            self.measured.bytes += bytes as u64;
        }
        let coming = &mut self.coming[usize::from(header.sender)];
        if coming.0 != header.number {
            *coming = (header.number, 0);
        }
        coming.1 += 1;
        if coming.1 != header.parts {
            return Ok(());
        }
        let ack = Header {
            sender: self.task.node as u16,
            origin: header.sender,
            ..header
        };
        let mut bytes = [0; HEADER_BYTES];
        ack.write(&mut bytes);
        self.port
            .send(&bytes, self.task.group())
            .map_err(BenchError::io("cannot acknowledge"))
    }

    fn take_ack(&mut self, ack: Header) {
        let mine = usize::from(ack.origin) == self.task.node;
        let Some(message) = self.outstanding.as_mut().filter(|_| mine) else {
            return;
        };
        if message.number != ack.number {
            return;
        }
        message.missing.remove(&ack.sender);
        if message.missing.is_empty() {
            if self.measuring {
                self.latencies.record(now_ns() - message.due_at);
            }
            self.outstanding = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_was_written() {
        let header = Header {
            sender: 3,
            origin: 2,
            parts: 7,
            part: 6,
            number: 1 << 40,
        };
        let mut packet = [9; 20];
        header.write(&mut packet);
        assert_eq!(Header::read(&packet), Some(header));
        assert_eq!(Header::read(&packet[..15]), None);
    }

    #[test]
    fn ten_kilobytes_are_seven_datagrams() {
        assert_eq!([1472, 1473, 10_000].map(packets), [1, 2, 7]);
    }
}
