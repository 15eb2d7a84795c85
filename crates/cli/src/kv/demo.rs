//! `rota kv demo`: a store of real processes on this host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_check::history::judge;
use rota_kv::{KvConfig, ProcessSection};
use rota_node::VoteStorage;
use rota_resp::Reply;
use signal_hook::consts::SIGINT;

use super::load::{Clients, Kind};
use super::report::Report;
use super::shifts::Shifts;
use crate::say::tell;
use crate::service::conclude;
use crate::service::figures::{Figures, longest_silence};
use crate::service::local::{Local, OnThisHost, local};
use crate::service::processes::{One, Processes, Service};
use crate::service::trouble::{Plan, Trouble};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Options of `rota kv demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoOptions {
    /// Parts of the keys, each with a ring of its own
    #[arg(long, value_name = "PARTITIONS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    partitions: u16,
    /// Processes that have the same part
    #[arg(long, value_name = "REPLICAS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7))]
    replicas: u16,
    /// How long it is loaded [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = rota_bench::parse_duration)]
    time: Option<Duration>,
    /// Clients that load it
    #[arg(long, value_name = "CLIENTS", default_value_t = 16, value_parser = clap::value_parser!(u64).range(..=512))]
    clients: u64,
    /// Where votes are kept: `sync`, `async` or `memory`
    #[arg(long, value_name = "STORAGE", default_value = "async", value_parser = crate::service::storage)]
    storage: VoteStorage,
    /// Kill none of the processes
    #[arg(long, conflicts_with = "kill_every")]
    keep_all: bool,
    /// Again and again kill one of them, a majority of a partition, or all, and start them again
    #[arg(long, value_name = "DURATION", value_parser = rota_bench::parse_duration)]
    kill_every: Option<Duration>,
    /// Again and again move slots from one partition to another
    #[arg(long, value_name = "DURATION", value_parser = rota_bench::parse_duration)]
    move_every: Option<Duration>,
    /// Write what clients asked and were told to this file
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Print one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(options: &DemoOptions) -> ExitCode {
    conclude(run(options), options.json)
}

fn run(options: &DemoOptions) -> Result<Report, String> {
    let failed = |error: io::Error| format!("its signals: {error}");
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&stop)).map_err(failed)?;
    let of = (options.partitions, options.replicas);
    let service = Service {
        name: "kv",
        // It is answered when a process answers for keys of all partitions.
        asks: &["DBSIZE"],
        replicas: usize::from(of.1),
    };
    let make = |port, directory: &Path| KvConfig::loopback(of, port, (directory, options.storage));
    let mut running = Local::start(service, KvConfig::ports(of), make)?;
    introduce(&running.config, of);
    load((&running.config, &mut running.processes), options, &stop)
}

impl OnThisHost for KvConfig {
    const DIRECTORIES: [&'static str; 2] = ["votes", "states"];

    fn file(&self) -> Result<String, String> {
        self.to_toml().map_err(|error| error.to_string())
    }

    fn processes(&self) -> Vec<One> {
        let one = |process: &ProcessSection| One {
            address: local(process.redis_port),
            states: self.kv.state_dir.join(format!("node-{}", process.node)),
        };
        self.kv.process.iter().map(one).collect()
    }
}

fn introduce(config: &KvConfig, (partitions, replicas): (u16, u16)) {
    tell(&format!(
        "{partitions} partitions with {replicas} replicas each, a process for each. Clients of Redis connect to any of them:"
    ));
    for process in &config.kv.process {
        let (one, cluster) = (local(process.redis_port), local(process.cluster_port));
        tell(&format!(
            "  process {} (partition {}): {one}; as a cluster {cluster}",
            process.node, process.partition
        ));
    }
}

/// Loads it, and makes trouble.
fn load(
    (config, processes): (&KvConfig, &mut Processes),
    options: &DemoOptions,
    stop: &AtomicBool,
) -> Result<Report, String> {
    let seed = rota_net::random_u64().map_err(|error| error.to_string())?;
    let clients = Clients::start(processes.addresses(), (options.clients, 200, seed));
    let began = Instant::now();
    // Without an end it is killed and started again once, and goes on.
    let time = options.time.unwrap_or(Duration::from_secs(30));
    let plan = match options.kill_every {
        Some(every) => Plan::Every(every),
        None if options.keep_all || options.replicas < 3 => Plan::Peace,
        None => Plan::Once(time / 3),
    };
    let mut trouble = Trouble::new(plan, seed);
    let shifts = options.move_every.map(|every| {
        let partitions = config.kv.process.iter().map(|of| of.partition);
        let addresses = partitions.zip(processes.addresses()).collect();
        Shifts::start(addresses, every, seed)
    });
    while !stop.load(SeqCst) && options.time.is_none_or(|time| began.elapsed() < time) {
        trouble.look(processes)?;
        thread::sleep(LOOK);
    }
    let seconds = began.elapsed();
    let refused = clients.load().refused.load(SeqCst);
    let (steps, took) = clients.end();
    trouble.end(processes)?;
    let shifted = shifts.map(Shifts::end);
    if let Some(file) = &options.history {
        let lines: Result<Vec<String>, _> = steps.iter().map(serde_json::to_string).collect();
        let lines = lines.map_err(|error| error.to_string())?;
        fs::write(file, lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    }
    let history = judge(&steps).map_err(|wrong| format!("no order explains it: {wrong}"))?;
    let identical = is_identical(processes)?;
    let of = |kind: Kind| {
        let of = took.iter().filter(|took| took.kind == kind);
        Figures::of(of.map(|took| took.took), seconds.as_secs_f64())
    };
    let silence = longest_silence(took.iter().map(|took| took.at), seconds);
    Ok(Report {
        partitions: options.partitions,
        replicas: options.replicas,
        seconds: seconds.as_secs_f64(),
        reads: of(Kind::Read),
        writes: of(Kind::Write),
        several: of(Kind::Several),
        refused,
        shifted,
        kills: trouble.kills,
        lost_states: trouble.lost,
        longest_silence_ms: silence.as_millis() as u64,
        history,
        identical,
    })
}

/// Whether all processes answer the same for all keys, those of their own partitions by what they have themselves.
fn is_identical(processes: &mut Processes) -> Result<bool, String> {
    let asked = [vec!["READONLY"], vec!["RANGE", "", "+", "LIMIT", "100000"]];
    let mut all = Vec::new();
    for at in 0..processes.count() {
        processes.wait(at)?;
        let mut replies = processes.ask(at, &asked)?;
        all.push(replies.pop());
    }
    let is_same = all.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(is_same && matches!(all.first(), Some(Some(Reply::Array(_)))))
}
