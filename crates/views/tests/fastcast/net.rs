//! FastCast members connected directly, in virtual time: losses, duplicates and delays come from a seed or from a
//! script.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rota_core::contract::{
    Class, Incarnation, NodeId, Output, Process, RingId, Service, Target, Time,
};
use rota_core::shares::Capacity;
use rota_core::wire::SEAL_BYTES;
use rota_views::fastcast::FastPacket;
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::{Backlog, DataPath, Frozen, Held, Packet, PacketId, View};

pub const CLUSTER: u32 = 7;
pub const DATAGRAM_BYTES: usize = 512;
/// How long a datagram is under way in fine weather, in nanoseconds.
pub const HOP: u64 = 20_000;
/// Nothing takes longer than this in any test, in nanoseconds.
const LONG: u64 = 600_000_000_000;

/// What goes wrong with a datagram on its way to one receiver.
pub struct Weather {
    pub loss: u64,
    pub doubled: u64,
    /// Of a thousand datagrams, how many are much later than others.
    pub late: u64,
    pub delay: (u64, u64),
    pub lost: Vec<u64>,
    /// No packets of the first of these come from it to the second, however often it sends them.
    pub cut: Option<(usize, usize)>,
}

impl Weather {
    pub fn fine() -> Self {
        Self {
            loss: 0,
            doubled: 0,
            late: 0,
            delay: (HOP, HOP + 1),
            lost: Vec::new(),
            cut: None,
        }
    }

    /// Nothing but what comes to a receiver as these is lost.
    pub fn without(lost: &[u64]) -> Self {
        Self {
            lost: lost.to_vec(),
            ..Self::fine()
        }
    }
}

/// What a datagram is, for counting which were lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Data,
    DataAgain,
    Leader,
    Ack,
    Request,
}

struct Arrival {
    to: usize,
    class: Class,
    datagram: Bytes,
}

pub struct Member {
    pub path: FastCast,
    pub backlog: Backlog,
    pub delivered: Vec<Packet>,
    /// The application takes deliveries.
    pub takes: bool,
    pub alive: bool,
}

pub struct Net {
    pub now: u64,
    pub view: RingId,
    config: FastConfig,
    seed: u64,
    pub members: Vec<Member>,
    pub weather: Weather,
    arrivals: BTreeMap<(u64, u64), Arrival>,
    /// Datagrams that were about to arrive at somebody, so far.
    pub count: u64,
    pub kinds: Vec<Kind>,
    seen: BTreeSet<(usize, u64)>,
    /// Bytes that were sent to each.
    pub loads: Vec<u64>,
    /// There are bandwidth shares.
    shared: bool,
    chance: u64,
    /// What no run may show.
    pub broken: Option<String>,
}

pub fn process(index: usize) -> Process {
    Process {
        node: NodeId::new(index as u16 + 1).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

impl Net {
    pub fn new(members: usize, window: u32, seed: u64, weather: Weather) -> Self {
        Self::with_capacity(members, window, seed, weather, None)
    }

    /// The same, with bandwidth shares if there is a capacity.
    pub fn with_capacity(
        members: usize,
        window: u32,
        seed: u64,
        weather: Weather,
        capacity: Option<Capacity>,
    ) -> Self {
        let view = RingId {
            ring_seq: 5,
            rep: process(0).node,
            incarnation: Incarnation(1),
        };
        let config = FastConfig {
            cluster: CLUSTER,
            datagram_bytes: DATAGRAM_BYTES,
            seal_bytes: SEAL_BYTES,
            window,
            control: if seed.is_multiple_of(2) {
                Class::Token
            } else {
                Class::Data
            },
            capacity,
            yields: false,
        };
        Self::of(members, seed, weather, view, config)
    }

    /// The same; what links take in follows losses.
    pub fn yielding(members: usize, seed: u64, weather: Weather, capacity: Capacity) -> Self {
        let net = Self::with_capacity(members, 256, seed, Weather::fine(), Some(capacity));
        let config = FastConfig {
            yields: true,
            ..net.config
        };
        Self::of(members, seed, weather, net.view, config)
    }

    fn of(members: usize, seed: u64, weather: Weather, view: RingId, config: FastConfig) -> Self {
        let mut net = Self {
            now: 1_000,
            view,
            shared: config.capacity.is_some(),
            config,
            seed,
            members: Vec::new(),
            weather,
            arrivals: BTreeMap::new(),
            count: 0,
            kinds: Vec::new(),
            seen: BTreeSet::new(),
            loads: vec![0; members],
            chance: seed.wrapping_mul(2).wrapping_add(1),
            broken: None,
        };
        for me in 0..members {
            let backlog = Backlog::new(net.config.frame_bytes(), 1 << 20, 64 << 20);
            net.members.push(Member {
                path: FastCast::new(net.config.clone()),
                backlog,
                delivered: Vec::new(),
                takes: true,
                alive: true,
            });
            net.restart(me);
        }
        for me in 0..members {
            net.install(me);
        }
        net
    }

    /// A member is in no view.
    pub fn restart(&mut self, member: usize) {
        let mut path = FastCast::new(self.config.clone());
        path.start(process(member), self.seed);
        self.members[member].path = path;
    }

    /// A member installs the view.
    pub fn install(&mut self, member: usize) {
        let count = self.members.len();
        let view = View {
            ring: self.view,
            members: (0..count).map(process).collect(),
            me: member,
        };
        let path = &mut self.members[member].path;
        let notes = vec![Bytes::from(path.note()); count];
        path.install(Time(self.now), &view, &notes);
        self.drain(member);
    }

    pub fn random(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    pub fn submit(&mut self, member: usize, bytes: usize) {
        let payload = vec![member as u8; bytes];
        self.members[member]
            .backlog
            .push(Service::Safe, &payload)
            .expect("room");
        self.drain(member);
    }

    /// Everything a member wants done now.
    pub fn drain(&mut self, member: usize) {
        if !self.members[member].alive {
            return;
        }
        loop {
            let now = Time(self.now);
            let Member { path, backlog, .. } = &mut self.members[member];
            let Some(output) = path.poll_output(now, backlog) else {
                break;
            };
            self.carry_out(member, output);
        }
        self.take_deliveries(member);
    }

    fn take_deliveries(&mut self, member: usize) {
        while self.members[member].takes {
            let Some(packet) = self.members[member].path.poll_packet() else {
                break;
            };
            self.check_delivery(member, packet.id);
            self.members[member].delivered.push(packet);
        }
    }

    /// Uniformity, seen from outside: who delivers, knows that all hold the packet and its place; and
    /// nobody's order differs.
    fn check_delivery(&mut self, member: usize, id: PacketId) {
        for (other, holder) in self.members.iter().enumerate() {
            if holder.path.holds(self.view, id) != Some(true) {
                self.break_rule(format!("held: {member} delivers {id:?}, {other} lacks it"));
                return;
            }
        }
        let place = self.members[member].delivered.len();
        let differs = self.members.iter().any(|other| {
            let there = other.delivered.get(place);
            there.is_some_and(|packet| packet.id != id)
        });
        if differs {
            self.break_rule(format!("order: {member} delivers {id:?} as {place}"));
        }
    }

    pub fn break_rule(&mut self, rule: String) {
        self.broken.get_or_insert(rule);
    }

    fn carry_out(&mut self, from: usize, output: Output) {
        let Output::Send {
            class, to, burst, ..
        } = output
        else {
            panic!("a data path asks for {output:?}");
        };
        if burst.bytes.is_empty() || burst.segment == 0 {
            self.break_rule("burst: empty".into());
        }
        let datagrams: Vec<Bytes> = burst.datagrams().map(Bytes::copy_from_slice).collect();
        for to in self.receivers(from, to) {
            for datagram in &datagrams {
                self.deliver_later(from, to, class, datagram.clone());
            }
        }
    }

    fn receivers(&self, from: usize, to: Target) -> Vec<usize> {
        let others = (0..self.members.len()).filter(|member| *member != from);
        match to {
            Target::Others => others.collect(),
            Target::Node(node) => others.filter(|&to| process(to).node == node).collect(),
        }
    }

    fn deliver_later(&mut self, from: usize, to: usize, class: Class, datagram: Bytes) {
        let kind = self.kind(from, to, &datagram);
        self.loads[to] += datagram.len() as u64;
        let count = self.count;
        self.count += 1;
        self.kinds.push(kind);
        let cut = self.weather.cut == Some((from, to)) && is_data(kind);
        if cut || self.weather.lost.contains(&count) || self.random(1000) < self.weather.loss {
            return;
        }
        let twice = self.random(1000) < self.weather.doubled;
        for _ in 0..=u8::from(twice) {
            let (least, most) = self.weather.delay;
            let late = if self.random(1000) < self.weather.late {
                20 * most
            } else {
                0
            };
            let at = self.now + least + self.random(most - least) + late;
            let order = self.count * 2 + u64::from(twice);
            self.count += u64::from(twice);
            let datagram = datagram.clone();
            self.arrivals.insert(
                (at, order),
                Arrival {
                    to,
                    class,
                    datagram,
                },
            );
        }
    }

    fn kind(&mut self, from: usize, to: usize, datagram: &Bytes) -> Kind {
        match FastPacket::decode(datagram.clone(), SEAL_BYTES) {
            Ok(FastPacket::Data(data)) => {
                let name = (
                    to,
                    data.head.number << 8 | u64::from(data.head.sender.get()),
                );
                if self.seen.insert(name) {
                    Kind::Data
                } else {
                    Kind::DataAgain
                }
            }
            Ok(FastPacket::Control(control)) if !control.requests.is_empty() => Kind::Request,
            Ok(FastPacket::Control(_)) if from == 0 => Kind::Leader,
            Ok(FastPacket::Control(_)) => Kind::Ack,
            Err(error) => panic!("a member sends what is no datagram: {error}"),
        }
    }

    /// The next thing that happens; `false` when nothing is left.
    pub fn step(&mut self) -> bool {
        let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
        let timer = (0..self.members.len())
            .filter(|member| self.members[*member].alive)
            .filter_map(|member| {
                let (at, _) = self.members[member].path.next_timer()?;
                Some((at.0.max(self.now), member))
            })
            .min();
        match (arrival, timer) {
            (None, None) => return false,
            (Some(at), timer) if timer.is_none_or(|(due, _)| at <= due) => self.arrive(at),
            (_, Some((due, member))) => {
                self.now = due;
                self.members[member].path.on_timer(Time(due));
                self.drain(member);
            }
            (Some(_), None) => unreachable!("the arrival comes first"),
        }
        true
    }

    fn arrive(&mut self, at: u64) {
        self.now = at;
        let Some((_, arrival)) = self.arrivals.pop_first() else {
            return;
        };
        let Arrival {
            to,
            class,
            datagram,
        } = arrival;
        if !self.members[to].alive {
            return;
        }
        self.members[to]
            .path
            .on_datagram(Time(self.now), class, datagram);
        if self.members[to].path.counters().fast_packets_beyond_window > 0 {
            self.break_rule(format!("window: {to} got what it cannot keep"));
        }
        self.drain(to);
    }

    /// Goes on until everybody is silent.
    pub fn run(&mut self) {
        let end = self.now + LONG;
        let mut idle_steps = 0;
        while self.step() {
            idle_steps += 1;
            if self.broken.is_some() {
                return;
            }
            if self.now > end || idle_steps > 5_000_000 {
                self.break_rule("silence: it never ends".into());
                return;
            }
        }
    }

    /// The view ends: only these members go on, with what they know now. All of them have to end with the
    /// same packets in the same order, and with all that anybody has ever delivered.
    pub fn end_view(&mut self, survivors: &[usize]) {
        let now = Time(self.now);
        let frozen: Vec<Frozen> = survivors
            .iter()
            .map(|&member| self.members[member].path.freeze(now))
            .collect();
        let mut all: BTreeMap<PacketId, Held> = BTreeMap::new();
        for held in frozen.iter().flat_map(|frozen| &frozen.held) {
            let known = all.entry(held.packet.id).or_insert_with(|| held.clone());
            if known.place.len() < held.place.len() {
                known.place = held.place.clone();
            }
        }
        let mut forced: Vec<Held> = all.into_values().collect();
        FastCast::arrange(&mut forced);
        for (&member, frozen) in survivors.iter().zip(&frozen) {
            let missing = forced.iter().map(|held| &held.packet).filter(|packet| {
                packet.id.number > frozen.delivered[usize::from(packet.id.sender)]
            });
            let missing: Vec<Packet> = missing.cloned().collect();
            self.members[member].delivered.extend(missing);
        }
        let ids = |member: usize| -> Vec<PacketId> {
            let delivered = &self.members[member].delivered;
            delivered.iter().map(|packet| packet.id).collect()
        };
        let order = ids(survivors[0]);
        let differs = |member: usize| {
            let known = ids(member);
            let gone = !survivors.contains(&member);
            if gone {
                !order.starts_with(&known)
            } else {
                order != known
            }
        };
        if let Some(member) = (0..self.members.len()).find(|&member| differs(member)) {
            self.break_rule(format!("forced: {member} and {} differ", survivors[0]));
        }
    }

    /// No member has seen another break a rule.
    pub fn check_counters(&mut self) {
        for member in 0..self.members.len() {
            let counters = self.members[member].path.counters().clone();
            if counters.fast_controls_invalid > 0 || counters.fast_places_contradicted > 0 {
                self.break_rule(format!("order: {member} was told what cannot be"));
            }
        }
    }

    /// Nothing is missing anywhere, of so many packets of each member.
    pub fn check_complete(&mut self, messages: &[usize]) {
        for member in 0..self.members.len() {
            for (sender, &wanted) in messages.iter().enumerate() {
                let delivered = &self.members[member].delivered;
                let from = delivered
                    .iter()
                    .filter(|packet| usize::from(packet.id.sender) == sender);
                let numbers: Vec<u64> = from.clone().map(|packet| packet.id.number).collect();
                // Words about shares have numbers, too.
                let ascending = numbers.is_sorted_by(|one, next| one < next);
                let dense = numbers.last() == Some(&(numbers.len() as u64));
                let fits = ascending && (dense || numbers.is_empty() || self.shared);
                let got: usize = from.map(messages_in).sum();
                if !fits || got != wanted {
                    let rule = format!("complete: {member} has {got} of {wanted} from {sender}");
                    self.break_rule(rule);
                    return;
                }
            }
        }
    }
}

const fn is_data(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::DataAgain)
}

/// How many messages end in a packet.
fn messages_in(packet: &Packet) -> usize {
    let frame = rota_core::wire::Frame::parse(packet.bytes.clone()).expect("a frame");
    (frame.end().counter - frame.start().counter) as usize
}
