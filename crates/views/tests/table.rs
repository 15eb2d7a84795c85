//! The table of views (`testdata/tables/views.txt`), cell by cell: what a process does on its way from one view to the next
//! when something happens, in each of its states.
//!
//! The process is on node 1 of three, in configurations with node 2 or alone. The ring below is the test; the words of
//! node 2 are those of another engine.

#[path = "../../core/tests/table/mod.rs"]
mod table;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rota_core::contract::{
    Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation, Input, Message,
    MessageId, NodeId, Output, Process, RingId, Service, StartState, Status, SubmitError, Time,
    TimerReason,
};
use rota_core::primary::Rule;
use rota_ring::RingConfig;
use rota_views::fastcast::{FastCast, FastConfig};
use rota_views::{Backlog, ViewEngine};

const STATES: [&str; 7] = [
    "between",
    "no majority",
    "telling",
    "sending",
    "in a view",
    "excluded",
    "left",
];

const EVENTS: [&str; 12] = [
    "a configuration with node 2 comes",
    "a configuration of its own comes",
    "the configuration ends",
    "node 2 tells what it holds",
    "node 2 has sent everything",
    "its own words get their places",
    "a word of an earlier configuration comes",
    "a word that is none comes",
    "the application submits a message",
    "time passes",
    "the application hangs, and takes again",
    "it leaves",
];

/// The place of the lowest byte of a configuration's number in a word.
const RING_SEQ: usize = 2;

fn process(id: u16) -> Process {
    Process {
        node: NodeId::new(id).expect("not 0"),
        incarnation: Incarnation(7),
    }
}

#[derive(Default)]
struct Inner {
    deliveries: VecDeque<Delivery>,
    submitted: VecDeque<(u64, Bytes)>,
    counter: u64,
}

/// The ring below an engine.
#[derive(Clone, Default)]
struct Below(Rc<RefCell<Inner>>);

impl Engine for Below {
    fn handle(&mut self, _: Time, _: Input) {}

    fn submit(&mut self, _: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let mut inner = self.0.borrow_mut();
        inner.counter += 1;
        let submitted = (inner.counter, Bytes::copy_from_slice(payload));
        inner.submitted.push_back(submitted);
        Ok(inner.counter)
    }

    fn poll_output(&mut self) -> Option<Output> {
        None
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.0.borrow_mut().deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn status(&self) -> Status {
        Status {
            state: "between".to_owned(),
            ..Status::default()
        }
    }
}

struct Member {
    me: Process,
    below: Below,
    engine: ViewEngine<FastCast, Below>,
    now: Time,
    has_left: bool,
    told: Vec<String>,
}

impl Member {
    fn new(id: u16) -> Self {
        let nodes: Vec<NodeId> = (1..=3).map(|id| process(id).node).collect();
        let ring = RingConfig::new(1, nodes.clone());
        let config = FastConfig::beside(&ring);
        let backlog = Backlog::new(config.frame_bytes(), 1000, 10_000);
        let below = Below::default();
        let rule = Rule::StaticMajority { configured: nodes };
        let engine = ViewEngine::new(below.clone(), rule, FastCast::new(config), backlog);
        let mut member = Self {
            me: process(id),
            below,
            engine,
            now: Time(1),
            has_left: false,
            told: Vec::new(),
        };
        let start = StartState {
            me: member.me,
            seed: 1,
            records: Vec::new(),
            lost_some: false,
        };
        member.engine.handle(member.now, Input::Start(start));
        member
    }

    /// The ring delivers something, and the application takes all that comes of it.
    fn deliver(&mut self, delivery: Delivery) {
        self.below.0.borrow_mut().deliveries.push_back(delivery);
        self.turn();
    }

    fn turn(&mut self) {
        for _ in 0..3 {
            self.now = self.now.after(1000);
            self.engine.handle(self.now, Input::Timer);
            while let Some(delivery) = self.engine.poll_delivery() {
                self.told.extend(describe(&delivery));
            }
        }
    }

    fn message(&mut self, (from, counter, payload): (Process, u64, Bytes)) {
        self.deliver(Delivery::Message(Message {
            id: MessageId {
                process: from,
                counter,
            },
            service: Service::Safe,
            seq: counter,
            index: 0,
            payload,
        }));
    }

    /// The next word that it has given to its ring.
    fn word(&self) -> Option<(Process, u64, Bytes)> {
        let (counter, payload) = self.below.0.borrow_mut().submitted.pop_front()?;
        Some((self.me, counter, payload))
    }
}

fn describe(delivery: &Delivery) -> Option<String> {
    let nodes = |members: &[Process]| {
        let nodes: Vec<String> = (members.iter())
            .map(|member| member.node.to_string())
            .collect();
        nodes.join(" ")
    };
    Some(match delivery {
        Delivery::Configuration(configuration) => {
            let members = nodes(&configuration.members);
            match configuration.kind {
                ConfigurationKind::Regular(_) => format!("delivers view {members}"),
                ConfigurationKind::Transitional { .. } => format!("delivers transition {members}"),
            }
        }
        Delivery::Message(_) => "delivers the message".to_owned(),
        Delivery::Primary(_) => return None,
        Delivery::Excluded(_) => "tells that it is in no view".to_owned(),
        Delivery::Missed { count, .. } => format!("tells that {count} positions are missed"),
        Delivery::Passed { .. } | Delivery::Notice { .. } => return None,
    })
}

/// The word in a message to the ring: behind the number that the layer for primaries puts before it.
fn name_of(payload: &Bytes) -> &'static str {
    match payload[2] {
        1 => "RECOVER",
        2 => "PAYLOAD",
        3 => "END_RECOVERY",
        _ => "PART",
    }
}

fn ring(ring_seq: u64) -> RingId {
    let Process { node, incarnation } = process(1);
    RingId {
        ring_seq,
        rep: node,
        incarnation,
    }
}

/// The process that is looked at, node 2, and the configuration.
struct Cell {
    one: Member,
    two: Member,
    ring_seq: u64,
}

impl Cell {
    fn new() -> Self {
        Self {
            one: Member::new(1),
            two: Member::new(2),
            ring_seq: 0,
        }
    }

    /// The configuration ends; these go on together.
    fn end(&mut self, along: &[u16]) {
        let (old, new) = (ring(self.ring_seq), ring(self.ring_seq + 1));
        if self.ring_seq > 0 {
            let kind = ConfigurationKind::Transitional { old, new };
            self.configure(kind, along);
        }
    }

    fn configure(&mut self, kind: ConfigurationKind, ids: &[u16]) {
        let members: Vec<Process> = ids.iter().map(|id| process(*id)).collect();
        for id in ids {
            let member = if *id == 1 {
                &mut self.one
            } else {
                &mut self.two
            };
            member.deliver(Delivery::Configuration(Configuration {
                kind,
                members: members.clone(),
            }));
        }
    }

    fn begin(&mut self, ids: &[u16]) {
        self.end(ids);
        self.ring_seq += 1;
        self.configure(ConfigurationKind::Regular(ring(self.ring_seq)), ids);
    }

    /// A word of a process gets its place, at both.
    fn place(&mut self, word: &(Process, u64, Bytes)) {
        self.one.message(word.clone());
        self.two.message(word.clone());
    }

    /// The next word of node 2, if that is its name.
    fn hear(&mut self, name: &str) -> bool {
        let next = self.two.below.0.borrow().submitted.front().cloned();
        if next.is_none_or(|(_, payload)| name_of(&payload) != name) {
            return false;
        }
        let word = self.two.word().expect("it was there");
        self.place(&word);
        true
    }

    /// All words of the process get their places.
    fn own(&mut self) -> bool {
        let mut any = false;
        while let Some(word) = self.one.word() {
            self.place(&word);
            any = true;
        }
        any
    }
}

fn in_state(state: &str) -> Cell {
    let mut cell = Cell::new();
    match state {
        "between" => {}
        "no majority" => cell.begin(&[1]),
        "telling" => cell.begin(&[1, 2]),
        "sending" => {
            cell = in_state("telling");
            cell.own();
            assert!(cell.hear("RECOVER"));
        }
        "in a view" => {
            cell = in_state("sending");
            cell.own();
            assert!(cell.hear("END_RECOVERY"));
            assert!(cell.one.engine.view().is_some());
        }
        "excluded" => {
            cell = in_state("in a view");
            cell.begin(&[1]);
            cell.one.turn();
        }
        _ => {
            cell = in_state("in a view");
            cell.one.engine.leave(cell.one.now);
            cell.one.has_left = true;
        }
    }
    cell.one.told.clear();
    cell
}

const CANNOT: &str = "(cannot happen)";

fn happens(cell: &mut Cell, event: &str) -> Option<String> {
    match event {
        "a configuration with node 2 comes" => cell.begin(&[1, 2]),
        "a configuration of its own comes" => cell.begin(&[1]),
        "the configuration ends" => {
            if cell.ring_seq == 0 {
                return Some(CANNOT.to_owned());
            }
            cell.end(&[1]);
        }
        "node 2 tells what it holds" => {
            if !cell.hear("RECOVER") {
                return Some(CANNOT.to_owned());
            }
        }
        "node 2 has sent everything" => {
            if !cell.hear("END_RECOVERY") {
                return Some(CANNOT.to_owned());
            }
        }
        "its own words get their places" => {
            if !cell.own() {
                return Some(CANNOT.to_owned());
            }
        }
        "a word of an earlier configuration comes" => {
            // As the process tells it, but for the number of the configuration.
            let told = in_state("telling").one.word().expect("it tells");
            let (from, counter, mut bytes) = (told.0, told.1, told.2.to_vec());
            bytes[RING_SEQ] -= 1;
            cell.one.message((from, counter, bytes.into()));
        }
        "a word that is none comes" => {
            let none = Bytes::from_static(&[1, 99, 99]);
            cell.one.message((process(1), 1, none));
        }
        "the application submits a message" => {
            let submitted = cell.one.engine.submit(cell.one.now, Service::Safe, b"x");
            let taken = submitted.map_or_else(|error| error.to_string(), |_| "takes it".to_owned());
            cell.one.told.push(taken);
            cell.one.turn();
        }
        "time passes" => {
            cell.one.now = cell.one.now.after(1_000_000_000);
            cell.one.turn();
        }
        "the application hangs, and takes again" => {
            cell.one.engine.application_hangs(cell.one.now, true);
            cell.one.engine.application_hangs(cell.one.now, false);
            cell.one.turn();
        }
        _ => {
            cell.one.engine.leave(cell.one.now);
            cell.one.has_left = true;
            cell.one.turn();
        }
    }
    None
}

fn state_of(member: &Member) -> String {
    if member.has_left {
        return "left".to_owned();
    }
    match member.engine.view() {
        Some(view) => format!("in view {}", view.ring.ring_seq),
        None => member.engine.status().state,
    }
}

fn cell(event: &str, state: &str) -> String {
    let mut cell = in_state(state);
    let words = cell.one.below.0.borrow().submitted.len();
    if let Some(cannot) = happens(&mut cell, event) {
        return cannot;
    }
    let mut effects = std::mem::take(&mut cell.one.told);
    let said = &cell.one.below.0.borrow().submitted;
    // Words that have got their places by now are not among them.
    let new = if event.starts_with("its own") {
        0
    } else {
        words
    };
    effects
        .extend((said.iter().skip(new)).map(|(_, payload)| format!("says {}", name_of(payload))));
    let effects = match effects.is_empty() {
        true => "nothing".to_owned(),
        false => effects.join(", "),
    };
    format!("{}; {effects}", state_of(&cell.one))
}

#[test]
fn every_cell_of_views_is_as_written() {
    table::check(
        env!("CARGO_MANIFEST_DIR"),
        "views",
        (&EVENTS, &STATES),
        cell,
    );
}
