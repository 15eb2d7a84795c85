//! The layer over an engine that does as it is told, and the rules on the knowledge of nodes.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::decide::decide;
use super::message::{MOST_ATTEMPTS, Own, Parsed, parse, wrap};
use super::session::{Knowledge, Session};
use super::{PRIMARY_LOG, Primary, Rule};
use crate::contract::{
    Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation, Input, LogRecord,
    Message, MessageId, NodeId, Output, PersistError, PersistId, Process, RingId, Service,
    StartState, Status, SubmitError, Time, TimerReason,
};

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn nodes(ids: &[u16]) -> Vec<NodeId> {
    ids.iter().map(|id| node(*id)).collect()
}

fn ring(ring_seq: u64) -> RingId {
    RingId {
        ring_seq,
        rep: node(1),
        incarnation: Incarnation(1),
    }
}

fn session(number: u64, ids: &[u16]) -> Session {
    Session::new(ring(number), nodes(ids))
}

fn known(last: &Session, attempts: &[&Session]) -> Knowledge {
    Knowledge {
        last: Some(last.clone()),
        attempts: attempts.iter().map(|attempt| (*attempt).clone()).collect(),
        carried: attempts
            .iter()
            .copied()
            .chain([last])
            .map(|session| session.ring)
            .collect(),
    }
}

/// Whether a configuration of those who tell may become primary.
fn eligible(told: &[(u16, &Knowledge)]) -> bool {
    let ids: Vec<u16> = told.iter().map(|(id, _)| *id).collect();
    let told: Vec<_> = told.iter().map(|(id, known)| (node(*id), *known)).collect();
    decide(&session(100, &ids), &told, &[]).eligible
}

#[test]
fn more_than_half_of_the_last_primary_or_half_with_the_smallest() {
    let four = known(&session(1, &[1, 2, 3, 4]), &[]);
    assert!(eligible(&[(2, &four), (3, &four), (4, &four)]));
    assert!(eligible(&[(1, &four), (4, &four)]));
    assert!(!eligible(&[(2, &four), (3, &four)]));
    assert!(!eligible(&[(1, &four)]));
    // Strangers do not count, however many.
    assert!(!eligible(&[(1, &four), (8, &four), (9, &four)]));
    // One who knows of a later primary is enough to know that an earlier one is over.
    let two = known(&session(5, &[1, 2]), &[]);
    assert!(!eligible(&[(2, &two), (3, &four), (4, &four)]));
    assert!(eligible(&[(1, &two), (3, &four)]));
}

#[test]
fn an_attempt_that_may_have_succeeded_needs_a_quorum_too() {
    let first = session(1, &[1, 2, 3, 4, 5]);
    let attempt = session(5, &[1, 2, 3]);
    let (fresh, tried) = (known(&first, &[]), known(&first, &[&attempt]));
    // 1 and 2 may be the primary now.
    assert!(!eligible(&[(3, &tried), (4, &fresh), (5, &fresh)]));
    assert!(eligible(&[(2, &tried), (3, &tried), (4, &fresh)]));
    // 2 was to attempt as well, and did not.
    assert!(eligible(&[(3, &tried), (2, &fresh), (4, &fresh)]));
    // All are here, and nobody knows that it succeeded.
    assert!(eligible(&[(1, &tried), (2, &tried), (3, &tried)]));
    // Somebody knows that it did.
    let succeeded = known(&attempt, &[]);
    assert!(eligible(&[(1, &succeeded), (2, &tried)]));
    assert!(!eligible(&[(1, &succeeded), (4, &fresh), (5, &fresh)]));
    // Somebody knows of a later one: what came of the attempt does not matter any more.
    let later = known(&session(9, &[3, 4]), &[]);
    assert!(eligible(&[(3, &later), (4, &later), (1, &tried)]));
}

#[test]
fn who_has_forgotten_does_not_count_and_is_no_witness() {
    let first = session(1, &[1, 2, 3]);
    let attempt = session(5, &[2, 3]);
    let (fresh, forgot) = (known(&first, &[]), Knowledge::default());
    assert!(!eligible(&[(2, &fresh), (3, &forgot)]));
    assert!(eligible(&[(1, &fresh), (2, &fresh), (3, &forgot)]));
    assert!(!eligible(&[(1, &forgot), (2, &forgot), (3, &forgot)]));
    // That 2 remembers no attempt says nothing.
    let tried = known(&first, &[&attempt]);
    assert!(!eligible(&[(1, &fresh), (2, &forgot), (3, &tried)]));
}

#[test]
fn who_was_in_a_primary_and_does_not_know_it_has_forgotten() {
    let first = session(1, &[1, 2, 3]);
    let later = session(5, &[1, 2]);
    let (fresh, knows) = (known(&first, &[]), known(&later, &[]));
    // 1 has lost its disk, and begins as if it were new: what 2 has served in the later one nobody here has.
    assert!(!eligible(&[(1, &fresh), (3, &knows)]));
    // With its attempt it is one of the later one.
    assert!(eligible(&[(1, &known(&first, &[&later])), (3, &knows)]));
    // Who was never in it counts for nothing in it, and has forgotten nothing.
    assert!(eligible(&[(1, &knows), (2, &knows), (3, &fresh)]));
    // 2 alone is no quorum of the later one.
    assert!(!eligible(&[(1, &fresh), (2, &knows), (3, &fresh)]));
    #[cfg(feature = "mutants")]
    is_found_out(crate::mutants::Mutant::P05, || {
        assert!(!eligible(&[(1, &fresh), (3, &knows)]));
    });
}

#[test]
fn somebody_has_to_carry_the_state_of_all_that_may_have_been_primary() {
    let last = session(5, &[1, 2, 3]);
    let carries = known(&last, &[]);
    let mut lacks = carries.clone();
    lacks.carried.clear();
    assert!(!eligible(&[(2, &lacks), (3, &lacks)]));
    assert!(eligible(&[(1, &carries), (3, &lacks)]));
    // Who carries what came before an open attempt may lack what was done in it.
    let attempt = session(9, &[1, 2, 8]);
    let tried = known(&last, &[&attempt]);
    let mut joined = tried.clone();
    joined.carried.clear();
    assert!(!eligible(&[(2, &joined), (3, &carries), (8, &joined)]));
    assert!(eligible(&[(1, &tried), (3, &carries), (8, &joined)]));
}

#[test]
fn nodes_with_different_first_primaries_have_none() {
    let (one, other) = (
        known(&session(1, &[1, 2]), &[]),
        known(&session(1, &[1, 2, 3]), &[]),
    );
    assert!(!eligible(&[(1, &one), (2, &one), (3, &other)]));
}

#[test]
fn whoever_has_too_many_open_attempts_makes_no_more() {
    let first = session(1, &[1, 2, 3]);
    let tries: Vec<Session> = (2..)
        .map(|n| session(n, &[1, 3]))
        .take(MOST_ATTEMPTS)
        .collect();
    let full = known(&first, &tries.iter().collect::<Vec<_>>());
    let mut one_less = full.clone();
    one_less.attempts.pop();
    one_less.forget_others();
    let fresh = known(&first, &[]);
    assert!(!eligible(&[(1, &full), (2, &fresh)]));
    assert!(eligible(&[(1, &one_less), (2, &fresh)]));
    assert!(eligible(&[(1, &full), (2, &fresh), (3, &full)]));
}

#[test]
fn what_is_written_is_read_and_nothing_else_is() {
    let last = session(7, &[1, 2, 500]);
    let knowledge = [
        Knowledge::default(),
        known(&last, &[]),
        known(&last, &[&session(8, &[2]), &session(12, &[1, 2])]),
    ];
    for known in knowledge {
        let record = known.to_record();
        assert_eq!(Knowledge::from_record(&record).as_ref(), Some(&known));
        for own in [Own::Vote(ring(9), known), Own::Attempt(ring(9))] {
            let bytes = Bytes::from(own.encode());
            assert_eq!(parse(&bytes), Some(Parsed::Own(own)));
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes.slice(..end)), None);
            }
        }
        for place in 0..record.len() {
            assert_eq!(Knowledge::from_record(&record[..place]), None);
            for bit in 0..8 {
                let mut damaged = record.clone();
                damaged[place] ^= 1 << bit;
                // There is an answer, and it is what these very bytes say.
                if let Some(read) = Knowledge::from_record(&damaged) {
                    assert_eq!(read.to_record(), damaged);
                }
            }
        }
    }
    for number in [0, 1, 126, 127, 128, 1 << 40, u64::MAX - 1] {
        let bytes = Bytes::from(wrap(number, b"text"));
        let text = Bytes::from_static(b"text");
        assert_eq!(parse(&bytes), Some(Parsed::Application(number, text)));
    }
    assert_eq!(parse(&Bytes::from_static(&[0x81, 0])), None);
    assert_eq!(parse(&Bytes::from_static(&[0xff; 11])), None);
}

/// An engine that delivers what it is told to, and takes what is submitted.
#[derive(Debug, Default)]
struct Below {
    deliveries: VecDeque<Delivery>,
    outputs: VecDeque<Output>,
    submitted: Vec<Bytes>,
    persisted: Vec<PersistId>,
    full: bool,
    electorates: Option<Vec<Vec<NodeId>>>,
    carried_on: Vec<RingId>,
}

impl Engine for Below {
    fn handle(&mut self, _: Time, input: Input) {
        if let Input::Persisted { id } = input {
            self.persisted.push(id);
        }
    }

    fn submit(&mut self, _: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        if self.full {
            return Err(SubmitError::Full);
        }
        self.submitted.push(Bytes::copy_from_slice(payload));
        Ok(self.submitted.len() as u64)
    }

    fn electorates(&self, _: RingId) -> Option<Vec<Vec<NodeId>>> {
        self.electorates.clone()
    }

    fn carries_on(&mut self, _: Time, ring: RingId) {
        self.carried_on.push(ring);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
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

/// Nodes, and the engines below them in one hand.
struct Cluster(Vec<Primary<Below>>);

fn process(id: u16) -> Process {
    Process {
        node: node(id),
        incarnation: Incarnation(7),
    }
}

fn started(id: u16, rule: &Rule, record: Option<Bytes>) -> Primary<Below> {
    let mut layer = Primary::new(Below::default(), rule.clone());
    let records = record.map(|bytes| (PRIMARY_LOG, 0, bytes));
    let start = StartState {
        me: process(id),
        seed: 1,
        records: records.into_iter().collect(),
        lost_some: false,
    };
    layer.handle(Time(0), Input::Start(start));
    layer
}

/// Takes everything that is delivered, as text.
fn taken(layer: &mut Primary<Below>) -> Vec<Bytes> {
    let mut taken = Vec::new();
    while let Some(delivery) = layer.poll_delivery() {
        taken.push(match delivery {
            Delivery::Message(message) => message.payload,
            Delivery::Configuration(_) => Bytes::from_static(b"conf"),
            Delivery::Primary(_) => Bytes::from_static(b"primary"),
            Delivery::Passed { .. } => Bytes::from_static(b"passed"),
            Delivery::Notice { .. } => Bytes::from_static(b"notice"),
            Delivery::Excluded(_) => Bytes::from_static(b"excluded"),
            Delivery::Missed { .. } => Bytes::from_static(b"missed"),
        });
    }
    layer.handle(Time(1), Input::Timer);
    taken
}

/// What it asks to be durable.
fn asked(layer: &mut Primary<Below>) -> Option<(PersistId, Bytes)> {
    let output = layer.poll_output()?;
    let Output::Persist { id, mut records } = output else {
        panic!("{output:?}");
    };
    assert!(records.len() == 1 && layer.poll_output().is_none());
    match records.pop() {
        Some(LogRecord::Put { bytes, .. }) => Some((id, bytes.into_bytes())),
        record => panic!("{record:?}"),
    }
}

impl Cluster {
    fn new(ids: &[u16], rule: &Rule) -> Self {
        Self(ids.iter().map(|id| started(*id, rule, None)).collect())
    }

    fn configure(&mut self, number: u64) {
        let members: Vec<Process> = self.0.iter().filter_map(|layer| layer.me()).collect();
        for layer in &mut self.0 {
            let configuration = Configuration {
                kind: ConfigurationKind::Regular(ring(number)),
                members: members.clone(),
            };
            let below = layer.engine_mut();
            below.submitted.clear();
            below
                .deliveries
                .push_back(Delivery::Configuration(configuration));
            assert_eq!(taken(layer)[0], "conf");
        }
    }

    /// Delivers the message that each has submitted in this place, at all.
    fn exchange(&mut self, place: usize) {
        let sent: Vec<(Process, Bytes)> = self
            .0
            .iter()
            .filter_map(|layer| Some((layer.me()?, layer.engine().submitted.get(place)?.clone())))
            .collect();
        for layer in &mut self.0 {
            for (process, payload) in &sent {
                layer
                    .engine_mut()
                    .deliveries
                    .push_back(Delivery::Message(Message {
                        id: MessageId {
                            process: *process,
                            counter: place as u64 + 1,
                        },
                        service: Service::Safe,
                        seq: 1,
                        index: 0,
                        payload: payload.clone(),
                    }));
            }
        }
    }
}

fn dynamic(ids: &[u16]) -> Rule {
    Rule::DynamicLinear { first: nodes(ids) }
}

#[test]
fn a_static_majority_is_primary_at_once() {
    let rule = Rule::StaticMajority {
        configured: nodes(&[1, 2, 3]),
    };
    for (ids, expected) in [(&[1][..], 1), (&[1, 3], 2), (&[1, 8, 9], 1)] {
        let mut cluster = Cluster::new(ids, &rule);
        cluster.configure(5);
        let reported = cluster.0[0].primary().is_some();
        assert_eq!(reported, expected == 2, "{ids:?}");
    }
}

#[test]
fn each_list_of_who_counts_has_to_have_its_majority() {
    let rule = Rule::StaticMajority {
        configured: nodes(&[1, 2, 3]),
    };
    let primary = |ids: &[u16], lists: &[&[u16]]| {
        let mut cluster = Cluster::new(ids, &rule);
        let lists = lists.iter().map(|ids| nodes(ids)).collect();
        cluster.0[0].engine_mut().electorates = Some(lists);
        cluster.configure(5);
        let layer = &cluster.0[0];
        let carried_on: Vec<RingId> = layer.primary().into_iter().collect();
        assert_eq!(layer.engine().carried_on, carried_on);
        layer.primary().is_some()
    };
    let holds = || {
        assert!(primary(&[1, 2], &[&[1, 2, 3]]));
        assert!(!primary(&[1, 2], &[&[1, 2, 3], &[1, 2, 3, 4, 5]]));
        assert!(!primary(&[1, 4, 5], &[&[1, 2, 3], &[1, 2, 3, 4, 5]]));
        assert!(primary(&[1, 2, 4], &[&[1, 2, 3], &[1, 2, 3, 4, 5]]));
        assert!(
            !primary(&[1, 2, 3], &[&[1, 2, 3], &[]]),
            "what could not be told"
        );
    };
    holds();
    #[cfg(feature = "mutants")]
    is_found_out(crate::mutants::Mutant::M54, holds);
}

#[cfg(feature = "mutants")]
fn is_found_out(mutant: crate::mutants::Mutant, holds: impl Fn()) {
    use crate::mutants;
    extern crate std;
    use std::sync::{Mutex, PoisonError};

    /// A broken version is in force for all threads.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    mutants::set(Some(mutant));
    let held = std::panic::catch_unwind(core::panic::AssertUnwindSafe(holds)).is_ok();
    mutants::set(None);
    assert!(!held, "{mutant}");
}

#[test]
fn no_first_primary_where_lists_of_who_counts_differ() {
    let (one, other) = (
        Knowledge::first(&nodes(&[1, 2, 3])),
        Knowledge::first(&nodes(&[2, 3, 4])),
    );
    let last = session(7, &[1, 2, 3]);
    let later = known(&last, &[]);
    let (a, b) = (nodes(&[1, 2, 3]), nodes(&[2, 3, 4]));
    let may = |told: &[(u16, &Knowledge)], lists: &[Vec<NodeId>]| {
        let ids: Vec<u16> = told.iter().map(|(id, _)| *id).collect();
        let told: Vec<_> = told.iter().map(|(id, known)| (node(*id), *known)).collect();
        decide(&session(100, &ids), &told, lists).eligible
    };
    let holds = || {
        assert!(may(&[(1, &one), (2, &one)], core::slice::from_ref(&a)));
        assert!(!may(&[(1, &one), (2, &one), (3, &one), (4, &other)], &[]));
        assert!(!may(&[(2, &one), (3, &other), (4, &other)], &[]));
        assert!(
            !may(&[(1, &one), (2, &one)], &[a.clone(), b.clone()]),
            "one was met"
        );
        // Once there was a primary, it counts, and nothing that is configured.
        assert!(may(
            &[(1, &later), (2, &later), (4, &other)],
            &[a.clone(), b.clone()]
        ));
    };
    holds();
    #[cfg(feature = "mutants")]
    is_found_out(crate::mutants::Mutant::M55, holds);
}

#[test]
fn who_is_told_of_another_first_primary_keeps_its_own() {
    let mut cluster = Cluster(vec![
        started(1, &dynamic(&[1, 2, 3]), None),
        started(4, &dynamic(&[2, 3, 4]), None),
    ]);
    cluster.configure(5);
    cluster.exchange(0);
    for layer in &mut cluster.0 {
        taken(layer);
        assert_eq!(asked(layer), None, "nothing has changed");
    }
}

#[test]
fn a_primary_is_reported_when_all_have_attempted_and_it_is_durable() {
    let mut cluster = Cluster::new(&[1, 2], &dynamic(&[1, 2, 3]));
    cluster.configure(5);
    cluster.exchange(0);
    for layer in &mut cluster.0 {
        assert_eq!(taken(layer), [] as [Bytes; 0]);
        assert_eq!(layer.engine().submitted.len(), 1, "only what it knows");
        let (id, record) = asked(layer).expect("the attempt");
        let attempts = Knowledge::from_record(&record).expect("readable").attempts;
        assert_eq!(attempts, [session(5, &[1, 2])]);
        layer.handle(Time(2), Input::Persisted { id });
        assert_eq!(layer.engine().submitted.len(), 2, "it attempts");
    }
    cluster.exchange(1);
    for layer in &mut cluster.0 {
        // A message behind the last attempt: all report before it.
        let payload = Bytes::from(wrap(0, b"behind"));
        let id = MessageId {
            process: process(1),
            counter: 9,
        };
        layer
            .engine_mut()
            .deliveries
            .push_back(Delivery::Message(Message {
                id,
                service: Service::Agreed,
                seq: 2,
                index: 0,
                payload,
            }));
        assert_eq!(taken(layer), [] as [Bytes; 0]);
        let (id, record) = asked(layer).expect("that it is primary");
        let last = Knowledge::from_record(&record).expect("readable").last;
        assert_eq!(last, Some(session(5, &[1, 2])));
        layer.handle(Time(3), Input::Persisted { id });
        assert_eq!(taken(layer), ["primary", "behind"]);
        assert_eq!(layer.primary(), Some(ring(5)));
    }
    // It is over with the configuration.
    cluster.configure(9);
    assert_eq!(cluster.0[0].primary(), None);
}

#[test]
fn an_attempt_survives_a_crash_and_nothing_is_told_that_is_not_durable() {
    let first = dynamic(&[1, 2, 3]);
    let mut cluster = Cluster::new(&[1, 2], &first);
    cluster.configure(5);
    cluster.exchange(0);
    let layer = &mut cluster.0[1];
    taken(layer);
    let (id, record) = asked(layer).expect("the attempt");
    // The ring goes on before the attempt is durable: it tells nothing until then.
    let alone = Configuration {
        kind: ConfigurationKind::Regular(ring(9)),
        members: vec![process(2)],
    };
    let below = layer.engine_mut();
    below.submitted.clear();
    below.deliveries.push_back(Delivery::Configuration(alone));
    taken(layer);
    assert!(layer.engine().submitted.is_empty());
    layer.handle(Time(2), Input::Persisted { id });
    assert_eq!(layer.engine().submitted.len(), 1);
    // After a restart 2 and 3 do not go on without 1, with whom 2 has attempted.
    let mut cluster = Cluster(vec![
        started(2, &first, Some(record)),
        started(3, &first, None),
    ]);
    cluster.configure(12);
    cluster.exchange(0);
    for layer in &mut cluster.0 {
        taken(layer);
        let attempted = asked(layer).is_some_and(|(_, record)| {
            let known = Knowledge::from_record(&record).expect("readable");
            known
                .attempts
                .iter()
                .any(|attempt| attempt.ring == ring(12))
        });
        assert!(!attempted);
    }
}

#[test]
fn what_could_not_be_written_is_written_again_and_holds_nobody_up() {
    let mut cluster = Cluster::new(&[1], &dynamic(&[1]));
    cluster.configure(5);
    cluster.exchange(0);
    let layer = &mut cluster.0[0];
    taken(layer);
    let (id, _) = asked(layer).expect("the attempt");
    layer.handle(Time(2), Input::Persisted { id });
    cluster.exchange(1);
    let layer = &mut cluster.0[0];
    taken(layer);
    let (id, record) = asked(layer).expect("that it is primary");
    let error = PersistError::NoSpace;
    layer.handle(Time(3), Input::PersistFailed { id, error });
    assert_eq!(taken(layer), [] as [Bytes; 0]);
    assert_eq!(asked(layer), None);
    let (due, _) = layer.next_timer().expect("it tries again");
    layer.handle(due, Input::Timer);
    let (id, again) = asked(layer).expect("the same");
    assert_eq!(again, record);
    layer.handle(due, Input::Persisted { id });
    assert_eq!(taken(layer), ["primary"]);
}

#[test]
fn a_disk_that_does_not_answer_holds_nobody_up_for_long() {
    let mut cluster = Cluster::new(&[1], &dynamic(&[1]));
    cluster.configure(5);
    cluster.exchange(0);
    let layer = &mut cluster.0[0];
    taken(layer);
    let (id, _) = asked(layer).expect("the attempt");
    layer.handle(Time(2), Input::Persisted { id });
    cluster.exchange(1);
    let layer = &mut cluster.0[0];
    taken(layer);
    let (id, _) = asked(layer).expect("that it is primary");
    let message = Delivery::Passed { next: 10 };
    layer.engine_mut().deliveries.push_back(message);
    assert_eq!(taken(layer), [] as [Bytes; 0], "the report comes first");
    let (due, _) = layer.next_timer().expect("it does not wait for ever");
    assert!(
        due > Time(500_000_000) && due < Time(2_000_000_000),
        "{due:?}"
    );
    layer.handle(due, Input::Timer);
    assert!(layer.next_timer().is_none_or(|(next, _)| next > due));
    assert_eq!(layer.poll_delivery(), Some(Delivery::Passed { next: 10 }));
    layer.handle(due, Input::Persisted { id });
    assert_eq!(layer.poll_delivery(), Some(Delivery::Primary(ring(5))));
}

#[test]
fn a_first_record_is_what_a_node_without_one_knows() {
    let record = |first: &[u16]| Knowledge::from_record(&super::first_record(&nodes(first)));
    assert_eq!(record(&[1, 2]), Some(Knowledge::first(&nodes(&[1, 2]))));
    assert_eq!(record(&[]), Some(Knowledge::default()));
}

#[test]
fn nothing_of_the_layer_is_larger_than_it_says() {
    let all: Vec<u16> = (1..=128).collect();
    let sessions: Vec<Session> = (0..=64).map(|n| session(100 + n, &all)).collect();
    let attempts: Vec<&Session> = sessions[1..].iter().collect();
    let vote = Own::Vote(ring(u64::MAX), known(&sessions[0], &attempts));
    assert_eq!(vote.encode().len(), super::OWN_BYTES);
    assert_eq!(wrap(u64::MAX, b"").len(), super::HEADER_BYTES);
}

#[test]
fn the_application_does_not_see_the_layers_messages_and_requests() {
    let mut cluster = Cluster::new(&[1], &dynamic(&[1, 2, 3]));
    cluster.0[0].engine_mut().full = true;
    cluster.configure(5);
    let layer = &mut cluster.0[0];
    assert_eq!(layer.engine().submitted.len(), 0);
    layer.engine_mut().full = false;
    layer.handle(Time(2), Input::Timer);
    assert_eq!(
        layer.engine().submitted.len(),
        1,
        "submitted when there was room"
    );
    let counter = layer.submit(Time(2), Service::Agreed, b"mine");
    assert_eq!(counter, Ok(1));
    for counter in [1, 2] {
        let originated = Output::Originated {
            counter,
            seq: counter,
            index: 0,
        };
        layer.engine_mut().outputs.push_back(originated);
    }
    let persist = Output::Persist {
        id: PersistId(70),
        records: Vec::new(),
    };
    layer.engine_mut().outputs.push_back(persist);
    let (counter, seq, index) = (1, 2, 0);
    let originated = Output::Originated {
        counter,
        seq,
        index,
    };
    assert_eq!(layer.poll_output(), Some(originated));
    assert!(matches!(
        layer.poll_output(),
        Some(Output::Persist {
            id: PersistId(1),
            ..
        })
    ));
    layer.handle(Time(3), Input::Persisted { id: PersistId(1) });
    assert_eq!(layer.engine().persisted, [PersistId(70)]);
}
