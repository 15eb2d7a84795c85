//! Votes that have left memory, and are read back from the log: rules of one acceptor.

use bytes::Bytes;
use rota_core::contract::{Delivery, Engine, Input, Time};
use rota_paxos::uring::{AcceptorConfig, LearnerConfig, Record, URingConfig, Word};
use rota_paxos::{Promise, Vote};

use super::alone::{Alone, FOUNDED, settings};
use super::cut::{self, Second, keeps_little};
use super::logs::{learnt, many};
use super::rules::{batch_of, follow};

/// The bytes of votes that are kept in memory.
const MOST: usize = 4000;

/// So many values are learnt, behind the members.
const VALUES: usize = 100;

/// The first instance without a value.
const NEXT: u64 = 2 + VALUES as u64;

fn in_little(settings: URingConfig) -> URingConfig {
    URingConfig {
        acceptor: AcceptorConfig {
            memory_bytes: MOST,
            ..settings.acceptor
        },
        ..settings
    }
}

/// The second of three, of whose values most have left memory.
fn archived() -> Alone {
    learnt(in_little(settings()), VALUES)
}

fn counter(alone: &Alone, name: &str) -> u64 {
    alone.engine.status().counters[name]
}

/// The third asks for some instances.
fn ask(alone: &mut Alone, from: u64, upto: u64) {
    alone.said.clear();
    alone.hear(3, Word::Fetch(from, upto).encode(FOUNDED));
}

fn told(alone: &Alone) -> Option<Vec<Vote>> {
    alone.said.iter().find_map(|word| match word {
        Word::Chosen(votes) => Some(votes.clone()),
        _ => None,
    })
}

/// The instances of votes, if they follow each other.
fn span(votes: &[Vote]) -> Option<(u64, u64)> {
    let is_whole = votes.windows(2).all(|pair| pair[0].end() == pair[1].first);
    let (first, last) = (votes.first()?, votes.last()?);
    is_whole.then_some((first.first, last.end()))
}

/// However much is learnt, memory has its bound, and who asks gets the same as before.
pub fn values_leave_memory() -> bool {
    let mut alone = archived();
    let archived = counter(&alone, "uring_votes_in_log");
    // The name of each is in memory, too, in a table that grows by doubling.
    let names = 2 * 64 * archived;
    let little = counter(&alone, "uring_memory_bytes") <= MOST as u64 + names;
    let many = archived > VALUES as u64 / 2;
    let mut all = learnt(settings(), VALUES);
    for alone in [&mut alone, &mut all] {
        ask(alone, 1, NEXT);
        alone.read_all();
    }
    let (told, wanted) = (told(&alone), told(&all));
    let same = told.zip(wanted).is_some_and(|(told, wanted)| {
        let first = told.len();
        first > VALUES / 2 && told == wanted[..first]
    });
    little && many && same
}

/// What others have decided, and this disk does not have yet.
pub fn what_is_not_durable_stays_in_memory() -> bool {
    let mut alone = archived();
    let epoch = alone.follow().epoch;
    let all = many(2 * VALUES);
    batch_of(&mut alone, epoch, NEXT, |batch| {
        for (id, frame) in &all[VALUES..] {
            batch.packet(None, *id, frame, true);
        }
        let next = NEXT + VALUES as u64;
        batch.voted(0, next);
        batch.voted(2, next);
    });
    assert_eq!(alone.engine.learnt(), NEXT + VALUES as u64);
    ask(&mut alone, NEXT, NEXT + 20);
    let is_there = told(&alone).and_then(|votes| span(&votes));
    let at_once = alone.fetches.is_empty() && is_there == Some((NEXT, NEXT + 20));
    alone.write_all();
    ask(&mut alone, NEXT, NEXT + 20);
    at_once && alone.fetches.len() == 1
}

/// For an instance without a vote a coordinator would propose another value.
pub fn a_promise_tells_what_only_the_log_has() -> bool {
    const FROM: u64 = 20;
    let mut alone = archived();
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.said.clear();
    alone.hear(1, Word::Prepare(2, FROM).encode(FOUNDED));
    alone.write_all();
    let too_early = alone.has_promised(2);
    // One record at a time: the disk may read as little as it likes.
    while let Some(wanted) = alone.fetches.first() {
        let first = alone.votes_on_disk(*wanted)[..1].to_vec();
        alone.read(first);
    }
    let of = |word: &Word| match word {
        Word::Promise(promise, false) => Some(promise.clone()),
        _ => None,
    };
    let promise: Option<Promise> = alone.said.iter().find_map(of);
    let spans = promise.and_then(|promise| span(&promise.votes));
    !too_early && spans == Some((FROM, NEXT))
}

/// Its log cannot be read: a promise without what it has to tell is not told, and the next round's is.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_promise_that_cannot_be_read_is_not_told() {
    let mut alone = archived();
    for round in [2, 3] {
        let known = Word::Known(alone.config(round));
        alone.hear(1, known.encode(FOUNDED));
        alone.hear(1, Word::Prepare(round, 20).encode(FOUNDED));
        alone.write_all();
        match round {
            2 => alone.read(Vec::new()),
            _ => alone.read_all(),
        }
        alone.write_all();
    }
    assert!(!alone.has_promised(2) && alone.has_promised(3));
    assert_eq!(counter(&alone, "uring_reads_failed"), 1);
}

/// A record of another value lies where the one should be that is read.
pub fn no_other_value_is_told() -> bool {
    let mut alone = archived();
    ask(&mut alone, 10, 20);
    let other = alone.votes_on_disk((30, 31))[0].1.clone();
    alone.read(vec![(10, other)]);
    let none = told(&alone).is_some_and(|votes| votes.is_empty());
    none && counter(&alone, "uring_reads_failed") == 1
}

/// The first record is missing, or one in between, or one is damaged: what is told has no gap.
pub fn nothing_is_told_behind_a_gap() -> bool {
    let mut alone = archived();
    let mut spans = |from, spoil: fn(&mut Vec<(u64, Bytes)>)| {
        ask(&mut alone, from, from + 10);
        let mut records = alone.votes_on_disk((from, from + 10));
        spoil(&mut records);
        alone.read(records);
        told(&alone).map(|votes| span(&votes))
    };
    let first = spans(10, |records| drop(records.remove(0)));
    let between = spans(20, |records| drop(records.remove(4)));
    let damaged = spans(30, |records| records[7].1 = Bytes::from_static(b"damaged"));
    let wanted = [None, Some((20, 24)), Some((30, 37))].map(Some);
    [first, between, damaged] == wanted
}

/// A message that is cut at a trim: its first parts have left memory, and are told all the same.
pub fn who_begins_at_a_base_is_told_what_left_memory() -> bool {
    let parts = cut::values(&[2 << 20]);
    assert!(parts.len() > 60, "{}", parts.len());
    let base = |settings| {
        let mut second = Second::new(settings);
        for part in &parts[..parts.len() - 1] {
            second.values(std::slice::from_ref(part));
            second.alone.read_all();
        }
        for _ in 0..20 {
            second.skips(1);
            second.alone.read_all();
        }
        assert!(second.alone.engine.kept() > 1, "nothing is forgotten");
        second.base()
    };
    base(cut_in_little()) == base(keeps_little())
}

/// The first parts of a long message leave memory before the message is whole.
fn cut_in_little() -> URingConfig {
    URingConfig {
        acceptor: AcceptorConfig {
            memory_bytes: 300_000,
            ..keeps_little().acceptor
        },
        ..keeps_little()
    }
}

/// Proposals go on along the link over which somebody has asked for what the disk has.
pub fn a_question_that_waits_for_the_disk_holds_up_nothing() -> bool {
    let mut alone = archived();
    follow(&mut alone, 1, NEXT);
    let (epoch, all) = (alone.follow().epoch, many(VALUES + 5));
    ask(&mut alone, 10, 20);
    assert_eq!(alone.fetches.len(), 1);
    alone.batches.clear();
    for (at, (id, frame)) in (NEXT..).zip(&all[VALUES..]) {
        batch_of(&mut alone, epoch, at, |batch| {
            batch.packet(None, *id, frame, true);
        });
        alone.room();
    }
    let records = alone.batches.iter().flatten();
    let is_proposal = |record: &&Record| matches!(record, Record::Proposal(_));
    let proposals = records.filter(is_proposal).count();
    let waits = told(&alone).is_none();
    alone.read_all();
    waits && proposals == 5 && told(&alone).is_some()
}

/// A log that is opened again without the votes that only it had is that of an acceptor that has forgotten them: it tells
/// who asks where to begin.
pub fn what_a_log_has_lost_is_forgotten() -> bool {
    let mut alone = archived();
    let all = alone.all_on_disk();
    alone.fail();
    let (whole, mut lacks) = (all.clone(), all);
    lacks.retain(|(log, at, _)| *log != rota_paxos::VOTES_LOG || *at != 40);
    alone.reopen(whole, false);
    alone.write_all();
    let nothing_lost = alone.engine.kept() == 1;
    alone.fail();
    alone.reopen(lacks, false);
    alone.write_all();
    let lost = counter(&alone, "uring_instances_lost");
    ask(&mut alone, 10, 20);
    let is_base = |word: &Word| matches!(word, Word::Forgotten(..));
    let told = alone.said.iter().any(is_base);
    nothing_lost && (alone.engine.kept(), lost) == (41, 40) && told
}

/// A snapshot waits for a value, which the log has lost when it is opened again: nothing waits for it any more, and
/// the acceptor goes on forgetting.
#[cfg(not(feature = "mutants"))]
#[test]
fn no_snapshot_waits_for_what_is_lost() {
    let parts = cut::values(&[2 << 20]);
    let mut second = Second::new(cut_in_little());
    for part in &parts[..parts.len() - 1] {
        second.values(std::slice::from_ref(part));
        second.alone.read_all();
    }
    for _ in 0..40 {
        if second.alone.fetches.is_empty() {
            second.skips(1);
        }
    }
    let waits = second.alone.fetches.first().expect("a value is read").0;
    let mut lacks = second.alone.all_on_disk();
    second.alone.fail();
    lacks.retain(|(log, at, _)| *log != rota_paxos::VOTES_LOG || *at != waits);
    second.alone.reopen(lacks, false);
    second.alone.write_all();
    let lost = second.alone.engine.kept();
    for _ in 0..40 {
        second.skips(1);
        second.alone.read_all();
    }
    let (kept, next) = (second.alone.engine.kept(), second.alone.engine.learnt());
    assert_eq!(lost, waits + 1);
    assert!(kept > lost && next > kept, "{lost} {kept} {next}");
}

/// Its application is slow.
fn slow() -> Second {
    let settings = URingConfig {
        learner: LearnerConfig {
            waiting_bytes: 100,
            ..settings().learner
        },
        ..in_little(settings())
    };
    let mut second = Second::new(settings);
    second.values(&many(VALUES));
    second
}

/// The application is slow, and what it wants next cannot be read: it gets that all the same.
pub fn what_cannot_be_read_back_is_asked_of_others() -> bool {
    let mut second = slow();
    let alone = &mut second.alone;
    let mut other = learnt(settings(), VALUES);
    ask(&mut other, 1, NEXT);
    let votes = told(&other).expect("it has all");
    let (mut delivered, mut asked) = (0, 0);
    for _ in 0..4000 {
        while let Some(delivery) = alone.engine.poll_delivery() {
            delivered += usize::from(matches!(delivery, Delivery::Message(_)));
        }
        alone.now = Time(alone.now.0 + 10_000_000);
        alone.tell(Input::Timer);
        while !alone.fetches.is_empty() {
            alone.read(Vec::new());
        }
        let words = std::mem::take(&mut alone.said);
        for word in words {
            let Word::Fetch(from, _) = word else { continue };
            asked += 1;
            let votes = votes
                .iter()
                .filter(|vote| (from..from + 10).contains(&vote.first));
            let chosen = Word::Chosen(votes.cloned().collect());
            alone.hear(1, chosen.encode(FOUNDED));
        }
    }
    asked > 2 && delivered == VALUES
}

#[cfg(not(feature = "mutants"))]
#[test]
fn who_is_slow_reads_all_back() {
    let mut second = slow();
    let alone = &mut second.alone;
    let mut delivered = 0;
    for _ in 0..1000 {
        while let Some(delivery) = alone.engine.poll_delivery() {
            delivered += usize::from(matches!(delivery, Delivery::Message(_)));
        }
        alone.now = Time(alone.now.0 + 1);
        alone.tell(Input::Timer);
        alone.read_all();
    }
    assert_eq!(delivered, VALUES);
    assert!(counter(alone, "uring_votes_read_back") > VALUES as u64 / 2);
    assert_eq!(counter(alone, "uring_reads_failed"), 0);
}

/// What is under way at the disk is bounded, however many ask for however much.
#[cfg(not(feature = "mutants"))]
#[test]
fn who_asks_often_has_one_piece_at_a_time() {
    let mut alone = archived();
    for from in 1..60 {
        ask(&mut alone, from, NEXT);
    }
    assert_eq!(alone.fetches.len(), 1);
    alone.read_all();
    assert!(alone.fetches.is_empty());
    assert!(told(&alone).is_some_and(|votes| !votes.is_empty()));
}

/// The log is given up while it is read: who waits is told to ask another, and what was read comes too late.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_log_that_is_away_is_not_waited_for() {
    let mut alone = archived();
    ask(&mut alone, 10, 20);
    let records = alone.votes_on_disk((10, 20));
    alone.fail();
    assert_eq!(told(&alone), Some(Vec::new()));
    ask(&mut alone, 10, 20);
    assert_eq!(told(&alone), Some(Vec::new()));
    let all = alone.all_on_disk();
    alone.reopen(all, false);
    alone.said.clear();
    alone.read(records);
    assert_eq!(told(&alone), None);
    ask(&mut alone, 10, 20);
    alone.read_all();
    assert_eq!(told(&alone).map(|votes| votes.len()), Some(10));
}
