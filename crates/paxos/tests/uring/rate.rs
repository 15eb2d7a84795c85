//! Bounds of a process that multicasts values: the capacity of links, and the room of others.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Engine, Input, Service, Time};
use rota_core::shares::Capacity;
use rota_core::wire::Part;
use rota_paxos::uring::{Multicast, ProposerConfig, Record, ResumeFrom, URingConfig, Word, Writer};
use rota_paxos::{Promise, ValueId};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::datagrams::SETTINGS;
use super::lost::datagrams;
use super::rules::{batch_by, batch_of, follow};

const SECOND: u64 = 1_000_000_000;

/// All that leaves in so many nanoseconds, by a clock that goes on to whatever the engine waits for: in bytes, and how
/// often something left.
fn sends(alone: &mut Alone, nanos: u64) -> (usize, usize) {
    let until = Time(alone.now.0 + nanos);
    let (mut bytes, mut times) = (0, 0);
    while let Some((at, _)) = alone.engine.next_timer().filter(|(at, _)| *at <= until) {
        alone.now = alone.now.max(at);
        alone.sent.clear();
        alone.tell(Input::Timer);
        let count: usize = alone.sent.iter().map(Bytes::len).sum();
        bytes += count;
        times += usize::from(count > 0);
    }
    alone.now = until;
    (bytes, times)
}

/// The second of three, with links that take in 8 Mbit/s, or of which nothing is known; and its own messages.
fn second(capacity: Option<u64>, messages: usize) -> Alone {
    let multicast = Multicast {
        capacity: capacity.map(Capacity::new),
        ..SETTINGS
    };
    let settings = URingConfig {
        multicast: Some(multicast),
        ..settings()
    };
    let mut second = Alone::with(settings, process(2, 1), Vec::new());
    second.join();
    follow(&mut second, 1, 0);
    for _ in 0..messages {
        second.submit(&[7; 1000]);
    }
    second
}

/// Of what may be under way a burst leaves at once.
pub fn values_leave_no_faster_than_links_take_them_in() -> bool {
    let mut second = second(Some(8_000_000), 200);
    let at_once: usize = second.sent.iter().map(Bytes::len).sum();
    let (by_and_by, times) = sends(&mut second, SECOND);
    at_once > 10_000 && by_and_by > 3 * at_once && times >= 3
}

/// The values of datagrams.
fn values(sent: &[Bytes]) -> BTreeMap<u64, Vec<u8>> {
    let mut values = BTreeMap::<u64, Vec<u8>>::new();
    for datagram in sent {
        let part = Part::decode(datagram, SETTINGS.seal_bytes).expect("a part");
        let value = values.entry(part.head.counter).or_default();
        value.extend_from_slice(part.bytes);
    }
    values
}

/// Where values are small, an input brings one of others: with each of them more than one own value leaving, a process that
/// is slower than its datagrams come would hardly hear anybody else.
#[test]
fn others_are_heard_between_own_values() {
    let settings = URingConfig {
        proposer: ProposerConfig {
            window_bytes: 1 << 20,
            frame_bytes: 200,
            ..settings().proposer
        },
        multicast: Some(SETTINGS),
        ..settings()
    };
    let mut second = Alone::with(settings, process(2, 1), Vec::new());
    second.join();
    follow(&mut second, 1, 0);
    second.sent.clear();
    for _ in 0..100 {
        let taken = second.engine.submit(second.now, Service::Agreed, &[7; 150]);
        taken.expect("it has room");
    }
    for datagram in datagrams(100).into_iter().flatten() {
        second.datagrams(datagram);
    }
    let mut counts = Vec::new();
    while second
        .engine
        .next_timer()
        .is_some_and(|(at, _)| at <= second.now)
    {
        counts.push(values(&second.sent).len());
        second.sent.clear();
        second.tell(Input::Timer);
    }
    counts.push(values(&second.sent).len());
    assert_eq!(counts.iter().sum::<usize>(), 100, "{counts:?}");
    assert!(
        counts.len() > 5 && counts.iter().all(|count| *count <= 16),
        "{counts:?}"
    );
}

/// What waited for the rate has counted: others knew it from an earlier configuration. Nothing waits any more.
#[test]
fn what_need_not_leave_any_more_is_not_waited_for() {
    let own = values(&second(None, 60).sent);
    let mut second = second(Some(8_000_000), 60);
    assert!(values(&second.sent).len() < own.len());
    let epoch = second.follow().epoch;
    batch_of(&mut second, epoch, 1, |batch| {
        batch.members(1, &[1, 2, 3].map(|node| process(node, 1)));
        for (counter, frame) in &own {
            let process = process(2, 1);
            let counter = *counter;
            let id = ValueId { process, counter };
            batch.packet(Some(1), id, &Bytes::copy_from_slice(frame), true);
        }
        batch.voted(0, 2 + own.len() as u64);
        batch.voted(2, 2 + own.len() as u64);
    });
    second.write();
    second.now = Time(second.now.0 + SECOND / 2);
    second.tell(Input::Timer);
    assert_eq!(second.engine.learnt(), 2 + own.len() as u64);
    let (at, what) = second.engine.next_timer().expect("heartbeats");
    assert!(at > second.now, "{what:?}");
}

/// How often an own value is sent to the coordinator by its link in so many nanoseconds, if it is not proposed.
fn sent_by_link(capacity: Option<u64>, nanos: u64) -> usize {
    let mut second = second(capacity, 0);
    let epoch = second.follow().epoch;
    batch_of(&mut second, epoch, 1, |_| {});
    second.submit(&[7; 100]);
    sends(&mut second, nanos);
    let said = second.said.iter();
    said.filter(|word| matches!(word, Word::Value(..))).count()
}

/// It is on its way for as long as the link takes for it.
#[test]
fn on_slow_links_values_are_not_sent_twice() {
    let soon = SECOND / 10;
    assert!(sent_by_link(None, soon) > 0);
    assert!(sent_by_link(Some(1_000_000_000), soon) > 0);
    assert_eq!(sent_by_link(Some(8_000_000), soon), 0);
    // However slow a link is said to be.
    for slow in [8_000_000, 1000] {
        assert!(sent_by_link(Some(slow), SECOND) > 0);
    }
}

/// A coordinator with a small window, of whose acceptors the third is slow.
fn coordinator() -> Alone {
    let settings = URingConfig {
        proposer: ProposerConfig {
            window_bytes: 1000,
            frame_bytes: 200,
            ..settings().proposer
        },
        multicast: Some(SETTINGS),
        ..settings()
    };
    let mut first = Alone::with(settings, process(1, 1), Vec::new());
    first.join();
    first.write();
    let promise = Promise {
        round: 1,
        acceptor: acceptor(2),
        from: 1,
        held: 1,
        kept: 1,
        votes: Vec::new(),
    };
    first.hear(2, Word::Promise(promise, false).encode(FOUNDED));
    first.write();
    let (round, epoch, next) = (1, 1, 0);
    let follow = ResumeFrom { round, epoch, next };
    first.hear(2, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
    first
}

/// The third says how far it and the second have voted, or learnt.
fn hear(first: &mut Alone, write: impl FnOnce(&mut Writer)) {
    let epoch = first.follow().epoch;
    batch_by(first, 3, (epoch, 0), write);
    first.write();
    first.now = Time(first.now.0 + SECOND / 1000);
    first.tell(Input::Timer);
}

/// Values that were named.
fn named(first: &Alone) -> usize {
    let records = first.batches.iter().flatten();
    let is_proposal = |record: &&Record| matches!(record, Record::Proposal(_));
    // The first proposal says who is a member.
    records.filter(is_proposal).count() - 1
}

/// How many values are named when the second and the third have voted for the members; when the second has voted for those,
/// too; and after each of two times that the third says something of all that was named.
fn named_beside(third: impl Fn(&mut Writer, u64)) -> [usize; 4] {
    let mut first = coordinator();
    for datagram in datagrams(30).into_iter().flatten() {
        first.datagrams(datagram);
        first.write();
    }
    let mut counts = [0; 4];
    let mut voted = 2;
    for (step, count) in counts.iter_mut().enumerate() {
        hear(&mut first, |batch| {
            batch.voted(1, voted);
            let of_third = if step < 2 { 2 } else { voted };
            third(batch, of_third);
        });
        *count = named(&first);
        voted = 2 + *count as u64;
    }
    counts
}

/// Who lacks more than it has room for never catches up by what is multicast. A majority is not enough.
pub fn a_slow_acceptor_is_waited_for() -> bool {
    let [before, voted, then, _] = named_beside(|batch, next| batch.voted(2, next));
    let step = 5..=9;
    step.contains(&before) && voted == before && step.contains(&(then - before))
}

/// The log of the third has failed, which those tell whom it has no link to.
#[test]
fn who_has_no_log_is_not_waited_for() {
    let [before, voted, then, _] = named_beside(|batch, next| {
        batch.voted(2, 2);
        if next > 2 {
            batch.log_failed(2);
        }
    });
    assert!(
        voted == before && then >= before + 5,
        "{before} {voted} {then}"
    );
}

/// Not all vote in each round; who has learnt what is decided has had it.
#[test]
fn who_learns_is_not_waited_for() {
    let [before, voted, then, _] = named_beside(|batch, next| {
        batch.voted(2, 2);
        batch.learnt(2, next);
    });
    assert!(
        voted == before && then >= before + 5,
        "{before} {voted} {then}"
    );
}
