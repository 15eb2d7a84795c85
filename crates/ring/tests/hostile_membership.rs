//! Membership among liars: forged and garbled joins, commit tokens, presences and wrapped packets, at a
//! ring in service and at one that is being formed. No process panics, hangs or grows without bound, the answers are
//! bounded, and when the lies end all processes come together again.

mod attacked;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use attacked::{CLUSTER, NODES, Ring, forged_data, frame_with, next_random, node, process};
use bytes::Bytes;
use rota_core::contract::{Class, Engine, Incarnation, Process, RingId, Seq, Service};
use rota_core::wire::RequestRange;
use rota_ring::wire::{
    Commit, Data, Join, MAX_JOIN_PROCESSES, MergeDetect, OldRing, Packet, Token, decode,
    have_ranges_for,
};

/// A join as large as they get, in bytes.
const LARGEST_JOIN: usize = 36 + 4 + 9 + 4 + 10 * MAX_JOIN_PROCESSES;

fn join_of(sender: Process, ring_seq: u64, procs: &[Process], fails: &[Process]) -> Packet {
    let mut procs: BTreeSet<_> = procs.iter().copied().collect();
    procs.insert(sender);
    Packet::Join(Join {
        cluster: CLUSTER,
        sender,
        ring_seq,
        leaving: false,
        procs,
        fails: fails.iter().copied().collect(),
    })
}

fn strangers(from: u16, count: usize) -> Vec<Process> {
    (from..).take(count).map(|id| process(id, 1)).collect()
}

fn presence_of(sender: Process, ring_seq: u64) -> Packet {
    let ring = RingId {
        ring_seq,
        rep: sender.node,
        incarnation: sender.incarnation,
    };
    Packet::MergeDetect(MergeDetect {
        cluster: CLUSTER,
        sender,
        ring,
    })
}

/// The ring in service and the one that gathers.
fn both() -> [Ring; 2] {
    [Ring::operational(), Ring::gathering()]
}

/// The lies have ended.
fn heals(mut ring: Ring) {
    ring.silent.clear();
    ring.tamper = None;
    ring.works();
}

#[test]
fn garbled_packets_of_membership_do_no_harm() {
    let kinds = |bytes: &Bytes| (3..=6).contains(&(bytes[1] & 0x0f));
    for mut ring in both() {
        let real: BTreeSet<_> = ring.seen.iter().map(|(_, bytes)| bytes.clone()).collect();
        let real: Vec<_> = real.into_iter().filter(kinds).collect();
        assert!(real.len() > 10);
        let mut random = 5;
        for _ in 0..4000 {
            let pick = next_random(&mut random) as usize % real.len();
            let mut bytes = real[pick].to_vec();
            for _ in 0..=next_random(&mut random) % 3 {
                let at = next_random(&mut random) as usize % bytes.len();
                bytes[at] = next_random(&mut random) as u8;
            }
            ring.attack(&bytes);
            if next_random(&mut random).is_multiple_of(10) {
                ring.step();
            }
        }
        heals(ring);
    }
}

#[test]
fn a_join_with_as_many_strangers_as_it_holds() {
    for mut ring in both() {
        let liar = process(2000, 1);
        let crowd = strangers(3000, MAX_JOIN_PROCESSES - 1);
        let sent = ring.attack(&join_of(liar, 1, &crowd, &[]).encode());
        assert!(
            sent <= 6 * usize::from(NODES) * LARGEST_JOIN,
            "{sent} bytes"
        );
        assert!(
            ring.engines
                .iter()
                .all(|e| e.status().state.len() < 100_000)
        );
        heals(ring);
    }
}

#[test]
fn a_member_that_gives_up_more_and_more_strangers() {
    for mut ring in both() {
        let before = ring.sum(|c| c.joins_ignored);
        for crowd in 0..70 {
            let given_up = strangers(1000 + 900 * crowd, 900);
            let member = process(2, 10);
            // The newest ring, so that none of them is stale.
            let ring_seq = ring.id().ring_seq + 100;
            ring.attack(&join_of(member, ring_seq, &[], &given_up).encode());
        }
        assert!(ring.sum(|c| c.joins_ignored) > before, "sets are bounded");
        heals(ring);
    }
}

/// Bytes sent in answer to many different strangers, however fast they come.
fn answers_to(ring: &mut Ring, packet: impl Fn(u16) -> Packet, count: u16) -> (usize, usize) {
    let (mut hostile, mut sent) = (0, 0);
    for id in 0..count {
        let bytes = packet(id).encode();
        hostile += bytes.len();
        sent += ring.attack(&bytes);
    }
    (hostile, sent)
}

/// Eight joins to all and 64 answers between two steps in time, none larger than the largest.
const MOST_AT_ONCE: usize = (8 + 64 + 1) * NODES as usize * LARGEST_JOIN;

#[test]
fn strangers_without_number_get_no_more_than_a_few_joins_out_of_it() {
    for mut ring in both() {
        let shows_up = |id| presence_of(process(10 + id % 60_000, 1), 1);
        let (hostile, sent) = answers_to(&mut ring, shows_up, 20_000);
        assert!(
            sent < hostile && sent <= MOST_AT_ONCE,
            "{sent} for {hostile} bytes"
        );
        heals(ring);
    }
}

#[test]
fn joins_without_number_get_no_more_than_a_few_joins_out_of_it() {
    for mut ring in both() {
        let joins = |id| join_of(process(10 + id % 60_000, 1), 1, &[], &[]);
        let (hostile, sent) = answers_to(&mut ring, joins, 20_000);
        assert!(
            sent < hostile && sent <= MOST_AT_ONCE,
            "{sent} for {hostile} bytes"
        );
        heals(ring);
    }
}

#[test]
fn numbers_of_rings_far_ahead_are_not_believed() {
    let far = |ring: &Ring, ahead: u64| ring.id().ring_seq + ahead;
    for number in [1 << 40, u64::MAX - 4, u64::MAX] {
        for mut ring in both() {
            let (stranger, member) = (process(9, 1), process(2, 10));
            let id = ring.id();
            for packet in [
                presence_of(stranger, number),
                presence_of(member, number),
                join_of(stranger, number, &[], &[]),
                join_of(member, number, &[process(1, 10)], &[]),
            ] {
                assert_eq!(ring.attack(&packet.encode()), 0, "{packet:?}");
            }
            let most = far(&ring, 1 << 20);
            heals_below(ring, id, most);
        }
    }
}

fn heals_below(mut ring: Ring, id: RingId, most: u64) {
    ring.silent.clear();
    ring.works();
    let now = ring.id().ring_seq;
    assert!(
        id.ring_seq <= now && now < most,
        "{now} after {}",
        id.ring_seq
    );
}

#[test]
fn a_commit_token_with_a_number_far_ahead_is_not_agreed_to() {
    let mut ring = Ring::gathering();
    let id = ring.id();
    for ring_seq in [id.ring_seq, id.ring_seq + (1 << 33), u64::MAX - 1, u64::MAX] {
        let before = ring.sum(|c| c.commits_ignored);
        let commit = Commit {
            cluster: CLUSTER,
            ring: RingId { ring_seq, ..id },
            sender: node(1),
            token_seq: 1,
            members: (1..=NODES).map(|id| process(id, 10)).collect(),
            electorates: vec![],
            told: vec![lie(id, 5, 5)],
        };
        assert_eq!(ring.attack(&Packet::Commit(commit).encode()), 0);
        assert_eq!(ring.sum(|c| c.commits_ignored) - before, 6);
    }
    heals(ring);
}

/// What a member could tell of `ring`, and does not mean.
fn lie(ring: RingId, aru: Seq, high: Seq) -> OldRing {
    OldRing {
        ring,
        aru,
        high,
        safe_line: aru,
        obligations: u128::MAX,
        next_message: 1,
        settings: rota_ring::RingConfig::new(1, Vec::new()).settings(),
        counts: Default::default(),
        have: vec![],
        more: true,
    }
}

/// Forms the ring of 1 and 2 anew while `change` forges what 1 and 2 tell on its way to the other, after
/// node 2 has missed packets.
fn form_with_lies(change: impl Fn(&mut Commit) + 'static) {
    let mut ring = Ring::operational();
    let lied = Rc::new(Cell::new(0));
    let count = Rc::clone(&lied);
    let id = ring.id();
    ring.tamper = Some(Box::new(move |_, to, packet| match packet {
        Packet::Data(data) if data.ring == id && to == 1 && data.seq % 2 == 0 => None,
        Packet::Commit(mut commit) => {
            let before = commit.clone();
            change(&mut commit);
            count.set(count.get() + u32::from(commit != before));
            Some(Packet::Commit(commit))
        }
        packet => Some(packet),
    }));
    for _ in 0..20 {
        for at in 0..2 {
            let now = ring.now;
            let submitted = ring.engines[at].submit(now, Service::Safe, &[1; 1300]);
            submitted.expect("there is room");
            ring.carry_out(at);
        }
    }
    (0..3).for_each(|_| ring.step());
    ring.silent.insert(2);
    (0..3000).for_each(|_| ring.step());
    assert!(lied.get() > 0, "nobody was lied to");
    heals(ring);
}

#[test]
fn whatever_a_commit_token_says_of_a_rings_packets_nobody_hangs() {
    let far = 1 << 60;
    for (aru, high) in [
        (0, far),
        (0, u64::MAX),
        (far, far),
        (u64::MAX, u64::MAX),
        (3, 4),
    ] {
        form_with_lies(move |commit| {
            for told in &mut commit.told {
                *told = OldRing {
                    next_message: told.next_message,
                    ..lie(told.ring, aru, high)
                };
            }
        });
        // Only the other's part, so that this member's own stays as it told it.
        form_with_lies(move |commit| {
            if commit.is_complete() {
                let last = commit.told.len() - 1;
                commit.told[last] = lie(commit.told[last].ring, aru, high);
            }
        });
    }
}

#[test]
fn whatever_ranges_a_commit_token_lists_nobody_hangs() {
    form_with_lies(|commit| {
        let ranges = have_ranges_for(commit.members.len()) as u64;
        if let (true, Some(told)) = (commit.is_complete(), commit.told.last_mut()) {
            let range = |index: u64| RequestRange {
                first: 1 + (index << 33),
                count: u32::MAX,
            };
            *told = OldRing {
                have: (0..ranges).map(range).collect(),
                ..lie(told.ring, 0, 1 << 60)
            };
        }
    });
}

#[test]
fn whatever_else_a_commit_token_says_nobody_panics() {
    form_with_lies(|commit| {
        for told in &mut commit.told {
            (told.next_message, told.obligations) = (u64::MAX, u128::MAX);
        }
    });
    form_with_lies(|commit| {
        commit
            .told
            .iter_mut()
            .for_each(|told| told.ring.ring_seq += 1)
    });
    form_with_lies(|commit| commit.token_seq = 2 * commit.members.len() as u64);
    form_with_lies(|commit| commit.token_seq = 0);
    form_with_lies(|commit| commit.told.clear());
    form_with_lies(|commit| drop(commit.told.pop()));
    form_with_lies(|commit| {
        commit
            .told
            .resize(commit.members.len(), commit.told[0].clone())
    });
    form_with_lies(|commit| commit.members.truncate(1));
    form_with_lies(|commit| commit.members[0].incarnation = Incarnation(11));
    form_with_lies(|commit| {
        (commit.members[1].incarnation, commit.ring.ring_seq) = (Incarnation(11), u64::MAX);
    });
    form_with_lies(|commit| commit.members.push(process(9, 9)));
    form_with_lies(|commit| {
        commit.members.extend(strangers(10, 126));
    });
    form_with_lies(|commit| commit.ring.ring_seq += 1 << 20);
}

/// A member that is not told of again what it has told itself would deliver a transitional configuration
/// without itself.
#[test]
fn what_a_member_has_told_itself_has_to_come_back_as_it_was() {
    let mut ring = Ring::operational();
    let before = ring.sum(|c| c.configurations);
    ring.tamper = Some(Box::new(|_, _, packet| match packet {
        Packet::Commit(mut commit) => {
            if commit.is_complete() {
                commit
                    .told
                    .iter_mut()
                    .for_each(|told| told.ring.ring_seq += 1);
            }
            Some(Packet::Commit(commit))
        }
        packet => Some(packet),
    }));
    ring.silent.insert(2);
    for _ in 0..4000 {
        ring.step();
        assert!(ring.phase(0) != "recovering" && ring.phase(1) != "recovering");
    }
    let alone = ring.sum(|c| c.configurations) - before;
    assert!(alone <= 1, "only the silent node, alone, has a new ring");
    heals(ring);
}

/// Forms the ring of 1 and 2 anew while `change` forges what is wrapped; answers with how many wrapped
/// packets there were.
fn recover_with(change: impl Fn(&mut Data) + 'static) -> u32 {
    let mut ring = Ring::operational();
    let wrapped = Rc::new(Cell::new(0));
    let count = Rc::clone(&wrapped);
    let id = ring.id();
    ring.tamper = Some(Box::new(move |_, to, packet| match packet {
        Packet::Data(data) if data.ring == id && to == 1 && data.seq % 2 == 0 => None,
        Packet::Data(mut data) if data.encapsulated => {
            change(&mut data);
            count.set(count.get() + 1);
            Some(Packet::Data(data))
        }
        packet => Some(packet),
    }));
    for _ in 0..40 {
        let now = ring.now;
        let submitted = ring.engines[0].submit(now, Service::Agreed, &[1; 1300]);
        submitted.expect("there is room");
        ring.carry_out(0);
    }
    (0..2).for_each(|_| ring.step());
    ring.silent.insert(2);
    (0..3000).for_each(|_| ring.step());
    heals(ring);
    wrapped.get()
}

/// Service, `seq` and sender of a packet of an old ring, and its frame.
fn inside(service: u8, seq: Seq, sender: u16, frame: &[u8]) -> Vec<u8> {
    let mut inner = vec![service];
    inner.extend_from_slice(&seq.to_le_bytes());
    inner.extend_from_slice(&sender.to_le_bytes());
    inner.extend_from_slice(frame);
    inner
}

#[test]
fn nonsense_inside_wrapped_packets_does_no_harm() {
    assert!(recover_with(|_| ()) > 5, "there was something to recover");
    let plain = frame_with(b"x");
    let whole = plain.bytes().to_vec();
    for inner in [
        vec![],
        vec![3; 10],
        vec![0xff; 100],
        inside(3, 7, 1, &[]),
        inside(9, 7, 1, &whole),
        inside(3, 0, 1, &whole),
        inside(3, 7, 0, &whole),
        inside(3, 7, 9, &whole),
        inside(3, u64::MAX, 1, &whole),
        inside(3, 1 << 40, 1, &whole),
        inside(3, 8, 3, &whole),
    ] {
        recover_with(move |data| data.frame = frame_with(&inner));
    }
}

#[test]
fn wrapped_packets_inside_wrapped_packets_do_no_harm() {
    recover_with(|data| {
        let nested = inside(3, data.seq, 1, data.frame.bytes());
        data.frame = frame_with(&nested);
    });
    recover_with(|data| data.seq = u64::MAX);
    recover_with(|data| data.sender = node(3));
}

#[test]
fn a_ring_in_service_takes_nothing_wrapped() {
    let mut ring = Ring::operational();
    let (id, seq) = (ring.id(), ring.last_token().seq);
    let forged = |sender, seq| {
        Packet::Data(Data {
            encapsulated: true,
            ..forged_data(id, sender, seq)
        })
    };
    let packets = [
        forged(2, 1),
        forged(2, seq + 1),
        forged(3, seq + 1),
        forged(3, u64::MAX),
    ];
    ring.shrugs_off(&packets, |c| c.packets_duplicate);
}

/// A forged token of the ring to be that says somebody still has something to send.
#[test]
fn a_flag_that_nobody_has_set_keeps_no_ring_from_forming_for_ever() {
    let mut ring = Ring::operational();
    let flags = Rc::new(Cell::new(0));
    let count = Rc::clone(&flags);
    let id = ring.id();
    ring.tamper = Some(Box::new(move |_, _, packet| match packet {
        Packet::Token(token) if token.ring != id => {
            count.set(count.get() + 1);
            Some(Packet::Token(Token {
                recovering: true,
                ..token
            }))
        }
        packet => Some(packet),
    }));
    ring.silent.insert(2);
    (0..2000).for_each(|_| ring.step());
    assert!(flags.get() > 0);
    heals(ring);
}

/// Every packet of membership that a node could be told at any time, in every phase of forming a ring.
#[test]
fn forged_packets_while_a_ring_forms_do_no_harm() {
    let mut random = 6;
    for seed in 0..40 {
        let mut ring = if seed % 2 == 0 {
            Ring::started()
        } else {
            Ring::gathering()
        };
        for _ in 0..200 {
            ring.step();
            let seen = ring.seen.len();
            let pick = next_random(&mut random) as usize % seen.min(40);
            let bytes = ring.seen[seen - 1 - pick].1.clone();
            let forged = forge(decode(bytes).expect("it was sent"), &mut random);
            let at = next_random(&mut random) as usize % usize::from(NODES);
            ring.receive(at, Class::Token, Bytes::from(forged.encode()));
            ring.carry_out(at);
        }
        heals(ring);
    }
}

fn forge(packet: Packet, random: &mut u64) -> Packet {
    let mut any = |end: u64| next_random(random) % end;
    match packet {
        Packet::Join(mut join) => {
            let who = process(1 + any(4) as u16, 9 + any(3));
            match any(3) {
                0 => drop(join.procs.insert(who)),
                1 if who != join.sender => drop(join.fails.insert(who)),
                _ => join.ring_seq = join.ring_seq.saturating_add(any(1 << 20)),
            }
            Packet::Join(join)
        }
        Packet::Commit(mut commit) => {
            match any(3) {
                0 => commit.ring.ring_seq += any(10),
                1 => commit.token_seq = any(2 * commit.members.len() as u64 + 1),
                _ => {
                    if let Some(told) = commit.told.last_mut() {
                        told.high += any(1 << 50);
                    }
                }
            }
            Packet::Commit(commit)
        }
        Packet::MergeDetect(mut presence) => {
            presence.sender = process(1 + any(5) as u16, 9 + any(3));
            Packet::MergeDetect(presence)
        }
        Packet::Data(mut data) => {
            (data.encapsulated, data.seq) = (any(2) == 0, 1 + any(1 << 12));
            Packet::Data(data)
        }
        other => other,
    }
}
