//! Rings that are founded while processes run, on real sockets: who is on them, what is delivered of them, and what
//! comes back after a restart.

mod several;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, SubmitError};
use rota_multiring::{Constants, Place, Point, Rank, Resume};
use rota_node::rings::{
    Charter, FoundError, FoundedRing, RingSection, RingsPublisher, RingsStartError, StateSource,
};
use rota_node::{PaxosConfig, RingsConfig, RingsDelivery, RingsNode, VoteStorage};

const PATIENCE: Duration = Duration::from_secs(30);
const ONE: Rank = Rank(1);
const NEW: Rank = Rank(7);
/// The ports of the new ring, behind those of the first one.
const OFFSET: u16 = 10;

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn config(port: u16) -> RingsConfig {
    let mut config = RingsConfig::loopback(3, 1, port);
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        ..PaxosConfig::default()
    });
    config
}

/// The same with votes on disk.
fn durable(port: u16, dir: &Path) -> RingsConfig {
    let mut config = config(port);
    config.common.state_dir = Some(dir.to_owned());
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        ..PaxosConfig::default()
    });
    config
}

fn charter(nodes: &[u16]) -> Charter {
    Charter::new(NEW, OFFSET, nodes.iter().copied().map(id))
}

#[track_caller]
fn found(node: &RingsNode, charter: Charter) -> Result<Constants, FoundError> {
    let founding = node.found(charter).expect("there is room");
    let answer = founding.wait(PATIENCE);
    answer.unwrap_or_else(|| panic!("no answer; {:?}", node.status()))
}

/// What an application is told: a message by its place, or that its partition has a further ring.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Message(Place, u64),
    Subscribed(Rank, Point),
}

/// What comes next, but for members; a point has no part in the order.
#[track_caller]
fn next(node: &RingsNode) -> Result<Told, Box<Resume>> {
    loop {
        match node.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Message(place, message)) => {
                let number = message.payload[..8].try_into().expect("8 bytes");
                return Ok(Told::Message(place, u64::from_le_bytes(number)));
            }
            Ok(RingsDelivery::Subscribed(ring, point)) => return Ok(Told::Subscribed(ring, point)),
            Ok(RingsDelivery::Point(resume)) => return Err(resume),
            Ok(RingsDelivery::Configuration(..)) => {}
            other => panic!("{other:?}; {:?}", node.status()),
        }
    }
}

/// Takes until there is one such behind those that there were.
#[track_caller]
fn take(node: &RingsNode, all: &mut Vec<Told>, is_it: impl Fn(&Told) -> bool) {
    let mut seen = all.len();
    while !all[seen..].iter().any(&is_it) {
        seen = all.len();
        all.extend(next(node));
    }
}

fn is_subscribed(told: &Told) -> bool {
    matches!(told, Told::Subscribed(NEW, _))
}

fn is_of(ring: Rank) -> impl Fn(&Told) -> bool {
    move |told| matches!(told, Told::Message(place, _) if place.rank == ring)
}

/// Submits one message to the new ring, as soon as one process was told of the subscription: it is delivered.
fn submit_and_hear(from: &RingsNode, to: &RingsNode, all: &mut Vec<Told>) {
    from.submit(NEW, &100_u64.to_le_bytes())
        .expect("there is room");
    let told = next(to).expect("a message");
    assert!(
        matches!(told, Told::Message(place, 100) if place.rank == NEW),
        "{told:?}"
    );
    all.push(told);
}

/// Takes until so many messages of the new ring have come.
fn take_new(node: &RingsNode, all: &mut Vec<Told>, count: usize) {
    (0..count).for_each(|_| take(node, all, is_of(NEW)));
}

/// Submits to both rings until it is told to end. A ring that takes nothing now is tried again later.
fn load(publisher: &RingsPublisher, number: u64, is_over: &AtomicBool) {
    for message in 0_u64.. {
        let mut payload = vec![1; [10, 700, 10_000][message as usize % 3]];
        payload[..8].copy_from_slice(&(number << 32 | message).to_le_bytes());
        for ring in [ONE, NEW] {
            // There may be no such ring yet, or no room, or no process any more.
            let _ = publisher.submit(ring, &payload);
        }
        if is_over.load(SeqCst) {
            return;
        }
        thread::sleep(Duration::from_millis(3));
    }
}

/// Lets the load end, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn check_alike(one: &[Told], other: &[Told]) {
    let end = one.len().min(other.len());
    let differs = (0..end).find(|at| one[*at] != other[*at]);
    let around = differs.map(|at| (&one[at], &other[at]));
    assert_eq!(around, None, "of {} and {}", one.len(), other.len());
}

/// Three processes of one ring, under load, found another one: whoever asks, and however often, it is one ring. Two of
/// them, whose partition subscribes to it, deliver one order; one of them is restarted, is on the ring from its
/// beginning, and delivers the same once more.
#[test]
fn a_ring_is_founded_while_processes_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = durable(30_200, dir.path());
    config.common.trace = Some(dir.path().join("{node}.jsonl"));
    let start = |node: u16, partition| {
        RingsNode::start_as(&config, id(node), (partition, &[1])).expect("it starts")
    };
    let (one, third) = (start(1, 1), start(3, 2));
    let mut two = start(2, 1);
    let is_over = AtomicBool::new(false);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let is_over = &is_over;
        let _ends = Ends(is_over);
        for (number, node) in [(1, &one), (3, &third)] {
            let publisher = node.publisher();
            scope.spawn(move || load(&publisher, number, is_over));
        }
        // Nobody else takes what the third delivers.
        let third = scope.spawn(move || {
            while !is_over.load(SeqCst) {
                let _ = third.recv_timeout(Duration::from_millis(50));
            }
            third
        });
        (0..20).for_each(|_| take(&one, &mut first, is_of(ONE)));
        assert_eq!(one.submit(NEW, b"none"), Err(SubmitError::Unsupported));
        assert_eq!(one.subscribe(NEW), Err(SubmitError::Unsupported));
        let founded = found(&one, charter(&[1, 2, 3])).expect("it is founded");
        let last = first.iter().rev().find_map(|told| match told {
            Told::Message(place, _) => Some(place.round),
            Told::Subscribed(..) => None,
        });
        assert!(Some(founded.origin) > last, "{founded:?} behind {last:?}");
        assert_eq!(
            found(&two, charter(&[1, 2, 3])),
            Ok(founded),
            "it is the same"
        );
        let otherwise = found(&two, charter(&[1, 2]));
        assert_eq!(otherwise, Err(FoundError::Otherwise(7)));
        one.subscribe(NEW).expect("it is on the ring");
        take(&one, &mut first, is_subscribed);
        take(&two, &mut second, is_subscribed);
        take_new(&one, &mut first, 50);
        take_new(&two, &mut second, 50);
        check_alike(&first, &second);
        two.stop().expect("it runs");
        two = start(2, 1);
        two.submit(NEW, &(1_u64 << 63).to_le_bytes())
            .expect("it is on the ring before it has heard of that again");
        let mut again = Vec::new();
        take(&two, &mut again, is_subscribed);
        take(
            &two,
            &mut again,
            |told| matches!(told, Told::Message(place, number) if place.rank == NEW && *number == 1 << 63),
        );
        assert!(again.len() > second.len());
        check_alike(&again, &second);
        take(
            &one,
            &mut first,
            |told| matches!(told, Told::Message(_, number) if *number == 1 << 63),
        );
        check_alike(&again, &first);
        is_over.store(true, SeqCst);
        drop((one, two, third.join().expect("it takes all")));
    });
    let report = several::judged(dir.path());
    assert!(report.counters.changes >= 2, "{:?}", report.counters);
}

/// A process that is away while the ring is founded, and while its partition subscribes, hears of both when it is back:
/// from the beginning, and behind a state of another replica, which names the ring.
#[test]
fn who_was_away_is_on_the_ring_when_it_is_back() {
    let config = config(30_240);
    let start = |node: u16| RingsNode::start_as(&config, id(node), (1, &[1])).expect("it starts");
    let (one, _two, third) = (start(1), start(2), start(3));
    one.submit(ONE, &1_u64.to_le_bytes())
        .expect("there is room");
    let mut first = Vec::new();
    take(&one, &mut first, is_of(ONE));
    drop(third);
    // Those that vote are there.
    let few = Charter {
        acceptors: [1, 2].map(id).into(),
        ..charter(&[1, 2, 3])
    };
    let founded = found(&one, few).expect("it is founded");
    one.subscribe(NEW).expect("it is on the ring");
    take(&one, &mut first, is_subscribed);
    submit_and_hear(&one, &one, &mut first);
    let third = start(3);
    let mut late = Vec::new();
    take(&third, &mut late, is_of(NEW));
    assert_eq!(late, first);
    one.want_point();
    let state = next(&one).expect_err("a point");
    let rings = state.rings.iter().map(|ring| ring.of);
    assert!(rings.eq([Constants::new(ONE), founded]), "{state:?}");
    drop(third);
    let state = (1, (*state, StateSource::Peer));
    let third = RingsNode::resume_as(&config, id(3), state).expect("it starts");
    one.submit(NEW, &3_u64.to_le_bytes())
        .expect("there is room");
    let (told, late) = (next(&one).expect("a message"), next(&third).expect("one"));
    assert!(matches!(told, Told::Message(_, 3)), "{told:?}");
    assert_eq!(late, told);
    // A point of such a process has both rings, too.
    third.want_point();
    let state = next(&third).expect_err("a point");
    assert_eq!(state.rings.len(), 2);
}

/// Waits until this holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The charter is on a node's disk: its ring is there after a restart though the control ring has no majority.
#[test]
fn a_ring_comes_back_without_the_ring_that_has_ordered_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = durable(30_280, dir.path());
    let start = |node: u16| RingsNode::start(&config, id(node)).expect("it starts");
    let nodes = [1, 2, 3].map(start);
    let founded = found(&nodes[1], charter(&[1])).expect("it is founded");
    until("the first node is on it", || {
        nodes[0].submit(NEW, &1_u64.to_le_bytes()).is_ok()
    });
    assert_eq!(
        nodes[1].submit(NEW, b"12345678"),
        Err(SubmitError::Unsupported)
    );
    drop(nodes);
    let one = RingsNode::start_with(&config, id(1), Some(&[7])).expect("it starts");
    one.submit(NEW, &2_u64.to_le_bytes()).expect("it is on it");
    let place = founded.place(1);
    let mut all = Vec::new();
    // The first one may have ended before that was ordered.
    take(&one, &mut all, |told| matches!(told, Told::Message(_, 2)));
    let is_behind = |told: &Told| matches!(told, Told::Message(at, _) if *at >= place);
    assert!(all.iter().all(is_behind), "{all:?}");
    drop(one);
    // Whoever delivers all rings delivers those of its configuration, as before it was restarted.
    let one = start(1);
    one.submit(NEW, &2_u64.to_le_bytes()).expect("it is on it");
    drop(one);
    // A file that has come to have such a ring itself is refused, and so is another control ring.
    let mut other = config.clone();
    other.rings.push(RingSection {
        id: 7,
        port_offset: Some(20),
        ..RingSection::default()
    });
    let error = RingsNode::start(&other, id(1)).expect_err("there are two");
    assert!(matches!(error, RingsStartError::Charter(7, _)), "{error}");
    let says = error.to_string();
    assert!(
        says.contains("was founded while the processes ran"),
        "{says}"
    );
    other.rings[1] = RingSection {
        id: 2,
        port_offset: Some(20),
        control: true,
        ..RingSection::default()
    };
    let error = RingsNode::start(&other, id(1)).expect_err("another ring");
    assert!(error.to_string().contains("stays it"), "{error}");
}

/// All have lost the control ring's votes, and found it anew: the rings that it had ordered are not of this one.
#[test]
fn a_control_ring_that_was_founded_anew_is_another_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = durable(30_320, dir.path());
    let start = || [1, 2, 3].map(|node| RingsNode::start(&config, id(node)).expect("it starts"));
    let nodes = start();
    found(&nodes[0], charter(&[1, 2])).expect("it is founded");
    let kept = |node: u16| dir.path().join(format!("node-{node}.charters"));
    until("all have heard of it", || {
        (1..4).all(|node| kept(node).exists())
    });
    drop(nodes);
    std::fs::remove_dir_all(dir.path().join("ring-1")).expect("it is there");
    let nodes = start();
    for node in &nodes {
        loop {
            match node.recv_timeout(PATIENCE).expect("it comes") {
                RingsDelivery::Refounded(ring) => break assert_eq!(ring, ONE),
                RingsDelivery::Configuration(..) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let late = found(&nodes[0], charter(&[1, 2]));
    assert_eq!(late, Err(FoundError::NoControl));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let mut config = config(30_360);
    config.rings[0].nodes = Some(vec![1, 2]);
    config.rings[0].control = true;
    config.rings.insert(
        0,
        RingSection {
            id: 4,
            port_offset: Some(30),
            ..RingSection::default()
        },
    );
    let start = |node: u16| RingsNode::start(&config, id(node)).expect("it starts");
    let (one, _two, third) = (start(1), start(2), start(3));
    let deaf = found(&third, charter(&[1, 2]));
    assert_eq!(deaf, Err(FoundError::NoControl));
    let refused = |charter: Charter| {
        let error = found(&one, charter).expect_err("it cannot be");
        error.to_string()
    };
    let none = refused(charter(&[]));
    assert!(none.contains("acceptors among them"), "{none}");
    let unknown = refused(charter(&[1, 9]));
    assert!(unknown.contains("`nodes` have to be listed"), "{unknown}");
    let ports = refused(Charter::new(NEW, 30, [1, 2].map(id)));
    assert!(ports.contains("same port"), "{ports}");
    let number = refused(Charter::new(Rank(4), OFFSET, [1, 2].map(id)));
    assert!(number.contains("each ring has its own"), "{number}");
    found(&one, charter(&[1, 2])).expect("it is founded");
    let ports = refused(Charter::new(Rank(8), OFFSET, [1, 2].map(id)));
    assert!(
        ports.contains("same port"),
        "also as that of a ring before: {ports}"
    );
    let other = Charter {
        per_round: std::num::NonZeroU32::new(2).expect("not 0"),
        ..charter(&[1, 2])
    };
    let otherwise = refused(other);
    assert!(otherwise.contains("another charter"), "{otherwise}");
}

/// What the rings that were founded are to a process.
fn list(node: &RingsNode) -> Vec<(Rank, FoundedRing)> {
    node.status().map_or_else(Vec::new, |status| status.founded)
}

/// Two processes found rings at the same time: the same one, another one of the same number, and another one with the
/// same ports. One charter stands, whoever was first, and all processes have the same rings.
#[test]
fn who_founds_at_the_same_time_founds_one_ring() {
    let config = config(30_400);
    let start = |node: u16| RingsNode::start(&config, id(node)).expect("it starts");
    let nodes = [1, 2, 3].map(start);
    let at_once = |charters: [Charter; 2]| {
        let mut asked = nodes.iter().zip(charters);
        let mut next = || {
            let (node, charter) = asked.next().expect("two");
            node.found(charter).expect("there is room")
        };
        [next(), next()].map(|founding| founding.wait(PATIENCE).expect("an answer"))
    };
    let of = |rank, offset, nodes: &[u16]| {
        Charter::new(Rank(rank), offset, nodes.iter().copied().map(id))
    };
    let [one, two] = at_once([charter(&[1, 2, 3]), charter(&[1, 2, 3])]);
    assert!(one.is_ok() && one == two, "{one:?} {two:?}");
    let other = Err(FoundError::Otherwise(8));
    let answers = at_once([of(8, 20, &[1, 2, 3]), of(8, 20, &[2, 3])]);
    let one_each = answers.iter().any(Result::is_ok) && answers.contains(&other);
    assert!(one_each, "{answers:?}");
    let answers = at_once([of(9, 30, &[1, 2, 3]), of(10, 30, &[1, 2, 3])]);
    let refused = |answer: &Result<_, _>| match answer {
        Err(FoundError::Charter(why)) => why.contains("same port"),
        _ => false,
    };
    let is_one = |one: &Result<_, _>, two| one.is_ok() && refused(two);
    let [one, two] = &answers;
    assert!(is_one(one, two) || is_one(two, one), "{answers:?}");
    // The ring that does not go with the others was ordered or not; all that it is for one it is for all.
    let constants = |node: &RingsNode| -> Vec<Constants> {
        let list = list(node);
        let of = |ring: &FoundedRing| match ring {
            FoundedRing::Open(of) | FoundedRing::Unopened(of, _) | FoundedRing::Elsewhere(of) => {
                Some(*of)
            }
            FoundedRing::Refused(_) => None,
        };
        list.iter().filter_map(|(_, ring)| of(ring)).collect()
    };
    until("all have the same rings", || {
        let [one, two, three] = nodes.each_ref().map(constants);
        one.len() == 3 && one == two && one == three
    });
}

/// The process that founds the ring ends at once. Whether the charter was ordered or not: the same one founds the same
/// ring, and those that it names are on it.
#[test]
fn a_founder_that_ends_leaves_a_ring_or_none() {
    let config = config(30_480);
    let start = |node: u16| RingsNode::start_as(&config, id(node), (1, &[1])).expect("it starts");
    let (one, two, third) = (start(1), start(2), start(3));
    let mut first = Vec::new();
    one.submit(ONE, &1_u64.to_le_bytes())
        .expect("there is room");
    take(&one, &mut first, is_of(ONE));
    let founding = two.found(charter(&[1, 3])).expect("there is room");
    two.stop().expect("it runs");
    // It has heard what has become of it, or it has not.
    let answer = founding.wait(PATIENCE).expect("it has ended");
    let is_over = answer == Err(FoundError::Over);
    let founded = found(&one, charter(&[1, 3])).expect("it is founded");
    assert!(is_over || answer == Ok(founded), "{answer:?} {founded:?}");
    one.subscribe(NEW).expect("it is on the ring");
    take(&one, &mut first, is_subscribed);
    submit_and_hear(&one, &one, &mut first);
    let mut other = Vec::new();
    take(&third, &mut other, is_of(NEW));
    assert_eq!(other, first);
}

/// An acceptor of the new ring is away: the ring is founded, and begins when that is there. Whoever subscribes
/// meanwhile goes on with the other rings.
#[test]
fn a_ring_waits_for_its_acceptors_and_holds_up_no_other() {
    let config = config(30_520);
    let start = |node: u16| RingsNode::start_as(&config, id(node), (1, &[1])).expect("it starts");
    let (one, two, third) = (start(1), start(2), start(3));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    one.submit(ONE, &0_u64.to_le_bytes())
        .expect("there is room");
    take(&one, &mut first, is_of(ONE));
    third.stop().expect("it runs");
    let founded = found(&one, charter(&[1, 2, 3])).expect("it is ordered");
    let open = vec![(NEW, FoundedRing::Open(founded))];
    assert_eq!(list(&one), open, "its socket waits for the others");
    one.subscribe(NEW).expect("it is on the ring");
    for number in 1..20_u64 {
        one.submit(ONE, &number.to_le_bytes())
            .expect("there is room");
        take(&one, &mut first, is_of(ONE));
    }
    assert!(first.iter().all(is_of(ONE)), "{first:?}");
    let _third = start(3);
    take(&one, &mut first, is_subscribed);
    submit_and_hear(&two, &one, &mut first);
    take(&two, &mut second, is_of(NEW));
    assert_eq!(first, second);
}

/// A port of the new ring is in use on one host: that process is on the ring as soon as the port is free, and on its
/// other rings all the time, also when it is restarted.
#[test]
fn a_ring_that_does_not_open_is_tried_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = durable(30_560, dir.path());
    let start = |node: u16| RingsNode::start(&config, id(node)).expect("it starts");
    let (one, two, _third) = (start(1), start(2), start(3));
    let of_one = &config.common.nodes[0];
    let port = of_one.data_port + OFFSET;
    let in_use = std::net::UdpSocket::bind(("127.0.0.1", port)).expect("it is free");
    let founded = found(&two, charter(&[1, 2, 3])).expect("it is founded");
    let is_put_off = |node: &RingsNode| {
        let list = list(node);
        let [(NEW, FoundedRing::Unopened(of, why))] = &list[..] else {
            return false;
        };
        *of == founded && !why.is_empty()
    };
    until("the port is in use", || is_put_off(&one));
    assert_eq!(
        one.submit(NEW, b"12345678"),
        Err(SubmitError::Unsupported),
        "it is not on the ring"
    );
    drop(one);
    let fixed = RingsNode::start_with(&config, id(1), Some(&[7]));
    let error = fixed.expect_err("it would deliver nothing else");
    assert!(matches!(error, RingsStartError::Ring(7, _)), "{error}");
    let one = start(1);
    assert!(is_put_off(&one), "{:?}", list(&one));
    one.submit(ONE, &1_u64.to_le_bytes())
        .expect("it is on its other ring");
    take(&one, &mut Vec::new(), is_of(ONE));
    drop(in_use);
    until("the port is free", || {
        list(&one) == [(NEW, FoundedRing::Open(founded))]
    });
    one.submit(NEW, b"12345678").expect("it is on the ring");
}

/// The file of one node has a ring with the ports of the new one: that node is not on the new ring, and says so when its
/// partition subscribes to it. Its ring stays as it is.
#[test]
fn who_cannot_be_on_the_ring_says_so() {
    let config = config(30_600);
    let mut other = config.clone();
    other.rings.push(RingSection {
        id: 4,
        nodes: Some(vec![3]),
        port_offset: Some(OFFSET),
        paxos: Some(PaxosConfig {
            acceptors: Some(vec![3]),
            storage: VoteStorage::Memory,
            ..PaxosConfig::default()
        }),
        ..RingSection::default()
    });
    let start = |config, node| RingsNode::start_as(config, id(node), (1, &[1])).expect("it starts");
    let (one, _two, third) = (start(&config, 1), start(&config, 2), start(&other, 3));
    let few = Charter {
        acceptors: [1, 2].map(id).into(),
        ..charter(&[1, 2, 3])
    };
    found(&one, few).expect("it is founded");
    one.subscribe(NEW).expect("it is on the ring");
    take(&one, &mut Vec::new(), is_subscribed);
    loop {
        match third.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Unreachable(ring)) => break assert_eq!(ring, NEW),
            Ok(RingsDelivery::Configuration(..)) => {}
            told => panic!("{told:?}; {:?}", list(&third)),
        }
    }
    let refused = list(&third);
    let [(NEW, FoundedRing::Refused(why))] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert!(why.contains("same port"), "{why}");
    third
        .submit(Rank(4), b"12345678")
        .expect("its own ring is there");
}

/// As many rings are founded as there may be, and not one more; a process has all of them again after a restart.
#[test]
fn so_many_rings_are_founded_and_no_more() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = durable(30_640, dir.path());
    config.rings[0].nodes = Some(vec![1]);
    let start = || RingsNode::start(&config, id(1)).expect("it starts");
    let charter = |number: u16| Charter::new(Rank(1 + number), 10 * number, [id(2)]);
    let most = rota_multiring::charters::MOST_CHARTERS as u16;
    let one = start();
    let founded: Vec<Constants> = (1..=most)
        .map(|number| found(&one, charter(number)).expect("there is room"))
        .collect();
    let more = found(&one, charter(most + 1));
    assert_eq!(more, Err(FoundError::Full));
    let again = found(&one, charter(1));
    assert_eq!(again, Ok(founded[0]), "it is there");
    drop(one);
    let elsewhere = founded.iter().map(|of| FoundedRing::Elsewhere(*of));
    let one = start();
    let list = list(&one).into_iter();
    assert!(list.map(|(_, ring)| ring).eq(elsewhere));
    assert_eq!(found(&one, charter(most + 1)), Err(FoundError::Full));
}
