//! Rounds that begin while an acceptor lacks what is decided.

use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use rota_core::contract::{Engine, Input, Time};
use rota_paxos as paxos;
use rota_paxos::uring::{Hello, Word};
use rota_paxos::{Ballot, Config, Promise, Value, ValueId, Vote};

use super::alone::{Alone, FOUNDED, acceptor, process};
use super::rules::{batch_of, head, hear_batch, second, values_of};

/// All before this is decided.
const DECIDED: u64 = 5;

/// Four instances in which nothing was decided.
fn chosen() -> Vec<u8> {
    let vote = Vote {
        first: 1,
        round: 1,
        value: Value::Skip(DECIDED - 1),
    };
    Word::Chosen(vec![vote]).encode(FOUNDED)
}

/// The second, in the second configuration, whose coordinator knows what is decided.
fn asked() -> Alone {
    let mut alone = second();
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.hear(1, Word::Prepare(2, DECIDED).encode(FOUNDED));
    alone.write();
    alone
}

/// What it has held when it promised, each time.
fn held(alone: &Alone) -> Vec<u64> {
    let held = |word: &Word| match word {
        Word::Promise(promise, false) if promise.round == 2 => Some(promise.held),
        _ => None,
    };
    alone.said.iter().filter_map(held).collect()
}

/// It knows from the coordinator's question that something is decided, and asks for that though no round has begun.
pub fn who_lacks_something_asks_for_it() -> bool {
    let alone = asked();
    let state = alone.engine.status().state;
    assert_eq!(state, "configuration 2 begins: 4 instances to learn");
    held(&alone) == [1] && alone.has_said(&Word::Fetch(1, DECIDED))
}

pub fn who_lacks_something_promises_again() -> bool {
    let mut alone = asked();
    alone.hear(1, chosen());
    let early = held(&alone);
    alone.write();
    early == [1] && held(&alone) == [1, DECIDED]
}

/// The first, which coordinates the second configuration, and knows what is decided.
fn first() -> Alone {
    let mut alone = Alone::new(process(1, 1), Vec::new());
    alone.join();
    alone.hear(2, chosen());
    alone.write();
    alone
}

fn leads(alone: &mut Alone) {
    let known = Word::Known(alone.config(2));
    alone.hear(2, known.encode(FOUNDED));
}

fn promises(alone: &mut Alone, node: u16, held: u64) {
    let promise = Promise {
        round: 2,
        acceptor: acceptor(node),
        from: DECIDED,
        held,
        kept: 1,
        votes: Vec::new(),
    };
    alone.hear(node, Word::Promise(promise, false).encode(FOUNDED));
}

/// A majority has promised, of which one has nothing. It is not asked for everything: another one promises, too, or the
/// same one once more.
pub fn who_coordinates_waits() -> bool {
    let begins = |node: u16| {
        let mut alone = first();
        leads(&mut alone);
        alone.write();
        promises(&mut alone, 3, 1);
        let state = alone.engine.status().state;
        assert_eq!(state, "configuration 2 begins: waits for promises of 2, 3");
        let early = alone.engine.is_operational() || alone.has_said(&Word::Prepare(2, 1));
        promises(&mut alone, node, DECIDED);
        !early && alone.engine.is_operational()
    };
    begins(2) && begins(3)
}

/// What it has voted for is a megabyte: a link that is full of it would say nothing else, and its other end would take this
/// process for dead. What is told in the end is everything.
pub fn a_promise_leaves_room_for_what_is_said_beside_it() -> bool {
    let mut alone = second();
    let epoch = alone.follow().epoch;
    for (id, frame) in values_of(120, 8_000) {
        batch_of(&mut alone, epoch, id.counter, |batch| {
            batch.packet(None, id, &frame, true);
        });
        alone.write();
    }
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.hear(1, Word::Prepare(2, 1).encode(FOUNDED));
    alone.write();
    let told = |alone: &Alone| {
        let votes = |word: &Word| match word {
            Word::Promise(promise, _) if promise.round == 2 => promise.votes.len(),
            _ => 0,
        };
        alone.said.iter().map(votes).sum::<usize>()
    };
    let at_once = told(&alone);
    (0..20).for_each(|_| alone.room());
    at_once * 8_000 <= 256 << 10 && told(&alone) == 120
}

/// However many proposals wait for votes, who votes for them learns them when a majority has: others could not tell it.
pub fn what_many_voted_for_at_once_is_learnt() -> bool {
    let mut alone = second();
    let epoch = alone.follow().epoch;
    for first in (1..20_000).step_by(100) {
        batch_of(&mut alone, epoch, first, |batch| {
            (0..100).for_each(|_| batch.skip(1));
        });
        alone.write();
    }
    batch_of(&mut alone, epoch, 20_001, |batch| batch.voted(0, 20_001));
    alone.engine.learnt() == 20_001
}

/// Time passes, and the third promises whatever it is asked for: with whom as coordinator the second wants this
/// configuration.
fn wants(alone: &mut Alone, number: u64) -> Option<Arc<Config>> {
    for _ in 0..8 {
        alone.now = Time(alone.now.0 + 300_000_000);
        beats(alone, number - 1);
        alone.tell(Input::Timer);
        alone.write();
        let by = process(2, 1);
        let answers = (1..9).map(|count| paxos::Word::Promise(Ballot { count, by }, None));
        for answer in answers {
            alone.hear(3, Word::Answer(number, acceptor(3), answer).encode(FOUNDED));
        }
    }
    alone.said.iter().find_map(|word| match word {
        Word::Ask(of, paxos::Word::Accept(_, config)) if *of == number => Some(config.clone()),
        _ => None,
    })
}

/// The first, which coordinated, is gone, and the second has not followed a round yet: perhaps it is new. But if the third
/// does not get on either, it is tried itself.
pub fn who_may_lack_everything_lets_others_coordinate_once() -> bool {
    let mut alone = second();
    alone.hear(3, Word::Hello(here()).encode(FOUNDED));
    alone.unlink(1);
    let first = wants(&mut alone, 2).expect("it stands");
    alone.hear(3, Word::Known(first.clone()).encode(FOUNDED));
    let then = wants(&mut alone, 3).expect("it stands again");
    (first.coordinator, then.coordinator) == (process(3, 1), process(2, 1))
}

/// The third is heard, if it is the predecessor in this round, which does not begin.
fn beats(alone: &mut Alone, round: u64) {
    let head = head(round, alone.follow().epoch, (0, 0));
    hear_batch(alone, 3, &head, |_| {});
}

fn here() -> Hello {
    Hello {
        number: 1,
        acceptor: Some(acceptor(3)),
        complete: 0,
        joins: false,
    }
}

/// It would tell all that it has voted for since.
pub fn when_the_round_has_begun_nobody_promises_again() -> bool {
    let mut alone = asked();
    let head = head(2, alone.follow().epoch, (DECIDED, DECIDED));
    hear_batch(&mut alone, 1, &head, |batch| batch.skip(3));
    alone.write();
    alone.hear(1, chosen());
    alone.write();
    alone.engine.is_operational() && held(&alone) == [1]
}

/// Somebody who lacks much, and what it has asked for, in order.
pub fn asks(alone: &mut Alone) -> Vec<Range<u64>> {
    let asked = alone.said.drain(..).filter_map(|word| match word {
        Word::Fetch(from, upto) => Some(from..upto),
        _ => None,
    });
    asked.collect()
}

/// As many votes from here on as fill an answer.
pub fn full(from: u64) -> Vec<Vote> {
    let frame = Bytes::from(vec![0; 33_000]);
    let vote = |first| {
        let (process, counter) = (process(3, 1), first);
        let id = ValueId { process, counter };
        let frame = frame.clone();
        let value = Value::Packet { id, frame };
        Vote {
            first,
            round: 1,
            value,
        }
    };
    (from..from + 3).map(vote).collect()
}

/// The second, and what it has asked for.
pub fn lacks_much() -> (Alone, VecDeque<Range<u64>>) {
    let mut alone = second();
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.hear(1, Word::Prepare(2, 10_000).encode(FOUNDED));
    alone.write();
    let under_way: VecDeque<_> = asks(&mut alone).into();
    assert_eq!((under_way.len(), &under_way[0]), (1, &(1..10_000)));
    (alone, under_way)
}

/// Where answers take long more and more are asked for, one behind the other, and nothing twice; and only one when there
/// was none.
pub fn who_lacks_much_asks_for_more_at_once() -> bool {
    let (mut alone, mut under_way) = lacks_much();
    let (mut known, mut most) = (BTreeSet::new(), 0);
    for _ in 0..60 {
        alone.now = alone.now.after(50_000_000 / under_way.len() as u64);
        let asked = under_way.pop_front().expect("it asks");
        let mut votes = full(asked.start);
        votes.retain(|vote| asked.contains(&vote.first));
        known.extend(votes.iter().map(|vote| vote.first));
        alone.hear(1, Word::Chosen(votes).encode(FOUNDED));
        alone.write();
        for asked in asks(&mut alone) {
            let overlaps = |other: &Range<u64>| other.start < asked.end && asked.start < other.end;
            assert!(!under_way.iter().any(overlaps), "{asked:?} {under_way:?}");
            assert!(known.range(asked.clone()).next().is_none(), "{asked:?}");
            under_way.push_back(asked);
        }
        most = most.max(under_way.len());
    }
    assert!(known.len() > 120 && known.range(..100).count() == 99);
    // Nobody answers.
    alone.now = alone.now.after(1_000_000_000);
    (0..2).for_each(|_| alone.tell(Input::Timer));
    most == 16 && asks(&mut alone).is_empty() && {
        alone.now = alone.now.after(100_000_000);
        alone.tell(Input::Timer);
        asks(&mut alone).len() == 1
    }
}
