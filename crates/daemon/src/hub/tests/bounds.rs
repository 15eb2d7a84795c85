//! The bounds of the work at once and of the memory, when one client changes a large group again and again.

use rota_client::protocol::Reply;

use super::super::counters::Counter;
use super::super::fanout::MOST_BYTES;
use super::{Far, House, join, leave};

const MEMBERS: usize = 200;

/// Clients that are in a group, and want its views.
fn crowd(house: &mut House) -> Vec<Far> {
    (0..MEMBERS)
        .map(|at| {
            let mut far = house.client(&format!("m{at}"), true);
            far.ask(&join(1, "x"));
            far
        })
        .collect()
}

/// The most that was told at once, offered at once and kept.
#[derive(Default)]
struct Most {
    told: usize,
    offered: usize,
    kept: usize,
}

/// Delivers all that clients have asked for, as a ring does: while there is room, and then sockets are offered the
/// waiting bytes. Members read what they get.
fn deliver_all(house: &mut House, crowd: &mut [Far]) -> (Most, usize) {
    let (mut most, mut views) = (Most::default(), 0);
    loop {
        let mut delivered = false;
        house.serve();
        while house.hub.has_room() && house.deliver() {
            delivered = true;
            most.told = most.told.max(house.hub.clientele.told_bytes());
        }
        let own = |house: &House| -> usize {
            let sessions = house.hub.clientele.sessions().iter();
            sessions
                .map(|(_, session)| session.speech().kept_alone())
                .sum()
        };
        most.kept = most.kept.max(own(house));
        let before = house.hub.clientele.told_bytes();
        house.hub.flush();
        most.offered = most
            .offered
            .max(before.saturating_sub(house.hub.clientele.told_bytes()));
        for far in &mut *crowd {
            let told = far.take();
            views += told
                .iter()
                .filter(|told| matches!(told, Reply::View(_)))
                .count();
        }
        let waits = house.hub.clientele.has_waiting_changes();
        if !delivered && !waits && !house.hub.has_work() {
            return (most, views);
        }
    }
}

#[test]
fn a_storm_of_views_is_told_in_steps_shared_by_all_and_costs_no_reader_its_connection() {
    // The queue takes less than one step for each of them: a client that reads is not judged before it could.
    let mut house = House::new("message_bytes = 65536\nclient_queue_bytes = 262144");
    let mut crowd = crowd(&mut house);
    deliver_all(&mut house, &mut crowd);
    let mut storm = house.client("storm", false);
    let mut changes = 0;
    let (mut most, mut views) = (Most::default(), 0);
    for _ in 0..5 {
        for at in 0..50 {
            storm.ask(&join(2 * at, "x"));
            storm.ask(&leave(2 * at + 1, "x"));
            changes += 2;
        }
        let (step, seen) = deliver_all(&mut house, &mut crowd);
        storm.take();
        most.told = most.told.max(step.told);
        most.offered = most.offered.max(step.offered);
        most.kept = most.kept.max(step.kept);
        views += seen;
    }
    assert_eq!(views, changes * MEMBERS, "everybody sees everything");
    // One view more than there is room for, to all.
    let view = 64 + 15 * (MEMBERS + 1);
    assert!(most.told > MOST_BYTES / 2, "{}", most.told);
    assert!(most.told <= MOST_BYTES + MEMBERS * view, "{}", most.told);
    assert!(most.offered <= MOST_BYTES + (1 << 20), "{}", most.offered);
    assert!(most.kept < MOST_BYTES / 8, "{}", most.kept);
    assert_eq!(house.hub.clientele.journal().counted(Counter::Slow), 0);
}

/// With a new configuration all groups change at once.
#[test]
fn one_delivery_that_changes_much_is_told_in_steps() {
    let mut house = House::new("");
    let mut crowd = crowd(&mut house);
    for far in &mut crowd {
        for at in 0..20 {
            far.ask(&join(at, &format!("g{at}")));
        }
    }
    let (most, views) = deliver_all(&mut house, &mut crowd);
    assert!(views > 10 * MEMBERS * MEMBERS, "{views}");
    let view = 64 + 15 * (MEMBERS + 1);
    assert!(most.told <= MOST_BYTES + MEMBERS * view, "{}", most.told);
    assert_eq!(house.hub.clientele.journal().counted(Counter::Slow), 0);
}

#[test]
fn clients_that_read_nothing_share_what_may_wait_for_all() {
    // Eight of the largest queues are always allowed.
    let settings = "message_bytes = 65536\nclient_queue_bytes = 262144\nqueues_bytes = 1";
    let mut house = House::new(settings);
    let mut crowd = crowd(&mut house);
    deliver_all(&mut house, &mut crowd);
    let mut storm = house.client("storm", false);
    for _ in 0..20 {
        for at in 0..20 {
            storm.ask(&join(2 * at, "x"));
            storm.ask(&leave(2 * at + 1, "x"));
        }
        // The members do not read.
        deliver_all(&mut house, &mut []);
        storm.take();
        let kept: usize = house
            .hub
            .clientele
            .sessions()
            .iter()
            .map(|(_, one)| one.kept())
            .sum();
        assert!(kept <= 8 * 262_144 + 2 * MOST_BYTES, "{kept}");
    }
    assert!(house.hub.clientele.journal().counted(Counter::Slow) > 0);
}
