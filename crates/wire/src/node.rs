//! A machine: the process that drives an engine in one thread, its sockets, its disk, its application.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{Class, Input, Output, PersistId, Process};
use rota_core::random::Random;

use crate::disk::Disk;
use crate::meter::Meter;
use crate::queue::Queue;
use crate::source::Source;
use crate::wire::Load;

/// Something that comes to a node.
#[derive(Debug)]
pub struct Arrival {
    pub from: usize,
    pub load: Load,
}

/// Datagrams of one class that wait to be read.
#[derive(Debug, Default)]
pub struct Socket {
    datagrams: VecDeque<(usize, Bytes)>,
    bytes: usize,
}

impl Socket {
    /// Whether there was room for a datagram.
    pub fn push(&mut self, from: usize, datagram: Bytes, room: usize) -> bool {
        let fits = self.bytes + datagram.len() <= room;
        if fits {
            self.bytes += datagram.len();
            self.datagrams.push_back((from, datagram));
        }
        fits
    }

    pub fn pop(&mut self) -> Option<(usize, Bytes)> {
        let (from, datagram) = self.datagrams.pop_front()?;
        self.bytes -= datagram.len();
        Some((from, datagram))
    }

    /// The next datagram, if it comes from the same node and may be read with others of `size` bytes before it.
    pub fn pop_alike(&mut self, from: usize, size: usize) -> Option<Bytes> {
        let (sender, datagram) = self.datagrams.front()?;
        if *sender != from || datagram.len() > size {
            return None;
        }
        self.pop().map(|(_, datagram)| datagram)
    }

    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }
}

/// See the module page.
#[derive(Debug)]
pub struct Node<E> {
    pub engine: E,
    pub process: Process,
    /// Data, then tokens and other control.
    sockets: [Socket; 2],
    /// What the network brings, by time.
    pub arrivals: Queue<Arrival>,
    /// What the kernel has for the engine, by time.
    pub mail: Queue<Input>,
    /// The time at which its thread is done with what it does.
    pub free: u64,
    /// Datagrams that were read since a timer was due.
    pub reads: u32,
    pub source: Source,
    pub meter: Meter,
    pub disk: Disk,
    /// Everything up to here is durable.
    pub durable: Option<PersistId>,
    /// Sends that wait until something is durable.
    pub waiting: Vec<(PersistId, Output)>,
    pub random: Random,
    /// A configuration with all nodes was delivered.
    pub is_formed: bool,
}

impl<E> Node<E> {
    pub fn new(engine: E, process: Process, (nodes, seed): (usize, u64)) -> Self {
        let at = usize::from(process.node.get()) - 1;
        Self {
            engine,
            process,
            sockets: [Socket::default(), Socket::default()],
            arrivals: Queue::default(),
            mail: Queue::default(),
            free: 0,
            reads: 0,
            source: Source::silent(seed, at),
            meter: Meter::new(nodes),
            disk: Disk::default(),
            durable: None,
            waiting: Vec::new(),
            random: Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ at as u64),
            is_formed: false,
        }
    }

    pub const fn socket(&mut self, class: Class) -> &mut Socket {
        match class {
            Class::Data => &mut self.sockets[0],
            Class::Token => &mut self.sockets[1],
        }
    }

    /// Whether a token, or other control, waits.
    pub fn has_token(&self) -> bool {
        !self.sockets[1].is_empty()
    }

    /// When the next thing comes, from the network or the kernel; now, if something is there.
    pub fn next_arrival(&self, now: u64) -> u64 {
        if self.sockets.iter().any(|socket| !socket.is_empty()) {
            return now;
        }
        self.arrivals.next().min(self.mail.next())
    }
}
