//! The events that applications see, and their checker.

use std::rc::Rc;

use rota_check::event::{Conf, Event, EventKind, Placed};
use rota_core::contract::{ConfigurationKind, Delivery, MessageId, Service};

use super::node::MESSAGES;
use super::state::{State, hash_of};

impl State {
    pub fn originated(&mut self, at: usize, counter: u64, position: u64) {
        let node = &self.nodes[at];
        let message = MessageId {
            process: node.process(),
            counter,
        };
        let sent = node.sent.get((counter as usize).wrapping_sub(1)).copied();
        // The engine numbers a message while it is being submitted.
        let (service, hash) = sent.unwrap_or_else(|| self.newest(at, counter));
        let Some(conf) = node.conf else {
            return self.found("E4", format!("{message} originated in no configuration"));
        };
        let placed = Placed {
            message,
            conf,
            position,
            service,
            hash,
        };
        Rc::make_mut(&mut self.nodes[at]).remember((1, counter, position));
        self.emit(at, EventKind::Originated(placed));
    }

    fn newest(&self, at: usize, counter: u64) -> (Service, u64) {
        let payload = [b'a' + at as u8, b'0' + counter as u8 - 1];
        (Service::Agreed, hash_of(&payload))
    }

    pub fn delivered(&mut self, at: usize, delivery: Delivery) {
        let node = Rc::make_mut(&mut self.nodes[at]);
        match delivery {
            Delivery::Configuration(conf) => {
                node.conf = Some(conf.kind);
                node.remember((2, &conf));
                let more = conf.members.len() > 1 && node.sent.len() < MESSAGES;
                let submits = self.submits && more;
                let (id, members) = (conf.kind, conf.members);
                self.emit(at, EventKind::Configuration(Conf { id, members }));
                if let ConfigurationKind::Regular(_) = id
                    && submits
                {
                    self.submit(at, Service::Agreed);
                    self.submit(at, Service::Safe);
                }
            }
            Delivery::Message(message) => {
                node.returned += usize::from(message.id.process == node.process());
                let position = message.position();
                node.remember((3, message.id, position, hash_of(&message.payload)));
                let Some(conf) = node.conf else {
                    return self.found("E4", format!("{} before any configuration", message.id));
                };
                let placed = Placed {
                    message: message.id,
                    conf,
                    position,
                    service: message.service,
                    hash: hash_of(&message.payload),
                };
                self.emit(at, EventKind::Delivered(placed));
            }
            Delivery::Passed { .. }
            | Delivery::Notice { .. }
            | Delivery::Primary(_)
            | Delivery::Excluded(_)
            | Delivery::Missed { .. } => {}
        }
    }

    pub fn emit(&mut self, at: usize, kind: EventKind) {
        let node = &self.nodes[at];
        let event = Event {
            time: node.now(),
            process: node.process(),
            kind,
        };
        if let Err(violation) = Rc::make_mut(&mut self.online).observe(&event) {
            self.found(violation.property, violation.detail);
        }
        if let EventKind::Configuration(conf) = event.kind
            && let ConfigurationKind::Regular(ring) = conf.id
        {
            let rings = Rc::make_mut(&mut self.rings);
            let known = rings.entry(ring).or_insert_with(|| conf.members.clone());
            if *known != conf.members {
                self.found("C1", format!("two configurations are both {ring}"));
            }
        }
    }
}
