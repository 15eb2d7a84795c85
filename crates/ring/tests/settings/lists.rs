//! Nodes that are configured with different electorates: never two primaries among nodes that have met.

use std::collections::BTreeMap;

use rota_core::contract::{Engine, NodeId, Process, has_majority};
use rota_ring::RingConfig;

use crate::net::{self, Net, SECOND, id};

fn ids(of: &[usize]) -> Vec<NodeId> {
    of.iter().map(|at| id(*at)).collect()
}

fn listing(nodes: usize, of: &[usize]) -> RingConfig {
    let mut config = net::config(nodes);
    config.electorate = ids(of);
    config
}

/// Five nodes, of which the first `old` count the first three, and the others all five.
fn in_change(old: usize) -> Net {
    let own = (0..old).map(|at| (at, listing(5, &[0, 1, 2])));
    Net::with_own(
        listing(5, &[0, 1, 2, 3, 4]),
        own.collect::<BTreeMap<_, _>>(),
    )
}

/// Whether a node's ring has a majority of each list that counts there; all of its members have to agree.
fn is_primary(net: &Net, at: usize) -> bool {
    let judge = |at: usize| {
        let members: Vec<Process> = net.members(at).iter().map(|at| net.hosts[*at].me).collect();
        let lists = net.engine(at).electorates(net.ring(at)).expect("asked for");
        lists.iter().all(|nodes| has_majority(nodes, &members))
    };
    let judged = judge(at);
    for member in net.members(at) {
        assert_eq!(judge(member), judged, "{member} and {at} do not agree");
    }
    judged
}

/// What the layer above does once a primary is reported.
fn carry_on(net: &mut Net) {
    for at in net.alive() {
        if is_primary(net, at) {
            let (now, ring) = (net.now, net.ring(at));
            net.hosts[at].engine.carries_on(now, ring);
            net.carry_out(at);
        }
    }
    net.run_for(SECOND);
}

fn split(net: &mut Net, first: &[usize]) {
    net.heal();
    net.part(first);
    net.run_for(3 * SECOND);
    for at in net.alive() {
        assert_eq!(net.members(at).contains(&first[0]), first.contains(&at));
    }
}

fn together(net: &mut Net) {
    net.heal();
    net.come_together();
    net.run_for(SECOND);
}

pub fn a_primary_needs_a_majority_of_each_list_that_was_met() {
    let mut net = in_change(2);
    together(&mut net);
    assert!(is_primary(&net, 0), "both lists allow it");
    for (at, theirs, own) in [(0, "1 2 3 4 5", "1 2 3"), (4, "1 2 3", "1 2 3 4 5")] {
        let notes = net.engine(at).status().notes;
        let says = format!("primary_nodes = {theirs}, this node {own}");
        assert!(notes.iter().any(|note| note.contains(&says)), "{notes:?}");
    }
    // Each side has a majority of its own list.
    split(&mut net, &[0, 1]);
    assert!(!is_primary(&net, 0) && !is_primary(&net, 4));
    together(&mut net);
    assert!(is_primary(&net, 0));
    // And a side that has a majority of both goes on.
    split(&mut net, &[1, 2, 3]);
    assert!(is_primary(&net, 1) && !is_primary(&net, 0));
    net.heal();
    net.rest();
}

pub fn what_a_node_was_configured_with_before_counts_after_a_restart() {
    let mut net = in_change(3);
    split(&mut net, &[0, 1, 2]);
    assert!(is_primary(&net, 0) && !is_primary(&net, 4));
    net.heal();
    net.part(&[0, 1]);
    net.own_configs.remove(&2);
    net.restart(2);
    net.run_for(3 * SECOND);
    assert_eq!(net.members(4), [2, 3, 4]);
    assert!(is_primary(&net, 0), "{}", net.states());
    assert!(!is_primary(&net, 4), "beside the other");
    net.heal();
    net.rest();
}

pub fn what_was_met_counts_after_a_restart() {
    let mut net = in_change(2);
    together(&mut net);
    split(&mut net, &[0, 1]);
    for at in [2, 3, 4] {
        net.restart(at);
    }
    net.run_for(3 * SECOND);
    assert_eq!(net.members(4), [2, 3, 4]);
    assert!(!is_primary(&net, 4));
    net.heal();
    net.rest();
}

pub fn what_was_met_counts_for_one_that_is_alone() {
    let own = BTreeMap::from([(0, listing(2, &[0]))]);
    let mut net = Net::with_own(listing(2, &[0, 1]), own);
    together(&mut net);
    split(&mut net, &[0]);
    assert!(!is_primary(&net, 0));
    net.restart(0);
    assert!(!is_primary(&net, 0), "nor as soon as it has begun");
    net.run_for(SECOND);
    assert!(!is_primary(&net, 0));
    net.heal();
    net.rest();
}

pub fn a_list_that_nobody_has_any_more_is_forgotten_in_a_primary() {
    let mut net = in_change(3);
    together(&mut net);
    for at in [0, 1, 2] {
        net.own_configs.remove(&at);
        net.restart(at);
        together(&mut net);
    }
    // Nobody has carried on what was before: a majority of the new list alone might know nothing of it.
    split(&mut net, &[0, 1]);
    assert!(!is_primary(&net, 4));
    together(&mut net);
    carry_on(&mut net);
    split(&mut net, &[0, 1]);
    assert!(is_primary(&net, 4) && !is_primary(&net, 0));
    net.restart(4);
    net.run_for(3 * SECOND);
    assert!(is_primary(&net, 4), "nor does a restart bring it back");
    assert!(net.engine(4).status().notes.is_empty());
    net.heal();
    net.rest();
}

pub fn a_list_that_somebody_still_has_is_kept() {
    let mut net = in_change(3);
    together(&mut net);
    // The one that is left of the old list does not speak for the others.
    for at in [1, 2] {
        net.own_configs.remove(&at);
    }
    split(&mut net, &[0]);
    net.restart(1);
    net.run_for(3 * SECOND);
    carry_on(&mut net);
    split(&mut net, &[0, 2]);
    assert!(!is_primary(&net, 4), "0 and 2 still count the three");
    assert!(!is_primary(&net, 0), "and have met those who count five");
    net.heal();
    net.rest();
}

pub fn more_lists_than_can_be_told_make_no_primary() {
    let own = (0..10).map(|at| {
        let mut config = listing(10, &(0..10).collect::<Vec<_>>());
        config.electorate.remove(at);
        (at, config)
    });
    let mut net = Net::with_own(listing(10, &[0]), own.collect());
    together(&mut net);
    for at in net.alive() {
        assert!(!is_primary(&net, at));
    }
    let notes = net.engine(3).status().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("more different lists")),
        "{notes:?}"
    );
    net.rest();
}

/// Three nodes that list each other, and a fourth that they do not list. One after the other is restarted with a list of four. In how many
/// tenths of a second of the twelve seconds behind each restart the three are on one ring, the least.
fn together_while_the_list_grows() -> u64 {
    let listed = |nodes| {
        let mut config = net::config(nodes);
        config.closed = true;
        config
    };
    let old = (0..3).map(|at| (at, listed(3)));
    let mut net = Net::with_own(listed(4), old.collect());
    // Who is not listed is not heard.
    net.cut.extend((0..3).flat_map(|at| [(3, at), (at, 3)]));
    net.run_for(3 * SECOND);
    let mut least = u64::MAX;
    for at in 0..3 {
        net.kill(at);
        net.run_for(3 * SECOND / 2);
        net.own_configs.remove(&at);
        net.cut.remove(&(3, at));
        net.cut.remove(&(at, 3));
        net.restart(at);
        let mut together = 0;
        for _ in 0..120 {
            net.run_for(SECOND / 10);
            let has_all = |at: usize| {
                let members = net.members(at);
                (0..3).all(|other| members.contains(&other)) && net.phase(at) == "operational"
            };
            together += u64::from((0..3).all(has_all));
        }
        least = least.min(together);
    }
    assert!(net.members(3).len() == 4, "{}", net.states());
    net.check(false);
    least
}

/// While nodes are added to the lists one by one those that are there stay together.
pub fn while_a_list_grows_the_others_stay_together() {
    let least = together_while_the_list_grows();
    assert!(least >= 100, "{least} tenths of a second of 120");
}
