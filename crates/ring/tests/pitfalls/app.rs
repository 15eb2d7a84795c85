//! An application, with the messages that it has sent and the deliveries that it was handed.

use std::collections::BTreeMap;

use rota_check::event::{Conf, EventKind, Placed, Sent};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, MessageId, Process, Service,
};

pub struct App {
    me: Process,
    pub conf: Option<ConfigurationKind>,
    pub confs: Vec<Configuration>,
    /// What was delivered: in which configuration, what.
    pub got: Vec<(ConfigurationKind, MessageId, Vec<u8>)>,
    /// Messages delivered in the present configuration.
    pub in_conf: usize,
    sent: BTreeMap<u64, Sent>,
    returned: usize,
}

/// Not what a trace file has, but as good for telling payloads apart.
fn hash(payload: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    payload.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl App {
    pub fn new(me: Process) -> Self {
        Self {
            me,
            conf: None,
            confs: Vec::new(),
            got: Vec::new(),
            in_conf: 0,
            sent: BTreeMap::new(),
            returned: 0,
        }
    }

    pub fn submitted(&mut self, counter: u64, service: Service, payload: &[u8]) -> Sent {
        let process = self.me;
        let message = MessageId { process, counter };
        let sent = Sent {
            message,
            service,
            hash: hash(payload),
        };
        self.sent.insert(counter, sent);
        sent
    }

    pub fn originated(&self, counter: u64, seq: u64, index: u16) -> (Process, Placed) {
        (self.me, self.place(counter, seq, index))
    }

    fn place(&self, counter: u64, seq: u64, index: u16) -> Placed {
        let sent = &self.sent[&counter];
        Placed {
            message: sent.message,
            conf: self.conf.expect("it is in a configuration"),
            position: seq << 16 | u64::from(index),
            service: sent.service,
            hash: sent.hash,
        }
    }

    pub fn take(&mut self, delivery: Delivery) -> EventKind {
        match delivery {
            Delivery::Configuration(conf) => {
                self.conf = Some(conf.kind);
                self.in_conf = 0;
                self.confs.push(conf.clone());
                let Configuration { kind: id, members } = conf;
                EventKind::Configuration(Conf { id, members })
            }
            Delivery::Message(message) => {
                let conf = self.conf.expect("it is in a configuration");
                self.in_conf += 1;
                self.returned += usize::from(message.id.process == self.me);
                self.got.push((conf, message.id, message.payload.to_vec()));
                EventKind::Delivered(Placed {
                    message: message.id,
                    conf,
                    position: message.position(),
                    service: message.service,
                    hash: hash(&message.payload),
                })
            }
            Delivery::Passed { .. }
            | Delivery::Notice { .. }
            | Delivery::Primary(_)
            | Delivery::Excluded(_)
            | Delivery::Missed { .. } => {
                panic!("nobody asked for skips")
            }
        }
    }

    pub fn has_all_its_own(&self) -> bool {
        self.returned == self.sent.len()
    }
}
