//! Nodes that restart while the ring forms.

mod lockstep;

use bytes::Bytes;
use lockstep::Ring;
use rota_core::contract::{
    Class, ConfigurationKind, Delivery, Engine, Incarnation, NodeId, Process, Service,
};
use rota_core::wire::{Hello, Packet};

/// Rounds of a millisecond until everybody has delivered a message of everybody.
fn orders_something(ring: &mut Ring) {
    let nodes = ring.engines.len();
    let now = ring.now;
    for engine in &mut ring.engines {
        engine
            .submit(now, Service::Safe, b"after all")
            .expect("there is room");
    }
    let mut messages = vec![0; nodes];
    let mut members = vec![Vec::new(); nodes];
    for _ in 0..2000 {
        for (node, deliveries) in ring.round(1_000_000).into_iter().enumerate() {
            for delivery in deliveries {
                match delivery {
                    Delivery::Message(_) => messages[node] += 1,
                    Delivery::Configuration(configuration) => {
                        assert!(matches!(configuration.kind, ConfigurationKind::Regular(_)));
                        members[node] = configuration.members;
                    }
                    Delivery::Skips { .. } => {}
                }
            }
        }
    }
    assert_eq!(messages, vec![nodes; nodes]);
    assert!(
        members.iter().all(|list| *list == members[0]),
        "{members:?}"
    );
}

/// Lets the ring form until the representative has named it, and keeps that from `deaf`.
fn named_but_not_heard_of_by(deaf: usize) -> Ring {
    let mut ring = Ring::new(3, 10, 40);
    ring.deaf = Some(deaf);
    for _ in 0..50 {
        ring.round(1_000_000);
        if ring.engines[0].get().ordering().is_some() {
            ring.deaf = None;
            return ring;
        }
    }
    panic!("the representative has named no ring");
}

#[test]
fn a_member_restarts_between_being_counted_on_and_hearing_of_the_ring() {
    let mut ring = named_but_not_heard_of_by(2);
    ring.restart(2, 7);
    orders_something(&mut ring);
    assert_eq!(ring.engines[0].get().counters().members_restarted, 1);
}

#[test]
fn a_hello_in_the_receivers_own_name_changes_nothing() {
    let mut ring = Ring::new(3, 10, 40);
    let hello = Hello {
        cluster: 1,
        process: Process {
            node: NodeId::new(1).expect("not 0"),
            incarnation: Incarnation(99),
        },
        installed: None,
    };
    let bytes = Bytes::from(Packet::Hello(hello).encode());
    ring.queues[0].push_back((Class::Token, bytes));
    orders_something(&mut ring);
    let counters = ring.engines[0].get().counters();
    assert_eq!(counters.datagrams_foreign_ring, 1);
    assert_eq!(counters.members_restarted, 0);
}

#[test]
fn a_member_restarts_twice_and_its_older_lives_are_heard_of_late() {
    let mut ring = named_but_not_heard_of_by(1);
    ring.restart(1, 7);
    // Its hellos are on their way when it dies again.
    ring.round(1);
    let old: Vec<_> = ring.queues.clone();
    ring.restart(1, 8);
    for (queue, late) in ring.queues.iter_mut().zip(old) {
        queue.extend(late);
    }
    orders_something(&mut ring);
}

#[test]
fn the_representative_restarts_after_naming_a_ring() {
    let mut ring = named_but_not_heard_of_by(2);
    ring.restart(0, 7);
    orders_something(&mut ring);
}
