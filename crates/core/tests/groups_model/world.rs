//! Daemons and clients over the bus, driven by chance.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Service;
use rota_core::groups::{
    ClientName, Connection, Destination, Event, GroupName, Groups, Hold, HoldFor, Limits, Member,
    Phase, Send,
};

use super::bus::{Bus, Port};

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// What a client may have on its way, but for one larger message.
const SMALL_BYTES: usize = 2_000;

/// What a client has done and seen.
#[derive(Clone, Debug)]
pub enum Step {
    Sent(u64),
    Got(Event),
}

/// What is known of a message of a client.
#[derive(Clone, Debug)]
pub struct Sent {
    pub by: Member,
    pub discard: bool,
    /// Its sender was in a group that it went to, and had not asked to leave that.
    pub inside: bool,
    /// Its sender had not even asked for one of them.
    pub outside: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub steps: Vec<Step>,
    /// The client or its daemon is gone.
    pub cut: bool,
}

struct Node {
    port: Port,
    groups: Groups,
    clients: BTreeMap<Connection, BTreeSet<GroupName>>,
    /// What it wants to be held.
    holds: HoldFor,
}

pub struct World {
    pub rng: Rng,
    bus: Bus,
    nodes: Vec<Node>,
    incarnations: u64,
    pub traces: BTreeMap<Member, Trace>,
    pub sent: BTreeMap<u64, Sent>,
    pub exchanges: u64,
    pub interrupted: u64,
    pub completed_late: u64,
    pub skips: u64,
    pub parts: u64,
    /// Destinations that were held where somebody had another daemon do so.
    pub held: u64,
}

pub fn group(number: usize) -> GroupName {
    GroupName::new(["apples", "pears", "plums"][number]).expect("a name")
}

impl World {
    pub fn new(seed: u64, daemons: u16, transitional: bool) -> Self {
        let mut world = Self {
            rng: Rng(seed),
            bus: Bus::new(transitional),
            nodes: Vec::new(),
            incarnations: 0,
            traces: BTreeMap::new(),
            sent: BTreeMap::new(),
            exchanges: 0,
            interrupted: 0,
            completed_late: 0,
            skips: 0,
            parts: 0,
            held: 0,
        };
        for node in 1..=daemons {
            let node = world.fresh(node);
            world.nodes.push(node);
        }
        world
    }

    fn fresh(&mut self, node: u16) -> Node {
        self.incarnations += 1;
        let port = self.bus.start(node, self.incarnations);
        let limits = Limits {
            window: 5,
            backlog_bytes: SMALL_BYTES,
            piece_bytes: 200,
            ..Limits::default()
        };
        Node {
            groups: Groups::new(port.process, limits),
            port,
            clients: BTreeMap::new(),
            holds: HoldFor::new(),
        }
    }

    /// One thing happens.
    pub fn step(&mut self) {
        let at = self.rng.below(self.nodes.len());
        match self.rng.below(100) {
            0..25 => self.request(at),
            25..45 => self.submit(at),
            45..60 => {
                self.bus.originate(&mut self.nodes[at].port);
            }
            60..75 => {
                let count = 1 + self.rng.below(4);
                self.bus.receive(&mut self.nodes[at].port, count);
            }
            75..97 => {
                for _ in 0..=self.rng.below(4) {
                    self.deliver(at);
                }
            }
            97..99 => self.reconfigure(3),
            _ if self.rng.percent(30) => self.crash(at),
            _ => {}
        }
    }

    fn crash(&mut self, at: usize) {
        self.exchanges += self.nodes[at].groups.counters().exchanges;
        let connections: Vec<Connection> = self.nodes[at].clients.keys().copied().collect();
        for connection in connections {
            let member = self.nodes[at].groups.member(connection);
            self.cut(member.expect("connected"));
        }
        let node = self.nodes[at].port.process.node.get();
        self.nodes[at] = self.fresh(node);
    }

    fn cut(&mut self, member: Member) {
        self.traces.entry(member).or_default().cut = true;
    }

    /// Daemons end up in so many configurations, or fewer.
    fn reconfigure(&mut self, most: usize) {
        let sides: Vec<usize> = self.nodes.iter().map(|_| self.rng.below(most)).collect();
        for side in 0..most {
            let nodes = self.nodes.iter_mut().zip(&sides);
            let mut ports: Vec<&mut Port> = nodes
                .filter(|(_, of)| **of == side)
                .map(|(node, _)| &mut node.port)
                .collect();
            if !ports.is_empty() {
                self.bus.reconfigure(&mut ports);
            }
        }
    }

    fn submit(&mut self, at: usize) {
        let Node { port, groups, .. } = &mut self.nodes[at];
        while let Some((service, bytes)) = groups.to_submit() {
            if !Bus::submit(port, service, bytes.to_vec()) {
                return;
            }
            groups.submitted();
        }
    }

    fn deliver(&mut self, at: usize) -> bool {
        let node = &mut self.nodes[at];
        let Some(delivery) = node.port.deliveries.pop_front() else {
            return false;
        };
        let before = matches!(node.groups.phase(), Phase::Interrupted { .. });
        node.groups.deliver(delivery);
        let after = node.groups.phase();
        self.interrupted += u64::from(!before && matches!(after, Phase::Interrupted { .. }));
        self.completed_late += u64::from(before && matches!(after, Phase::Transitional(_)));
        self.take(at);
        true
    }

    fn take(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        while let Some(event) = node.groups.poll_event() {
            for &connection in event.to.iter() {
                // What is for who was made to skip is dropped.
                if !node.clients.contains_key(&connection) {
                    continue;
                }
                let member = node.groups.member(connection).expect("connected");
                let trace = self.traces.entry(member).or_default();
                trace.steps.push(Step::Got(event.event.clone()));
            }
        }
    }

    fn request(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let name = ["ann", "bob", "cy"][self.rng.below(3)];
        let Ok(connection) = node.groups.connect(ClientName::new(name).expect("a name")) else {
            let place = self.rng.below(node.clients.len());
            let connection = node.clients.keys().nth(place).copied().expect("there");
            return self.request_of(at, connection);
        };
        node.clients.insert(connection, BTreeSet::new());
        let member = node.groups.member(connection).expect("connected");
        self.traces.insert(member, Trace::default());
    }

    fn request_of(&mut self, at: usize, connection: Connection) {
        let name = group(self.rng.below(3));
        let node = &mut self.nodes[at];
        let wants = node.clients.get_mut(&connection).expect("there");
        if node.groups.has_room(connection, 0) == Ok(false) {
            return;
        }
        match self.rng.below(20) {
            0..5 => {
                node.groups.join(connection, name).expect("room");
                wants.insert(name);
            }
            5..7 => {
                node.groups.leave(connection, name).expect("room");
                wants.remove(&name);
            }
            7 => {
                let member = node.groups.member(connection).expect("connected");
                node.groups.disconnect(connection);
                node.clients.remove(&connection);
                self.cut(member);
            }
            8 => self.skip(at, connection),
            9 => self.hold(at),
            _ => self.send(at, connection),
        }
    }

    /// A client misses something, and is another one from here on.
    fn skip(&mut self, at: usize, connection: Connection) {
        let node = &mut self.nodes[at];
        let member = node.groups.member(connection).expect("connected");
        let Some(next) = node.groups.restart(connection) else {
            return;
        };
        let wants = node.clients.remove(&connection).expect("there");
        node.clients.insert(next, wants);
        let now = node.groups.member(next).expect("connected");
        self.cut(member);
        self.traces.insert(now, Trace::default());
        self.skips += 1;
    }

    /// A daemon wants something else to be held, or nothing any more.
    fn hold(&mut self, at: usize) {
        let which = self.rng.below(8);
        let client = ClientName::new("ann").expect("a name");
        let some = (0..3).filter(|number| which & (1 << number) != 0);
        let node = &mut self.nodes[at];
        node.holds = some
            .map(|number| (Destination::Group(group(number)), client))
            .collect();
        node.groups.hold(node.holds.clone(), 1_000);
    }

    fn send(&mut self, at: usize, connection: Connection) {
        let first = self.rng.below(3);
        let mut to = vec![Destination::Group(group(first))];
        if self.rng.percent(40) {
            to.push(Destination::Group(group((first + 1) % 3)));
        }
        if self.rng.percent(20) {
            let name = ClientName::new("ann").expect("a name");
            let other = self.nodes[self.rng.below(self.nodes.len())].port.process;
            to.push(Destination::Client(name, other.node));
        }
        let discard = self.rng.percent(20);
        let service = if self.rng.percent(40) {
            Service::Safe
        } else {
            Service::Agreed
        };
        self.send_to(at, connection, (to, service, discard));
    }

    pub fn send_to(
        &mut self,
        at: usize,
        connection: Connection,
        (to, service, self_discard): (Vec<Destination>, Service, bool),
    ) {
        let large = self.rng.percent(5);
        let node = &mut self.nodes[at];
        let by = node.groups.member(connection).expect("connected");
        let id = self.sent.len() as u64;
        let mut payload = id.to_le_bytes().to_vec();
        if large {
            payload.resize(SMALL_BYTES + 500, 0);
        }
        if node.groups.has_room(connection, payload.len()) == Ok(false) {
            return;
        }
        let wants = &node.clients[&connection];
        let inside = to.iter().any(|to| match to {
            Destination::Group(name) => {
                wants.contains(name) && node.groups.list_members(name).contains(&by)
            }
            Destination::Client(name, of) => (*name, *of) == (by.name, by.daemon.node),
        });
        let trace = self.traces.get_mut(&by).expect("connected");
        // Who has ever been anywhere may be there still.
        let outside = trace.steps.iter().all(|step| matches!(step, Step::Sent(_)))
            && wants.is_empty()
            && !inside;
        let send = Send {
            service,
            self_discard,
            kind: 7,
            big_endian: id.is_multiple_of(2),
            number: id.is_multiple_of(3).then_some(id),
            to,
            payload: payload.into(),
        };
        node.groups.send(connection, send).expect("room");
        trace.steps.push(Step::Sent(id));
        let discard = self_discard;
        self.sent.insert(
            id,
            Sent {
                by,
                discard,
                inside,
                outside,
            },
        );
    }

    /// Everything that is under way arrives.
    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "it never ends");
            let mut busy = false;
            for at in 0..self.nodes.len() {
                self.submit(at);
                busy |= self.bus.originate(&mut self.nodes[at].port);
                busy |= self.bus.receive(&mut self.nodes[at].port, 100);
                while self.deliver(at) {
                    busy = true;
                }
            }
            if !busy {
                return;
            }
        }
    }

    /// All daemons meet, and everything arrives: then all know the same, and all get what is sent.
    pub fn quiesce(&mut self) {
        self.reconfigure(1);
        self.drain();
        for at in 0..self.nodes.len() {
            let connections: Vec<Connection> = self.nodes[at].clients.keys().copied().collect();
            for connection in connections {
                let to = (0..3).map(|number| Destination::Group(group(number)));
                self.send_to(at, connection, (to.collect(), Service::Agreed, false));
            }
        }
        let before = self.sent.len() as u64;
        self.drain();
        let holds = self.nodes.iter().map(|node| node.groups.holds().count());
        self.held += holds.sum::<usize>() as u64;
        assert_eq!(before, self.sent.len() as u64);
        let exchanges = self
            .nodes
            .iter()
            .map(|node| node.groups.counters().exchanges);
        self.exchanges += exchanges.sum::<u64>();
        let parts = self.nodes.iter().map(|node| node.groups.counters().parts);
        self.parts += parts.sum::<u64>();
    }

    /// What has to hold once nothing moves any more.
    pub fn settled(&self) -> Result<(), String> {
        let mut wanted: BTreeMap<GroupName, Vec<Member>> = BTreeMap::new();
        for node in &self.nodes {
            if *node.groups.phase() != Phase::Operational {
                return Err(format!("settled: {:?}", node.groups.phase()));
            }
            if node.groups.counters().malformed > 0 {
                return Err("settled: messages that made no sense".to_owned());
            }
            for (connection, wants) in &node.clients {
                let member = node.groups.member(*connection).expect("connected");
                for name in wants {
                    wanted.entry(*name).or_default().push(member);
                }
            }
        }
        self.settled_holds()?;
        for node in &self.nodes {
            for number in 0..3 {
                let name = group(number);
                let mut members = wanted.get(&name).cloned().unwrap_or_default();
                members.sort_unstable();
                let known = node.groups.list_members(&name);
                if known != members {
                    return Err(format!("settled: {name} {known:?} for {members:?}"));
                }
            }
        }
        Ok(())
    }

    /// All daemons hold what each wants to be held, and nothing else.
    fn settled_holds(&self) -> Result<(), String> {
        let mut wanted: Vec<Hold> = Vec::new();
        for node in &self.nodes {
            let daemon = node.port.process;
            let own = node.holds.iter();
            wanted.extend(own.map(|(&to, &client)| Hold { to, daemon, client }));
        }
        wanted.sort_unstable();
        for node in &self.nodes {
            let mut held: Vec<Hold> = node.groups.holds().collect();
            held.sort_unstable();
            if held != wanted {
                return Err(format!("settled: {held:?} is held for {wanted:?}"));
            }
        }
        Ok(())
    }
}
