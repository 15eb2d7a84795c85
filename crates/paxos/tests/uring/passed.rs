//! The words of an engine to a merge of several rings, and the needs of the merge.

#[cfg(not(feature = "mutants"))]
use bytes::Bytes;
use rota_core::contract::{Delivery, Engine, Input, SubmitError};
use rota_paxos::Promise;
#[cfg(not(feature = "mutants"))]
use rota_paxos::uring::accounts::Command;
use rota_paxos::uring::{LearnerConfig, Record, URingConfig, Word};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::logs::{learnt, many};
use super::rules::{batch_of, follow};

fn feeds() -> URingConfig {
    URingConfig {
        learner: LearnerConfig {
            feeds_merge: true,
            ..settings().learner
        },
        ..settings()
    }
}

fn deliveries(alone: &mut Alone) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(delivery) = alone.engine.poll_delivery() {
        match delivery {
            Delivery::Message(message) => all.push(format!("message {}", message.seq)),
            Delivery::Passed { next } => all.push(format!("passed {next}")),
            Delivery::Configuration(_) => all.push("members".to_owned()),
            Delivery::Notice { seq, bytes } => all.push(format!("notice {seq} of {}", bytes.len())),
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Behind messages, and where instances carry none, up to where everything was delivered or carries nothing: once.
pub fn it_is_told_up_to_where_nothing_is_missing() -> bool {
    let run = |settings: URingConfig| {
        // What it has learnt here is taken already.
        let mut alone = learnt(settings, 2);
        follow(&mut alone, 1, 4);
        let before = deliveries(&mut alone);
        let epoch = alone.follow().epoch;
        batch_of(&mut alone, epoch, 4, |batch| {
            batch.skip(1_000_000_000);
            let (id, frame) = &many(3)[2];
            batch.packet(None, *id, frame, true);
            batch.skip(5);
            for other in [0, 2] {
                batch.voted(other, 1_000_000_010);
                batch.learnt(other, 4);
            }
        });
        let then = deliveries(&mut alone);
        (before, then, deliveries(&mut alone))
    };
    let (none, message) = (Vec::<String>::new(), "message 1000000004".to_owned());
    let passed = "passed 1000000010".to_owned();
    run(feeds()) == (none.clone(), vec![message.clone(), passed], none.clone())
        && run(settings()) == (none.clone(), vec![message], none)
}

/// Between the messages before it and those behind it, and to a merge only; a hold of an account is told as a notice.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_notice_is_told_at_its_place() {
    let run = |settings: URingConfig, notice: &Command| {
        let mut alone = learnt(settings, 2);
        follow(&mut alone, 1, 4);
        deliveries(&mut alone);
        let epoch = alone.follow().epoch;
        // The first byte says that a value is such a command.
        let value: Bytes = [&[0x40][..], &notice.encode(7)].concat().into();
        batch_of(&mut alone, epoch, 4, |batch| {
            let [_, _, (third, frame), (fourth, _), (fifth, last)] = &many(5)[..] else {
                return;
            };
            batch.packet(None, *third, frame, true);
            batch.packet(None, *fourth, &value, true);
            batch.packet(None, *fifth, last, true);
            for other in [0, 2] {
                batch.voted(other, 7);
                batch.learnt(other, 4);
            }
        });
        deliveries(&mut alone)
    };
    let messages = ["message 4", "message 6"].map(str::to_owned);
    let notice = Command::Notice(Bytes::from_static(b"to whom it concerns"));
    let hold = Command::Hold(7, [process(1, 1).node].into(), 0);
    for (command, notice) in [(notice, "notice 5 of 19"), (hold, "notice 5 of 5")] {
        let told = ["message 4", notice, "message 6", "passed 7"].map(str::to_owned);
        assert_eq!(run(feeds(), &command), told);
        assert_eq!(run(settings(), &command), messages);
    }
    let mark = Command::Mark(7, process(1, 1).node, 1);
    let told = ["message 4", "message 6", "passed 7"].map(str::to_owned);
    assert_eq!(run(feeds(), &mark), told);
}

/// Skips go up to an instance: said twice they are the same; only who coordinates has them ordered.
pub fn skips_are_absolute() -> bool {
    let mut second = learnt(feeds(), 2);
    let now = second.now;
    let refused = second.engine.submit_skips_to(now, 100) == Err(SubmitError::Unsupported);
    let mut first = Alone::with(feeds(), process(1, 1), Vec::new());
    first.join();
    first.write_all();
    let promise = Promise {
        round: 1,
        acceptor: acceptor(2),
        from: 1,
        held: 1,
        kept: 1,
        votes: Vec::new(),
    };
    first.hear(2, Word::Promise(promise, false).encode(FOUNDED));
    first.write_all();
    let hail = rota_paxos::uring::ResumeFrom {
        round: 1,
        epoch: 1,
        next: 1,
    };
    first.hear(2, Word::ResumeFrom(hail, Vec::new()).encode(FOUNDED));
    for next in [100, 100, 50, 120] {
        let now = first.now;
        let taken = first.engine.submit_skips_to(now, next);
        taken.expect("it coordinates");
        first.tell(Input::Timer);
    }
    let records = first.batches.iter().flatten();
    let skips = records.filter(|record| match record {
        Record::Proposal(proposal) => format!("{proposal:?}").contains("Skip"),
        _ => false,
    });
    refused && skips.count() == 2 && first.engine.proposed() == Some(120)
}

/// Whoever needs more of the ring says so to its coordinator again and again, as a word may be lost, until it knows as much; and the coordinator
/// knows what is needed.
pub fn what_is_needed_is_said_until_it_is_known() -> bool {
    let said = |alone: &mut Alone| {
        let words = alone.said.drain(..);
        words.filter(|word| *word == Word::Need(100)).count()
    };
    let mut second = learnt(feeds(), 2);
    let now = second.now;
    second.said.clear();
    second.engine.need(now, 100);
    second.engine.need(now, 90);
    second.tell(Input::Timer);
    let first = said(&mut second);
    let again: Vec<usize> = (0..3)
        .map(|_| {
            second.now = second.now.after(settings().patience.heartbeat);
            second.tell(Input::Timer);
            said(&mut second)
        })
        .collect();
    let mut other = learnt(feeds(), 2);
    // What nobody can grant hides no other.
    other.hear(3, Word::Need(1 << 62).encode(FOUNDED));
    let far = other.engine.take_needed() == Some(1 << 62);
    other.hear(3, Word::Need(70).encode(FOUNDED));
    first == 1
        && again == [1, 1, 1]
        && far
        && other.engine.take_needed() == Some(70)
        && other.engine.take_needed().is_none()
}
