//! Judges what was written and seen.

use std::path::{Path, PathBuf};

use rota_check::event::{ClientEvent, Event, EventKind};
use rota_check::trace::Trace;
use rota_check::{Options, Report, Verdict, check_all};
use rota_core::contract::{Process, Time};

use crate::log::{Log, Told, reduced, written};

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Alive,
    Crashed,
    Left,
}

/// The processes of a run, as they were started.
#[derive(Clone, Debug, Default)]
pub struct Run(Vec<(Process, End)>);

impl Run {
    pub fn started(&mut self, process: Process) {
        self.0.push((process, End::Alive));
    }

    fn last(&mut self, node: u16) -> &mut End {
        let mut lives = self.0.iter_mut().rev();
        let last = lives.find(|(process, _)| process.node.get() == node);
        &mut last.expect("it was started").1
    }

    pub fn crashed(&mut self, node: u16) {
        *self.last(node) = End::Crashed;
    }

    pub fn left(&mut self, node: u16) {
        *self.last(node) = End::Left;
    }

    fn is_alive(&self, process: Process) -> bool {
        self.0.contains(&(process, End::Alive))
    }

    fn alive(&self) -> Vec<Process> {
        let alive = self.0.iter().filter(|(_, end)| *end == End::Alive);
        alive.map(|(process, _)| *process).collect()
    }
}

/// How much there was to judge.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub views: u64,
    /// Views with two sets or more.
    pub merges: u64,
    pub transitions: u64,
    pub deliveries: u64,
    /// Times that the daemons that are there told each other of their groups.
    pub exchanges: u64,
    /// Configurations of daemons that came from two or more.
    pub ring_merges: u64,
}

impl Seen {
    /// A run in which little happened shows nothing.
    pub fn assert_not_idle(&self, least: &Self) {
        let pairs = [
            ("views", self.views, least.views),
            ("merges", self.merges, least.merges),
            ("transitions", self.transitions, least.transitions),
            ("deliveries", self.deliveries, least.deliveries),
            ("exchanges", self.exchanges, least.exchanges),
            ("merges of rings", self.ring_merges, least.ring_merges),
        ];
        for (what, found, least) in pairs {
            assert!(found >= least, "{what}: {self:?}");
        }
    }
}

/// Properties whose names begin so hold, and those of clients had something to say.
fn assert_holds(report: &Report, beginning: &str, whose: &str) {
    let wrong = report.violations.iter();
    let wrong: Vec<_> = wrong
        .filter(|v| v.property.starts_with(beginning))
        .collect();
    assert!(wrong.is_empty(), "{whose}: {wrong:#?}");
    // Rings leave nobody out.
    let clients = |v: &&Verdict| v.property.starts_with('K') && v.property != "K10";
    for verdict in report.verdicts.iter().filter(clients) {
        assert!(
            verdict.checked > 0,
            "{whose}: no case of {}",
            verdict.property
        );
    }
}

/// What the daemons wrote holds all properties, of the ring and of clients.
pub fn daemons(traces: &[PathBuf], run: &Run) -> Seen {
    let trace = Trace::from_files(traces).expect("sound traces");
    let options = Options {
        quiescent: true,
        components: vec![run.alive()],
        primary: None,
    };
    let report = check_all(&trace, &options);
    assert_holds(&report, "", "daemons");
    let counters = report.counters;
    assert_eq!(counters.untraced, 0);
    Seen {
        views: counters.group_views,
        merges: counters.group_merges,
        transitions: counters.group_transitions,
        deliveries: counters.client_deliveries,
        exchanges: 0,
        ring_merges: counters.merges,
    }
}

/// What the clients saw themselves holds what is said of clients. They know of no configurations, of which the
/// other properties speak.
pub fn clients(logs: &[Log], run: &Run) {
    let mut trace = Trace::new();
    let mut push = |process, time, kind| {
        trace.push(&Event {
            time,
            process,
            kind,
        });
    };
    for (process, end) in &run.0 {
        push(*process, Time(0), EventKind::Start);
        match end {
            End::Alive => {}
            End::Crashed => push(*process, Time(0), EventKind::Crash),
            End::Left => push(*process, Time(0), EventKind::Leave),
        }
    }
    for log in logs {
        for (time, saw) in &log.saw {
            let saw = saw.clone();
            // Of Spread's clients it is known what they sent; their views have other names.
            let client = match log.reduced {
                true => format!("{} by itself", log.client),
                false => log.client.clone(),
            };
            let event = EventKind::Client(ClientEvent { client, saw });
            push(log.process, *time, event);
        }
    }
    trace.quiesce();
    let report = check_all(&trace, &Options::default());
    assert_holds(&report, "K", "clients");
}

/// The clients were told what the daemons wrote, and nothing else: all of it where the connection lasted to
/// the end, and otherwise a first part.
pub fn compare(logs: &[Log], traces: &[PathBuf], run: &Run) {
    let mut all = Told::new();
    traces.iter().for_each(|trace| written(trace, &mut all));
    let mut compared = 0;
    for (key, connections) in &mut all {
        connections.retain(|told| !told.is_empty());
        let mine = logs
            .iter()
            .filter(|log| (log.process, &log.client) == (key.0, &key.1));
        let mine: Vec<&Log> = mine.filter(|log| !log.told.is_empty()).collect();
        // One that ended before it had read anything may have been told something.
        let mut written = connections.iter();
        for log in mine {
            let theirs = written.find(|told| is_first_part(log, told));
            let theirs =
                theirs.unwrap_or_else(|| panic!("{key:?}: {}", difference(log, connections)));
            let live = run.is_alive(log.process) && !log.is_over();
            assert!(
                !live || theirs.len() == log.told.len(),
                "{key:?} was not told all"
            );
            compared += log.told.len();
        }
    }
    let told: usize = logs.iter().map(|log| log.told.len()).sum();
    assert_eq!(compared, told, "a client of which no daemon wrote");
}

fn is_first_part(log: &Log, told: &[serde_json::Value]) -> bool {
    let same = |(one, other): (&serde_json::Value, &serde_json::Value)| match log.reduced {
        true => *one == reduced(other),
        false => one == other,
    };
    log.told.len() <= told.len() && log.told.iter().zip(told).all(same)
}

/// Where the nearest begins to differ.
fn difference(log: &Log, connections: &[Vec<serde_json::Value>]) -> String {
    let common = |told: &&Vec<serde_json::Value>| {
        let pairs = log.told.iter().zip(told.iter());
        pairs
            .take_while(|(one, other)| **one == reduced(other) || one == other)
            .count()
    };
    let Some(nearest) = connections.iter().max_by_key(common) else {
        return "nothing was written".to_owned();
    };
    let at = common(&nearest);
    let (saw, wrote) = (log.told.get(at), nearest.get(at));
    format!("event {at} is {saw:?} and was written as {wrote:?}")
}

/// The configuration that a trace names last.
pub fn last_conf(trace: &Path) -> String {
    let text = std::fs::read_to_string(trace).expect("a trace");
    let at = text.rfind("\"ev\":\"conf\"").expect("a configuration");
    let id = text[at..].split("\"id\":\"").nth(1).expect("a name");
    id.split('"').next().unwrap_or_default().to_owned()
}
