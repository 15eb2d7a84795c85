//! Messages that are cut where an acceptor trims its votes: the parts that it keeps, and the parts that others are
//! told.

use bytes::Bytes;
use rota_core::contract::{Delivery, Engine, Input, LogRecord, Time};
use rota_paxos::uring::{AcceptorConfig, LearnerConfig, ProposerConfig, Record, URingConfig, Word};
use rota_paxos::{STATE_LOG, ValueId};

use super::alone::{Alone, FOUNDED, process, settings};
use super::rules::{follow, head, hear_batch};

/// So many instances are kept.
pub const KEPT: u64 = 40;

pub fn keeps_little() -> URingConfig {
    URingConfig {
        acceptor: AcceptorConfig {
            kept_instances: KEPT,
            ..settings().acceptor
        },
        proposer: ProposerConfig {
            message_bytes: 20 << 20,
            window_bytes: 64 << 20,
            backlog_bytes: 64 << 20,
            ..settings().proposer
        },
        learner: LearnerConfig {
            waiting_bytes: 64 << 20,
            ..settings().learner
        },
        ..settings()
    }
}

/// The values of these messages of the third, of which each begins in a value of its own.
pub fn values(messages: &[usize]) -> Vec<(ValueId, Bytes)> {
    let mut third = Alone::with(keeps_little(), process(3, 1), Vec::new());
    third.join();
    follow_third(&mut third);
    for bytes in messages {
        third.submit(&vec![7; *bytes]);
        for _ in 0..2 * bytes / 33_000 + 2 {
            third.room();
            third.tell(Input::Timer);
        }
    }
    let records = std::mem::take(&mut third.batches).into_iter().flatten();
    let value = |record| match record {
        Record::Value(id, frame) => Some((id, frame)),
        _ => None,
    };
    records.filter_map(value).collect()
}

pub fn follow_third(third: &mut Alone) {
    let follow = rota_paxos::uring::ResumeFrom {
        round: 1,
        epoch: 1,
        next: 0,
    };
    third.hear(1, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
}

/// The second, and how far it has come.
pub struct Second {
    pub alone: Alone,
    round: u64,
    pub next: u64,
}

impl Second {
    pub fn new(settings: URingConfig) -> Self {
        let mut alone = Alone::with(settings, process(2, 1), Vec::new());
        alone.join();
        let mut second = Self {
            alone,
            round: 1,
            next: 1,
        };
        second.members();
        second
    }

    fn members(&mut self) {
        let ring = self.alone.config(1).ring.clone();
        let round = self.round;
        self.batch(1, |batch| batch.members(round, &ring));
    }

    /// Something that takes so many instances is proposed, voted for and learnt by all.
    fn batch(&mut self, count: u64, write: impl FnOnce(&mut rota_paxos::uring::Writer)) {
        let (from, next) = (self.next, self.next + count);
        let epoch = self.alone.follow().epoch;
        let head = head(self.round, epoch, (1, from));
        let mut batch = rota_paxos::uring::Writer::new(&head, 1 << 20, 1 << 20);
        write(&mut batch);
        for other in [0, 2] {
            batch.voted(other, next);
            batch.learnt(other, next);
        }
        self.alone.hear(1, batch.finish().into_bytes());
        self.alone.write();
        self.next = next;
    }

    pub fn values(&mut self, values: &[(ValueId, Bytes)]) {
        for (id, frame) in values {
            self.batch(1, |batch| batch.packet(None, *id, frame, true));
        }
    }

    pub fn skips(&mut self, count: u64) {
        (0..count).for_each(|_| self.batch(1, |batch| batch.skip(1)));
    }

    /// The base that somebody is told who asks for the first instance.
    pub fn base(&mut self) -> Vec<u8> {
        base_of(&mut self.alone)
    }
}

fn base_of(alone: &mut Alone) -> Vec<u8> {
    alone.said.clear();
    alone.hear(3, Word::Fetch(1, 2).encode(FOUNDED));
    for _ in 0..700 {
        alone.room();
        alone.tell(Input::Timer);
    }
    let mut base = Vec::new();
    for word in &alone.said {
        if let Word::Forgotten(at, part, _) = word {
            assert_eq!(*at, base.len() as u64);
            base.extend_from_slice(part);
        }
    }
    assert!(!base.is_empty(), "nothing is forgotten");
    base
}

/// Begins again with what is on the disk, in a ring with the others.
pub fn again(second: &Second) -> Alone {
    let records = second.alone.all_on_disk();
    let mut again = Alone::with(keeps_little(), process(2, 2), records);
    for node in [1, 3] {
        again.link(process(node, 1));
    }
    again.write();
    again
}

/// However much of a message is before the place of a trim: no record grows with it, and who begins there is told all of it,
/// also by who was restarted.
pub fn no_record_grows_with_a_message_that_is_cut() -> bool {
    let parts = values(&[2 << 20]);
    assert!(parts.len() > 60, "{}", parts.len());
    let mut second = Second::new(URingConfig {
        acceptor: AcceptorConfig {
            kept_instances: 100,
            ..keeps_little().acceptor
        },
        ..keeps_little()
    });
    second.values(&parts[..60]);
    second.alone.largest = 0;
    second.skips(250);
    let (largest, told) = (second.alone.largest, second.base());
    let then = base_of(&mut again(&second));
    largest < 100_000 && told.len() > 60 * 32_000 && then == told
}

/// The same by who has begun at another's base, and has no votes before it.
pub fn who_begins_at_a_base_can_tell_it_after_a_restart() -> bool {
    let parts = values(&[400_000]);
    let mut second = Second::new(keeps_little());
    second.values(&parts[..10]);
    second.skips(2 * KEPT);
    let base = second.base();
    let mut other = begins_at(&base);
    let told = base_of(&mut other);
    let holder = Second {
        alone: other,
        round: 1,
        next: 0,
    };
    told == base && base_of(&mut again(&holder)) == base
}

/// Another second one, that is told a base.
pub fn begins_at(base: &[u8]) -> Alone {
    let mut other = Alone::with(keeps_little(), process(2, 1), Vec::new());
    other.join();
    let epoch = other.follow().epoch;
    hear_batch(&mut other, 1, &head(1, epoch, (1, 500)), |batch| {
        batch.skip(1);
        batch.voted(0, 501);
        batch.voted(2, 501);
    });
    let mut at = 0;
    for part in base.chunks(100_000) {
        let more = at + part.len() < base.len();
        let word = Word::Forgotten(at as u64, Bytes::copy_from_slice(part), more);
        other.hear(1, word.encode(FOUNDED));
        at += part.len();
    }
    other.write();
    other
}

/// Who begins at a base gets to know who the members are.
pub fn who_begins_at_a_base_is_told_the_members() -> bool {
    let mut second = Second::new(keeps_little());
    second.skips(4 * KEPT);
    let mut other = begins_at(&second.base());
    let deliveries = std::iter::from_fn(|| other.engine.poll_delivery());
    deliveries.into_iter().any(|delivery| match delivery {
        Delivery::Configuration(config) => config.members.len() == 3,
        _ => false,
    })
}

/// What a node had begun in an earlier life does not stay when it has another one.
pub fn what_a_life_has_begun_ends_with_it() -> bool {
    let parts = values(&[400_000]);
    let mut second = Second::new(keeps_little());
    second.values(&parts[..10]);
    let with = |node: u16, life| {
        if node == 3 {
            process(3, life)
        } else {
            process(node, 1)
        }
    };
    second.batch(1, |batch| {
        let ring = [1, 2, 3].map(|node| with(node, 2));
        batch.members(2, &ring);
    });
    second.skips(2 * KEPT);
    second.base().len() < 10_000
}

/// A message that nobody ends does not keep the log from being trimmed; if it is ended all the same, who has begun behind its
/// beginning is told that it has missed it, and gets what comes then.
pub fn a_message_that_does_not_end_is_let_go() -> bool {
    let parts = values(&[400_000, 5]);
    let mut second = Second::new(keeps_little());
    second.values(&parts[..5]);
    second.skips(8 * KEPT);
    let trims = second.alone.records.iter().rev();
    let trimmed = trims.filter_map(|record| match record {
        LogRecord::Trim { position, .. } => Some(*position),
        LogRecord::Put { .. } => None,
    });
    let trimmed = trimmed.max().unwrap_or(0);
    let mut again = again(&second);
    let known = Word::Known(again.config(2));
    again.hear(1, known.encode(FOUNDED));
    let epoch = again.follow().epoch;
    let mut at = second.next;
    for (id, frame) in &parts[5..] {
        hear_batch(&mut again, 1, &head(2, epoch, (second.next, at)), |batch| {
            batch.packet(None, *id, frame, true);
            batch.voted(0, at + 1);
            batch.voted(2, at + 1);
        });
        again.write();
        at += 1;
    }
    // What it is not sure of it asks others for.
    let vote = rota_paxos::Vote {
        first: again.engine.learnt(),
        round: 1,
        value: rota_paxos::Value::Skip(second.next - again.engine.learnt()),
    };
    again.hear(1, Word::Chosen(vec![vote]).encode(FOUNDED));
    let deliveries: Vec<Delivery> = std::iter::from_fn(|| again.engine.poll_delivery()).collect();
    let missed = deliveries.iter().filter_map(|delivery| match delivery {
        Delivery::Missed { seq, count, .. } => Some((*seq, *count)),
        _ => None,
    });
    let missed: Vec<(u64, u64)> = missed.filter(|(seq, _)| *seq > trimmed).collect();
    let messages = deliveries.iter().filter_map(|delivery| match delivery {
        Delivery::Message(message) => Some(message.payload.len()),
        _ => None,
    });
    let messages: Vec<usize> = messages.collect();
    let malformed = again.engine.status().counters.into_iter();
    let malformed: u64 = malformed
        .filter(|(name, _)| *name == "uring_messages_malformed")
        .map(|(_, count)| count)
        .sum();
    trimmed > 3 * KEPT && missed == [(at - 2, 1)] && messages == [5] && malformed == 0
}

/// Whoever waits for an own message gets to know that it is missed also if it is one whose beginning was let go, and so of those
/// that end in the same value.
pub fn own_messages_that_are_let_go_are_missed() -> bool {
    let settings = URingConfig {
        learner: LearnerConfig {
            waiting_bytes: 100,
            ..keeps_little().learner
        },
        ..keeps_little()
    };
    let mut second = Second::new(settings);
    second.alone.submit(&vec![7; 400_000]);
    (0..3).for_each(|_| second.alone.submit(b"behind"));
    follow(&mut second.alone, 1, 2);
    for _ in 0..20 {
        second.alone.room();
        second.alone.tell(Input::Timer);
    }
    let records = std::mem::take(&mut second.alone.batches);
    let parts = records
        .into_iter()
        .flatten()
        .filter_map(|record| match record {
            Record::Value(id, frame) => Some((id, frame)),
            _ => None,
        });
    let parts: Vec<(ValueId, Bytes)> = parts.collect();
    let ends = parts.iter().position(|(_, value)| value[0] & 0x80 == 0);
    let ends = ends.expect("the first message ends");
    second.values(&parts[..ends]);
    second.skips(8 * KEPT);
    second.values(&parts[ends..]);
    let (mut missed, mut messages) = (0, 0);
    for _ in 0..500 {
        while let Some(delivery) = second.alone.engine.poll_delivery() {
            match delivery {
                Delivery::Missed { own, .. } => missed = own.max(missed),
                Delivery::Message(_) => messages += 1,
                _ => {}
            }
        }
        second.alone.now = Time(second.alone.now.0 + 1);
        second.alone.tell(Input::Timer);
    }
    missed + messages == 4 && missed > 0
}

/// What others have forgotten stays here, and is told to who asks for it.
pub fn what_others_have_forgotten_is_kept() -> bool {
    let mut second = Second::new(keeps_little());
    second.skips(40);
    let next = second.next;
    let known = Word::Known(second.alone.config(2));
    second.alone.hear(1, known.encode(FOUNDED));
    let epoch = second.alone.follow().epoch;
    let mut head = head(2, epoch, (next, next));
    head.kept = next - 2;
    hear_batch(&mut second.alone, 1, &head, |batch| {
        batch.skip(1);
        batch.voted(0, next + 1);
        batch.voted(2, next + 1);
    });
    second.alone.write();
    second.alone.said.clear();
    let from = next - KEPT;
    second
        .alone
        .hear(3, Word::Fetch(from, next).encode(FOUNDED));
    let told = second.alone.said.iter().find_map(|word| match word {
        Word::Chosen(votes) => votes.first().map(|vote| vote.first),
        _ => None,
    });
    told == Some(from)
}

/// As many instances are kept as are to be.
pub fn so_many_instances_are_kept() -> bool {
    let settings = URingConfig {
        acceptor: AcceptorConfig {
            kept_instances: 64,
            ..keeps_little().acceptor
        },
        ..keeps_little()
    };
    let mut second = Second::new(settings);
    second.skips(200);
    let last = second.next;
    second.alone.said.clear();
    second
        .alone
        .hear(3, Word::Fetch(last - 64, last).encode(FOUNDED));
    let chosen = |word: &Word| matches!(word, Word::Chosen(votes) if votes[0].first == last - 64);
    second.alone.said.iter().any(chosen)
}

/// A slow application loses what is forgotten, and nothing behind it.
pub fn a_slow_application_misses_only_what_is_forgotten() -> bool {
    let parts = values(&[40; 200]);
    let settings = URingConfig {
        learner: LearnerConfig {
            waiting_bytes: 100,
            ..keeps_little().learner
        },
        ..keeps_little()
    };
    let mut second = Second::new(settings);
    second.values(&parts[..100.min(parts.len())]);
    let next = second.next;
    let mut missed = Vec::new();
    for _ in 0..500 {
        while let Some(delivery) = second.alone.engine.poll_delivery() {
            if let Delivery::Missed { seq, count, .. } = delivery {
                missed.push(seq + count);
            }
        }
        second.alone.now = Time(second.alone.now.0 + 1);
        second.alone.tell(Input::Timer);
    }
    !missed.is_empty() && missed.iter().all(|upto| *upto <= next - KEPT)
}

#[cfg(not(feature = "mutants"))]
#[test]
fn records_of_states_are_small() {
    let mut second = Second::new(keeps_little());
    second.values(&values(&[40; 50]));
    second.skips(100);
    follow(&mut second.alone, 1, 1);
    let of_states = second
        .alone
        .records
        .iter()
        .filter_map(|record| match record {
            LogRecord::Put { log, bytes, .. } if *log == STATE_LOG => Some(bytes.len()),
            _ => None,
        });
    assert!(of_states.max() < Some(1000));
}
