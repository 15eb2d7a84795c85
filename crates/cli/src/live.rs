//! The hidden subcommand `live-node`: a node that does what it is told over standard input, and says in
//! lines of JSON what it sees. Tests that kill, stop and cut off processes drive it.
//!
//! The first line is its [`Task`]. Then, one a line: `send SERVICE TAG COUNT`, `load SIZE MICROS` (one
//! agreed message of so many bytes each so many microseconds; 0 ends it), `flood SIZE` (as many as the ring
//! takes; 0 ends it), `count TAG`, `order`, `served`, `status`, `caught-up` (the application has the state of the
//! primary it is in), `leave`. A payload starts with its tag and a `|`.

mod order;
mod served;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use rota_core::contract::{
    Checked, ConfigurationKind, Delivery, Message, MessageId, NodeId, Service, SubmitError, Time,
};
use rota_net::{Sockets, WakeFd, monotonic};
use rota_node::{App, Driver, NodeConfig, NodeEngine, Submitter};
use serde::{Deserialize, Serialize};

use order::Order;
use served::Served;

/// Load submitted and not delivered yet: more would only wait.
const OUTSTANDING: u64 = 512;
/// A flood is submitted in pieces of so many messages: between them the ring has its turn.
const FLOOD_MESSAGES: u64 = 256;
/// Load that was due while the process stood still is not made up for beyond this.
const LATE_MESSAGES: u64 = 10;
#[derive(Debug, Deserialize)]
struct Task {
    node: u16,
    config: NodeConfig,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Conf {
        t: u64,
        regular: bool,
        id: String,
        members: Vec<(u16, u64)>,
    },
    Primary {
        t: u64,
        id: String,
    },
    Excluded {
        t: u64,
        id: String,
    },
    Count {
        tag: String,
        count: u64,
    },
    Order(Order),
    Status {
        state: String,
        caught_up: bool,
        notes: Vec<String>,
        counters: BTreeMap<String, u64>,
    },
    Served(Vec<(u64, u16)>),
    Left,
    Failed(String),
}

fn say(said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        let mut out = io::stdout().lock();
        // A reader that has gone needs no answer.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Lines that came in and were not looked at yet.
#[derive(Debug)]
struct Orders {
    lines: Mutex<VecDeque<String>>,
    waker: WakeFd,
}

impl Orders {
    fn next(&self) -> Option<String> {
        let lines = self.lines.lock();
        lines.unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

#[derive(Clone, Copy, Debug)]
struct Load {
    size: usize,
    period: u64,
    at: Time,
}

#[derive(Debug)]
struct LiveApp {
    me: NodeId,
    orders: Arc<Orders>,
    /// To be submitted: how many of what.
    waiting: VecDeque<(Service, Vec<u8>, u64)>,
    load: Option<Load>,
    load_outstanding: u64,
    /// The payload that is submitted whenever the ring takes more.
    flood: Option<Vec<u8>>,
    order: Order,
    served: Served,
    counts: BTreeMap<Vec<u8>, u64>,
    status_wanted: bool,
    caught_up: bool,
    stopped: bool,
    error: Option<String>,
}

impl LiveApp {
    fn obey(&mut self, line: &str, now: Time) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["send", service, tag, count] => {
                let service = Service::ALL.into_iter().find(|s| s.name() == service)?;
                let payload = format!("{tag}|").into_bytes();
                self.waiting
                    .push_back((service, payload, count.parse().ok()?));
            }
            ["load", size, micros] => {
                let size = size.parse::<usize>().ok()?;
                let period = micros.parse::<u64>().ok()? * 1000;
                let at = now;
                self.load = (period > 0).then_some(Load { size, period, at });
                self.order.forget_gaps();
            }
            ["flood", size] => {
                let size = size.parse::<usize>().ok()?;
                self.flood = (size > 0).then(|| load_payload(size));
                self.order.forget_gaps();
            }
            ["served"] => say(&Said::Served(self.served.all())),
            ["order"] => say(&Said::Order(self.order.clone())),
            ["count", tag] => {
                let count = self.counts.get(tag.as_bytes()).copied().unwrap_or(0);
                let tag = tag.to_owned();
                say(&Said::Count { tag, count });
            }
            ["status"] => self.status_wanted = true,
            ["caught-up"] => self.caught_up = true,
            ["leave"] => self.stopped = true,
            _ => return None,
        }
        Some(())
    }

    fn submit_waiting(
        &mut self,
        now: Time,
        submitter: &mut dyn Submitter,
    ) -> Result<(), SubmitError> {
        while let Some((service, payload, count)) = self.waiting.front_mut() {
            while *count > 0 {
                submitter.submit(now, *service, payload)?;
                self.order.submitted();
                *count -= 1;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn submit_load(&mut self, now: Time, submitter: &mut dyn Submitter) -> Result<(), SubmitError> {
        let Some(load) = &mut self.load else {
            return Ok(());
        };
        let late = LATE_MESSAGES * load.period;
        load.at = load.at.max(Time(now.0.saturating_sub(late)));
        let payload = load_payload(load.size);
        while load.at <= now {
            load.at = load.at.after(load.period);
            if self.load_outstanding < OUTSTANDING {
                submitter.submit(now, Service::Agreed, &payload)?;
                self.order.submitted();
                self.load_outstanding += 1;
            }
        }
        Ok(())
    }

    fn submit_flood(
        &mut self,
        now: Time,
        submitter: &mut dyn Submitter,
    ) -> Result<(), SubmitError> {
        let Some(payload) = &self.flood else {
            return Ok(());
        };
        for _ in 0..FLOOD_MESSAGES {
            submitter.submit(now, Service::Agreed, payload)?;
            self.order.submitted();
        }
        Ok(())
    }

    fn on_message(&mut self, message: &Message) {
        let tag = message.payload.split(|byte| *byte == b'|').next();
        let tag = tag.unwrap_or_default();
        if let Some(count) = self.counts.get_mut(tag) {
            *count += 1;
        } else {
            self.counts.insert(tag.to_vec(), 1);
        }
        let MessageId { process, counter } = message.id;
        if tag == b"load" && process.node == self.me {
            self.load_outstanding = self.load_outstanding.saturating_sub(1);
        }
        self.served.note(process.node.get());
        if self.order.note(process.node.get(), counter) {
            say(&Said::Order(self.order.clone()));
        }
    }
}

/// Starts with its tag, so it is never shorter than that.
fn load_payload(size: usize) -> Vec<u8> {
    let mut payload = b"load|".to_vec();
    payload.resize(size.max(payload.len()), b'.');
    payload
}

impl App for LiveApp {
    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.on_message(&message),
            Delivery::Configuration(configuration) => {
                let (regular, id) = match configuration.kind {
                    ConfigurationKind::Regular(ring) => (true, ring.to_string()),
                    ConfigurationKind::Transitional { old, new } => (false, format!("{old}>{new}")),
                };
                if regular {
                    self.order.begin(&id);
                }
                let members = configuration.members.iter();
                say(&Said::Conf {
                    t: monotonic().0,
                    regular,
                    id,
                    members: members.map(|m| (m.node.get(), m.incarnation.0)).collect(),
                });
            }
            Delivery::Primary(ring) => say(&Said::Primary {
                t: monotonic().0,
                id: ring.to_string(),
            }),
            Delivery::Excluded(ring) => say(&Said::Excluded {
                t: monotonic().0,
                id: ring.to_string(),
            }),
            Delivery::Passed { .. } | Delivery::Notice { .. } | Delivery::Missed { .. } => {}
        }
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        while let Some(line) = self.orders.next() {
            if self.obey(&line, now).is_none() {
                self.error = Some(format!("cannot do `{line}`"));
            }
        }
        let submitted = self
            .submit_waiting(now, submitter)
            .and_then(|()| self.submit_load(now, submitter))
            .and_then(|()| self.submit_flood(now, submitter));
        match submitted {
            Ok(()) | Err(SubmitError::Full) => {}
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    fn flush(&mut self) {
        let now = monotonic();
        self.served.flushed(now);
        if self.flood.is_some() || self.load.is_some() {
            self.order.flushed(now);
        }
    }

    fn stop(&self) -> bool {
        self.stopped
    }

    fn next_wake(&self) -> Option<Time> {
        self.load.map(|load| load.at)
    }

    fn awake(&mut self, signalled: bool) {
        if signalled {
            self.orders.waker.clear();
        }
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.orders.waker.raw())
    }
}

/// Runs the node until it is told to leave, or its input ends.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => {
            say(&Said::Left);
            ExitCode::SUCCESS
        }
        Err(what) => {
            say(&Said::Failed(what));
            ExitCode::FAILURE
        }
    }
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

fn run() -> Result<(), String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(words)?;
    let task: Task = serde_json::from_str(&line).map_err(words)?;
    let me = NodeId::new(task.node).ok_or("node ids start at 1")?;
    let orders = Arc::new(Orders {
        lines: Mutex::default(),
        waker: WakeFd::new().map_err(words)?,
    });
    listen(Arc::clone(&orders));
    let config = task.config;
    let config = config.resolved(me);
    config.check_for(me).map_err(words)?;
    let sockets = Sockets::open(&config.network(), me).map_err(words)?;
    let engine = NodeEngine::new(&config, me).map_err(words)?;
    let mut driver = Driver::new(Checked::new(engine), sockets, me, &config).map_err(words)?;
    let mut app = LiveApp {
        me,
        orders,
        waiting: VecDeque::new(),
        load: None,
        load_outstanding: 0,
        flood: None,
        order: Order::default(),
        served: Served::default(),
        counts: BTreeMap::new(),
        status_wanted: false,
        caught_up: false,
        stopped: false,
        error: None,
    };
    while !app.stop() {
        driver.turn(&mut app, None).map_err(words)?;
        if let Some(error) = app.error.take() {
            return Err(error);
        }
        if std::mem::take(&mut app.caught_up)
            && let Some(ring) = driver.engine().get().primary()
        {
            let told = driver.command(|engine, now| engine.caught_up(now, ring));
            told.map_err(words)?;
        }
        if std::mem::take(&mut app.status_wanted) {
            let caught_up = driver.engine().get().is_caught_up();
            let status = driver.status();
            let counters = status.counters.into_iter();
            say(&Said::Status {
                state: status.state,
                caught_up,
                notes: status.notes,
                counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
            });
        }
    }
    driver.leave().map_err(words)
}

/// Takes in lines. When there are no more, whoever sent them is gone, and so is this process.
fn listen(orders: Arc<Orders>) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let lines = orders.lines.lock();
            lines
                .unwrap_or_else(PoisonError::into_inner)
                .push_back(line);
            orders.waker.wake();
        }
        std::process::exit(3);
    });
}
