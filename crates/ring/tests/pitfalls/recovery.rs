//! P-24 to P-35: the fate of the messages of a ring that has broken.

use std::collections::BTreeSet;

use rota_core::contract::{ConfigurationKind, MessageId, Service};
use rota_ring::RingConfig;
use rota_ring::wire::{DATA_OVERHEAD_BYTES, Packet, WRAPPER_BYTES};

use crate::commit::broken;
use crate::net::{Fate, Flying, Kind, MILLI, Net, config};

/// Loses all tokens until everybody who lives gathers; what else is lost says `also`.
fn break_ring(net: &mut Net, also: impl Fn(&Flying) -> bool + 'static) {
    let old: Vec<_> = net.alive().iter().map(|&at| net.ring(at)).collect();
    net.rule(move |flying| match &*flying.packet {
        Packet::Token(token) if old.contains(&token.ring) => Fate::Lose,
        _ if also(flying) => Fate::Lose,
        _ => Fate::Pass,
    });
    net.run_until("everybody gathers", |net| {
        net.alive().iter().all(|&at| net.phase(at) == "gathering")
    });
    net.no_rule();
}

fn data_to(flying: &Flying, to: usize) -> bool {
    flying.kind == Kind::Data && flying.to == to
}

/// P-27: on a network that loses nothing, three rotations after a ring was installed everybody has
/// everything, and says so.
pub fn aru_catches_up(net: &mut Net) {
    let ring = net.ring(net.alive()[0]);
    let is_token = |flying: &Flying| matches!(&*flying.packet, Packet::Token(t) if t.ring == ring);
    let mut last = (0, 1);
    for _ in 0..3 * net.alive().len() + 1 {
        assert!(net.run_to(is_token), "the token goes round");
        if let Some(Packet::Token(token)) = net.next().map(|flying| &*flying.packet) {
            last = (token.aru, token.seq);
        }
        net.step();
    }
    assert_eq!(last.0, last.1, "the aru has not reached seq");
}

/// Repeating what a deaf member asks for must not use up the window.
fn roomy(mut config: RingConfig) -> RingConfig {
    (config.windows.outstanding, config.windows.global) = (20_000, 20_000);
    (config.windows.personal, config.windows.accelerated) = (1600, 1600);
    config
}

/// One member has got none of so many packets.
fn recover(count: usize) -> Net {
    let mut net = Net::formed_with(roomy(config(3)));
    let old = net.ring(0);
    net.rule(|flying| {
        if data_to(flying, 2) {
            Fate::Lose
        } else {
            Fate::Pass
        }
    });
    for index in 0..count {
        let service = [Service::Agreed, Service::Safe][index % 2];
        net.submit(0, service, &vec![index as u8; 1300]);
    }
    net.run_until("the others have it", |net| {
        net.engine(1).has_received(old, count as u64) != Some(false) || count == 0
    });
    break_ring(&mut net, |flying| data_to(flying, 2));
    net
}

#[test]
fn p_24_and_p_27_any_number_of_messages_is_recovered() {
    for count in [0, 1, 50, 206, 500, 1600, 16_000] {
        let mut net = recover(count);
        net.keeps_log = count < 5000;
        net.come_together();
        assert_eq!(net.transitional(2), [0, 1, 2], "{count}");
        assert_eq!(net.hosts[2].app.got.len(), count);
        assert!(net.counters(2).packets_recovered >= count as u64);
        rounds_are_bounded(&net, count);
        aru_catches_up(&mut net);
        net.rest();
    }
}

/// P-32: as many rotations as the packets need, and eight more.
fn rounds_are_bounded(net: &Net, packets: usize) {
    let ring = net.ring(0);
    let to_rep = |flying: &&Flying| {
        flying.to == 0 && matches!(&*flying.packet, Packet::Token(t) if t.ring == ring)
    };
    let rounds = net.log.iter().filter(to_rep).count();
    let window = net.config.windows.personal as usize;
    let most = 8 + 2 * packets.div_ceil(window);
    assert!(rounds <= most, "{rounds} rotations for {packets} packets");
}

/// Losing nothing, no recovery takes more than eight rotations and those its packets need.
#[test]
fn p_32_no_recovery_takes_rounds_without_end() {
    for nodes in 2..=8 {
        let mut net = broken(nodes);
        net.keeps_log = true;
        net.come_together();
        rounds_are_bounded(&net, 3 * nodes);
        aru_catches_up(&mut net);
        net.rest();
    }
}

/// Losing much, it still ends; no ring is given up for it as long as the tokens get through.
#[test]
fn p_32_a_recovery_that_loses_a_third_of_its_packets_ends() {
    let mut net = recover(500);
    let mut random = 1_u64;
    net.rule(move |flying| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let lost = flying.kind == Kind::Data && (random >> 40).is_multiple_of(3);
        if lost { Fate::Lose } else { Fate::Pass }
    });
    net.come_together();
    assert_eq!(net.hosts[2].app.got.len(), 500);
    assert_eq!(
        (0..3)
            .map(|at| net.counters(at).failed_recoveries)
            .sum::<u64>(),
        0
    );
    net.rest();
}

/// Who sends the packets one to eight of a ring of four; 2 and 3 are going to die.
const SENDERS: [usize; 8] = [3, 0, 2, 3, 1, 2, 0, 3];

fn with_holes(holes: BTreeSet<u64>, services: [Service; 2]) -> Net {
    let mut net = Net::formed(4);
    let to_survivor = |flying: &Flying| flying.to < 2;
    net.rule(move |flying| match &*flying.packet {
        Packet::Data(data) if to_survivor(flying) && holes.contains(&data.seq) => Fate::Lose,
        _ => Fate::Pass,
    });
    for (index, &sender) in SENDERS.iter().enumerate() {
        net.submit(sender, services[index % 2], &[index as u8 + 1]);
        let (ring, seq) = (net.ring(sender), index as u64 + 1);
        net.run_until("it has its place", |net| {
            net.engine(sender).has_received(ring, seq) == Some(true)
        });
    }
    net.run_for(MILLI);
    net.kill(2);
    net.kill(3);
    net
}

/// All subsets of the packets of those who die are missing at all who go on. Before the first hole
/// everything is delivered, behind it what those send who go on.
#[test]
fn p_25_holes_of_every_shape() {
    let mortal: Vec<u64> = (1..=8)
        .filter(|seq| SENDERS[*seq as usize - 1] >= 2)
        .collect();
    for services in [
        [Service::Agreed; 2],
        [Service::Safe; 2],
        [Service::Agreed, Service::Safe],
    ] {
        for subset in 0..1_u32 << mortal.len() {
            let lost = |(bit, _): &(usize, &u64)| subset & 1 << bit != 0;
            let holes = mortal.iter().enumerate().filter(lost).map(|(_, seq)| *seq);
            let holes: BTreeSet<u64> = holes.collect();
            let mut net = with_holes(holes.clone(), services);
            let first = holes.first().copied().unwrap_or(9);
            let expected: Vec<u8> = (1..=8)
                .filter(|&seq| seq < first || SENDERS[seq as usize - 1] < 2)
                .map(|seq| seq as u8)
                .collect();
            net.come_together();
            aru_catches_up(&mut net);
            let net = net.rest();
            for at in 0..2 {
                let got = net.hosts[at]
                    .app
                    .got
                    .iter()
                    .map(|(_, _, payload)| payload[0]);
                let got: Vec<u8> = got.collect();
                assert_eq!(got, expected, "holes {holes:?}, {services:?}");
            }
        }
    }
}

fn ids(net: &Net, at: usize) -> Vec<MessageId> {
    net.hosts[at].app.got.iter().map(|(_, id, _)| *id).collect()
}

/// Only one member can still get a packet of one that is gone: before it has told what it has, or after.
#[test]
fn p_26_a_packet_comes_before_or_after_its_receiver_has_told() {
    for phase in ["gathering", "committing", "recovering"] {
        let mut net = Net::formed(3);
        net.rule(|flying| match (flying.kind, flying.to) {
            (Kind::Data, 1) => Fate::Hold,
            (Kind::Data, _) => Fate::Lose,
            _ => Fate::Pass,
        });
        net.submit(2, Service::Safe, b"late");
        net.run_until("it is sent", |net| !net.held.is_empty());
        net.kill(2);
        net.no_rule();
        net.run_until(phase, |net| net.phase(1) == phase);
        let before = net.counters(1).datagrams_foreign_ring;
        let late = net.held[0].clone();
        net.held.clear();
        net.fly(late, 0);
        net.step();
        let refused = net.counters(1).datagrams_foreign_ring - before;
        let net = net.rest();
        let got = usize::from(phase == "gathering");
        assert_eq!(refused as usize, 1 - got, "{phase}");
        assert_eq!(ids(&net, 0), ids(&net, 1), "{phase}");
        assert_eq!(ids(&net, 0).len(), got, "{phase}");
    }
}

/// The first to install the ring is on its own from then on. What it has delivered before its
/// transitional configuration, and in it, the others deliver there, too.
#[test]
fn p_28_all_deliver_the_same_before_the_transitional_configuration() {
    for nodes in 2..=6 {
        let mut net = broken(nodes);
        let first = first_to_install(&mut net);
        // The token that would have told the others is lost.
        net.lose_all();
        net.part(&[first]);
        net.run_until("the others are on a ring", |net| {
            (0..nodes).all(|at| net.phase(at) == "operational" && net.members(at).len() < nodes)
        });
        net.check(false);
        net.rest();
    }
}

/// Runs until one has installed the ring and the others have not.
fn first_to_install(net: &mut Net) -> usize {
    let first = |net: &Net| {
        let alive = net.alive();
        let on = |at: &usize| net.phase(*at) == "operational";
        let recovers = |at: usize| net.engine(at).recovering();
        alive.iter().copied().find(|at| {
            on(at)
                && alive
                    .iter()
                    .any(|&other| recovers(other) == Some(net.ring(*at)))
        })
    };
    net.run_until("somebody installs", |net| first(net).is_some());
    first(net).expect("it has")
}

/// One to five recoveries fail, each as its first member has installed the ring: it dies, or is cut off
/// and comes back.
#[test]
fn p_29_chains_of_failed_recoveries_keep_what_was_promised() {
    for length in 1..=5 {
        for dies in [true, false] {
            let mut net = broken(length + 2);
            for _ in 0..length {
                let first = first_to_install(&mut net);
                // The token that would have told the others is lost.
                net.lose_all();
                if dies {
                    net.kill(first);
                } else {
                    net.part(&[first]);
                }
                net.run_until("it fails", |net| {
                    let others = net
                        .alive()
                        .into_iter()
                        .filter(|&at| net.phase(at) != "operational");
                    let mut others = others.peekable();
                    others.peek().is_some() && others.all(|at| net.phase(at) == "gathering")
                });
            }
            let kept: u64 = net
                .alive()
                .iter()
                .map(|&at| net.counters(at).obligations_kept)
                .sum();
            assert!(kept > 0, "{length} failures");
            net.rest();
        }
    }
}

/// Nothing that everybody has is asked for again, no safe line falls, and nothing is delivered twice, over
/// many rings in a row.
#[test]
fn p_30_the_safe_line_of_a_ring_never_falls() {
    let mut net = Net::formed(4);
    let mut lines = std::collections::BTreeMap::new();
    for turn in 0..12_usize {
        for index in 0..20 {
            let service = [Service::Safe, Service::Agreed][index % 2];
            net.submit(index % 4, service, &[turn as u8; 900]);
        }
        let (lost, old) = (turn % 4, net.ring(0));
        net.rule(move |flying| match &*flying.packet {
            Packet::Data(data) if data.seq as usize % 4 == lost => Fate::Lose,
            Packet::Token(token) if token.ring == old && token.token_seq > 40 => Fate::Lose,
            _ => Fate::Pass,
        });
        while (0..4).any(|at| net.phase(at) != "gathering") {
            net.step();
            for at in 0..4 {
                let ring = net.engine(at).ordering().expect("it is on a ring");
                let line: &mut u64 = lines.entry((at, ring.ring())).or_default();
                assert!(ring.safe_line() >= *line, "node {at}");
                *line = ring.safe_line();
            }
        }
        net.no_rule();
        net.come_together();
        aru_catches_up(&mut net);
    }
    net.rest();
}

/// The token that makes a member leave recovery, and each of the next rotations' tokens, is lost once.
#[test]
fn p_31_the_first_operational_token_is_lost_at_each_hop() {
    for nodes in 2..=4 {
        for hop in 0..3 * nodes {
            let mut net = broken(nodes);
            first_to_install(&mut net);
            let ring = (0..nodes).find_map(|at| net.engine(at).recovering());
            let is_token = |flying: &Flying| matches!(&*flying.packet, Packet::Token(token) if Some(token.ring) == ring);
            for _ in 0..hop {
                assert!(net.run_to(is_token));
                net.step();
            }
            assert!(net.run_to(is_token));
            net.lose_next();
            let gathers: u64 = (0..nodes).map(|at| net.counters(at).gathers).sum();
            net.come_together();
            net.submit(0, Service::Safe, b"after");
            let net = net.rest();
            assert_eq!(
                Some(net.ring(0)),
                ring,
                "the ring stays: {nodes} nodes, hop {hop}"
            );
            assert_eq!(
                (0..nodes).map(|at| net.counters(at).gathers).sum::<u64>(),
                gathers
            );
        }
    }
}

/// A node that joins dies at each step of it, or is cut off: the ring goes on without a ghost of it.
#[test]
fn p_33_a_node_joins_and_dies_at_each_step() {
    for step in 0..60 {
        for dies in [true, false] {
            let mut net = Net::formed(3);
            net.kill(2);
            net.submit(0, Service::Safe, b"before");
            net.come_together();
            net.restart(2);
            (0..step).for_each(|_| net.step());
            net.submit(1, Service::Safe, b"during");
            if dies {
                net.kill(2);
            } else {
                net.part(&[2]);
            }
            net.run_until("the others go on", |net| {
                [0, 1]
                    .iter()
                    .all(|&at| net.phase(at) == "operational" && net.members(at) == [0, 1])
                    && net.ring(0) == net.ring(1)
            });
            let dead = net.hosts[2].me;
            let last = net.confs(0).last().expect("it has one");
            assert!(!last.members.contains(&dead), "a ghost");
            net.rest();
        }
    }
}

/// A message of many packets is half sent when the ring breaks. Its sender goes on: it is sent whole in
/// the next ring. Its sender is gone: nobody gets any of it.
#[test]
fn p_34_a_message_in_parts_spans_two_rings() {
    for parts_sent in [2, 4, 6] {
        for dies in [false, true] {
            let mut config = config(3);
            (config.windows.personal, config.windows.accelerated) = (2, 2);
            let mut net = Net::formed_with(config);
            let old = net.ring(0);
            net.submit(2, Service::Agreed, &vec![7; 12 * 1400]);
            net.run_until("half of it is sent", |net| {
                net.engine(0).has_received(old, parts_sent) == Some(true)
            });
            if dies {
                net.kill(2);
            }
            break_ring(&mut net, |_| false);
            let net = net.rest();
            for at in net.alive() {
                let got = &net.hosts[at].app.got;
                assert_eq!(got.len(), usize::from(!dies), "{parts_sent} parts");
                for (conf, _, payload) in got {
                    assert_eq!(
                        *conf,
                        ConfigurationKind::Regular(net.ring(at)),
                        "whole, and there"
                    );
                    assert_eq!(payload.len(), 12 * 1400);
                }
                assert_eq!(net.counters(at).messages_broken, 0);
            }
        }
    }
}

/// Whatever the size of a message, no packet is too large for a datagram when it is wrapped.
#[test]
fn p_35_payloads_around_the_size_of_a_packet() {
    let overhead = 2 * (DATA_OVERHEAD_BYTES + WRAPPER_BYTES);
    for datagram_bytes in [512, 1472, 8972] {
        let mut config = roomy(config(3));
        config.datagram_bytes = datagram_bytes;
        let mut net = Net::formed_with(config);
        net.rule(|flying| {
            if data_to(flying, 2) {
                Fate::Lose
            } else {
                Fate::Pass
            }
        });
        for less in 0..=overhead {
            net.submit(0, Service::Safe, &vec![less as u8; datagram_bytes - less]);
            // Each in packets of its own.
            net.run_until("it is sent", |net| net.engine(0).backlog() == 0);
        }
        net.keeps_log = true;
        break_ring(&mut net, |flying| data_to(flying, 2));
        net.come_together();
        assert_eq!(net.hosts[2].app.got.len(), overhead + 1);
        let data = net.log.iter().filter(|flying| flying.kind == Kind::Data);
        let wrapped = data.filter(|f| matches!(&*f.packet, Packet::Data(d) if d.encapsulated));
        let sizes: BTreeSet<usize> = wrapped.map(|flying| flying.bytes.len()).collect();
        let largest = sizes.last().copied().unwrap_or(0);
        assert!(
            largest <= datagram_bytes && largest + 12 > datagram_bytes,
            "{largest} bytes"
        );
        net.rest();
    }
}
