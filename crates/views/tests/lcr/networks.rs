//! Networks that lose nothing and repeat nothing.

use rota_views::Held;
use rota_views::lcr::precedes;

use super::plan::Plan;
use super::runs::{even, even_where_slow, run};

#[test]
fn whatever_happens_to_links_all_deliver_the_same() {
    let (mut packets, mut hellos, mut stale, mut changes) = (0, 0, 0, 0);
    for seed in 0..400 {
        let network = run(Plan::draw(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        packets += network.order.len();
        hellos += network.counted("lcr_hellos_received") as usize;
        stale += network.counted("lcr_messages_stale") as usize;
        changes += network
            .ended
            .iter()
            .filter(|order| !order.is_empty())
            .count();
    }
    println!("{packets} packets, {hellos} hellos, {stale} stale messages, {changes} changes");
    assert!(packets > 100_000, "{packets}");
    assert!(
        hellos > 3000 && stale > 100 && changes > 50,
        "{hellos} {stale} {changes}"
    );
}

#[test]
fn each_origin_gets_its_share() {
    for count in 2..=8 {
        even(count).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn each_origin_gets_its_share_of_a_slow_link() {
    for slow in 0..5 {
        even_where_slow(slow).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn links_are_used_to_the_full() {
    for count in 2..=8 {
        let plan = Plan::calm(count);
        let bytes: usize = plan
            .messages
            .iter()
            .map(|&many| many as usize * plan.largest)
            .sum();
        let link = plan.rate[0] as f64;
        let best = bytes as f64 / (link * count as f64 / (count - 1) as f64);
        let network = run(plan).expect("it is calm");
        let used = best / network.last_delivery as f64;
        println!(
            "{count} members: {:.1} % of n / (n - 1) times a link",
            used * 100.0
        );
        assert!(used > 0.85, "{used}");
    }
}

#[test]
fn a_slow_application_makes_all_senders_wait() {
    let mut plan = Plan::calm(4);
    plan.slow[2] = 500;
    plan.messages = vec![300; 4];
    let network = run(plan).expect("it is calm");
    // It is the only one that keeps much.
    let kept: Vec<_> = network.nodes.iter().map(|node| node.kept).collect();
    assert!(kept[2] > 100_000, "{kept:?}");
}

#[test]
fn the_order_is_one_of_all_that_is_held() {
    let mut most = 0;
    let mut orders = 0;
    for seed in 400..700 {
        let mut plan = Plan::draw(seed);
        plan.change_at = Some(6000 + seed * 50);
        plan.victim = None;
        let network = run(plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        most = most.max(network.held.len());
        orders += usize::from(network.held.len() > 2);
        strict(&network.held);
    }
    assert!(most > 50 && orders > 100, "{most} {orders}");
}

/// Each of two packets comes before the other or behind it, and what is listed later is never before.
fn strict(held: &[Held]) {
    let at = |index: usize| {
        let held = &held[index];
        (usize::from(held.packet.id.sender), &held.place[..])
    };
    for first in 0..held.len() {
        for next in 0..held.len() {
            // A relation that is that of places in a list is a strict total order.
            assert_eq!(
                precedes(at(first), at(next)),
                first < next,
                "{first} {next}"
            );
        }
    }
}
