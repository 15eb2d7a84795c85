//! The network: the datagrams that arrive, and the place, time and state of each arrival.

use bytes::Bytes;
use rota_core::contract::Class;
use rota_core::wire::{HEADER_BYTES, SEAL_BYTES};

use super::queue::{Queue, What};
use crate::plan::{Lane, LanePlan, MICROS, MILLIS, Matrix, Net};
use crate::rng::{Ppm, Rng};

/// Datagrams remembered, to come again.
const ARCHIVE: usize = 256;

/// Datagrams that arrive together, in one buffer.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub from: usize,
    pub to: usize,
    pub class: Class,
    pub bytes: Bytes,
    pub segment: usize,
}

/// The effects of the network on datagrams.
#[derive(Clone, Copy, Default, Debug)]
pub struct NetTally {
    pub cut: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub damaged: u64,
    pub late: u64,
    pub replayed: u64,
    pub garbage: u64,
}

/// All links.
#[derive(Debug)]
pub struct Network {
    hosts: usize,
    net: Net,
    rng: Rng,
    /// By sender and receiver: how many faults cut this direction.
    cuts: Vec<u32>,
    /// By sender and receiver: what a link loses by itself, and in storms.
    own_loss: Vec<[Ppm; 3]>,
    storm: Vec<[Ppm; 3]>,
    /// By sender, receiver and class: the last arrival, where nothing overtakes.
    last: Vec<u64>,
    archive: Vec<(Class, Bytes)>,
    archived: u64,
    slab: Vec<Option<Arrival>>,
    free: Vec<u32>,
    pub tally: NetTally,
}

/// Datagrams on their way out of a host, in one buffer.
pub struct Sending<'a> {
    pub from: usize,
    pub class: Class,
    pub bytes: &'a Bytes,
    pub segment: usize,
    /// When they leave.
    pub at: u64,
}

impl Network {
    pub fn new(net: Net, hosts: usize, seed: u64) -> Self {
        let mut own_loss = vec![[0; 3]; hosts * hosts];
        for link in &net.lossy {
            own_loss[link.from * hosts + link.to] = link.loss;
        }
        Self {
            hosts,
            net,
            rng: Rng::split(seed, 3),
            cuts: vec![0; hosts * hosts],
            own_loss,
            storm: vec![[0; 3]; hosts * hosts],
            last: vec![0; hosts * hosts * 2],
            archive: Vec::new(),
            archived: 0,
            slab: Vec::new(),
            free: Vec::new(),
            tally: NetTally::default(),
        }
    }

    /// Bytes that wait in a socket at most.
    pub const fn socket_bytes(&self) -> usize {
        self.net.socket_bytes
    }

    /// Whether data goes to each receiver by itself.
    pub const fn unicast(&self) -> bool {
        self.net.unicast
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts[from * self.hosts + to] > 0
    }

    /// Cuts links once more, or once less.
    pub fn cut(&mut self, links: &Matrix, more: bool) {
        for from in 0..self.hosts {
            for to in (0..self.hosts).filter(|&to| links.is_cut(from, to)) {
                let cuts = &mut self.cuts[from * self.hosts + to];
                *cuts = if more {
                    *cuts + 1
                } else {
                    cuts.saturating_sub(1)
                };
            }
        }
    }

    /// Lets links lose so much of each lane.
    pub fn storm(&mut self, links: &Matrix, loss: [Ppm; 3]) {
        for from in 0..self.hosts {
            for to in (0..self.hosts).filter(|&to| links.is_cut(from, to)) {
                self.storm[from * self.hosts + to] = loss;
            }
        }
    }

    /// Nothing is cut, lost, repeated or damaged from here on. Delays stay.
    pub fn heal(&mut self) {
        self.cuts.fill(0);
        self.storm.fill([0; 3]);
        self.own_loss.fill([0; 3]);
        for lane in &mut self.net.lanes {
            *lane = LanePlan {
                delay: lane.delay,
                jitter: lane.jitter,
                ..LanePlan::default()
            };
        }
        (self.net.replay, self.net.garbage) = (0, 0);
    }

    /// The time that the next piece of a stream takes: longer if it has to be sent again.
    pub fn stream_delay(&mut self, from: usize, to: usize) -> u64 {
        let link = from * self.hosts + to;
        let data = self.net.lanes[Lane::Data as usize];
        let own = self.own_loss[link][Lane::Data as usize];
        let storm = self.storm[link][Lane::Data as usize];
        let mut delay = data.delay + self.rng.below(data.jitter + 1);
        if self.rng.ppm(data.loss.max(own).max(storm)) {
            self.tally.lost += 1;
            delay += self.rng.spread(MILLIS, 200 * MILLIS);
        }
        delay
    }

    /// The arrival at a place in the slab.
    pub fn take(&mut self, slot: u32) -> Option<Arrival> {
        let arrival = self.slab.get_mut(slot as usize)?.take();
        self.free.push(slot);
        arrival
    }

    /// Datagrams leave for one receiver.
    pub fn carry(&mut self, queue: &mut Queue, sending: &Sending<'_>, to: usize) {
        let link = sending.from * self.hosts + to;
        let lane = lane(sending.class, sending.bytes);
        let mut plan = self.net.lanes[lane as usize];
        if self.cuts[link] > 0 {
            self.tally.cut += 1;
            return;
        }
        let own = self.own_loss[link][lane as usize];
        plan.loss = plan.loss.max(own).max(self.storm[link][lane as usize]);
        let whole = self.rng.ppm(self.net.whole);
        let sound = plan.loss | plan.duplicate | plan.damage | plan.spike == 0;
        let mut way = Way {
            queue,
            sending,
            to,
            plan,
        };
        let length = sending.bytes.len();
        if sound && (whole || length <= sending.segment) {
            return self.schedule(&mut way, (0, length), 0);
        }
        // Neighbours that arrive together.
        let mut run = (0, 0);
        let mut start = 0;
        while start < length {
            let end = (start + sending.segment).min(length);
            let arrives = sound || self.fate(&mut way, (start, end));
            if arrives && whole {
                run.1 = end;
            } else {
                self.schedule(&mut way, run, 0);
                run = (end, end);
                if arrives {
                    self.schedule(&mut way, (start, end), 0);
                }
            }
            start = end;
        }
        self.schedule(&mut way, run, 0);
    }

    /// Draws what happens to one datagram; says whether it arrives as it should.
    fn fate(&mut self, way: &mut Way<'_, '_>, piece: (usize, usize)) -> bool {
        let plan = way.plan;
        if self.rng.ppm(plan.loss) {
            self.tally.lost += 1;
            return false;
        }
        if self.rng.ppm(plan.damage) {
            self.tally.damaged += 1;
            return still_opens(&mut self.rng, &way.sending.bytes[piece.0..piece.1]);
        }
        if self.rng.ppm(plan.duplicate) {
            self.tally.duplicated += 1;
            let later = self.rng.spread(1, 5 * plan.spike_for.max(MICROS));
            self.schedule(way, piece, later);
        }
        if self.rng.ppm(plan.spike) {
            self.tally.late += 1;
            let later = self.rng.spread(1, plan.spike_for);
            self.schedule(way, piece, later);
            return false;
        }
        true
    }

    fn schedule(&mut self, way: &mut Way<'_, '_>, (start, end): (usize, usize), later: u64) {
        if start == end {
            return;
        }
        let sending = way.sending;
        let mut at = sending.at + way.plan.delay + self.rng.below(way.plan.jitter + 1) + later;
        // A datagram that comes much later than it should holds nothing else up.
        if self.net.fifo && later == 0 {
            let class = usize::from(sending.class == Class::Token);
            let last = &mut self.last[(sending.from * self.hosts + way.to) * 2 + class];
            at = at.max(*last);
            *last = at;
        }
        let bytes = sending.bytes.slice(start..end);
        let segment = sending.segment.min(bytes.len());
        let arrival = Arrival {
            from: sending.from,
            to: way.to,
            class: sending.class,
            bytes,
            segment,
        };
        self.arrive_at(way.queue, at, arrival);
    }

    fn arrive_at(&mut self, queue: &mut Queue, at: u64, arrival: Arrival) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.slab.len() as u32 - 1
        });
        self.slab[slot as usize] = Some(arrival);
        queue.push(at, What::Arrive(slot));
    }

    /// Something was sent: it is perhaps remembered, and something old or strange may come with it.
    pub fn note(&mut self, queue: &mut Queue, sending: &Sending<'_>) {
        // An even sample of all that was ever sent.
        self.archived += 1;
        if self.archive.len() < ARCHIVE {
            self.archive.push((sending.class, first_of(sending)));
        } else {
            let place = self.rng.below(self.archived) as usize;
            if let Some(kept) = self.archive.get_mut(place) {
                *kept = (sending.class, first_of(sending));
            }
        }
        if self.rng.ppm(self.net.replay) {
            let to = self.rng.index(self.hosts);
            self.replay(queue, sending.at, to, 1);
        }
        if self.rng.ppm(self.net.garbage) {
            self.garbage(queue, sending.at);
        }
    }

    /// Old datagrams come again.
    pub fn replay(&mut self, queue: &mut Queue, now: u64, to: usize, count: u32) {
        for _ in 0..count {
            if self.archive.is_empty() {
                return;
            }
            let place = self.rng.index(self.archive.len());
            let (class, bytes) = self.archive[place].clone();
            self.tally.replayed += 1;
            self.stray(queue, now, to, (class, bytes));
        }
    }

    /// A datagram with a sound seal that is none of this cluster's.
    fn garbage(&mut self, queue: &mut Queue, now: u64) {
        let to = self.rng.index(self.hosts);
        let place = self.rng.index(self.archive.len());
        let Some((class, old)) = self.archive.get(place).cloned() else {
            return;
        };
        let mut bytes = old.to_vec();
        match self.rng.below(3) {
            // Another version, another cluster, no packet at all.
            0 => bytes[0] ^= 1,
            1 => bytes[4..8].copy_from_slice(&(self.rng.next() as u32).to_le_bytes()),
            _ => {
                bytes.truncate(HEADER_BYTES + SEAL_BYTES + self.rng.index(bytes.len()));
                for byte in &mut bytes {
                    *byte = self.rng.next() as u8;
                }
            }
        }
        self.tally.garbage += 1;
        self.stray(queue, now, to, (class, Bytes::from(bytes)));
    }

    fn stray(&mut self, queue: &mut Queue, now: u64, to: usize, what: (Class, Bytes)) {
        let at = now + self.rng.spread(1, 1000 * MICROS);
        let (class, bytes) = what;
        let segment = bytes.len();
        let arrival = Arrival {
            from: to,
            to,
            class,
            bytes,
            segment,
        };
        self.arrive_at(queue, at, arrival);
    }
}

/// Datagrams on their way to one receiver.
struct Way<'a, 'b> {
    queue: &'a mut Queue,
    sending: &'a Sending<'b>,
    to: usize,
    plan: LanePlan,
}

fn first_of(sending: &Sending<'_>) -> Bytes {
    let end = sending.segment.min(sending.bytes.len());
    sending.bytes.slice(..end)
}

/// The lane of datagrams: the kind is in the low four bits of their second byte, 1 for a token and 2 for a call for it.
fn lane(class: Class, bytes: &[u8]) -> Lane {
    match (class, bytes.get(1).map(|kind| kind & 0x0f)) {
        (Class::Data, _) => Lane::Data,
        (Class::Token, Some(1 | 2)) => Lane::Token,
        (Class::Token, _) => Lane::Control,
    }
}

/// Seals a datagram, damages it, and says whether its receiver opens it all the same: then nothing
/// is left of the damage, for all that CRC32C can tell. Only what gets damaged is ever sealed: the
/// checksum of everything else would be right.
fn still_opens(rng: &mut Rng, datagram: &[u8]) -> bool {
    let mut bytes = datagram.to_vec();
    let Some((text, sum)) = bytes.split_last_chunk_mut::<SEAL_BYTES>() else {
        return false;
    };
    *sum = crc_fast::crc32_iscsi(text).to_le_bytes();
    if rng.percent(30) {
        bytes.truncate(rng.index(bytes.len()));
    } else {
        for _ in 0..rng.range(1, 8) {
            let bit = rng.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    let sound = |(text, sum): (&[u8], &[u8; SEAL_BYTES])| {
        *sum == crc_fast::crc32_iscsi(text).to_le_bytes()
            && bytes.len() >= HEADER_BYTES + SEAL_BYTES
    };
    bytes.split_last_chunk::<SEAL_BYTES>().is_some_and(sound)
}

#[cfg(test)]
mod tests;
