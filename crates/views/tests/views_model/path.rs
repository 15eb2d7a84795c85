//! The least data path that orders within a view: the leader numbers packets, and packets that all have are delivered.
//! Its network loses nothing between members that are in the same configuration, and keeps no order.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, BufMut, Bytes};
use rota_core::contract::{
    Burst, Channel, Class, Incarnation, NodeId, Output, Process, RingId, Service, Target, Time,
    TimerReason,
};
use rota_views::{Backlog, DataPath, Frozen, Held, Link, Load, Packet, PacketId, View};

/// Packets of its own that a process has under way.
const WINDOW: u64 = 4;
/// One of so many packets is a word of the path itself.
const OWN_EVERY: u64 = 5;

const DATA: u8 = 8;
const ORDER: u8 = 9;
const ACK: u8 = 10;

#[derive(Default)]
pub struct Sequencer {
    me: Option<Process>,
    running: Option<Running>,
    /// What came for views that have not begun here.
    early: Vec<Bytes>,
    outputs: VecDeque<Output>,
}

struct Running {
    view: View,
    numbered: u64,
    packets: BTreeMap<PacketId, Packet>,
    order: BTreeMap<u64, PacketId>,
    /// The leader's: the last packet of each member that has a place.
    placed: Vec<u64>,
    /// Up to which place each member has all.
    acks: Vec<u64>,
    delivered: Vec<u64>,
    handed_out: u64,
}

impl Running {
    /// Up to which place all is here.
    fn complete(&self) -> u64 {
        let mut upto = self.handed_out;
        while let Some(id) = self.order.get(&(upto + 1)) {
            if !self.packets.contains_key(id) {
                break;
            }
            upto += 1;
        }
        upto
    }
}

fn datagram(kind: u8, ring: RingId) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[1] = kind;
    bytes.put_u64_le(ring.ring_seq);
    bytes.put_u16_le(ring.rep.get());
    bytes.put_u64_le(ring.incarnation.0);
    bytes
}

fn put_id(bytes: &mut Vec<u8>, id: PacketId) {
    bytes.put_u16_le(id.sender);
    bytes.put_u64_le(id.number);
}

fn get_id(bytes: &mut Bytes) -> PacketId {
    PacketId {
        sender: bytes.get_u16_le(),
        number: bytes.get_u64_le(),
    }
}

impl Sequencer {
    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send {
            class: Class::Data,
            channel: Channel(0),
            to: Target::Others,
            burst: Burst::single(bytes),
            after: None,
        });
    }

    fn take(&mut self, mut bytes: Bytes) {
        let kind = bytes[1];
        bytes.advance(36);
        let ring = RingId {
            ring_seq: bytes.get_u64_le(),
            rep: NodeId::new(bytes.get_u16_le()).expect("not 0"),
            incarnation: Incarnation(bytes.get_u64_le()),
        };
        let Some(running) = self.running.as_mut().filter(|now| now.view.ring == ring) else {
            return;
        };
        match kind {
            DATA => {
                let id = get_id(&mut bytes);
                let load = match bytes.get_u8() {
                    0 => Load::Own,
                    service => Load::Messages(Service::ALL[usize::from(service) - 1]),
                };
                running.packets.insert(id, Packet { id, load, bytes });
            }
            ORDER => {
                let place = bytes.get_u64_le();
                running.order.insert(place, get_id(&mut bytes));
            }
            ACK => {
                let member = usize::from(bytes.get_u16_le());
                let ack = &mut running.acks[member];
                *ack = bytes.get_u64_le().max(*ack);
            }
            other => panic!("kind {other}"),
        }
        self.work();
    }

    /// The leader gives places; everybody says what it has.
    fn work(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let (ring, me) = (running.view.ring, running.view.me);
        let mut to_send = Vec::new();
        if me == 0 {
            for sender in 0..running.placed.len() {
                loop {
                    let id = PacketId {
                        sender: sender as u16,
                        number: running.placed[sender] + 1,
                    };
                    if !running.packets.contains_key(&id) {
                        break;
                    }
                    running.placed[sender] += 1;
                    let place = running.placed.iter().sum();
                    running.order.insert(place, id);
                    let mut bytes = datagram(ORDER, ring);
                    bytes.put_u64_le(place);
                    put_id(&mut bytes, id);
                    to_send.push(bytes);
                }
            }
        }
        let complete = running.complete();
        if complete > running.acks[me] {
            running.acks[me] = complete;
            let mut bytes = datagram(ACK, ring);
            bytes.put_u16_le(me as u16);
            bytes.put_u64_le(complete);
            to_send.push(bytes);
        }
        to_send.into_iter().for_each(|bytes| self.send(bytes));
    }

    /// Numbers what is to be sent.
    fn fill(&mut self, backlog: &mut Backlog) {
        while let Some(running) = &mut self.running {
            let me = running.view.me;
            if running.numbered - running.delivered[me] >= WINDOW {
                return;
            }
            let number = running.numbered + 1;
            let (load, code, bytes) = if number.is_multiple_of(OWN_EVERY) {
                (Load::Own, 0, Bytes::from_static(b"own"))
            } else {
                let Some(out) = backlog.take() else { return };
                let code = Service::ALL.iter().position(|one| *one == out.service);
                let code = code.expect("listed") as u8 + 1;
                (Load::Messages(out.service), code, out.frame.into_bytes())
            };
            running.numbered = number;
            let id = PacketId {
                sender: me as u16,
                number,
            };
            let mut sent = datagram(DATA, running.view.ring);
            put_id(&mut sent, id);
            sent.push(code);
            sent.extend_from_slice(&bytes);
            running.packets.insert(id, Packet { id, load, bytes });
            self.send(sent);
            self.work();
        }
    }
}

impl DataPath for Sequencer {
    fn start(&mut self, me: Process, _: u64) {
        self.me = Some(me);
    }

    fn install(&mut self, _: Time, view: &View, notes: &[Bytes]) {
        let said: Vec<Vec<u8>> = notes.iter().map(|note| note.to_vec()).collect();
        let node = |member: &Process| member.node.get().to_le_bytes().to_vec();
        let expected: Vec<Vec<u8>> = view.members.iter().map(node).collect();
        assert_eq!(said, expected, "notes by member");
        assert_eq!(Some(view.members[view.me]), self.me);
        let count = view.members.len();
        self.outputs.clear();
        self.running = Some(Running {
            view: view.clone(),
            numbered: 0,
            packets: BTreeMap::new(),
            order: BTreeMap::new(),
            placed: vec![0; count],
            acks: vec![0; count],
            delivered: vec![0; count],
            handed_out: 0,
        });
        for bytes in std::mem::take(&mut self.early) {
            self.on_datagram(Time(0), Class::Data, bytes);
        }
    }

    fn freeze(&mut self, _: Time) -> Frozen {
        let running = self.running.take().expect("a view");
        let place_of = |id: PacketId| {
            let mut places = running.order.iter();
            places.find(|(_, of)| **of == id).map(|(place, _)| *place)
        };
        let left = running.packets.values();
        let left =
            left.filter(|packet| packet.id.number > running.delivered[packet.id.sender as usize]);
        let held = left.map(|packet| Held {
            packet: packet.clone(),
            place: place_of(packet.id).into_iter().collect(),
        });
        Frozen {
            held: held.collect(),
            delivered: running.delivered,
        }
    }

    fn note(&self) -> Vec<u8> {
        let me = self.me.expect("started");
        me.node.get().to_le_bytes().to_vec()
    }

    fn arrange(held: &mut Vec<Held>) {
        held.sort_by_key(|held| {
            let place = held.place.first().copied().unwrap_or(u64::MAX);
            (place, held.packet.id)
        });
    }

    fn on_datagram(&mut self, _: Time, _: Class, datagram: Bytes) {
        let ring_seq = (&datagram[36..]).get_u64_le();
        let current = self
            .running
            .as_ref()
            .map_or(0, |now| now.view.ring.ring_seq);
        if ring_seq > current {
            self.early.push(datagram);
        } else {
            self.take(datagram);
        }
    }

    fn on_link(&mut self, _: Time, _: Link) {}

    fn on_timer(&mut self, _: Time) {}

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn poll_output(&mut self, _: Time, backlog: &mut Backlog) -> Option<Output> {
        assert!(self.running.is_some(), "asked while frozen");
        self.fill(backlog);
        self.outputs.pop_front()
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        let running = self.running.as_mut().expect("asked while frozen");
        let safe = running.acks.iter().copied().min()?;
        let next = running.handed_out + 1;
        if next > safe {
            return None;
        }
        let id = running.order[&next];
        running.handed_out = next;
        running.delivered[usize::from(id.sender)] = id.number;
        running.packets.get(&id).cloned()
    }

    fn reading(&self) -> Class {
        Class::Data
    }

    fn count(&self, _: &mut BTreeMap<&'static str, u64>) {}

    fn holds(&self, _: RingId, _: PacketId) -> Option<bool> {
        None
    }
}
