//! One process in one view: the ring as it sees it.

mod receive;
mod send;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

use super::flight::Flight;
use super::log::Log;
use super::member::{Member, PACKET_COST, cost};
use super::wire::{Entry, Hello, MAX_FRAME_BYTES};
use super::{Config, order};
use crate::{Frozen, Packet, PacketId, View};
use rota_core::contract::{NodeId, Process, RingId, Session, Time, TimerReason};
use rota_core::fair::Fair;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};
use rota_core::resume::Resume;

/// A record of the predecessor that waits for its turn.
#[derive(Clone, Hash, Debug)]
enum Item {
    Packet(Entry),
    /// All hold the packets of member `.0` up to number `.1`.
    Stable(usize, u64),
}

/// The state of a view.
#[derive(Clone, Hash, Debug)]
pub struct Run {
    ring: RingId,
    processes: Vec<Process>,
    me: usize,
    /// Whether the view has ended: then nothing happens any more.
    frozen: bool,
    members: Vec<Member>,
    /// Records of the predecessor that wait for their turn.
    input: VecDeque<Item>,
    /// The packets for the successor.
    log: Log,
    /// The hello to the predecessor, which tells it from where on to send.
    resume: Resume,
    fair: Fair,
    /// Own packets under way.
    flight: Flight,
    /// Deliveries of this many packets are told even if there is nothing else to say.
    tell_every: u64,
    /// Whether a delivery has made something possible to send.
    poke: bool,
}

impl Run {
    pub fn new(config: &Config, view: &View, notes: &[Bytes]) -> Self {
        let count = view.members.len();
        let (window, largest) = config.agreed(notes);
        let least_packets = window / (largest + PACKET_COST);
        Self {
            ring: view.ring,
            processes: view.members.clone(),
            me: view.me,
            frozen: false,
            members: (0..count).map(Member::new).collect(),
            input: VecDeque::new(),
            log: Log::default(),
            resume: Resume::new(),
            fair: Fair::new(count, view.me),
            flight: Flight::new(window, config.frame_bytes.min(MAX_FRAME_BYTES)),
            // The packets that are not told on the whole way round are less than half of those that fit the window.
            tell_every: (least_packets / (2 * count)).max(1) as u64,
            poke: false,
        }
    }

    /// The progress of all packets on their way; `None` if there are none, and the successor can be told. To receive
    /// packets and pass them on is no progress: the window may have room for minutes of that.
    pub fn progress(&self) -> Option<u64> {
        let alone = self.members.len() == 1;
        // Others need not tell of their deliveries while there is room.
        let comes = |member: &Member| member.received > member.stable.max(member.delivered);
        let waits = self.members.iter().any(comes);
        let of = |member: &Member| member.stable + member.delivered + member.behind;
        let all = self.members.iter().map(of).sum();
        (waits || !alone && self.log.resumed().is_none()).then_some(all)
    }

    /// The view.
    pub const fn ring(&self) -> RingId {
        self.ring
    }

    /// Whether the view has not ended.
    pub const fn is_live(&self) -> bool {
        !self.frozen
    }

    /// Whether this process is the only member.
    pub const fn is_alone(&self) -> bool {
        self.members.len() == 1
    }

    /// The bytes of the packets that are here and were not delivered.
    pub fn kept_bytes(&self) -> usize {
        self.members.iter().map(|member| member.bytes).sum()
    }

    /// The member behind another one.
    fn successor_of(&self, member: usize) -> usize {
        (member + 1) % self.members.len()
    }

    fn successor(&self) -> usize {
        self.successor_of(self.me)
    }

    fn predecessor(&self) -> usize {
        (self.me + self.members.len() - 1) % self.members.len()
    }

    /// The process to which this one sends: itself if it is alone.
    pub fn successor_process(&self) -> Process {
        self.processes[self.successor()]
    }

    pub fn is_successor(&self, peer: Process) -> bool {
        self.members.len() > 1 && self.processes[self.successor()] == peer
    }

    pub fn is_predecessor(&self, peer: Process) -> bool {
        self.members.len() > 1 && self.processes[self.predecessor()] == peer
    }

    /// Whether packets of this member are passed on: those of the successor have come round.
    fn passes_on(&self, sender: usize) -> bool {
        let end = if mutants::on(Mutant::L04) {
            self.me
        } else {
            self.successor()
        };
        sender != end
    }

    /// The next packet in the order, if all hold it.
    pub fn deliver(&mut self) -> Option<Packet> {
        if self.frozen {
            return None;
        }
        let heads = self.members.iter().enumerate();
        let sender = order::first(heads.filter_map(|(sender, member)| {
            let place = member.head()?;
            Some((sender, place))
        }))?;
        let member = &self.members[sender];
        let held_by_all = member.stable > member.delivered;
        if !held_by_all && !mutants::on(Mutant::L03) {
            return None;
        }
        let packet = self.members[sender].deliver();
        self.on_delivered(sender);
        packet
    }

    fn on_delivered(&mut self, sender: usize) {
        if sender == self.me {
            self.land();
        } else {
            self.poke |= self.log.resumed().is_some() && self.untold(sender) >= self.tell_every;
        }
    }

    /// The number up to which all members from the one behind `sender` to this process have delivered the packets of
    /// `sender`: the successor may be told.
    fn delivered_behind(&self, sender: usize) -> u64 {
        let member = &self.members[sender];
        if self.predecessor() == sender {
            member.delivered
        } else {
            member.delivered.min(member.behind)
        }
    }

    /// The number of packets of another member that were delivered and not told.
    fn untold(&self, sender: usize) -> u64 {
        self.delivered_behind(sender)
            .saturating_sub(self.members[sender].told_delivered)
    }

    /// Makes room for other own packets, in place of those that all have delivered.
    fn land(&mut self) {
        let own = &self.members[self.me];
        let done = if mutants::on(Mutant::L08) {
            own.stable
        } else if self.members.len() == 1 {
            own.delivered
        } else {
            own.delivered.min(own.behind)
        };
        self.poke |= self.flight.land(own.passed, done);
    }

    /// The link to a node has come up or gone down: neighbours begin again.
    pub fn on_link(&mut self, node: NodeId) {
        if self.processes[self.predecessor()].node == node {
            self.resume.restart();
        }
        if self.processes[self.successor()].node == node {
            self.log.on_link();
        }
    }

    /// The process that a hello is due to; `None` if none is due.
    pub fn greets(&self) -> Option<Process> {
        let is_due = self.resume.is_due() && !self.is_alone();
        is_due.then(|| self.processes[self.predecessor()])
    }

    /// The hello, which says what is here.
    pub fn hello(&self) -> Hello {
        Hello {
            ring: self.ring,
            epoch: self.resume.next_epoch(),
            received: self.members.iter().map(|member| member.received).collect(),
        }
    }

    /// The hello is sent.
    pub const fn on_hello_sent(&mut self) {
        self.resume.say();
    }

    /// Whether a batch of this epoch answers the last hello.
    pub const fn is_answered_by(&self, epoch: u32) -> bool {
        self.resume.is_answered_by(epoch)
    }

    /// The session in which the successor has said which packets it has; `None` if it has to say so yet.
    pub fn session(&self) -> Option<Session> {
        self.log.resumed().map(|resumed| resumed.session())
    }

    /// The time of the next step, if nothing happens before, and the reason.
    pub fn next_time(&self, now: Time) -> Option<(Time, TimerReason)> {
        if self.poke {
            return Some((now, TimerReason::Other("lcr: delivered")));
        }
        let again = self.resume.next_time();
        again.map(|at| (at, TimerReason::Other("lcr: ask again")))
    }

    /// It is this time.
    pub fn on_time(&mut self, now: Time) {
        self.resume.on_time(now);
    }

    /// Everything that could be sent was sent.
    pub const fn rest(&mut self) {
        self.poke = false;
    }

    /// Ends the view.
    pub fn freeze(&mut self) -> Frozen {
        self.frozen = true;
        self.poke = false;
        self.log.end();
        for item in core::mem::take(&mut self.input) {
            if let Item::Packet(entry) = item {
                // Packets that wait for their turn are held as well.
                self.members[usize::from(entry.sender)].pass(entry);
            }
        }
        let mut held = Vec::new();
        let delivered = self.members.iter().map(|member| member.delivered);
        let delivered = delivered.collect();
        for member in &mut self.members {
            member.hand_over(&mut held);
        }
        Frozen { delivered, held }
    }

    /// Whether a packet is here, or was.
    pub fn holds(&self, id: PacketId) -> bool {
        let member = self.members.get(usize::from(id.sender));
        member.is_some_and(|member| id.number != 0 && id.number <= member.passed)
    }
}

impl Run {
    /// Its invariants.
    pub fn check(&self) {
        let count = self.processes.len();
        assert!(self.me < count, "this process is in the view");
        assert_eq!(self.members.len(), count, "each member has its state");
        assert!(self.tell_every >= 1, "progress is told");
        self.flight.check();
        if !self.frozen {
            self.log.check(count);
            self.members.iter().for_each(Member::check);
            self.check_bytes();
        }
    }

    /// Asserts that the bytes of each member are those of its packets here.
    fn check_bytes(&self) {
        let kept = |member: &Member| member.pending.len();
        let all: usize = self.members.iter().map(kept).sum();
        if all + self.input.len() > FEW {
            return;
        }
        for (sender, member) in self.members.iter().enumerate() {
            let waits = self.input.iter().filter_map(|item| match item {
                Item::Packet(entry) if usize::from(entry.sender) == sender => Some(entry),
                _ => None,
            });
            let bytes: usize = member.pending.iter().chain(waits).map(cost).sum();
            assert_eq!(member.bytes, bytes, "what is here is counted");
        }
    }
}
