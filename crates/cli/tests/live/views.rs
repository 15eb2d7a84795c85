//! The engines with one order over primary views: each story with each of them. Their traces, judged by the properties
//! of that order, show that nobody misses a message or gets one twice that must not.

use std::time::Duration;

use rota_check::Report;
use rota_node::{EngineName, TimingName};
use rustix::process::Signal;

use crate::LOAD;
use crate::cluster::{Cluster, PATIENCE, between};

/// Bytes of a message of many packets.
const LARGE: usize = 60_000;
/// A view that does not change, or nothing that is delivered, is looked at for so long.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
/// A machine with other work lets the membership wait for so many times what it takes to notice a silent node. One
/// that was killed is noticed sooner, unless the kernel has refused so many datagrams that it says no more of them.
const CROWDED: u32 = 4;

/// A view of all, and load.
fn loaded(engine: EngineName, nodes: u16) -> Cluster {
    let mut cluster = Cluster::formed_with(nodes, TimingName::Default, engine);
    set_load(&mut cluster);
    cluster
}

fn set_load(cluster: &mut Cluster) {
    cluster.load(LOAD.0, LOAD.1);
    cluster.sleep(Duration::from_millis(100));
}

fn start(cluster: &mut Cluster, node: u16) {
    cluster.start(node);
    let all = cluster.running();
    cluster.expect_rings(&[&all]);
    set_load(cluster);
}

/// These are told that they are in no view, though the ring beside may be theirs; and nothing is delivered.
fn expect_excluded(cluster: &mut Cluster, nodes: &[u16]) {
    cluster.until("excluded", PATIENCE, |cluster| {
        nodes.iter().all(|node| cluster.is_excluded(*node))
    });
    let delivered = |cluster: &mut Cluster| {
        let orders = cluster.orders_of(nodes).into_iter();
        orders.map(|order| order.count).collect::<Vec<_>>()
    };
    let before = delivered(cluster);
    cluster.sleep(LONG_ENOUGH);
    assert_eq!(delivered(cluster), before, "{nodes:?}");
    for node in nodes {
        assert!(cluster.is_excluded(*node), "{node} of {nodes:?}");
    }
}

/// All are in one view again, and all that happened is legal; and it was not nothing.
fn check(cluster: &mut Cluster) -> Report {
    let all = cluster.running();
    let report = cluster.check(&[&all]);
    let counters = report.uniform.as_ref().expect("counters of views");
    assert_eq!(counters.orders, 1, "{counters:?}");
    assert_eq!(counters.excluded_at_the_end, 0, "{counters:?}");
    assert!(report.counters.deliveries > 0);
    report
}

/// How often a story in which views change had what it is about.
fn expect_changes(report: &Report, changes: u64) {
    let counters = report.uniform.as_ref().expect("counters of views");
    assert!(counters.view_changes >= changes, "{counters:?}");
    assert!(counters.survived_by_two >= 1, "{counters:?}");
}

/// The first member gives the places (FastCast), or says first what all have (LCR): without it nothing goes on
/// until the view changes.
fn the_sequencer_is_killed_under_load(engine: EngineName) {
    let _alone = crate::turns::alone();
    let mut cluster = loaded(engine, 4);
    let bound = CROWDED * cluster.notice();
    for round in 0..3 {
        set_load(&mut cluster);
        let at = cluster.kill(1);
        cluster.wait_rings(&[&[2, 3, 4]]);
        let views = [2, 3, 4].map(|node| cluster.ring(node).map_or(0, |view| view.at));
        let view = Duration::from_nanos(views.into_iter().max().unwrap_or(0) - at);
        cluster.expect_rings(&[&[2, 3, 4]]);
        let gaps = cluster.orders().into_iter().map(|order| order.longest_gap);
        let gap = Duration::from_nanos(gaps.max().unwrap_or(0));
        println!(
            "{}, sequencer killed, round {round}: a view without it after {:.1} ms, longest time without \
             deliveries {:.1} ms",
            engine.name(),
            view.as_secs_f64() * 1e3,
            gap.as_secs_f64() * 1e3,
        );
        assert!(!gap.is_zero() && gap <= bound, "{gap:?}, at most {bound:?}");
        assert!(view <= bound, "{view:?}, at most {bound:?}");
        start(&mut cluster, 1);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 6);
    let counters = report.uniform.expect("counters of views");
    assert!(counters.delivered_last_by_crashed > 0, "{counters:?}");
}

/// Whoever floods has always sent a part of a message.
fn a_sender_is_killed_in_the_middle_of_a_message(engine: EngineName) {
    let mut cluster = loaded(engine, 4);
    for victim in [3, 4, 2] {
        cluster.tell(victim, &format!("flood {LARGE}"));
        cluster.sleep(Duration::from_millis(300));
        cluster.kill(victim);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
        start(&mut cluster, victim);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 6);
}

/// At one moment, and one while the others still change to a view without the other.
fn two_are_killed_in_one_change(engine: EngineName) {
    let mut cluster = loaded(engine, 5);
    for (first, second, millis) in [(1, 4, 0), (2, 1, 8), (5, 3, 16)] {
        cluster.kill(first);
        cluster.sleep(Duration::from_millis(millis));
        cluster.kill(second);
        let others = cluster.running();
        cluster.expect_rings(&[&others]);
        cluster.start(first);
        start(&mut cluster, second);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 6);
}

/// Nobody delivers then. A majority alone is not enough afterwards, as long as somebody absent may have
/// delivered more than is remembered.
fn nobody_goes_on_without_a_majority(engine: EngineName) {
    let mut cluster = loaded(engine, 5);
    for victim in [1, 2, 3] {
        cluster.kill(victim);
    }
    expect_excluded(&mut cluster, &[4, 5]);
    cluster.start(1);
    cluster.start(2);
    expect_excluded(&mut cluster, &[4, 5]);
    start(&mut cluster, 3);
    let report = check(&mut cluster);
    let counters = report.uniform.expect("counters of views");
    assert!(counters.exclusions >= 2, "{counters:?}");
    assert!(counters.delivered_in_later_view > 0, "{counters:?}");
}

/// At once, before anybody can have noticed, and after the others have.
fn one_after_the_other_is_killed_and_restarted(engine: EngineName) {
    let mut cluster = loaded(engine, 3);
    for victim in [1, 2, 3] {
        cluster.kill(victim);
        start(&mut cluster, victim);
    }
    for victim in [1, 3] {
        cluster.kill(victim);
        let others = cluster.running();
        cluster.wait_rings(&[&others]);
        start(&mut cluster, victim);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 4);
    let counters = report.uniform.expect("counters of views");
    assert!(counters.joiners >= 5, "{counters:?}");
}

/// It is told that it is excluded, or of the next view, and comes back with what it has.
fn who_stood_still_is_excluded_and_comes_back(engine: EngineName) {
    let mut cluster = loaded(engine, 4);
    for node in [1, 3] {
        let before = cluster.confs(node).len();
        cluster.signal(node, Signal::STOP);
        let others: Vec<u16> = cluster.all().into_iter().filter(|n| *n != node).collect();
        cluster.wait_rings(&[&others]);
        cluster.sleep(Duration::from_millis(200));
        assert_eq!(cluster.confs(node).len(), before, "it stands still");
        cluster.signal(node, Signal::CONT);
        cluster.until("it was told", PATIENCE, |cluster| {
            cluster.is_excluded(node) || cluster.confs(node).len() > before
        });
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 4);
    let counters = report.uniform.expect("counters of views");
    assert!(counters.returned >= 2, "{counters:?}");
}

/// The larger side goes on, whether the first of all is there or not; the others deliver nothing.
fn a_minority_waits_for_the_others(engine: EngineName) {
    let mut cluster = loaded(engine, 5);
    for (some, others) in [([1, 4], [2, 3, 5]), ([3, 5], [1, 2, 4])] {
        let wall = between(&some, &others);
        cluster.cut(&wall);
        cluster.expect_rings(&[&others]);
        expect_excluded(&mut cluster, &some);
        cluster.mend(&wall);
        cluster.expect_rings(&[&[1, 2, 3, 4, 5]]);
    }
    let report = check(&mut cluster);
    expect_changes(&report, 4);
    let counters = report.uniform.expect("counters of views");
    assert!(counters.returned >= 4, "{counters:?}");
    assert!(counters.delivered_in_later_view > 0, "{counters:?}");
}

fn a_node_that_comes_and_goes(engine: EngineName) {
    let mut cluster = loaded(engine, 4);
    for (down, up) in [(50, 150), (900, 200)] {
        for node in [2, 1] {
            cluster.set_port(node, false);
            cluster.sleep(Duration::from_millis(down));
            cluster.set_port(node, true);
            cluster.sleep(Duration::from_millis(up));
        }
    }
    cluster.expect_rings(&[&[1, 2, 3, 4]]);
    check(&mut cluster);
}

macro_rules! with_each_engine {
    ($($story:ident),* $(,)?) => {
        mod fastcast {
            $(#[test]
            #[ignore = "needs root, for network namespaces"]
            fn $story() {
                super::$story(rota_node::EngineName::FastCast);
            })*
        }
        mod lcr {
            $(#[test]
            #[ignore = "needs root, for network namespaces"]
            fn $story() {
                super::$story(rota_node::EngineName::Lcr);
            })*
        }
    };
}

with_each_engine![
    the_sequencer_is_killed_under_load,
    a_sender_is_killed_in_the_middle_of_a_message,
    two_are_killed_in_one_change,
    nobody_goes_on_without_a_majority,
    one_after_the_other_is_killed_and_restarted,
    who_stood_still_is_excluded_and_comes_back,
    a_minority_waits_for_the_others,
    a_node_that_comes_and_goes,
];

/// How often nodes have had a hello over the link from their successors.
fn hellos(cluster: &mut Cluster) -> u64 {
    let nodes = cluster.all().into_iter();
    let counts = nodes.map(|node| cluster.status(node)["counters"]["lcr_hellos_received"].as_u64());
    counts.map(|count| count.expect("a counter")).sum()
}

/// Nothing of a connection gets through, in one direction or both, until its ends give it up; the membership, which
/// has datagrams, notices nothing. What was lost on the way is sent again in the next session.
#[test]
#[ignore = "needs root, for network namespaces"]
fn connections_that_are_cut_come_back_in_the_same_view() {
    let mut cluster = loaded(EngineName::Lcr, 4);
    let view = cluster.ring(1).expect("a view").id.clone();
    for cut in [vec![(4, 1)], between(&[1, 2], &[3, 4])] {
        let before = hellos(&mut cluster);
        cluster.cut_streams(&cut);
        // It gives up what it has not heard of for twice that long.
        let silence = (2 * cluster.notice()).max(Duration::from_secs(2));
        cluster.sleep(silence + Duration::from_millis(1200));
        cluster.mend_streams(&cut);
        cluster.expect_rings(&[&[1, 2, 3, 4]]);
        assert!(hellos(&mut cluster) > before, "no link was given up");
        for node in cluster.all() {
            assert_eq!(cluster.ring(node).map(|now| &now.id), Some(&view), "{node}");
        }
    }
    let report = check(&mut cluster);
    let counters = report.uniform.expect("counters of views");
    assert_eq!(counters.delivered_in_later_view, 0, "{counters:?}");
}
