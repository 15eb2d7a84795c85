//! P-09 to P-18: finding each other, and giving each other up.

use std::collections::BTreeSet;

use rota_core::contract::{Engine, Service};
use rota_ring::wire::Packet;

use crate::commit::broken;
use crate::net::{Fate, Flying, Kind, MILLI, Net, SECOND};

/// A ring of some, and one more that starts: nobody waits for a token time-out.
#[test]
fn p_09_a_node_that_joins_a_ring_in_service_is_on_it_soon() {
    for nodes in 2..=8 {
        for joiner in [0, nodes - 1] {
            let mut net = Net::formed(nodes);
            net.kill(joiner);
            net.submit(1 - joiner.min(1), Service::Agreed, b"notice");
            net.come_together();
            net.submit(1 - joiner.min(1), Service::Agreed, b"busy");
            net.restart(joiner);
            let before = net.now;
            net.run_until("it is on the ring", Net::is_whole);
            let timers = net.timers();
            let took = net.now.since(before);
            assert!(
                took <= timers.merge + 3 * timers.join,
                "{nodes} nodes: {took} ns"
            );
            net.rest();
        }
    }
}

/// Runs everything up to where both sides are alone, with C dead, and answers with what they said to each
/// other that never arrived.
fn both_alone() -> (Net, Vec<Flying>) {
    let mut net = Net::formed(3);
    net.submit(0, Service::Safe, b"early");
    net.kill(2);
    net.part(&[0]);
    net.keeps_log = true;
    net.run_until("both are alone", |net| {
        (0..2).all(|at| net.phase(at) == "operational" && net.members(at) == [at])
    });
    net.keeps_log = false;
    let mut stale: Vec<Flying> = Vec::new();
    for from in [0, 1] {
        let joins = net.log.iter().rev();
        let joins = joins.filter(|f| f.kind == Kind::Join && f.from == from && f.to == 1 - from);
        let mut seen = BTreeSet::new();
        // The newest of each content: with nobody given up, with one, with two.
        let distinct = joins
            .filter(|join| seen.insert(join.bytes.to_vec()))
            .take(3);
        stale.extend(distinct.cloned());
    }
    net.log.clear();
    (net, stale)
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let insert = |shorter: Vec<usize>| {
        (0..count).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            longer
        })
    };
    permutations(count - 1)
        .into_iter()
        .flat_map(insert)
        .collect()
}

/// The network heals when both have given up everybody else, and what they had said before arrives only
/// now, in any order.
#[test]
fn p_10_stale_joins_that_name_each_other_failed() {
    let (_, stale) = both_alone();
    assert!((4..=6).contains(&stale.len()), "{} joins", stale.len());
    let fails = |flying: &Flying| match &*flying.packet {
        Packet::Join(join) => join.fails.len(),
        _ => 0,
    };
    assert!(
        stale.iter().any(|join| fails(join) == 2),
        "they have given each other up"
    );
    for order in permutations(stale.len()) {
        let (mut net, stale) = both_alone();
        net.heal();
        for (index, &which) in order.iter().enumerate() {
            net.fly(stale[which].clone(), index as u64 * 7_000);
        }
        let within = net.converges_within();
        let done = net.runs_until(within, Net::is_whole);
        assert!(done, "{order:?}: {}", net.states());
        let ring = net.ring(0);
        net.run_for(net.timers().token_loss);
        assert_eq!(net.ring(0), ring, "{order:?}: and they stay");
        net.check(false);
    }
}

/// Every join that was ever sent comes again, twice, up to ten seconds late: a ring in service does not
/// move for it.
#[test]
fn p_11_old_joins_do_not_move_a_ring_in_service() {
    let mut net = Net::formed(4);
    net.keeps_log = true;
    for turn in 0..3_usize {
        net.part(&[turn, 3]);
        net.submit(turn, Service::Safe, b"apart");
        net.run_until("apart", |net| {
            (0..4).all(|at| net.members(at).len() == 2 && net.phase(at) == "operational")
        });
        net.heal();
        net.come_together();
        net.restart(turn);
        net.come_together();
    }
    net.keeps_log = false;
    let ring = net.ring(0);
    let is_join = |flying: &Flying| flying.kind == Kind::Join;
    let joins: Vec<_> = net.log.drain(..).filter(is_join).collect();
    assert!(joins.len() > 50);
    for (index, join) in joins.into_iter().enumerate() {
        let late = index as u64 * 7_919 * 100_003 % (10 * SECOND);
        net.fly(join.clone(), late);
        net.fly(join, 10 * SECOND - late);
    }
    net.run_for(11 * SECOND);
    assert_eq!((net.ring(0), net.is_whole()), (ring, true));
    net.rest();
}

/// And every join so far comes again at each change of state while the next ring forms.
#[test]
fn p_11_old_joins_at_every_change_of_state() {
    for change in 0..12 {
        let mut net = broken(3);
        net.keeps_log = true;
        net.run_for(net.timers().consensus);
        let mut log = std::mem::take(&mut net.log);
        // The next ring: joins of the last one are old.
        net.rule(|flying| {
            if flying.kind == Kind::Token {
                Fate::Lose
            } else {
                Fate::Pass
            }
        });
        net.run_until("all gather", |net| {
            (0..3).all(|at| net.phase(at) == "gathering")
        });
        net.no_rule();
        let states = |net: &Net| [0, 1, 2].map(|at| net.phase(at));
        for _ in 0..change {
            let before = states(&net);
            net.runs_until(SECOND, |net| states(net) != before);
        }
        log.retain(|flying| flying.kind == Kind::Join);
        assert!(!log.is_empty());
        for (index, join) in log.into_iter().enumerate() {
            net.fly(join.clone(), 0);
            net.fly(join, index as u64 * MILLI);
        }
        let before = net.now;
        net.run_until("a ring", Net::is_whole);
        assert!(
            net.now.since(before) < 2 * net.timers().token_loss,
            "change {change}"
        );
        net.rest();
    }
}

const LINKS: [(usize, usize); 6] = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];

struct Service3 {
    /// Of a hundred looks, in how many each node was on a ring.
    served: [u32; 3],
    /// Rings it has installed in that time.
    rings: [u64; 3],
}

/// Three nodes, some links cut for good: what the fifth minute looks like.
fn cut_for_good(cut: u32) -> Service3 {
    let mut net = Net::formed(3);
    let links = LINKS.iter().enumerate();
    net.cut = links
        .filter(|(bit, _)| cut & 1 << bit != 0)
        .map(|(_, link)| *link)
        .collect();
    net.run_for(60 * SECOND);
    let before = [0, 1, 2].map(|at| net.counters(at).configurations);
    let mut served = [0; 3];
    for _ in 0..100 {
        net.run_for(600 * MILLI);
        for (at, served) in served.iter_mut().enumerate() {
            *served += u32::from(net.phase(at) == "operational");
        }
    }
    let rings = [0, 1, 2].map(|at| net.counters(at).configurations - before[at]);
    net.check(false);
    // Who was tried in vain is left alone for a while.
    net.heal();
    let within = net.converges_within() + (net.timers().token_loss << 6);
    let done = net.runs_until(within, Net::is_whole);
    assert!(done, "cut {cut}: {}", net.states());
    net.rest();
    Service3 { served, rings }
}

/// All sixty-four ways to cut directions between three nodes, for good: nobody is without a ring for long,
/// and no ring flaps.
#[test]
fn p_12_links_that_are_cut_in_one_direction_for_good() {
    for cut in 0..64 {
        let Service3 { served, rings } = cut_for_good(cut);
        let lost: Vec<_> = (0..6)
            .filter(|bit| cut & 1 << bit != 0)
            .map(|bit| LINKS[bit])
            .collect();
        assert!(
            served.iter().all(|&looks| looks >= 80),
            "{served:?} of 100, cut {lost:?}"
        );
        assert!(
            rings.iter().all(|&rings| rings <= 20),
            "{rings:?} rings a minute, cut {lost:?}"
        );
    }
}

/// One node can receive and not send, or send and not receive: the others have a ring.
#[test]
fn p_13_a_deaf_or_a_mute_node_does_not_keep_the_others_from_service() {
    for mute in [true, false] {
        for node in 0..3 {
            let to = |&(from, to): &(usize, usize)| if mute { from == node } else { to == node };
            let cut = (0..6)
                .filter(|&bit| to(&LINKS[bit]))
                .fold(0, |cut, bit| cut | 1 << bit);
            let Service3 { served, .. } = cut_for_good(cut);
            let others = (0..3).filter(|&at| at != node);
            for at in others {
                assert!(served[at] >= 90, "{served:?}, node {node}, mute: {mute}");
            }
        }
    }
}

/// Many start within ten milliseconds, or within a second.
#[test]
fn p_15_many_nodes_start_at_once() {
    for (nodes, within) in [(1, 1), (2, 10), (8, 10), (32, 10), (48, 10), (24, 1000)] {
        let mut net = Net::started(nodes);
        for at in 0..nodes {
            net.kill(at);
        }
        net.lose_all();
        for at in 0..nodes {
            net.run_for(within * MILLI / nodes as u64);
            net.restart(at);
        }
        let before = net.now;
        net.come_together();
        let most = net.timers().token_loss + net.timers().consensus + SECOND;
        assert!(net.now.since(before) < most, "{nodes} nodes");
        let joins: u64 = (0..nodes).map(|at| net.counters(at).joins_sent).sum();
        // Between two that are due by time: eight to all, and 64 answers after each.
        let turns = net.now.since(before) / net.timers().join + 2;
        assert!(
            joins < 8 * 65 * turns * nodes as u64,
            "{joins} joins of {nodes} nodes"
        );
        net.check(false);
    }
}

/// And many die at once.
#[test]
fn p_15_many_nodes_stop_at_once() {
    let mut net = Net::formed(24);
    net.submit(0, Service::Safe, b"before");
    (4..24).for_each(|at| net.kill(at));
    let before = net.now;
    net.come_together();
    let timers = net.timers();
    let most = timers.token_loss + timers.consensus + SECOND / 2;
    assert!(net.now.since(before) < most);
    net.rest();
}

/// The interface goes down: nothing is sent, not even to itself. It is alone, goes on ordering, and comes
/// back with the interface.
#[test]
fn p_16_an_interface_that_goes_down_and_up() {
    for rounds in 1..=4 {
        let mut net = Net::formed(3);
        for _ in 0..rounds {
            net.part(&[1]);
            net.run_until("it is alone", |net| {
                net.members(1) == [1] && net.phase(1) == "operational"
            });
            net.submit(1, Service::Safe, b"alone");
            assert!(net.hosts[1].app.has_all_its_own(), "served at once");
            net.run_until("the others go on", |net| net.members(0) == [0, 2]);
            net.heal();
            let within = net.converges_within();
            assert!(net.runs_until(within, Net::is_whole), "{}", net.states());
        }
        net.rest();
    }
}

/// One leaves while another's join is being taken, and at each step of a change.
#[test]
fn p_54_one_leaves_at_each_step_of_a_change() {
    for step in 0..40 {
        let mut net = broken(3);
        (0..step).for_each(|_| net.step());
        let now = net.now;
        net.hosts[1].engine.leave(now);
        net.farewell(1);
        let mut net = net.rest();
        assert_eq!(net.members(0), [0, 2]);
        net.restart(1);
        net.rest();
    }
}
