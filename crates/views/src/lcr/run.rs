//! One process in one view: the ring as it sees it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

use super::member::{Member, PACKET_COST};
use super::wire::{Entry, MAX_FRAME_BYTES};
use super::{Config, order};
use crate::{Frozen, Packet, PacketId, View};
use rota_core::contract::{Process, RingId, Session, Time};
use rota_core::fair::Fair;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// A record of the predecessor that waits for its turn.
#[derive(Clone, Hash, Debug)]
pub enum Item {
    Packet(Entry),
    /// All hold the packets of member `.0` up to number `.1`.
    Stable(usize, u64),
}

/// The state of the hello to the predecessor, which tells it from where on to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hail {
    /// The hello is due, as soon as there is a link.
    Due,
    /// The hello was sent.
    Said,
    /// A message of the predecessor was refused: the next hello is due at this time.
    At(Time),
}

/// The contents of the successor's hello.
#[derive(Clone, Hash, Debug)]
pub struct Next {
    pub session: Session,
    pub epoch: u32,
    /// For each member, the number up to which the successor had its packets.
    pub has: Vec<u64>,
}

/// The state of a view.
#[derive(Clone, Hash, Debug)]
pub struct Run {
    pub ring: RingId,
    pub processes: Vec<Process>,
    pub me: usize,
    /// Whether the view has ended: then nothing happens any more.
    pub frozen: bool,
    pub members: Vec<Member>,
    pub input: VecDeque<Item>,
    /// The packets that were passed to the successor, or have to be, in the order of the link: sender and number.
    /// Packets that all hold are forgotten.
    pub log: VecDeque<(usize, u64)>,
    /// The number of them that were sent in this session.
    pub sent: usize,
    pub next: Option<Next>,
    /// The epoch of the last hello to the predecessor.
    pub epoch: u32,
    pub hail: Hail,
    pub fair: Fair,
    /// The costs, in bytes, of the own packets that are not known to be delivered by all.
    pub flight: VecDeque<usize>,
    pub flight_bytes: usize,
    /// The most of these, in bytes.
    pub window: usize,
    /// The largest own frame, in bytes.
    pub frame_bytes: usize,
    /// Deliveries of this many packets are told even if there is nothing else to say.
    pub tell_every: u64,
    /// Whether a delivery has made something possible to send.
    pub poke: bool,
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
            log: VecDeque::new(),
            sent: 0,
            next: None,
            epoch: 0,
            hail: Hail::Due,
            fair: Fair::new(count, view.me),
            flight: VecDeque::new(),
            flight_bytes: 0,
            window,
            frame_bytes: config.frame_bytes.min(MAX_FRAME_BYTES),
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
        (waits || !alone && self.next.is_none()).then_some(all)
    }

    /// The member behind another one.
    pub fn successor_of(&self, member: usize) -> usize {
        (member + 1) % self.members.len()
    }

    pub fn successor(&self) -> usize {
        self.successor_of(self.me)
    }

    pub fn predecessor(&self) -> usize {
        (self.me + self.members.len() - 1) % self.members.len()
    }

    pub fn is_successor(&self, peer: Process) -> bool {
        self.members.len() > 1 && self.processes[self.successor()] == peer
    }

    pub fn is_predecessor(&self, peer: Process) -> bool {
        self.members.len() > 1 && self.processes[self.predecessor()] == peer
    }

    /// Whether packets of this member are passed on: those of the successor have come round.
    pub fn passes_on(&self, sender: usize) -> bool {
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
            self.poke |= self.next.is_some() && self.untold(sender) >= self.tell_every;
        }
    }

    /// The number up to which all members from the one behind `sender` to this process have delivered the packets of
    /// `sender`: the successor may be told.
    pub fn delivered_behind(&self, sender: usize) -> u64 {
        let member = &self.members[sender];
        if self.predecessor() == sender {
            member.delivered
        } else {
            member.delivered.min(member.behind)
        }
    }

    /// The number of packets of another member that were delivered and not told.
    pub fn untold(&self, sender: usize) -> u64 {
        self.delivered_behind(sender)
            .saturating_sub(self.members[sender].told_delivered)
    }

    /// Makes room for other own packets, in place of those that all have delivered.
    pub fn land(&mut self) {
        let own = &self.members[self.me];
        let done = if mutants::on(Mutant::L08) {
            own.stable
        } else if self.members.len() == 1 {
            own.delivered
        } else {
            own.delivered.min(own.behind)
        };
        let first = own.passed + 1 - self.flight.len() as u64;
        for _ in first..=done {
            self.flight_bytes -= self.flight.pop_front().unwrap_or(0);
            self.poke = true;
        }
    }

    /// Whether an own packet may be sent. One always may.
    pub fn is_window_open(&self) -> bool {
        let after = self.flight_bytes + self.frame_bytes + PACKET_COST;
        self.flight.is_empty() || after <= self.window
    }

    /// Ends the view.
    pub fn freeze(&mut self) -> Frozen {
        self.frozen = true;
        self.poke = false;
        self.log.clear();
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
        assert!(
            self.next.is_none() || count > 1,
            "nobody follows who is alone"
        );
        assert!(
            self.next
                .as_ref()
                .is_none_or(|next| next.has.len() == count),
            "a hello speaks of each member"
        );
        assert!(self.tell_every >= 1, "progress is told");
        if self.flight.len() <= FEW {
            assert_eq!(
                self.flight_bytes,
                self.flight.iter().sum::<usize>(),
                "what is on its way is counted"
            );
        }
        if !self.frozen {
            assert!(self.sent <= self.log.len(), "what was sent is remembered");
            self.members.iter().for_each(Member::check);
        }
    }
}
