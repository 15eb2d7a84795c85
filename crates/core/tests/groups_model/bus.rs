//! The promises of engines, without protocol: configurations with one order each, of which members receive more and
//! more. When daemons part or meet, those that go together deliver the same. Views are in `views`.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Service,
};

pub(super) struct Conf {
    pub ring: RingId,
    members: Vec<Process>,
    pub order: Vec<Message>,
    /// How much of the order each member has received.
    pub received: Vec<usize>,
}

impl Conf {
    pub fn place(&self, process: Process) -> usize {
        let found = self.members.iter().position(|member| *member == process);
        found.expect("a member")
    }

    /// All that every member has received.
    pub fn line(&self) -> usize {
        self.received.iter().copied().min().unwrap_or(0)
    }
}

/// A message that was submitted.
pub(super) struct Submitted {
    pub counter: u64,
    service: Service,
    bytes: Vec<u8>,
}

/// A daemon's engine.
pub struct Port {
    pub process: Process,
    pub(super) conf: usize,
    pub(super) delivered: usize,
    pub(super) backlog: VecDeque<Submitted>,
    /// So many of these have a place; over views they stay until they are delivered.
    pub(super) placed: usize,
    pub deliveries: VecDeque<Delivery>,
    counter: u64,
    /// Over views: it is in none.
    pub(super) frozen: bool,
}

/// What daemons are told of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Who comes along, by a transitional configuration.
    Transitional,
    /// The next configuration.
    Direct,
    /// The next primary view, if they are in it.
    Views,
}

pub struct Bus {
    pub(super) confs: Vec<Conf>,
    pub kind: Kind,
    rings: u64,
    /// Over views: of each process, the last message that is delivered where the newest view begins.
    pub(super) marks: BTreeMap<Process, u64>,
}

impl Bus {
    pub fn new(kind: Kind) -> Self {
        Self {
            confs: Vec::new(),
            kind,
            rings: 0,
            marks: BTreeMap::new(),
        }
    }

    pub fn start(&mut self, node: u16, incarnation: u64) -> Port {
        let process = Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(incarnation),
        };
        let mut port = Port {
            process,
            conf: usize::MAX,
            delivered: 0,
            backlog: VecDeque::new(),
            placed: 0,
            deliveries: VecDeque::new(),
            counter: 0,
            frozen: true,
        };
        if self.kind == Kind::Views {
            return port;
        }
        self.install(vec![process]);
        self.enter(&mut port);
        port
    }

    pub(super) fn install(&mut self, members: Vec<Process>) {
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
    pub(super) fn enter(&self, port: &mut Port) {
        port.conf = self.confs.len() - 1;
        port.delivered = 0;
        port.frozen = false;
        let conf = &self.confs[port.conf];
        port.deliveries
            .push_back(Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(conf.ring),
                members: conf.members.clone(),
            }));
    }

    /// Says the counter of the message, if there is room for it.
    pub fn submit(port: &mut Port, service: Service, bytes: Vec<u8>) -> Option<u64> {
        if port.backlog.len() - port.placed >= 4 {
            return None;
        }
        port.counter += 1;
        let counter = port.counter;
        port.backlog.push_back(Submitted {
            counter,
            service,
            bytes,
        });
        Some(counter)
    }

    /// The oldest of what was submitted gets its place.
    pub fn originate(&mut self, port: &mut Port) -> bool {
        let next = port.backlog.get(port.placed);
        let Some(next) = next.filter(|_| !port.frozen) else {
            return false;
        };
        let conf = &mut self.confs[port.conf];
        conf.order.push(Message {
            id: MessageId {
                process: port.process,
                counter: next.counter,
            },
            service: next.service,
            seq: conf.order.len() as u64 + 1,
            index: 0,
            payload: Bytes::from(next.bytes.clone()),
        });
        if self.kind == Kind::Views {
            port.placed += 1;
        } else {
            port.backlog.pop_front();
        }
        true
    }

    /// Some more messages arrive.
    pub fn receive(&mut self, port: &mut Port, count: usize) -> bool {
        if port.frozen {
            return false;
        }
        let conf = &mut self.confs[port.conf];
        let place = conf.place(port.process);
        let before = conf.received[place];
        conf.received[place] = (before + count).min(conf.order.len());
        let all = conf.received[place];
        let line = conf.line();
        let delivered = port.delivered;
        while port.delivered < all {
            let next = &conf.order[port.delivered];
            let safe = next.service == Service::Safe || self.kind == Kind::Views;
            if safe && port.delivered >= line {
                break;
            }
            port.deliveries.push_back(Delivery::Message(next.clone()));
            port.delivered += 1;
        }
        all > before || port.delivered > delivered
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
        if self.kind == Kind::Transitional {
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
