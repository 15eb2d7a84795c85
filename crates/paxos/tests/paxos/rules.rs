//! Single rules, by hand.

use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_paxos::{
    Acceptor, AcceptorId, Config, Coordinator, Progress, Promise, Value, ValueId, Vote,
};

pub fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

pub fn process(id: u16, life: u64) -> Process {
    Process {
        node: node(id),
        incarnation: Incarnation(life),
    }
}

pub fn store(id: u16) -> AcceptorId {
    AcceptorId {
        node: node(id),
        store: u64::from(id),
    }
}

pub fn id(who: u16, life: u64, counter: u64) -> ValueId {
    ValueId {
        process: process(who, life),
        counter,
    }
}

pub fn packet(counter: u64) -> Value {
    Value::Packet {
        id: id(1, 1, counter),
        frame: Bytes::from(counter.to_le_bytes().to_vec()),
    }
}

pub fn vote(first: u64, round: u64, value: Value) -> Vote {
    Vote {
        first,
        round,
        value,
    }
}

/// Whether a promise may be sent only when it is durable, and a vote told of only then.
pub fn a_promise_waits_for_the_disk() -> bool {
    let mut acceptor = Acceptor::new(store(1));
    let promised = acceptor.prepare(5, 1, 1).is_ok() && !acceptor.has_promised(5);
    let (_, mark) = acceptor.records();
    let waits = !acceptor.has_promised(5);
    acceptor.on_durable(mark);
    promised && waits && acceptor.has_promised(5)
}

/// A configuration of these nodes, of which the first coordinates.
pub fn config(number: u64, acceptors: &[u16]) -> Config {
    Config {
        founded: 1,
        number,
        coordinator: process(1, 1),
        ring: acceptors.iter().map(|node| process(*node, 1)).collect(),
        acceptors: acceptors.iter().map(|node| store(*node)).collect(),
        prior: Vec::new(),
    }
}

/// A promise for round 7, from instance 10 on.
pub fn promise(who: u16, held: u64, votes: Vec<Vote>) -> Promise {
    Promise {
        round: 7,
        acceptor: store(who),
        from: 10,
        held,
        kept: 1,
        votes,
    }
}

/// Where round 7 starts if one acceptor holds what is before `held`, and another has forgotten what is before `kept`.
pub fn start(held: u64, kept: u64) -> Option<u64> {
    let mut coordinator = Coordinator::new(Arc::new(config(7, &[1, 2, 3])), 10);
    let forgetful = Promise {
        kept,
        ..promise(2, kept, Vec::new())
    };
    coordinator.on_promise(promise(1, held, Vec::new()));
    assert_eq!(coordinator.on_promise(forgetful), Progress::Begun);
    assert_eq!(coordinator.kept(), kept);
    coordinator.start()
}

/// What is known to be decided by who votes for something that comes behind what others have forgotten.
pub fn floor_of_who_votes() -> u64 {
    let mut acceptor = Acceptor::new(store(1));
    let _ = acceptor.accept(5, 5, &vote(5, 2, packet(5)));
    acceptor.floor()
}
