//! Long messages over one link: answers, promises and snapshots, beside batches of the ring.

use rota_core::contract::{Input, NodeId, Session, Time};
use rota_paxos::uring::{Record, ResumeFrom, Word};
use rota_paxos::{AcceptorId, Promise, Value, Vote};
use std::sync::Arc;

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::logs::learnt;
use super::rules::{batch_of, follow, head, hear_batch, second, values_of};

/// What a link takes.
const MOST: usize = 1 << 20;

/// The link to the third takes so much.
fn takes(alone: &mut Alone, bytes: usize) {
    let (peer, session) = (NodeId::new(3).expect("not 0"), Session(3));
    alone.tell(Input::Writable {
        peer,
        session,
        bytes,
    });
}

fn fetches(alone: &mut Alone, from: u64) {
    alone.hear(3, Word::Fetch(from, from + 8).encode(FOUNDED));
}

/// From where the answers that it has said begin.
fn answers(alone: &Alone) -> Vec<u64> {
    let begins = |word: &Word| match word {
        Word::Chosen(votes) => votes.first().map(|vote| vote.first),
        _ => None,
    };
    alone.said.iter().filter_map(begins).collect()
}

/// Who waits too long for an answer asks once more, and another one: what it has given up does not fill a slow link.
pub fn questions_that_are_given_up_are_not_answered() -> bool {
    let mut alone = learnt(settings(), 100);
    takes(&mut alone, 0);
    (0..20).for_each(|_| fetches(&mut alone, 5));
    takes(&mut alone, MOST);
    let again = answers(&alone);
    alone.said.clear();
    takes(&mut alone, 0);
    (10..50).for_each(|from| fetches(&mut alone, from));
    for _ in 0..60 {
        takes(&mut alone, MOST);
    }
    again == [5] && answers(&alone) == (34..50).collect::<Vec<u64>>()
}

/// Proposals fill the link whenever it takes some: an answer gets its turn, and they go on.
pub fn what_goes_along_the_ring_leaves_room_for_answers() -> bool {
    // What was sent last is still under way.
    let (answered, turns) = busy(0, |_, sent| if sent > 0 { MOST / 2 } else { MOST });
    answered.is_some_and(|turn| turn < 6) && turns > 10
}

/// The same on a slow link: between two heartbeats it takes less than a batch, and none of them brings values out of turn.
pub fn who_has_to_be_heard_leaves_room_for_answers() -> bool {
    let under_way = |before: usize, sent: usize| (before + sent).saturating_sub(20_000);
    let (answered, _) = busy(60_000_000, |before, sent| {
        MOST - under_way(MOST - before, sent)
    });
    answered.is_some_and(|turn| turn < 60)
}

/// The third asks the second something, whose link is full with what goes along the ring; the link's room, from what it was and from the bytes that
/// were sent. In which turn the answer leaves, and in how many turns something went along the ring.
fn busy(heartbeat: u64, room: impl Fn(usize, usize) -> usize) -> (Option<usize>, usize) {
    let mut alone = second();
    follow(&mut alone, 1, 1);
    let epoch = alone.follow().epoch;
    let mut next = 1;
    let (count, most) = if heartbeat > 0 { (6, 80) } else { (20, 20) };
    let mut values = values_of(500, 8_000).into_iter();
    let mut propose = |alone: &mut Alone| {
        batch_of(alone, epoch, next, |batch| {
            for (id, frame) in values.by_ref().take(count) {
                batch.packet(None, id, &frame, true);
            }
            next += count as u64;
            batch.voted(0, next);
            batch.voted(2, next);
        });
        alone.write_all();
    };
    propose(&mut alone);
    takes(&mut alone, 0);
    fetches(&mut alone, 1);
    let (mut turns, mut answered, mut takes_now) = (0, None, 0);
    for turn in 0..most {
        let before = alone.bytes_to(3);
        alone.now = Time(alone.now.0 + heartbeat);
        alone.tell(Input::Timer);
        propose(&mut alone);
        let sent = alone.bytes_to(3) - before;
        takes_now = room(takes_now, sent);
        takes(&mut alone, takes_now);
        let sent = alone.bytes_to(3) - before - sent;
        takes_now = takes_now.saturating_sub(sent);
        turns += usize::from(alone.bytes_to(3) > before);
        answered = answered.or((!answers(&alone).is_empty()).then_some(turn));
    }
    (answered, turns)
}

/// The disk of an acceptor is slow: when it has promised another round has followed, and its link has other things to tell.
pub fn a_promise_of_a_round_that_is_over_is_not_told() -> bool {
    let mut alone = second();
    let known = Word::Known(alone.config(2));
    alone.hear(1, known.encode(FOUNDED));
    alone.hear(1, Word::Prepare(2, 1).encode(FOUNDED));
    let known = Word::Known(alone.config(3));
    alone.hear(3, known.encode(FOUNDED));
    alone.write_all();
    alone.hear(1, Word::Prepare(3, 1).encode(FOUNDED));
    alone.write_all();
    !alone.has_promised(2) && alone.has_promised(3)
}

/// What was asked for is forgotten, behind an answer: the base is told at once.
#[test]
fn a_base_behind_an_answer_is_told() {
    let mut settings = settings();
    settings.acceptor.kept_instances = 16;
    let mut alone = learnt(settings, 100);
    alone.said.clear();
    fetches(&mut alone, 95);
    fetches(&mut alone, 2);
    assert_eq!(answers(&alone), [95]);
    let bases = alone.said.iter();
    let bases = bases.filter(|word| matches!(word, Word::Forgotten(0, ..)));
    assert_eq!(bases.count(), 1);
}

/// A promise of few votes does not wait until a link is nearly empty.
pub fn a_small_promise_leaves_at_once() -> bool {
    let mut alone = second();
    takes(&mut alone, MOST);
    takes(&mut alone, MOST / 2);
    let known = Word::Known(alone.config(2));
    alone.hear(3, known.encode(FOUNDED));
    alone.unlink(1);
    let coordinator = process(1, 1);
    let (peer, session) = (coordinator, Session(1));
    alone.tell(Input::LinkUp { peer, session });
    for bytes in [MOST, MOST / 2] {
        let peer = peer.node;
        alone.tell(Input::Writable {
            peer,
            session,
            bytes,
        });
    }
    alone.hear(1, Word::Prepare(2, 1).encode(FOUNDED));
    alone.write();
    alone.has_promised(2)
}

/// The configuration has another store of this node: nobody waits for that one's votes.
pub fn who_votes_as_another_store_is_mute_along_the_ring() -> bool {
    let says = |store: u64| {
        let mut alone = Alone::new(process(2, 1), Vec::new());
        [1, 3].iter().for_each(|node| alone.link(process(*node, 1)));
        let mut config = (*alone.config(1)).clone();
        let AcceptorId { node, store: own } = config.acceptors[1];
        let store = if store == 0 { own } else { store };
        config.acceptors[1] = AcceptorId { node, store };
        alone.hear(1, Word::Known(Arc::new(config)).encode(FOUNDED));
        follow(&mut alone, 1, 0);
        let epoch = alone.follow().epoch;
        hear_batch(&mut alone, 1, &head(1, epoch, (1, 1)), |_| {});
        alone.now = Time(alone.now.0 + 1_000_000_000);
        alone.tell(Input::Timer);
        alone
            .batches
            .iter()
            .flatten()
            .any(|record| *record == Record::LogFailed(1))
    };
    !says(0) && says(77)
}

/// The second tells the first part of its promise, and its link breaks, again and again: that brings the round no nearer, and its
/// coordinator tries another one.
pub fn what_is_told_again_brings_no_round_nearer() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    let config = first.config(2);
    first.hear(2, Word::Known(config).encode(FOUNDED));
    first.write();
    let part = Promise {
        round: 2,
        acceptor: acceptor(2),
        from: 1,
        held: 1,
        kept: 1,
        votes: vec![Vote {
            first: 1,
            round: 1,
            value: Value::Skip(1),
        }],
    };
    for _ in 0..40 {
        first.now = Time(first.now.0 + 300_000_000);
        first.unlink(2);
        first.link(process(2, 1));
        let (round, epoch, next) = (2, 1, 0);
        let follow = ResumeFrom { round, epoch, next };
        first.hear(2, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
        first.hear(2, Word::Promise(part.clone(), true).encode(FOUNDED));
        let beat = head(2, first.follow().epoch, (0, 0));
        hear_batch(&mut first, 3, &beat, |_| {});
        first.tell(Input::Timer);
    }
    first
        .said
        .iter()
        .any(|word| matches!(word, Word::Ask(3, _)))
}
