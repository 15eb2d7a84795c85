//! `rota kv bench`: YCSB's workloads, over Redis' protocol.

mod client;
mod keys;
mod measured;
mod report;
mod route;
mod workload;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::runtime;
use tokio::task::LocalSet;

use self::client::{Client, Plan};
use self::keys::{Keys, MOST_KEYS};
use self::measured::Measured;
use self::report::Report;
use self::route::Route;
use self::workload::Workload;
use crate::say::tell;
use crate::service::conclude;
use crate::service::processor::Processor;

/// The number of values on their way of a client that fills.
const FILLS: usize = 16;

/// Options of `rota kv bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct KvBench {
    /// Where servers of Redis' protocol are: clients are dealt out among them, or, with --cluster, learn there who has what
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1:6379"
    )]
    connect: Vec<SocketAddr>,
    /// Each key is asked of the server that CLUSTER SLOTS names
    #[arg(long)]
    cluster: bool,
    /// What is asked: YCSB's `a` to `f`, only `get`, only `put`, or `batch` (MSET of three keys)
    #[arg(long, value_name = "WORKLOAD", default_value = "a", value_parser = |text: &str| text.parse::<Workload>())]
    workload: Workload,
    /// How many clients, each with connections of its own
    #[arg(long, value_name = "CLIENTS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// How many commands a client says at once
    #[arg(long, value_name = "COMMANDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pipeline: u16,
    /// So many a second, of all clients, at times that do not wait for answers: what is late is counted as late [default: the next when the last is answered]
    #[arg(long, value_name = "RATE")]
    rate: Option<u64>,
    /// How many keys there are
    #[arg(long, value_name = "KEYS", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=MOST_KEYS))]
    keys: u64,
    /// How large a value is
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=700_000))]
    value_bytes: u32,
    /// All keys are there already; else they are written first
    #[arg(long)]
    no_fill: bool,
    /// After each write, WAIT for so many replicas (for Redis; Rota's answers have their majority)
    #[arg(long, value_name = "REPLICAS")]
    wait: Option<u8>,
    /// How long it is measured
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = rota_bench::parse_duration)]
    time: Duration,
    /// How long it runs before that
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = rota_bench::parse_duration)]
    warmup: Duration,
    /// Processes whose processor time is shown: those of the servers, on this host
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    processes: Vec<u32>,
    /// What is drawn by lot begins here
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object on the last line
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn main(options: &KvBench) -> ExitCode {
    conclude(run(options), options.json)
}

fn run(options: &KvBench) -> Result<Report, String> {
    rota_daemon::ask_for_descriptors(options.clients as usize);
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("its clients: {error}"))?;
    LocalSet::new().block_on(&runtime, async {
        let route = match options.cluster {
            true => Route::of_cluster(&options.connect).await?,
            false => Route::of_servers(&options.connect),
        };
        let keys = Rc::new(RefCell::new(Keys::new(options.keys)));
        if !options.no_fill {
            fill(options, &route, &keys).await?;
        }
        measure(options, &route, &keys).await
    })
}

/// Writes all keys.
async fn fill(options: &KvBench, route: &Route, keys: &Rc<RefCell<Keys>>) -> Result<(), String> {
    let began = Instant::now();
    let fillers = options.clients.min(32);
    let next = Rc::new(RefCell::new(0));
    let tasks = (0..fillers).map(|number| {
        let mut client = client(options, number, route, keys);
        let next = Rc::clone(&next);
        tokio::task::spawn_local(async move { client.fill(&next, FILLS).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        let filled = task.await.map_err(|error| error.to_string())?;
        filled.map_err(|what| format!("the keys cannot be written: {what}"))?;
    }
    tell(&format!(
        "{} keys of {} bytes are there after {:.1} s",
        options.keys,
        options.value_bytes,
        began.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn client(options: &KvBench, number: u32, route: &Route, keys: &Rc<RefCell<Keys>>) -> Client {
    let plan = Plan {
        workload: options.workload,
        pipeline: usize::from(options.pipeline),
        value_bytes: options.value_bytes as usize,
        wait: options.wait,
        pause: options.rate.map(|rate| {
            Duration::from_secs(1) * options.clients / rate.max(1) as u32
                * u32::from(options.pipeline)
        }),
    };
    let seed = options.seed ^ (u64::from(number) + 1) << 32;
    Client::new(plan, (number, seed), route.clone(), Rc::clone(keys))
}

/// Runs all clients, and measures what they do between the end of the warm-up and the end of the time.
async fn measure(
    options: &KvBench,
    route: &Route,
    keys: &Rc<RefCell<Keys>>,
) -> Result<Report, String> {
    let measured = Rc::new(RefCell::new(Measured::default()));
    let begins = Instant::now() + options.warmup;
    let ends = begins + options.time;
    let tasks = (0..options.clients).map(|number| {
        let mut client = client(options, number, route, keys);
        let measured = Rc::clone(&measured);
        tokio::task::spawn_local(async move { client.run(&measured, (begins, ends)).await })
    });
    let tasks: Vec<_> = tasks.collect();
    tokio::time::sleep_until(begins.into()).await;
    let processor = Processor::of(&options.processes)?;
    tokio::time::sleep_until(ends.into()).await;
    let used = processor.used()?;
    for task in tasks {
        task.await.map_err(|error| error.to_string())?;
    }
    let measured = measured.take();
    Ok(Report::of(
        &measured,
        options.workload.name(),
        options.time,
        used,
    ))
}
