//! What engines promise, without protocol: configurations with one order each, of which members receive
//! more and more. When daemons part or meet, those who go together deliver the same.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Service,
};

struct Conf {
    ring: RingId,
    members: Vec<Process>,
    order: Vec<Message>,
    /// How much of the order each member has received.
    received: Vec<usize>,
}

impl Conf {
    fn place(&self, process: Process) -> usize {
        let found = self.members.iter().position(|member| *member == process);
        found.expect("a member")
    }

    /// All that every member has received.
    fn line(&self) -> usize {
        self.received.iter().copied().min().unwrap_or(0)
    }
}

/// A daemon's engine.
pub struct Port {
    pub process: Process,
    conf: usize,
    delivered: usize,
    backlog: VecDeque<(Service, Vec<u8>)>,
    pub deliveries: VecDeque<Delivery>,
    counter: u64,
}

pub struct Bus {
    confs: Vec<Conf>,
    transitional: bool,
    rings: u64,
}

impl Bus {
    pub fn new(transitional: bool) -> Self {
        Self {
            confs: Vec::new(),
            transitional,
            rings: 0,
        }
    }

    pub fn start(&mut self, node: u16, incarnation: u64) -> Port {
        let process = Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(incarnation),
        };
        let mut port = Port {
            process,
            conf: 0,
            delivered: 0,
            backlog: VecDeque::new(),
            deliveries: VecDeque::new(),
            counter: 0,
        };
        self.install(vec![process]);
        self.enter(&mut port);
        port
    }

    fn install(&mut self, members: Vec<Process>) {
        self.rings += 1;
        let rep = members[0];
        self.confs.push(Conf {
            ring: RingId {
                ring_seq: self.rings,
                rep: rep.node,
                incarnation: rep.incarnation,
            },
            received: vec![0; members.len()],
            members,
            order: Vec::new(),
        });
    }

    /// The newest configuration is this daemon's.
    fn enter(&self, port: &mut Port) {
        port.conf = self.confs.len() - 1;
        port.delivered = 0;
        let conf = &self.confs[port.conf];
        port.deliveries
            .push_back(Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(conf.ring),
                members: conf.members.clone(),
            }));
    }

    pub fn submit(port: &mut Port, service: Service, bytes: Vec<u8>) -> bool {
        let room = port.backlog.len() < 4;
        if room {
            port.backlog.push_back((service, bytes));
        }
        room
    }

    /// The oldest of what was submitted gets its place.
    pub fn originate(&mut self, port: &mut Port) -> bool {
        let Some((service, bytes)) = port.backlog.pop_front() else {
            return false;
        };
        port.counter += 1;
        let conf = &mut self.confs[port.conf];
        conf.order.push(Message {
            id: MessageId {
                process: port.process,
                counter: port.counter,
            },
            service,
            seq: conf.order.len() as u64 + 1,
            index: 0,
            payload: Bytes::from(bytes),
        });
        true
    }

    /// Some more messages arrive.
    pub fn receive(&mut self, port: &mut Port, count: usize) -> bool {
        let conf = &mut self.confs[port.conf];
        let place = conf.place(port.process);
        let before = conf.received[place];
        conf.received[place] = (before + count).min(conf.order.len());
        let all = conf.received[place];
        let line = conf.line();
        while port.delivered < all {
            let next = &conf.order[port.delivered];
            if next.service == Service::Safe && port.delivered >= line {
                break;
            }
            port.deliveries.push_back(Delivery::Message(next.clone()));
            port.delivered += 1;
        }
        all > before
    }

    /// These daemons have one configuration from here on.
    pub fn reconfigure(&mut self, ports: &mut [&mut Port]) {
        let mut members: Vec<Process> = ports.iter().map(|port| port.process).collect();
        members.sort_unstable();
        let olds: Vec<usize> = ports.iter().map(|port| port.conf).collect();
        self.install(members);
        for at in 0..ports.len() {
            let old = olds[at];
            let mut together: Vec<Process> = (0..ports.len())
                .filter(|other| olds[*other] == old)
                .map(|other| ports[other].process)
                .collect();
            together.sort_unstable();
            self.finish(ports[at], &together);
            self.enter(ports[at]);
        }
    }

    /// What is left of the old configuration: what any of them has; beyond that, what they sent themselves.
    fn finish(&self, port: &mut Port, together: &[Process]) {
        let conf = &self.confs[port.conf];
        let received = together
            .iter()
            .map(|other| conf.received[conf.place(*other)]);
        let prefix = received.max().unwrap_or(0);
        let line = conf.line();
        let is_safe = |at: usize| conf.order[at].service == Service::Safe;
        while port.delivered < prefix && !(is_safe(port.delivered) && port.delivered >= line) {
            let next = conf.order[port.delivered].clone();
            port.deliveries.push_back(Delivery::Message(next));
            port.delivered += 1;
        }
        if self.transitional {
            let new = self.confs[self.confs.len() - 1].ring;
            let kind = ConfigurationKind::Transitional {
                old: conf.ring,
                new,
            };
            let members = together.to_vec();
            let configuration = Configuration { kind, members };
            port.deliveries
                .push_back(Delivery::Configuration(configuration));
        }
        for (at, next) in conf.order.iter().enumerate().skip(port.delivered) {
            if at < prefix || together.contains(&next.id.process) {
                port.deliveries.push_back(Delivery::Message(next.clone()));
            }
        }
    }
}
