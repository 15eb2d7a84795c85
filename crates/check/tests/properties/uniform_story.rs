//! Traces of engines with one order over primary views, written as stories.
//!
//! ```text
//! ab: 5ab !a1 a1      a and b each install view 5ab and report it as primary, broadcast, deliver
//! a: x7a 9ab          a is excluded, its ring being 7a, and comes to view 9ab
//! a: ~9ab primary/9ab a installs a view, and reports it
//! a: missed@3/1       a has missed what is before position 3, and its messages up to the first are in the order
//! quiet               all is at rest
//! ```
//!
//! Letters are as in [`super::story`]. A message's first delivery gets the next position of all, later ones
//! the same; `@9` sets one. Processes start when they are first named.

use std::collections::{BTreeMap, BTreeSet};

use super::story::{conf, names, process, service};
use rota_check::event::{Event, EventKind, Placed, Sent, regular_of};
use rota_check::trace::Trace;
use rota_check::{Options, Report, UniformCounters, check_uniform};
use rota_core::contract::{ConfigurationKind, MessageId, Process, Service, Time};

/// What the whole checker finds.
pub fn report(text: &str) -> Report {
    let (events, quiet) = events(text);
    let mut trace: Trace = events.iter().collect();
    if quiet {
        trace.quiesce();
    }
    check_uniform(&trace, &Options::default())
}

/// A story that violates a property, and what is said of it.
#[track_caller]
pub fn red(property: &str, text: &str) -> String {
    let report = report(text);
    let mut found = report.violations.iter();
    let found = found.find(|violation| violation.property == property);
    let others = names(&report);
    found
        .unwrap_or_else(|| panic!("{property} not seen, but {others:?}: {text}"))
        .detail
        .clone()
}

/// A legal story, in which a property had something to say.
#[track_caller]
pub fn legal(property: &str, text: &str) -> UniformCounters {
    let report = report(text);
    assert_eq!(report.violations, [], "{text}");
    let verdict = report.verdicts.iter().find(|v| v.property == property);
    assert!(verdict.expect("a property").checked > 0, "vacuous: {text}");
    report.uniform.expect("they are counted")
}

#[derive(Default)]
struct Teller {
    events: Vec<Event>,
    begun: BTreeSet<Process>,
    current: BTreeMap<Process, ConfigurationKind>,
    /// Of messages.
    services: BTreeMap<MessageId, Service>,
    positions: BTreeMap<MessageId, u64>,
    last: u64,
}

/// The events of a story, and whether all is at rest in the end.
pub fn events(text: &str) -> (Vec<Event>, bool) {
    let (mut teller, mut quiet) = (Teller::default(), false);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line == "quiet" {
            quiet = true;
            continue;
        }
        let (who, words) = line.split_once(':').expect("who: what");
        for letter in who.chars() {
            let who = process(&letter.to_string());
            if teller.begun.insert(who) {
                teller.note(who, EventKind::Start);
            }
            for word in words.split_whitespace() {
                teller.say(who, word);
            }
        }
    }
    (teller.events, quiet)
}

impl Teller {
    fn say(&mut self, who: Process, word: &str) {
        let ring = |word: &str| regular_of(conf(word).id);
        match word {
            "start" => self.note(who, EventKind::Start),
            "crash" => self.note(who, EventKind::Crash),
            "leave" => self.note(who, EventKind::Leave),
            _ if word.starts_with("primary/") => {
                self.note(who, EventKind::Primary(ring(&word[8..])));
            }
            _ if word.starts_with("missed@") => {
                let (upto, own) = word[7..].split_once('/').expect("own messages");
                let [upto, own] = [upto, own].map(|number| number.parse().expect("a number"));
                self.note(who, EventKind::Missed { upto, own });
            }
            _ if word.starts_with('x') => self.note(who, EventKind::Excluded(ring(&word[1..]))),
            _ if word.starts_with('~') => self.install(who, &word[1..]),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                self.install(who, word);
                self.note(who, EventKind::Primary(ring(word)));
            }
            _ => self.message(who, word),
        }
    }

    fn install(&mut self, who: Process, word: &str) {
        let conf = conf(word);
        self.current.insert(who, conf.id);
        self.note(who, EventKind::Configuration(conf));
    }

    fn note(&mut self, process: Process, kind: EventKind) {
        self.events.push(Event {
            time: Time(self.events.len() as u64),
            process,
            kind,
        });
    }

    fn message(&mut self, who: Process, word: &str) {
        let (word, named) = word.split_once('/').unwrap_or((word, ""));
        let (word, hash) = word.split_once('#').unwrap_or((word, "0"));
        let (word, place) = word.split_once('@').unwrap_or((word, ""));
        let name = word.trim_start_matches(['?', '!', '=']);
        let number = name[1..].trim_end_matches(|c: char| c.is_alphabetic());
        let message = MessageId {
            process: process(name),
            counter: number.parse().expect("a counter"),
        };
        let hash = u64::from_str_radix(hash, 16).expect("hexadecimal");
        let known = self.services.get(&message).copied();
        let service = service(name[1 + number.len()..].chars().next());
        let service = service.or(known).unwrap_or(Service::Agreed);
        self.services.entry(message).or_insert(service);
        let sent = Sent {
            message,
            service,
            hash,
        };
        let placed = |position, conf| Placed {
            message,
            conf,
            position,
            service,
            hash,
        };
        let nowhere = conf("0a").id;
        let current = self.current.get(&who).copied().unwrap_or(nowhere);
        match word.chars().next() {
            Some('?') => self.note(who, EventKind::Send(sent)),
            Some('!') => self.note(who, EventKind::Broadcast(sent)),
            Some('=') => self.note(who, EventKind::Originated(placed(1, current))),
            _ => {
                let position = self.position(message, place);
                let conf = if named.is_empty() {
                    current
                } else {
                    conf(named).id
                };
                self.note(who, EventKind::Delivered(placed(position, conf)));
            }
        }
    }

    fn position(&mut self, message: MessageId, place: &str) -> u64 {
        let known = self.positions.get(&message).copied();
        let position = place.parse().ok().or(known).unwrap_or(self.last + 1);
        self.positions.entry(message).or_insert(position);
        self.last = self.last.max(position);
        position
    }
}
