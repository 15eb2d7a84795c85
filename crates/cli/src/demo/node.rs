//! One node of the demo: a process that is a client of a daemon of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rota_core::contract::{NodeId, Service};
use serde::Deserialize;

use super::app::DemoApp;
use super::client::DemoClient;
use super::rings::DemoRings;
use super::source::Share;
use super::talk::{Done, GO, STOP, Said, Task};
use super::witness::Witness;
use crate::ask::from_socket;

/// The coordinator's orders so far.
#[derive(Debug, Default)]
pub struct Orders {
    pub go: AtomicBool,
    pub stop: AtomicBool,
}

/// The hidden subcommand `demo-node`: reads its task from standard input.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&Said::Failed { what });
            ExitCode::FAILURE
        }
    }
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

fn run() -> Result<(), String> {
    let mut stdin = BufReader::new(io::stdin());
    let mut line = String::new();
    stdin.read_line(&mut line).map_err(words)?;
    let task: Task = serde_json::from_str(&line)
        .map_err(|error| format!("no task (`rota demo` starts this): {error}"))?;
    let orders = Arc::new(Orders::default());
    listen(stdin, Arc::clone(&orders));
    let service = service(&task)?;
    if task.has_rings {
        let app = app(&task, service, orders)?;
        let me = NodeId::new(task.node).ok_or("node ids start at 1")?;
        let mut rings = DemoRings::open(&task.config, me, app)?;
        return turn_rings(&mut rings, &task);
    }
    let mut client = DemoClient::connect(&task.socket, service, task.nodes.into())?;
    let mut app = app(&task, service, orders)?;
    turn(&mut client, &mut app, &task)
}

fn service(task: &Task) -> Result<Service, String> {
    let services = [Service::Causal, Service::Agreed, Service::Safe];
    let mut services = services.into_iter();
    let service = services.find(|service| service.name() == task.service);
    service.ok_or_else(|| format!("no service is named {}", task.service))
}

fn app(task: &Task, service: Service, orders: Arc<Orders>) -> Result<DemoApp, String> {
    let me = NodeId::new(task.node).ok_or("node ids start at 1")?;
    let nodes = u64::from(task.nodes);
    let share = Share::open(&task.input, task.node, nodes)
        .map_err(|error| format!("cannot open the input: {error}"))?;
    let output = task.output.as_ref().map(|path| {
        File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
    });
    let witness = task
        .victim
        .map(|victim| Witness::new(task.node, victim, task.messages, nodes));
    Ok(DemoApp::new(
        me,
        service,
        task.nodes.into(),
        share,
        output.transpose()?,
        orders,
        witness,
    ))
}

/// Takes its turns until the coordinator ends it.
fn turn(client: &mut DemoClient, app: &mut DemoApp, task: &Task) -> Result<(), String> {
    let mut steps = Steps::default();
    while !app.stopped() {
        if let Err(how) = client.turn(app) {
            if task.victim != Some(task.node) {
                return Err(how);
            }
            say(&Said::Lost { how });
            return Ok(());
        }
        steps.look(app, task)?;
    }
    Ok(())
}

/// The same, where the rings are in this process.
fn turn_rings(rings: &mut DemoRings, task: &Task) -> Result<(), String> {
    let mut steps = Steps::default();
    while !rings.with(|app| app.stopped()) {
        rings.turn()?;
        rings.with(|app| steps.look(app, task))?;
    }
    rings.leave()
}

/// The steps that the coordinator was told of.
#[derive(Debug, Default)]
struct Steps {
    ready: bool,
    midway: bool,
    done: bool,
}

impl Steps {
    /// Tells the coordinator what is new.
    fn look(&mut self, app: &mut DemoApp, task: &Task) -> Result<(), String> {
        if let Some(what) = app.take_error() {
            return Err(what);
        }
        if !self.ready && app.is_in_ring() {
            self.ready = true;
            say(&Said::Ready);
        }
        if !self.midway && app.witness().is_some_and(Witness::is_midway) {
            self.midway = true;
            say(&Said::Midway);
        }
        if !self.done && self.ready && has_everything(app, task) {
            self.done = true;
            say(&Said::Done(summary(app, task)?));
        }
        if app.report_due() {
            let received = app.tally().census.messages;
            say(&Said::Progress { received });
        }
        Ok(())
    }
}

fn has_everything(app: &DemoApp, task: &Task) -> bool {
    let all = || app.tally().census.messages >= task.messages;
    app.witness().map_or_else(all, Witness::is_done)
}

fn summary(app: &mut DemoApp, task: &Task) -> Result<Done, String> {
    app.finish_output()?;
    let tally = app.tally();
    Ok(Done {
        node: task.node,
        messages: tally.census.messages,
        bytes: tally.census.bytes,
        digest: tally.digest(),
        sum: tally.census.sum(),
        started: app.started().map(|time| time.0),
        finished: app.finished().0,
        latencies: serde_json::to_value(app.latencies().to_counts()).map_err(words)?,
        retransmissions: retransmissions(task),
        seen: app.witness().map(Witness::seen),
    })
}

/// The daemon's count of retransmissions.
fn retransmissions(task: &Task) -> Option<u64> {
    #[derive(Deserialize)]
    struct Answer {
        counters: BTreeMap<String, u64>,
    }
    let line = from_socket(&task.admin).ok()?;
    let answer: Answer = serde_json::from_str(&line).ok()?;
    answer.counters.get("retransmissions").copied()
}

/// Follows the coordinator's orders. When the input ends, the coordinator is gone and this process
/// goes, too.
fn listen(stdin: BufReader<io::Stdin>, orders: Arc<Orders>) {
    std::thread::spawn(move || {
        for line in stdin.lines().map_while(Result::ok) {
            match line.as_str() {
                GO => orders.go.store(true, SeqCst),
                STOP => orders.stop.store(true, SeqCst),
                _ => {}
            }
        }
        std::process::exit(3);
    });
}

fn say(said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        let mut out = io::stdout().lock();
        // A coordinator that is gone needs no answer.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
