//! One node of the demo: a process with a ring in its main thread.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rota_core::contract::{Checked, NodeId, Service};
use rota_net::{Driver, NodeEngine, SocketError, Sockets, WakeFd};

use super::app::DemoApp;
use super::source::Share;
use super::talk::{Done, GO, STOP, Said, Task};
use super::witness::Witness;

/// What the coordinator has said so far.
#[derive(Debug)]
pub struct Orders {
    pub go: AtomicBool,
    pub stop: AtomicBool,
    pub waker: WakeFd,
}

/// Why a node ends early.
struct Failure {
    what: String,
    port_in_use: bool,
}

impl Failure {
    fn new(what: impl ToString) -> Self {
        Self {
            what: what.to_string(),
            port_in_use: false,
        }
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        let port_in_use = matches!(&error, SocketError::Bind { error, .. }
            if error.kind() == io::ErrorKind::AddrInUse);
        Self {
            what: error.to_string(),
            port_in_use,
        }
    }
}

/// The hidden subcommand `demo-node`: reads its task from standard input.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { what, port_in_use }) => {
            say(&Said::Failed { what, port_in_use });
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut stdin = BufReader::new(io::stdin());
    let mut line = String::new();
    stdin.read_line(&mut line).map_err(Failure::new)?;
    let task: Task = serde_json::from_str(&line)
        .map_err(|error| Failure::new(format!("no task (`rota demo` starts this): {error}")))?;
    let me = NodeId::new(task.node).ok_or_else(|| Failure::new("node ids start at 1"))?;
    let waker = WakeFd::new().map_err(Failure::new)?;
    let orders = Orders {
        go: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        waker,
    };
    let orders = Arc::new(orders);
    listen(stdin, Arc::clone(&orders));

    task.config.check_for(me).map_err(Failure::new)?;
    let sockets = Sockets::open(&task.config, me)?;
    let engine = NodeEngine::new(&task.config, me).map_err(Failure::new)?;
    let mut driver =
        Driver::new(Checked::new(engine), sockets, me, &task.config).map_err(Failure::new)?;
    let mut app = app(&task, me, orders)?;
    turn(&mut driver, &mut app, &task)?;
    driver.leave().map_err(Failure::new)
}

fn app(task: &Task, me: NodeId, orders: Arc<Orders>) -> Result<DemoApp, Failure> {
    let services = [Service::Causal, Service::Agreed, Service::Safe];
    let service = services
        .into_iter()
        .find(|service| service.name() == task.service);
    let service =
        service.ok_or_else(|| Failure::new(format!("no service is named {}", task.service)))?;
    let share = Share::open(&task.input, task.node, task.config.nodes.len() as u64)
        .map_err(|error| Failure::new(format!("cannot open the input: {error}")))?;
    let output = task.output.as_ref().map(|path| {
        File::create(path)
            .map_err(|error| Failure::new(format!("cannot create {}: {error}", path.display())))
    });
    let nodes = task.config.nodes.len();
    let witness = task
        .victim
        .map(|victim| Witness::new(task.node, victim, task.messages, nodes as u64));
    Ok(DemoApp::new(
        me,
        service,
        nodes,
        share,
        output.transpose()?,
        orders,
        witness,
    ))
}

/// Turns the ring until the coordinator ends it: a node that has everything must stay, for the
/// others still need it to pass the token and to send again.
fn turn(
    driver: &mut Driver<Checked<NodeEngine>>,
    app: &mut DemoApp,
    task: &Task,
) -> Result<(), Failure> {
    let (mut ready, mut midway, mut done) = (false, false, false);
    while !app.stopped() {
        driver.turn(app, None).map_err(Failure::new)?;
        if let Some(what) = app.take_error() {
            return Err(Failure::new(what));
        }
        if !ready && app.is_in_ring() {
            ready = true;
            say(&Said::Ready);
        }
        if !midway && app.witness().is_some_and(Witness::is_midway) {
            midway = true;
            say(&Said::Midway);
        }
        if !done && ready && has_everything(app, task) {
            done = true;
            say(&Said::Done(summary(driver, app, task.node)?));
        }
        if app.report_due() {
            let received = app.tally().census.messages;
            say(&Said::Progress {
                received,
                state: driver.status().state,
            });
        }
    }
    Ok(())
}

fn has_everything(app: &DemoApp, task: &Task) -> bool {
    let all = || app.tally().census.messages >= task.messages;
    app.witness().map_or_else(all, Witness::is_done)
}

fn summary(
    driver: &Driver<Checked<NodeEngine>>,
    app: &mut DemoApp,
    node: u16,
) -> Result<Done, Failure> {
    app.finish_output().map_err(Failure::new)?;
    let tally = app.tally();
    let counters = driver.status().counters;
    Ok(Done {
        node,
        messages: tally.census.messages,
        bytes: tally.census.bytes,
        digest: tally.digest(),
        sum: tally.census.sum(),
        started: app.started().map(|time| time.0),
        finished: app.finished().0,
        latencies: serde_json::to_value(app.latencies().to_counts()).map_err(Failure::new)?,
        retransmissions: counters.get("retransmissions").copied(),
        seen: app.witness().map(Witness::seen),
    })
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
            orders.waker.wake();
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
