//! Daemons and clients over the bus, driven by chance.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Service;
use rota_core::groups::{
    ClientName, Connection, Destination, Event, GroupName, Groups, Hold, HoldFor, Limits, Member,
    Phase, Send,
};

use super::bus::{Bus, Kind, Port};

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
    /// Requests that were refused a place though nothing was left to wait for.
    pub stuck: u64,
    /// Requests that the others delivered and their own daemon did not.
    pub elsewhere: u64,
}

pub fn group(number: usize) -> GroupName {
    GroupName::new(["apples", "pears", "plums"][number]).expect("a name")
}

impl World {
    pub fn new(seed: u64, daemons: u16, kind: Kind) -> Self {
        let mut world = Self {
            rng: Rng(seed),
            bus: Bus::new(kind),
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
            stuck: 0,
            elsewhere: 0,
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
        if self.nodes.iter().any(|node| node.port.is_cut_off()) && self.rng.percent(2) {
            let all = vec![0; self.nodes.len()];
            return self.part(&all);
        }
        let at = self.rng.below(self.nodes.len());
        match self.rng.below(100) {
            0..25 => self.request(at),
            25..45 => self.submit(at),
            45..60 => {
                let most = if self.bus.kind == Kind::Views { 4 } else { 1 };
                for _ in 0..most {
                    self.bus.originate(&mut self.nodes[at].port);
                }
            }
            60..75 => {
                let most = if self.bus.kind == Kind::Views { 12 } else { 4 };
                let count = 1 + self.rng.below(most);
                self.bus.receive(&mut self.nodes[at].port, count);
            }
            75..97 => {
                let most = if self.bus.kind == Kind::Views { 20 } else { 4 };
                for _ in 0..=self.rng.below(most) {
                    self.deliver(at);
                }
            }
            97..99 if self.bus.kind == Kind::Views => self.change_views(),
            97..99 => self.reconfigure(3),
            _ if self.rng.percent(30) && self.may_crash(at) => self.crash(at),
            _ => {}
        }
    }

    /// Whoever remembers the newest view is not the last to do so.
    fn may_crash(&self, at: usize) -> bool {
        let others = self.nodes.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != at);
        let others = others.by_ref().map(|(_, node)| &node.port);
        self.bus.kind != Kind::Views || self.bus.is_remembered_by(others)
    }

    /// Sometimes several in a row, and between these time enough to come to rest.
    fn change_views(&mut self) {
        if self.rng.percent(8) {
            for _ in 0..[1, 1, 1, 3][self.rng.below(4)] {
                self.change_view();
            }
        }
    }

    /// One or two daemons are cut off, or all part at random; or all meet.
    fn change_view(&mut self) {
        let count = self.nodes.len();
        let mut sides: Vec<usize> = match self.rng.below(4) {
            0 => (0..count).map(|_| self.rng.below(2)).collect(),
            _ => vec![0; count],
        };
        for side in 0..self.rng.below(3) {
            sides[self.rng.below(count)] = side + 2;
        }
        if self.rng.percent(50) {
            let at = self.rng.below(count);
            self.speak_up(at);
            sides[at] = 3;
        }
        if count > 4 && self.rng.percent(30) {
            self.leave_two_behind();
            sides = vec![0; count];
            (sides[0], sides[1]) = (1, 2);
        }
        self.part(&sides);
    }

    /// Everybody receives all that there is; the first two have then delivered different parts of it.
    fn leave_two_behind(&mut self) {
        for at in 2..self.nodes.len() {
            self.submit(at);
            while self.bus.originate(&mut self.nodes[at].port) {}
        }
        for at in [0, 2, 3, 4, 1] {
            self.bus.receive(&mut self.nodes[at].port, 100);
        }
    }

    /// What this daemon has to say all others receive, and it does not hear of that.
    fn speak_up(&mut self, at: usize) {
        self.submit(at);
        while self.bus.originate(&mut self.nodes[at].port) {}
        for other in (0..self.nodes.len()).filter(|other| *other != at) {
            self.bus.receive(&mut self.nodes[other].port, 100);
        }
    }

    fn part(&mut self, sides: &[usize]) {
        let Self {
            nodes, bus, rng, ..
        } = self;
        for side in 0..4 {
            let of = nodes.iter_mut().zip(sides);
            let mut ports: Vec<&mut Port> = of
                .filter(|(_, of)| **of == side)
                .map(|(node, _)| &mut node.port)
                .collect();
            let majority = ports.len() * 2 > sides.len();
            bus.change_view(&mut ports, majority, || rng.percent(70));
        }
    }

    fn crash(&mut self, at: usize) {
        let counted = self.nodes[at].groups.counters();
        self.exchanges += counted.exchanges;
        self.elsewhere += counted.elsewhere;
        let connections: Vec<Connection> = self.nodes[at].clients.keys().copied().collect();
        for connection in connections {
            let member = self.nodes[at].groups.member(connection);
            self.cut(member.expect("connected"));
        }
        let node = self.nodes[at].port.process.node.get();
        self.nodes[at] = self.fresh(node);
        // Nothing is delivered in a view of which a member has died.
        if self.bus.kind == Kind::Views && self.rng.percent(80) {
            self.part(&vec![0; self.nodes.len()]);
        }
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
            let Some(counter) = Bus::submit(port, service, bytes.to_vec()) else {
                return;
            };
            groups.submitted(counter);
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
        // Otherwise hardly any client would be there from before to after.
        if self.nodes[at].groups.is_excluded() && self.rng.percent(80) {
            return;
        }
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
        if self.bus.kind == Kind::Views {
            self.part(&vec![0; self.nodes.len()]);
        } else {
            self.reconfigure(1);
        }
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
        for node in &mut self.nodes {
            for connection in node.clients.keys() {
                let room = node.groups.has_room(*connection, SMALL_BYTES - 64);
                self.stuck += u64::from(room != Ok(true));
            }
        }
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
        let counted = self.nodes.iter().map(|node| node.groups.counters());
        self.elsewhere += counted.map(|counted| counted.elsewhere).sum::<u64>();
    }

    /// How many clients were told that they had missed something, and that they had not.
    #[cfg(not(feature = "mutants"))]
    pub fn inclusions(&self) -> (u64, u64) {
        let steps = self.traces.values().flat_map(|trace| &trace.steps);
        let told = steps.filter_map(|step| match step {
            Step::Got(Event::Included { missed }) => Some(*missed),
            _ => None,
        });
        let (missed, whole): (Vec<bool>, Vec<bool>) = told.partition(|missed| *missed);
        (missed.len() as u64, whole.len() as u64)
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
        if self.stuck > 0 {
            return Err("settled: somebody waits for nothing".to_owned());
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
