//! `rota bench` and `rota bench raw`: from the command line to the benchmarks' options.

mod figures;

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rota_bench::{
    BenchError, BenchOptions, BitRate, Leveling, LinkShares, Load, ManyRings, Mode, Offload,
    Pattern, Pin, Place, RawOptions, Senders, ServiceName, SharesOptions, StorageName, Subject,
    Subscribe, TestbedKind, parse_duration, run_bench, run_raw, run_shares,
};
use rota_core::EngineName;
use serde::Serialize;

use crate::say::{complain, print, print_json};

/// A value that has one of these names; clap lists them in its help.
fn one_of<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.to_vec()).try_map(|name| name.parse::<T>())
}

/// Options of `rota bench`, and its subcommand.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: LoadArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// The same sockets, or the same disk, with no protocol: what the machine can do
    #[command(after_help = "Examples:\n  rota bench raw --nodes 4 --duration 2s\n  \
        rota bench raw --pattern token --nodes 8\n  \
        rota bench raw --pattern hop --size 10000 --rate 1mbit\n  \
        rota bench raw --pattern disk --nodes 3 --size 1000 --outstanding 200\n\n\
        Exit status: 0 if it was measured, 1 if that failed, 2 for wrong use.")]
    Raw(RawArgs),
    /// Four nodes that share links, and what they want changes (FastCast §4.2)
    #[command(
        after_help = "Examples:\n  rota bench shares\n  rota bench shares --link-rate 300mbit --phase 2s\n\n\
        Exit status: 0 if throughput is within 10 % of the sum of the shares in each phase, 1 if not (the report is\n\
        printed all the same), 2 for wrong use."
    )]
    Shares(SharesArgs),
    /// FastCast's figures 5 to 8, or figure 3 of Multi-Ring Paxos, measured here: tables and drawings
    #[command(after_help = "Examples:\n  rota bench figures --output figures\n  \
        rota bench figures --only 6,8 --nodes 2,4,8 --rounds 1 --output figures\n  \
        rota bench figures --paper multi-ring --only 3 --output figures\n  \
        rota bench figures --from figures --output drawings\n\n\
        Exit status: 0 if all was measured, 1 if a benchmark failed (what was measured is drawn all the same), 2 for\n\
        wrong use.")]
    Figures(Box<figures::FiguresArgs>),
}

/// Options that both kinds of benchmark have.
#[derive(Clone, Debug, clap::Args)]
struct PlaceArgs {
    /// Where the nodes run; namespaces need root
    #[arg(long, default_value = "loopback", value_parser = one_of::<TestbedKind>(&["loopback", "netns"]))]
    testbed: TestbedKind,
    /// How many nodes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=128))]
    nodes: u16,
    /// Speed of every link, like 1gbit (only with --testbed netns)
    #[arg(long, value_name = "RATE")]
    link_rate: Option<BitRate>,
    /// Whether bursts cross the links whole or in single packets
    #[arg(long, default_value = "pass", value_parser = one_of::<Offload>(&["pass", "split"]))]
    offload: Offload,
    /// Which CPUs the nodes may use: any, all the first, or one after the other
    #[arg(long, default_value = "none", value_parser = one_of::<Pin>(&["none", "one", "spread"]))]
    pin: Pin,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl PlaceArgs {
    fn place(&self) -> Place {
        Place {
            testbed: self.testbed,
            nodes: usize::from(self.nodes),
            link_rate: self.link_rate,
            offload: self.offload,
            pin: self.pin,
        }
    }
}

#[derive(Clone, Debug, clap::Args)]
struct LoadArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Which protocol orders the messages
    #[arg(long, default_value = "accelerated-ring",
        value_parser = one_of::<Subject>(&Subject::names().collect::<Vec<_>>()))]
    engine: Subject,
    /// What the load goes through
    #[arg(long, default_value = "library", value_parser = one_of::<Mode>(&["library", "daemon"]))]
    mode: Mode,
    /// Clean payload of a message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1350)]
    size: usize,
    /// What all senders together send: a rate like 500mbit, max, or 0 for an idle ring
    #[arg(long, value_name = "RATE", default_value = "max")]
    rate: Load,
    /// Instead, a closed loop: so many messages under way in all. Each sender keeps the same share of them (what is left over
    /// goes to the first nodes, one each) and submits the next when one of its own is delivered to it; latencies count from
    /// the submission
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "first_message"],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    outstanding: Option<u32>,
    /// Which nodes send: all, half, or how many
    #[arg(long, default_value = "all")]
    senders: Senders,
    /// Share of received data packets that each node drops, from 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    loss: f64,
    /// Drop only packets of the node so many places before the one that drops
    #[arg(long, value_name = "K")]
    loss_distance: Option<usize>,
    /// The delivery guarantee
    #[arg(long, default_value = "agreed",
        value_parser = one_of::<ServiceName>(&["agreed", "safe"]))]
    service: ServiceName,
    /// How long to measure, like 5s
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    duration: Duration,
    /// How long the load runs before that
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    warm_up: Duration,
    /// Measure the first message after a silence instead, so many times
    #[arg(long, value_name = "TRIALS")]
    first_message: Option<u32>,
    /// Seal datagrams between nodes, with a key made for the run
    #[arg(long)]
    sealed: bool,
    /// New packets a node may send in one visit of the token
    #[arg(long, value_name = "PACKETS")]
    personal_window: Option<u32>,
    /// How many of them may leave after the token
    #[arg(long, value_name = "PACKETS")]
    accelerated_window: Option<u32>,
    /// Packets all nodes together may send in one rotation
    #[arg(long, value_name = "PACKETS")]
    global_window: Option<u32>,
    /// What links take in, by which senders go with fastcast: what --link-rate says, less while packets get lost, what
    /// losses tell, or nothing; with ring-paxos: what --link-rate says, or (estimated, off) nothing
    #[arg(long, default_value = "configured",
        value_parser = one_of::<LinkShares>(&["configured", "yielding", "estimated", "off"]))]
    shares: LinkShares,
    /// What the votes of ring-paxos and u-ring-paxos wait for; on disk they are in the system's temporary directory
    #[arg(long, default_value = "memory",
        value_parser = one_of::<StorageName>(&["memory", "async", "sync"]))]
    storage: StorageName,
    /// Which nodes vote with ring-paxos and u-ring-paxos, as their numbers with commas between them; the others propose
    /// and learn
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    acceptors: Vec<u16>,
    /// Every message has an instance of ring-paxos and u-ring-paxos of its own, however small it is
    #[arg(long)]
    instance_per_message: bool,
    #[command(flatten)]
    many: ManyArgs,
    /// A TCP stream from node 1 to node 2 uses the same links
    #[arg(long)]
    beside_tcp: bool,
}

/// Options of several rings.
#[derive(Clone, Debug, clap::Args)]
struct ManyArgs {
    /// With multi-ring: how many rings
    #[arg(long, default_value_t = 3)]
    rings: u16,
    /// With multi-ring: so many of them are sent to, the first ones [default: all]
    #[arg(long, value_name = "RINGS")]
    busy: Option<u16>,
    /// With multi-ring: what orders each ring
    #[arg(long, default_value = "u-ring-paxos",
        value_parser = one_of::<EngineName>(&["ring-paxos", "u-ring-paxos"]))]
    ring_engine: EngineName,
    /// With multi-ring: how rings that have little to order keep up with the others
    #[arg(long, default_value = "pull", value_parser = one_of::<Leveling>(&["pull", "paper", "horizon"]))]
    leveling: Leveling,
    /// With multi-ring: which rings each node delivers; with own each sends to one, and delivers that, with own+global the last one, too
    #[arg(long, default_value = "all", value_parser = one_of::<Subscribe>(&["all", "own", "own+global"]))]
    subscribe: Subscribe,
}

impl ManyArgs {
    const fn many(&self) -> ManyRings {
        ManyRings {
            rings: self.rings,
            busy: self.busy,
            engine: self.ring_engine,
            leveling: self.leveling,
            subscribe: self.subscribe,
        }
    }
}

impl LoadArgs {
    fn options(&self) -> BenchOptions {
        BenchOptions {
            place: self.place.place(),
            engine: self.engine,
            mode: self.mode,
            size: self.size,
            load: self.outstanding.map_or(self.rate, Load::Outstanding),
            senders: self.senders,
            loss: self.loss,
            loss_distance: self.loss_distance,
            service: self.service,
            duration: self.duration,
            warm_up: self.warm_up,
            first_message: self.first_message,
            sealed: self.sealed,
            personal_window: self.personal_window,
            accelerated_window: self.accelerated_window,
            global_window: self.global_window,
            shares: self.shares,
            storage: self.storage,
            acceptors: self.acceptors.clone(),
            instance_per_message: self.instance_per_message,
            many: self.many.many(),
            beside_tcp: self.beside_tcp,
            json: self.place.json,
        }
    }
}

#[derive(Clone, Debug, clap::Args)]
struct RawArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// What is sent: bursts to all, a token round the ring, messages that all acknowledge to all, or messages that go
    /// round a ring of TCP links with the word behind them that all have them. With disk nothing is: each node makes groups
    /// of records durable, in a file of its own where rota bench --storage has its votes
    #[arg(long, default_value = "multicast",
        value_parser = one_of::<Pattern>(&["multicast", "token", "all-ack", "hop", "disk"]))]
    pattern: Pattern,
    /// One TCP stream to a neighbour instead
    #[arg(long, conflicts_with = "pattern")]
    tcp: bool,
    /// Payload of a packet, with all-ack and hop of a message, or with disk a record's size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1350)]
    size: usize,
    /// What all senders together send with all-ack and hop, like 1mbit [default: the next message when all have one]
    #[arg(long, value_name = "RATE", conflicts_with = "tcp")]
    rate: Option<BitRate>,
    /// Which nodes send: all, half, or how many; with disk all write
    #[arg(long, default_value = "1")]
    senders: Senders,
    /// Packets in one burst [default: what fits 64 KB]
    #[arg(long, value_name = "PACKETS")]
    burst: Option<usize>,
    /// Records that are made durable together with disk [default: 1]
    #[arg(long, value_name = "RECORDS", conflicts_with = "tcp")]
    outstanding: Option<u32>,
    /// How long to measure, like 2s
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    duration: Duration,
    /// How long it runs before that
    #[arg(long, value_name = "DURATION", default_value = "300ms", value_parser = parse_duration)]
    warm_up: Duration,
}

impl RawArgs {
    fn options(&self) -> RawOptions {
        RawOptions {
            place: self.place.place(),
            pattern: self.pattern,
            tcp: self.tcp,
            size: self.size,
            rate: self.rate,
            senders: self.senders,
            burst: self.burst,
            outstanding: self.outstanding,
            duration: self.duration,
            warm_up: self.warm_up,
            json: self.place.json,
        }
    }
}

#[derive(Clone, Debug, clap::Args)]
struct SharesArgs {
    /// Speed of every link; nodes run in namespaces, which needs root
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    link_rate: BitRate,
    /// How long what nodes want stays as it is
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    phase: Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl SharesArgs {
    fn options(&self) -> SharesOptions {
        SharesOptions {
            place: Place {
                testbed: TestbedKind::Netns,
                link_rate: Some(self.link_rate),
                ..Place::default()
            },
            phase: self.phase,
            json: self.json,
        }
    }
}

/// Runs the benchmark that was asked for.
pub fn main(bench: &Bench) -> ExitCode {
    match &bench.command {
        None => {
            let json = bench.options.place.json;
            show(run_bench(&bench.options.options()), json, |report| {
                report.failure.as_deref()
            })
        }
        Some(Command::Raw(raw)) => show(run_raw(&raw.options()), raw.place.json, |_| None),
        Some(Command::Shares(shares)) => {
            show(run_shares(&shares.options()), shares.json, |report| {
                report.failure.as_deref()
            })
        }
        Some(Command::Figures(figures)) => figures::main(figures),
    }
}

/// Prints a report also when `failure` finds that the run does not count.
fn show<R: Display + Serialize>(
    result: Result<R, BenchError>,
    json: bool,
    failure: impl FnOnce(&R) -> Option<&str>,
) -> ExitCode {
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            complain(&error);
            let usage = matches!(error, BenchError::Usage(_));
            return ExitCode::from(if usage { 2 } else { 1 });
        }
    };
    if json {
        print_json(&report);
    } else {
        print(&report.to_string().trim_end());
    }
    match failure(&report) {
        Some(what) => {
            complain(&what);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
