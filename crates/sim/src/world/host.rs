//! A machine, the process that lives on it, and that process's application.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Checked, Class, ConfigurationKind, Input, MessageId, NodeId, Output, Process,
};

use super::disk::Disk;
use super::gate::Gate;
use super::payload::Pool;
use crate::groups::SimulatedClients;
use crate::observe::Engines;
use crate::rng::Rng;

/// A machine.
#[derive(Debug)]
pub struct Host<E> {
    pub node: NodeId,
    pub disk: Disk,
    pub life: Option<Life<E>>,
    /// The number of processes that it has started.
    pub lives: u32,
    pub paused_until: u64,
    pub stalled_until: u64,
    /// The machine is gone as well: nobody says that nobody listens.
    pub gone: bool,
    /// It does not come back.
    pub retired: bool,
    /// Its disk is another one, or an old one, since its last process: nothing on it tells of that.
    pub emptied: bool,
    /// Its log has been given up and is not open again.
    pub reopens: bool,
    /// Messages that its application may still submit.
    pub budget: u32,
    /// The bytes of what it submits.
    pub pool: Pool,
    pub rng: Rng,
}

/// An output that a socket does not take.
#[derive(Debug)]
pub struct Stuck {
    pub output: Output,
    pub until: u64,
    /// The output has waited for a disk before: its engine may have others by now, and was not asked.
    pub is_old: bool,
}

/// A process.
#[derive(Debug)]
pub struct Life<E> {
    pub process: Process,
    pub engine: Checked<E>,
    pub data: Socket,
    pub token: Socket,
    /// News of the system for it besides datagrams.
    pub inputs: VecDeque<Input>,
    /// In the middle of something until its next wake-up.
    pub busy: bool,
    /// The engine may have outputs.
    pub undrained: bool,
    /// An output that its socket does not take yet, and the time until then.
    pub stuck: Option<Stuck>,
    /// The sends that wait for the disk.
    pub gate: Gate,
    /// Outputs left until it is killed, and by which fault.
    pub doom: Option<(u32, u32)>,
    pub app: App,
    /// Its clients, if it serves any.
    pub desk: Option<SimulatedClients>,
    /// It is from before all voters lost what they had.
    pub former: bool,
}

/// A socket's receive queue: bounded in bytes.
#[derive(Default, Debug)]
pub struct Socket {
    queue: VecDeque<(Bytes, usize)>,
    bytes: usize,
}

impl Socket {
    /// Takes datagrams if there is any room: as in Linux, a burst that is larger than the buffer fits
    /// into an empty one. Otherwise who sends in such bursts would never be heard.
    pub fn push(&mut self, bytes: Bytes, segment: usize, room: usize) -> bool {
        if self.bytes >= room {
            return false;
        }
        self.bytes += bytes.len();
        self.queue.push_back((bytes, segment));
        true
    }

    pub fn pop(&mut self) -> Option<(Bytes, usize)> {
        let first = self.queue.pop_front()?;
        self.bytes -= first.0.len();
        Some(first)
    }
}

/// The knowledge of a process's application.
#[derive(Default, Debug)]
pub struct App {
    /// Its configuration.
    pub conf: Option<ConfigurationKind>,
    pub members: Vec<Process>,
    /// Configurations so far.
    pub confs: u64,
    /// Messages delivered in this configuration: how many, and a sum that any order gives.
    pub delivered: (u64, u64),
    /// The last position that it was given, and the end of all that it was given or has missed.
    pub last: u64,
    pub upto: u64,
    /// Messages it wants to submit.
    pub pending: u32,
    pub sent: u64,
    /// The number of its own messages that it has got back.
    pub returned: u64,
    /// The time at which it takes deliveries again.
    pub hungry_at: u64,
    /// There may be deliveries to take.
    pub more: bool,
    /// When it tries again to submit.
    pub retry_at: u64,
}

impl App {
    pub fn configured(&mut self, conf: ConfigurationKind, members: Vec<Process>) {
        self.conf = Some(conf);
        self.members = members;
        self.confs += 1;
        self.delivered = (0, 0);
    }

    /// The application is given the message at a position.
    pub fn got(&mut self, position: u64) {
        self.last = position;
        self.upto = self.upto.max(position);
    }

    pub fn delivered(&mut self, id: MessageId, me: Process) {
        let mixed = Rng::split(
            id.process.incarnation.0 ^ u64::from(id.process.node.get()) << 53,
            id.counter,
        )
        .next();
        self.delivered.0 += 1;
        self.delivered.1 = self.delivered.1.wrapping_add(mixed);
        self.returned += u64::from(id.process == me);
    }
}

impl<E> Life<E> {
    /// Whether the driver may ask for the next timer: it has all outputs, or the newest one is stuck.
    pub fn knows_outputs(&self) -> bool {
        !self.undrained || self.stuck.as_ref().is_some_and(|stuck| !stuck.is_old)
    }

    pub fn new(process: Process, engine: Checked<E>) -> Self {
        Self {
            process,
            engine,
            data: Socket::default(),
            token: Socket::default(),
            inputs: VecDeque::new(),
            busy: false,
            undrained: true,
            stuck: None,
            gate: Gate::default(),
            doom: None,
            app: App::default(),
            desk: None,
            former: false,
        }
    }

    pub const fn socket(&mut self, class: Class) -> &mut Socket {
        match class {
            Class::Data => &mut self.data,
            Class::Token => &mut self.token,
        }
    }
}

/// The live processes of a world.
pub struct Alive<'a, E>(pub &'a [Host<E>]);

impl<E> Engines<E> for Alive<'_, E>
where
    E: rota_core::contract::Engine,
{
    fn each(&self, look: &mut dyn FnMut(Process, &E)) {
        for life in self.0.iter().filter_map(|host| host.life.as_ref()) {
            look(life.process, life.engine.get());
        }
    }
}
