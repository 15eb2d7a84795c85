//! `rota log bench`: writers, and readers that are told at once.

mod client;
mod report;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rota_node::VoteStorage;
use tokio::runtime;
use tokio::task::LocalSet;

use self::client::{Client, Plan};
use self::report::{Measured, Report};
use super::local::start;

use crate::service::conclude;
use crate::service::processor::Processor;

/// Options of `rota log bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchOptions {
    /// Where servers of Redis' streams are: clients are dealt out among them [default: processes that are started for this]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    connect: Vec<SocketAddr>,
    /// Rings of the processes that are started
    #[arg(long, value_name = "RINGS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    rings: u16,
    /// How many processes are started
    #[arg(long, value_name = "PROCESSES", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7))]
    processes: u16,
    /// Where they keep votes: `sync`, `async` or `memory`
    #[arg(long, value_name = "STORAGE", default_value = "sync", value_parser = crate::service::storage)]
    storage: VoteStorage,
    /// How many clients append, each the next entry when the last is acknowledged
    #[arg(long, value_name = "WRITERS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(..=20_000))]
    writers: u32,
    /// How many entries a writer appends at once
    #[arg(long, value_name = "ENTRIES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pipeline: u16,
    /// So many entries a second, of all writers, at times that do not wait for answers: what is late is counted as late [default: the next when the last is answered]
    #[arg(long, value_name = "RATE")]
    rate: Option<u32>,
    /// How many clients are told of all that is appended, each of one log
    #[arg(long, value_name = "TAILS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000))]
    tails: u32,
    /// How many logs
    #[arg(long, value_name = "LOGS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    logs: u32,
    /// How large an entry is
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(16..=700_000))]
    size: u32,
    /// How long it is measured
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = rota_bench::parse_duration)]
    time: Duration,
    /// How long it runs before that
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = rota_bench::parse_duration)]
    warmup: Duration,
    /// Processes whose processor time is shown, with --connect: those of the servers, on this host
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pids: Vec<u32>,
    /// Print one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(options: &BenchOptions) -> ExitCode {
    conclude(run(options), options.json)
}

fn run(options: &BenchOptions) -> Result<Report, String> {
    rota_daemon::ask_for_descriptors((options.writers + options.tails) as usize);
    let (local, servers, processes) = match options.connect.is_empty() {
        false => (None, options.connect.clone(), options.pids.clone()),
        true => {
            let local = start((options.rings, options.processes), options.storage)?;
            let (servers, ids) = (local.processes.addresses(), local.processes.ids());
            (Some(local), servers, ids)
        }
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("its clients: {error}"))?;
    let report = LocalSet::new().block_on(&runtime, measure(options, &servers, &processes));
    drop(local);
    report
}

/// Runs all clients, and measures what they do between the end of the warm-up and the end of the time.
async fn measure(
    options: &BenchOptions,
    servers: &[SocketAddr],
    processes: &[u32],
) -> Result<Report, String> {
    let measured = Rc::new(RefCell::new(Measured::default()));
    let origin = Instant::now();
    let begins = origin + options.warmup;
    let ends = begins + options.time;
    let plan = Plan {
        pipeline: usize::from(options.pipeline),
        bytes: options.size as usize,
        pause: options.rate.map(|rate| {
            let all = options.writers * u32::from(options.pipeline);
            Duration::from_secs(1) * all / rate.max(1)
        }),
        times: (origin, begins, ends),
    };
    let client = |number: u32| Client {
        plan,
        server: servers[number as usize % servers.len()],
        log: format!("bench-{}", number % options.logs),
        number,
        measured: Rc::clone(&measured),
    };
    let tails = (0..options.tails).map(|number| tokio::task::spawn_local(client(number).tail()));
    let tails: Vec<_> = tails.collect();
    let writers =
        (0..options.writers).map(|number| tokio::task::spawn_local(client(number).write()));
    let writers: Vec<_> = writers.collect();
    tokio::time::sleep_until(begins.into()).await;
    let processor = Processor::of(processes)?;
    tokio::time::sleep_until(ends.into()).await;
    let used = processor.used()?;
    for task in writers.into_iter().chain(tails) {
        task.await.map_err(|error| error.to_string())?;
    }
    let measured = measured.take();
    Ok(Report::of(&measured, (options.size, options.time), used))
}
