//! A node that learns late, and is far behind, if not further than acceptors keep what was decided, while the others go
//! on. It prints how fast that is; `ROTA_INSTANCES` says how far.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};

use crate::cluster::{Cluster, Order, between};
use crate::setting;

/// Those who vote where one is late.
const VOTERS: [u16; 3] = [1, 2, 3];
/// The one that is late.
const LATE: u16 = 4;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Everything may happen again before this is over.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Room for so many nodes, of which these vote, in memory, and have much to remember: messages of so many bytes. How many
/// instances they learnt in a second.
fn filled(engine: EngineName, nodes: u16, voters: &[u16], bytes: usize) -> (Cluster, f64) {
    let behind = setting("ROTA_INSTANCES", 20_000);
    let mut cluster = Cluster::new(nodes, TimingName::Default);
    cluster.traced = false;
    cluster.config.engine = engine;
    cluster.config.paxos = Some(PaxosConfig {
        acceptors: Some(voters.to_vec()),
        storage: VoteStorage::Memory,
        // Much waits to be ordered when the load ends.
        kept_instances: NonZeroU64::new(behind + 2_000_000),
        instance_per_message: true,
        ..PaxosConfig::default()
    });
    for node in voters {
        cluster.start(*node);
    }
    cluster.expect_rings(&[voters]);
    cluster.flood(bytes);
    let full = |cluster: &mut Cluster| learnt(cluster, 1) >= behind;
    let (a_second, _) = rate(&mut cluster, 1, full);
    cluster.flood(0);
    drain(&mut cluster, voters);
    (cluster, a_second)
}

fn learnt(cluster: &mut Cluster, node: u16) -> u64 {
    let status = cluster.status(node);
    let learnt = status["counters"]["uring_instances_learnt"].as_u64();
    learnt.expect("a counter")
}

/// How many instances a node learns in a second, until `done`.
fn rate(
    cluster: &mut Cluster,
    node: u16,
    mut done: impl FnMut(&mut Cluster) -> bool,
) -> (f64, f64) {
    let (start, before) = (Instant::now(), learnt(cluster, node));
    while !done(cluster) {
        assert!(start.elapsed() < PATIENCE, "it does not end");
        cluster.sleep(Duration::from_millis(20));
    }
    let seconds = start.elapsed().as_secs_f64();
    let count = learnt(cluster, node) - before;
    (count as f64 / seconds, seconds)
}

/// Waits until these have delivered the same, and nothing is on its way any more.
fn drain(cluster: &mut Cluster, nodes: &[u16]) {
    let until = Instant::now() + PATIENCE;
    let mut before = 0;
    loop {
        let orders = cluster.orders_of(nodes);
        let same = |order: &Order| (order.count, order.value) == (orders[0].count, orders[0].value);
        if orders.iter().all(same) && orders[0].count == before {
            return;
        }
        before = orders[0].count;
        assert!(Instant::now() < until, "{orders:#?}");
        cluster.sleep(Duration::from_millis(300));
    }
}

fn catches_up(engine: EngineName) {
    let (mut cluster, at_most) = filled(engine, LATE, &VOTERS, 100);
    cluster.load(100, 1000);
    let a_second = |cluster: &mut Cluster| {
        cluster.sleep(Duration::from_secs(1));
        true
    };
    let (before, _) = rate(&mut cluster, 1, a_second);
    let target = learnt(&mut cluster, 1);
    cluster.start(LATE);
    let here = |cluster: &mut Cluster| learnt(cluster, LATE) >= target;
    let (during, seconds) = rate(&mut cluster, 1, here);
    println!(
        "{}: {target} instances in {seconds:.2} s, {:.0} a second; the others learn {before:.0} a second before that and \
         {during:.0} meanwhile; at full load it is {at_most:.0}",
        engine.name(),
        target as f64 / seconds
    );
    cluster.load(0, 0);
    let all = cluster.all();
    drain(&mut cluster, &all);
    cluster.expect_rings(&[&all]);
    let forgotten = cluster.status(1)["counters"]["uring_instances_forgotten"].as_u64();
    assert_eq!(forgotten, Some(0), "more was ordered than is kept");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn whoever_is_far_behind_catches_up_while_the_others_go_on() {
    let _alone = crate::turns::alone();
    for engine in [EngineName::RingPaxos, EngineName::URingPaxos] {
        catches_up(engine);
    }
}

/// How long at most a node has learnt nothing, until all are on one ring, and so on for a while.
fn longest_stall(cluster: &mut Cluster, node: u16, rings: &[&[u16]]) -> Duration {
    let start = Instant::now();
    let (mut last, mut at, mut longest) = (0, start, Duration::ZERO);
    while start.elapsed() < AFTERWARDS || !cluster.are_on_rings(rings) {
        assert!(start.elapsed() < PATIENCE, "never on {rings:?}");
        let now = learnt(cluster, node);
        if now > last {
            (last, at) = (now, Instant::now());
        }
        longest = longest.max(at.elapsed());
        cluster.sleep(Duration::from_millis(10));
    }
    longest
}

fn promised(cluster: &mut Cluster) -> u64 {
    let nodes = cluster.running();
    let of = |node| cluster.status(node)["counters"]["uring_votes_promised"].as_u64();
    nodes.into_iter().filter_map(of).sum()
}

/// One that forgets all is cut off together with another one meanwhile, and comes back: nobody has to wait for it.
fn comes_back_with_another(cluster: &mut Cluster) -> Duration {
    cluster.load(100, 20_000);
    let cut = between(&[2, 3, 5], &[1, LATE]);
    cluster.cut(&cut);
    cluster.sleep(Duration::from_millis(300));
    cluster.kill(LATE);
    cluster.start(LATE);
    cluster.sleep(Duration::from_millis(700));
    cluster.mend(&cut);
    let all = cluster.all();
    let longest = longest_stall(cluster, 2, &[&all]);
    cluster.expect_rings(&[&all]);
    longest
}

/// While it learns, two others are cut off: it is needed, and learns the rest first.
fn is_needed(cluster: &mut Cluster) -> Duration {
    let all = cluster.all();
    cluster.load(100, 20_000);
    cluster.kill(LATE);
    cluster.start(LATE);
    cluster.wait_rings(&[&all]);
    cluster.sleep(Duration::from_millis(100));
    let (here, others) = ([2, 3, LATE], [1, 5]);
    let cut = between(&here, &others);
    cluster.cut(&cut);
    let longest = longest_stall(cluster, 2, &[&here]);
    cluster.mend(&cut);
    cluster.expect_rings(&[&all]);
    longest
}

fn nobody_tells_everything(engine: EngineName) {
    let (mut cluster, _) = filled(engine, 5, &[1, 2, 3, LATE, 5], 1000);
    let history = learnt(&mut cluster, 1);
    for _ in 0..setting("ROTA_TRIES", 1) {
        let back = comes_back_with_another(&mut cluster).as_secs_f64();
        let needed = is_needed(&mut cluster).as_secs_f64();
        let promised = promised(&mut cluster);
        println!(
            "{}, one forgets {history} instances: {promised} votes in promises so far; longest without an order {back:.2} \
             s, {needed:.2} s where it is needed",
            engine.name()
        );
        // Rounds begin without it, or when it has learnt: nobody tells a coordinator all that it has.
        assert!(promised < history / 4, "{promised} of {history}");
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn others_order_again_soon_when_who_has_forgotten_comes_back() {
    let _alone = crate::turns::alone();
    for engine in [EngineName::RingPaxos, EngineName::URingPaxos] {
        nobody_tells_everything(engine);
    }
}
