//! Who is outside the ring: when it is taken in, and when it stands itself.

use std::sync::Arc;

use rota_core::contract::Input;
use rota_paxos as paxos;
use rota_paxos::uring::{Arbiter, Here, Word};
use rota_paxos::{Ballot, Config};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::rounds::{passes, stands};
use super::rules::{batch_of, follow, second};

const MILLI: u64 = 1_000_000;

/// A configuration of these nodes, with the first as coordinator.
fn ring_of(alone: &Alone, number: u64, nodes: &[u16]) -> Arc<Config> {
    let mut config = (*alone.config(1)).clone();
    config.number = number;
    config.ring = nodes.iter().map(|node| process(*node, 1)).collect();
    Arc::new(config)
}

fn know(alone: &mut Alone, number: u64, nodes: &[u16]) {
    let config = ring_of(alone, number, nodes);
    alone.hear(3, Word::Known(config).encode(FOUNDED));
    alone.write();
}

/// Who is left out of one ring after the other, each time soon, asks to be taken in later and later; that the others are together in the
/// meantime changes nothing.
pub fn who_is_left_out_again_and_again_waits_longer() -> bool {
    let mut alone = second();
    let silence = settings().patience.silence / MILLI;
    let asks = |alone: &Alone| {
        let joins = |word: &Word| matches!(word, Word::Here(here) if here.joins);
        alone.said.iter().any(joins)
    };
    let mut waits = Vec::new();
    for time in 1..8 {
        know(&mut alone, 2 * time, &[1, 3]);
        alone.said.clear();
        let mut waited = 0;
        passes(&mut alone, 30 * silence, |alone, _| {
            waited += u64::from(!asks(alone));
        });
        waits.push(waited * 50);
        know(&mut alone, 2 * time + 1, &[1, 2, 3]);
        passes(&mut alone, silence / 2, |_, _| {});
        // What says which store it has was forgotten with the rest.
        alone.said.push(Word::Here(Here {
            number: 1,
            acceptor: Some(acceptor(2)),
            complete: 0,
            joins: false,
        }));
    }
    waits[0] <= 2 * silence && waits[6] >= 15 * silence
}

/// Who waits outside is taken in at once where the others are too few without it.
pub fn who_waits_outside_is_taken_in_where_it_is_needed() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    know(&mut first, 2, &[1, 2]);
    let here = Here {
        number: 2,
        acceptor: Some(acceptor(3)),
        complete: 0,
        joins: false,
    };
    first.hear(3, Word::Here(here).encode(FOUNDED));
    first.unlink(2);
    let silence = settings().patience.silence / MILLI;
    passes(&mut first, 2 * silence, |_, _| {});
    stands(&first).contains(&3)
}

/// Who has no link to the coordinator is outside, and stands; those in the ring, who have one, do not answer it. When the coordinator is
/// gone they do.
pub fn a_ring_that_is_well_is_not_taken_apart_from_outside() -> bool {
    let mut alone = second();
    follow(&mut alone, 1, 1);
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 1, |batch| batch.skip(2));
    alone.write();
    assert!(alone.engine.is_operational());
    alone.link(process(4, 1));
    let ask = |alone: &mut Alone, node: u16, count: u64| {
        let by = process(node, 1);
        let ballot = Ballot { count, by };
        let word = Word::Ask(2, paxos::Word::Prepare(ballot));
        alone.hear(node, word.encode(FOUNDED));
        alone.write();
        alone.answer().is_some()
    };
    let outside = ask(&mut alone, 4, 1);
    let inside = ask(&mut alone, 3, 2);
    let mut alone = alone;
    alone.said.clear();
    alone.unlink(1);
    let gone = ask(&mut alone, 4, 3);
    !outside && inside && gone
}

/// A coordination service asks nobody: who is outside leaves those in the ring the time to see themselves what is wrong.
pub fn where_a_service_decides_who_is_outside_waits() -> bool {
    let mut with_service = settings();
    with_service.arbiter = Arbiter::Service;
    let mut alone = Alone::with(with_service, process(2, 1), Vec::new());
    alone.link(process(3, 1));
    know(&mut alone, 5, &[1, 3]);
    let retry = settings().patience.retry / MILLI;
    passes(&mut alone, 50 * retry, |_, _| {});
    let early = alone.wanted.clone();
    passes(&mut alone, 60 * retry, |_, _| {});
    alone.tell(Input::Timer);
    early.is_empty() && alone.wanted.contains(&6)
}
