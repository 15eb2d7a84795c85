//! Waits that have an end: rounds that take long to begin, or cannot go on, and candidates whom nobody answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_core::contract::{Input, Time};
use rota_paxos as paxos;
use rota_paxos::uring::{Hello, Record, URingConfig, Word};
use rota_paxos::{Promise, Value, Vote};

use super::alone::{Alone, FOUNDED, acceptor, outsider, process, settings};
use super::rules::{batch_by, batch_of, follow, head, hear_batch, second};

const MILLI: u64 = 1_000_000;

/// The numbers for which it stands.
pub fn stands(alone: &Alone) -> BTreeSet<u64> {
    let of = |word: &Word| match word {
        Word::Ask(number, _) => Some(*number),
        _ => None,
    };
    alone.said.iter().filter_map(of).collect()
}

/// So long, in steps, in each of which the test does something.
pub fn passes(alone: &mut Alone, millis: u64, mut each: impl FnMut(&mut Alone, u64)) {
    for step in 0..millis / 50 {
        alone.now = Time(alone.now.0 + 50 * MILLI);
        alone.room();
        each(alone, step);
        alone.tell(Input::Timer);
    }
}

/// The second's, for the first round.
fn promise(votes: Vec<Vote>) -> Promise {
    Promise {
        round: 1,
        acceptor: acceptor(2),
        from: 1,
        held: 1,
        kept: 1,
        votes,
    }
}

/// The first coordinates the first configuration of three, and has promises of a majority: it began at the first instance.
fn coordinator() -> Alone {
    coordinator_with(settings())
}

pub fn coordinator_with(settings: URingConfig) -> Alone {
    let mut first = Alone::with(settings, process(1, 1), Vec::new());
    first.join();
    first.write();
    first.hear(2, Word::Promise(promise(Vec::new()), false).encode(FOUNDED));
    first.write();
    follow_of(&mut first, 2);
    assert!(first.engine.is_operational());
    first
}

fn follow_of(alone: &mut Alone, node: u16) {
    let follow = rota_paxos::uring::ResumeFrom {
        round: alone.follow().round,
        epoch: 1,
        next: 0,
    };
    alone.hear(node, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
}

/// The log of the coordinator fails before its promise is durable, and one other acceptor has promised: the round begins when the log
/// is open again.
pub fn a_coordinator_whose_log_is_open_again_promises_itself() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.write_all();
    first.join();
    first.fail();
    first.hear(2, Word::Promise(promise(Vec::new()), false).encode(FOUNDED));
    follow_of(&mut first, 2);
    assert!(
        !first.engine.is_operational(),
        "two of three have to promise"
    );
    first.reopen(first.all_on_disk(), false);
    first.write_all();
    first.write_all();
    first.engine.is_operational()
}

/// The log of the second is away while the round has not begun, and open again when it does. Whether the second says that it votes for
/// nothing; one whose log is away then does.
fn says_that_it_is_mute(reopens: bool) -> bool {
    let mut alone = second();
    alone.write_all();
    alone.fail();
    follow(&mut alone, 1, 0);
    passes(&mut alone, 100, |_, _| {});
    if reopens {
        alone.reopen(alone.all_on_disk(), false);
        alone.write_all();
    }
    for _ in 0..4 {
        let epoch = alone.follow().epoch;
        batch_of(&mut alone, epoch, 1, |_| {});
        passes(&mut alone, 50, |_, _| {});
    }
    assert!(alone.engine.is_operational());
    let mut records = alone.batches.iter().flatten();
    records.any(|record| matches!(record, Record::LogFailed(_)))
}

/// Who votes from the start of a round does not say before that it votes for nothing: nobody would wait for its votes, and where
/// there is no other acceptor nothing would ever be forgotten.
pub fn who_votes_from_the_start_is_not_mute() -> bool {
    says_that_it_is_mute(false) && !says_that_it_is_mute(true)
}

/// The third is heard, which is the coordinator's predecessor.
fn beat(first: &mut Alone, write: impl FnOnce(&mut rota_paxos::uring::Writer)) {
    let epoch = first.follow().epoch;
    batch_by(first, 3, (epoch, 0), write);
}

/// One acceptor has lost its place in the round, and the log of another fails: no majority votes, and nobody is silent.
pub fn who_coordinates_sees_that_nobody_votes() -> bool {
    let mut first = coordinator();
    beat(&mut first, |batch| batch.voted(2, 1));
    first.submit(b"waits");
    beat(&mut first, |batch| {
        batch.log_failed(1);
        batch.log_failed(2);
    });
    let patience = settings().patience;
    let millis = (10 * patience.disk) / MILLI;
    let mut early = false;
    passes(&mut first, millis, |first, step| {
        early |= step < 20 && !stands(first).is_empty();
        beat(first, |_| {});
        first.write();
    });
    !early && stands(&first) == BTreeSet::from([2])
}

/// While there is something to propose and votes come, however slowly, the round goes on.
fn a_slow_majority_is_one() -> bool {
    let mut first = coordinator();
    (0..100).for_each(|_| first.submit(&[7; 30_000]));
    let mut voted = 1;
    passes(&mut first, 20_000, |first, step| {
        if step % 20 == 0 {
            voted += 1;
        }
        beat(first, |batch| batch.voted(1, voted));
        first.write();
    });
    stands(&first).is_empty()
}

/// It lacks something that was proposed in the round, and can vote for nothing behind it: others do not wait for it, and when it
/// has learnt what it lacked it wants another round.
pub fn who_cannot_vote_any_more_asks_for_another_round() -> bool {
    let mut alone = second();
    follow(&mut alone, 1, 1);
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 1, |batch| batch.skip(2));
    alone.write();
    // What is before the predecessor has forgotten.
    batch_of(&mut alone, epoch, 1000, |batch| {
        batch.skip(1);
        batch.voted(0, 1001);
        batch.voted(2, 1001);
    });
    alone.write();
    passes(&mut alone, 400, |alone, _| {
        batch_of(alone, epoch, 1001, |_| {})
    });
    let records = alone.batches.iter().flatten();
    let is_mute = records
        .into_iter()
        .any(|record| *record == Record::LogFailed(1));
    let early = stands(&alone);
    let vote = Vote {
        first: 3,
        round: 1,
        value: Value::Skip(997),
    };
    alone.hear(1, Word::Chosen(vec![vote]).encode(FOUNDED));
    alone.write();
    passes(&mut alone, 400, |alone, _| {
        batch_of(alone, epoch, 1001, |_| {})
    });
    is_mute && early.is_empty() && stands(&alone) == BTreeSet::from([2])
}

/// A candidate whom nobody answers asks again, and each time later.
pub fn a_candidate_gives_slow_disks_time() -> bool {
    let mut alone = second();
    alone.unlink(1);
    passes(&mut alone, 30_000, |alone, _| {
        follow(alone, 1, 1);
    });
    let ballots: BTreeSet<u64> = alone
        .said
        .iter()
        .filter_map(|word| match word {
            Word::Ask(2, paxos::Word::Prepare(ballot)) => Some(ballot.count),
            _ => None,
        })
        .collect();
    (4..=12).contains(&ballots.len())
}

/// As long as the coordinator is told something the round is waited for; then it is not.
pub fn a_round_takes_as_long_to_begin_as_there_is_to_tell() -> bool {
    let mut alone = second();
    alone.hear(1, Word::Prepare(1, 1).encode(FOUNDED));
    alone.write();
    follow(&mut alone, 1, 0);
    let beat = |alone: &mut Alone, told| {
        let mut head = head(1, alone.follow().epoch, (0, 0));
        head.kept = told;
        hear_batch(alone, 1, &head, |_| {});
    };
    passes(&mut alone, 10_000, |alone, step| beat(alone, 1 + step / 10));
    let early = stands(&alone);
    passes(&mut alone, 3_000, |alone, _| beat(alone, 20));
    early.is_empty() && !stands(&alone).is_empty()
}

/// The second promises, and more is to come.
fn part(first: u64) -> Word {
    let vote = Vote {
        first,
        round: 0,
        value: Value::Skip(1),
    };
    let promise = promise(vec![vote]);
    Word::Promise(promise, true)
}

/// The coordinator's predecessor has nothing to say, in a round that has not begun.
fn silent(first: &mut Alone) {
    let head = head(1, first.follow().epoch, (0, 0));
    hear_batch(first, 3, &head, |_| {});
}

/// Who wants to be taken in waits while promises come: the next round would have to be told them all again. When none come any
/// more it is taken in.
pub fn who_comes_waits_while_promises_do() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    follow_of(&mut first, 2);
    first.link(process(4, 1));
    first.hear(4, outsider().encode(FOUNDED));
    passes(&mut first, 5_000, |alone, step| {
        silent(alone);
        alone.hear(2, part(1 + step).encode(FOUNDED));
    });
    let early = stands(&first);
    let silence = settings().patience.silence / MILLI;
    passes(&mut first, silence + 200, |alone, _| silent(alone));
    early.is_empty() && !stands(&first).is_empty()
}

/// The coordinator says so, for each part of a promise.
fn how_much_was_told_goes_along_the_ring() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    follow_of(&mut first, 2);
    passes(&mut first, 10_000, |alone, step| {
        silent(alone);
        if step % 8 == 0 {
            alone.hear(2, part(1 + step).encode(FOUNDED));
        }
    });
    let early = stands(&first);
    passes(&mut first, 3_000, |alone, _| silent(alone));
    early.is_empty() && !stands(&first).is_empty()
}

#[cfg(not(feature = "mutants"))]
#[test]
fn waits_have_an_end_and_are_long_enough() {
    assert!(a_slow_majority_is_one());
    assert!(how_much_was_told_goes_along_the_ring());
}

/// The next configurations, half of the silence after each other; now one and now another is left out.
fn follow_each_other(alone: &mut Alone, many: u64) {
    let number = alone.follow().round;
    for number in number + 1..=number + many {
        passes(alone, settings().patience.silence / MILLI / 2, |_, _| {});
        let mut next = (*alone.config(1)).clone();
        next.number = number;
        let left_out = process(20 + number as u16, 1);
        next.ring.push(left_out);
        alone.hear(1, Word::Known(Arc::new(next)).encode(FOUNDED));
    }
}

/// Whether it stands against its predecessor when that has been silent for so many times as long as is usual.
fn suspects_in(alone: &mut Alone, silences: u64) -> bool {
    passes(
        alone,
        silences * settings().patience.silence / MILLI,
        |_, _| {},
    );
    stands(alone).contains(&(alone.follow().round + 1))
}

/// Configurations that follow each other say that nodes are too busy to be heard in time, and not that they are gone. One that
/// lasts says that this is over.
pub fn where_configurations_do_not_last_silence_lasts_longer() -> bool {
    let mut alone = second();
    follow_each_other(&mut alone, 3);
    let few = suspects_in(&mut alone, 2);
    follow_each_other(&mut alone, 5);
    let early = suspects_in(&mut alone, 5);
    let at_last = suspects_in(&mut alone, 5);
    follow_each_other(&mut alone, 1);
    let lasts = 90 * settings().patience.silence / MILLI;
    follow_of(&mut alone, 3);
    passes(&mut alone, lasts, |alone, step| {
        let follow = alone.follow();
        let mut head = head(follow.round, follow.epoch, (0, 0));
        // The round gets nearer to its beginning.
        head.kept = 2 + step;
        hear_batch(alone, 1, &head, |_| {});
    });
    let calm = suspects_in(&mut alone, 0);
    let later = suspects_in(&mut alone, 2);
    few && !early && at_last && !calm && later
}

/// The round has begun, and for so many times the silence after that `each` is all that the second hears. Whether it stands.
fn stands_beside(silences: u64, each: impl Fn(&mut Alone)) -> bool {
    let mut alone = second();
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 1, |_| {});
    let millis = silences * settings().patience.silence / MILLI;
    passes(&mut alone, millis, |alone, _| each(alone));
    !stands(&alone).is_empty()
}

/// On a slow link what a predecessor has to say of a new ring waits behind what it has to say of the one before, and behind words. It
/// lives, then; but who says nothing of its ring for long is as bad as one that is silent.
pub fn a_predecessor_that_says_something_else_lives() -> bool {
    let here = |node| {
        let here = Hello {
            number: 1,
            acceptor: Some(acceptor(node)),
            complete: 0,
            joins: false,
        };
        move |alone: &mut Alone| alone.hear(node, Word::Hello(here).encode(FOUNDED))
    };
    let old = |alone: &mut Alone| {
        let epoch = alone.follow().epoch;
        hear_batch(alone, 1, &head(0, epoch, (1, 1)), |_| {});
    };
    let of_another = stands_beside(5, here(3));
    let words = stands_beside(5, here(1));
    let old_ones = stands_beside(5, old);
    let for_long = stands_beside(12, here(1)) && stands_beside(12, old);
    of_another && !words && !old_ones && for_long
}

/// A successor that has no link to its predecessor may see too few to go on without that: the predecessor, which sees more, leaves it
/// out. Not at once, as the successor may be about to.
pub fn who_has_no_link_to_its_predecessor_is_left_out_by_it() -> bool {
    let mut alone = second();
    follow(&mut alone, 1, 1);
    let silence = settings().patience.silence / MILLI;
    let hears = |alone: &mut Alone, _| {
        let epoch = alone.follow().epoch;
        batch_of(alone, epoch, 1, |_| {});
    };
    passes(&mut alone, 12 * silence, hears);
    let calm = stands(&alone).is_empty();
    alone.unlink(3);
    passes(&mut alone, silence, hears);
    let early = !stands(&alone).is_empty();
    passes(&mut alone, 4 * silence, hears);
    calm && !early && stands(&alone).contains(&2)
}
