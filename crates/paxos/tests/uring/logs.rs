//! Logs that fail, hang and are opened again, and the records in them: rules of one acceptor.

use bytes::Bytes;
use rota_core::contract::{Engine, LogRecord, Time};
use rota_paxos::uring::{AcceptorConfig, Record, URingConfig, Word};
use rota_paxos::{Promise, STATE_LOG, Value, Vote};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::behind::{asks, full, lacks_much};
use super::rules::{batch_of, follow, head, hear_batch, values};

/// The most that may be under way, and one record: what drivers take.
const MOST: usize = (16 << 20) + (256 << 10);

/// Keys of the log of states.
const DECIDED: u64 = 5;

/// Values of the third, of some thousand messages, each a value.
pub fn many(count: usize) -> Vec<(rota_paxos::ValueId, Bytes)> {
    let (id, frame) = values()[0].clone();
    let one = |counter| {
        let id = rota_paxos::ValueId { counter, ..id };
        (id, frame.clone())
    };
    (1..=count as u64).map(one).collect()
}

/// The first proposes to the second, from this instance on, and all vote for what was proposed.
fn decided(alone: &mut Alone, from: u64, values: &[(rota_paxos::ValueId, Bytes)]) {
    let epoch = alone.follow().epoch;
    for (at, chunk) in values.chunks(20).enumerate() {
        let from = from + 20 * at as u64;
        batch_of(alone, epoch, from, |batch| {
            for (id, frame) in chunk {
                batch.packet(None, *id, frame, true);
            }
            let next = from + chunk.len() as u64;
            for other in [0, 2] {
                batch.voted(other, next);
                batch.learnt(other, from);
            }
        });
        alone.write_all();
        while alone.engine.poll_delivery().is_some() {}
    }
}

/// The second of three that has learnt so many values behind the members.
pub fn learnt(settings: URingConfig, count: usize) -> Alone {
    let mut alone = Alone::with(settings, process(2, 1), Vec::new());
    alone.join();
    let (epoch, ring) = (alone.follow().epoch, alone.config(1).ring.clone());
    batch_of(&mut alone, epoch, 1, |batch| {
        batch.members(1, &ring);
        batch.voted(0, 2);
        batch.voted(2, 2);
    });
    alone.write();
    decided(&mut alone, 2, &many(count));
    assert_eq!(alone.engine.learnt(), 2 + count as u64);
    alone
}

/// Nobody else votes for what the second is asked for.
pub fn proposed(
    alone: &mut Alone,
    (round, from): (u64, u64),
    values: &[(rota_paxos::ValueId, Bytes)],
) {
    let epoch = alone.follow().epoch;
    hear_batch(alone, 1, &head(round, epoch, (1, from)), |batch| {
        for (id, frame) in values {
            batch.packet(None, *id, frame, true);
        }
    });
}

fn promised(alone: &mut Alone, round: u64, from: u64) -> Option<Promise> {
    alone.said.clear();
    alone.hear(1, Word::Prepare(round, from).encode(FOUNDED));
    alone.write();
    alone.said.iter().find_map(|word| match word {
        Word::Promise(promise, _) if promise.round == round => Some(promise.clone()),
        _ => None,
    })
}

/// The process begins again with what is on its disk, and hears of the next configuration.
fn again(records: Vec<(rota_core::contract::LogId, u64, Bytes)>, round: u64) -> Alone {
    let mut again = Alone::new(process(2, 2), records);
    again.link(process(1, 1));
    again.write();
    let known = Word::Known(again.config(round));
    again.hear(1, known.encode(FOUNDED));
    again
}

/// What a promise says to be held is so for ever.
pub fn what_is_told_to_be_held_is_held_after_a_restart() -> bool {
    let mut alone = learnt(settings(), 20);
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    let told = promised(&mut alone, 2, 22).expect("it promises");
    let mut again = again(alone.all_on_disk(), 3);
    let then = promised(&mut again, 3, 22).expect("it promises");
    told.held == 22 && then.held == told.held
}

/// Who begins again asks others for little of what it knew.
pub fn a_restart_forgets_little() -> bool {
    let alone = learnt(settings(), 2000);
    let again = Alone::new(process(2, 2), alone.all_on_disk());
    again.engine.learnt() + 300 > alone.engine.learnt()
}

/// A skip that is forgotten would let a value into an instance that merges have passed.
pub fn a_skip_is_as_durable_as_a_value() -> bool {
    let mut alone = learnt(settings(), 20);
    let epoch = alone.follow().epoch;
    let (from, next) = (22, 5022);
    batch_of(&mut alone, epoch, from, |batch| {
        batch.skip(next - from);
        for other in [0, 2] {
            batch.voted(other, next);
            batch.learnt(other, next);
        }
    });
    alone.write_all();
    let again = Alone::new(process(2, 2), alone.all_on_disk());
    alone.engine.learnt() == next && again.engine.learnt() == next
}

/// The same while the disk is never idle: each request is answered when the next one is under way.
pub fn a_busy_disk_has_hints() -> bool {
    let mut alone = learnt(settings(), 20);
    let epoch = alone.follow().epoch;
    let all = many(2020);
    for (at, chunk) in all[20..].chunks(20).enumerate() {
        let from = 22 + 20 * at as u64;
        batch_of(&mut alone, epoch, from, |batch| {
            for (id, frame) in chunk {
                batch.packet(None, *id, frame, true);
            }
            batch.voted(0, from);
            batch.voted(2, from);
        });
        alone.write_all_but_one();
        while alone.engine.poll_delivery().is_some() {}
    }
    let again = Alone::new(process(2, 2), alone.all_on_disk());
    again.engine.learnt() + 400 > alone.engine.learnt()
}

/// Whatever first part of what was asked for is on the disk: it is enough to begin with.
pub fn any_first_part_of_what_is_written_is_sound() -> bool {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            kept_instances: 10,
            ..settings().acceptor
        },
        ..settings()
    };
    let alone = learnt(settings.clone(), 160);
    let trims = alone.records.iter();
    let is_trim = |record: &&_| matches!(record, rota_core::contract::LogRecord::Trim { .. });
    assert!(trims.filter(is_trim).count() > 3);
    (0..=alone.records.len()).all(|count| {
        let records = alone.on_disk(count);
        let hint = records.iter().find_map(|(log, at, bytes)| {
            let is_hint = (*log, *at) == (STATE_LOG, DECIDED);
            let bytes = bytes.as_ref().try_into().ok()?;
            is_hint.then(|| u64::from_le_bytes(bytes))
        });
        let votes = records.iter().filter(|(log, ..)| *log != STATE_LOG);
        let first = votes.map(|(_, at, _)| *at).min();
        let again = Alone::with(settings.clone(), process(2, 2), records);
        let learnt = again.engine.learnt();
        learnt >= hint.unwrap_or(0) && first.is_none_or(|first| first <= learnt)
    })
}

/// What is forgotten the others know to be decided even when all have been restarted: who has told how far it has learnt finds
/// by its hints a little less.
pub fn what_is_forgotten_others_know_after_a_restart() -> bool {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            kept_instances: 10,
            ..settings().acceptor
        },
        ..settings()
    };
    let alone = learnt(settings.clone(), 100);
    let forgotten = |upto: usize| {
        let trims = alone.records[..upto]
            .iter()
            .filter_map(|record| match record {
                LogRecord::Trim { position, .. } => Some(*position),
                LogRecord::Put { .. } => None,
            });
        trims.max().unwrap_or(0)
    };
    // The others have told that they have learnt everything before the last twenty; they may be as this one is when it is
    // restarted with what it had told then.
    let all = alone.records.len();
    let told = 2 + 80;
    let again = Alone::with(settings, process(2, 2), alone.all_on_disk());
    let lacks = alone.engine.learnt() - again.engine.learnt();
    forgotten(all) > 0 && forgotten(all) + lacks <= told
}

/// A disk that answers nothing is one that has failed: others are told, and what goes along the ring goes on.
pub fn a_disk_that_hangs_is_given_up() -> bool {
    let mut alone = learnt(settings(), 20);
    follow(&mut alone, 1, 22);
    let all = many(40);
    let (wait, step) = (settings().patience.disk, 50_000_000);
    proposed(&mut alone, (1, 22), &all[20..30]);
    let start = alone.now.0;
    while alone.now.0 < start + wait + step {
        assert!(alone.reopens == 0 || alone.now.0 >= start + wait);
        alone.now = Time(alone.now.0 + step);
        let epoch = alone.follow().epoch;
        batch_of(&mut alone, epoch, 32, |_| {});
        alone.tell(rota_core::contract::Input::Timer);
    }
    let says = |word: &Word| matches!(word, Word::Hello(here) if here.acceptor.is_none());
    // Was it this process that did not run? It has a little longer.
    let grace = settings().patience.heartbeat;
    alone.now = Time(alone.now.0 + grace);
    alone.tell(rota_core::contract::Input::Timer);
    let is_told = alone.reopens == 1 && alone.said.iter().any(says);
    alone.batches.clear();
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 32, |batch| {
        for (id, frame) in &all[30..] {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, 42);
        batch.voted(2, 42);
    });
    let records = alone.batches.iter().flatten();
    let is_proposal = |record: &&Record| matches!(record, Record::Proposal(_));
    is_told && records.filter(is_proposal).count() == 10 && alone.engine.learnt() == 42
}

/// The log fails, and is open again with what was durable: it gets the rest, and then this acceptor is one again, with all that
/// it has voted for, also after a restart.
pub fn a_log_that_is_open_again_has_all() -> bool {
    let mut alone = learnt(settings(), 20);
    let before = alone.records.len();
    let all = many(40);
    proposed(&mut alone, (1, 22), &all[20..30]);
    alone.fail();
    let silent = alone.reopens == 1 && promised(&mut alone, 1, 22).is_none();
    alone.reopen(alone.on_disk(before), false);
    let early = alone.engine.status().state;
    alone.write_all();
    let rest = alone.records.split_off(before);
    assert!(rest.len() > 10, "{}", rest.len());
    // What was asked for before it failed is not on the disk.
    let written = rest.into_iter().skip(10).collect::<Vec<_>>();
    alone.records.extend(written);
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    let told = promised(&mut alone, 2, 22).expect("it promises");
    let mut again = again(alone.all_on_disk(), 3);
    let then = promised(&mut again, 3, 22).expect("it promises");
    silent && !early.is_empty() && told.votes.len() == 10 && then.votes == told.votes
}

/// Where something that was durable may be lost another acceptor begins, which knows what was decided.
pub fn who_may_have_lost_something_is_another_acceptor() -> bool {
    let mut alone = learnt(settings(), 300);
    let (name, all) = (alone.votes_as(), many(310));
    proposed(&mut alone, (1, 302), &all[300..]);
    alone.write();
    let mut found = Alone::found(settings(), process(2, 2), (alone.all_on_disk(), true));
    found.link(process(1, 1));
    found.write();
    let at_start = found.votes_as() != name && found.engine.learnt() > 256;
    // The same of a log that is open again.
    let before = alone.on_disk(alone.records.len());
    alone.fail();
    alone.reopen(before, true);
    alone.write_all();
    // A process that goes on remembers all that it was.
    let is_same = alone.votes_as() == name && alone.engine.learnt() == 302;
    let mut again = again(alone.all_on_disk(), 2);
    let told = promised(&mut again, 2, 302).expect("it promises");
    at_start && is_same && told.acceptor == name && told.votes.len() == 10
}

/// Whose log is away goes on learning, and tells others what was decided: not what it voted for.
pub fn who_has_no_log_tells_what_was_decided() -> bool {
    let mut alone = learnt(settings(), 20);
    let all = many(40);
    proposed(&mut alone, (1, 22), &all[20..22]);
    alone.fail();
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    let (epoch, ring) = (alone.follow().epoch, alone.config(2).ring.clone());
    hear_batch(&mut alone, 1, &head(2, epoch, (22, 22)), |batch| {
        batch.members(2, &ring);
        batch.skip(1);
        batch.voted(0, 24);
        batch.voted(2, 24);
    });
    alone.said.clear();
    alone.hear(3, Word::Fetch(22, 30).encode(FOUNDED));
    let answer = alone.said.iter().find_map(|word| match word {
        Word::Chosen(votes) => Some(votes.clone()),
        _ => None,
    });
    let is_skip = |vote: &Vote| vote.first == 23 && vote.value == Value::Skip(1);
    answer.is_some_and(|votes| votes.len() == 2 && votes.iter().any(is_skip))
}

/// What comes is asked for no faster than the disk takes it.
pub fn who_catches_up_does_not_overrun_its_disk() -> bool {
    // After so many answers the disk has shown that it is quick.
    const QUICK: usize = 8;
    let (mut alone, mut under_way) = lacks_much();
    let (mut most, mut answers, mut before) = (0, 0, 0);
    while let Some(asked) = under_way.pop_front() {
        alone.now = alone.now.after(100_000);
        let mut votes = full(asked.start);
        votes.retain(|vote| asked.contains(&vote.first));
        alone.hear(1, Word::Chosen(votes).encode(FOUNDED));
        alone.room();
        answers += 1;
        if answers <= QUICK {
            alone.write();
            before = alone.engine.learnt();
        }
        under_way.extend(asks(&mut alone));
        most = most.max(alone.unanswered);
        if alone.engine.learnt() > 2000 {
            break;
        }
    }
    // A quarter: the rest is for proposals.
    let waits = (100..200).contains(&(alone.engine.learnt() - before));
    alone.write();
    most < MOST && waits && !asks(&mut alone).is_empty()
}

/// The first coordinates, and has been promised all of these votes: more than its disk takes at once.
fn begins_with_much() -> (Alone, Vec<Vote>) {
    let votes: Vec<Vote> = (0..1000).flat_map(|at| full(1 + 3 * at)).collect();
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.write();
    for (at, chunk) in votes.chunks(300).enumerate() {
        let promise = Promise {
            round: 1,
            acceptor: acceptor(2),
            from: 1,
            held: 1,
            kept: 1,
            votes: chunk.to_vec(),
        };
        let more = 300 * (at + 1) < votes.len();
        first.hear(2, Word::Promise(promise, more).encode(FOUNDED));
    }
    (first, votes)
}

/// Everything that a round proposes again at its beginning is handed to the disk as it takes it.
pub fn what_is_proposed_again_does_not_overrun_the_disk() -> bool {
    let (mut first, votes) = begins_with_much();
    let (mut most, mut times) = (first.unanswered, 0);
    while first.unanswered > 0 {
        first.write();
        most = most.max(first.unanswered);
        times += 1;
    }
    let is_vote = |record: &&rota_core::contract::LogRecord| matches!(record, rota_core::contract::LogRecord::Put { log, .. } if *log != STATE_LOG);
    let written = first.records.iter().filter(is_vote).count();
    most < MOST && times > 5 && written >= votes.len()
}

/// The coordinator's disk is behind: what others have voted for it learns, and hands on, all the same.
pub fn a_coordinator_with_a_slow_disk_learns_what_others_vote_for() -> bool {
    let (mut first, _) = begins_with_much();
    let (before, epoch) = (first.engine.learnt(), first.follow().epoch);
    hear_batch(&mut first, 3, &head(1, epoch, (1, 1)), |batch| {
        batch.voted(1, 900);
        batch.voted(2, 900);
    });
    first.unanswered > 0 && before == 1 && first.engine.learnt() >= 900
}

/// What it has learnt is told to others when it is durable.
pub fn what_is_learnt_is_told_when_it_is_durable() -> bool {
    let mut alone = learnt(settings(), 20);
    follow(&mut alone, 1, 22);
    let beat = |alone: &mut Alone| {
        alone.now = Time(alone.now.0 + settings().patience.heartbeat);
        alone.tell(rota_core::contract::Input::Timer);
        let records = alone.batches.iter().flatten();
        let of = records.filter_map(|record| match record {
            Record::Learnt(1, next) => Some(*next),
            _ => None,
        });
        of.max().unwrap_or(0)
    };
    let first = beat(&mut alone);
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch, 22, |batch| {
        for (id, frame) in &many(30)[20..] {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, 32);
        batch.voted(2, 32);
    });
    let early = (alone.engine.learnt(), beat(&mut alone));
    alone.write();
    let then = beat(&mut alone);
    first == 22 && early == (32, 22) && then == 32
}
