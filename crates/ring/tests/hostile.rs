//! A running ring of three among strangers and liars: it may drop and count, never panic, and it
//! works on.

mod attacked;

use std::collections::BTreeSet;

use attacked::{CLUSTER, NODES, Ring, forged_data, next_random, node, process};
use bytes::Bytes;
use rota_core::contract::{Class, Incarnation, NodeId, RingId, Service};
use rota_core::wire::{HEADER_BYTES, RequestRange, SEAL_BYTES, VERSION};
use rota_ring::wire::{Commit, Data, Hurry, Join, MAX_REQUEST_RANGES, MergeDetect, Packet, Token};

fn hurry(cluster: u32, ring: RingId, sender: u16) -> Packet {
    let sender = node(sender);
    Packet::Hurry(Hurry {
        cluster,
        ring,
        sender,
    })
}

fn presence(cluster: u32, ring: RingId, sender: u16) -> Packet {
    let sender = process(sender, 10);
    Packet::MergeDetect(MergeDetect {
        cluster,
        sender,
        ring,
    })
}

/// Node `sender` wants a ring of nodes 1, 2 and 3.
fn join(cluster: u32, ring_seq: u64, sender: u16) -> Packet {
    Packet::Join(Join {
        cluster,
        sender: process(sender, 10),
        ring_seq,
        leaving: false,
        procs: (1..=NODES).map(|id| process(id, 10)).collect(),
        fails: BTreeSet::new(),
    })
}

/// A commit token in which nobody has told anything yet.
fn commit(cluster: u32, ring: RingId, members: &[u16]) -> Packet {
    let member = |&id: &u16| process(id, 10);
    Packet::Commit(Commit {
        cluster,
        ring,
        sender: node(3),
        token_seq: 1,
        members: members.iter().map(member).collect(),
        electorates: vec![],
        told: vec![],
    })
}

#[test]
fn garbage_is_counted_and_dropped() {
    let mut ring = Ring::operational();
    let (mut random, mut older, mut others) = (1, 0, 0);
    for _ in 0..2000 {
        let len = 1 + next_random(&mut random) as usize % 1500;
        let mut bytes: Vec<u8> = (0..len).map(|_| next_random(&mut random) as u8).collect();
        // Every other one is of an older version, and what follows may be anything then.
        let is_older = random % 2 == 0;
        bytes[0] = if is_older {
            VERSION - 1
        } else {
            VERSION ^ 0x80
        };
        (older, others) = (older + u64::from(is_older && len > 40), others + 1);
        assert_eq!(ring.attack(&bytes), 0);
    }
    let copies = 2 * u64::from(NODES);
    assert!(older > 500);
    assert!(ring.sum(|c| c.datagrams_other_version) >= older * copies);
    assert_eq!(
        ring.sum(|c| c.datagrams_malformed + c.datagrams_other_version),
        others * copies
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
        (bytes[0], bytes[1]) = (VERSION, bytes[1] % 8);
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
    let (id, gathers) = (ring.id(), ring.sum(|c| c.gathers));
    let old = ring.seen.clone();
    for (_, bytes) in old.iter().take(500) {
        ring.attack(bytes);
    }
    assert!(ring.sum(|c| c.token_duplicates) > 0 && ring.sum(|c| c.packets_duplicate) > 0);
    assert!(ring.sum(|c| c.joins_ignored) > 0 && ring.sum(|c| c.commits_ignored) > 0);
    ring.works();
    assert_eq!((ring.id(), ring.sum(|c| c.gathers)), (id, gathers));
}

#[test]
fn another_cluster_is_another_world() {
    let mut ring = Ring::operational();
    let (id, cluster) = (ring.id(), CLUSTER + 1);
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
        hurry(cluster, id, 2),
        join(cluster, id.ring_seq, 2),
        commit(cluster, id, &[1, 2, 3]),
        presence(cluster, id, 2),
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
            Packet::Token(Token {
                ring: other,
                token_seq: 1 << 40,
                ..ring.last_token()
            }),
            hurry(CLUSTER, other, 2),
        ];
        ring.shrugs_off(&packets, |c| c.datagrams_foreign_ring);
    }
}

/// Its sender may be a member of a ring that has not heard of this one: it is told, and not more often
/// than a gathering process would be.
#[test]
fn data_of_another_ring_is_answered_once_in_a_while() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let other = RingId {
        ring_seq: id.ring_seq + 1,
        ..id
    };
    let before = ring.sum(|c| c.datagrams_foreign_ring);
    let mut sent = 0;
    for _ in 0..1000 {
        sent += ring.attack(&Packet::Data(forged_data(other, 9, 5)).encode());
    }
    let foreign = ring.sum(|c| c.datagrams_foreign_ring) - before;
    assert_eq!(foreign, 1000 * 2 * u64::from(NODES));
    assert_eq!(sent, usize::from(NODES) * (HEADER_BYTES + 8 + SEAL_BYTES));
    ring.works();
    assert_eq!(ring.id(), id);
}

#[test]
fn late_data_of_the_ring_before_is_not_answered() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let before = RingId {
        ring_seq: id.ring_seq - 1,
        ..id
    };
    let late = [Packet::Data(forged_data(before, 2, 5))];
    ring.shrugs_off(&late, |c| c.datagrams_foreign_ring);
}

#[test]
fn who_is_no_member_is_not_heard() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let packets = [Packet::Data(forged_data(id, 9, 5)), hurry(CLUSTER, id, 9)];
    ring.shrugs_off(&packets, |c| c.datagrams_foreign_ring);
}

#[test]
fn a_commit_token_changes_nothing_in_a_running_ring() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let next = RingId {
        ring_seq: id.ring_seq + 4,
        ..id
    };
    let alone = RingId {
        rep: node(9),
        ..next
    };
    let packets = [
        commit(CLUSTER, id, &[1, 2, 3]),
        commit(CLUSTER, next, &[1, 2, 3]),
        commit(CLUSTER, next, &[1]),
        commit(CLUSTER, alone, &[9]),
    ];
    ring.shrugs_off(&packets, |c| c.commits_ignored);
}

/// What a member has said before it came on this ring.
#[test]
fn stale_joins_and_presences_change_nothing() {
    let mut ring = Ring::operational();
    let id = ring.id();
    let stale = |ring_seq, sender| join(CLUSTER, ring_seq, sender);
    for sender in [2, 3] {
        for ring_seq in [0, id.ring_seq - 1] {
            assert_eq!(ring.attack(&stale(ring_seq, sender).encode()), 0);
        }
        let before = RingId {
            ring_seq: id.ring_seq - 4,
            rep: node(sender),
            ..id
        };
        assert_eq!(ring.attack(&presence(CLUSTER, before, sender).encode()), 0);
        assert_eq!(ring.attack(&presence(CLUSTER, id, sender).encode()), 0);
    }
    // Two nodes and both sockets ignore each join; the third goes by its sender's number.
    assert_eq!(ring.sum(|c| c.gathers), gathers_of_forming());
    ring.works();
    assert_eq!(ring.id(), id);
}

fn gathers_of_forming() -> u64 {
    Ring::operational().sum(|c| c.gathers)
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
        // Nobody on an installed ring has anything of an old one left to send.
        Token {
            token_seq,
            recovering: true,
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
    let services = Service::ALL;
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
    let hurry = hurry(CLUSTER, ring.id(), 2);
    for _ in 0..100 {
        assert!(ring.attack(&hurry.encode()) <= 200);
        ring.step();
    }
    ring.works();
}

#[test]
fn strangers_do_not_keep_a_ring_from_forming() {
    let mut ring = Ring::started();
    let id = RingId {
        ring_seq: 1,
        rep: node(9),
        incarnation: Incarnation(10),
    };
    for _ in 0..50 {
        for packet in [
            presence(CLUSTER, id, 9),
            commit(CLUSTER, id, &[9]),
            Packet::Token(token_of_a_stranger(id)),
            Packet::Data(forged_data(id, 9, 1)),
        ] {
            for at in 0..usize::from(NODES) {
                ring.receive(at, Class::Token, Bytes::from(packet.encode()));
                ring.carry_out(at);
            }
        }
        ring.step();
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
        recovering: false,
        rtr,
    }
}
