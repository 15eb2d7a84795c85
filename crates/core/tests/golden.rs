//! The bytes of what daemons tell each other of groups, and members of their bandwidth, are those of `testdata/golden`,
//! and are read back as what they were.

#[path = "golden/mod.rs"]
mod file;

use bytes::Bytes;
use file::Golden;
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Service,
};
use rota_core::groups::{
    ClientName, Connection, Destination, Event, GroupName, Groups, HoldFor, Limits, Send,
};
use rota_core::shares::{Note, Word};

fn process(id: u16) -> Process {
    Process {
        node: NodeId::new(id).expect("not 0"),
        incarnation: Incarnation(0x0011_2233_4455_0000 + u64::from(id)),
    }
}

const ONE: u16 = 0x0102;
const TWO: u16 = 0x0304;

fn ring(ring_seq: u64) -> RingId {
    let Process { node, incarnation } = process(ONE);
    RingId {
        ring_seq,
        rep: node,
        incarnation,
    }
}

fn client(name: &str) -> ClientName {
    ClientName::new(name).expect("a name")
}

fn chat() -> GroupName {
    GroupName::new("chat").expect("a name")
}

/// Two daemons in one configuration, the first of which is looked at.
struct Pair {
    one: Groups,
    two: Groups,
    counter: u64,
}

impl Pair {
    fn new(limits: Limits) -> Self {
        let mut pair = Self {
            one: Groups::new(process(ONE), limits),
            two: Groups::new(process(TWO), limits),
            counter: 0,
        };
        pair.configure(ConfigurationKind::Regular(ring(1)));
        while pair.turn().is_some() {}
        pair
    }

    fn configure(&mut self, kind: ConfigurationKind) {
        let members = vec![process(ONE), process(TWO)];
        let configuration = Configuration { kind, members };
        for daemon in [&mut self.one, &mut self.two] {
            daemon.deliver(Delivery::Configuration(configuration.clone()));
        }
    }

    /// The two are apart for a while, and come together again.
    fn part(&mut self) {
        for (daemon, id) in [(&mut self.one, ONE), (&mut self.two, TWO)] {
            let alone = RingId {
                rep: process(id).node,
                incarnation: process(id).incarnation,
                ..ring(2)
            };
            let steps = [
                (ring(1), alone, ConfigurationKind::Regular(alone)),
                (alone, ring(3), ConfigurationKind::Regular(ring(3))),
            ];
            for (old, new, regular) in steps {
                let is_last = new == ring(3);
                for kind in [ConfigurationKind::Transitional { old, new }, regular] {
                    let is_with_both = is_last && kind == regular;
                    let members = match is_with_both {
                        true => vec![process(ONE), process(TWO)],
                        false => vec![process(id)],
                    };
                    let configuration = Configuration { kind, members };
                    daemon.deliver(Delivery::Configuration(configuration));
                }
            }
        }
    }

    /// What one of them submits is delivered to both. Returns what the first has submitted, or nothing of the second.
    fn turn(&mut self) -> Option<Vec<u8>> {
        for (at, id) in [(0, ONE), (1, TWO)] {
            let daemon = if at == 0 {
                &mut self.one
            } else {
                &mut self.two
            };
            let Some((service, payload)) = daemon.to_submit() else {
                continue;
            };
            let payload = Bytes::copy_from_slice(payload);
            self.counter += 1;
            daemon.submitted(self.counter);
            self.deliver(id, service, payload.clone());
            return Some(if at == 0 {
                payload.to_vec()
            } else {
                Vec::new()
            });
        }
        None
    }

    fn deliver(&mut self, id: u16, service: Service, payload: Bytes) {
        let message = Message {
            id: MessageId {
                process: process(id),
                counter: self.counter,
            },
            service,
            seq: self.counter,
            index: 0,
            payload,
        };
        for daemon in [&mut self.one, &mut self.two] {
            daemon.deliver(Delivery::Message(message.clone()));
        }
    }

    /// What the first submits next.
    fn bytes(&mut self) -> Vec<u8> {
        self.turn().expect("it has something to submit")
    }

    fn send(&mut self, from: Connection, payload: &[u8]) {
        let to = vec![
            Destination::Group(chat()),
            Destination::Client(client("ben"), process(TWO).node),
        ];
        let send = Send {
            service: Service::Safe,
            self_discard: true,
            kind: 0x0506,
            big_endian: true,
            number: Some(0x1122_3344),
            to,
            payload: Bytes::copy_from_slice(payload),
        };
        self.one.send(from, send).expect("there is room");
    }

    /// The messages that clients of the second daemon have got since they were asked for last.
    fn got(&mut self) -> Vec<(Service, u16, Bytes)> {
        let events = std::iter::from_fn(|| self.two.poll_event());
        let messages = events.filter_map(|event| match event.event {
            Event::Message(message) => {
                Some((message.service, message.kind, message.payload.clone()))
            }
            _ => None,
        });
        messages.collect()
    }
}

#[test]
fn messages_of_daemons() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "groups");
    let mut pair = Pair::new(Limits::default());
    pair.two.connect(client("ben")).expect("a new name");
    let anna = pair.one.connect(client("anna")).expect("a new name");
    pair.one.join(anna, chat()).expect("there is room");
    golden.compare("join", &pair.bytes());
    assert_eq!(pair.two.list_members(&chat()).len(), 1);

    pair.send(anna, b"hello");
    golden.compare("message", &pair.bytes());
    let message = (Service::Safe, 0x0506, Bytes::from_static(b"hello"));
    assert_eq!(pair.got(), [message]);

    let to = HoldFor::from([(Destination::Group(chat()), client("bob"))]);
    pair.one.hold(to, 0x0000_0708);
    golden.compare("hold", &pair.bytes());
    assert_eq!(pair.two.holds().count(), 1);

    pair.part();
    golden.compare("piece of the state of groups", &pair.bytes());
    while pair.turn().is_some() {}
    assert_eq!(pair.two.list_members(&chat()).len(), 1);

    pair.one.leave(anna, chat()).expect("there is room");
    golden.compare("leave", &pair.bytes());
    assert_eq!(pair.two.list_members(&chat()).len(), 0);

    pair.one.disconnect(anna);
    golden.compare("disconnect", &pair.bytes());

    let mut small = Pair::new(Limits {
        backlog_bytes: 64,
        piece_bytes: 16,
        ..Limits::default()
    });
    small.two.connect(client("ben")).expect("a new name");
    let anna = small.one.connect(client("anna")).expect("a new name");
    small.send(anna, &[7; 100]);
    golden.compare("part of a large message", &small.bytes());
    while small.turn().is_some() {}
    let large = (Service::Safe, 0x0506, Bytes::from_static(&[7; 100]));
    assert_eq!(small.got(), [large]);
    golden.finish();
}

#[test]
fn words_about_shares() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "shares");
    let (number, requirement, capacity) = (0x0102, 0x0304_0506_0708, 0x1112_1314_1516);
    let words = [
        (
            "requirement",
            Word::Requirement {
                number,
                requirement,
            },
        ),
        ("capacity", Word::Capacity { number, capacity }),
    ];
    for (name, word) in words {
        let bytes = golden.compare(name, &word.encode());
        assert_eq!(Word::decode(&bytes), Ok(word));
    }
    let note = Note {
        requirement,
        capacity,
    };
    let bytes = golden.compare("note", &note.encode());
    assert_eq!(Note::decode(&bytes), Some(note));
    golden.finish();
}
