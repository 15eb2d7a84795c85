//! Messages between daemons: one daemon of three says anything, most often something that another has said,
//! changed. The two others are given the same in the same order, so they have to know of the same groups
//! after each message, whatever the third says; and nothing may end them.
#![no_main]

use std::collections::BTreeSet;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process, RingId, Service};
use rota_core::groups::{ClientName, Connection, Destination, GroupName, Groups, Limits, Phase, Send};

/// Bytes of all that is said in one run, at most: a fuzzer that makes daemons talk for ever finds nothing.
const MOST_SAID: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut input = Input(data);
    while let Some(op) = input.byte() {
        world.step(op, &mut input);
        world.settle();
        if world.said > MOST_SAID {
            return;
        }
    }
});

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::from(self.byte().unwrap_or(0)) % most
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = self.below(most + 1).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }
}

fn process(node: u16) -> Process {
    Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(u64::from(node) * 7),
    }
}

/// The two that keep to the rules, and what the third may repeat.
struct World {
    daemons: [Groups; 2],
    clients: [Vec<Connection>; 2],
    /// All that was said, for the third to change.
    heard: Vec<Vec<u8>>,
    members: BTreeSet<Process>,
    ring: u64,
    /// The configuration is ending.
    ending: bool,
    counter: u64,
    said: usize,
}

impl World {
    fn new() -> Self {
        let limits = Limits {
            clients: 8,
            memberships: 32,
            client_memberships: 16,
            owner_memberships: 24,
            backlog_bytes: 4 << 10,
            payload_bytes: 16 << 10,
            window: 16,
            piece_bytes: 64,
        };
        let mut world = Self {
            daemons: [1, 2].map(|node| Groups::new(process(node), limits)),
            clients: [Vec::new(), Vec::new()],
            heard: Vec::new(),
            members: BTreeSet::new(),
            ring: 0,
            ending: false,
            counter: 0,
            said: 0,
        };
        world.configure(true);
        world.settle();
        world
    }

    fn ring(&self, number: u64) -> RingId {
        RingId {
            ring_seq: number,
            rep: process(1).node,
            incarnation: process(1).incarnation,
        }
    }

    /// A configuration of the first two, with or without the third.
    fn configure(&mut self, with_third: bool) {
        self.ring += 1;
        self.ending = false;
        self.members = [1, 2].map(process).into();
        if with_third {
            self.members.insert(process(3));
        }
        let kind = ConfigurationKind::Regular(self.ring(self.ring));
        self.deliver_configuration(kind, self.members.clone());
    }

    /// The configuration ends: those two go on together, with or without the third.
    fn end(&mut self, with_third: bool) {
        if self.ending {
            return;
        }
        self.ending = true;
        let mut stay: BTreeSet<Process> = [1, 2].map(process).into();
        if with_third && self.members.contains(&process(3)) {
            stay.insert(process(3));
        }
        let (old, new) = (self.ring(self.ring), self.ring(self.ring + 1));
        self.deliver_configuration(ConfigurationKind::Transitional { old, new }, stay);
    }

    fn deliver_configuration(&mut self, kind: ConfigurationKind, members: BTreeSet<Process>) {
        let members: Vec<Process> = members.into_iter().collect();
        for daemon in &mut self.daemons {
            let members = members.clone();
            daemon.deliver(Delivery::Configuration(Configuration { kind, members }));
        }
    }

    fn say(&mut self, from: Process, service: Service, payload: Vec<u8>) {
        self.counter += 1;
        self.said += payload.len();
        let message = Message {
            id: MessageId {
                process: from,
                counter: self.counter,
            },
            service,
            seq: self.counter,
            index: 0,
            payload: Bytes::from(payload),
        };
        for daemon in &mut self.daemons {
            daemon.deliver(Delivery::Message(message.clone()));
        }
        self.agree();
    }

    /// Both have to know the same, unless they are still telling each other.
    fn agree(&mut self) {
        let [one, other] = &self.daemons;
        assert_eq!(one.phase(), other.phase(), "they are at different places");
        if matches!(one.phase(), Phase::Operational | Phase::Transitional(_)) {
            let groups = one.list_groups();
            assert_eq!(groups, other.list_groups(), "they know of different groups");
            for group in groups.keys() {
                assert_eq!(one.list_members(group), other.list_members(group));
            }
        }
        for daemon in &mut self.daemons {
            while daemon.poll_event().is_some() {}
        }
    }

    fn step(&mut self, op: u8, input: &mut Input<'_>) {
        let at = usize::from(op >> 7);
        match op & 0x0f {
            0 => self.connect(at, input),
            1 | 2 => self.join_or_leave(at, op & 0x0f == 1, input),
            3 => self.send(at, input),
            4 => {
                let clients = &mut self.clients[at];
                if !clients.is_empty() {
                    let gone = clients.remove(input.below(clients.len()));
                    self.daemons[at].disconnect(gone);
                }
            }
            5 => self.configure(op & 0x40 == 0),
            6 => self.end(op & 0x40 == 0),
            7 => {
                let raw = input.bytes(255);
                self.third_says(raw);
            }
            _ => {
                let changed = self.changed(input);
                self.third_says(changed);
            }
        }
    }

    /// Something that was said, with some of its bytes changed, or cut off.
    fn changed(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        let back = input.below(16) + 1;
        let Some(at) = self.heard.len().checked_sub(back) else {
            return Vec::new();
        };
        let mut bytes = self.heard[at].clone();
        for _ in 0..input.below(4) {
            let at = input.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= input.byte().unwrap_or(0);
            }
        }
        if input.below(4) == 0 {
            bytes.truncate(input.below(256));
        }
        bytes
    }

    fn third_says(&mut self, bytes: Vec<u8>) {
        if self.members.contains(&process(3)) {
            self.say(process(3), Service::Agreed, bytes);
        }
    }

    fn connect(&mut self, at: usize, input: &mut Input<'_>) {
        let name = format!("c{}", input.below(6));
        let name = ClientName::new(&name).expect("a name");
        if let Ok(connection) = self.daemons[at].connect(name) {
            self.clients[at].push(connection);
        }
    }

    fn join_or_leave(&mut self, at: usize, join: bool, input: &mut Input<'_>) {
        if self.clients[at].is_empty() {
            return;
        }
        let client = self.clients[at][input.below(self.clients[at].len())];
        let group = group(input);
        // What may not be is an error of the client's.
        let _ = if join {
            self.daemons[at].join(client, group)
        } else {
            self.daemons[at].leave(client, group)
        };
    }

    fn send(&mut self, at: usize, input: &mut Input<'_>) {
        if self.clients[at].is_empty() {
            return;
        }
        let client = self.clients[at][input.below(self.clients[at].len())];
        let large = input.below(8) == 0;
        let size = if large { 6000 } else { input.below(40) };
        let send = Send {
            service: Service::Agreed,
            self_discard: input.below(2) == 0,
            kind: 1,
            big_endian: false,
            number: None,
            to: vec![Destination::Group(group(input))],
            payload: Bytes::from(vec![7; size]),
        };
        let _ = self.daemons[at].send(client, send);
    }

    /// The two say what they have to say, and get it back.
    fn settle(&mut self) {
        loop {
            let mut silent = true;
            for at in 0..2 {
                let Some((service, bytes)) = self.daemons[at].to_submit() else {
                    continue;
                };
                let bytes = bytes.to_vec();
                // `say` counts on.
                self.daemons[at].submitted(self.counter + 1);
                self.heard.push(bytes.clone());
                let from = self.daemons[at].me();
                self.say(from, service, bytes);
                silent = false;
            }
            if silent || self.said > MOST_SAID {
                return;
            }
        }
    }
}

fn group(input: &mut Input<'_>) -> GroupName {
    let name = format!("g{}", input.below(4));
    GroupName::new(&name).expect("a name")
}
