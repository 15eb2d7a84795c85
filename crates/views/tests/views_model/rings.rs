//! The promises of a ring, without protocol: configurations with one order each, of which members receive more and
//! more. Members may part or meet at any point of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rota_core::contract::{
    Class, Configuration, ConfigurationKind, Delivery, Engine, Input, Message, MessageId, Output,
    Process, RingId, Service, Status, SubmitError, Time, TimerReason,
};

/// How many messages a process may have without a place.
const ROOM: usize = 3;

#[derive(Default)]
struct Inner {
    deliveries: VecDeque<Delivery>,
    submitted: VecDeque<(u64, Bytes)>,
    counter: u64,
    datagrams: u64,
}

/// The ring below an engine, as the model works it.
#[derive(Clone, Default)]
pub struct Below(Rc<RefCell<Inner>>);

impl Engine for Below {
    fn handle(&mut self, _: Time, input: Input) {
        if let Input::Datagrams { bytes, segment, .. } = input {
            self.0.borrow_mut().datagrams += bytes.len().div_ceil(segment) as u64;
        }
    }

    fn submit(&mut self, _: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        assert_eq!(service, Service::Safe);
        let mut inner = self.0.borrow_mut();
        if inner.submitted.len() == ROOM {
            return Err(SubmitError::Full);
        }
        inner.counter += 1;
        let submitted = (inner.counter, Bytes::copy_from_slice(payload));
        inner.submitted.push_back(submitted);
        Ok(inner.counter)
    }

    fn poll_output(&mut self) -> Option<Output> {
        None
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.0.borrow_mut().deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

/// A regular configuration: what is ordered in it, and how far each member has received that.
struct Conf {
    ring: RingId,
    members: Vec<Process>,
    order: Vec<Message>,
    received: Vec<usize>,
}

/// One process on the rings.
pub struct Port {
    pub process: Process,
    pub below: Below,
    conf: usize,
    /// What of its configuration's order was delivered.
    delivered: usize,
}

impl Port {
    pub fn new(process: Process) -> Self {
        Self {
            process,
            below: Below::default(),
            conf: usize::MAX,
            delivered: 0,
        }
    }

    /// Which configuration it is in.
    pub const fn conf(&self) -> usize {
        self.conf
    }

    fn deliver(&self, delivery: Delivery) {
        self.below.0.borrow_mut().deliveries.push_back(delivery);
    }
}

#[derive(Default)]
pub struct Rings {
    confs: Vec<Conf>,
}

impl Rings {
    /// These form a configuration.
    pub fn group(&mut self, ports: &mut [&mut Port]) {
        let Some(first) = ports.first() else { return };
        let ring = RingId {
            ring_seq: self.confs.len() as u64 + 1,
            rep: first.process.node,
            incarnation: first.process.incarnation,
        };
        let members: Vec<Process> = ports.iter().map(|port| port.process).collect();
        let old: Vec<usize> = ports.iter().map(|port| port.conf).collect();
        for port in ports {
            let along = members.iter().zip(&old);
            let along = along.filter(|(_, old)| **old == port.conf);
            let along = along.map(|(process, _)| *process).collect();
            self.end(port, ring, along);
            port.deliver(Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(ring),
                members: members.clone(),
            }));
            (port.conf, port.delivered) = (self.confs.len(), 0);
        }
        self.confs.push(Conf {
            ring,
            received: vec![0; members.len()],
            members,
            order: Vec::new(),
        });
    }

    /// The transitional configuration: all that any of those who come along have received.
    fn end(&self, port: &Port, new: RingId, along: Vec<Process>) {
        let Some(conf) = self.confs.get(port.conf) else {
            return;
        };
        let has = |process: &Process| {
            let place = conf.members.iter().position(|member| member == process);
            place.map_or(0, |place| conf.received[place])
        };
        let most = along.iter().map(has).max().unwrap_or(0);
        port.deliver(Delivery::Configuration(Configuration {
            kind: ConfigurationKind::Transitional {
                old: conf.ring,
                new,
            },
            members: along,
        }));
        for message in conf.order.get(port.delivered..most).unwrap_or_default() {
            port.deliver(Delivery::Message(message.clone()));
        }
    }

    /// Its oldest message gets its place.
    pub fn originate(&mut self, port: &Port) {
        let Some((counter, payload)) = port.below.0.borrow_mut().submitted.pop_front() else {
            return;
        };
        let conf = &mut self.confs[port.conf];
        conf.order.push(Message {
            id: MessageId {
                process: port.process,
                counter,
            },
            service: Service::Safe,
            seq: conf.order.len() as u64 + 1,
            index: 0,
            payload,
        });
    }

    /// It receives some more.
    pub fn receive(&mut self, port: &Port, count: usize) {
        let conf = &mut self.confs[port.conf];
        let place = conf.members.iter().position(|m| *m == port.process);
        let received = &mut conf.received[place.expect("a member")];
        *received = conf.order.len().min(*received + count);
    }

    /// What all have received is delivered.
    pub fn deliver(&self, port: &mut Port) {
        let conf = &self.confs[port.conf];
        let safe = conf.received.iter().copied().min().unwrap_or(0);
        if port.delivered < safe {
            let message = conf.order[port.delivered].clone();
            port.deliver(Delivery::Message(message));
            port.delivered += 1;
        }
    }
}
