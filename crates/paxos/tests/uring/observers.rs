//! Observers, which learn and are in no ring, and the acceptors that tell them.

use std::sync::Arc;

use rota_core::contract::{Delivery, Engine, Service, SubmitError, Time};
use rota_paxos::uring::{URingConfig, Word};
use rota_paxos::{Config, Value, Vote};

use super::alone::{Alone, FOUNDED, acceptor, outsider, process, settings};
use super::logs::{learnt, many};
use super::rounds::{coordinator_with, passes, stands};
use super::rules::batch_of;

const MILLI: u64 = 1_000_000;

/// Three that vote, and the fourth, which observes.
fn observed() -> URingConfig {
    let settings = settings();
    let mut ring = settings.ring.clone();
    ring.push(process(4, 1).node);
    URingConfig {
        ring,
        observers: vec![process(4, 1).node],
        ..settings
    }
}

/// The fourth, which has heard of a configuration of the others.
fn observer() -> Alone {
    let mut fourth = Alone::with(observed(), process(4, 1), Vec::new());
    for node in [1, 2, 3] {
        fourth.link(process(node, 1));
    }
    let ring = [1, 2, 3].map(|node| process(node, 1)).to_vec();
    let config = Arc::new(Config {
        founded: FOUNDED,
        number: 1,
        coordinator: process(1, 1),
        ring,
        acceptors: [1, 2, 3].map(acceptor).to_vec(),
        prior: Vec::new(),
    });
    for node in [1, 2] {
        fourth.hear(node, Word::Known(config.clone()).encode(FOUNDED));
    }
    fourth
}

/// Values of the first, from its first on, in these instances; the members are named in the first.
fn votes(instances: std::ops::Range<u64>) -> Vec<Vote> {
    let ring: Vec<_> = [1, 2, 3].map(|node| process(node, 1)).to_vec();
    let values = many(1_000);
    let of = |first: u64| match first {
        1 => Value::Members(1, ring.clone().into()),
        _ => {
            let (id, frame) = values[first as usize - 2].clone();
            Value::Packet { id, frame }
        }
    };
    instances
        .map(|first| Vote {
            first,
            round: 1,
            value: of(first),
        })
        .collect()
}

fn watched(alone: &Alone) -> Vec<u64> {
    let of = |word: &Word| match word {
        Word::Watch(from) => Some(*from),
        _ => None,
    };
    alone.said.iter().filter_map(of).collect()
}

fn chosen(alone: &Alone) -> Vec<u64> {
    let of = |word: &Word| match word {
        Word::Chosen(votes) => Some(votes.iter().map(|vote| vote.first).collect()),
        _ => None,
    };
    let told: Option<Vec<u64>> = alone.said.iter().find_map(of);
    told.unwrap_or_default()
}

fn delivered(alone: &mut Alone) -> usize {
    let mut messages = 0;
    while let Some(delivery) = alone.engine.poll_delivery() {
        messages += usize::from(matches!(delivery, Delivery::Message { .. }));
    }
    messages
}

/// It waits for what is not decided yet, gets little at once, and hears of much.
pub fn an_observer_is_told_what_is_decided() -> bool {
    let mut second = learnt(observed(), 40);
    let next = second.engine.learnt();
    let epoch = second.follow().epoch;
    second.link(process(4, 1));
    second.said.clear();
    second.hear(4, Word::Watch(next).encode(FOUNDED));
    let early = !chosen(&second).is_empty();
    batch_of(&mut second, epoch, next, |batch| {
        for (id, frame) in &many(42)[40..] {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, next + 2);
        batch.voted(2, next + 2);
    });
    let told = chosen(&second);
    second.said.clear();
    second.hear(4, Word::Watch(2).encode(FOUNDED));
    let much = second.has_said(&Word::Decided(next + 2));
    !early && told == [next, next + 1] && much && chosen(&second).is_empty()
}

/// Nothing of it would ever be proposed.
pub fn an_observer_orders_nothing() -> bool {
    let mut fourth = observer();
    let now = fourth.now;
    let taken = fourth.engine.submit(now, Service::Agreed, b"x");
    taken == Err(SubmitError::Unsupported)
}

/// It may be dead, or cut off from the others.
pub fn a_silent_acceptor_is_not_watched_for_ever() -> bool {
    let mut fourth = observer();
    let first = watched(&fourth);
    let before = [1, 2, 3].map(|node| fourth.bytes_to(node));
    passes(
        &mut fourth,
        3 * settings().patience.silence / MILLI + 200,
        |_, _| {},
    );
    let asked = [1, 2, 3].map(|node| fourth.bytes_to(node));
    let others = before.iter().zip(&asked).filter(|(one, other)| one < other);
    first == [1] && others.count() == 3
}

/// Whatever it says itself: others of the ring have the list.
pub fn no_observer_is_taken_in() -> bool {
    let stands_for = |settings: URingConfig| {
        let mut first = coordinator_with(settings);
        first.link(process(4, 1));
        first.hear(4, outsider().encode(FOUNDED));
        // Its predecessor says nothing, and is not suspected yet.
        let silence = observed().patience.silence / MILLI;
        passes(&mut first, silence - 100, |_, _| {});
        !stands(&first).is_empty()
    };
    let of_ring = URingConfig {
        observers: Vec::new(),
        ..observed()
    };
    assert!(stands_for(of_ring), "whoever is no observer is taken in");
    !stands_for(observed())
}

#[cfg(not(feature = "mutants"))]
#[test]
fn an_observer_learns_all_and_says_little() {
    let mut fourth = observer();
    assert_eq!(watched(&fourth), [1]);
    fourth.said.clear();
    fourth.hear(1, Word::Chosen(votes(1..4)).encode(FOUNDED));
    assert_eq!((delivered(&mut fourth), fourth.engine.learnt()), (2, 4));
    assert_eq!(watched(&fourth), [4], "it waits for the next at once");
    // Much is decided: it asks for that as anybody does, and watches again when it has it.
    fourth.said.clear();
    fourth.hear(1, Word::Decided(100).encode(FOUNDED));
    assert_eq!(fourth.said, [Word::Fetch(4, 100)]);
    fourth.said.clear();
    fourth.hear(1, Word::Chosen(votes(4..100)).encode(FOUNDED));
    assert_eq!((delivered(&mut fourth), watched(&fourth)), (96, vec![100]));
    // Neither late nor unasked words change what it does.
    fourth.said.clear();
    fourth.hear(3, Word::Decided(1 << 40).encode(FOUNDED));
    assert!(fourth.said.is_empty(), "{:?}", fourth.said);
    let quiet = 60 * settings().patience.silence / MILLI;
    passes(&mut fourth, quiet, |_, _| {});
    let others = fourth
        .said
        .iter()
        .filter(|word| !matches!(word, Word::Watch(100)));
    assert_eq!(others.count(), 0, "it asks for no place in the ring");
    assert!(watched(&fourth).len() <= 61, "an idle ring costs it little");
    assert!(
        fourth
            .engine
            .status()
            .state
            .starts_with("observes: 1, 2, 3")
    );
}

#[cfg(not(feature = "mutants"))]
#[test]
fn an_answer_with_nothing_is_not_asked_for_again_at_once() {
    let mut fourth = observer();
    fourth.said.clear();
    for _ in 0..100 {
        fourth.hear(1, Word::Chosen(Vec::new()).encode(FOUNDED));
    }
    assert!(fourth.said.is_empty(), "{:?}", fourth.said);
    let silence = settings().patience.silence;
    fourth.now = Time(fourth.now.0 + silence);
    fourth.tell(rota_core::contract::Input::Timer);
    assert_eq!(watched(&fourth), [1]);
}

#[cfg(not(feature = "mutants"))]
#[test]
fn an_observer_whose_acceptor_is_gone_asks_another() {
    let mut fourth = observer();
    fourth.said.clear();
    let asked = (1..=3).find(|node| {
        fourth.unlink(*node);
        !watched(&fourth).is_empty()
    });
    assert!(asked.is_some_and(|node| node < 3), "{asked:?}");
    for node in 1..=3 {
        fourth.unlink(node);
    }
    let alone = fourth.engine.status().state;
    assert!(alone.ends_with("; no acceptor is there"), "{alone}");
}
