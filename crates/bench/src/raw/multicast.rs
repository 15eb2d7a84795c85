//! Bursts from some nodes to all, without a protocol but without loss: a window over the slowest receiver, which
//! acknowledges now and then.

use std::thread;
use std::time::Duration;

use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns};
use crate::error::BenchError;
use crate::socket::{OPEN_SEND_BUFFER, SHAPED_SEND_BUFFER, UdpPort};

/// Every packet and acknowledgement starts with its sender (2 bytes, 6 unused) and a number
/// (8 bytes): of the packet, or of the first packet not yet received.
pub(super) const HEADER_BYTES: usize = 16;
/// Packets that may be on their way to the slowest receiver.
const WINDOW: u64 = 2048;
/// A receiver says how far it is after so many packets: twice in a window.
const ACK_EVERY: u64 = WINDOW / 2;
/// Without a word for so long, what is missing counts as lost.
const STALL: Duration = Duration::from_millis(50);
/// Receivers stay so long after the end for what is still queued.
const DRAIN_NS: u64 = 200_000_000;

fn write_header(packet: &mut [u8], sender: usize, number: u64) {
    packet[..2].copy_from_slice(&(sender as u16).to_le_bytes());
    packet[8..HEADER_BYTES].copy_from_slice(&number.to_le_bytes());
}

/// Sender and number; `None` for what is too short to be ours.
fn read_header(packet: &[u8]) -> Option<(usize, u64)> {
    let (sender, rest) = packet.split_first_chunk::<2>()?;
    let number = rest.get(6..14)?.first_chunk::<8>()?;
    Some((
        usize::from(u16::from_le_bytes(*sender)),
        u64::from_le_bytes(*number),
    ))
}

/// The measured part of a run.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    from: u64,
    until: u64,
}

/// Sends if it is this node's part, and receives.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let io = BenchError::io;
    let port = UdpPort::unicast(task.unicast(task.node), task.offload)
        .map_err(io("cannot open a socket"))?;
    if task.burst > 1 {
        port.set_segment(task.size)
            .map_err(io("cannot use segmentation offload"))?;
    }
    let shaped = task.packets_per_second.is_some();
    port.set_send_buffer(if shaped {
        SHAPED_SEND_BUFFER
    } else {
        OPEN_SEND_BUFFER
    })
    .map_err(io("cannot set the send buffer"))?;
    port.set_patience(STALL)
        .map_err(io("cannot set a time-out"))?;
    let own = task.addresses[task.node - 1];
    // A sole sender hears nobody.
    let hears = !task.sends() || task.senders > 1;
    let inbox = if hears {
        let inbox = UdpPort::multicast(task.group(), own, task.offload);
        Some(inbox.map_err(io("cannot join the multicast group"))?)
    } else {
        None
    };
    let start = coordinator.ready()?;
    let from = start + task.warm_up_ns;
    let span = Span {
        start,
        from,
        until: from + task.duration_ns,
    };
    thread::scope(|scope| {
        let receiver = inbox
            .as_ref()
            .map(|inbox| scope.spawn(|| receive(task, &port, inbox, span)));
        let mut measured = if task.sends() {
            send(task, &port, span)?
        } else {
            Measured::default()
        };
        if let Some(receiver) = receiver {
            let heard = receiver
                .join()
                .map_err(|_| BenchError::Usage("the receiver panicked".into()))??;
            measured.received = heard.received;
            measured.received_ever = heard.received_ever;
            measured.bytes = heard.bytes;
            measured.elapsed_ns = heard.elapsed_ns;
            measured.cpu_ns += heard.cpu_ns;
        }
        Ok(measured)
    })
}

/// A sender's knowledge of its receivers.
struct Progress<'a> {
    port: &'a UdpPort,
    /// First packet not yet received, by node; the sender's own never holds it up.
    acked: Vec<u64>,
    buffer: Vec<u8>,
    stalls: u64,
}

impl Progress<'_> {
    fn slowest(&self) -> u64 {
        self.acked.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Waits until every receiver has everything below `number`.
    fn wait_for(&mut self, number: u64, sent: u64) -> Result<(), BenchError> {
        while self.slowest() < number {
            let io = BenchError::io("cannot read acknowledgements");
            let mut got = self.port.receive(&mut self.buffer).map_err(io)?;
            if got.is_none() {
                self.stalls += 1;
                self.acked.iter_mut().for_each(|at| *at = (*at).max(sent));
                return Ok(());
            }
            while let Some(arrived) = got {
                for ack in self.buffer[..arrived.len].chunks(arrived.segment.max(1)) {
                    if let Some((node, at)) = read_header(ack)
                        && let Some(acked) = self.acked.get_mut(node.wrapping_sub(1))
                    {
                        *acked = (*acked).max(at);
                    }
                }
                let io = BenchError::io("cannot read acknowledgements");
                got = self.port.receive_now(&mut self.buffer).map_err(io)?;
            }
        }
        Ok(())
    }
}

fn send(task: &Task, port: &UdpPort, span: Span) -> Result<Measured, BenchError> {
    let mut acked = vec![0; task.addresses.len()];
    acked[task.node - 1] = u64::MAX;
    let mut progress = Progress {
        port,
        acked,
        buffer: vec![0; 65_536],
        stalls: 0,
    };
    let pause = task
        .packets_per_second
        .map(|rate| 1e9 * task.burst as f64 / rate);
    let mut bytes = vec![0; task.burst * task.size];
    let (mut next, mut bursts) = (0_u64, 0_u64);
    let mut measured = Measured::default();
    let mut began = None;
    sleep_until(span.start);
    loop {
        if let Some(pause) = pause {
            sleep_until(span.start + (pause * bursts as f64) as u64);
        } else {
            progress.wait_for((next + task.burst as u64).saturating_sub(WINDOW), next)?;
        }
        let now = now_ns();
        if began.is_none() && now >= span.from {
            began = Some((next, thread_cpu_ns()));
        }
        if now >= span.until {
            break;
        }
        for (packet, number) in bytes.chunks_mut(task.size).zip(next..) {
            write_header(packet, task.node, number);
        }
        port.send_burst(&bytes, task.size, task.group())
            .map_err(BenchError::io("cannot send"))?;
        next += task.burst as u64;
        bursts += 1;
    }
    let (first, cpu) = began.unwrap_or((next, thread_cpu_ns()));
    measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
    measured.sent = next - first;
    measured.sent_ever = next;
    measured.stalls = progress.stalls;
    Ok(measured)
}

fn receive(
    task: &Task,
    port: &UdpPort,
    inbox: &UdpPort,
    span: Span,
) -> Result<Measured, BenchError> {
    inbox
        .set_patience(STALL)
        .map_err(BenchError::io("cannot set a time-out"))?;
    let mut acks = Acks::new(task, port);
    let mut buffer = vec![0; 65_536];
    let mut measured = Measured::default();
    let (mut began, mut ended) = (None, false);
    loop {
        let io = BenchError::io("cannot receive");
        let got = inbox.receive(&mut buffer).map_err(io)?;
        let now = now_ns();
        if began.is_none() && now >= span.from {
            began = Some((now, thread_cpu_ns()));
        }
        if !ended && now >= span.until {
            ended = true;
            let (at, cpu) = began.unwrap_or((now, 0));
            measured.elapsed_ns = now - at;
            measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
        }
        if now >= span.until + DRAIN_NS {
            return Ok(measured);
        }
        let Some(arrived) = got else { continue };
        let Some((sender, number)) = read_header(&buffer[..arrived.len]) else {
            continue;
        };
        // On loopback a sender hears itself.
        if sender == task.node {
            continue;
        }
        let packets = arrived.len.div_ceil(arrived.segment.max(1)) as u64;
        measured.received_ever += packets;
        if began.is_some() && !ended {
            measured.received += packets;
            measured.bytes += arrived.len as u64;
        }
        acks.note(sender, number + packets)?;
    }
}

/// A receiver's acknowledgements to the senders.
struct Acks<'a> {
    task: &'a Task,
    port: &'a UdpPort,
    /// By node: the end of each sender's packets that came.
    reached: Vec<u64>,
    wanted: bool,
}

impl<'a> Acks<'a> {
    fn new(task: &'a Task, port: &'a UdpPort) -> Self {
        Self {
            task,
            port,
            reached: vec![0; task.addresses.len() + 1],
            wanted: task.packets_per_second.is_none(),
        }
    }

    /// Everything of `sender` below `number` has arrived or is lost.
    fn note(&mut self, sender: usize, number: u64) -> Result<(), BenchError> {
        let Some(reached) = self.reached.get_mut(sender).filter(|_| sender > 0) else {
            return Ok(());
        };
        let due = number / ACK_EVERY > *reached / ACK_EVERY;
        *reached = number.max(*reached);
        if !(due && self.wanted) {
            return Ok(());
        }
        let mut ack = [0; HEADER_BYTES];
        write_header(&mut ack, self.task.node, number);
        let to = self.task.unicast(sender);
        self.port
            .send(&ack, to)
            .map_err(BenchError::io("cannot acknowledge"))
    }
}
