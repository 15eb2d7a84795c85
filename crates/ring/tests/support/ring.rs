//! Engines and the datagrams between them.

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Delivery, Engine, Incarnation, Input, NodeId, Output, Process,
    Service, StartState, SubmitError, Target, Time,
};
use rota_ring::RingConfig;
use rota_ring::RingEngine;
use rota_ring::wire::{self, Packet};
use std::fmt::Write;

/// One member and what is on its way to it.
pub struct Member {
    pub engine: Checked<RingEngine>,
    pub data: Vec<Bytes>,
    pub tokens: Vec<Bytes>,
    /// Outputs that the socket still takes before it is full; `None` when it takes all.
    pub room: Option<usize>,
    stuck: Option<Output>,
}

/// A ring in memory.
pub struct Ring {
    pub now: Time,
    pub members: Vec<Member>,
    /// From now on deliveries are taken.
    formed: bool,
}

/// `A` for the first member, and so on.
pub fn name(index: usize) -> char {
    char::from(b'A' + u8::try_from(index).expect("few members"))
}

fn name_of(node: NodeId) -> char {
    name(usize::from(node.get()) - 1)
}

impl Ring {
    pub fn new(config: &RingConfig) -> Self {
        let mut ring = Self {
            now: Time(1),
            members: Vec::new(),
            formed: false,
        };
        for &node in &config.members {
            let engine = RingEngine::new(config.clone()).expect("a valid configuration");
            let mut engine = Checked::new(engine);
            let me = Process {
                node,
                incarnation: Incarnation(7),
            };
            engine.handle(
                ring.now,
                Input::Start(StartState {
                    me,
                    seed: 1,
                    records: Vec::new(),
                    lost_some: false,
                }),
            );
            let (data, tokens) = (Vec::new(), Vec::new());
            ring.members.push(Member {
                engine,
                data,
                tokens,
                room: None,
                stuck: None,
            });
        }
        ring
    }

    /// Lets the members find each other, up to the first visit of the token in which messages can be
    /// sent. Nobody takes a delivery before, so what was submitted waits for this ring.
    pub fn form(&mut self) -> String {
        for _ in 0..1000 {
            for index in 0..self.members.len() {
                if index == 0 && self.is_formed() {
                    return self.first_visit();
                }
                self.settle(index);
                for bytes in std::mem::take(&mut self.members[index].tokens) {
                    self.hand_in(index, Class::Token, bytes);
                    self.settle(index);
                }
            }
        }
        "the ring did not form\n".into()
    }

    fn is_formed(&self) -> bool {
        let nodes = self.members.len();
        let on_it = |member: &Member| {
            let engine = member.engine.get();
            let ring = engine
                .ordering()
                .filter(|ring| ring.members().len() == nodes);
            engine.phase_name() == "operational" && ring.is_some()
        };
        let token = nodes == 1 || !self.members[0].tokens.is_empty();
        token && self.members.iter().all(on_it)
    }

    fn first_visit(&mut self) -> String {
        self.formed = true;
        for index in 0..self.members.len() {
            self.deliver(index);
        }
        for bytes in std::mem::take(&mut self.members[0].tokens) {
            self.hand_in(0, Class::Token, bytes);
        }
        self.settle(0)
    }

    pub fn submit(
        &mut self,
        index: usize,
        service: Service,
        size: usize,
    ) -> Result<u64, SubmitError> {
        self.members[index]
            .engine
            .submit(self.now, service, &vec![b'x'; size])
    }

    /// Hands in one datagram.
    pub fn hand_in(&mut self, index: usize, class: Class, bytes: Bytes) {
        let segment = bytes.len();
        let input = Input::Datagrams {
            class,
            channel: Channel::default(),
            bytes,
            segment,
        };
        let engine = &mut self.members[index].engine;
        engine.handle(self.now, input);
        engine.reading();
    }

    /// Carries out what member `index` wants and reports it: what it sends, token between bars, and
    /// what it delivers.
    pub fn settle(&mut self, index: usize) -> String {
        let mut sends: Vec<String> = Vec::new();
        loop {
            let member = &mut self.members[index];
            let Some(output) = member.stuck.take().or_else(|| member.engine.poll_output()) else {
                break;
            };
            match &mut member.room {
                Some(0) => {
                    member.stuck = Some(output);
                    sends.push("(socket full)".into());
                    break;
                }
                Some(room) => *room -= 1,
                None => {}
            }
            self.carry_out(index, output, &mut sends);
        }
        let mut report = String::new();
        if !sends.is_empty() {
            writeln!(report, "{} sends {}", name(index), sends.join(" ")).expect("a string");
        }
        report + &self.deliver(index)
    }

    fn carry_out(&mut self, index: usize, output: Output, sends: &mut Vec<String>) {
        if let Output::Persist { id, .. } = output {
            let member = &mut self.members[index];
            return member.engine.handle(self.now, Input::Persisted { id });
        }
        let Output::Send {
            class, to, burst, ..
        } = output
        else {
            return;
        };
        let bytes = Bytes::from(burst.bytes);
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + burst.segment).min(bytes.len());
            let datagram = bytes.slice(at..end);
            let packet = wire::decode(datagram.clone()).expect("engines send valid packets");
            sends.extend(describe(&packet, index));
            self.route(index, class, to, &datagram);
            at = end;
        }
    }

    fn route(&mut self, from: usize, class: Class, to: Target, datagram: &Bytes) {
        for (index, member) in self.members.iter_mut().enumerate() {
            let meant = match to {
                Target::Others => index != from,
                Target::Node(node) => usize::from(node.get()) == index + 1,
            };
            if meant {
                match class {
                    Class::Data => member.data.push(datagram.clone()),
                    Class::Token => member.tokens.push(datagram.clone()),
                }
            }
        }
    }

    fn deliver(&mut self, index: usize) -> String {
        let mut delivered = Vec::new();
        if !self.formed {
            return String::new();
        }
        while let Some(delivery) = self.members[index].engine.poll_delivery() {
            if let Delivery::Message(message) = delivery {
                let sender = name_of(message.id.process.node);
                delivered.push(format!("{}:{sender}{}", message.seq, message.id.counter));
            }
        }
        if delivered.is_empty() {
            return String::new();
        }
        format!("{} delivers {}\n", name(index), delivered.join(" "))
    }
}

fn describe(packet: &Packet, me: usize) -> Option<String> {
    match packet {
        Packet::Data(data) if name_of(data.sender) == name(me) => Some(data.seq.to_string()),
        Packet::Data(data) => Some(format!("{}(of {})", data.seq, name_of(data.sender))),
        Packet::Token(token) => {
            let mut text = format!(
                "| token seq={} aru={} fcc={}",
                token.seq, token.aru, token.fcc
            );
            if let Some(node) = token.aru_id {
                write!(text, " lowered-by={}", name_of(node)).expect("a string");
            }
            if !token.rtr.is_empty() {
                let ranges: Vec<_> = token
                    .rtr
                    .iter()
                    .map(|r| format!("{}..={}", r.first, r.last()))
                    .collect();
                write!(text, " rtr={}", ranges.join(",")).expect("a string");
            }
            if token.idle {
                text += " idle";
            }
            Some(text + " |")
        }
        Packet::Hurry(_) => Some("hurry".into()),
        Packet::Join(_) | Packet::Commit(_) | Packet::MergeDetect(_) => None,
    }
}
