//! Rules of a process to which values are multicast, and to which one does not come.

use bytes::Bytes;
use rota_core::contract::{Engine, Input, Time};
use rota_core::wire::PartHead;
use rota_paxos::ValueId;
use rota_paxos::uring::{Multicast, Record, URing, URingConfig, Word};

use super::alone::{Alone, FOUNDED, process, settings};
use super::datagrams::SETTINGS;
use super::rules::{batch_by, batch_of, follow};

fn alone(node: u16) -> Alone {
    let settings = URingConfig {
        multicast: Some(SETTINGS),
        ..settings()
    };
    let mut alone = Alone::with(settings, process(node, 1), Vec::new());
    alone.join();
    alone
}

/// The datagrams of values of the third process, of 150 bytes each: three to a value.
pub fn datagrams(count: usize) -> Vec<Vec<Bytes>> {
    let mut third = alone(3);
    let one = |_| {
        third.sent.clear();
        third.submit(&[7; 150]);
        assert!(!third.sent.is_empty());
        third.sent.clone()
    };
    (0..count).map(one).collect()
}

const fn value(counter: u64) -> ValueId {
    let process = process(3, 1);
    ValueId { process, counter }
}

/// The first proposes these values of the third, and says that it has voted.
fn name(second: &mut Alone, counters: std::ops::Range<u64>) {
    let epoch = second.follow().epoch;
    batch_of(second, epoch, counters.start, |batch| {
        for counter in counters {
            batch.proposal(Some(2), value(counter));
        }
    });
    second.write();
}

/// Up to where the second says that it has voted.
fn voted(second: &Alone) -> u64 {
    let records = second.batches.iter().flatten();
    let own = records.filter_map(|record| match record {
        Record::Voted(1, next) => Some(*next),
        _ => None,
    });
    own.max().unwrap_or(0)
}

/// So much later.
fn wait(alone: &mut Alone, millis: u64) {
    alone.now = Time(alone.now.0 + millis * 1_000_000);
    // What came of the first is said when nothing else has come.
    for _ in 0..2 {
        alone.tell(Input::Timer);
    }
}

/// The second of three values of the third does not come to the second.
fn one_is_lost() -> Alone {
    let mut second = alone(2);
    let values = datagrams(3);
    for part in values[0].iter().chain(&values[2]) {
        second.datagrams(part.clone());
    }
    name(&mut second, 1..4);
    second.said.clear();
    second
}

/// Who lacks a value neither votes for it nor names it to others; when it comes, both.
pub fn a_vote_needs_the_value() -> bool {
    let mut second = alone(2);
    follow(&mut second, 1, 0);
    let values = datagrams(1);
    assert_eq!(values[0].len(), 3);
    for part in &values[0][1..] {
        second.datagrams(part.clone());
    }
    name(&mut second, 1..2);
    let names = |second: &Alone| {
        let mut records = second.batches.iter().flatten();
        records.any(|record| matches!(record, Record::Proposal(_)))
    };
    let early = voted(&second) > 1 || names(&second);
    second.datagrams(values[0][0].clone());
    second.write();
    wait(&mut second, 1);
    !early && voted(&second) == 2 && names(&second)
}

/// Names and votes leave together that came together, and at once when nothing else has come.
pub fn what_comes_together_leaves_together() -> bool {
    let mut second = alone(2);
    follow(&mut second, 1, 0);
    name(&mut second, 1..1);
    for part in datagrams(2).into_iter().flatten() {
        second.datagrams(part);
    }
    second.batches.clear();
    name(&mut second, 1..2);
    name(&mut second, 2..3);
    let is_due = |second: &Alone| {
        let next = second.engine.next_timer();
        next.is_some_and(|(at, _)| at <= second.now)
    };
    let waits = second.batches.is_empty() && is_due(&second);
    second.tell(Input::Timer);
    let [batch] = &second.batches[..] else {
        return false;
    };
    let names = |record: &&Record| matches!(record, Record::Proposal(_));
    let named = batch.iter().filter(names).count();
    waits && named == 2 && voted(&second) == 3 && !is_due(&second)
}

/// What does not come is asked of the predecessor, by its instance, and not what has come behind it.
pub fn what_is_missing_is_asked_for() -> bool {
    let mut second = one_is_lost();
    wait(&mut second, 100);
    let asked = second.said.iter().find_map(|word| match word {
        Word::ResumeFrom(follow, lacks) => Some((follow.next, lacks.clone())),
        _ => None,
    });
    asked == Some((2, vec![2]))
}

/// The successor that asks for a value gets it.
pub fn who_asks_is_brought_the_value() -> bool {
    let mut second = alone(2);
    for part in datagrams(1).iter().flatten() {
        second.datagrams(part.clone());
    }
    name(&mut second, 1..2);
    second.batches.clear();
    let follow = rota_paxos::uring::ResumeFrom {
        round: 1,
        epoch: 7,
        next: 1,
    };
    second.hear(3, Word::ResumeFrom(follow, vec![1]).encode(FOUNDED));
    let mut records = second.batches.iter().flatten();
    records.any(|record| {
        let packet = |id: &ValueId| *id == value(1);
        matches!(record, Record::Proposal(rota_paxos::uring::Proposal::Packet { id, .. }) if packet(id))
    })
}

/// A value whose name comes first is only late.
pub fn an_own_value_that_is_not_proposed_is_sent_to_the_coordinator() -> bool {
    let mut third = alone(3);
    let epoch = third.follow().epoch;
    batch_by(&mut third, 2, (epoch, 1), |_| {});
    third.submit(b"value");
    let is_sent = |third: &Alone| {
        let mut said = third.said.iter();
        said.any(|word| matches!(word, Word::Value(1, _)))
    };
    let early = is_sent(&third);
    wait(&mut third, 100);
    !early && is_sent(&third)
}

/// One question at a time: the next one would have the answer to this one thrown away.
pub fn who_has_asked_waits() -> bool {
    let mut second = one_is_lost();
    for _ in 0..40 {
        wait(&mut second, 1);
    }
    let follows = second.said.iter();
    let follows = follows.filter(|word| matches!(word, Word::ResumeFrom(..)));
    follows.count() == 1
}

/// Without a link to the coordinator, and with datagrams lost, a value goes along the ring.
pub fn a_value_goes_along_the_ring_if_there_is_no_other_way() -> bool {
    let mut second = alone(2);
    follow(&mut second, 1, 0);
    name(&mut second, 1..1);
    second.unlink(1);
    second.submit(b"value");
    wait(&mut second, 20);
    let value = |record: &Record| match record {
        Record::Value(id, frame) => Some((*id, frame.clone())),
        _ => None,
    };
    let sent = second.batches.iter().flatten();
    let sent: Vec<_> = sent.filter_map(value).collect();
    // Whoever had no room for it has forgotten it.
    for _ in 0..5 {
        wait(&mut second, 20);
    }
    let again = second.batches.iter().flatten().filter_map(value).count();
    let Some((id, frame)) = sent.first().filter(|_| again > sent.len()).cloned() else {
        return false;
    };
    let mut third = alone(3);
    let along = rota_paxos::uring::ResumeFrom {
        round: 1,
        epoch: 5,
        next: 0,
    };
    third.hear(1, Word::ResumeFrom(along, Vec::new()).encode(FOUNDED));
    let epoch = third.follow().epoch;
    let mut passed = || {
        batch_by(&mut third, 2, (epoch, 1), |batch| {
            batch.value(Some(1), id, &frame);
        });
        wait(&mut third, 1);
        let sent = third.batches.iter().flatten();
        sent.filter_map(value).filter(|(of, _)| *of == id).count()
    };
    passed() == 1 && passed() == 2
}

/// Datagrams that cannot be parts of what is under way are counted, and those that come again are not.
pub fn what_is_of_no_use_is_counted() -> bool {
    let mut second = alone(2);
    let value = datagrams(1).remove(0);
    let head = |proposer, counter, cluster| PartHead {
        cluster,
        proposer,
        counter,
        index: 0,
        count: 1,
        total: 5,
    };
    let (member, here) = (process(3, 1), SETTINGS.cluster);
    for useless in [
        head(member, 1 << 40, here),
        head(member, 1, here + 1),
        // No value begins like this.
        head(member, 2, here),
    ] {
        second.datagram(&useless, b"value");
    }
    // Who has another life may be new, or old.
    second.datagram(&head(process(3, 2), 1, here), b"value");
    for part in value.iter().chain(&value) {
        second.datagrams(part.clone());
    }
    let status = second.engine.status();
    status.counters.get("uring_parts_dropped") == Some(&3)
}

#[test]
#[should_panic(expected = "no room for parts")]
fn datagrams_have_room_for_parts() {
    let multicast = Multicast {
        datagram_bytes: 40,
        ..SETTINGS
    };
    URing::new(URingConfig {
        multicast: Some(multicast),
        ..settings()
    });
}
