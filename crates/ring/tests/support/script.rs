//! The language of the scenarios: a command, `----`, and the output of the command.
//!
//! | command | does |
//! |---|---|
//! | `ring 3 personal=5 accelerated=3 …` | makes the members A, B, C |
//! | `submit A 5 [safe] [size=100]` | submits 5 messages at A |
//! | `form` | lets the ring form, up to A's first visit |
//! | `data B [1 2 5]` | hands B the data waiting for it, or only these packets |
//! | `token B` | hands B the token waiting for it |
//! | `round` | hands all members all data and the token, once round from the member that has it next |
//! | `drop B 1 2` | loses packets on their way to B; `drop B token` the token |
//! | `duplicate B` | doubles the token on its way to B |
//! | `block A 1`, `unblock A` | A's socket takes one more burst and is full, or takes again |
//! | `wait 5ms` | lets time pass, with all timers on its way |
//! | `state` | prints each member's aru, safe line, and class to read first |
//! | `retransmissions` | prints the number of packets that each member has sent again |

use bytes::Bytes;
use rota_core::contract::{Class, Engine, Input, NodeId, Service, Time};
use rota_ring::wire::{self, Packet};
use rota_ring::{PriorityMethod, RingConfig};
use std::fmt::Write;

use super::ring::{Ring, name};

/// Runs scripts on a ring of its own.
#[derive(Default)]
pub struct Interpreter {
    ring: Option<Ring>,
}

impl Interpreter {
    /// Runs one command and answers with what it prints.
    pub fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (command, rest) = words.split_first().expect("a command");
        if *command == "ring" {
            self.ring = Some(Ring::new(&config(rest)));
            return "ok\n".into();
        }
        let ring = self.ring.as_mut().expect("a script starts with `ring`");
        match *command {
            "submit" => submit(ring, rest),
            "form" => ring.form(),
            "data" => data(ring, member(rest[0]), &numbers(&rest[1..])),
            "token" => token(ring, member(rest[0])),
            "round" => round(ring),
            "drop" => drop_packets(ring, rest),
            "duplicate" => duplicate(ring, member(rest[0])),
            "block" => block(ring, member(rest[0]), rest[1].parse().ok()),
            "unblock" => block(ring, member(rest[0]), None),
            "wait" => wait(ring, rest[0]),
            "state" => state(ring),
            "retransmissions" => retransmissions(ring),
            other => panic!("there is no command `{other}`"),
        }
    }
}

fn member(word: &str) -> usize {
    usize::from(word.as_bytes()[0] - b'A')
}

fn numbers(words: &[&str]) -> Vec<u64> {
    words
        .iter()
        .map(|word| word.parse().expect("a packet's number"))
        .collect()
}

fn config(words: &[&str]) -> RingConfig {
    let nodes: u16 = words[0].parse().expect("how many members");
    let members = (1..=nodes).filter_map(NodeId::new).collect();
    let mut config = RingConfig::new(1, members);
    for word in &words[1..] {
        let (key, value) = word.split_once('=').unwrap_or((word, "0"));
        let value: u32 = value.parse().expect("a number");
        match key {
            "personal" => config.windows.personal = value,
            "accelerated" => config.windows.accelerated = value,
            "global" => config.windows.global = value,
            "outstanding" => config.windows.outstanding = value,
            "original" => config = config.original(),
            "method" if value == 1 => config.priority_method = PriorityMethod::First,
            "method" => config.priority_method = PriorityMethod::Second,
            other => panic!("there is no setting `{other}`"),
        }
    }
    config.windows.accelerated = config.windows.accelerated.min(config.windows.personal);
    config
}

/// Messages are as large as a packet, unless a script says otherwise.
fn submit(ring: &mut Ring, words: &[&str]) -> String {
    let (index, count) = (member(words[0]), words[1].parse().expect("how many"));
    let (mut service, mut size) = (Service::Agreed, 1400);
    for word in &words[2..] {
        match *word {
            "reliable" => service = Service::Reliable,
            "fifo" => service = Service::Fifo,
            "causal" => service = Service::Causal,
            "agreed" => service = Service::Agreed,
            "safe" => service = Service::Safe,
            other => {
                let number = other.strip_prefix("size=").expect("size=…");
                size = number.parse().expect("a size");
            }
        }
    }
    for _ in 0..count {
        if let Err(error) = ring.submit(index, service, size) {
            return format!("{error}\n");
        }
    }
    ring.settle(index)
}

fn seq_of(datagram: &Bytes) -> Option<u64> {
    match wire::decode(datagram.clone()) {
        Ok(Packet::Data(data)) => Some(data.seq),
        _ => None,
    }
}

fn data(ring: &mut Ring, index: usize, wanted: &[u64]) -> String {
    let waiting = std::mem::take(&mut ring.members[index].data);
    let is_wanted = |d: &Bytes| wanted.is_empty() || seq_of(d).is_some_and(|s| wanted.contains(&s));
    let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_wanted);
    ring.members[index].data = later;
    for datagram in now {
        ring.hand_in(index, Class::Data, datagram);
    }
    ring.settle(index)
}

fn token(ring: &mut Ring, index: usize) -> String {
    if ring.members[index].tokens.is_empty() {
        return "no token is on its way there\n".into();
    }
    let datagram = ring.members[index].tokens.remove(0);
    ring.hand_in(index, Class::Token, datagram);
    ring.settle(index)
}

fn round(ring: &mut Ring) -> String {
    let mut report = String::new();
    let count = ring.members.len();
    let holder = (0..count).find(|&index| !ring.members[index].tokens.is_empty());
    let Some(holder) = holder else {
        return "no token is on its way\n".into();
    };
    for step in 0..count {
        let index = (holder + step) % count;
        report += &data(ring, index, &[]);
        report += &token(ring, index);
    }
    report
}

fn drop_packets(ring: &mut Ring, words: &[&str]) -> String {
    let index = member(words[0]);
    if words[1] == "token" {
        ring.members[index].tokens.clear();
        return "ok\n".into();
    }
    let lost = numbers(&words[1..]);
    let before = ring.members[index].data.len();
    ring.members[index]
        .data
        .retain(|d| !seq_of(d).is_some_and(|s| lost.contains(&s)));
    format!("{} lost\n", before - ring.members[index].data.len())
}

fn duplicate(ring: &mut Ring, index: usize) -> String {
    let copies = ring.members[index].tokens.clone();
    ring.members[index].tokens.extend(copies);
    "ok\n".into()
}

fn block(ring: &mut Ring, index: usize, room: Option<usize>) -> String {
    ring.members[index].room = room;
    let report = ring.settle(index);
    if report.is_empty() {
        "ok\n".into()
    } else {
        report
    }
}

fn wait(ring: &mut Ring, word: &str) -> String {
    let millis: u64 = word
        .strip_suffix("ms")
        .and_then(|n| n.parse().ok())
        .expect("…ms");
    let end = ring.now.after(millis * 1_000_000);
    let mut report = String::new();
    loop {
        let next = |index: usize, ring: &Ring| {
            let (at, reason) = ring.members[index].engine.next_timer()?;
            (at <= end).then_some((at.max(ring.now), index, reason))
        };
        let due = (0..ring.members.len())
            .filter_map(|index| next(index, ring))
            .min();
        let Some((at, index, reason)) = due else {
            break;
        };
        ring.now = at.max(Time(ring.now.0));
        ring.members[index].engine.handle(ring.now, Input::Timer);
        let done = ring.settle(index);
        let (who, when) = (name(index), ring.now.0 / 1_000_000);
        writeln!(report, "{when}ms {who} {reason:?}").expect("a string");
        report += &done;
    }
    ring.now = end;
    report
}

fn state(ring: &Ring) -> String {
    let mut report = String::new();
    for (index, member) in ring.members.iter().enumerate() {
        let engine = member.engine.get();
        let (who, reading) = (name(index), engine.reading());
        let Some(ordering) = engine.ordering() else {
            continue;
        };
        let (aru, safe) = (ordering.aru(), ordering.safe_line());
        writeln!(
            report,
            "{who} has {aru}, safe {safe}, reads {reading:?} first"
        )
        .expect("a string");
    }
    report
}

fn retransmissions(ring: &Ring) -> String {
    let count = |index: usize| ring.members[index].engine.get().counters().retransmissions;
    let counts: Vec<_> = (0..ring.members.len())
        .map(|i| format!("{} {}", name(i), count(i)))
        .collect();
    counts.join(", ") + "\n"
}
