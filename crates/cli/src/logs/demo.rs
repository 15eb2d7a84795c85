//! `rota log demo`: logs on real processes on this host.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_check::logs::{Log, Logs, judge};
use rota_log::LogConfig;
use rota_node::VoteStorage;
use signal_hook::consts::SIGINT;

use super::check::History;
use super::load::{Clients, Kinds};
use super::local::start;
use super::replies::entries;
use super::report::Report;
use crate::say::tell;
use crate::service::conclude;
use crate::service::figures::{Figures, longest_silence};
use crate::service::local::local;
use crate::service::processes::Processes;
use crate::service::trouble::{Plan, Trouble};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// The number of entries that are read at once.
const TOGETHER: usize = 5_000;
/// The logs that are loaded.
const LOGS: [&str; 3] = ["orders", "trades", "audit"];

/// Options of `rota log demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoOptions {
    /// Rings that order what is appended
    #[arg(long, value_name = "RINGS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=8))]
    rings: u16,
    /// Processes, each with all logs
    #[arg(long, value_name = "PROCESSES", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7))]
    processes: u16,
    /// How long it is loaded [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = rota_bench::parse_duration)]
    time: Option<Duration>,
    /// Clients that append; each second one asks again until it is answered
    #[arg(long, value_name = "WRITERS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(..=512))]
    writers: u64,
    /// Clients that read
    #[arg(long, value_name = "READERS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=64))]
    readers: u64,
    /// Clients that are told of all logs as one
    #[arg(long, value_name = "TAILS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(..=64))]
    tails: u64,
    /// Where votes are kept: `sync`, `async` or `memory`
    #[arg(long, value_name = "STORAGE", default_value = "async", value_parser = crate::service::storage)]
    storage: VoteStorage,
    /// Kill none of the processes
    #[arg(long, conflicts_with = "kill_every")]
    keep_all: bool,
    /// Again and again kill one of them, a majority, or all, and start them again
    #[arg(long, value_name = "DURATION", value_parser = rota_bench::parse_duration)]
    kill_every: Option<Duration>,
    /// Write what clients asked and were told, and what the logs have at the end, to this file
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
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |error: io::Error| format!("its signals: {error}");
    signal_hook::flag::register(SIGINT, Arc::clone(&stop)).map_err(failed)?;
    let of = (options.rings, options.processes);
    let mut running = start(of, options.storage)?;
    introduce(&running.config, of);
    load(&mut running.processes, options, &stop)
}

fn introduce(config: &LogConfig, (rings, processes): (u16, u16)) {
    tell(&format!(
        "logs {} on {rings} rings and {processes} processes. Clients of Redis' streams connect to any of them:",
        LOGS.join(", ")
    ));
    for process in &config.log.process {
        tell(&format!(
            "  process {}: {}",
            process.node,
            local(process.redis_port)
        ));
    }
}

/// Loads it, and makes trouble.
fn load(
    processes: &mut Processes,
    options: &DemoOptions,
    stop: &AtomicBool,
) -> Result<Report, String> {
    let seed = rota_net::random_u64().map_err(|error| error.to_string())?;
    let kinds = Kinds {
        writers: options.writers,
        readers: options.readers,
        tails: options.tails,
    };
    let logs = LOGS.map(str::to_owned).to_vec();
    let clients = Clients::start((processes.addresses(), logs), kinds, seed);
    let began = Instant::now();
    // Without an end it is killed and started again once, and goes on.
    let time = options.time.unwrap_or(Duration::from_secs(30));
    let plan = match options.kill_every {
        Some(every) => Plan::Every(every),
        None if options.keep_all || options.processes < 3 => Plan::Peace,
        None => Plan::Once(time / 3),
    };
    let mut trouble = Trouble::new(plan, seed);
    while !stop.load(SeqCst) && options.time.is_none_or(|time| began.elapsed() < time) {
        trouble.look(processes)?;
        thread::sleep(LOOK);
    }
    let seconds = began.elapsed();
    let (steps, took) = clients.end();
    trouble.end(processes)?;
    let (logs, identical) = at_the_end(processes)?;
    let history = History { steps, logs };
    if let Some(file) = &options.history {
        let text = serde_json::to_string(&history).map_err(|error| error.to_string())?;
        fs::write(file, text).map_err(|error| error.to_string())?;
    }
    let summary = judge(&history.steps, &history.logs);
    let summary = summary.map_err(|wrong| format!("the logs do not explain it: {wrong}"))?;
    let of = |is_several: bool| {
        let of = took.iter().filter(|took| took.is_several == is_several);
        Figures::of(of.map(|took| took.took), seconds.as_secs_f64())
    };
    let silence = longest_silence(took.iter().map(|took| took.at), seconds);
    Ok(Report {
        rings: options.rings,
        processes: options.processes,
        seconds: seconds.as_secs_f64(),
        single: of(false),
        several: of(true),
        kills: trouble.kills,
        lost_states: trouble.lost,
        longest_silence_ms: silence.as_millis() as u64,
        history: summary,
        identical,
    })
}

/// The contents of the logs, and whether all processes say the same.
fn at_the_end(processes: &mut Processes) -> Result<(Logs, bool), String> {
    let mut all: Vec<Logs> = Vec::new();
    for at in 0..processes.count() {
        processes.wait(at)?;
        let mut logs = Logs::new();
        for name in LOGS {
            logs.insert(name.to_owned(), whole(processes, at, name)?);
        }
        all.push(logs);
    }
    let identical = all.windows(2).all(|pair| pair[0] == pair[1]);
    Ok((all.pop().unwrap_or_default(), identical))
}

/// All of a log, as a process has it, some at a time.
fn whole(processes: &Processes, at: usize, name: &str) -> Result<Log, String> {
    let mut log = Log {
        first: 1,
        values: Vec::new(),
    };
    let (count, mut next) = (TOGETHER.to_string(), 1);
    loop {
        let from = next.to_string();
        let asked = vec!["XRANGE", name, &from, "+", "COUNT", &count];
        let replies = processes.ask(at, &[asked])?;
        let reply = replies.first().ok_or("no answer")?;
        let found = entries(reply);
        let found = found.ok_or_else(|| format!("process {}: {reply:?}", at + 1))?;
        if let (true, Some((first, _))) = (log.values.is_empty(), found.first()) {
            (log.first, next) = (*first, *first);
        }
        let is_all = found.len() < TOGETHER;
        for (position, value) in found {
            if position != next {
                return Err(format!("process {}: {name} has a gap", at + 1));
            }
            next += 1;
            log.values.push(value);
        }
        if is_all {
            return Ok(log);
        }
    }
}
