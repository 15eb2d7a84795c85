//! `rota bench` and `rota bench raw`: from the command line to the benchmarks' options.

mod compare;
mod figures;
mod load;

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rota_bench::{
    BenchError, BitRate, Offload, Pattern, Pin, Place, RawOptions, Senders, SharesOptions,
    TestbedKind, parse_duration, run_raw, run_shares,
};
use serde::Serialize;

use load::LoadArgs;

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
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
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
    /// Two programs, or two settings, in turns until it is clear whether they differ
    #[command(after_help = compare::AFTER_HELP)]
    Compare(compare::CompareArgs),
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
    /// Bytes that may pass a link of that speed at once [default: 131072, with --offload split 32768]
    #[arg(long, value_name = "BYTES", requires = "link_rate")]
    link_burst: Option<u32>,
    /// Bytes that the port of such a link queues [default: 524288]
    #[arg(long, value_name = "BYTES", requires = "link_rate")]
    link_queue: Option<u32>,
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
            link_burst: self.link_burst,
            link_queue: self.link_queue,
            offload: self.offload,
            pin: self.pin,
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
        None => load::main(&bench.options),
        Some(Command::Compare(compare)) => compare::main(compare),
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
