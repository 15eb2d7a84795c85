//! Notices that say what cannot be: a partition is not led astray by them.

use rota_core::contract::Delivery;
use rota_multiring::notice::{Command, Notice};
use rota_multiring::subscribe::Hold;
use rota_multiring::{Constants, Rank, Refusal, RingsDelivery, RingsLearner, Wish};

const ONE: Rank = Rank(1);
const TWO: Rank = Rank(2);
const PARTITION: u32 = 7;

fn known() -> [Constants; 2] {
    [ONE, TWO].map(Constants::new)
}

/// A learner of the partition, which has these rings.
fn learner(has: impl IntoIterator<Item = Constants>) -> RingsLearner {
    RingsLearner::new(has, None).of_partition(PARTITION, known(), &[])
}

fn notice(command: Command) -> Vec<u8> {
    let partition = PARTITION;
    Notice { partition, command }.encode().to_vec()
}

/// A ring orders these bytes in an instance, and everything before that carries nothing.
fn order(learner: &mut RingsLearner, ring: Rank, (seq, bytes): (u64, Vec<u8>)) {
    let bytes = bytes.into();
    let told = learner.on_delivery(ring, Delivery::Notice { seq, bytes });
    assert_eq!(told, None);
    let told = learner.on_delivery(ring, Delivery::Passed { next: seq + 1 });
    assert_eq!(told, None);
}

/// With as many instances in a round as a number can say all holds to come would be spent.
#[test]
fn the_constants_of_a_ring_that_is_left_are_those_of_its_learners() {
    let mut learner = learner(known());
    let mut wrong = notice(Command::Leave(TWO));
    wrong.extend(u32::MAX.to_le_bytes());
    wrong.extend(0_u64.to_le_bytes());
    order(&mut learner, ONE, (1, wrong));
    order(&mut learner, TWO, (1, notice(Command::Hold)));
    while learner.poll().is_some() {}
    assert_eq!(learner.pending(), None, "it is no notice");
    assert_eq!(learner.unreadable(), 1);
    order(&mut learner, ONE, (2, notice(Command::Leave(TWO))));
    order(&mut learner, TWO, (2, notice(Command::Hold)));
    while learner.poll().is_some() {}
    let subscriptions = learner.subscriptions().expect("of a partition");
    assert!(!subscriptions.has(TWO));
    let hold = |instance| Hold {
        rank: TWO,
        instance,
    };
    assert!(!subscriptions.may_serve(hold(2)) && subscriptions.may_serve(hold(3)));
    assert_eq!(learner.wish(Wish::Subscribe(TWO)), Ok(()));
    assert_eq!(learner.standby().next(), None);
    order(&mut learner, TWO, (3, notice(Command::Hold)));
    assert!(learner.standby().eq([(TWO, 3)]));
    let next = learner.next_notice().map(|(_, notice)| notice.command);
    assert_eq!(next, Some(Command::Subscribe(Constants::new(TWO), 3)));
    assert_eq!(learner.unreadable(), 1);
}

/// All holds of the ring are spent by then, also those that come: a process that wants the ring is told so, and does not
/// have more and more holds ordered.
#[test]
fn a_hold_that_nobody_ordered_is_let_go_and_who_wants_the_ring_comes_to_an_end() {
    let mut learner = learner([Constants::new(ONE)]);
    let cancel = notice(Command::Cancel(TWO, 1 << 48));
    order(&mut learner, ONE, (1, cancel));
    while learner.poll().is_some() {}
    assert_eq!(learner.wish(Wish::Subscribe(TWO)), Ok(()));
    let mut told = None;
    let mut holds = 0;
    while let Some(given) = learner.next_notice() {
        learner.on_given_behind(given, 1);
        assert_eq!((given.0, given.1.command), (TWO, Command::Hold));
        holds += 1;
        assert!(holds < 100, "it is bounded");
        let (seq, bytes) = (holds, given.1.encode());
        told = learner.on_delivery(TWO, Delivery::Notice { seq, bytes });
    }
    assert_eq!(told, Some(RingsDelivery::NotHeld(TWO)));
    assert!(holds > 1, "one of them may be spent by chance");
    assert_eq!(learner.wishes(), 0);
}

#[test]
fn a_wish_that_is_not_taken_is_refused_for_a_reason() {
    let wish = Wish::Subscribe(TWO);
    let mut alone = RingsLearner::new(known(), None);
    assert_eq!(alone.wish(wish), Err(Refusal::NoPartition));
    let mut learner = learner([Constants::new(ONE)]);
    let elsewhere = learner.wish(Wish::Leave(Rank(3)));
    assert_eq!(elsewhere, Err(Refusal::NotOnRing));
    while learner.wish(wish).is_ok() {
        assert!(learner.wishes() < 1000, "they are bounded");
    }
    assert_eq!(learner.wish(wish), Err(Refusal::Full));
    assert_eq!(
        learner.wish(Wish::Leave(Rank(3))),
        Err(Refusal::NotOnRing),
        "room would be of no use"
    );
    // The partition subscribes to a ring by other constants than those of this process.
    let other = Constants {
        origin: 9,
        ..Constants::new(TWO)
    };
    order(&mut learner, TWO, (1, notice(Command::Hold)));
    order(&mut learner, ONE, (1, notice(Command::Subscribe(other, 1))));
    let told = core::iter::from_fn(|| learner.poll()).last();
    assert_eq!(told, Some(RingsDelivery::Unreachable(TWO)));
    assert_eq!(learner.wish(wish), Err(Refusal::Over));
}
