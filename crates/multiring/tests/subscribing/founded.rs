//! Rings that are founded while a partition runs: its processes hear of the ring, and of the subscription to it, in any
//! order.

use bytes::Bytes;
use rota_core::contract::{Delivery, Incarnation, Message, MessageId, NodeId, Process, Service};
use rota_multiring::notice::{Command, Notice};
use rota_multiring::{Constants, Rank, RingsDelivery, RingsLearner, Wish};

const ONE: Rank = Rank(1);
const NEW: Rank = Rank(7);
const PARTITION: u32 = 7;

fn new_ring() -> Constants {
    Constants {
        origin: 4,
        ..Constants::new(NEW)
    }
}

/// Of a partition that has the first ring, in a process that hears of rings; the third one it is not on.
fn learner() -> RingsLearner {
    let one = [Constants::new(ONE)];
    let learner = RingsLearner::new(one, None).of_partition(PARTITION, one, &[]);
    learner.hears_of_rings([Rank(3)])
}

fn notice(learner: &mut RingsLearner, ring: Rank, (seq, command): (u64, Command)) {
    let partition = PARTITION;
    let bytes = Notice { partition, command }.encode();
    let told = learner.on_delivery(ring, Delivery::Notice { seq, bytes });
    assert_eq!(told, None);
    passed(learner, ring, seq + 1);
}

fn passed(learner: &mut RingsLearner, ring: Rank, next: u64) {
    let told = learner.on_delivery(ring, Delivery::Passed { next });
    assert_eq!(told, None);
}

fn message(learner: &mut RingsLearner, ring: Rank, seq: u64) {
    let node = NodeId::new(1).expect("not 0");
    let process = Process {
        node,
        incarnation: Incarnation(1),
    };
    let message = Message {
        id: MessageId {
            process,
            counter: seq,
        },
        service: Service::Safe,
        seq,
        index: 0,
        payload: Bytes::new(),
    };
    let told = learner.on_delivery(ring, Delivery::Message(message));
    assert_eq!(told, None);
    passed(learner, ring, seq + 1);
}

/// What it delivers: messages by ring and instance, and the changes by their rounds.
fn told(learner: &mut RingsLearner) -> Vec<(Rank, u64)> {
    let next = || match learner.poll()? {
        RingsDelivery::Message(place, _) => Some((place.rank, place.instance)),
        RingsDelivery::Subscribed(rank, point) => Some((rank, point.round)),
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(next).collect()
}

/// The partition subscribes in its own ring before this process hears of the new ring: it goes on up to the round of
/// the subscription, and behind that when it is on the ring, as another process does that heard of the ring first.
#[test]
fn a_ring_that_comes_late_begins_where_it_does_for_all() {
    let (mut late, mut early) = (learner(), learner());
    let mut both: [Vec<(Rank, u64)>; 2] = Default::default();
    assert_eq!(early.on_founded(new_ring()), None);
    notice(&mut early, NEW, (1, Command::Hold));
    for learner in [&mut late, &mut early] {
        message(learner, ONE, 1);
        let subscribe = Command::Subscribe(new_ring(), 1);
        notice(learner, ONE, (2, subscribe));
        (3..9).for_each(|seq| message(learner, ONE, seq));
    }
    let first = told(&mut late);
    let own = [1, 3, 4, 5].map(|instance| (ONE, instance));
    assert_eq!(
        first, own,
        "what it submits to the ring could come to nothing"
    );
    // What it needs of the ring then nobody hears.
    let needs = |learner: &mut RingsLearner| {
        let needs = learner.take_needs();
        needs.iter().any(|need| need.rank == NEW)
    };
    assert!(needs(&mut late) && !needs(&mut late));
    assert_eq!(late.on_founded(new_ring()), None);
    assert!(needs(&mut late));
    notice(&mut late, NEW, (1, Command::Hold));
    both[0].extend(first);
    for (learner, all) in [&mut late, &mut early].into_iter().zip(&mut both) {
        message(learner, NEW, 2);
        passed(learner, NEW, 40);
        all.extend(told(learner));
    }
    assert_eq!(both[0], both[1]);
    assert!(both[0].ends_with(&[(ONE, 6), (NEW, 2), (ONE, 7), (ONE, 8)]));
}

fn subscribed(to: Constants) -> RingsLearner {
    let mut learner = learner();
    notice(&mut learner, ONE, (1, Command::Subscribe(to, 1)));
    learner
}

/// Whoever is not on the ring says so, as soon as that is known.
#[test]
fn who_is_not_on_the_ring_does_not_wait_for_it() {
    let unreachable = |rank| Some(RingsDelivery::Unreachable(rank));
    let mut of_the_file = subscribed(Constants::new(Rank(3)));
    assert_eq!(of_the_file.poll(), unreachable(Rank(3)));
    let mut absent = subscribed(new_ring());
    assert_eq!(absent.poll(), None);
    assert_eq!(absent.on_absent(Rank(9)), None, "another ring");
    assert_eq!(absent.on_absent(NEW), unreachable(NEW));
    let mut known = learner();
    assert_eq!(known.on_absent(NEW), None, "nobody has it");
    notice(&mut known, ONE, (1, Command::Subscribe(new_ring(), 1)));
    assert_eq!(known.poll(), unreachable(NEW));
    let mut other = subscribed(Constants::new(NEW));
    while other.poll().is_some() {}
    assert_eq!(
        other.on_founded(new_ring()),
        unreachable(NEW),
        "it begins elsewhere"
    );
    let one = [Constants::new(ONE)];
    let mut deaf = RingsLearner::new(one, None).of_partition(PARTITION, one, &[]);
    notice(&mut deaf, ONE, (1, Command::Subscribe(new_ring(), 1)));
    assert_eq!(deaf.poll(), unreachable(NEW));
}

/// A process that only observes a ring can order none of its marks there: it would wait for ever to change anything.
#[test]
fn who_only_observes_the_ring_says_so() {
    let both = [Constants::new(ONE), new_ring()];
    let learner = RingsLearner::new([both[0]], None).of_partition(PARTITION, both, &[]);
    let mut learner = learner.observes([NEW]);
    notice(&mut learner, ONE, (1, Command::Subscribe(new_ring(), 1)));
    assert_eq!(learner.poll(), Some(RingsDelivery::Unreachable(NEW)));
}

#[test]
fn a_ring_that_was_founded_is_subscribed_to_as_any_other() {
    let mut learner = learner();
    assert!(learner.wish(Wish::Subscribe(NEW)).is_err(), "there is none");
    assert_eq!(learner.on_founded(new_ring()), None);
    assert_eq!(learner.wish(Wish::Subscribe(NEW)), Ok(()));
    let (ring, hold) = learner.next_notice().expect("a hold");
    assert_eq!((ring, hold.command), (NEW, Command::Hold));
    learner.on_given_behind((ring, hold), 1);
    notice(&mut learner, NEW, (1, Command::Hold));
    let next = learner
        .next_notice()
        .map(|(ring, notice)| (ring, notice.command));
    assert_eq!(next, Some((ONE, Command::Subscribe(new_ring(), 1))));
}

#[test]
fn a_control_ring_that_was_founded_anew_ends_it() {
    let mut learner = learner();
    let told = Some(RingsDelivery::Refounded(ONE));
    assert_eq!(learner.on_refounded(ONE), told);
    message(&mut learner, ONE, 1);
    assert_eq!(learner.poll(), None);
    assert_eq!(learner.on_refounded(ONE), None, "it is said once");
}
