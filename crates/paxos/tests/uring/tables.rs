//! The table of elections (`testdata/tables/election.txt`), cell by cell: what a process does about the next configuration
//! when something happens, in each of its states.
//!
//! The process is on node 2 of three; 1 coordinates configuration 1, and 3 follows in the ring.

#[path = "../../../core/tests/table/mod.rs"]
mod table;

use std::sync::Arc;

use rota_core::contract::{Engine, Input, Process, Time};
use rota_paxos as paxos;
use rota_paxos::uring::{Hello, Word};
use rota_paxos::{Ballot, Config};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::rules::{batch_of, second};

const STATES: [&str; 7] = [
    "new",
    "outside",
    "in the ring",
    "following",
    "preparing",
    "accepting",
    "leading",
];

const EVENTS: [&str; 14] = [
    "the predecessor says nothing",
    "the predecessor leaves",
    "the link to the coordinator is gone",
    "a newer configuration comes",
    "an old configuration comes",
    "a configuration of another foundation comes",
    "it is asked to promise",
    "it is asked to accept",
    "an acceptor promises",
    "an acceptor promises, and has accepted something",
    "an acceptor accepts",
    "an acceptor refuses",
    "a process wants to join",
    "its log fails",
];

/// The process, and how much of what it has said was looked at.
struct Cell {
    alone: Alone,
    seen: usize,
}

fn ballot(count: u64, node: u16) -> Ballot {
    let by = process(node, 1);
    Ballot { count, by }
}

fn config(alone: &Alone, number: u64, coordinator: u16, nodes: &[u16]) -> Arc<Config> {
    let ring: Vec<Process> = nodes.iter().map(|node| process(*node, 1)).collect();
    Arc::new(Config {
        number,
        coordinator: process(coordinator, 1),
        ring,
        ..(*alone.config(number)).clone()
    })
}

fn know(alone: &mut Alone, config: Arc<Config>) {
    let founded = config.founded;
    alone.hear(3, Word::Known(config).encode(founded));
    alone.write_all();
}

/// Time passes, with all timers.
fn wait(alone: &mut Alone, nanos: u64) {
    let end = alone.now.after(nanos);
    while let Some((at, _)) = alone.engine.next_timer().filter(|(at, _)| *at <= end) {
        alone.now = alone.now.max(at);
        alone.tell(Input::Timer);
        alone.write_all();
    }
    alone.now = end;
}

fn stand(alone: &mut Alone) {
    alone.hear(1, Word::Leaving.encode(FOUNDED));
    let patience = settings().patience;
    for _ in 0..100 {
        if asked(alone).is_some() {
            return;
        }
        wait(alone, patience.retry / 4);
    }
    panic!("it does not stand");
}

/// What it has asked last about the configuration after its own.
fn asked(alone: &Alone) -> Option<paxos::Word<Arc<Config>>> {
    let next = alone.engine.number() + 1;
    alone.said.iter().rev().find_map(|word| match word {
        Word::Ask(number, asked) if *number == next => Some(asked.clone()),
        _ => None,
    })
}

/// The ballot with which it stands; another one if it does not.
fn its_ballot(alone: &Alone) -> Ballot {
    match asked(alone) {
        Some(paxos::Word::Prepare(ballot) | paxos::Word::Accept(ballot, _)) => ballot,
        _ => ballot(1, 2),
    }
}

fn answer(alone: &mut Alone, word: paxos::Word<Arc<Config>>) {
    let number = alone.engine.number() + 1;
    let answer = Word::Answer(number, acceptor(3), word);
    alone.hear(3, answer.encode(FOUNDED));
    alone.write_all();
}

fn ask(alone: &mut Alone, word: paxos::Word<Arc<Config>>) {
    let number = alone.engine.number() + 1;
    alone.hear(3, Word::Ask(number, word).encode(FOUNDED));
    alone.write_all();
}

fn in_state(state: &str) -> Cell {
    let alone = match state {
        "new" => {
            let mut alone = Alone::new(process(2, 1), Vec::new());
            alone.link(process(1, 1));
            alone.link(process(3, 1));
            alone
        }
        "outside" => {
            let mut alone = in_state("new").alone;
            let outside = config(&alone, 1, 1, &[1, 3]);
            know(&mut alone, outside);
            alone
        }
        "in the ring" => {
            let mut alone = second();
            alone.write_all();
            alone
        }
        "following" => {
            let mut alone = in_state("in the ring").alone;
            let epoch = alone.follow().epoch;
            batch_of(&mut alone, epoch, 1, |batch| batch.skip(1));
            alone.write_all();
            assert!(alone.engine.is_operational());
            alone
        }
        "preparing" => {
            let mut alone = in_state("following").alone;
            stand(&mut alone);
            alone
        }
        "accepting" => {
            let mut alone = in_state("preparing").alone;
            let promise = paxos::Word::Promise(its_ballot(&alone), None);
            answer(&mut alone, promise);
            assert!(matches!(asked(&alone), Some(paxos::Word::Accept(..))));
            alone
        }
        _ => {
            let mut alone = in_state("following").alone;
            let next = config(&alone, 2, 2, &[2, 3]);
            know(&mut alone, next);
            alone
        }
    };
    let seen = alone.said.len();
    Cell { alone, seen }
}

fn happens(alone: &mut Alone, event: &str) {
    let patience = settings().patience;
    let number = alone.engine.number();
    match event {
        "the predecessor says nothing" => wait(alone, 2 * patience.silence),
        "the predecessor leaves" => {
            let node = if number == 2 { 3 } else { 1 };
            alone.hear(node, Word::Leaving.encode(FOUNDED));
            wait(alone, patience.retry / 8);
        }
        "the link to the coordinator is gone" => {
            alone.unlink(1);
            wait(alone, 2 * patience.link);
        }
        "a newer configuration comes" => {
            let newer = config(alone, number + 1, 1, &[1, 2, 3]);
            know(alone, newer);
        }
        "an old configuration comes" => {
            // Where there is none yet, it is the first.
            let old = config(alone, number.max(1), 3, &[2, 3]);
            know(alone, old);
        }
        "a configuration of another foundation comes" => {
            let mut other = (*config(alone, number + 5, 3, &[2, 3])).clone();
            other.founded = FOUNDED + 1;
            know(alone, Arc::new(other));
        }
        "it is asked to promise" => ask(alone, paxos::Word::Prepare(ballot(50, 3))),
        "it is asked to accept" => {
            let wanted = config(alone, number + 1, 3, &[2, 3]);
            ask(alone, paxos::Word::Accept(ballot(50, 3), wanted));
        }
        "an acceptor promises" => {
            let promise = paxos::Word::Promise(its_ballot(alone), None);
            answer(alone, promise);
        }
        "an acceptor promises, and has accepted something" => {
            let accepted = (ballot(1, 3), config(alone, number + 1, 3, &[2, 3]));
            let promise = paxos::Word::Promise(its_ballot(alone), Some(accepted));
            answer(alone, promise);
        }
        "an acceptor accepts" => {
            let accepted = paxos::Word::Accepted(its_ballot(alone));
            answer(alone, accepted);
        }
        "an acceptor refuses" => {
            let refused = paxos::Word::Refused(its_ballot(alone), ballot(70, 3));
            answer(alone, refused);
            wait(alone, 8 * patience.retry);
        }
        "a process wants to join" => {
            alone.link(process(4, 1));
            let hello = Word::Hello(Hello {
                number,
                acceptor: None,
                complete: 0,
                joins: true,
            });
            alone.hear(4, hello.encode(FOUNDED));
            wait(alone, patience.retry / 4);
        }
        _ => {
            // Something that has to be written first.
            let promise = paxos::Word::Prepare(ballot(90, 3));
            let number = number + 1;
            alone.hear(3, Word::Ask(number, promise).encode(FOUNDED));
            alone.fail();
        }
    }
    alone.write_all();
}

/// The state it is in now.
fn state_of(alone: &Alone) -> String {
    let me = process(2, 1);
    let Some(config) = alone.engine.config() else {
        return "new".to_owned();
    };
    let number = config.number;
    let place = if !config.ring.contains(&me) {
        "outside"
    } else if config.coordinator == me {
        "leading"
    } else if alone.engine.is_operational() {
        "following"
    } else {
        "in the ring"
    };
    let stands = match asked(alone) {
        Some(paxos::Word::Prepare(_)) => ", preparing",
        Some(paxos::Word::Accept(..)) => ", accepting",
        _ => "",
    };
    format!("{place} ({number}){stands}")
}

/// A message about configurations in words; `None` for one that is about something else.
fn describe(word: &Word) -> Option<String> {
    let of = |ballot: &Ballot| format!("{}.{}", ballot.count, ballot.by.node);
    Some(match word {
        Word::Hello(hello) if hello.joins => "asks to be taken in".to_owned(),
        Word::Known(config) => format!("tells configuration {}", config.number),
        Word::Ask(_, paxos::Word::Prepare(ballot)) => format!("asks for promises {}", of(ballot)),
        Word::Ask(_, paxos::Word::Accept(ballot, config)) => {
            let nodes: Vec<String> = (config.ring.iter())
                .map(|process| process.node.to_string())
                .collect();
            let coordinator = config.coordinator.node;
            format!(
                "asks to accept {}: ring {}, coordinator {coordinator}",
                of(ballot),
                nodes.join(" ")
            )
        }
        Word::Answer(_, _, paxos::Word::Promise(ballot, _)) => format!("promises {}", of(ballot)),
        Word::Answer(_, _, paxos::Word::Accepted(ballot)) => format!("accepts {}", of(ballot)),
        Word::Answer(_, _, paxos::Word::Refused(..)) => "refuses".to_owned(),
        Word::Prepare(round, _) => format!("begins round {round}"),
        Word::Leaving => "says that it leaves".to_owned(),
        _ => return None,
    })
}

fn cell(event: &str, state: &str) -> String {
    let Cell { mut alone, seen } = in_state(state);
    happens(&mut alone, event);
    let mut effects: Vec<String> = Vec::new();
    for effect in alone.said[seen..].iter().filter_map(describe) {
        if !effects.contains(&effect) {
            effects.push(effect);
        }
    }
    let effects = match effects.is_empty() {
        true => "nothing".to_owned(),
        false => effects.join(", "),
    };
    format!("{}; {effects}", state_of(&alone))
}

#[test]
fn every_cell_of_elections_is_as_written() {
    table::check(
        env!("CARGO_MANIFEST_DIR"),
        "election",
        (&EVENTS, &STATES),
        cell,
    );
}

/// Times are those of a clock that begins at 1.
#[test]
fn states_are_what_they_are_called() {
    for state in STATES {
        let Cell { alone, .. } = in_state(state);
        assert!(alone.now >= Time(1));
        let now = state_of(&alone);
        let is_it = now.contains(state) || state == "new" && now == "new";
        assert!(is_it, "{state}: {now}");
    }
}
