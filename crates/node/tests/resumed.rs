//! Applications that keep states at points, and go on behind them: in the same process, and in another.

mod several;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_multiring::{Place, Rank, Resume};
use rota_node::rings::{RingsPublisher, RingsStartError, StateSource};
use rota_node::{EngineName, PaxosConfig, RingsConfig, RingsDelivery, RingsNode, VoteStorage};

const PATIENCE: Duration = Duration::from_secs(30);

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

/// The state of an application: all messages, in order.
type State = Vec<(Place, Vec<u8>)>;

/// Takes what comes until `is_enough` says so; points as they come, with how much was before each.
fn take(
    node: &RingsNode,
    state: &mut State,
    mut is_enough: impl FnMut(&State, Option<Resume>) -> bool,
) {
    while !is_enough(state, None) {
        match node.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Message(place, message)) => {
                state.push((place, message.payload.to_vec()));
            }
            Ok(RingsDelivery::Configuration(..)) => {}
            Ok(RingsDelivery::Point(resume)) => {
                if is_enough(state, Some(*resume)) {
                    return;
                }
            }
            other => panic!("{other:?} behind {}; {:#?}", state.len(), node.status()),
        }
    }
}

/// Takes until it is told of a point that it asks for: its bytes.
fn keep(node: &RingsNode, state: &mut State) -> Vec<u8> {
    node.want_point();
    let mut bytes = None;
    take(node, state, |state, resume| {
        if let Some(resume) = resume {
            let is_before = state
                .iter()
                .all(|(place, _)| place.round < resume.point.round);
            assert!(is_before, "{:?} of {:?}", resume.point, state.last());
            bytes = Some(resume.encode());
        }
        bytes.is_some()
    });
    bytes.expect("it came")
}

fn decode(bytes: &[u8]) -> Resume {
    Resume::decode(bytes.to_vec().into()).expect("what was encoded")
}

/// Submits to all rings until it is told to end, messages of all sizes: also such as take many instances.
fn load(publisher: &RingsPublisher, number: u8, is_over: &AtomicBool) {
    for message in 0_u64.. {
        let ring = Rank(1 + (message % 3) as u16);
        let size = [10, 700, 40_000, 10, 300_000][message as usize % 5];
        let mut payload = vec![number; size];
        payload[..8].copy_from_slice(&message.to_le_bytes());
        let taken = publisher.submit_blocking(ring, &payload);
        if is_over.load(SeqCst) || taken.is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn a_state_goes_on_where_it_was_kept_here_and_elsewhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = config(25_900);
    config.common.trace = Some(dir.path().join("{node}.jsonl"));
    let start = |number: u16| RingsNode::start(&config, id(number)).expect("it starts");
    let (one, two) = (start(1), start(2));
    let mut third = start(3);
    let (is_over, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut first, mut state) = (State::new(), State::new());
    thread::scope(|scope| {
        for (number, node) in [(1, &one), (2, &two)] {
            let (publisher, is_over) = (node.publisher(), &is_over);
            scope.spawn(move || load(&publisher, number, is_over));
        }
        let enough = &enough;
        let reader = scope.spawn(move || {
            let mut second = State::new();
            take(&two, &mut second, |_, _| enough.load(SeqCst));
            (two, second)
        });
        let mut kept = Vec::new();
        for round in 0..6 {
            let before = state.len();
            take(&third, &mut state, |state, _| state.len() > before + 150);
            if round % 2 == 0 || kept.is_empty() {
                kept = keep(&third, &mut state);
                // The messages behind the point are lost with the process.
                let mut lost = state.clone();
                take(&third, &mut lost, |lost, _| lost.len() > state.len() + 40);
            } else {
                // A state of another process, and of another place.
                let mut elsewhere = std::mem::take(&mut first);
                kept = keep(&one, &mut elsewhere);
                state.clone_from(&elsewhere);
                first = elsewhere;
            }
            third.stop().expect("it runs");
            let source = match round % 2 == 0 {
                true => StateSource::Own,
                false => StateSource::Peer,
            };
            let resumed = RingsNode::resume(&config, id(3), (decode(&kept), source));
            third = resumed.expect("it starts");
        }
        let last = state.len() + 200;
        take(&third, &mut state, |state, _| state.len() >= last);
        take(&one, &mut first, |first, _| first.len() >= last);
        is_over.store(true, SeqCst);
        enough.store(true, SeqCst);
        let (_, second) = reader.join().expect("it takes all");
        let end = last.min(second.len());
        assert!(first[..end] == state[..end] && second[..end] == first[..end]);
        let is_large = |(_, payload): &&(Place, Vec<u8>)| payload.len() == 300_000;
        assert!(state.iter().filter(is_large).count() > 20, "cut messages");
        // A thread that waits for room is let go.
        drop((one, third));
    });
    let report = several::judged(dir.path());
    let counters = report.counters;
    let installed = (counters.installed_local, counters.installed_remote);
    assert_eq!(installed, (3, 3));
}

#[test]
fn where_nothing_is_submitted_a_point_comes_all_the_same() {
    let config = config(25_930);
    let nodes = [1, 2, 3].map(|number| RingsNode::start(&config, id(number)).expect("it starts"));
    nodes[0]
        .submit(Rank(2), b"one message")
        .expect("there is room");
    let mut state = State::new();
    take(&nodes[1], &mut state, |state, _| state.len() == 1);
    let kept = decode(&keep(&nodes[1], &mut state));
    let again = decode(&keep(&nodes[1], &mut state));
    assert!(again.point > kept.point, "{again:?}");
    assert_eq!(state.len(), 1);
    let ranks: Vec<u16> = kept.rings.iter().map(|ring| ring.of.rank.0).collect();
    assert_eq!(ranks, [1, 2, 3]);
}

/// A ring with other constants, and one that was founded anew.
#[test]
fn a_state_of_another_ring_goes_on_nowhere() {
    let config = config(25_960);
    let start = |number: u16| RingsNode::start(&config, id(number)).expect("it starts");
    let nodes = [1, 2, 3].map(start);
    let kept = decode(&keep(&nodes[2], &mut State::new()));
    nodes
        .into_iter()
        .for_each(|node| node.stop().expect("it runs"));
    let mut other = config.clone();
    other.rings[1].per_round = std::num::NonZeroU32::new(5);
    let refused = RingsNode::resume(&other, id(3), (kept.clone(), StateSource::Own));
    assert!(
        matches!(refused, Err(RingsStartError::State(2))),
        "{refused:?}"
    );

    let nodes = [1, 2].map(start);
    let third = RingsNode::resume(&config, id(3), (kept, StateSource::Own)).expect("it starts");
    // It founds nothing for a state of before, so two of three wait for it, until it says why.
    loop {
        match third.recv_timeout(PATIENCE) {
            Ok(RingsDelivery::Refounded(_)) => break,
            Ok(RingsDelivery::Configuration(..)) => {}
            other => panic!("{other:?}; {:#?}", third.status()),
        }
    }
    drop(nodes);
}
