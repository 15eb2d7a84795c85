//! P-19 to P-23: the commit token is lost, repeated, out of date, or its holder dies, at each of its hops.

use std::collections::BTreeSet;

use rota_core::contract::{Process, Service};
use rota_ring::wire::{Commit, Join, Packet, decode};

use crate::net::{Fate, Flying, Kind, MILLI, Net, SECOND, config, id};

/// A ring that has lost its token in the middle of things, and everybody knows.
pub fn broken(nodes: usize) -> Net {
    let mut net = Net::formed(nodes);
    for index in 0..3 * nodes {
        let service = [Service::Safe, Service::Agreed][index % 2];
        net.submit(index % nodes, service, &[index as u8; 700]);
    }
    // Each packet gets to every second node.
    let (old, mut hops) = (net.ring(0), 0);
    net.rule(move |flying| match &*flying.packet {
        Packet::Data(data) if data.ring == old && data.seq as usize % 2 == flying.to % 2 => {
            Fate::Lose
        }
        Packet::Token(token) if token.ring == old => {
            hops += 1;
            if hops > 3 * nodes {
                Fate::Lose
            } else {
                Fate::Pass
            }
        }
        _ => Fate::Pass,
    });
    net.run_until("nobody has a ring", |net| {
        net.alive().iter().all(|&at| net.phase(at) != "operational")
    });
    net.no_rule();
    net
}

fn hop(flying: &Flying) -> Option<u64> {
    match &*flying.packet {
        Packet::Commit(commit) => Some(commit.token_seq),
        _ => None,
    }
}

/// Runs to where the commit token is about to arrive for the `wanted`th time.
fn run_to_hop(net: &mut Net, wanted: u64) -> bool {
    net.run_to(|flying| hop(flying) == Some(wanted))
}

fn join_of(net: &Net, sender: usize) -> Packet {
    let procs: BTreeSet<Process> = net.hosts.iter().map(|host| host.me).collect();
    let sender_seq = (0..net.hosts.len()).map(|at| net.ring(at).ring_seq);
    Packet::Join(Join {
        cluster: 1,
        sender: net.hosts[sender].me,
        ring_seq: sender_seq.max().unwrap_or(0) + 4,
        leaving: false,
        procs,
        fails: BTreeSet::new(),
    })
}

/// Of each ring the representative makes one first token, however often it sees its commit token.
#[test]
fn p_19_commit_tokens_that_come_twice_make_one_ring_with_one_token() {
    for nodes in 2..=4 {
        for late in [0, 10_000, 40_000, 100_000, 300_000, 2 * MILLI] {
            let mut net = broken(nodes);
            net.keeps_log = true;
            net.rule(move |flying| match flying.kind {
                Kind::Commit => Fate::Twice(late),
                _ => Fate::Pass,
            });
            net.come_together();
            let firsts = |flying: &&Flying| {
                matches!(&*flying.packet, Packet::Token(token)
                    if token.token_seq == 1 && token.ring == net.ring(0))
            };
            let firsts: Vec<_> = net.log.iter().filter(firsts).collect();
            let distinct: BTreeSet<&[u8]> = firsts.iter().map(|f| &f.bytes[..]).collect();
            assert!(distinct.len() <= 1, "{nodes} nodes, {late} ns later");
            let failed: u64 = (0..nodes)
                .map(|at| net.counters(at).failed_recoveries)
                .sum();
            assert_eq!(failed, 0);
            net.rest();
        }
    }
}

/// While a member is committed to a ring, the complete token of an earlier attempt is nothing to it.
#[test]
fn p_20_a_second_visit_of_an_older_attempt_is_refused() {
    for nodes in 2..=4 {
        let mut net = broken(nodes);
        net.keeps_log = true;
        net.rule(|flying| match &*flying.packet {
            Packet::Commit(commit) if commit.is_complete() => Fate::Hold,
            _ => Fate::Pass,
        });
        net.run_until("the first attempt is given up", |net| {
            net.held.len() > 1 && (0..nodes).all(|at| net.phase(at) == "gathering")
        });
        net.no_rule();
        let older = std::mem::take(&mut net.held);
        net.run_until("the last commits to the next", |net| {
            net.phase(nodes - 1) == "committing"
        });
        for mut flying in older {
            for at in 0..nodes {
                if net.phase(at) == "committing" {
                    flying.to = at;
                    net.fly(flying.clone(), 0);
                    net.step();
                    assert_eq!(net.phase(at), "committing");
                }
            }
        }
        let failed: u64 = (0..nodes)
            .map(|at| net.counters(at).failed_recoveries)
            .sum();
        assert_eq!(failed, 0);
        net.rest();
    }
}

/// The first copy is lost; it is sent again, and nobody gathers anew for it.
#[test]
fn p_21_the_commit_token_is_lost_at_each_hop() {
    for nodes in 2..=4 {
        for hop in 1..=2 * nodes as u64 {
            let mut net = broken(nodes);
            let gathers: u64 = (0..nodes).map(|at| net.counters(at).gathers).sum();
            assert!(run_to_hop(&mut net, hop), "{nodes} nodes, hop {hop}");
            net.lose_next();
            net.come_together();
            let after: u64 = (0..nodes).map(|at| net.counters(at).gathers).sum();
            assert_eq!(gathers, after, "{nodes} nodes, hop {hop}");
            net.rest();
        }
    }
}

/// All copies of one hop are lost: the ring is given up, and the next one forms with everybody.
#[test]
fn p_21_all_copies_of_the_commit_token_are_lost_at_each_hop() {
    for nodes in 2..=4 {
        for lost in 1..=2 * nodes as u64 {
            let mut net = broken(nodes);
            let mut ring = None;
            net.rule(move |flying| match &*flying.packet {
                Packet::Commit(commit) if commit.token_seq == lost => {
                    let first = *ring.get_or_insert(commit.ring);
                    let hit = first == commit.ring;
                    if hit { Fate::Lose } else { Fate::Pass }
                }
                _ => Fate::Pass,
            });
            net.come_together();
            for at in 0..nodes {
                let all: Vec<_> = (0..nodes).collect();
                assert_eq!(net.transitional(at), all, "{nodes} nodes, hop {lost}");
            }
            net.rest();
        }
    }
}

/// Who holds it dies: before it has read it, after it has sent it on, or with that still unsent.
#[test]
fn p_21_the_holder_of_the_commit_token_dies_at_each_hop() {
    for nodes in 2..=4 {
        for hop in 1..=2 * nodes as u64 {
            for (reads, sends) in [(false, false), (true, false), (true, true)] {
                let mut net = broken(nodes);
                assert!(run_to_hop(&mut net, hop), "{nodes} nodes, hop {hop}");
                let holder = net.next().expect("it arrives").to;
                die(&mut net, holder, reads, sends);
                let alive = net.alive();
                let mut net = net.rest();
                assert_eq!(net.members(alive[0]), alive, "{nodes} nodes, hop {hop}");
                net.restart(holder);
                net.rest();
            }
        }
    }
}

fn die(net: &mut Net, holder: usize, reads: bool, sends: bool) {
    if reads {
        if !sends {
            let others = (0..net.hosts.len()).filter(|&to| to != holder);
            net.cut.extend(others.map(|to| (holder, to)));
        }
        net.step();
    }
    net.kill(holder);
    net.cut.clear();
}

/// A member says at that moment that it wants the ring anew.
#[test]
fn p_21_a_join_of_a_member_arrives_at_each_hop() {
    for nodes in 2..=4 {
        for hop in 1..=2 * nodes as u64 {
            for sender in 0..nodes {
                let mut net = broken(nodes);
                assert!(run_to_hop(&mut net, hop));
                let join = join_of(&net, sender);
                for to in (0..nodes).filter(|&to| to != sender) {
                    net.inject(sender, to, &join, 0);
                }
                let before = net.now;
                let what = format!("{nodes} nodes, hop {hop}, join of {sender}");
                net.run_until(&what, Net::is_whole);
                assert!(
                    net.now.since(before) < 3 * net.timers().token_loss,
                    "{what}"
                );
                net.rest();
            }
        }
    }
}

/// As many members as there may be, each with as many ranges as it may list: the commit token still fits
/// one datagram, and a datagram is lost or comes whole.
#[test]
fn p_22_the_largest_commit_token_fits_a_datagram() {
    for nodes in [1, 16, 64, 128] {
        let ranges = rota_ring::wire::have_ranges_for(nodes);
        assert!(ranges > 0);
        let ring = Net::formed(1).ring(0);
        let range = |first| rota_core::wire::RequestRange { first, count: 1 };
        let told = rota_ring::wire::OldRing {
            ring,
            aru: 0,
            high: 3 * ranges as u64,
            safe_line: 0,
            obligations: u128::MAX >> (128 - nodes),
            next_message: 1,
            settings: rota_ring::RingConfig::new(1, Vec::new()).settings(),
            counts: Default::default(),
            have: (1..=ranges as u64).map(|n| range(3 * n)).collect(),
            more: true,
        };
        let member = |at: usize| Process {
            node: id(at),
            incarnation: ring.incarnation,
        };
        let commit = Packet::Commit(Commit {
            cluster: 1,
            ring,
            sender: id(0),
            token_seq: nodes as u64,
            members: (0..nodes).map(member).collect(),
            electorates: vec![],
            told: vec![told; nodes],
        });
        let bytes = commit.encode();
        assert!(bytes.len() <= rota_core::contract::Burst::MAX_BYTES);
        assert_eq!(decode(bytes.into()), Ok(commit));
    }
}

/// And a ring recovers from many holes in the buffers of many members.
#[test]
fn p_22_many_members_with_many_holes() {
    let mut config = config(16);
    config.windows.global = 1600;
    let mut net = Net::formed_with(config);
    for at in 0..16 {
        (0..30).for_each(|n| net.submit(at, Service::Agreed, &[n; 1200]));
    }
    net.rule(|flying| match &*flying.packet {
        Packet::Data(data) if (data.seq as usize + flying.to).is_multiple_of(2) => Fate::Lose,
        Packet::Token(token) if token.seq > 400 => Fate::Lose,
        _ => Fate::Pass,
    });
    net.run_until("everybody gathers", |net| {
        (0..16).all(|at| net.phase(at) == "gathering")
    });
    net.keeps_log = true;
    let net = net.rest();
    let most = net
        .log
        .iter()
        .filter(|f| f.kind == Kind::Commit)
        .map(|f| f.bytes.len())
        .max();
    assert!(
        most > Some(1500),
        "it needs more than an Ethernet frame: {most:?}"
    );
    assert_eq!(net.transitional(7).len(), 16);
    let recovered: u64 = (0..16).map(|at| net.counters(at).packets_recovered).sum();
    assert!(recovered > 16 * 100);
}

/// The representative dies after the first rotation, after the second, and after it has made the first token.
#[test]
fn p_23_the_representative_dies_after_each_rotation() {
    for nodes in 2..=4 {
        for (hop, reads) in [(1, false), (2, false), (2, true)] {
            for sends in [false, true] {
                let mut net = broken(nodes);
                assert!(run_to_hop(&mut net, hop * nodes as u64));
                assert_eq!(net.next().expect("it arrives").to, 0);
                die(&mut net, 0, reads, sends);
                let before = net.now;
                let rest: Vec<_> = (1..nodes).collect();
                net.run_until("the others go on", |net| {
                    net.is_whole() && net.members(1) == rest
                });
                let timers = net.timers();
                let most = 2 * timers.token_loss + timers.consensus + SECOND / 10;
                assert!(net.now.since(before) <= most);
                net.rest();
            }
        }
    }
}
