//! P-36 to P-47, as far as they concern a ring in service: tokens and packets that are lost, late, doubled.

use rota_core::contract::Service;
use rota_ring::wire::Packet;

use crate::net::{Fate, Flying, Kind, MICRO, MILLI, Net, config, id};
use crate::recovery::aru_catches_up;

fn sum(net: &Net, counter: impl Fn(&rota_ring::Counters) -> u64) -> u64 {
    (0..net.hosts.len())
        .map(|at| counter(net.counters(at)))
        .sum()
}

/// One node loses ninety-nine packets in a hundred while the others send all they can: they are held back to
/// what it can follow until it leaves, and nobody breaks.
#[test]
fn p_37_a_node_that_loses_almost_everything() {
    let mut net = Net::formed(3);
    let mut random = 1_u64;
    net.rule(move |flying| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let passes = (random >> 40).is_multiple_of(100);
        let lost = flying.kind == Kind::Data && flying.to == 2 && !passes;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    for _ in 0..1500 {
        net.submit(0, Service::Agreed, &[1; 1300]);
        net.submit(1, Service::Safe, &[2; 1300]);
    }
    let window = (net.config.windows.outstanding + net.config.windows.personal) as usize;
    net.run_until("the others have all", |net| {
        let got = |at: usize| net.hosts[at].app.got.len();
        let follows = net.members(2).len() == 3;
        assert!(!follows || got(0) <= got(2) + window, "nobody runs away");
        got(0) == 3000 && got(1) == 3000
    });
    assert!(sum(&net, |counters| counters.visits_throttled) > 0);
    // It holds everybody up, and finds that out by itself.
    net.run_until("it leaves", |net| net.counters(2).self_lossy > 0);
    net.heal();
    net.run_for(140 * net.timers().token_loss);
    net.rest();
}

/// It loses everything: then it is given up.
#[test]
fn p_37_a_node_that_loses_everything() {
    let mut config = config(3);
    // What it asks for is sent again in each rotation: fewer are enough.
    (config.windows.personal, config.windows.accelerated) = (5, 5);
    (config.windows.global, config.windows.outstanding) = (15, 100);
    let mut net = Net::formed_with(config);
    net.rule(|flying| {
        let lost = flying.kind == Kind::Data && flying.to == 2;
        if lost { Fate::Lose } else { Fate::Pass }
    });
    for _ in 0..300 {
        net.submit(0, Service::Agreed, &[1; 1300]);
    }
    let before = net.now;
    net.run_until("it is given up", |net| {
        (0..2).all(|at| net.members(at) == [0, 1])
    });
    assert!(net.now.since(before) < 5 * net.timers().token_loss);
    let window = u64::from(net.config.windows.outstanding + net.config.windows.personal);
    assert!(net.counters(0).packets_sent <= window, "held back before");
    net.run_until("the others go on", |net| net.hosts[1].app.got.len() == 300);
    net.rest();
}

/// Tokens and small packets get through to one node, large ones never do: it is out within a stated time.
#[test]
fn p_38_large_packets_never_arrive_at_one_node() {
    let mut net = Net::formed(3);
    net.rule(|flying| {
        let large = flying.kind == Kind::Data && flying.bytes.len() > 1000;
        if large && flying.to == 2 {
            Fate::Lose
        } else {
            Fate::Pass
        }
    });
    net.submit(0, Service::Safe, &[1; 1200]);
    let before = net.now;
    net.run_until("it is given up", |net| net.members(0) == [0, 1]);
    let timers = net.timers();
    let most = 3 * timers.token_loss + timers.consensus + timers.token_loss;
    assert!(
        net.now.since(before) < most,
        "{} ms",
        net.now.since(before) / MILLI
    );
    assert_eq!(sum(&net, |counters| counters.members_deaf), 1);
    net.heal();
    let within = net.converges_within() + (timers.token_loss << 6);
    assert!(net.runs_until(within, Net::is_whole));
    net.rest();
}

/// Small packets come, large ones never: it comes back, and less and less often.
#[test]
fn p_38_who_stays_deaf_is_left_alone_longer_and_longer() {
    let mut net = Net::formed(4);
    net.rule(|flying| {
        let large = flying.kind == Kind::Data && flying.bytes.len() > 1000;
        if large && flying.to == 2 {
            Fate::Lose
        } else {
            Fate::Pass
        }
    });
    let mut exclusions = Vec::new();
    for _ in 0..6 {
        let before = sum(&net, |counters| counters.members_deaf);
        for _ in 0..250 {
            net.submit(0, Service::Agreed, &[1; 1200]);
            net.run_for(40 * MILLI);
        }
        exclusions.push(sum(&net, |counters| counters.members_deaf) - before);
    }
    let (first, later) = exclusions.split_first().unwrap();
    let rare = later.iter().all(|&often| often <= 2);
    assert!(*first > 1 && *first <= 8 && rare, "{exclusions:?}");
}

/// Every token comes again, later by parts of a rotation or by many: only one is ever taken.
#[test]
fn p_39_tokens_that_come_twice_at_any_time() {
    for late in [0, 10, 30, 60, 61, 150, 1000, 20_000, 400_000] {
        let mut net = Net::formed(3);
        net.rule(move |flying| match flying.kind {
            Kind::Token => Fate::Twice(late * MICRO),
            _ => Fate::Pass,
        });
        let (rotations, ring) = (sum(&net, |c| c.token_rotations), net.ring(0));
        for index in 0..300_usize {
            net.submit(
                index % 3,
                [Service::Safe, Service::Agreed][index % 2],
                &[3; 500],
            );
            net.run_for(MILLI / 10);
        }
        net.run_for(500 * MILLI);
        assert_eq!(net.ring(0), ring, "{late} us late");
        let duplicates = sum(&net, |counters| counters.token_duplicates);
        assert!(duplicates > 0 && sum(&net, |c| c.token_rotations) > rotations);
        let mut newest = 0;
        // With so many copies about, still each hop is accepted once.
        net.keeps_log = true;
        net.run_for(100 * MILLI);
        for flying in &net.log {
            if let Packet::Token(token) = &*flying.packet {
                assert!(token.token_seq >= newest, "an old token was passed on");
                newest = token.token_seq;
            }
        }
        net.log.clear();
        net.rest();
    }
}

/// A token of the right ring, newer than all, from a member that is not the predecessor, or of another ring.
#[test]
fn p_39_tokens_from_a_wrong_place() {
    let mut net = Net::formed(3);
    net.submit(0, Service::Safe, b"first");
    assert!(net.run_to(|flying| flying.kind == Kind::Token && flying.to == 1));
    let token = net.next().cloned().expect("it arrives");
    let Packet::Token(token) = &*token.packet else {
        panic!("it is a token");
    };
    // The right one is held up, so the wrong one is newer.
    let held = net.lose_next();
    let mut wrong = token.clone();
    (wrong.sender, wrong.token_seq) = (crate::net::id(2), token.token_seq + 1);
    let taken = net.counters(1).token_rotations;
    net.inject(2, 1, &Packet::Token(wrong.clone()), 0);
    net.step();
    assert_eq!(net.counters(1).token_invalid, 1);
    (wrong.sender, wrong.ring.ring_seq) = (token.sender, token.ring.ring_seq + 4);
    net.inject(0, 1, &Packet::Token(wrong), 0);
    net.step();
    assert_eq!(net.counters(1).datagrams_foreign_ring, 1);
    assert_eq!(net.counters(1).token_rotations, taken);
    net.fly(held, 0);
    let mut net = net.rest();
    aru_catches_up(&mut net);
}

/// The predecessor sends its token again and again into a chain that is dead: the loss is noticed in time.
#[test]
fn p_40_repeated_tokens_do_not_put_off_the_loss() {
    for dead in 1..3 {
        let mut net = Net::formed(3);
        net.submit(0, Service::Safe, b"busy");
        assert!(net.run_to(|flying| flying.kind == Kind::Token && flying.to == dead));
        net.kill(dead);
        let (before, token) = (net.now, net.lose_next());
        let mut copies = token;
        copies.to = 3 - dead;
        let end = net.now.after(net.timers().token_loss);
        // Copies of old tokens come all the time, too.
        let last = net.counters(3 - dead).token_duplicates;
        while net.now < end {
            net.fly(copies.clone(), 0);
            net.run_for(MILLI);
        }
        net.run_until("the loss is noticed", |net| net.phase(0) == "gathering");
        let took = net.now.since(before);
        let most = net.timers().token_loss + 5 * MILLI;
        assert!(took <= most, "{took} ns");
        let seen = net.counters(3 - dead).token_duplicates + net.counters(3 - dead).token_invalid;
        assert!(seen > last + 100);
        net.rest();
    }
}

/// An idle ring, and one message at any phase of its hold: it is delivered by all within a few hops, not
/// after the hold.
#[test]
fn p_41_a_message_on_an_idle_ring_waits_for_nothing() {
    for node in 0..3 {
        for phase in 0..60 {
            let mut net = Net::formed(3);
            net.run_for(200 * MILLI + phase * 977 * MICRO);
            let before = net.now;
            net.submit(node, Service::Safe, b"hello");
            net.run_until("all have it", |net| {
                (0..3).all(|at| net.hosts[at].app.got.len() == 1)
            });
            let took = net.now.since(before);
            assert!(took < MILLI, "{took} ns from node {node}, phase {phase}");
        }
    }
}

/// The hurry of a node that wants to send is lost: it is said again long before the hold ends.
#[test]
fn p_41_a_lost_hurry_costs_no_more_than_a_hold() {
    for phase in 0..40 {
        let mut net = Net::formed(3);
        net.run_for(200 * MILLI + phase * 1_511 * MICRO);
        let mut lost = 0;
        net.rule(move |flying| {
            let hit = flying.kind == Kind::Hurry && lost < 1;
            lost += u32::from(hit);
            if hit { Fate::Lose } else { Fate::Pass }
        });
        let before = net.now;
        net.submit(2, Service::Safe, b"hello");
        net.run_until("all have it", |net| {
            (0..3).all(|at| net.hosts[at].app.got.len() == 1)
        });
        let took = net.now.since(before);
        assert!(took <= net.timers().token_hold + MILLI, "{took} ns");
    }
}

/// The stamp of packets has 16 bits of the token's number: a ring goes on beyond all of them.
#[test]
fn p_43_the_round_of_packets_wraps() {
    let mut net = Net::formed(2);
    let (mut hops, mut sent) = (0_u64, 0_usize);
    while hops < (1 << 16) + 2000 {
        if hops.is_multiple_of(16) {
            net.submit(sent % 2, Service::Agreed, b"on");
            sent += 1;
        }
        net.step();
        hops = net.counters(0).token_rotations + net.counters(1).token_rotations;
    }
    net.run_for(MILLI);
    assert_eq!(net.hosts[1].app.got.len(), sent);
    assert_eq!(
        sum(&net, |c| c.retransmissions + c.gathers),
        sum(&net, |c| c.gathers)
    );
    net.check(false);
}

/// Data takes one to five rotations longer than tokens, always.
fn late_data(rounds: u64) -> (u64, u64, usize) {
    let mut net = Net::with(config(3));
    net.come_together();
    let late = rounds * 3 * 20 * MICRO;
    net.rule(move |flying: &Flying| match flying.kind {
        Kind::Data => Fate::Late(late),
        _ => Fate::Pass,
    });
    let mut submitted = 0;
    let mut first = 0;
    for turn in 0..800_usize {
        for at in 0..3 {
            net.submit(at, Service::Agreed, &[turn as u8; 1300]);
            submitted += 1;
        }
        net.run_for(60 * MICRO);
        if turn == 20 {
            first = sum(&net, |counters| counters.retransmissions);
        }
    }
    net.run_for(20 * MILLI);
    let after = sum(&net, |counters| counters.retransmissions);
    net.rest();
    (first, after, submitted)
}

/// Data that is later than the requests allow for is sent again in the first rotations; then all have
/// learnt to wait.
#[test]
fn p_47_data_slower_than_tokens() {
    for rounds in 0..=5 {
        let (first, all, packets) = late_data(rounds);
        if rounds <= 1 {
            assert_eq!(
                all, 0,
                "{rounds} rounds late: nothing is asked for too early"
            );
        }
        let later = all - first;
        assert!(
            later * 20 <= packets as u64,
            "{rounds} rounds late: {first}, {later} of {packets}"
        );
    }
}

/// An operator is told whose packets get lost, and where: the loser knows, and who repairs it.
#[test]
fn who_loses_whose_packets_is_counted_and_how_long_the_token_is_away() {
    let mut net = Net::formed(3);
    let mut lost = 0;
    net.rule(move |flying| {
        let lose = lost < 5 && flying.kind == Kind::Data && (flying.from, flying.to) == (1, 2);
        lost += u64::from(lose);
        if lose { Fate::Lose } else { Fate::Pass }
    });
    for _ in 0..50 {
        net.submit(0, Service::Agreed, &[1; 1300]);
        net.submit(1, Service::Agreed, &[2; 1300]);
    }
    net.run_until("all have everything", |net| net.is_drained());
    let seen = |at: usize, of: usize| {
        let peers = &net.counters(at).peers;
        peers.get(&id(of)).copied().unwrap_or_default()
    };
    assert_eq!(seen(2, 1).repaired, 5);
    assert_eq!((seen(2, 0).repaired, seen(0, 1).repaired), (0, 0));
    assert_eq!(seen(0, 1).resent + seen(1, 1).resent, 5);
    assert_eq!(sum(&net, |counters| counters.retransmissions), 5);
    for at in 0..3 {
        let counters = net.counters(at);
        let rotations = counters.rotation.count();
        assert!(rotations > 0 && rotations <= counters.token_rotations);
        let mean_us = counters.rotation.sum_nanos() / rotations / 1000;
        assert!(mean_us <= counters.rotation_longest_us, "{mean_us} us");
    }
}
