//! Ranges of skipped instances at acceptors and learners: each process may have a range in other parts, and in other
//! rounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_paxos::{Acceptor, Coordinator, Learner, Progress, Promise, Value, Vote};

use super::rules::{config, packet, promise, store, vote};

/// What an acceptor finds when it begins again, all that it asked for being on the disk.
fn restarted(mut acceptor: Acceptor) -> Acceptor {
    let (records, _) = acceptor.records();
    Acceptor::restore(acceptor.id(), records)
}

/// What is decided in round 3 is not outvoted by what was proposed in round 2, whoever knows it because it was told (F1).
pub fn what_was_learnt_counts_in_its_round() -> bool {
    let mut c = Acceptor::new(store(3));
    let _ = c.accept(10, 1, &vote(10, 1, packet(1)));
    c.learn(vote(10, 3, packet(1)));
    let mut c = restarted(c);
    let mut b = Acceptor::new(store(2));
    let _ = b.accept(10, 1, &vote(10, 2, packet(2)));
    let mut new = Acceptor::new(store(1));
    let mut coordinator = Coordinator::new(Arc::new(config(7, &[1, 2, 3, 4, 5])), 10);
    for acceptor in [&mut b, &mut c, &mut new] {
        let promise = acceptor.prepare(7, 10, 10).expect("a higher round");
        coordinator.on_promise(promise);
    }
    coordinator.open()[0].value == packet(1)
}

/// A range comes in two parts, over votes of an earlier round that were never decided (F13).
pub fn all_of_a_range_is_learnt() -> bool {
    let mut acceptor = Acceptor::new(store(3));
    for first in 105..108 {
        let _ = acceptor.accept(105, 1, &vote(first, 1, packet(first)));
    }
    acceptor.learn(vote(100, 2, Value::Skip(5)));
    acceptor.learn(vote(100, 2, Value::Skip(50)));
    let acceptor = restarted(acceptor);
    (100..150).all(|at| {
        let known = acceptor.votes().at(at);
        known.is_some_and(|vote| vote.round == 2 && matches!(vote.value, Value::Skip(_)))
    })
}

/// A part of a range comes with a proposal, and the rest was chosen elsewhere (F13).
pub fn what_is_left_of_a_range_is_taken() -> bool {
    let mut learner = Learner::new(98);
    learner.begin(&Arc::new(config(5, &[1, 2, 3])), 98);
    learner.on_chosen(&vote(100, 4, Value::Skip(50)));
    learner.on_proposal(vote(98, 5, Value::Skip(7)));
    for who in [1, 2] {
        learner.on_voted(5, store(who), 105);
    }
    while learner.take().is_some() {}
    learner.end_round(learner.decided());
    while learner.take().is_some() {}
    learner.next() == 150 && learner.kept() == 0
}

/// What was learnt was decided in a later round than any that is still being voted in: no vote takes its place.
pub fn what_was_learnt_is_not_voted_over() -> bool {
    let mut acceptor = Acceptor::new(store(1));
    acceptor.learn(vote(5, 3, packet(5)));
    let refused = acceptor.accept(5, 1, &vote(5, 2, packet(6))).is_err();
    refused && acceptor.votes().at(5) == Some(vote(5, 3, packet(5)))
}

/// One of three has forgotten what is before 10, and no other has it: until a majority has voted in this round, and so knows
/// that it is decided, the loss of one store would let it be decided again.
pub fn complete_waits_until_a_majority_knows_what_is_forgotten() -> bool {
    let mut coordinator = Coordinator::new(Arc::new(config(7, &[1, 2, 3])), 10);
    let forgetful = Promise {
        kept: 10,
        ..promise(1, 10, Vec::new())
    };
    coordinator.on_promise(forgetful);
    coordinator.on_promise(promise(2, 4, Vec::new()));
    coordinator.start() == Some(10) && !coordinator.is_complete(10) && coordinator.is_complete(11)
}

/// That a later configuration is complete is no reason to begin a round without a set of acceptors that it has to ask.
pub fn a_round_that_is_over_does_not_begin() -> bool {
    let mut second = config(7, &[1, 2, 3]);
    second.prior = second
        .next(0, second.coordinator, Vec::new(), vec![store(4)])
        .prior;
    second.prior[0].acceptors = vec![store(1), store(4), store(5)];
    let mut coordinator = Coordinator::new(Arc::new(second), 10);
    coordinator.on_promise(promise(1, 10, Vec::new()));
    coordinator.on_promise(promise(2, 10, Vec::new()));
    coordinator.on_complete(9) == Progress::Waiting
}

/// Somebody has forgotten what is before the floor: who knows that says so when it promises.
pub fn a_promise_says_what_anybody_has_forgotten() -> bool {
    let mut acceptor = Acceptor::new(store(1));
    let _ = acceptor.accept(9, 7, &vote(9, 2, packet(9)));
    let promise = acceptor.prepare(3, 5, 5).expect("a higher round");
    (promise.kept, promise.held) == (7, 7)
}

/// What is said when a record is durable names no vote that is written behind it: a request may end between the two.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_record_speaks_of_no_vote_behind_it() {
    let mut acceptor = Acceptor::new(store(1));
    let _ = acceptor.accept(10, 7, &vote(10, 3, packet(10)));
    let mut votes = 0;
    while let Some((record, mark)) = acceptor.next_record() {
        votes += u64::from(matches!(record, rota_paxos::Record::Voted(_)));
        acceptor.on_durable(mark);
        let expected = if votes > 0 { (3, 11) } else { (0, 0) };
        assert_eq!(acceptor.voted(), expected, "{record:?}");
        assert_eq!(acceptor.has_promised(3), votes > 0, "{record:?}");
    }
    assert_eq!((votes, acceptor.floor()), (1, 7));
}

/// The last configuration that is complete may have decided something behind what it was complete with.
pub fn the_last_complete_set_is_asked() -> bool {
    let first = config(1, &[1, 2, 3]);
    let of = |nodes: &[u16]| nodes.iter().map(|node| store(*node)).collect::<Vec<_>>();
    let second = first.next(1, first.coordinator, Vec::new(), of(&[2, 3, 4]));
    let third = second.next(1, first.coordinator, Vec::new(), of(&[3, 4, 5]));
    third.prior.iter().map(|set| set.number).eq([1, 2])
}

#[cfg(not(feature = "mutants"))]
#[test]
fn what_is_known_of_ranges_is_known_of_each_instance() {
    assert!(what_was_learnt_counts_in_its_round());
    assert!(all_of_a_range_is_learnt());
    assert!(what_is_left_of_a_range_is_taken());
    assert!(a_promise_says_what_anybody_has_forgotten());
    assert!(the_last_complete_set_is_asked());
    assert!(what_was_learnt_is_not_voted_over());
    assert!(a_round_that_is_over_does_not_begin());
    assert!(complete_waits_until_a_majority_knows_what_is_forgotten());
}

/// That something is decided does not say that this round has proposed it.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_proposal_counts_only_as_far_as_its_round_has_votes() {
    let mut learner = Learner::new(1);
    learner.begin(&Arc::new(config(2, &[1, 2, 3])), 1);
    for first in 1..=3 {
        learner.on_proposal(vote(first, 2, packet(first)));
    }
    learner.on_voted(2, store(1), 4);
    learner.on_voted(2, store(2), 2);
    // In a later round instances up to 3 were decided, 3 is known as what.
    learner.on_chosen(&vote(3, 4, packet(9)));
    let taken: Vec<u64> = std::iter::from_fn(|| learner.take())
        .map(|vote| vote.first)
        .collect();
    assert_eq!((taken, learner.decided()), (vec![1], 4));
    learner.end_round(4);
    assert_eq!(learner.missing(), Some(2..3));
    learner.on_chosen(&vote(2, 4, packet(8)));
    let taken: Vec<Value> = std::iter::from_fn(|| learner.take())
        .map(|vote| vote.value)
        .collect();
    assert_eq!(taken, [packet(8), packet(9)]);
}

/// What others have forgotten is known to be decided, and stays here.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_vote_raises_the_floor_and_forgets_nothing() {
    let mut acceptor = Acceptor::new(store(1));
    for first in 1..=5 {
        let _ = acceptor.accept(1, 1, &vote(first, 1, packet(first)));
    }
    let _ = acceptor.accept(6, 4, &vote(6, 2, packet(6)));
    let check = |acceptor: &mut Acceptor| {
        assert_eq!((acceptor.kept(), acceptor.floor()), (1, 4));
        assert_eq!(acceptor.votes().len(), 6);
        let promise = acceptor.prepare(9, 1, 3).expect("a higher round");
        assert_eq!((promise.held, promise.kept, promise.votes.len()), (4, 4, 6));
    };
    check(&mut acceptor);
    check(&mut restarted(acceptor));
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// What was decided: of each instance a value, skips in ranges.
fn history(dice: &mut Dice, end: u64) -> Vec<Vote> {
    let (mut votes, mut at) = (Vec::new(), 1);
    while at < end {
        let value = match dice.below(3) {
            0 => packet(at),
            _ => Value::Skip(1 + dice.below(12)),
        };
        let one = vote(at, 5, value);
        at = one.end();
        votes.push(one);
    }
    votes
}

/// A part of what was decided, in some round from the one on in which it was, cut anywhere.
fn told(dice: &mut Dice, history: &[Vote], round: u64) -> Vec<Vote> {
    let end = history.last().map_or(1, Vote::end);
    let (from, len) = (1 + dice.below(end), 1 + dice.below(20));
    let parts = history
        .iter()
        .filter_map(|vote| vote.part(from, from + len));
    parts.map(|part| Vote { round, ..part }).collect()
}

/// By instance, what is there: a packet's counter, or nothing.
fn cells<'a>(votes: impl IntoIterator<Item = &'a Vote>) -> BTreeMap<u64, Option<u64>> {
    let mut cells = BTreeMap::new();
    for vote in votes {
        for at in vote.first..vote.end() {
            let is = match &vote.value {
                Value::Packet { id, .. } => Some(id.counter),
                Value::Members(..) | Value::Skip(_) => None,
            };
            cells.insert(at, is);
        }
    }
    cells
}

/// Whatever parts a learner is told of, and of whatever the round proposes of it: it takes all, in order, and never something
/// else.
#[cfg(not(feature = "mutants"))]
#[test]
fn learners_take_all_that_is_decided_whatever_parts_it_comes_in() {
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let decided = history(&mut dice, 60);
        let all = cells(&decided);
        let end = decided.last().map_or(1, Vote::end);
        let mut learner = Learner::new(1);
        let mut taken = Vec::new();
        let mut round = 5;
        while learner.next() < end {
            match dice.below(8) {
                0..=3 => told(&mut dice, &decided, 5)
                    .iter()
                    .for_each(|vote| learner.on_chosen(vote)),
                4 => {
                    // Another round proposes it again, from where it is known, cut elsewhere.
                    round += 1;
                    learner.begin(&Arc::new(config(round, &[1, 2, 3])), learner.next());
                }
                5 | 6 => {
                    for vote in told(&mut dice, &decided, round) {
                        learner.on_proposal(vote);
                    }
                }
                _ => {
                    // Votes for what was proposed from the beginning on: only so far.
                    let start = learner.reached().max(learner.next());
                    let upto = (start + dice.below(10)).min(end);
                    for vote in &decided {
                        if let Some(part) = vote.part(learner.next(), upto) {
                            learner.on_proposal(Vote { round, ..part });
                        }
                    }
                    learner.on_voted(round, store(1), upto);
                    learner.on_voted(round, store(3), upto);
                }
            }
            taken.extend(std::iter::from_fn(|| learner.take()));
        }
        assert_eq!(cells(&taken), all, "seed {seed}");
        let spans: u64 = taken.iter().map(|vote| vote.end() - vote.first).sum();
        assert_eq!((spans, learner.kept()), (end - 1, 0), "seed {seed}");
    }
}

/// Whatever parts an acceptor learns, over whatever it has voted for before: it keeps what was decided, and finds that again.
#[cfg(not(feature = "mutants"))]
#[test]
fn acceptors_keep_all_that_they_learn_whatever_parts_it_comes_in() {
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let decided = history(&mut dice, 60);
        let mut acceptor = Acceptor::new(store(1));
        let mut known = BTreeMap::new();
        for round in 1..=4 {
            // Nothing of this was decided.
            let start = 1 + dice.below(40);
            let mut at = start;
            for _ in 0..dice.below(6) {
                let value = match dice.below(2) {
                    0 => packet(1000 * round + at),
                    _ => Value::Skip(1 + dice.below(9)),
                };
                let cast = vote(at, round, value);
                at = cast.end();
                let _ = acceptor.accept(start, 1, &cast);
            }
        }
        for _ in 0..dice.below(30) {
            let round = 5 + dice.below(2);
            let parts = told(&mut dice, &decided, round);
            known.extend(cells(&parts));
            parts.into_iter().for_each(|part| acceptor.learn(part));
        }
        for acceptor in [acceptor.clone(), restarted(acceptor)] {
            let votes: Vec<Vote> = acceptor.votes().from(1).collect();
            let kept = cells(votes.iter().filter(|vote| vote.round >= 5));
            assert_eq!(kept, known, "seed {seed}");
        }
    }
}

/// A part of a range was taken, as another round was told of it, before it is proposed as a whole: what is left of it is
/// kept, and no more.
#[test]
fn what_was_taken_of_a_range_is_not_kept_again() {
    let mut learner = Learner::new(3);
    learner.begin(&Arc::new(config(5, &[1, 2, 3])), 3);
    learner.on_chosen(&vote(3, 4, Value::Skip(2)));
    assert_eq!(learner.take(), Some(vote(3, 4, Value::Skip(2))));
    learner.on_proposal(vote(3, 5, Value::Skip(7)));
    learner.check();
    for who in [1, 2] {
        learner.on_voted(5, store(who), 10);
    }
    assert_eq!(learner.take(), Some(vote(5, 5, Value::Skip(5))));
    assert_eq!((learner.next(), learner.kept()), (10, 0));
}
