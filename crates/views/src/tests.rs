//! The parts of views by themselves. All of them together: `tests/views_model.rs`.

mod formats;
mod names;
mod parts;
mod payloads;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::message::{Name, Recover, ViewState, Word};
use super::outcome::Outcome;
use super::quorum::remembers_enough;
use super::watermarks::Watermarks;
use super::{Backlog, DataPath, Frozen, Held, Link, Load, Packet, PacketId, View, ViewEngine};
use rota_core::contract::{
    Channel, Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation, Input, NodeId,
    Output, Process, RingId, Seq, Service, StartState, Status, SubmitError, Time, TimerReason,
};
use rota_core::primary::Rule;

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn process(id: u16) -> Process {
    Process {
        node: node(id),
        incarnation: Incarnation(u64::from(id) + 10),
    }
}

fn ring(ring_seq: u64) -> RingId {
    RingId {
        ring_seq,
        rep: node(1),
        incarnation: Incarnation(11),
    }
}

fn name(sender: u16, number: u64, place: &[u64]) -> Name {
    Name {
        id: PacketId { sender, number },
        load: Load::Messages(Service::Safe),
        last: number,
        place: place.to_vec(),
    }
}

/// The state of a process in a view of three.
fn standing(view: u64, delivered: &[u64], held: &[Name], position: Seq) -> ViewState {
    let members: Vec<Process> = (1..=3).map(process).collect();
    let mut watermarks = Watermarks::default();
    for (member, count) in members.iter().zip(delivered) {
        watermarks.raise(*member, *count);
    }
    ViewState {
        view: ring(view),
        members,
        delivered: delivered.to_vec(),
        held: held.to_vec(),
        watermarks,
        position,
    }
}

fn installed(standing: ViewState) -> Recover {
    Recover {
        installed: Some(standing),
        ..Recover::default()
    }
}

fn sample() -> Recover {
    let held = [name(0, 3, &[7]), name(2, 1, &[])];
    let mut recover = installed(standing(5, &[2, 0, 0], &held, 3));
    recover.tentative.push(standing(8, &[0, 0, 0], &[], 5));
    recover.note = Bytes::from_static(b"note");
    recover.forgot = true;
    recover
}

fn words() -> [Word; 4] {
    let packet = |number, load, bytes| Packet {
        id: PacketId { sender: 1, number },
        load,
        bytes: Bytes::from_static(bytes),
    };
    let payload = [
        packet(9, Load::Own, b"bytes"),
        packet(1, Load::Messages(Service::Safe), b""),
        packet(2, Load::Messages(Service::Agreed), b"more bytes"),
    ];
    [
        Word::Recover(sample()),
        Word::Payload(payload.to_vec()),
        Word::EndRecovery,
        Word::Part {
            last: true,
            bytes: Bytes::from_static(b"the end of it"),
        },
    ]
}

#[test]
fn words_come_back_as_they_were_sent() {
    for word in words() {
        let bytes = Bytes::from(word.encode(ring(4)));
        assert_eq!(Word::decode(&bytes), Some((ring(4), word)));
    }
}

#[test]
fn whatever_peers_send_has_an_answer() {
    for word in words() {
        let bytes = word.encode(ring(4));
        // A part may end anywhere, packets between two of them.
        let ends = |len: usize| match &word {
            Word::Part { .. } => len > 20,
            Word::Payload(_) => [40, 55].contains(&len),
            Word::Recover(_) | Word::EndRecovery => false,
        };
        for len in 0..bytes.len() {
            let cut = Word::decode(&Bytes::copy_from_slice(&bytes[..len]));
            assert_eq!(cut.is_some(), ends(len), "{len} of {word:?}");
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut garbled = bytes.clone();
                garbled[at] ^= flip;
                if let Some((ring, word)) = Word::decode(&Bytes::from(garbled.clone())) {
                    assert_eq!(word.encode(ring), garbled);
                }
            }
        }
    }
}

#[test]
fn members_out_of_order_and_packets_of_nobody_are_refused() {
    let refused = |change: fn(&mut ViewState)| {
        let mut recover = sample();
        change(recover.installed.as_mut().expect("it has one"));
        let bytes = Word::Recover(recover).encode(ring(4));
        Word::decode(&Bytes::from(bytes)).is_none()
    };
    assert!(!refused(|_| {}));
    assert!(refused(|standing| standing.members.swap(0, 1)));
    assert!(refused(|standing| standing.held[0].id.sender = 3));
    assert!(refused(|standing| standing.held[0].id.number = 0));
    assert!(refused(|standing| standing.position = 0));
    assert!(refused(|standing| standing.view = ring(8)));
}

/// The outcome of the words of members 1 to 3 of a configuration.
fn outcome(told: &[Recover]) -> Outcome {
    let members: Vec<Process> = (1..=told.len() as u16).map(process).collect();
    Outcome::of(&members, &told.iter().collect::<Vec<_>>())
}

#[test]
fn what_one_has_delivered_the_others_do_and_joiners_count_it() {
    let first = installed(standing(5, &[2, 1, 0], &[], 4));
    let second = installed(standing(5, &[1, 1, 0], &[name(0, 2, &[3])], 3));
    let outcome = outcome(&[first, second, Recover::default()]);
    assert_eq!(outcome.last.map(|(ring, _)| ring), Some(ring(5)));
    assert_eq!(outcome.position, 4);
    assert_eq!(outcome.watermarks.of(process(1)), 2);
    assert_eq!(outcome.forced.len(), 1);
    assert!(outcome.to_send.iter().all(Vec::is_empty));
}

#[test]
fn the_first_who_holds_a_packet_sends_it_and_the_longest_place_counts() {
    let nothing = installed(standing(5, &[0, 0, 0], &[], 1));
    let one = |place: &[u64]| installed(standing(5, &[0, 0, 0], &[name(2, 1, place)], 1));
    let outcome = outcome(&[nothing, one(&[]), one(&[4])]);
    let id = PacketId {
        sender: 2,
        number: 1,
    };
    assert_eq!(outcome.to_send, [vec![], vec![id], vec![]]);
    assert_eq!(outcome.forced[&id].place, [4]);
    assert_eq!(
        (outcome.position, outcome.watermarks.of(process(3))),
        (2, 1)
    );
}

#[test]
fn nothing_is_delivered_behind_a_gap() {
    let held = [name(2, 1, &[]), name(2, 3, &[]), name(2, 4, &[9])];
    let outcome = outcome(&[installed(standing(5, &[0, 0, 0], &held, 1))]);
    let numbers: Vec<u64> = outcome.forced.keys().map(|id| id.number).collect();
    assert_eq!((numbers, outcome.position), (vec![1], 2));
}

#[test]
fn an_outcome_counts_unless_a_member_knows_nothing_of_it() {
    let old = standing(5, &[0, 0, 0], &[], 1);
    let mut unsure = installed(old.clone());
    unsure.tentative.push(standing(8, &[0, 0, 0], &[], 6));
    let last = |told: &[Recover]| outcome(told).last.map(|(ring, _)| ring.ring_seq);
    assert_eq!(last(&[unsure.clone(), unsure.clone()]), Some(8));
    assert_eq!(last(&[unsure.clone(), installed(old)]), Some(5));
    let sure = installed(standing(8, &[0, 0, 0], &[], 6));
    assert_eq!(last(&[unsure.clone(), Recover::default(), sure]), Some(8));
    assert_eq!(outcome(&[unsure]).position, 6);
}

#[test]
fn a_view_begins_where_no_newer_one_can_be_remembered_elsewhere() {
    let configured: Vec<NodeId> = (1..=5).map(node).collect();
    // As many members that remember, that know of no view, and that have forgotten.
    let may = |old: u16, new: u16, forgot: u16| {
        let members: Vec<Process> = (1..=old + new + forgot).map(process).collect();
        let tell = |at: u16| Recover {
            forgot: at >= old + new,
            installed: (at < old).then(|| standing(5, &[0, 0, 0], &[], 1)),
            ..Recover::default()
        };
        let told: Vec<Recover> = (0..old + new + forgot).map(tell).collect();
        remembers_enough(&configured, &members, &told.iter().collect::<Vec<_>>())
    };
    assert!(may(3, 0, 0) && may(0, 3, 0) && may(3, 1, 0) && may(1, 4, 0));
    // A member that knows of no view may have been in one with nodes that are not here.
    assert!(!may(1, 2, 0) && !may(2, 1, 0));
    assert!(!may(2, 0, 1) && !may(1, 1, 1) && !may(2, 0, 2) && !may(0, 2, 1));
    assert!(may(3, 0, 1) && may(3, 0, 2), "all here, or enough");
    assert!(may(0, 0, 3) && may(1, 0, 3), "a majority has forgotten");
}

#[test]
fn what_was_not_delivered_is_taken_again_large_messages_from_their_beginning() {
    let mut backlog = Backlog::new(60, 1000, 10_000);
    backlog.push(Service::Safe, b"small").expect("room");
    backlog.push(Service::Safe, &[7; 120]).expect("room");
    let take = |backlog: &mut Backlog| -> Vec<(u64, u16)> {
        let frames = core::iter::from_fn(|| backlog.take());
        let starts = frames.map(|out| out.frame.start());
        starts
            .map(|start| (start.counter, start.fragment))
            .collect()
    };
    assert_eq!(take(&mut backlog), [(1, 0), (2, 1), (2, 2)]);
    backlog.delivered(1);
    backlog.rewind(1);
    assert_eq!(take(&mut backlog), [(2, 0), (2, 1), (2, 2)]);
    backlog.delivered(2);
    backlog.rewind(2);
    assert_eq!(take(&mut backlog), []);
}

/// A ring that delivers what it is given, and a data path that does nothing: they keep what they get.
#[derive(Default)]
struct Ring {
    deliveries: VecDeque<Delivery>,
    datagrams: Vec<Bytes>,
}

impl Engine for Ring {
    fn handle(&mut self, _: Time, input: Input) {
        match input {
            Input::Datagrams { bytes, segment, .. } => {
                assert!(segment <= bytes.len());
                self.datagrams.push(bytes);
            }
            Input::LinkUp { .. } => panic!("links are the data path's"),
            _ => {}
        }
    }

    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Full)
    }

    fn poll_output(&mut self) -> Option<Output> {
        None
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

#[derive(Default)]
struct Path {
    datagrams: Vec<Bytes>,
    links: usize,
}

impl DataPath for Path {
    fn start(&mut self, _: Process, _: u64) {}

    fn install(&mut self, _: Time, _: &View, _: &[Bytes]) {}

    fn freeze(&mut self, _: Time) -> Frozen {
        Frozen::default()
    }

    fn arrange(_: &mut Vec<Held>) {}

    fn on_datagram(&mut self, _: Time, _: Class, datagram: Bytes) {
        self.datagrams.push(datagram);
    }

    fn on_link(&mut self, _: Time, _: Link) {
        self.links += 1;
    }

    fn on_timer(&mut self, _: Time) {}

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn poll_output(&mut self, _: Time, _: &mut Backlog) -> Option<Output> {
        None
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        None
    }

    fn reading(&self) -> Class {
        Class::Data
    }

    fn count(&self, _: &mut BTreeMap<&'static str, u64>) {}

    fn holds(&self, _: RingId, _: PacketId) -> Option<bool> {
        None
    }
}

fn engine(rule: Rule, deliveries: impl IntoIterator<Item = Delivery>) -> ViewEngine<Path, Ring> {
    let ring = Ring {
        deliveries: deliveries.into_iter().collect(),
        ..Ring::default()
    };
    let backlog = Backlog::new(100, 1000, 10_000);
    let mut engine = ViewEngine::new(ring, rule, Path::default(), backlog);
    let start = StartState {
        me: process(1),
        seed: 0,
        records: Vec::new(),
        lost_some: false,
    };
    engine.handle(Time(0), Input::Start(start));
    engine
}

fn of_three() -> Rule {
    Rule::StaticMajority {
        configured: (1..=3).map(node).collect(),
    }
}

fn alone() -> Delivery {
    Delivery::Configuration(Configuration {
        kind: ConfigurationKind::Regular(ring(1)),
        members: vec![process(1)],
    })
}

#[test]
fn datagrams_of_a_burst_go_where_their_kind_belongs_and_neighbours_stay_together() {
    let mut engine = engine(of_three(), []);
    let kinds = [0, 6, 8, 0, 9, 15, 1];
    // The last one is shorter.
    let bytes: Vec<u8> = kinds.iter().flat_map(|kind| [0, *kind, 9]).collect();
    let bytes = Bytes::from(bytes).slice(..20);
    let input = Input::Datagrams {
        class: Class::Data,
        channel: Channel(0),
        bytes,
        segment: 3,
    };
    engine.handle(Time(1), input);
    let of_ring = &engine.ring().engine().datagrams;
    assert_eq!(*of_ring, [&[0, 0, 9, 0, 6, 9][..], &[0, 0, 9], &[0, 1]]);
    assert_eq!(
        engine.path().datagrams,
        [&[0, 8, 9][..], &[0, 9, 9], &[0, 15, 9]]
    );
}

#[test]
fn who_is_in_no_primary_configuration_is_told_at_once_or_after_the_vote() {
    let excluded = Some(Delivery::Excluded(ring(1)));
    let mut at_once = engine(of_three(), [alone()]);
    assert_eq!(at_once.poll_delivery(), excluded);
    assert_eq!(at_once.poll_delivery(), None);

    let first = (1..=3).map(node).collect();
    let mut later = engine(Rule::DynamicLinear { first }, [alone()]);
    assert_eq!(later.poll_delivery(), None);
    let due = Time(200_000_000);
    later.handle(Time(due.0 - 1), Input::Timer);
    assert_eq!(later.poll_delivery(), None);
    later.handle(due, Input::Timer);
    assert_eq!(later.poll_delivery(), excluded);
}

#[test]
fn links_are_the_data_paths_also_while_it_is_frozen() {
    let mut engine = engine(of_three(), [alone()]);
    let up = Input::LinkUp {
        peer: process(2),
        session: rota_core::contract::Session(1),
    };
    engine.handle(Time(1), up);
    assert_eq!(engine.path().links, 1);
}

#[test]
fn messages_wait_for_a_view_until_there_is_no_room_and_who_has_left_takes_none() {
    let mut engine = engine(of_three(), [alone()]);
    let submit =
        |engine: &mut ViewEngine<Path, Ring>| engine.submit(Time(1), Service::Agreed, &[0; 900]);
    assert_eq!(submit(&mut engine), Ok(1));
    let refused = (0..100).find_map(|_| submit(&mut engine).err());
    assert_eq!(refused, Some(SubmitError::Full));
    engine.leave(Time(2));
    assert_eq!(submit(&mut engine), Err(SubmitError::Stopped));
}
