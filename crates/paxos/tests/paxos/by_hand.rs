//! The single machines, by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rota_paxos::{
    Acceptor, Coordinator, Learner, Prior, Progress, Promise, Proposer, Proposers, Record, Refused,
    Register, Value, Verdict, Votes, Word,
};

use super::rules::{
    a_promise_waits_for_the_disk, config, floor_of_who_votes, id, packet, process, promise, start,
    store, vote,
};

#[test]
fn votes_take_the_place_of_earlier_ones_instance_by_instance() {
    let mut rng = 1_u64;
    let mut draw = |below: u64| {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (rng >> 33) % below
    };
    for _ in 0..500 {
        let (mut votes, mut naive) = (Votes::default(), BTreeMap::new());
        let mut kept = 1;
        for round in 1..30 {
            let value = match draw(3) {
                0 => packet(round),
                _ => Value::Skip(1 + draw(6)),
            };
            let cast = vote(1 + draw(20), round, value);
            for instance in cast.first..cast.end() {
                naive.insert(instance, round);
            }
            votes.put(cast);
            if draw(10) == 0 {
                kept = 1 + draw(10).max(kept - 1);
                votes.trim(kept);
                naive.retain(|instance, _| *instance >= kept);
            }
            for instance in 0..30 {
                let at = votes.at(instance).map(|vote| vote.round);
                assert_eq!(at, naive.get(&instance).copied(), "{instance}: {votes:?}");
            }
            let from = draw(25);
            let told: Vec<(u64, u64)> = votes
                .from(from)
                .flat_map(|vote| (vote.first..vote.end()).map(move |at| (at, vote.round)))
                .collect();
            let known: Vec<(u64, u64)> = naive
                .range(from..)
                .map(|(at, round)| (*at, *round))
                .collect();
            assert_eq!(told, known);
            let hole = (from..).find(|at| !naive.contains_key(at));
            assert_eq!(Some(votes.hole(from)), hole);
        }
    }
}

#[test]
fn what_an_acceptor_says_is_durable_before() {
    assert!(a_promise_waits_for_the_disk());
    let mut acceptor = Acceptor::new(store(1));
    let cast = vote(3, 2, packet(1));
    assert_eq!(acceptor.accept(3, 1, &cast), Ok(Verdict::Voted));
    let (records, mark) = acceptor.records();
    assert_eq!(records, [Record::Voted(cast.clone())]);
    assert_eq!(acceptor.voted(), (0, 0));
    acceptor.on_durable(mark);
    assert_eq!(acceptor.voted(), (2, 4));
    // In the order of the round, each once, and in no earlier round.
    assert_eq!(acceptor.accept(3, 1, &cast), Ok(Verdict::Known));
    let later = vote(5, 2, packet(2));
    assert_eq!(acceptor.accept(3, 1, &later), Ok(Verdict::Early));
    let earlier = vote(3, 1, packet(2));
    assert_eq!(
        acceptor.accept(3, 1, &earlier),
        Err(Refused { promised: 2 })
    );
    assert_eq!(acceptor.prepare(1, 1, 1), Err(Refused { promised: 2 }));

    let again = Acceptor::restore(store(1), records);
    assert_eq!((again.promised(), again.voted().0), (2, 0));
    assert_eq!(again.votes(), acceptor.votes());
}

#[test]
fn a_trimmed_acceptor_tells_and_learns_nothing_below() {
    let mut acceptor = Acceptor::new(store(1));
    for first in 1..=5 {
        let _ = acceptor.accept(1, 1, &vote(first, 1, packet(first)));
    }
    acceptor.trim(4);
    acceptor.learn(vote(2, 1, packet(2)));
    acceptor.learn(vote(2, 2, Value::Skip(3)));
    acceptor.trim(3);
    let promise = acceptor.prepare(2, 1, 1).expect("a higher round");
    assert_eq!(
        (promise.held, promise.kept, promise.votes[0].first),
        (4, 4, 4)
    );
    assert_eq!(promise.votes[0].value, Value::Skip(1));
    let (records, _) = acceptor.records();
    let again = Acceptor::restore(store(1), records);
    assert_eq!((again.kept(), again.votes()), (4, acceptor.votes()));
    assert_eq!(again.floor(), 4);
}

#[test]
fn sets_of_earlier_configurations_are_asked_until_the_new_one_is_complete() {
    let first = config(1, &[1, 2, 3]);
    let of = |nodes: &[u16]| nodes.iter().map(|node| store(*node)).collect::<Vec<_>>();
    let second = first.next(1, process(2, 1), Vec::new(), of(&[2, 3, 4]));
    assert_eq!((second.number, second.prior.len()), (2, 1));
    let third = second.next(0, process(2, 1), Vec::new(), of(&[4, 3, 5]));
    let prior = |number, nodes: &[u16]| Prior {
        number,
        acceptors: of(nodes),
    };
    assert_eq!(third.prior, [prior(1, &[1, 2, 3]), prior(2, &[2, 3, 4])]);
    let has = |nodes: &'static [u16]| move |who: &_| nodes.iter().any(|node| store(*node) == *who);
    assert!(third.may_begin(0, has(&[2, 3, 4])));
    assert!(!third.may_begin(1, has(&[3, 4, 5])));
    // The second turns out to be complete: the first is not asked.
    assert!(third.may_begin(2, has(&[3, 4, 5])) && !third.may_begin(2, has(&[4, 5])));
    assert!(!third.may_begin(0, has(&[1, 2, 4])));
    let fourth = third.next(3, process(2, 1), Vec::new(), of(&[3, 4, 5]));
    assert!(fourth.prior.is_empty());
    assert!(fourth.may_begin(0, has(&[4, 5])) && !fourth.may_begin(0, has(&[1, 2, 4])));
    let reached = |who: rota_paxos::AcceptorId| who.store * 10;
    assert_eq!(fourth.reached_by_majority(reached), 40);
    assert!(fourth.asks(store(5)) && !fourth.asks(store(1)));
}

#[test]
fn the_value_of_the_highest_round_is_proposed_again() {
    let mut coordinator = Coordinator::new(Arc::new(config(7, &[1, 2, 3])), 10);
    let one = vec![vote(10, 3, Value::Skip(4)), vote(15, 3, packet(1))];
    let other = vec![vote(11, 5, packet(2)), vote(13, 2, packet(3))];
    assert_eq!(
        coordinator.on_promise(promise(1, 10, one)),
        Progress::Waiting
    );
    assert_eq!(coordinator.propose(packet(9)), None);
    assert!(coordinator.lacks(store(2)) && !coordinator.lacks(store(1)));
    assert_eq!(
        coordinator.on_promise(promise(2, 12, other)),
        Progress::Begun
    );
    let open: Vec<(u64, Value)> = coordinator
        .open()
        .iter()
        .map(|vote| (vote.first, vote.value.clone()))
        .collect();
    let skip = Value::Skip;
    let wanted = [
        (10, skip(1)),
        (11, packet(2)),
        (12, skip(1)),
        (13, skip(1)),
        (14, skip(1)),
        (15, packet(1)),
    ];
    assert_eq!(open, wanted);
    assert_eq!(
        coordinator.propose(packet(9)).map(|vote| vote.first),
        Some(16)
    );
    assert!(!coordinator.is_complete(15) && coordinator.is_complete(16));
    coordinator.on_reached(12);
    assert_eq!(coordinator.open().front().map(|vote| vote.first), Some(12));
}

#[test]
fn a_round_starts_where_a_majority_has_what_was_decided() {
    let mut coordinator = Coordinator::new(Arc::new(config(7, &[1, 2, 3])), 10);
    coordinator.on_promise(promise(1, 10, Vec::new()));
    let behind = coordinator.on_promise(promise(2, 4, Vec::new()));
    assert_eq!((behind, coordinator.from()), (Progress::Behind, Some(10)));
    assert!(coordinator.lacks(store(2)) && !coordinator.lacks(store(1)));
    // Another one has it, or the same one has learnt it.
    for who in [2, 3] {
        let mut other = coordinator.clone();
        let progress = other.on_promise(promise(who, 10, Vec::new()));
        assert_eq!((progress, other.start()), (Progress::Begun, Some(10)));
    }
    coordinator.ask_again();
    assert_eq!(coordinator.from(), Some(4));
    // The answers to the first question do not count.
    assert_eq!(
        coordinator.on_promise(promise(3, 10, Vec::new())),
        Progress::Waiting
    );
    let again = |who: u16, held| Promise {
        from: 4,
        ..promise(who, held, Vec::new())
    };
    coordinator.on_promise(again(1, 10));
    assert_eq!(coordinator.on_promise(again(2, 4)), Progress::Begun);
    assert_eq!(coordinator.start(), Some(4));
}

#[test]
fn what_somebody_has_forgotten_is_not_decided_again() {
    assert_eq!(
        (start(10, 10), start(10, 40), start(4, 20)),
        (Some(10), Some(40), Some(20))
    );
    assert_eq!(floor_of_who_votes(), 5);
}

#[test]
fn promises_that_cannot_be_do_not_count() {
    let config = Arc::new(config(7, &[1, 2, 3]));
    let begun = |first: Promise| {
        let mut coordinator = Coordinator::new(config.clone(), 10);
        coordinator.on_promise(promise(1, 10, Vec::new()));
        coordinator.on_promise(first)
    };
    let sound = promise(2, 10, vec![vote(10, 3, packet(1))]);
    assert_eq!(begun(sound.clone()), Progress::Begun);
    let overlapping = vec![vote(10, 3, Value::Skip(3)), vote(12, 3, packet(1))];
    let others = [
        promise(2, 10, overlapping),
        promise(2, 10, vec![vote(12, 3, packet(1)), vote(11, 3, packet(2))]),
        promise(2, 10, vec![vote(9, 3, packet(1))]),
        promise(2, 10, vec![vote(10, 8, packet(1))]),
        promise(4, 10, Vec::new()),
        promise(1, 10, Vec::new()),
        Promise {
            round: 6,
            ..sound.clone()
        },
        Promise { from: 9, ..sound },
    ];
    for other in others {
        assert_eq!(begun(other.clone()), Progress::Waiting, "{other:?}");
    }
}

#[test]
fn a_learner_knows_what_it_misses() {
    let mut learner = Learner::new(1);
    let config = Arc::new(config(2, &[1, 2, 3]));
    learner.begin(&config, 4);
    assert_eq!((learner.decided(), learner.missing()), (4, Some(1..4)));
    learner.on_proposal(vote(4, 2, packet(1)));
    learner.on_proposal(vote(6, 2, packet(2)));
    // Of another round, and from who is no acceptor.
    learner.on_proposal(vote(5, 1, packet(3)));
    learner.on_voted(1, store(1), 9);
    learner.on_voted(2, store(4), 9);
    learner.on_voted(2, store(1), 9);
    assert_eq!((learner.reached(), learner.decided()), (4, 4));
    learner.on_voted(2, store(3), 7);
    assert_eq!((learner.reached(), learner.decided()), (7, 7));
    assert_eq!(learner.take(), None);
    learner.on_chosen(&vote(1, 1, Value::Skip(3)));
    let taken: Vec<u64> = std::iter::from_fn(|| learner.take())
        .map(|vote| vote.first)
        .collect();
    assert_eq!(taken, [1, 4]);
    assert_eq!((learner.next(), learner.missing()), (5, Some(5..6)));
    learner.skip_to(7);
    assert_eq!(
        (learner.next(), learner.missing(), learner.kept()),
        (7, None, 0)
    );
}

#[test]
fn what_was_proposed_in_an_earlier_round_counts_only_as_far_as_that_decided_it() {
    let mut learner = Learner::new(1);
    learner.begin(&Arc::new(config(2, &[1, 2, 3])), 1);
    for first in 1..=4 {
        learner.on_proposal(vote(first, 2, packet(first)));
    }
    learner.on_voted(2, store(1), 5);
    learner.on_voted(2, store(2), 3);
    learner.begin(&Arc::new(config(3, &[1, 2, 3])), 4);
    let taken: Vec<u64> = std::iter::from_fn(|| learner.take())
        .map(|vote| vote.first)
        .collect();
    assert_eq!((taken, learner.missing()), (vec![1, 2], Some(3..4)));
}

#[test]
fn a_value_counts_once_in_its_order_and_while_its_proposer_is_a_member() {
    let mut table = Proposers::default();
    assert!(!table.take(id(1, 1, 1)));
    table.install(1, &[process(1, 1), process(2, 5)]);
    assert!(table.take(id(1, 1, 1)) && !table.take(id(1, 1, 1)) && !table.take(id(1, 1, 3)));
    assert!(table.admits(id(1, 1, 2)) && !table.admits(id(2, 6, 1)));
    // Away and back again.
    table.install(2, &[process(2, 5)]);
    assert!(!table.take(id(1, 1, 2)));
    table.install(3, &[process(1, 1), process(2, 6)]);
    assert!(table.take(id(1, 1, 2)) && table.take(id(2, 6, 1)));
    // A life that was followed by another does not come back.
    table.install(4, &[process(1, 1), process(2, 5)]);
    assert!(!table.take(id(2, 5, 1)) && !table.take(id(2, 6, 2)));
    assert_eq!(table.members().collect::<Vec<_>>(), [process(1, 1)]);
}

/// What an old coordinator proposed may be decided behind what a later one did. Where it counts, who was named before is
/// over for ever (`u-ring-paxos`, faults `power`, seed 50089).
#[test]
fn members_of_an_older_configuration_are_not_named_behind_those_of_a_later_one() {
    let mut table = Proposers::default();
    assert!(table.install(7, &[process(1, 2), process(2, 3)]));
    assert!(table.take(id(2, 3, 1)));
    assert!(!table.install(5, &[process(1, 1), process(2, 2)]));
    assert!(table.take(id(2, 3, 2)) && !table.take(id(2, 2, 1)));
    assert_eq!(table.named(), 7);
    let again = Proposers::restore(table.named(), table.lives());
    assert_eq!(again, table);
    assert!(table.install(8, &[process(2, 3)]) && table.take(id(2, 3, 3)));
}

#[test]
fn a_proposer_goes_on_from_what_was_delivered() {
    let mut proposer = Proposer::new(process(1, 1));
    for counter in 1..=3 {
        assert_eq!(proposer.submit(Bytes::from_static(b"four")), counter);
    }
    let counters = |proposer: &mut Proposer| {
        let values = std::iter::from_fn(|| proposer.propose());
        values.map(|(id, _)| id.counter).collect::<Vec<u64>>()
    };
    assert_eq!(counters(&mut proposer), [1, 2, 3]);
    proposer.on_delivered(1);
    assert_eq!(proposer.waiting(), (2, 8));
    proposer.propose_again();
    assert_eq!(counters(&mut proposer), [2, 3]);
    proposer.on_delivered(9);
    assert_eq!(proposer.waiting(), (0, 0));
    assert_eq!(proposer.submit(Bytes::new()), 4);
}

#[test]
fn a_register_forgets_what_is_known_and_answers_no_more() {
    let mut register: Register<u8> = Register::default();
    let ballot = |count| rota_paxos::Ballot {
        count,
        by: process(1, 1),
    };
    let answer = register.on_word(3, Word::Accept(ballot(2), 9));
    assert_eq!(answer, Some(Word::Accepted(ballot(2))));
    let answer = register.on_word(3, Word::Prepare(ballot(1)));
    assert_eq!(answer, Some(Word::Refused(ballot(1), ballot(2))));
    let answer = register.on_word(3, Word::Prepare(ballot(4)));
    assert_eq!(answer, Some(Word::Promise(ballot(4), Some((ballot(2), 9)))));
    assert_eq!(register.on_word(4, Word::Accepted(ballot(4))), None);
    register.forget(3);
    assert_eq!(register.on_word(3, Word::Prepare(ballot(9))), None);
    assert!(register.slot(3).is_none());
}
