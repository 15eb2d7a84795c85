//! Processes outside the ring: the times at which one is taken in, and at which it stands itself.

use std::sync::Arc;

use rota_core::contract::Input;
use rota_paxos as paxos;
use rota_paxos::uring::{Arbiter, Hello, Word};
use rota_paxos::{Ballot, Config, Promise};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::rounds::{passes, stands};
use super::rules::{batch_of, follow, head, hear_batch, second};

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

/// Whether it has asked to be taken in.
fn asks(alone: &Alone) -> bool {
    let joins = |word: &Word| matches!(word, Word::Hello(here) if here.joins);
    alone.said.iter().any(joins)
}

/// What says which store it has was forgotten with the rest that it has said.
fn remember_store(alone: &mut Alone) {
    alone.said.push(Word::Hello(Hello {
        number: 1,
        acceptor: Some(acceptor(2)),
        complete: 0,
        joins: false,
    }));
}

/// Left out of one ring after the other, in each of which it was for so many halves of the silence, in which nothing was decided: how long it
/// has waited each time, in milliseconds. Configurations to 15.
fn left_out(alone: &mut Alone, halves: u64) -> Vec<u64> {
    let silence = settings().patience.silence / MILLI;
    let mut waits = Vec::new();
    for time in 1..8 {
        know(alone, 2 * time, &[1, 3]);
        alone.said.clear();
        let mut waited = 0;
        passes(alone, 30 * silence, |alone, _| {
            waited += u64::from(!asks(alone));
        });
        waits.push(waited * 50);
        remember_store(alone);
        know(alone, 2 * time + 1, &[1, 2, 3]);
        passes(alone, halves * silence / 2, |_, _| {});
        remember_store(alone);
    }
    waits
}

fn waits_longer(halves: u64) -> bool {
    let silence = settings().patience.silence / MILLI;
    let waits = left_out(&mut second(), halves);
    waits[0] <= 2 * silence && waits[6] >= 15 * silence
}

/// Who is left out of one ring after the other, each time soon, asks to be taken in later and later; that the others are together in the
/// meantime changes nothing.
pub fn who_is_left_out_again_and_again_waits_longer() -> bool {
    waits_longer(1)
}

/// Likewise where it was in for long, and nothing was decided.
pub fn who_is_left_out_of_rings_that_decide_nothing_waits_longer() -> bool {
    waits_longer(24)
}

/// Who waits to be taken in does not wait anew with each configuration of the others.
pub fn who_waits_asks_though_the_others_go_on() -> bool {
    let mut alone = second();
    let silence = settings().patience.silence / MILLI;
    left_out(&mut alone, 1);
    for number in 16..24 {
        know(&mut alone, number, &[1, 3]);
        alone.said.clear();
        passes(&mut alone, 11 * silence, |_, _| {});
        if number > 16 && asks(&alone) {
            return true;
        }
        remember_store(&mut alone);
    }
    false
}

/// The log of one in the ring is away: who waits outside is needed, and taken in.
pub fn who_waits_outside_is_taken_in_where_a_log_is_away() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    know(&mut first, 2, &[1, 2]);
    for (node, acceptor) in [(2, None), (3, Some(acceptor(3)))] {
        let here = Hello {
            number: 2,
            acceptor,
            complete: 0,
            joins: false,
        };
        first.hear(node, Word::Hello(here).encode(FOUNDED));
    }
    let silence = settings().patience.silence / MILLI;
    passes(&mut first, 6 * silence, |alone, _| {
        let head = head(2, alone.follow().epoch, (0, 0));
        hear_batch(alone, 2, &head, |_| {});
    });
    let asked = first.said.iter().rev().find_map(|word| match word {
        Word::Ask(3, paxos::Word::Prepare(ballot)) => Some(*ballot),
        _ => None,
    });
    let promise = paxos::Word::Promise(asked.expect("it stands"), None);
    let answer = Word::Answer(3, acceptor(3), promise);
    first.hear(3, answer.encode(FOUNDED));
    first.write_all();
    let wanted = first.said.iter().rev().find_map(|word| match word {
        Word::Ask(3, paxos::Word::Accept(_, config)) => Some(config.clone()),
        _ => None,
    });
    wanted.is_some_and(|config| config.ring.contains(&process(3, 1)))
}

/// A coordinator that votes with another store than the configuration has wants another one soon.
pub fn a_coordinator_puts_its_own_store_in_place() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write_all();
    let mut config = (*first.config(1)).clone();
    config.number = 2;
    config.acceptors[0].store += 1;
    first.hear(3, Word::Known(Arc::new(config)).encode(FOUNDED));
    first.write_all();
    for node in [2, 3] {
        let promise = Promise {
            round: 2,
            acceptor: acceptor(node),
            from: 1,
            held: 1,
            kept: 1,
            votes: Vec::new(),
        };
        first.hear(node, Word::Promise(promise, false).encode(FOUNDED));
    }
    assert!(first.engine.is_operational());
    passes(
        &mut first,
        settings().patience.silence / MILLI / 2,
        |_, _| {},
    );
    stands(&first).contains(&3)
}

/// A ring in which too few vote is not well: who is outside is answered.
pub fn a_ring_that_cannot_decide_is_not_well() -> bool {
    let mut alone = second();
    follow(&mut alone, 1, 1);
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 1, |batch| batch.skip(2));
    alone.write();
    alone.link(process(4, 1));
    let ask = |alone: &mut Alone, count: u64| {
        let by = process(4, 1);
        let word = Word::Ask(2, paxos::Word::Prepare(Ballot { count, by }));
        alone.hear(4, word.encode(FOUNDED));
        alone.write();
        alone.answer().is_some()
    };
    let well = !ask(&mut alone, 1);
    batch_of(&mut alone, epoch, 3, |batch| {
        batch.log_failed(0);
        batch.log_failed(2);
    });
    well && ask(&mut alone, 2)
}

/// Who waits outside is taken in at once where the others are too few without it.
pub fn who_waits_outside_is_taken_in_where_it_is_needed() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    know(&mut first, 2, &[1, 2]);
    let here = Hello {
        number: 2,
        acceptor: Some(acceptor(3)),
        complete: 0,
        joins: false,
    };
    first.hear(3, Word::Hello(here).encode(FOUNDED));
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

/// The ballots with which it has asked for a configuration.
fn asked(alone: &Alone, of: u64) -> Vec<u64> {
    let ballot = |word: &Word| match word {
        Word::Ask(number, paxos::Word::Prepare(ballot)) if *number == of => Some(ballot.count),
        _ => None,
    };
    alone.said.iter().filter_map(ballot).collect()
}

/// Who stands goes beyond what its own acceptor has promised to another one: at first, and each time when it tries again.
pub fn a_candidate_goes_beyond_what_its_own_acceptor_has_promised() -> bool {
    let mut alone = second();
    alone.unlink(1);
    alone.link(process(4, 1));
    let silence = settings().patience.silence / MILLI;
    let mut promised = 0;
    for _ in 0..3 {
        // Another one's tries fall between its own.
        promised += 5;
        let by = process(4, 1);
        let count = promised;
        let word = Word::Ask(2, paxos::Word::Prepare(Ballot { count, by }));
        alone.hear(4, word.encode(FOUNDED));
        alone.write();
        alone.said.clear();
        passes(&mut alone, 200 * silence, |alone, _| alone.write_all());
        let asked = asked(&alone, 2);
        if asked.first().is_none_or(|ballot| *ballot <= promised) {
            return false;
        }
        promised = asked.into_iter().max().unwrap_or(promised);
    }
    true
}

/// Who was left out and stood, as there was no coordinator, leaves it in peace as soon as it is there again: it may be standing to take this
/// one in. When it is gone the candidate goes on where it was.
pub fn who_is_outside_leaves_a_coordinator_that_is_back_in_peace() -> bool {
    let mut alone = second();
    know(&mut alone, 2, &[1, 3]);
    alone.unlink(1);
    let silence = settings().patience.silence / MILLI;
    passes(&mut alone, 8 * silence, |_, _| {});
    let before = asked(&alone, 3).into_iter().max().expect("it stands");
    alone.link(process(1, 1));
    alone.said.clear();
    passes(&mut alone, 30 * silence, |_, _| {});
    let is_quiet = asked(&alone, 3).is_empty() && asks(&alone);
    alone.unlink(1);
    passes(&mut alone, 30 * silence, |_, _| {});
    is_quiet
        && asked(&alone, 3)
            .first()
            .is_some_and(|ballot| *ballot > before)
}
