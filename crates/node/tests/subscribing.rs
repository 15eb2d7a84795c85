//! Processes whose partitions subscribe to rings and leave them while they run, on real sockets.

mod several;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, SubmitError, Time};
use rota_multiring::accounts::Command;
use rota_multiring::notice::{Command as NoticeCommand, Notice};
use rota_multiring::{Place, Point, Rank, Refusal, Resume, Wish};
use rota_node::rings::{RingsApp, RingsDriver, RingsPublisher, StateSource};
use rota_node::{
    EngineName, PaxosConfig, RingsConfig, RingsDelivery, RingsNode, Submitter, VoteStorage,
};

const PATIENCE: Duration = Duration::from_secs(30);
const ONE: Rank = Rank(1);
const TWO: Rank = Rank(2);
const THREE: Rank = Rank(3);

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn config(port: u16) -> RingsConfig {
    let mut config = RingsConfig::loopback(3, 3, port);
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        ..PaxosConfig::default()
    });
    config.rings[1].engine = Some(EngineName::RingPaxos);
    config.rings[1].per_round = std::num::NonZeroU32::new(2);
    config.rings[2].origin = 7;
    config
}

/// What an application is told: a message by its place, or a change of subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Message(Place, u64),
    Subscribed(Rank, Point),
    Left(Rank, Point),
}

/// What comes next, but for members; a point has no part in the order.
fn next(node: &RingsNode) -> Result<Told, Box<Resume>> {
    loop {
        match node.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Message(place, message)) => {
                let number = message.payload[..8].try_into().expect("8 bytes");
                return Ok(Told::Message(place, u64::from_le_bytes(number)));
            }
            Ok(RingsDelivery::Subscribed(ring, point)) => return Ok(Told::Subscribed(ring, point)),
            Ok(RingsDelivery::Left(ring, point)) => return Ok(Told::Left(ring, point)),
            Ok(RingsDelivery::Point(resume)) => return Err(resume),
            Ok(RingsDelivery::Configuration(..)) => {}
            other => panic!("{other:?}; {:#?}", node.status()),
        }
    }
}

/// Takes until something was told, if it was not yet.
fn take(node: &RingsNode, all: &mut Vec<Told>, is_it: impl Fn(&Told) -> bool) {
    while !all.iter().any(&is_it) {
        all.extend(next(node));
    }
}

/// Takes until there are so many more.
fn take_more(node: &RingsNode, all: &mut Vec<Told>, count: usize) {
    let enough = all.len() + count;
    while all.len() < enough {
        all.extend(next(node));
    }
}

/// Takes until it is told of a point that it asks for.
fn keep(node: &RingsNode, all: &mut Vec<Told>) -> Resume {
    node.want_point();
    loop {
        match next(node) {
            Ok(told) => all.push(told),
            Err(resume) => {
                let bytes = resume.encode();
                return Resume::decode(bytes.into()).expect("what was encoded");
            }
        }
    }
}

/// Submits to these rings until it is told to end, messages of several sizes.
fn load(publisher: &RingsPublisher, rings: &[Rank], is_over: &AtomicBool) {
    for message in 0_u64.. {
        let size = [10, 700, 40_000][message as usize % 3];
        let mut payload = vec![1; size];
        payload[..8].copy_from_slice(&message.to_le_bytes());
        let ring = rings[message as usize % rings.len()];
        let taken = publisher.submit_blocking(ring, &payload);
        if is_over.load(SeqCst) || taken.is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(3));
    }
}

/// Lets all others end, also when the test fails.
struct Ends<'a>([&'a AtomicBool; 2]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|flag| flag.store(true, SeqCst));
    }
}

fn is_subscribed(ring: Rank) -> impl Fn(&Told) -> bool {
    move |told| matches!(told, Told::Subscribed(of, _) if *of == ring)
}

fn has_left(ring: Rank) -> impl Fn(&Told) -> bool {
    move |told| matches!(told, Told::Left(of, _) if *of == ring)
}

/// A ring's messages begin, and end, exactly where the application is told so.
fn check_changes(all: &[Told]) {
    let (mut first, mut last) = (0, 0);
    for told in all {
        match told {
            Told::Message(place, _) => {
                assert!(place.round >= first, "{place:?} behind a change at {first}");
                last = place.round;
            }
            Told::Subscribed(_, point) | Told::Left(_, point) => {
                assert!(last < point.round, "{point:?} behind round {last}");
                first = point.round;
            }
        }
    }
}

/// The application of the other partition, which leaves a ring.
fn leave_third(node: &RingsNode, is_over: &AtomicBool) -> Vec<Told> {
    let mut all = Vec::new();
    take_more(node, &mut all, 200);
    node.unsubscribe(THREE).expect("it is on the ring");
    take(node, &mut all, has_left(THREE));
    let has = all.len();
    while !is_over.load(SeqCst) {
        all.extend(next(node));
    }
    assert!(
        all.len() > has + 50,
        "{} behind the change",
        all.len() - has
    );
    all
}

/// What is told before a state, and what is told behind it.
fn split(all: Vec<Told>, state: &Resume) -> (Vec<Told>, Vec<Told>) {
    all.into_iter().partition(|told| match told {
        Told::Message(place, _) => place.round < state.point.round,
        Told::Subscribed(_, point) | Told::Left(_, point) => *point <= state.point,
    })
}

fn rings_of(resume: &Resume) -> Vec<u16> {
    let rings = resume.rings.iter();
    rings.map(|ring| ring.of.rank.0).collect()
}

/// Two replicas of a partition change at one place, whoever of them asks; one of them begins again behind a state, which
/// names the rings that the partition had there, and delivers the same changes behind that once more.
#[test]
fn a_partition_subscribes_and_leaves_while_it_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = config(28_400);
    config.common.trace = Some(dir.path().join("{node}.jsonl"));
    let start = |node: u16, partition, rings: &[u16]| {
        RingsNode::start_as(&config, id(node), (partition, rings)).expect("it starts")
    };
    let (one, third) = (start(1, 1, &[1]), start(3, 2, &[2, 3]));
    let mut two = start(2, 1, &[1]);
    let (is_over, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        // The load goes on until the last reader has ended, which waits for a message before it looks.
        let (is_over, has_ended) = (&is_over, &has_ended);
        let _ends = Ends([is_over, has_ended]);
        for node in [&one, &third] {
            let publisher = node.publisher();
            scope.spawn(move || load(&publisher, &[ONE, TWO, THREE], has_ended));
        }
        let reader = scope.spawn(move || (leave_third(&third, is_over), third));
        take_more(&one, &mut first, 50);
        one.subscribe(THREE).expect("it is on the ring");
        take(&one, &mut first, is_subscribed(THREE));
        take(&two, &mut second, is_subscribed(THREE));
        // A point that is wanted meanwhile comes before the change is ordered, or when it is in effect.
        two.subscribe(TWO).expect("it is on the ring");
        let kept = rings_of(&keep(&two, &mut second));
        assert!(kept == [1, 3] || kept == [1, 2, 3], "{kept:?}");
        take(&two, &mut second, is_subscribed(TWO));
        let state = keep(&two, &mut second);
        assert_eq!(rings_of(&state), [1, 2, 3]);
        one.unsubscribe(ONE).expect("it is on the ring");
        take(&two, &mut second, has_left(ONE));
        take_more(&two, &mut second, 60);
        two.stop().expect("it runs");
        let lost;
        (second, lost) = split(std::mem::take(&mut second), &state);
        assert!(lost.iter().any(has_left(ONE)));
        let state = (1, (state, StateSource::Own));
        two = RingsNode::resume_as(&config, id(2), state).expect("it starts");
        let mut again = Vec::new();
        take_more(&two, &mut again, lost.len());
        assert!(again == lost, "{again:?}, and before {lost:?}");
        second.extend(again);
        take_more(&two, &mut second, 200);
        take(&one, &mut first, has_left(ONE));
        take_more(&one, &mut first, 200);
        let end = first.len().min(second.len());
        assert!(first[..end] == second[..end], "{end}");
        assert!(first[..end].iter().any(has_left(ONE)) && end > 200, "{end}");
        check_changes(&first);
        is_over.store(true, SeqCst);
        let (other, third) = reader.join().expect("it takes all");
        has_ended.store(true, SeqCst);
        check_changes(&other);
        // A thread that waits for room is let go.
        drop((one, two, third));
    });
    let report = several::judged(dir.path());
    assert!(report.counters.changes >= 8, "{:?}", report.counters);
}

/// Nothing moves but what the change needs: a subscription takes effect though nobody submits.
#[test]
fn idle_rings_change_all_the_same() {
    let config = config(28_430);
    let nodes =
        [1, 2, 3].map(|node| RingsNode::start_as(&config, id(node), (7, &[1])).expect("it starts"));
    nodes[2].subscribe(THREE).expect("it is on the ring");
    let told = nodes
        .each_ref()
        .map(|node| next(node).expect("no point is wanted"));
    assert!(is_subscribed(THREE)(&told[0]), "{told:?}");
    assert!(told.iter().all(|other| *other == told[0]), "{told:?}");
    // Of all messages of the ring those count that come behind that.
    nodes[0]
        .submit(THREE, &9_u64.to_le_bytes())
        .expect("there is room");
    for node in &nodes {
        assert!(matches!(
            next(node),
            Ok(Told::Message(Place { rank: THREE, .. }, 9))
        ));
    }
    nodes[0].unsubscribe(ONE).expect("it is on the ring");
    nodes[1].unsubscribe(THREE).expect("it is on the ring");
    // One of them comes first, and the other one is refused.
    let left = nodes.each_ref().map(|node| {
        loop {
            match node.recv_timeout(PATIENCE).expect("it comes") {
                RingsDelivery::Left(ring, point) => return (ring, point),
                RingsDelivery::LastRing(_) | RingsDelivery::Configuration(..) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(left.iter().all(|other| *other == left[0]), "{left:?}");
    let refused = match left[0].0 {
        ONE => &nodes[1],
        _ => &nodes[0],
    };
    let refused = loop {
        match refused.recv_timeout(PATIENCE).expect("it comes") {
            RingsDelivery::LastRing(ring) => break ring,
            RingsDelivery::Configuration(..) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_ne!(refused, left[0].0);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut config = config(28_460);
    config.rings[2].nodes = Some(vec![2, 3]);
    let alone = RingsNode::start(&config, id(1)).expect("it starts");
    let refused = alone.subscribe(TWO);
    assert_eq!(refused, Err(SubmitError::Unsupported), "of no partition");
    drop(alone);
    let one = RingsNode::start_as(&config, id(1), (1, &[1, 2])).expect("it starts");
    let refused = one.subscribe(THREE);
    assert_eq!(refused, Err(SubmitError::Unsupported), "not on the ring");
    // Another replica of the partition is, and this one is told why it cannot follow.
    let others =
        [2, 3].map(|node| RingsNode::start_as(&config, id(node), (1, &[1, 2])).expect("it starts"));
    others[0].subscribe(THREE).expect("it is on the ring");
    loop {
        match one.recv_timeout(PATIENCE).expect("it comes") {
            RingsDelivery::Unreachable(ring) => break assert_eq!(ring, THREE),
            RingsDelivery::Configuration(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// An application that wants nothing.
struct Nothing;

impl RingsApp for Nothing {
    fn deliver(&mut self, _: RingsDelivery) {}

    fn fill(&mut self, _: Time, _: Rank, _: &mut dyn Submitter) {}
}

/// Turns in half a second. A thread that does not rest has tens of thousands of them.
fn turns(
    driver: &mut RingsDriver<Nothing>,
    mut before_each: impl FnMut(&mut RingsDriver<Nothing>),
) -> u64 {
    let began = Instant::now();
    let mut turns = 0;
    while began.elapsed() < Duration::from_millis(500) {
        before_each(driver);
        driver.turn(Some(100_000_000)).expect("it runs");
        turns += 1;
    }
    turns
}

/// Rings without a majority take some commands, and order none. Their thread rests all the same.
#[test]
fn what_is_not_taken_keeps_no_thread_busy() {
    const MOST_TURNS: u64 = 2000;
    let config = config(28_490);
    let mut driver = RingsDriver::open_as(&config, id(1), (7, &[1]), Nothing).expect("it starts");
    let command = Command::Release(9, 1);
    while driver.order(THREE, &command).expect("it runs") {}
    let refused = |driver: &mut RingsDriver<Nothing>| {
        assert!(!driver.order(THREE, &command).expect("it runs"));
    };
    let count = turns(&mut driver, refused);
    assert!(count < MOST_TURNS, "{count} turns");
    // The ring has no room for the notice of the first wish, either.
    while driver.wish(Wish::Subscribe(THREE)).is_ok() {}
    let count = turns(&mut driver, |_| {});
    assert!(count < MOST_TURNS, "{count} turns");
    let refused = |driver: &mut RingsDriver<Nothing>| {
        assert_eq!(driver.wish(Wish::Subscribe(THREE)), Err(Refusal::Full));
    };
    let count = turns(&mut driver, refused);
    assert!(count < MOST_TURNS, "{count} turns");
    assert!(driver.status().wishes > 10);
}

/// The wishes for which there is no room wait in the order in which they came.
#[test]
fn wishes_beyond_the_room_are_taken_later() {
    let config = config(28_520);
    let one = RingsNode::start_as(&config, id(1), (7, &[1])).expect("it starts");
    let mut taken = 0;
    let full = loop {
        match one.subscribe(THREE) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 10_000, "they are bounded");
        thread::yield_now();
    };
    assert_eq!(full, SubmitError::Full);
    let status = one.status().expect("it runs");
    assert!(status.wishes > 10, "{}", status.wishes);
    let _others =
        [2, 3].map(|node| RingsNode::start_as(&config, id(node), (7, &[1])).expect("it starts"));
    assert!(is_subscribed(THREE)(
        &next(&one).expect("no point is wanted")
    ));
    while one.unsubscribe(THREE).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(has_left(THREE)(&next(&one).expect("no point is wanted")));
    let status = one.status().expect("it runs");
    assert_eq!((status.wishes, status.pending), (0, None));
}

/// The name of the partition's account in a ring, as a node has learnt.
fn account(node: &RingsNode, ring: Rank) -> Option<u64> {
    let status = node.status().expect("it runs");
    let mut accounts = status.accounts.iter();
    let (_, table) = accounts.find(|(of, _)| *of == ring)?;
    table.hold_of(7)
}

/// Has a command ordered in the third ring, and waits until it and all commands before it are.
fn order_all(node: &RingsNode, command: Command, pin: u64) {
    node.order(THREE, command).expect("there is room");
    let last = Command::Pin(id(9), pin, 1 << 50);
    node.order(THREE, last).expect("there is room");
    let deadline = Instant::now() + PATIENCE;
    let is_pinned = |node: &RingsNode| {
        let status = node.status().expect("it runs");
        let mut accounts = status.accounts.iter();
        let table = accounts.find(|(ring, _)| *ring == THREE);
        table.is_some_and(|(_, table)| table.pins().any(|(of, next, _)| (of, next) == (id(9), pin)))
    };
    while !is_pinned(node) {
        assert!(Instant::now() < deadline, "{:#?}", node.status());
        thread::sleep(Duration::from_millis(5));
    }
}

/// A partition with accounts subscribes, leaves, and subscribes again: its holds are those of its account, and what
/// releases one of them is not ordered while that may serve, and comes to nothing behind the next one.
#[test]
fn a_late_release_of_an_earlier_hold_keeps_what_the_partition_has_come_back_to() {
    let config = config(28_580);
    let nodes =
        [1, 2, 3].map(|node| RingsNode::start_as(&config, id(node), (7, &[1])).expect("it starts"));
    let one = &nodes[0];
    // Others keep the ring, too, so that there are pins.
    let replicas = [1, 2, 3].map(id);
    for (ring, partition) in [(ONE, 7), (THREE, 8)] {
        let hold = Command::Hold(partition, replicas.into(), 100);
        one.order(ring, hold).expect("there is room");
    }
    let told = |told: &dyn Fn(&Told) -> bool| assert!(told(&next(one).expect("no point")));
    order_all(one, Command::Unpin(id(9)), 1);
    let deadline = Instant::now() + PATIENCE;
    while account(one, ONE).is_none() {
        assert!(Instant::now() < deadline, "{:#?}", one.status());
        thread::sleep(Duration::from_millis(5));
    }
    one.subscribe(THREE).expect("it is on the ring");
    told(&is_subscribed(THREE));
    let first = account(one, THREE).expect("the hold has opened it");
    let release = |hold| Command::Release(7, hold);
    order_all(one, release(first), 2);
    assert_eq!(
        account(one, THREE),
        Some(first),
        "the partition has the ring"
    );
    one.unsubscribe(THREE).expect("it is on the ring");
    told(&has_left(THREE));
    one.subscribe(THREE).expect("it is on the ring");
    told(&is_subscribed(THREE));
    let second = account(one, THREE).expect("it is there still");
    assert!(second > first, "{second} behind {first}");
    order_all(one, release(first), 3);
    assert_eq!(account(one, THREE), Some(second), "it has come back");
    one.unsubscribe(THREE).expect("it is on the ring");
    told(&has_left(THREE));
    order_all(one, release(second), 4);
    assert_eq!(account(one, THREE), None);
}

/// A ring that waits for a subscription is shown, and so is what cannot be read.
#[test]
fn standby_and_unreadable_notices_are_in_the_status() {
    let config = config(28_550);
    let nodes =
        [1, 2, 3].map(|node| RingsNode::start_as(&config, id(node), (7, &[1])).expect("it starts"));
    let hold = Notice {
        partition: 7,
        command: NoticeCommand::Hold,
    };
    for bytes in [hold.encode(), vec![99; 5].into()] {
        let taken = nodes[0].order(THREE, Command::Notice(bytes));
        taken.expect("there is room");
    }
    let deadline = Instant::now() + PATIENCE;
    for node in &nodes {
        loop {
            let status = node.status().expect("it runs");
            let standby: Vec<_> = status.standby.iter().map(|(ring, _)| *ring).collect();
            if (&standby[..], status.unreadable_notices) == (&[THREE], 1) {
                break;
            }
            assert!(Instant::now() < deadline, "{status:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
