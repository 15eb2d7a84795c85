//! Network cards, the switch, and frames between them.
//!
//! A network card and a port of the switch are queues that are emptied at the network's rate, so no frame needs an event
//! when it leaves one: the time is known when it joins. A frame needs one event, at the switch, where those of several
//! senders meet; there it goes to the ports of all its receivers at once.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::Class;

use crate::agenda::NEVER;
use crate::setup::WirePlan;

/// Bytes around an IP packet: preamble, addresses, type, checksum, gap.
pub const ETHERNET: usize = 38;
/// The least that a frame takes, with all of that.
const LEAST_FRAME: usize = 84;
/// Bytes of the header of an IP packet.
pub const IP: usize = 20;
/// Bytes of the header of a datagram.
pub const UDP: usize = 8;
/// Bytes of the headers of a segment of TCP, with timestamps.
const TCP: usize = 52;
/// Bytes that acknowledgements of TCP take for each segment: one for two.
const ACKNOWLEDGED: u64 = LEAST_FRAME as u64 / 2;

/// The receivers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// All but the sender.
    Others,
    /// One.
    One(usize),
}

/// What a frame brings to its receivers, if it is the last of its kind.
#[derive(Clone, Debug)]
pub enum Load {
    /// A datagram for a socket.
    Datagram(Class, Bytes),
    /// A message of a link, of one of the rings that the nodes are on.
    Message(usize, Bytes),
}

/// A frame on its way to the switch.
#[derive(Debug)]
pub struct Frame {
    /// When it begins to leave the network card.
    pub leaves: u64,
    /// When the switch has all of it.
    pub crosses: u64,
    pub to: To,
    size: u32,
    is_first: bool,
    /// It may not be dropped.
    is_safe: bool,
    /// What arrives with it; nothing with a fragment that is not the last.
    pub load: Option<Load>,
}

/// The times of a frame behind the switch.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded {
    pub from: u64,
    pub arrives: u64,
    /// All fragments have come that far.
    pub is_whole: bool,
}

#[derive(Debug, Default)]
struct Card {
    free: u64,
    /// Bytes that take the place of frames without waiting.
    debt: u64,
    queue: VecDeque<Frame>,
}

#[derive(Debug, Default)]
struct Port {
    free: u64,
    debt: u64,
    /// The longest queue, in nanoseconds.
    longest: u64,
}

/// See the module page.
#[derive(Debug)]
pub struct Wire {
    plan: WirePlan,
    /// Picoseconds that a byte takes.
    byte: u64,
    cards: Vec<Card>,
    ports: Vec<Port>,
    /// By sender and receiver: a fragment of the datagram on its way was lost.
    broken: Vec<bool>,
    /// Datagrams that a port had no room for.
    pub dropped: u64,
}

impl Wire {
    pub fn new(plan: &WirePlan, nodes: usize) -> Self {
        Self {
            plan: plan.clone(),
            byte: 8_000_000_000_000 / plan.rate.max(1),
            cards: (0..nodes).map(|_| Card::default()).collect(),
            ports: (0..nodes).map(|_| Port::default()).collect(),
            broken: vec![false; nodes * nodes],
            dropped: 0,
        }
    }

    const fn nanos(&self, bytes: u64) -> u64 {
        (bytes * self.byte).div_ceil(1000)
    }

    /// The bytes of the longest queue of a port.
    pub fn longest_queue(&self) -> u64 {
        let longest = self.ports.iter().map(|port| port.longest).max();
        longest.unwrap_or(0) * 1000 / self.byte
    }

    /// Hands a datagram to a network card. Returns when the call returns: at once, or when the card's queue takes it.
    pub fn send(&mut self, from: usize, ready: u64, to: To, class: Class, bytes: Bytes) -> u64 {
        let packet = bytes.len() + UDP;
        let most = (self.plan.mtu - IP) / 8 * 8;
        let load = Load::Datagram(class, bytes);
        let is_safe = class == Class::Token;
        self.put(from, ready, to, (packet, IP, most), (load, is_safe))
    }

    /// Hands a message of a link to a network card, in segments. `ring`: the one whose link it is.
    pub fn send_message(
        &mut self,
        from: usize,
        ready: u64,
        (to, ring): (usize, usize),
        bytes: Bytes,
    ) -> u64 {
        let length = bytes.len().max(1);
        let most = self.plan.mtu - TCP;
        // The receiver acknowledges on its own way.
        let acknowledged = length.div_ceil(most) as u64 * ACKNOWLEDGED;
        self.cards[to].debt += acknowledged;
        self.ports[from].debt += acknowledged;
        let load = Load::Message(ring, bytes);
        self.put(from, ready, To::One(to), (length, TCP, most), (load, true))
    }

    /// Puts `length` bytes into a card's queue, in frames with `most` of them and `header` bytes each.
    fn put(
        &mut self,
        from: usize,
        ready: u64,
        to: To,
        (length, header, most): (usize, usize, usize),
        (load, is_safe): (Load, bool),
    ) -> u64 {
        let room = self.nanos(self.plan.card_bytes);
        let ready = ready.max(self.cards[from].free.saturating_sub(room));
        let mut load = Some(load);
        let (mut left, mut is_first) = (length, true);
        while left > 0 {
            let part = left.min(most);
            left -= part;
            let size = (part + header + ETHERNET).max(LEAST_FRAME) as u32;
            let debt = std::mem::take(&mut self.cards[from].debt);
            let nanos = self.nanos(u64::from(size) + debt);
            let card = &mut self.cards[from];
            let leaves = card.free.max(ready);
            card.free = leaves + nanos;
            card.queue.push_back(Frame {
                leaves,
                crosses: card.free,
                to,
                size,
                is_first,
                is_safe,
                load: if left == 0 { load.take() } else { None },
            });
            is_first = false;
        }
        ready
    }

    /// When the switch has the next frame of a card.
    pub fn next(&self, card: usize) -> u64 {
        let first = self.cards[card].queue.front();
        first.map_or(NEVER, |frame| frame.crosses)
    }

    /// The next frame of a card, which the switch has now.
    pub fn take(&mut self, card: usize) -> Option<Frame> {
        self.cards[card].queue.pop_front()
    }

    /// Forwards a frame to one of its receivers; `None` if it is lost.
    pub fn forward(&mut self, frame: &Frame, (from, to): (usize, usize)) -> Option<Forwarded> {
        let way = from * self.ports.len() + to;
        if frame.is_first {
            self.broken[way] = false;
        }
        let room = self.nanos(self.plan.port_bytes);
        let nanos = self.nanos(u64::from(frame.size) + self.ports[to].debt);
        let waits = self.ports[to].free.saturating_sub(frame.crosses);
        let is_full = waits + nanos > room || self.is_pool_full(frame.crosses, nanos);
        if is_full && !frame.is_safe {
            self.dropped += u64::from(!self.broken[way]);
            self.broken[way] = true;
            return None;
        }
        let head = if self.plan.cut_through { nanos } else { 0 };
        let ready = (frame.crosses + self.plan.switch).saturating_sub(head);
        let far = self.plan.far.get(from).map_or(0, |far| far[to]);
        let port = &mut self.ports[to];
        port.debt = 0;
        let start = port.free.max(ready);
        port.free = start + nanos;
        port.longest = port.longest.max(waits + nanos);
        Some(Forwarded {
            from: start,
            arrives: port.free + self.plan.path + far,
            is_whole: !self.broken[way],
        })
    }

    fn is_pool_full(&self, now: u64, nanos: u64) -> bool {
        let Some(pool) = self.plan.pool_bytes else {
            return false;
        };
        let waits = self.ports.iter().map(|port| port.free.saturating_sub(now));
        waits.sum::<u64>() + nanos > self.nanos(pool)
    }

    /// The time from a receiver back to a sender, for a word that waits nowhere.
    pub fn back(&self, from: usize, to: usize) -> u64 {
        let far = self.plan.far.get(from).map_or(0, |far| far[to]);
        self.plan.path + self.plan.switch + far + self.nanos(2 * LEAST_FRAME as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> WirePlan {
        WirePlan {
            rate: 1_000_000_000,
            path: 5_000,
            switch: 2_000,
            cut_through: false,
            port_bytes: 20_000,
            pool_bytes: None,
            card_bytes: 100_000,
            mtu: 1500,
            socket_bytes: 1 << 20,
            far: Vec::new(),
        }
    }

    fn pass(wire: &mut Wire, card: usize, to: usize) -> Vec<Option<u64>> {
        let mut arrivals = Vec::new();
        while let Some(frame) = wire.take(card) {
            let forwarded = wire.forward(&frame, (card, to));
            if frame.load.is_some() {
                arrivals.push(forwarded.filter(|it| it.is_whole).map(|it| it.arrives));
            }
        }
        arrivals
    }

    #[test]
    fn a_frame_takes_its_time_on_two_wires() {
        let mut wire = Wire::new(&plan(), 3);
        // 1400 bytes, 28 of headers, 38 of Ethernet: 11.728 us each.
        for _ in 0..2 {
            wire.send(0, 100, To::One(1), Class::Data, vec![0; 1400].into());
        }
        let first = 100 + 2 * 11_728 + 2_000 + 5_000;
        assert_eq!(wire.next(0), 100 + 11_728);
        assert_eq!(pass(&mut wire, 0, 1), [Some(first), Some(first + 11_728)]);
    }

    #[test]
    fn a_large_datagram_goes_in_fragments_and_is_lost_whole() {
        let mut wire = Wire::new(&plan(), 3);
        wire.send(0, 0, To::One(1), Class::Data, vec![0; 10_000].into());
        // 10,008 bytes: six fragments of 1480 and one of 1128, with 58 bytes each.
        let bytes = 10_008 + 7 * 58;
        assert_eq!(wire.cards[0].free, bytes * 8);
        assert_eq!(wire.cards[0].queue.len(), 7);
        // The queue has no room for the first fragment when it comes, and room for all others.
        wire.ports[1].free = 170_000;
        assert_eq!(pass(&mut wire, 0, 1), [None]);
        assert_eq!(wire.dropped, 1);
        let sent = wire.cards[0].free + 1_000_000;
        wire.send(0, sent, To::One(1), Class::Data, vec![0; 10_000].into());
        assert!(pass(&mut wire, 0, 1)[0].is_some());
    }

    #[test]
    fn cut_through_saves_a_frame_and_tokens_are_not_dropped() {
        let mut cut = plan();
        cut.cut_through = true;
        let mut wire = Wire::new(&cut, 2);
        wire.send(0, 0, To::One(1), Class::Data, vec![0; 1400].into());
        assert_eq!(pass(&mut wire, 0, 1), [Some(11_728 + 2_000 + 5_000)]);
        wire.ports[1].free = 10_000_000;
        wire.send(0, 0, To::One(1), Class::Token, vec![0; 100].into());
        assert!(pass(&mut wire, 0, 1)[0].is_some());
    }

    #[test]
    fn a_sender_waits_while_its_card_is_full() {
        let mut wire = Wire::new(&plan(), 2);
        let mut returned = Vec::new();
        for _ in 0..100 {
            returned.push(wire.send(0, 0, To::Others, Class::Data, vec![0; 1400].into()));
        }
        let full = returned.iter().position(|at| *at > 0);
        // 100,000 bytes are 68 frames and a part.
        assert_eq!(full, Some(69));
        assert_eq!(returned[70] - returned[69], 11_728);
    }

    #[test]
    fn a_message_of_a_link_is_acknowledged_at_the_cost_of_others() {
        let mut wire = Wire::new(&plan(), 2);
        wire.send_message(0, 0, (1, 0), vec![0; 2896].into());
        assert_eq!(wire.cards[0].free, 2 * 1538 * 8);
        wire.send(1, 0, To::One(0), Class::Data, vec![0; 1400].into());
        assert_eq!(wire.cards[1].free, (1466 + 84) * 8);
        assert_eq!(pass(&mut wire, 0, 1), [Some(3 * 1538 * 8 + 2_000 + 5_000)]);
    }
}
