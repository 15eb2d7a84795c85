//! Disks that are slow, hang again and again, and have much to catch up with: they cost others little.

use bytes::Bytes;
use rota_core::contract::{Engine, Input, LogRecord, PersistId, Time};
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::{AcceptorConfig, Record, Timeouts, URingConfig, Word};
use rota_paxos::{STATE_LOG, ValueId};

use super::alone::{Alone, process, settings};
use super::datagrams::SETTINGS;
use super::logs::{learnt, many, proposed};
use super::rounds::{passes, stands};
use super::rules::{batch_of, follow};

const MILLI: u64 = 1_000_000;

/// With room for some values at the disk only.
fn narrow() -> URingConfig {
    URingConfig {
        acceptor: AcceptorConfig {
            disk_bytes: 1000,
            kept_instances: 50,
            ..settings().acceptor
        },
        ..settings()
    }
}

/// The first proposes, and everybody votes; whether the second hands on what it was told, and where it is then.
fn is_handed_on(alone: &mut Alone, from: u64, values: &[(ValueId, Bytes)]) -> bool {
    alone.batches.clear();
    let (epoch, next) = (alone.follow().epoch, from + values.len() as u64);
    batch_of(alone, epoch, from, |batch| {
        for (id, frame) in values {
            batch.packet(None, *id, frame, true);
        }
        for other in [0, 2] {
            batch.voted(other, next);
            batch.learnt(other, next);
        }
    });
    while alone.engine.poll_delivery().is_some() {}
    let records = alone.batches.iter().flatten();
    let is_proposal = |record: &&Record| matches!(record, Record::Proposal(_));
    records.filter(is_proposal).count() == values.len()
}

/// A log that is open again gets what it lacks as the disk takes it. Meanwhile nobody waits for it: what goes along the ring
/// goes on.
pub fn who_refills_its_log_hands_on() -> bool {
    let (mut alone, all) = (learnt(narrow(), 40), many(60));
    follow(&mut alone, 1, 42);
    alone.fail();
    alone.unanswered = 0;
    alone.reopen(Vec::new(), false);
    let few = alone.unanswered < 1000 + alone.largest;
    let goes_on = is_handed_on(&mut alone, 42, &all[40..50]);
    let has_vote = |alone: &Alone| {
        let here = |word: &Word| match word {
            Word::Hello(here) => Some(here.acceptor.is_some()),
            _ => None,
        };
        alone.said.iter().rev().find_map(here) == Some(true)
    };
    let says_so = alone
        .engine
        .status()
        .state
        .contains("its log gets what it lacks");
    let votes_not = !has_vote(&alone) && says_so;
    alone.write_all();
    let again = Alone::with(narrow(), process(2, 2), alone.all_on_disk());
    let has_all = again.engine.learnt() >= 52;
    few && goes_on && votes_not && has_vote(&alone) && has_all
}

/// Until it has all votes nothing is written that speaks of them: were it cut off then, old votes would be taken for what was
/// decided.
pub fn what_speaks_of_votes_is_written_behind_them() -> bool {
    let (mut alone, all) = (learnt(narrow(), 40), many(160));
    follow(&mut alone, 1, 42);
    alone.fail();
    alone.reopen(Vec::new(), false);
    let before = alone.records.len();
    // Meanwhile it forgets what is far behind.
    for at in 0..10 {
        let (from, some) = (42 + 10 * at, 40 + 10 * at as usize);
        assert!(is_handed_on(&mut alone, from, &all[some..some + 10]));
    }
    alone.write_all();
    let written = &alone.records[before..];
    let speaks = |record: &LogRecord| match record {
        LogRecord::Put { log, position, .. } => *log == STATE_LOG && (3..=5).contains(position),
        LogRecord::Trim { .. } => true,
    };
    let is_vote =
        |record: &LogRecord| matches!(record, LogRecord::Put { log, .. } if *log != STATE_LOG);
    let first = written.iter().position(speaks).expect("a base");
    let votes = written[..first].iter().filter(|record| is_vote(record));
    votes.count() >= 50
}

/// With as much under way as the disk may have, nothing is taken from the predecessor before the disk has answered.
pub fn who_has_a_full_disk_takes_nothing() -> bool {
    let (mut alone, all) = (learnt(narrow(), 40), many(140));
    follow(&mut alone, 1, 42);
    let took = is_handed_on(&mut alone, 42, &all[40..100]);
    let refused = !is_handed_on(&mut alone, 102, &all[100..110]);
    alone.write_all();
    waits(&mut alone, 200, 102);
    took && refused && is_handed_on(&mut alone, 102, &all[100..110])
}

/// Time passes, and the predecessor is there.
fn waits(alone: &mut Alone, millis: u64, next: u64) {
    passes(alone, millis, |alone, _| {
        let epoch = alone.follow().epoch;
        batch_of(alone, epoch, next, |_| {});
    });
}

/// Where values are multicast the ring waits for the first vote that is missing: a disk that has hung before is not waited for
/// any longer.
pub fn where_all_wait_a_disk_gets_no_more_time() -> bool {
    let settings = URingConfig {
        multicast: Some(SETTINGS),
        ..settings()
    };
    let (mut alone, all) = (learnt(settings.clone(), 20), many(60));
    let (disk, heartbeat) = (settings.patience.disk, settings.patience.heartbeat);
    let longest = (disk + 3 * heartbeat) / MILLI + 100;
    for round in 0..4 {
        let from = 22 + u64::from(round);
        follow(&mut alone, 1 + round, from);
        let some = from as usize - 2;
        proposed(&mut alone, (1, from), &all[some..=some]);
        waits(&mut alone, longest, from + 1);
        if alone.reopens != round + 1 {
            return false;
        }
        alone.reopen(alone.all_on_disk(), false);
        alone.write_all();
    }
    true
}

/// A disk that fails again and again may have been asked for more than it takes in its time: a log that is opened again gets what it lacks in
/// smaller and smaller parts.
pub fn a_disk_that_fails_again_is_asked_for_less() -> bool {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            disk_bytes: 32_000,
            ..narrow().acceptor
        },
        ..narrow()
    };
    let mut alone = learnt(settings, 40);
    let asked = [(); 4].map(|()| {
        alone.fail();
        alone.unanswered = 0;
        alone.reopen(Vec::new(), false);
        alone.unanswered
    });
    asked[3] < 200 + alone.largest && asked[3] < asked[0]
}

/// Of a disk that has not answered in time no more is asked at once than a part of what it could not do; of one that answers
/// quickly, more and more again.
pub fn a_slow_disk_is_asked_for_less() -> bool {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            disk_bytes: 6400,
            kept_instances: 1000,
            ..settings().acceptor
        },
        ..settings()
    };
    let mut alone = learnt(settings, 200);
    let mut asked = |wait: u64| {
        let once = asked_at_once(&mut alone);
        let mut most = 0;
        for _ in 0..400 {
            alone.now = alone.now.after(wait);
            alone.write();
            most = most.max(alone.unanswered.saturating_sub(alone.largest));
        }
        (once, most)
    };
    let patience = 3_600 * MILLI;
    let (first, grown) = asked(MILLI);
    let (second, fewer) = asked(patience * 2 / 3);
    let (third, _) = asked(patience * 2 / 3);
    let (last, _) = asked(MILLI);
    first < 1700 && grown > 3200 && second < 1700 && fewer < 1700 && third < 500 && last < 500
}

/// How much a log that is opened again is asked for at once, but for one record.
fn asked_at_once(alone: &mut Alone) -> usize {
    alone.fail();
    (alone.unanswered, alone.largest) = (0, 0);
    alone.reopen(Vec::new(), false);
    alone.unanswered - alone.largest
}

/// The second, whose disk has been so slow in all its answers that it gets as little as can be; and its patience.
fn with_a_slow_disk() -> (Alone, u64) {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            disk_bytes: 102_400,
            kept_instances: 1000,
            ..settings().acceptor
        },
        ..settings()
    };
    let mut alone = learnt(settings, 200);
    let patience = 3_600 * MILLI;
    for _ in 0..3 {
        asked_at_once(&mut alone);
        for _ in 0..400 {
            alone.now = alone.now.after(patience * 2 / 3);
            alone.write();
        }
    }
    follow(&mut alone, 1, 202);
    (alone, patience)
}

/// Answers to little say nothing of how long a disk takes for much.
pub fn quick_answers_to_little_say_nothing_of_much() -> bool {
    let (mut alone, patience) = with_a_slow_disk();
    for (at, value) in many(300)[200..240].iter().enumerate() {
        proposed(
            &mut alone,
            (1, 202 + at as u64),
            std::slice::from_ref(value),
        );
        alone.now = alone.now.after(patience / 10);
        alone.write();
    }
    asked_at_once(&mut alone) < 500
}

/// An answer that comes right behind another one has been on its way for as long.
pub fn an_answer_behind_another_one_was_not_quick() -> bool {
    let ((mut alone, patience), all) = (with_a_slow_disk(), many(300));
    for at in 0..20 {
        for index in [200 + 2 * at, 201 + 2 * at] {
            let value = std::slice::from_ref(&all[index]);
            proposed(&mut alone, (1, 2 + index as u64), value);
        }
        let last = alone.written;
        alone.now = alone.now.after(patience / 3);
        for id in [PersistId(last.0 - 1), last] {
            alone.tell(Input::Persisted { id });
        }
    }
    asked_at_once(&mut alone) < 500
}

/// A register whose disks take long has time to answer twice, whatever the other time-outs are.
pub fn where_time_outs_are_short_candidates_wait_for_disks() -> bool {
    let patience = Timeouts::derive(&Timers::derive(Timing::LanFast, 3));
    let settings = URingConfig {
        patience,
        ..settings()
    };
    let mut alone = Alone::with(settings, process(2, 1), Vec::new());
    alone.join();
    alone.unlink(1);
    alone.said.clear();
    let mut asked = Vec::new();
    passes(&mut alone, 120_000, |alone, step| {
        follow(alone, 1, 1);
        let asks = |word: &&Word| matches!(word, Word::Ask(..));
        let count = alone.said.iter().filter(asks).count();
        if count > asked.last().map_or(0, |(_, count)| *count) {
            asked.push((step, count));
        }
    });
    let pauses = asked.windows(2).map(|two| 50 * (two[1].0 - two[0].0));
    let long = pauses.filter(|millis| *millis > 2 * patience.disk / MILLI);
    long.count() >= 3
}

/// A node that votes by its own list only does not: it wants no round for votes that nobody counts.
pub fn who_votes_by_its_own_list_only_does_not() -> bool {
    let four = (1..=4).map(|node| process(node, 1).node).collect();
    let settings = URingConfig {
        acceptors: four,
        ..settings()
    };
    let mut alone = Alone::with(settings, process(2, 1), Vec::new());
    alone.join_without_a_vote();
    follow(&mut alone, 1, 1);
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 1, |batch| batch.skip(2));
    batch_of(&mut alone, epoch, 1000, |batch| {
        batch.skip(1);
        batch.voted(0, 1001);
        batch.voted(1, 1001);
    });
    alone.write();
    let vote = rota_paxos::Vote {
        first: 1,
        round: 1,
        value: rota_paxos::Value::Skip(999),
    };
    alone.hear(1, Word::Chosen(vec![vote]).encode(super::alone::FOUNDED));
    waits(&mut alone, 1000, 1001);
    alone.tell(Input::Timer);
    alone.now > Time(1) && stands(&alone).is_empty() && alone.engine.learnt() == 1001
}
