//! Rings that form, break, part and merge, without loss: the plain course of each.

mod lockstep;

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
        for _ in 0..rounds {
            for (node, deliveries) in ring.round(MILLI).into_iter().enumerate() {
                self.0[node].extend(deliveries.iter().map(describe));
            }
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
        Delivery::Skips { .. } => "skips".to_owned(),
        Delivery::Primary(ring) => format!("primary {ring}"),
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
