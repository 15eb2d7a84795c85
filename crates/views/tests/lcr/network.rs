//! Paths in a network of virtual time: links with a rate, a delay and a queue, that break and come back;
//! applications that are slow; views that end.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{NodeId, Output, RingId, Service, Session, Time};
use rota_core::pack::Inbox;
use rota_core::wire::Frame;
use rota_views::lcr::{Config, Lcr};
use rota_views::{Backlog, DataPath, Frozen, Held, Link, Packet, PacketId, View};

use super::plan::{Plan, Rng};
use super::ring::{path, process, view};

/// Virtual microseconds.
type Micros = u64;

/// Long after all has to be over.
const REST: Micros = 60_000_000;

pub struct Node {
    path: Lcr,
    backlog: Backlog,
    inbox: Inbox,
    pub alive: bool,
    /// Messages to be submitted, beside those in the backlog.
    to_submit: u64,
    submitted: u64,
    /// Of each sender, how many messages were delivered.
    pub messages: Vec<u64>,
    /// Packets delivered in this view.
    pub packets: usize,
    view: Option<View>,
    frozen: Option<Frozen>,
    timer: Option<Micros>,
    app_is_due: bool,
    /// The most that was kept at any time.
    pub kept: usize,
}

/// The way from one process to another.
#[derive(Default)]
struct Way {
    queue: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last_arrival: Micros,
}

/// A link between two processes.
#[derive(Clone, Copy, Default)]
struct Between {
    session: u64,
    /// What the lower and the higher end know of.
    told: [u64; 2],
    /// When they get to know of the session.
    up: [Micros; 2],
}

#[derive(Clone, Debug)]
enum Event {
    Up(usize, usize, u64),
    Down(usize, usize, u64),
    Sent(usize, usize, u64),
    Arrive(usize, usize, u64, Bytes),
    Timer(usize),
    App(usize),
    Submit(usize),
    Install(usize),
    Freeze(usize),
    Break(usize, usize),
}

pub struct Network {
    pub plan: Plan,
    rng: Rng,
    now: Micros,
    events: BTreeMap<(Micros, u64), Event>,
    events_made: u64,
    pub nodes: Vec<Node>,
    ways: BTreeMap<(usize, usize), Way>,
    links: BTreeMap<(usize, usize), Between>,
    /// The view that is or will be installed.
    ring_seq: u64,
    /// A view has ended, and what survivors hold of it is delivered.
    changing: bool,
    /// What all deliver in it, as far as anybody has.
    pub order: Vec<PacketId>,
    /// The same of views that have ended.
    pub ended: Vec<Vec<PacketId>>,
    /// What held packets had as places when a view ended.
    pub held: Vec<Held>,
    /// When somebody delivered last.
    pub last_delivery: Micros,
}

/// What message `counter` of a sender is.
fn payload(plan: &Plan, sender: usize, counter: u64) -> Vec<u8> {
    let size = plan.size(sender, counter);
    (0..size)
        .map(|at| (at as u64 * 7 + counter * 31 + sender as u64) as u8)
        .collect()
}

impl Network {
    pub fn new(plan: Plan) -> Self {
        let count = plan.count;
        let config = Config {
            frame_bytes: plan.frame,
            window_bytes: plan.window,
            batch_bytes: plan.batch,
        };
        let nodes = (0..count).map(|me| Node {
            path: path(&config, me),
            backlog: Backlog::new(plan.frame, 1 << 20, 1 << 30),
            inbox: Inbox::new(1 << 20),
            alive: true,
            to_submit: plan.messages[me],
            submitted: 0,
            messages: vec![0; count],
            packets: 0,
            view: None,
            frozen: None,
            timer: None,
            app_is_due: false,
            kept: 0,
        });
        let mut network = Self {
            rng: Rng(plan.seed ^ 0x6c63_7221),
            now: 1,
            events: BTreeMap::new(),
            events_made: 0,
            nodes: nodes.collect(),
            ways: BTreeMap::new(),
            links: BTreeMap::new(),
            ring_seq: 1,
            changing: false,
            order: Vec::new(),
            ended: Vec::new(),
            held: Vec::new(),
            last_delivery: 0,
            plan,
        };
        network.begin();
        network
    }

    fn begin(&mut self) {
        let count = self.plan.count;
        for me in 0..count {
            for peer in 0..me {
                self.links.insert((peer, me), Between::default());
                self.connect(peer, me);
            }
            self.later(Event::Install(me), 3000);
            self.later(Event::Submit(me), 3000);
        }
        for _ in 0..self.plan.breaks {
            let (a, b) = (self.rng.below(count), self.rng.below(count));
            if a != b {
                self.later(Event::Break(a.min(b), a.max(b)), self.plan.faults_until);
            }
        }
        if let Some(at) = self.plan.change_at {
            for me in 0..count {
                let late = self.rng.below(2000) as u64;
                self.at(self.now + at + late, Event::Freeze(me));
            }
        }
    }

    fn at(&mut self, at: Micros, event: Event) {
        self.events_made += 1;
        self.events.insert((at, self.events_made), event);
    }

    /// At some time within so many microseconds.
    fn later(&mut self, event: Event, within: Micros) {
        let late = self.rng.below(within.max(1) as usize) as u64;
        self.at(self.now + late, event);
    }

    /// A session begins; the ends get to know of it at different times.
    fn connect(&mut self, low: usize, high: usize) {
        let up = [(); 2].map(|()| self.now + 200 + self.rng.below(3000) as u64);
        let link = self.links.get_mut(&(low, high)).expect("a link");
        link.session += 1;
        link.up = up;
        let session = link.session;
        self.at(up[0], Event::Up(low, high, session));
        self.at(up[1], Event::Up(high, low, session));
    }

    /// Runs until nothing is left to happen: the network is silent then.
    pub fn run(&mut self) -> Result<(), String> {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            self.happen(event)?;
            if self.now > REST {
                return Err("silence: it never comes to rest".into());
            }
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Up(me, peer, session) => self.on_up(me, peer, session),
            Event::Down(me, peer, session) => self.on_down(me, peer, session),
            Event::Sent(from, to, session) => self.on_sent(from, to, session),
            Event::Arrive(from, to, session, bytes) => self.on_arrive(from, to, session, bytes),
            Event::Timer(me) => {
                let node = &mut self.nodes[me];
                node.timer = None;
                node.path.on_timer(Time(self.now * 1000));
                self.turn(me)
            }
            Event::App(me) => {
                self.nodes[me].app_is_due = false;
                if let Some(packet) = self.nodes[me].path.poll_packet() {
                    self.deliver(me, packet)?;
                    self.turn(me)?;
                }
                Ok(())
            }
            Event::Submit(me) => self.on_submit(me),
            Event::Install(me) => self.on_install(me),
            Event::Freeze(me) => self.on_freeze(me),
            Event::Break(low, high) => {
                self.on_break(low, high);
                Ok(())
            }
        }
    }

    fn on_submit(&mut self, me: usize) -> Result<(), String> {
        let many = if self.plan.pace[me] == 0 { u64::MAX } else { 1 };
        let node = &mut self.nodes[me];
        for _ in 0..many.min(node.to_submit) {
            node.submitted += 1;
            node.to_submit -= 1;
            let message = payload(&self.plan, me, node.submitted);
            let service = [Service::Agreed, Service::Safe][node.submitted as usize / 64 % 2];
            node.backlog.push(service, &message).expect("there is room");
        }
        if node.to_submit > 0 {
            self.later(Event::Submit(me), self.plan.pace[me]);
        }
        self.turn(me)
    }

    fn members(&self) -> Vec<usize> {
        let alive = |&index: &usize| self.nodes[index].alive;
        (0..self.nodes.len()).filter(alive).collect()
    }

    fn ring(&self, ring_seq: u64) -> RingId {
        view(ring_seq, 1, 0).ring
    }

    fn on_install(&mut self, me: usize) -> Result<(), String> {
        let members = self.members();
        let view = View {
            ring: self.ring(self.ring_seq),
            members: members.iter().map(|&index| process(index)).collect(),
            me: members
                .iter()
                .position(|&index| index == me)
                .expect("it is alive"),
        };
        let notes: Vec<Bytes> = members
            .iter()
            .map(|&index| self.nodes[index].path.note().into())
            .collect();
        let node = &mut self.nodes[me];
        node.path.install(Time(self.now * 1000), &view, &notes);
        node.view = Some(view);
        node.packets = 0;
        self.turn(me)
    }

    fn on_freeze(&mut self, me: usize) -> Result<(), String> {
        if self.plan.victim == Some(me) {
            self.nodes[me].alive = false;
        }
        let frozen = self.nodes[me].path.freeze(Time(self.now * 1000));
        self.nodes[me].frozen = Some(frozen);
        if self.nodes.iter().all(|node| node.frozen.is_some()) {
            self.change()?;
        }
        Ok(())
    }

    /// All have stopped: those who are left deliver what they hold together, and go on.
    fn change(&mut self) -> Result<(), String> {
        let members = self.members();
        let frozen: Vec<_> = members
            .iter()
            .map(|&me| self.nodes[me].frozen.take().expect("all are frozen"))
            .collect();
        let mut union = BTreeMap::new();
        for held in frozen.iter().flat_map(|frozen| &frozen.held) {
            union.insert(held.packet.id, held.clone());
        }
        let mut held: Vec<_> = union.into_values().collect();
        Lcr::arrange(&mut held);
        self.changing = true;
        for (&me, frozen) in members.iter().zip(&frozen) {
            for Held { packet, .. } in &held {
                if packet.id.number > frozen.delivered[usize::from(packet.id.sender)] {
                    self.deliver(me, packet.clone())?;
                }
            }
        }
        if members
            .iter()
            .any(|&me| self.nodes[me].packets != self.order.len())
        {
            return Err("complete: a view ends differently".into());
        }
        self.changing = false;
        self.held = held;
        self.ended.push(std::mem::take(&mut self.order));
        self.ring_seq += 1;
        for me in members {
            self.later(Event::Install(me), 3000);
        }
        Ok(())
    }

    fn on_up(&mut self, me: usize, peer: usize, session: u64) -> Result<(), String> {
        let link = self
            .links
            .get_mut(&(me.min(peer), me.max(peer)))
            .expect("a link");
        if link.session != session || !self.nodes[me].alive {
            return Ok(());
        }
        link.told[usize::from(me > peer)] = session;
        let up = Link::Up {
            peer: process(peer),
            session: Session(session),
        };
        let now = Time(self.now * 1000);
        self.nodes[me].path.on_link(now, up);
        self.writable(me, peer, session);
        self.turn(me)
    }

    fn on_down(&mut self, me: usize, peer: usize, session: u64) -> Result<(), String> {
        let link = self
            .links
            .get_mut(&(me.min(peer), me.max(peer)))
            .expect("a link");
        link.told[usize::from(me > peer)] = 0;
        let down = Link::Down {
            peer: process(peer).node,
            session: Session(session),
        };
        self.nodes[me].path.on_link(Time(self.now * 1000), down);
        self.turn(me)
    }

    /// What was on the way arrives as long as the receiver has not noticed; the sender's queue is lost.
    fn on_break(&mut self, low: usize, high: usize) {
        let old = self.links[&(low, high)];
        if old.told != [old.session; 2] {
            // It is coming up or going down already.
            return;
        }
        for (me, peer) in [(low, high), (high, low)] {
            let way = self.ways.entry((me, peer)).or_default();
            way.queue.clear();
            way.bytes = 0;
        }
        self.connect(low, high);
        let ups = self.links[&(low, high)].up;
        for (me, peer, up) in [(low, high, ups[0]), (high, low, ups[1])] {
            let wait = self.rng.below((up - self.now) as usize) as u64;
            self.at(self.now + wait, Event::Down(me, peer, old.session));
        }
    }

    fn writable(&mut self, me: usize, peer: usize, session: u64) {
        let way = self.ways.entry((me, peer)).or_default();
        let writable = Link::Writable {
            peer: process(peer).node,
            session: Session(session),
            bytes: self.plan.room - way.bytes,
        };
        self.nodes[me].path.on_link(Time(self.now * 1000), writable);
    }

    fn send(&mut self, from: usize, to: NodeId, session: u64, bytes: Bytes) {
        let to = usize::from(to.get()) - 1;
        let link = &self.links[&(from.min(to), from.max(to))];
        if link.session != session {
            return;
        }
        let way = self.ways.entry((from, to)).or_default();
        way.bytes += bytes.len();
        assert!(way.bytes <= self.plan.room, "more than the link takes");
        way.queue.push_back((session, bytes));
        if way.queue.len() == 1 {
            self.transmit(from, to);
        }
    }

    fn transmit(&mut self, from: usize, to: usize) {
        let way = &self.ways[&(from, to)];
        if let Some((session, bytes)) = way.queue.front() {
            let takes = bytes.len() as u64 / self.plan.rate[from] + 1;
            self.at(self.now + takes, Event::Sent(from, to, *session));
        }
    }

    fn on_sent(&mut self, from: usize, to: usize, session: u64) -> Result<(), String> {
        let link = self.links[&(from.min(to), from.max(to))];
        if link.session != session {
            return Ok(());
        }
        let delay = self.plan.delay / 2 + self.rng.below(self.plan.delay as usize + 1) as u64;
        let way = self.ways.entry((from, to)).or_default();
        let (_, bytes) = way.queue.pop_front().expect("it was sent");
        way.bytes -= bytes.len();
        let up = link.up[usize::from(to > from)];
        let at = (self.now + delay).max(way.last_arrival).max(up + 1);
        way.last_arrival = at;
        self.at(at, Event::Arrive(from, to, session, bytes));
        self.writable(from, to, session);
        self.transmit(from, to);
        self.turn(from)
    }

    fn on_arrive(
        &mut self,
        from: usize,
        to: usize,
        session: u64,
        bytes: Bytes,
    ) -> Result<(), String> {
        let link = &self.links[&(from.min(to), from.max(to))];
        if link.told[usize::from(to > from)] != session || !self.nodes[to].alive {
            return Ok(());
        }
        let message = Link::Message {
            peer: process(from).node,
            session: Session(session),
            bytes,
        };
        self.nodes[to].path.on_link(Time(self.now * 1000), message);
        self.turn(to)
    }

    /// A process does all it can.
    fn turn(&mut self, me: usize) -> Result<(), String> {
        if !self.nodes[me].alive {
            return Ok(());
        }
        let now = Time(self.now * 1000);
        loop {
            let node = &mut self.nodes[me];
            match node.path.poll_output(now, &mut node.backlog) {
                Some(Output::LinkSend {
                    peer,
                    session,
                    bytes,
                    ..
                }) => self.send(me, peer, session.0, bytes.into_bytes()),
                Some(other) => panic!("{other:?}"),
                None => break,
            }
        }
        if self.plan.slow[me] == 0 {
            while let Some(packet) = self.nodes[me].path.poll_packet() {
                self.deliver(me, packet)?;
            }
        } else if !self.nodes[me].app_is_due {
            self.nodes[me].app_is_due = true;
            self.at(self.now + self.plan.slow[me], Event::App(me));
        }
        let node = &mut self.nodes[me];
        node.kept = node.kept.max(node.path.kept_bytes());
        if let Some((at, _)) = node.path.next_timer() {
            let at = at.0.div_ceil(1000).max(self.now);
            if node.timer.is_none_or(|timer| at < timer) {
                node.timer = Some(at);
                self.at(at, Event::Timer(me));
            }
        }
        Ok(())
    }

    fn deliver(&mut self, me: usize, packet: Packet) -> Result<(), String> {
        let id = packet.id;
        let at = self.nodes[me].packets;
        self.nodes[me].packets += 1;
        self.last_delivery = self.now;
        match self.order.get(at) {
            Some(&other) if other != id => {
                return Err(format!("order: {me} at {at}: {other:?}, {id:?}"));
            }
            Some(_) => {}
            None => self.order.push(id),
        }
        let ring = self.ring(self.ring_seq);
        let holds = |node: &Node| !node.alive || node.path.holds(ring, id) == Some(true);
        if !self.changing && !self.nodes.iter().all(holds) {
            return Err(format!("uniform: {me} {id:?}"));
        }
        self.unpack(me, packet)
    }

    fn unpack(&mut self, me: usize, packet: Packet) -> Result<(), String> {
        let node = &mut self.nodes[me];
        let members = &node.view.as_ref().expect("in a view").members;
        let sender = members[usize::from(packet.id.sender)].node;
        let index = usize::from(sender.get()) - 1;
        let frame = Frame::parse(packet.bytes).map_err(|error| format!("frame: {error}"))?;
        node.inbox.take(sender, frame);
        while let Some(message) = node.inbox.next_message() {
            let message = message.map_err(|error| format!("parts: {error:?}"))?;
            node.messages[index] += 1;
            let counter = node.messages[index];
            if message.counter != counter || message.payload != payload(&self.plan, index, counter)
            {
                return Err(format!(
                    "content: {} for {counter} of {sender}",
                    message.counter
                ));
            }
        }
        Ok(())
    }

    /// A counter of all paths together.
    pub fn counted(&self, name: &str) -> u64 {
        let of = |node: &Node| {
            let mut counters = BTreeMap::new();
            node.path.count(&mut counters);
            counters[name]
        };
        self.nodes.iter().map(of).sum()
    }
}
