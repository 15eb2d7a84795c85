//! Rings that form, break, part and merge, without loss: the plain course of each.

mod lockstep;

use std::collections::BTreeSet;

use lockstep::Ring;
use rota_core::contract::{Configuration, ConfigurationKind, Delivery, Engine, Service};

const MILLI: u64 = 1_000_000;

/// What each node has delivered: configurations as lists of nodes, `t` in front of a transitional one,
/// and messages by their text.
struct Seen(Vec<Vec<String>>);

impl Seen {
    fn new(nodes: usize) -> Self {
        Self(vec![Vec::new(); nodes])
    }

    fn run(&mut self, ring: &mut Ring, rounds: usize) {
        (0..rounds).for_each(|_| self.step(ring, MILLI));
    }

    fn step(&mut self, ring: &mut Ring, nanos: u64) {
        for (node, deliveries) in ring.round(nanos).into_iter().enumerate() {
            self.0[node].extend(deliveries.iter().map(describe));
        }
    }

    fn last(&self, node: usize) -> &str {
        self.0[node].last().map_or("", String::as_str)
    }
}

fn describe(delivery: &Delivery) -> String {
    match delivery {
        Delivery::Configuration(Configuration { kind, members }) => {
            let kind = match kind {
                ConfigurationKind::Regular(_) => "",
                ConfigurationKind::Transitional { .. } => "t",
            };
            let members: Vec<_> = members.iter().map(|m| m.node.to_string()).collect();
            format!("{kind}{{{}}}", members.join(","))
        }
        Delivery::Message(message) => String::from_utf8_lossy(&message.payload).into_owned(),
        Delivery::Passed { .. } => "skips".to_owned(),
        Delivery::Notice { .. } => "notice".to_owned(),
        Delivery::Primary(ring) => format!("primary {ring}"),
        Delivery::Excluded(ring) => format!("excluded {ring}"),
        Delivery::Missed { own, .. } => format!("missed {own}"),
    }
}

fn submit(ring: &mut Ring, node: usize, service: Service, text: &str) {
    let now = ring.now;
    ring.engines[node]
        .submit(now, service, text.as_bytes())
        .expect("there is room");
}

#[test]
fn nodes_that_start_together_end_on_one_ring() {
    for nodes in 1..=8 {
        let mut ring = Ring::new(nodes, 10, 50);
        let mut seen = Seen::new(usize::from(nodes));
        seen.run(&mut ring, 200);
        let all: Vec<_> = (1..=nodes).map(|node| node.to_string()).collect();
        for node in 0..usize::from(nodes) {
            assert_eq!(
                seen.0[node][0],
                format!("{{{}}}", node + 1),
                "alone at first"
            );
            assert_eq!(seen.last(node), format!("{{{}}}", all.join(",")));
        }
    }
}

#[test]
fn the_survivors_of_a_silent_death_go_on() {
    let mut ring = Ring::new(4, 10, 50);
    let mut seen = Seen::new(4);
    seen.run(&mut ring, 200);
    ring.dead.insert(1);
    // The ring was idle: the message gets its place only on the next.
    submit(&mut ring, 2, Service::Safe, "m");
    let before = seen.0[0].len();
    seen.run(&mut ring, 1500);
    assert_eq!(seen.0[0][before..], ["t{1,3,4}", "{1,3,4}", "m"]);
    assert_eq!(seen.last(3), "m");
    ring.restart(1, 9);
    seen.run(&mut ring, 500);
    for node in 0..4 {
        assert_eq!(seen.last(node), "{1,2,3,4}");
    }
}

/// Its predecessor's token is refused. On a slow ring the next is due only when the first refusal does not
/// count any more, so it is asked again at once.
#[test]
fn who_dies_on_a_living_host_is_not_waited_for() {
    const STEP: u64 = 15 * MILLI;
    for dead in 0..4 {
        let mut ring = Ring::new(4, 10, 50);
        let mut seen = Seen::new(4);
        seen.run(&mut ring, 200);
        let rest: Vec<_> = (0..4).filter(|at| *at != dead).collect();
        for round in 0..40 {
            if round == 20 {
                ring.hosts_live = true;
                ring.dead.insert(dead);
            }
            // The ring is never idle.
            for at in &rest {
                submit(&mut ring, *at, Service::Agreed, "m");
            }
            seen.step(&mut ring, STEP);
        }
        // 300 ms: a token is missed after 320, a member given up after 720.
        let names: Vec<_> = rest.iter().map(|at| (at + 1).to_string()).collect();
        let regular = format!("{{{}}}", names.join(","));
        for at in rest {
            let last = seen.0[at].iter().rfind(|text| text.starts_with('{'));
            assert_eq!(last, Some(&regular), "node {}", at + 1);
        }
    }
}

#[test]
fn a_network_that_parts_and_heals() {
    let mut ring = Ring::new(5, 10, 50);
    let mut seen = Seen::new(5);
    seen.run(&mut ring, 200);
    ring.part(&[0, 3]);
    seen.run(&mut ring, 1500);
    assert_eq!((seen.last(0), seen.last(1)), ("{1,4}", "{2,3,5}"));
    submit(&mut ring, 0, Service::Agreed, "left");
    submit(&mut ring, 1, Service::Safe, "right");
    seen.run(&mut ring, 100);
    assert_eq!((seen.last(3), seen.last(4)), ("left", "right"));
    ring.cut.clear();
    seen.run(&mut ring, 300);
    for (node, transitional) in [(0, "t{1,4}"), (1, "t{2,3,5}")] {
        let tail = &seen.0[node][seen.0[node].len() - 2..];
        assert_eq!(tail, [transitional, "{1,2,3,4,5}"]);
    }
    submit(&mut ring, 4, Service::Safe, "all");
    seen.run(&mut ring, 100);
    assert!((0..5).all(|node| seen.last(node) == "all"));
}

#[test]
fn who_leaves_is_not_waited_for() {
    let mut ring = Ring::new(3, 10, 50);
    let mut seen = Seen::new(3);
    seen.run(&mut ring, 200);
    let now = ring.now;
    ring.engines[1].leave(now);
    seen.run(&mut ring, 40);
    assert_eq!((seen.last(0), seen.last(2)), ("{1,3}", "{1,3}"));
}

/// In a recovery one node sends what another cannot hear and asks for in vain: it is the one that answers,
/// and the token would go round for ever. It leaves the request to the others, who can be heard.
#[test]
fn a_recovery_that_one_member_cannot_hear_comes_to_an_end() {
    for wait in 20..32 {
        let mut ring = Ring::new(3, 10, 50);
        let mut seen = Seen::new(3);
        seen.run(&mut ring, 200);
        ring.part(&[1]);
        seen.run(&mut ring, 1500);
        // Only node 3 has its message when node 2 comes back, which never hears node 3.
        ring.cut.insert((2, 0));
        submit(&mut ring, 2, Service::Agreed, "m");
        seen.run(&mut ring, wait);
        ring.cut = BTreeSet::from([(2, 1)]);
        ring.restart(1, 9);
        seen.0.iter_mut().for_each(Vec::clear);
        // Three times the token loss time, and what else it takes.
        seen.run(&mut ring, 1200);
        for node in [0, 2] {
            let ring = seen.0[node].iter().find(|text| text.starts_with('{'));
            assert_eq!(
                ring.map(String::as_str),
                Some("{1,2,3}"),
                "node {}",
                node + 1
            );
        }
    }
}
