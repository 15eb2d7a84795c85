//! LCR's traffic for a message, and no protocol: over a ring of TCP links, the message goes from node 1 to the last
//! node, and behind it, from the last node on, the word that all have it.
//!
//! With N nodes the message takes N − 1 hops. The word comes to node 1, which would deliver now, with hop N, and after
//! 2(N − 1) hops to the node before the last, which would be the last to deliver. Each time is counted from when the
//! message was due. The links are as those of nodes (TCP without delay, one read and one write a message), and a node
//! looks a few times and lets others run before it sleeps.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns, wake_for};
use crate::error::BenchError;
use crate::hist::Latencies;
use crate::socket::LOOKS;

/// The kind, the number and the due time, 8 bytes each. A word is nothing more.
pub(super) const HEADER_BYTES: usize = 24;
/// The longest wait for anything.
const LOOK_NS: u64 = 50_000_000;
/// The time after the measured one in which nothing new is sent.
const DRAIN_NS: u64 = 200_000_000;
/// Bytes that the kernel may keep before they leave, as for the links of nodes.
const UNSENT_BYTES: u32 = 256 << 10;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// The kinds of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// The message itself.
    Message,
    /// The word that all have the message.
    Word,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    what: What,
    number: u64,
    due_at: u64,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields = [u64::from(self.what == What::Word), self.number, self.due_at];
        for (out, field) in bytes.chunks_mut(8).zip(fields) {
            out.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (what, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        Some(Self {
            what: match u64::from_le_bytes(*what) {
                0 => What::Message,
                _ => What::Word,
            },
            number: u64::from_le_bytes(*number),
            due_at: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }

    /// The length of a header with all that follows, where messages are of `size` bytes.
    const fn bytes(&self, size: usize) -> usize {
        match self.what {
            What::Message => size,
            What::Word => HEADER_BYTES,
        }
    }
}

/// The role of a node, by its place in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    node: usize,
    nodes: usize,
}

impl Part {
    /// Whether a message ends here and becomes a word.
    const fn is_end(self) -> bool {
        self.node == self.nodes
    }

    const fn is_sender(self) -> bool {
        self.node == 1
    }

    /// Whether a word ends here.
    const fn is_last(self) -> bool {
        self.node + 1 == self.nodes
    }

    /// The kind that goes on to the next node, if one does.
    const fn passes_on(self, what: What) -> Option<What> {
        match what {
            What::Message if self.is_end() => Some(What::Word),
            What::Word if self.is_last() => None,
            what => Some(what),
        }
    }
}

/// The two links of a node.
struct Links {
    from: TcpStream,
    to: TcpStream,
    /// Bytes that came and are not a whole message or word yet.
    buffer: Vec<u8>,
    filled: usize,
}

struct Node<'a> {
    task: &'a Task,
    part: Part,
    links: Links,
    message: Vec<u8>,
    /// The begin and the end of the measured time.
    span: (u64, u64),
    next: u64,
    /// Number of the message that all do not have yet.
    outstanding: Option<u64>,
    measured: Measured,
    own: Latencies,
    last: Latencies,
    arrivals: Latencies,
}

/// Sends, or passes on, until the time is over.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let address = task.unicast(task.node);
    let listener = TcpListener::bind(address).map_err(BenchError::io("cannot listen"))?;
    let start = coordinator.ready()?;
    let nodes = task.addresses.len();
    let links = links(task, &listener)?;
    let from = start + task.warm_up_ns;
    let mut node = Node {
        task,
        part: Part {
            node: task.node,
            nodes,
        },
        links,
        message: vec![0; task.size],
        span: (from, from + task.duration_ns),
        next: 0,
        outstanding: None,
        measured: Measured::default(),
        own: Latencies::new(),
        last: Latencies::new(),
        arrivals: Latencies::new(),
    };
    sleep_until(start);
    node.run(start)?;
    node.measured.latencies = node.last.to_counts();
    node.measured.own_latencies = node.own.to_counts();
    node.measured.arrivals = node.arrivals.to_counts();
    Ok(node.measured)
}

/// A connection to the next node, and one from the node before.
fn links(task: &Task, listener: &TcpListener) -> Result<Links, BenchError> {
    let next = task.unicast(task.node % task.addresses.len() + 1);
    let to = TcpStream::connect_timeout(&next.into(), PATIENCE)
        .map_err(BenchError::io("cannot connect to the next node"))?;
    let (from, _) = listener
        .accept()
        .map_err(BenchError::io("the node before did not connect"))?;
    let tune = |stream: TcpStream| -> std::io::Result<TcpStream> {
        let socket = Socket::from(stream);
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
        Ok(socket.into())
    };
    let tuned = BenchError::io("cannot set a link's options");
    let (to, from) = tune(to)
        .and_then(|to| Ok((to, tune(from)?)))
        .map_err(tuned)?;
    from.set_nonblocking(true)
        .map_err(BenchError::io("cannot make a link that does not wait"))?;
    Ok(Links {
        from,
        to,
        buffer: vec![0; 2 * (task.size + HEADER_BYTES)],
        filled: 0,
    })
}

impl Node<'_> {
    fn run(&mut self, start: u64) -> Result<(), BenchError> {
        let (from, until) = self.span;
        let (mut began, mut next_at) = (None, start);
        loop {
            let now = now_ns();
            match began {
                None if now >= from => began = Some((now, thread_cpu_ns())),
                Some((at, cpu)) if now >= until && self.measured.elapsed_ns == 0 => {
                    self.measured.elapsed_ns = now - at;
                    self.measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
                }
                _ if now >= self.end() => return Ok(()),
                _ => {}
            }
            let idle = self.part.is_sender() && self.outstanding.is_none() && now < until;
            if idle && now >= next_at {
                let pause = self.task.packets_per_second.map(|rate| (1e9 / rate) as u64);
                self.begin(if pause.is_some() { next_at } else { now })?;
                // A pace that cannot be kept is not made up for.
                next_at = pause.map_or(now, |pause| (next_at + pause).max(now));
                continue;
            }
            let wake = if idle { next_at } else { self.end() };
            let wait = wake_for(now, wake.min(self.end())).saturating_sub(now);
            if !self.receive(wait.clamp(1_000, LOOK_NS))? && now_ns() < self.end() {
                let error = ErrorKind::UnexpectedEof.into();
                let what = "the node before has gone";
                return Err(BenchError::Io { what, error });
            }
        }
    }

    /// The end of the run: messages on their way may still arrive after the measured time.
    const fn end(&self) -> u64 {
        self.span.1 + DRAIN_NS
    }

    /// A message begins its way.
    fn begin(&mut self, due_at: u64) -> Result<(), BenchError> {
        self.next += 1;
        self.outstanding = Some(self.next);
        self.measured.sent_ever += 1;
        self.measured.sent += u64::from(self.counts(due_at));
        self.send(Header {
            what: What::Message,
            number: self.next,
            due_at,
        })
    }

    fn counts(&self, due_at: u64) -> bool {
        (self.span.0..self.span.1).contains(&due_at)
    }

    fn send(&mut self, header: Header) -> Result<(), BenchError> {
        let bytes = &mut self.message[..header.bytes(self.task.size)];
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        match self.links.to.write_all(bytes) {
            // The next node was done a moment earlier.
            Err(_) if now_ns() >= self.end() => Ok(()),
            sent => sent.map_err(BenchError::io("cannot send to the next node")),
        }
    }

    /// Takes the bytes that came, within this time; `false` if nothing more will come.
    fn receive(&mut self, wait_ns: u64) -> Result<bool, BenchError> {
        let Some(count) = self.links.read_within(wait_ns)? else {
            return Ok(true);
        };
        self.links.filled += count;
        let mut at = 0;
        while let Some(header) = Header::read(&self.links.buffer[at..self.links.filled]) {
            let end = at + header.bytes(self.task.size);
            if end > self.links.filled {
                break;
            }
            at = end;
            self.take(header)?;
        }
        self.links.buffer.copy_within(at..self.links.filled, 0);
        self.links.filled -= at;
        Ok(count > 0)
    }

    fn take(&mut self, header: Header) -> Result<(), BenchError> {
        // The time before it is passed on: a node that loses its processor after that would have had it later than the
        // next one. The rest comes after the send, as others wait for that.
        let took = now_ns().saturating_sub(header.due_at);
        if let Some(what) = self.part.passes_on(header.what) {
            self.send(Header { what, ..header })?;
        }
        let counts = self.counts(header.due_at);
        match header.what {
            What::Message => {
                self.measured.received_ever += 1;
                if counts {
                    self.measured.received += 1;
                    self.measured.bytes += self.task.size as u64;
                }
                if counts && self.part.is_end() {
                    self.arrivals.record(took);
                }
            }
            What::Word => {
                if self.part.is_sender() && self.outstanding == Some(header.number) {
                    self.outstanding = None;
                }
                if counts && self.part.is_sender() {
                    self.own.record(took);
                }
                if counts && self.part.is_last() {
                    self.last.record(took);
                }
            }
        }
        Ok(())
    }
}

impl Links {
    /// Reads once: a few looks, then a wait of this time at most. `None` if nothing came, 0 bytes at the end.
    fn read_within(&mut self, wait_ns: u64) -> Result<Option<usize>, BenchError> {
        for _ in 0..LOOKS {
            if let Some(count) = self.read()? {
                return Ok(Some(count));
            }
            thread::yield_now();
        }
        let wait = Timespec::try_from(std::time::Duration::from_nanos(wait_ns)).ok();
        let mut ready = [PollFd::new(&self.from, PollFlags::IN)];
        match poll(&mut ready, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.read(),
            Err(error) => Err(BenchError::io("cannot wait")(error.into())),
        }
    }

    fn read(&mut self) -> Result<Option<usize>, BenchError> {
        match self.from.read(&mut self.buffer[self.filled..]) {
            Ok(count) => Ok(Some(count)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                ErrorKind::ConnectionReset => Ok(Some(0)),
                _ => Err(BenchError::io("cannot receive")(error)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_was_written() {
        for what in [What::Message, What::Word] {
            let header = Header {
                what,
                number: 7,
                due_at: 1 << 50,
            };
            assert_eq!(Header::read(&header.to_bytes()), Some(header));
            assert_eq!(Header::read(&header.to_bytes()[..23]), None);
        }
    }

    /// Hops until the message is at the end of the ring, its sender knows that all have it, and the last one does.
    fn hops(nodes: usize) -> (usize, usize, usize) {
        let (mut what, mut at, mut count) = (What::Message, 1, 0);
        let (mut message, mut sender) = (0, 0);
        loop {
            (at, count) = (at % nodes + 1, count + 1);
            let part = Part { node: at, nodes };
            if what == What::Message && part.is_end() {
                message = count;
            }
            if what == What::Word && part.is_sender() {
                sender = count;
            }
            match part.passes_on(what) {
                Some(next) => what = next,
                None => return (message, sender, count),
            }
        }
    }

    #[test]
    fn a_message_and_its_word_take_two_rounds_without_a_hop_each() {
        for nodes in 2..=8 {
            assert_eq!(hops(nodes), (nodes - 1, nodes, 2 * (nodes - 1)));
        }
    }
}
