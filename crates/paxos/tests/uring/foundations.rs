//! Clusters that were founded twice, and the messages that may not pass from one to the other; and the knowledge of
//! configurations after a restart.

use rota_core::contract::{Engine, Input};
use rota_paxos::uring::{Hello, Snapshot, Word};

use super::alone::{Alone, FOUNDED, acceptor, new_here, process, settings};
use super::rules::{head, hear_batch, second};

/// Another foundation.
const OTHER: u64 = 9;

fn here(number: u64, complete: u64) -> Word {
    Word::Hello(Hello {
        number,
        acceptor: None,
        complete,
        joins: false,
    })
}

/// The newest configuration that it has called complete.
fn complete(alone: &Alone) -> u64 {
    let of = |word: &Word| match word {
        Word::Hello(here) => Some(here.complete),
        _ => None,
    };
    alone.said.iter().filter_map(of).max().unwrap_or(0)
}

/// All acceptors have lost their stores and found the cluster anew; a process that lives on, of before, says what it knows: before
/// the first configuration is there, and behind it.
pub fn what_another_foundation_calls_complete_is_not() -> bool {
    let mut alone = Alone::new(process(2, 1), Vec::new());
    alone.link(process(4, 1));
    alone.hear(4, here(50, 50).encode(OTHER));
    alone.join();
    alone.write();
    alone.hear(4, here(50, 50).encode(OTHER));
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.link(process(4, 1));
    complete(&alone) == 0 && alone.engine.number() == 2
}

/// Who votes for nothing has heard of a configuration when all acceptors had lost their stores already: it does not keep them from
/// founding the cluster anew, and tells only those who were in one.
pub fn who_holds_nothing_tells_no_new_acceptor() -> bool {
    let known = Word::Known(second().config(1));
    let mut fourth = Alone::new(process(4, 1), Vec::new());
    for (node, number) in [(1, 0), (2, 1), (3, 1)] {
        fourth.link(process(node, 1));
        fourth.hear(node, here(number, 0).encode(number));
    }
    fourth.hear(3, known.encode(FOUNDED));
    let told = fourth.said.iter();
    let told = told.filter(|word| **word == known).count();
    (fourth.engine.number(), told) == (1, 2)
}

/// One acceptor has a log of before the cluster was founded anew: who is new hears it first, and waits until a majority says the
/// same.
pub fn one_that_is_left_of_another_foundation_takes_nobody_in() -> bool {
    let mut config = (*second().config(1)).clone();
    let known = Word::Known(config.clone().into());
    (config.founded, config.number) = (OTHER, 7);
    let old = Word::Known(config.into());
    let mut fourth = Alone::new(process(4, 1), Vec::new());
    for (node, founded) in [(3, OTHER), (1, FOUNDED), (2, FOUNDED)] {
        fourth.link(process(node, 1));
        fourth.hear(
            node,
            if founded == OTHER { &old } else { &known }.encode(founded),
        );
    }
    fourth.engine.number() == 1
}

/// The state of an application goes on with the foundation that it is of, and with no other: whether that is what the own log has, or what the
/// others say; and nobody founds anything for it.
pub fn a_state_goes_on_with_its_own_foundation() -> bool {
    let state = |founded| {
        let base = Snapshot {
            next: 3,
            ..Snapshot::default()
        };
        (founded, base)
    };
    let with_log = |founded| {
        let mut alone = Alone::resumed(process(2, 2), second().all_on_disk(), state(founded));
        let told = alone.engine.poll_delivery();
        (alone.engine.is_refounded(), told.is_none())
    };
    let without = |founded| {
        let mut alone = Alone::resumed(process(4, 1), Vec::new(), state(founded));
        for node in [1, 2] {
            alone.link(process(node, 1));
            let known = Word::Known(second().config(1));
            alone.hear(node, known.encode(FOUNDED));
        }
        (alone.engine.is_refounded(), alone.engine.number())
    };
    let mut first = Alone::resumed(process(1, 1), Vec::new(), state(FOUNDED));
    for node in [2, 3] {
        first.link(process(node, 1));
        first.hear(node, new_here(node).encode(0));
    }
    first.write_all();
    with_log(OTHER) == (true, true)
        && !with_log(FOUNDED).0
        && without(OTHER) == (true, 0)
        && without(FOUNDED) == (false, 1)
        && first.engine.number() == 0
}

/// A process that was restarted with its log names the foundation of what is in it, from its first word on.
#[test]
fn who_was_restarted_names_its_foundation() {
    let alone = second();
    let mut again = Alone::new(process(2, 2), alone.all_on_disk());
    again.link(process(1, 1));
    assert_eq!(again.names, FOUNDED);
    // Who names none, and has been in a configuration, is not believed.
    let mut third = second();
    third.hear(3, here(50, 50).encode(0));
    assert_eq!(complete(&third), 0);
}

/// What it asks, answers and votes for is not of this cluster either.
pub fn words_of_another_foundation_are_not_heard() -> bool {
    let mut alone = second();
    alone.write();
    alone.said.clear();
    alone.hear(1, Word::Prepare(1, 1).encode(OTHER));
    alone.hear(3, Word::Fetch(1, 9).encode(OTHER));
    alone.write();
    let answers = |word: &Word| matches!(word, Word::Promise(..) | Word::Chosen(_));
    !alone.said.iter().any(answers)
}

/// A coordination service that has lost everything, and was asked by others first.
pub fn configurations_of_another_foundation_are_not_taken() -> bool {
    let mut alone = second();
    let config = rota_paxos::Config {
        founded: OTHER,
        ..(*alone.config(5)).clone()
    };
    let said = Word::Known(config.into()).encode(OTHER);
    // Behind the version, the kind and the foundation.
    let chosen = said[10..].to_vec().into();
    alone.tell(Input::Arbitrated { number: 5, chosen });
    alone.engine.number() == 1
}

/// All acceptors have lost what they knew, and came back: nothing goes on by itself, and the state says so.
#[test]
fn a_majority_that_has_lost_its_stores_is_named() {
    let mut alone = second();
    alone.write();
    let found = (alone.all_on_disk(), true);
    let mut again = Alone::found(settings(), process(2, 2), found);
    again.write();
    let state = |alone: &Alone| rota_core::contract::Engine::status(&alone.engine).state;
    assert_eq!(state(&again), "outside the ring of configuration 1");
    again.link(process(3, 2));
    let here = Hello {
        number: 1,
        acceptor: Some(rota_paxos::AcceptorId {
            store: 7,
            ..acceptor(3)
        }),
        complete: 0,
        joins: true,
    };
    again.hear(3, Word::Hello(here).encode(FOUNDED));
    let lost =
        "outside the ring of configuration 1: 2 of its 3 acceptors have lost their stores (2, 3)";
    assert_eq!(state(&again), lost);
}

/// All other acceptors are gone, and nobody can make another configuration: the state does not say that all is well.
#[test]
fn a_majority_that_is_not_there_is_named() {
    let mut alone = second();
    alone.write();
    let begins = head(1, alone.follow().epoch, (1, 1));
    hear_batch(&mut alone, 1, &begins, |batch| batch.skip(1));
    let state = |alone: &Alone| rota_core::contract::Engine::status(&alone.engine).state;
    assert!(state(&alone).starts_with("operational: 1, 2, 3 ("));
    alone.unlink(3);
    assert!(state(&alone).starts_with("operational: 1, 2, 3 ("));
    alone.unlink(1);
    let gone = "no majority: nothing is ordered, as of the 3 acceptors these are not there: 1, 3 (configuration 1)";
    assert_eq!(state(&alone), gone);
    alone.link(process(3, 1));
    assert!(state(&alone).starts_with("operational: 1, 2, 3 ("));
}

/// Nobody finds it out anew when all have been restarted.
pub fn what_is_complete_is_so_after_a_restart() -> bool {
    let mut alone = second();
    let mut head = head(1, alone.follow().epoch, (1, 1));
    head.complete = true;
    hear_batch(&mut alone, 1, &head, |batch| batch.skip(1));
    alone.write();
    let mut again = Alone::new(process(2, 2), alone.all_on_disk());
    again.link(process(1, 1));
    complete(&again) == 1
}

/// The register's promise outlives the process, as what was accepted does.
pub fn what_the_register_has_promised_outlives_the_process() -> bool {
    use rota_paxos as paxos;
    use rota_paxos::Ballot;
    let ballot = |count| Ballot {
        count,
        by: process(1, 1),
    };
    let mut alone = second();
    let ask = |word| Word::Ask(2, word).encode(FOUNDED);
    alone.hear(1, ask(paxos::Word::Prepare(ballot(7))));
    alone.write();
    let mut again = Alone::new(process(2, 2), alone.all_on_disk());
    again.link(process(1, 1));
    let next = alone.config(2);
    again.hear(1, ask(paxos::Word::Accept(ballot(3), next)));
    again.write();
    again.answer() == Some(paxos::Word::Refused(ballot(3), ballot(7)))
}

/// The first acceptor ends while the first configuration is being written: whether it was or not, others were not told of
/// another one.
pub fn a_cluster_is_founded_once() -> bool {
    let founds = |records: Vec<_>, life| {
        let mut first = Alone::with(settings(), process(1, life), records);
        first.write();
        for node in [2, 3] {
            first.link(process(node, 1));
            first.hear(node, new_here(node).encode(0));
        }
        first
    };
    let founded = |alone: &Alone| {
        let of = |word: &Word| match word {
            Word::Known(config) => Some(config.founded),
            _ => None,
        };
        alone.said.iter().find_map(of)
    };
    let first = founds(Vec::new(), 1);
    let told = founded(&first);
    (0..=first.records.len()).all(|count| {
        let mut again = founds(first.on_disk(count), 2);
        again.write();
        told.is_none() || founded(&again) == told
    })
}
