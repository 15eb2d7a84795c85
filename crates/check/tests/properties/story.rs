//! Traces, written as stories.
//!
//! ```text
//! form 5ab            a and b start alone and go to ring 5ab: number 5, representative a
//! a: ?a1 !a1 a1       a accepts its first message, gives it the next place, delivers it
//! b: a1 5ab>7b:b 7b   b delivers it, then its transitional configuration {b}, then its ring 7b
//! a: crash            or leave, or start
//! a: primary          a reports its configuration as primary; or another one: primary/5ab
//! quiet               all is at rest
//! ```
//!
//! Processes are letters; a capital is the node's second life. A message is agreed unless a letter says
//! otherwise (`!a1s`: r, f, c, g or s), which counts for its deliveries too. `@9` sets a place,
//! `#ff` another payload, `/5ab` another configuration than the current one. `5ab=ac` is the
//! configuration 5ab, listed as {a, c}. [`super::clients`] tells the events of clients.

use std::collections::BTreeMap;

use super::clients;
use rota_check::event::{Conf, Event, EventKind, Placed, Sent};
use rota_check::trace::Trace;
use rota_check::{Options, Report, check_all};
use rota_core::contract::ConfigurationKind::{self, Regular, Transitional};
use rota_core::contract::{Incarnation, MessageId, NodeId, Process, RingId, Service, Time};

#[derive(Default)]
struct Teller {
    events: Vec<Event>,
    quiet: bool,
    current: BTreeMap<Process, ConfigurationKind>,
    /// Of messages: place and service.
    placed: BTreeMap<MessageId, (u64, Service)>,
    last: BTreeMap<RingId, u64>,
    posts: clients::Posts,
}

/// The events of a story, and whether all is at rest in the end.
pub fn events(text: &str) -> (Vec<Event>, bool) {
    let mut teller = Teller::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line == "quiet" {
            teller.quiet = true;
        } else if let Some(ring) = line.strip_prefix("form ") {
            teller.form(ring);
        } else {
            let (who, what) = line.split_once(": ").expect("who: what");
            for word in what.split_whitespace() {
                if who.len() == 2 {
                    let client = clients::event(&mut teller.posts, who, word);
                    teller.note(process(who), EventKind::Client(client));
                } else {
                    teller.say(process(who), word);
                }
            }
        }
    }
    (teller.events, teller.quiet)
}

pub fn trace(text: &str) -> Trace {
    let (events, quiet) = events(text);
    let mut trace: Trace = events.iter().collect();
    if quiet {
        trace.quiesce();
    }
    trace
}

pub fn report(text: &str) -> Report {
    check_all(&trace(text), &Options::default())
}

/// The properties that a story violates.
pub fn broken(text: &str) -> Vec<&'static str> {
    names(&report(text))
}

pub fn names(report: &Report) -> Vec<&'static str> {
    let red = report.verdicts.iter().filter(|v| v.violations > 0);
    red.map(|verdict| verdict.property).collect()
}

/// The details of a story's violations of one property, one a line.
pub fn details(property: &str, text: &str) -> String {
    let report = report(text);
    let mine = report.violations.iter().filter(|v| v.property == property);
    let details: Vec<&str> = mine.map(|violation| violation.detail.as_str()).collect();
    details.join("\n")
}

/// A legal story, in which a property had something to say.
#[track_caller]
pub fn legal(property: &str, text: &str) {
    let report = report(text);
    assert_eq!(report.violations, [], "{text}");
    let verdict = report.verdicts.iter().find(|v| v.property == property);
    assert!(verdict.expect("a property").checked > 0, "vacuous: {text}");
}

pub fn process(name: &str) -> Process {
    let letter = name.chars().next().expect("a letter");
    let node = letter.to_ascii_lowercase() as u16 - 'a' as u16 + 1;
    Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(if letter.is_uppercase() { 2 } else { 1 }),
    }
}

pub fn members(names: &str) -> Vec<Process> {
    let letters = names.char_indices();
    letters
        .map(|(at, letter)| process(&names[at..at + letter.len_utf8()]))
        .collect()
}

/// `5ab`: the ring and its members.
fn ring(name: &str) -> (RingId, Vec<Process>) {
    let digits = name.find(|c: char| !c.is_ascii_digit()).expect("members");
    let members = members(&name[digits..]);
    let id = RingId {
        ring_seq: name[..digits].parse().expect("a number"),
        rep: members[0].node,
        incarnation: members[0].incarnation,
    };
    (id, members)
}

pub fn conf(word: &str) -> Conf {
    if let Some((id, listed)) = word.split_once('=') {
        return Conf {
            id: conf(id).id,
            members: members(listed),
        };
    }
    let (rings, listed) = word.split_once(':').unwrap_or((word, ""));
    match rings.split_once('>') {
        None => {
            let (id, members) = ring(rings);
            Conf {
                id: Regular(id),
                members,
            }
        }
        Some((old, new)) => Conf {
            id: Transitional {
                old: ring(old).0,
                new: ring(new).0,
            },
            members: members(listed),
        },
    }
}

/// The service that a letter stands for.
pub fn service(letter: Option<char>) -> Option<Service> {
    Some(match letter? {
        'r' => Service::Reliable,
        'f' => Service::Fifo,
        'c' => Service::Causal,
        's' => Service::Safe,
        'g' => Service::Agreed,
        _ => return None,
    })
}

impl Teller {
    fn form(&mut self, name: &str) {
        for who in name.chars().filter(|c| !c.is_ascii_digit()) {
            let alone = format!("1{who}");
            let between = format!("{alone}>{name}:{who}");
            for word in ["start", &alone, &between, name] {
                self.say(process(&who.to_string()), word);
            }
        }
    }

    fn say(&mut self, who: Process, word: &str) {
        let kind = match word {
            "start" => EventKind::Start,
            "crash" => EventKind::Crash,
            "leave" => EventKind::Leave,
            "primary" => EventKind::Primary(regular(self.current[&who])),
            _ if word.starts_with("primary/") => EventKind::Primary(ring(&word[8..]).0),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let conf = conf(word);
                self.current.insert(who, conf.id);
                EventKind::Configuration(conf)
            }
            _ => self.message(who, word),
        };
        self.note(who, kind);
    }

    fn note(&mut self, who: Process, kind: EventKind) {
        self.events.push(Event {
            time: Time(self.events.len() as u64),
            process: who,
            kind,
        });
    }

    fn message(&mut self, who: Process, word: &str) -> EventKind {
        let (word, named) = word.split_once('/').unwrap_or((word, ""));
        let (word, hash) = word.split_once('#').unwrap_or((word, "0"));
        let (word, place) = word.split_once('@').unwrap_or((word, ""));
        let name = word.trim_start_matches(['?', '!']);
        let number = name[1..].trim_end_matches(|c: char| c.is_alphabetic());
        let message = MessageId {
            process: process(name),
            counter: number.parse().expect("a counter"),
        };
        let hash = u64::from_str_radix(hash, 16).expect("hexadecimal");
        let service = service(name[1 + number.len()..].chars().next());
        let known = self.placed.get(&message).copied();
        let service = service.or(known.map(|(_, service)| service));
        let service = service.unwrap_or(Service::Agreed);
        if word.starts_with('?') {
            return EventKind::Send(Sent {
                message,
                service,
                hash,
            });
        }
        let nowhere = || conf("0a").id;
        let conf = match named {
            "" => self.current.get(&who).copied().unwrap_or_else(nowhere),
            named => conf(named).id,
        };
        let originates = word.starts_with('!');
        let position = match (place, known) {
            ("", Some((position, _))) if !originates => position,
            ("", _) => self.last.get(&regular(conf)).copied().unwrap_or(0) + 1,
            (place, _) => place.parse().expect("a place"),
        };
        if originates {
            self.last.insert(regular(conf), position);
            self.placed.insert(message, (position, service));
        }
        let placed = Placed {
            message,
            conf,
            position,
            service,
            hash,
        };
        if originates {
            EventKind::Originated(placed)
        } else {
            EventKind::Delivered(placed)
        }
    }
}

fn regular(id: ConfigurationKind) -> RingId {
    rota_check::event::regular_of(id)
}
