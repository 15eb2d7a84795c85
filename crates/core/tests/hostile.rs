//! A running ring of three among strangers and liars: it may drop and count, never panic, and it
//! works on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{
    Burst, Channel, Checked, Class, Delivery, Engine, Incarnation, Input, MessageId, NodeId,
    Output, Process, RingId, Seq, Service, StartState, Target, Time,
};
use rota_core::membership::RingEngine;
use rota_core::ring::{Counters, RingConfig};
use rota_core::wire::{
    Data, Form, Frame, Hello, Hurry, MAX_REQUEST_RANGES, Packet, RequestRange, Token, VERSION,
    push_whole, start_frame,
};

const CLUSTER: u32 = 7;
const NODES: u16 = 3;
/// What one hostile datagram may cost, with room for a busy machine.
const PATIENCE: Duration = Duration::from_millis(500);

struct Ring {
    engines: Vec<Checked<RingEngine>>,
    queues: Vec<VecDeque<(Class, Bytes)>>,
    delivered: Vec<Vec<(MessageId, Vec<u8>)>>,
    /// Datagrams as they were sent.
    seen: Vec<(Class, Bytes)>,
    now: Time,
}

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

impl Ring {
    /// Started, but not formed.
    fn started() -> Self {
        let members: Vec<_> = (1..=NODES).map(node).collect();
        let config = RingConfig::new(CLUSTER, members.clone());
        let engine = |&id: &NodeId| {
            let me = Process {
                node: id,
                incarnation: Incarnation(10),
            };
            let mut engine = Checked::new(RingEngine::new(config.clone()).expect("a valid ring"));
            engine.handle(
                Time(1),
                Input::Start(StartState {
                    me,
                    seed: 0,
                    records: Vec::new(),
                }),
            );
            engine
        };
        let engines = members.iter().map(engine).collect();
        let queues = members.iter().map(|_| VecDeque::new()).collect();
        let delivered = members.iter().map(|_| Vec::new()).collect();
        let (seen, now) = (Vec::new(), Time(1));
        let mut ring = Self {
            engines,
            queues,
            delivered,
            seen,
            now,
        };
        for at in 0..ring.engines.len() {
            ring.carry_out(at);
        }
        ring
    }

    /// Formed, and some messages old.
    fn operational() -> Self {
        let mut ring = Self::started();
        ring.works();
        ring
    }

    fn step(&mut self) {
        self.now = self.now.after(500_000);
        for at in 0..self.engines.len() {
            if self.engines[at]
                .next_timer()
                .is_some_and(|(due, _)| due <= self.now)
            {
                self.engines[at].handle(self.now, Input::Timer);
            }
            self.carry_out(at);
            while let Some((class, bytes)) = self.queues[at].pop_front() {
                self.receive(at, class, bytes);
                self.carry_out(at);
            }
            while let Some(delivery) = self.engines[at].poll_delivery() {
                if let Delivery::Message(message) = delivery {
                    self.delivered[at].push((message.id, message.payload.to_vec()));
                }
            }
        }
    }

    fn receive(&mut self, at: usize, class: Class, bytes: Bytes) {
        let (channel, segment) = (Channel(0), bytes.len());
        let input = Input::Datagrams {
            class,
            channel,
            bytes,
            segment,
        };
        self.engines[at].handle(self.now, input);
    }

    /// Carries out a node's outputs; answers with the bytes it sent.
    fn carry_out(&mut self, at: usize) -> usize {
        let mut sent = 0;
        while let Some(output) = self.engines[at].poll_output() {
            let Output::Send {
                class, to, burst, ..
            } = output
            else {
                continue;
            };
            assert!(burst.bytes.len() <= Burst::MAX_BYTES);
            sent += burst.bytes.len();
            for datagram in burst.datagrams() {
                let bytes = Bytes::copy_from_slice(datagram);
                self.seen.push((class, bytes.clone()));
                for receiver in (0..self.engines.len()).filter(|&receiver| receiver != at) {
                    if to == Target::Others || to == Target::Node(node(receiver as u16 + 1)) {
                        self.queues[receiver].push_back((class, bytes.clone()));
                    }
                }
            }
        }
        sent
    }

    /// Everybody submits, and everybody delivers all of it in one order.
    fn works(&mut self) {
        let before: Vec<_> = self.delivered.iter().map(Vec::len).collect();
        for at in 0..self.engines.len() {
            for service in [Service::Agreed, Service::Safe] {
                let payload = [at as u8; 20];
                self.engines[at]
                    .submit(self.now, service, &payload)
                    .expect("there is room");
                self.carry_out(at);
            }
        }
        let wanted = 2 * usize::from(NODES);
        for _ in 0..2000 {
            self.step();
            if self
                .delivered
                .iter()
                .zip(&before)
                .all(|(now, before)| now.len() == before + wanted)
            {
                assert!(
                    self.delivered
                        .iter()
                        .all(|other| *other == self.delivered[0])
                );
                return;
            }
        }
        let counts: Vec<_> = self.delivered.iter().map(Vec::len).collect();
        panic!("the ring stands still: {before:?} before, {counts:?} now, {wanted} wanted each");
    }

    /// Hands a hostile datagram to every node, on both sockets. Answers with the bytes that they
    /// sent on account of it.
    fn attack(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        for at in 0..self.engines.len() {
            for class in [Class::Data, Class::Token] {
                let began = Instant::now();
                self.receive(at, class, Bytes::copy_from_slice(bytes));
                sent += self.carry_out(at);
                assert!(
                    began.elapsed() < PATIENCE,
                    "one datagram took {:?}",
                    began.elapsed()
                );
            }
        }
        sent
    }

    fn sum(&self, counter: impl Fn(&Counters) -> u64) -> u64 {
        self.engines
            .iter()
            .map(|engine| counter(engine.get().counters()))
            .sum()
    }

    fn id(&self) -> RingId {
        self.engines[0]
            .get()
            .ordering()
            .expect("the ring is installed")
            .ring()
    }

    /// The last token seen, as something to forge others from.
    fn last_token(&self) -> Token {
        let token = self.seen.iter().rev().find_map(|(_, bytes)| {
            match rota_core::wire::decode(bytes.clone()) {
                Ok(Packet::Token(token)) => Some(token),
                _ => None,
            }
        });
        token.expect("a token was sent")
    }

    /// Attacks with packets that must be dropped, and checks that they are: counted by `counter`,
    /// unanswered, and without harm.
    fn shrugs_off(&mut self, packets: &[Packet], counter: impl Fn(&Counters) -> u64) {
        for packet in packets {
            let before = self.sum(&counter);
            let sent = self.attack(&packet.encode());
            assert_eq!(sent, 0, "answered {packet:?}");
            assert_eq!(
                self.sum(&counter) - before,
                2 * u64::from(NODES),
                "{packet:?}"
            );
        }
        self.works();
    }
}

fn frame() -> Frame {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, 1);
    push_whole(&mut bytes, b"forged");
    Frame::parse(Bytes::from(bytes)).expect("a frame by the rules")
}

fn forged_data(ring: RingId, sender: u16, seq: Seq) -> Data {
    let (round, service) = (1, Service::Agreed);
    Data {
        cluster: CLUSTER,
        ring,
        seq,
        sender: node(sender),
        round,
        service,
        frame: frame(),
    }
}

fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn garbage_is_counted_and_dropped() {
    let mut ring = Ring::operational();
    let mut random = 1;
    for _ in 0..2000 {
        let len = 1 + next_random(&mut random) as usize % 1500;
        let mut bytes: Vec<u8> = (0..len).map(|_| next_random(&mut random) as u8).collect();
        bytes[0] = VERSION - 1;
        assert_eq!(ring.attack(&bytes), 0);
    }
    assert_eq!(
        ring.sum(|c| c.datagrams_malformed),
        2000 * 2 * u64::from(NODES)
    );
    ring.works();
}

#[test]
fn garbage_behind_a_valid_version_does_no_harm() {
    let mut ring = Ring::operational();
    let mut random = 2;
    for _ in 0..5000 {
        let len = 2 + next_random(&mut random) as usize % 200;
        let mut bytes: Vec<u8> = (0..len).map(|_| next_random(&mut random) as u8).collect();
        (bytes[0], bytes[1]) = (VERSION, bytes[1] % 5);
        assert_eq!(ring.attack(&bytes), 0);
    }
    ring.works();
}

#[test]
fn truncated_datagrams_of_its_own_do_no_harm() {
    let mut ring = Ring::operational();
    let real: Vec<_> = ring
        .seen
        .iter()
        .rev()
        .take(20)
        .map(|(_, bytes)| bytes.clone())
        .collect();
    for bytes in real {
        for len in 1..bytes.len().min(200) {
            assert_eq!(ring.attack(&bytes[..len]), 0);
        }
    }
    assert!(ring.sum(|c| c.datagrams_malformed) > 0);
    ring.works();
}

#[test]
fn its_own_datagrams_again_do_no_harm() {
    let mut ring = Ring::operational();
    let old = ring.seen.clone();
    for (_, bytes) in old.iter().take(500) {
        ring.attack(bytes);
    }
    assert!(ring.sum(|c| c.token_duplicates) > 0 && ring.sum(|c| c.packets_duplicate) > 0);
    ring.works();
}

#[test]
fn another_cluster_is_another_world() {
    let mut ring = Ring::operational();
    let (id, cluster) = (ring.id(), CLUSTER + 1);
    let process = Process {
        node: node(2),
        incarnation: Incarnation(10),
    };
    let packets = [
        Packet::Data(Data {
            cluster,
            ..forged_data(id, 2, 1)
        }),
        Packet::Token(Token {
            cluster,
            token_seq: 1 << 40,
            ..ring.last_token()
        }),
        Packet::Hurry(Hurry {
            cluster,
            ring: id,
            sender: node(2),
        }),
        Packet::Hello(Hello {
            cluster,
            process,
            installed: None,
        }),
        Packet::Form(Form {
            cluster,
            ring: id,
            members: vec![process],
        }),
    ];
    ring.shrugs_off(&packets, |c| c.datagrams_foreign_cluster);
}

#[test]
fn another_ring_is_dropped_whatever_part_of_its_id_differs() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let others = [
        RingId {
            ring_seq: id.ring_seq + 1,
            ..id
        },
        RingId { rep: node(2), ..id },
        RingId {
            incarnation: Incarnation(id.incarnation.0 + 1),
            ..id
        },
    ];
    for other in others {
        let packets = [
            Packet::Data(forged_data(other, 2, 5)),
            Packet::Token(Token {
                ring: other,
                token_seq: 1 << 40,
                ..ring.last_token()
            }),
            Packet::Hurry(Hurry {
                cluster: CLUSTER,
                ring: other,
                sender: node(2),
            }),
            Packet::Form(Form {
                cluster: CLUSTER,
                ring: other,
                members: vec![],
            }),
        ];
        ring.shrugs_off(&packets, |c| c.datagrams_foreign_ring);
    }
}

#[test]
fn who_is_no_member_is_not_heard() {
    let mut ring = Ring::operational();
    let (id, cluster) = (ring.id(), CLUSTER);
    let stranger = Process {
        node: node(9),
        incarnation: Incarnation(1),
    };
    let restarted = Process {
        node: node(2),
        incarnation: Incarnation(11),
    };
    let packets = [
        Packet::Data(forged_data(id, 9, 5)),
        Packet::Hurry(Hurry {
            cluster,
            ring: id,
            sender: node(9),
        }),
        Packet::Hello(Hello {
            cluster,
            process: stranger,
            installed: None,
        }),
        Packet::Hello(Hello {
            cluster,
            process: stranger,
            installed: Some(id),
        }),
        Packet::Hello(Hello {
            cluster,
            process: restarted,
            installed: None,
        }),
    ];
    ring.shrugs_off(&packets, |c| c.datagrams_foreign_ring);
}

#[test]
fn a_form_changes_nothing_in_a_running_ring() {
    let mut ring = Ring::operational();
    let member = |id| Process {
        node: node(id),
        incarnation: Incarnation(10),
    };
    let other = RingId {
        ring_seq: 99,
        ..ring.id()
    };
    for members in [vec![], vec![member(9)], (1..=NODES).map(member).collect()] {
        let form = Form {
            cluster: CLUSTER,
            ring: other,
            members,
        };
        assert_eq!(ring.attack(&Packet::Form(form).encode()), 0);
    }
    assert_ne!(ring.id(), other);
    ring.works();
}

#[test]
fn data_far_ahead_is_not_kept() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let far: Vec<_> = [1_000_000, 1 << 33, u64::MAX - 1, u64::MAX]
        .map(|seq| Packet::Data(forged_data(id, 2, seq)))
        .to_vec();
    ring.shrugs_off(&far, |c| c.packets_beyond_window);
}

#[test]
fn old_data_is_a_duplicate_whatever_it_holds() {
    let mut ring = Ring::operational();
    let forged = Packet::Data(forged_data(ring.id(), 3, 1));
    ring.shrugs_off(&[forged], |c| c.packets_duplicate);
}

#[test]
fn tokens_that_contradict_what_is_known_are_refused() {
    let mut ring = Ring::operational();
    let real = ring.last_token();
    let token_seq = real.token_seq + 1000;
    let whole = RequestRange {
        first: 1,
        count: u32::MAX,
    };
    let far = 1 << 33;
    let tokens = [
        Token {
            token_seq: u64::MAX,
            ..real.clone()
        },
        Token {
            token_seq: u64::MAX / 2,
            ..real.clone()
        },
        Token {
            token_seq,
            seq: u64::MAX,
            ..real.clone()
        },
        Token {
            token_seq,
            seq: u64::MAX,
            aru: u64::MAX,
            ..real.clone()
        },
        Token {
            token_seq,
            seq: 0,
            aru: 0,
            ..real.clone()
        },
        Token {
            token_seq,
            aru: 0,
            ..real.clone()
        },
        Token {
            token_seq,
            seq: far,
            rtr: vec![whole],
            ..real.clone()
        },
    ];
    ring.shrugs_off(&tokens.map(Packet::Token), |c| c.token_invalid);
}

#[test]
fn requests_beyond_reason_cost_no_time() {
    let mut ring = Ring::operational();
    let real = ring.last_token();
    for extra in [0, 1, 1000] {
        let seq = real.seq + extra;
        let count = u32::try_from(seq).expect("few messages");
        let rtr = vec![RequestRange { first: 1, count }];
        let token_seq = real.token_seq + 1000 + extra;
        ring.attack(
            &Packet::Token(Token {
                token_seq,
                seq,
                rtr,
                ..real.clone()
            })
            .encode(),
        );
    }
}

/// Tokens that could be real: nothing tells them from the ring's own, so the ring may be misled by
/// them, but no member panics, hangs or sends more than its windows allow.
#[test]
fn plausible_forged_tokens_never_make_a_member_panic() {
    let random_token = |real: &Token, random: &mut u64| {
        let seq = real.seq + next_random(random) % 3000;
        let aru = real.seq + next_random(random) % (seq - real.seq + 1);
        let extreme = [0, 1, 1000, u32::MAX];
        let pick = |random: &mut u64| extreme[next_random(random) as usize % 4];
        let (fcc, backlog) = (pick(random), pick(random));
        let aru_id = NodeId::new((next_random(random) % 5) as u16);
        let mut rtr: Vec<RequestRange> = Vec::new();
        let mut first = 1 + next_random(random) % 10;
        while rtr.len() < MAX_REQUEST_RANGES && first <= seq {
            let count = (1 + next_random(random) % 50).min(seq - first + 1) as u32;
            rtr.push(RequestRange { first, count });
            first += u64::from(count) + 1 + next_random(random) % 50;
        }
        let (token_seq, idle) = (real.token_seq + 1000, next_random(random) & 1 == 0);
        let sender = node(1 + next_random(random) as u16 % 9);
        Token {
            sender,
            token_seq,
            seq,
            aru,
            aru_id,
            fcc,
            backlog,
            idle,
            rtr,
            ..real.clone()
        }
    };
    let mut random = 3;
    for _ in 0..100 {
        let mut ring = Ring::operational();
        for _ in 0..5 {
            let token = random_token(&ring.last_token(), &mut random);
            let sent = ring.attack(&Packet::Token(token).encode());
            assert!(sent < 3 * 330 * 1472, "{sent} bytes for one token");
            (0..20).for_each(|_| ring.step());
        }
    }
}

/// Data that could be real, numbered ahead of the ring: it takes places in the buffer, no more.
#[test]
fn plausible_forged_data_never_makes_a_member_panic() {
    let mut ring = Ring::operational();
    let (id, seq) = (ring.id(), ring.last_token().seq);
    let services = [
        Service::Reliable,
        Service::Fifo,
        Service::Causal,
        Service::Agreed,
        Service::Safe,
    ];
    let mut random = 4;
    for ahead in 1..5000 {
        let mut data = forged_data(id, 1 + ahead as u16 % NODES, seq + ahead);
        data.service = services[next_random(&mut random) as usize % 5];
        data.round = next_random(&mut random) as u16;
        ring.attack(&Packet::Data(data).encode());
    }
    assert!(
        ring.sum(|c| c.packets_beyond_window) > 0,
        "the buffer is bounded"
    );
    (0..200).for_each(|_| ring.step());
}

#[test]
fn a_hurry_of_a_member_costs_one_rotation_at_most() {
    let mut ring = Ring::operational();
    (0..500).for_each(|_| ring.step());
    let hurry = Packet::Hurry(Hurry {
        cluster: CLUSTER,
        ring: ring.id(),
        sender: node(2),
    });
    for _ in 0..100 {
        assert!(ring.attack(&hurry.encode()) <= 200);
        ring.step();
    }
    ring.works();
}

#[test]
fn strangers_do_not_keep_a_ring_from_forming() {
    let mut ring = Ring::started();
    let stranger = Process {
        node: node(9),
        incarnation: Incarnation(1),
    };
    let id = RingId {
        ring_seq: 1,
        rep: node(9),
        incarnation: Incarnation(1),
    };
    let cluster = CLUSTER;
    for _ in 0..50 {
        for packet in [
            Packet::Hello(Hello {
                cluster,
                process: stranger,
                installed: Some(id),
            }),
            Packet::Form(Form {
                cluster,
                ring: id,
                members: vec![stranger],
            }),
            Packet::Token(token_of_a_stranger(id)),
            Packet::Data(forged_data(id, 9, 1)),
        ] {
            for at in 0..usize::from(NODES) {
                ring.receive(at, Class::Token, Bytes::from(packet.encode()));
                ring.carry_out(at);
            }
        }
    }
    ring.works();
}

fn token_of_a_stranger(ring: RingId) -> Token {
    let (cluster, sender, aru_id, rtr) = (CLUSTER, node(9), None, Vec::new());
    let (token_seq, seq, aru, fcc, backlog, idle) = (5, 0, 0, 0, 0, false);
    Token {
        cluster,
        ring,
        sender,
        token_seq,
        seq,
        aru,
        aru_id,
        fcc,
        backlog,
        idle,
        rtr,
    }
}
