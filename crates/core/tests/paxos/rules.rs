//! Single rules, by hand.

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_core::paxos::{Acceptor, AcceptorId, Value, ValueId, Vote};

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
