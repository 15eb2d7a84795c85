//! Faults that simulation has found, each made by hand: former lives of nodes, a ring of one that is traced, and
//! members that learn of more after they have agreed.

use std::collections::BTreeSet;

use rota_core::contract::{Delivery, Engine, Input, Output, Service, StartState, Time};
use rota_ring::RingEngine;
use rota_ring::wire::{Join, Packet};

use crate::net::{Fate, Flying, Kind, Net, config};

/// Joins that node 1 has sent in a life that is over; its present one is on the ring.
fn with_joins_of_a_former_life() -> (Net, Vec<Flying>) {
    let mut net = Net::formed(3);
    net.keeps_log = true;
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
    net.come_together();
    let log = std::mem::take(&mut net.log);
    let of_it = |flying: &Flying| flying.kind == Kind::Join && flying.from == 1;
    let joins: Vec<_> = log.into_iter().filter(of_it).collect();
    assert!(!joins.is_empty());
    net.keeps_log = false;
    net.restart(1);
    net.come_together();
    (net, joins)
}

#[test]
fn a_join_of_a_former_life_does_not_displace_the_present_one() {
    let (mut net, joins) = with_joins_of_a_former_life();
    let ring = net.ring(0);
    for join in &joins {
        net.fly(join.clone(), 0);
        net.step();
        assert_eq!(net.phase(join.to), "operational");
    }
    net.run_for(net.timers().token_loss);
    assert_eq!(net.ring(0), ring, "nobody has moved for it");
    // Nor while they gather: the present life is on the next ring with them.
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
    for join in &joins {
        net.fly(join.clone(), 0);
    }
    net.come_together();
    assert_eq!(net.transitional(0), [0, 1, 2]);
    net.rest();
}

#[test]
fn a_restarted_process_does_not_wait_for_its_own_former_life() {
    for at in 0..3 {
        let mut net = Net::formed(3);
        let former = net.hosts[at].me;
        net.restart(at);
        let before = net.now;
        net.keeps_log = true;
        net.come_together();
        let took = net.now.since(before);
        assert!(took < net.timers().token_loss / 2, "{took} ns");
        // Others have named its former life to it: it counts that as over at once.
        let said = net
            .log
            .iter()
            .rev()
            .find_map(|flying| match &*flying.packet {
                Packet::Join(join) if flying.from == at && join.procs.contains(&former) => {
                    Some(join.clone())
                }
                _ => None,
            });
        assert!(said.expect("it has said so").fails.contains(&former));
        net.rest();
    }
}

#[test]
fn a_traced_message_of_a_ring_of_one_has_its_place_before_it_is_delivered() {
    let mut engine = RingEngine::new(config(1)).expect("a valid ring");
    let net = Net::formed(1);
    let start = StartState {
        me: net.hosts[0].me,
        seed: 1,
        records: Vec::new(),
        lost_some: false,
    };
    engine.handle(Time(1), Input::Start(start));
    while let Some(output) = engine.poll_output() {
        if let Output::Persist { id, .. } = output {
            engine.handle(Time(1), Input::Persisted { id });
        }
    }
    assert!(matches!(
        engine.poll_delivery(),
        Some(Delivery::Configuration(_))
    ));
    assert_eq!(engine.poll_delivery(), None);
    for service in [Service::Agreed, Service::Safe, Service::Reliable] {
        engine
            .submit(Time(2), service, b"alone")
            .expect("there is room");
        assert_eq!(engine.poll_delivery(), None, "nobody knows its place yet");
        let output = engine.poll_output();
        assert!(
            matches!(output, Some(Output::Originated { .. })),
            "{output:?}"
        );
        assert_eq!(engine.poll_output(), None);
        assert!(matches!(engine.poll_delivery(), Some(Delivery::Message(_))));
    }
}

/// 0 and 1 agree, and before 0's commit token arrives 1 hears of 2: it will not take the token, and says
/// why; 0 need not wait for its time-out.
#[test]
fn a_ring_that_cannot_form_is_broken_off() {
    let mut net = crate::commit::broken(2);
    assert!(net.run_to(|flying| flying.kind == Kind::Commit && flying.to == 1));
    let third = rota_core::contract::Process {
        node: crate::net::id(2),
        ..net.hosts[0].me
    };
    let join = Packet::Join(Join {
        cluster: 1,
        sender: third,
        ring_seq: 1,
        leaving: false,
        procs: BTreeSet::from([third]),
        fails: BTreeSet::new(),
    });
    net.inject(1, 1, &join, 0);
    let commit = net.lose_next();
    net.step();
    net.fly(commit, 0);
    net.step();
    assert_eq!((net.phase(0), net.phase(1)), ("committing", "gathering"));
    let before = net.now;
    net.run_until("0 breaks it off", |net| net.phase(0) == "gathering");
    assert!(net.now.since(before) < net.timers().token_loss / 10);
    // The third never says anything again, and is given up.
    net.come_together();
    net.rest();
}
