//! A few engines in one thread, with a network, links and disks that a script moves: the scenarios of all engines that
//! are told in words.
//!
//! | command | does |
//! |---|---|
//! | `nodes 3`, `nodes 3 of 4` | makes the nodes A, B, C; of four that are configured |
//! | `start D` | starts a node that has not lived |
//! | `submit A hello [safe]` | A submits a message, agreed if nothing else is said |
//! | `run 20ms` | lets time pass, and prints what each node has done meanwhile |
//! | `watch token commit` | from now on also these messages are printed when they leave |
//! | `lose token A>B`, `lose 2 vote A>*` | the next of these messages on that way are lost; `*` is any node |
//! | `hold data A>B`, `release` | these messages stay under way until they are let go |
//! | `cut A B / C`, `heal` | the network is in parts, or whole again |
//! | `crash A`, `restart A [without its disk]` | a process dies, and another one begins on its node |
//! | `pause A`, `resume A` | a process stands still, while what comes to it waits |
//! | `disk A hangs`, `disk A fails`, `disk A is well` | requests to a disk are answered never, with an error, or at once |
//! | `leave A` | a process leaves, as its application wants it |
//! | `state` | prints what each engine says of itself |

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod host;
mod network;

use std::fmt::Write;

use rota_core::contract::{Delivery, Engine, NodeId, Service, Time};

use host::Host;
use host::Store;
use network::{Network, Way};

/// What a script has to know of an engine.
pub struct Kind<E> {
    /// Makes the engine of a node.
    pub make: fn(nodes: &[NodeId], me: NodeId) -> E,
    /// The word by which a script names a datagram.
    pub datagram: fn(&[u8]) -> &'static str,
    /// The word by which a script names a message of a link.
    pub message: fn(&[u8]) -> &'static str,
    /// Puts a record on a disk: see [`put`].
    pub store: Store,
    /// A delivery in words: see [`describe`].
    pub delivery: fn(&Delivery) -> Option<String>,
}

/// What happens at a time.
enum Event {
    Arrives(Way, host::Arrival),
    Answers(usize, u64, host::Answer),
    Connects(usize, usize),
}

/// The nodes of a script.
pub struct Scene<E: Engine> {
    kind: Kind<E>,
    now: Time,
    nodes: Vec<NodeId>,
    hosts: Vec<Host<E>>,
    network: Network,
    watched: Vec<String>,
    /// What the nodes have done since it was printed last.
    done: Vec<Vec<String>>,
}

/// `A` for the first node, and so on.
pub fn name(index: usize) -> char {
    char::from(b'A' + u8::try_from(index).expect("few nodes"))
}

/// The name of a node.
pub fn name_of(node: NodeId) -> char {
    name(usize::from(node.get()) - 1)
}

fn index(word: &str) -> usize {
    usize::from(word.as_bytes()[0] - b'A')
}

impl<E: Engine> Scene<E> {
    /// Nothing yet.
    pub fn new(kind: Kind<E>) -> Self {
        Self {
            kind,
            now: Time(1),
            nodes: Vec::new(),
            hosts: Vec::new(),
            network: Network::default(),
            watched: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Runs one command, and answers with what it prints.
    pub fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["nodes", count] => self.create(count, count),
            ["nodes", count, "of", all] => self.create(count, all),
            ["start", who] | ["restart", who] => self.start(index(who)),
            ["restart", who, "without", "its", "disk"] => {
                self.hosts[index(who)].lose_disk();
                self.start(index(who));
            }
            ["submit", who, text] => return self.submit(index(who), text, Service::Agreed),
            ["submit", who, text, service] => {
                let service = Service::ALL.into_iter().find(|one| one.name() == service);
                return self.submit(index(who), text, service.expect("a service"));
            }
            ["run", time] => return self.pass(time),
            ["watch", ..] => self.watched = words[1..].iter().map(|word| (*word).into()).collect(),
            ["lose", what, way] => self.network.lose(1, what, way),
            ["lose", count, what, way] => {
                self.network
                    .lose(count.parse().expect("how many"), what, way);
            }
            ["hold", what, way] => self.network.hold(what, way),
            ["release"] => self.network.release(self.now),
            ["cut", ..] => self.cut(&words[1..]),
            ["heal"] => self.cut(&[]),
            ["crash", who] => self.crash(index(who)),
            ["pause", who] => self.hosts[index(who)].paused = true,
            ["resume", who] => self.resume(index(who)),
            ["disk", who, ..] => self.disk(index(who), &words[2..]),
            ["leave", who] => {
                let at = index(who);
                self.hosts[at].engine_mut().leave(self.now);
                self.settle(at);
            }
            ["state"] => return self.state(),
            _ => panic!("there is no command `{line}`"),
        }
        "ok\n".into()
    }

    /// The engine of a node.
    pub fn engine(&mut self, at: usize) -> &mut E {
        self.hosts[at].engine_mut().get_mut()
    }

    /// A node has been told something beside the contract: it goes on.
    pub fn go_on(&mut self, at: usize) {
        self.settle(at);
    }

    /// The present time.
    pub const fn now(&self) -> Time {
        self.now
    }

    fn create(&mut self, count: &str, all: &str) {
        let all: u16 = all.parse().expect("how many nodes");
        let count: usize = count.parse().expect("how many nodes");
        self.nodes = (1..=all).filter_map(NodeId::new).collect();
        self.done = self.nodes.iter().map(|_| Vec::new()).collect();
        self.hosts = self.nodes.iter().map(|node| Host::new(*node)).collect();
        (0..count).for_each(|at| self.start(at));
    }

    fn start(&mut self, at: usize) {
        let engine = (self.kind.make)(&self.nodes, self.nodes[at]);
        self.hosts[at].start(self.now, engine);
        for other in 0..self.hosts.len() {
            self.network.connect(self.now, at, other);
        }
        self.settle(at);
    }

    fn submit(&mut self, at: usize, text: &str, service: Service) -> String {
        let engine = self.hosts[at].engine_mut();
        if let Err(error) = engine.submit(self.now, service, text.as_bytes()) {
            return format!("{error}\n");
        }
        self.settle(at);
        "ok\n".into()
    }

    fn crash(&mut self, at: usize) {
        self.hosts[at].crash();
        for other in 0..self.hosts.len() {
            self.disconnect(at, other);
        }
    }

    fn resume(&mut self, at: usize) {
        self.hosts[at].paused = false;
        for arrival in std::mem::take(&mut self.hosts[at].waiting) {
            self.hand_in(at, arrival);
        }
    }

    fn disk(&mut self, at: usize, how: &[&str]) {
        let host = &mut self.hosts[at];
        match how {
            ["hangs"] => host.disk.is_hung = true,
            ["fails"] => host.disk.fails = true,
            ["is", "well"] => (host.disk.is_hung, host.disk.fails) = (false, false),
            _ => panic!("a disk hangs, fails, or is well"),
        }
        for answer in host.disk.answers() {
            self.network.answer(self.now, (at, host.life), answer);
        }
    }

    fn cut(&mut self, words: &[&str]) {
        let parts = words.split(|word| *word == "/");
        let parts: Vec<Vec<usize>> = parts
            .map(|part| part.iter().map(|word| index(word)).collect())
            .collect();
        self.network.parts = if words.is_empty() { Vec::new() } else { parts };
        for one in 0..self.hosts.len() {
            for other in 0..one {
                match self.network.reaches(one, other) {
                    true => self.network.connect(self.now, one, other),
                    false => self.disconnect(one, other),
                }
            }
        }
    }

    fn disconnect(&mut self, one: usize, other: usize) {
        for (here, there) in [(one, other), (other, one)] {
            if let Some(down) = self.hosts[here].unlink(self.nodes[there]) {
                self.hand_in(here, down);
            }
        }
    }

    fn pass(&mut self, time: &str) -> String {
        let millis: u64 = time
            .strip_suffix("ms")
            .and_then(|number| number.parse().ok())
            .expect("…ms");
        let end = self.now.after(millis * 1_000_000);
        loop {
            let timers = (0..self.hosts.len()).filter_map(|at| self.hosts[at].next_timer());
            let timer = timers.min();
            let event = self.network.next();
            let next = timer.into_iter().chain(event).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            match event.filter(|event| *event <= self.now) {
                Some(_) => self.on_event(),
                None => self.on_timers(),
            }
        }
        self.now = end;
        self.print()
    }

    fn on_timers(&mut self) {
        for at in 0..self.hosts.len() {
            if self.hosts[at]
                .next_timer()
                .is_some_and(|due| due <= self.now)
            {
                self.hosts[at].on_timer(self.now);
                self.settle(at);
            }
        }
    }

    fn on_event(&mut self) {
        match self.network.pop() {
            Event::Arrives(way, arrival) => {
                let is_open = self.hosts[way.to].takes(&arrival);
                if self.network.reaches(way.from, way.to) && is_open {
                    self.hand_in(way.to, arrival);
                }
            }
            Event::Answers(at, life, answer) => {
                if self.hosts[at].life == life && self.hosts[at].is_alive() {
                    self.hand_in(at, host::Arrival::Answer(answer));
                }
            }
            Event::Connects(one, other) => self.link(one, other),
        }
    }

    fn link(&mut self, one: usize, other: usize) {
        let both = self.hosts[one].wants_links() && self.hosts[other].wants_links();
        let is_linked = self.hosts[one].is_linked(self.nodes[other]);
        if !both || is_linked || !self.network.reaches(one, other) {
            return;
        }
        let session = self.network.next_session();
        for (here, there) in [(one, other), (other, one)] {
            let peer = self.hosts[there].process();
            for arrival in self.hosts[here].link(peer, session) {
                self.hand_in(here, arrival);
            }
        }
    }

    fn hand_in(&mut self, at: usize, arrival: host::Arrival) {
        if !self.hosts[at].is_alive() {
            return;
        }
        if self.hosts[at].paused {
            self.hosts[at].waiting.push(arrival);
            return;
        }
        self.hosts[at].hand_in(self.now, arrival);
        self.settle(at);
    }

    /// Carries out what a node's engine wants, and takes its deliveries.
    fn settle(&mut self, at: usize) {
        while self.hosts[at].is_alive() {
            let outputs = self.hosts[at].outputs(self.now, self.kind.store);
            for sent in outputs.sent {
                let word = match &sent.arrival {
                    host::Arrival::Datagram(_, bytes) => (self.kind.datagram)(bytes),
                    host::Arrival::Message(_, _, bytes) => (self.kind.message)(bytes),
                    _ => "",
                };
                let to: Vec<usize> = (0..self.hosts.len())
                    .filter(|to| *to != at && sent.to.is_none_or(|node| self.nodes[*to] == node))
                    .collect();
                if self.watched.iter().any(|watched| watched == word) {
                    let to: String = to.iter().map(|to| format!(" {}", name(*to))).collect();
                    self.done[at].push(format!("{word} to{to}"));
                }
                for to in to {
                    let way = Way { from: at, to };
                    self.network.send(self.now, way, word, sent.arrival.clone());
                }
            }
            let life = self.hosts[at].life;
            for answer in outputs.answers {
                self.network.answer(self.now, (at, life), answer);
            }
            if outputs.again {
                continue;
            }
            let deliveries = self.hosts[at].deliveries();
            if deliveries.is_empty() {
                break;
            }
            let told = deliveries.iter().filter_map(self.kind.delivery);
            self.done[at].extend(told);
        }
    }

    fn print(&mut self) -> String {
        let mut report = String::new();
        let done: Vec<Vec<String>> = self.done.iter_mut().map(std::mem::take).collect();
        for (at, what) in done.iter().enumerate() {
            let is_first = done[..at].iter().all(|other| other != what);
            if what.is_empty() || !is_first {
                continue;
            }
            let same = (at..done.len()).filter(|other| done[*other] == *what);
            let names: Vec<String> = same.map(|other| name(other).to_string()).collect();
            writeln!(report, "{}: {}", names.join(" "), what.join(", ")).expect("a string");
        }
        report
    }

    fn state(&self) -> String {
        let mut report = String::new();
        for (at, host) in self.hosts.iter().enumerate() {
            let state = host.status().unwrap_or_else(|| "not alive".to_owned());
            writeln!(report, "{}: {state}", name(at)).expect("a string");
        }
        report
    }
}

/// A delivery in words; `None` for one that says nothing.
pub fn describe(delivery: &Delivery) -> Option<String> {
    use rota_core::contract::ConfigurationKind::{Regular, Transitional};
    Some(match delivery {
        Delivery::Configuration(configuration) => {
            let members = configuration.members.iter();
            let members: String = members.map(|member| name_of(member.node)).collect();
            match configuration.kind {
                Regular(_) => format!("ring {members}"),
                Transitional { .. } => format!("transition {members}"),
            }
        }
        Delivery::Message(message) => {
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            format!("{text} of {}", name_of(message.id.process.node))
        }
        Delivery::Primary(_) => "primary".into(),
        Delivery::Excluded(_) => "excluded".into(),
        Delivery::Missed { count, .. } => format!("{count} positions are missed"),
        Delivery::Passed { .. } | Delivery::Notice { .. } => return None,
    })
}
