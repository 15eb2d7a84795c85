//! `rota bench`: a load, and what is measured of it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use rota_bench::{
    BenchError, BenchOptions, BenchReport, Bound, Event, Leveling, LinkShares, Load, ManyRings,
    Mode, ParseError, RingLimits, Senders, ServiceName, StorageName, Subject, Subscribe, Times,
    Traffic, Trouble, Votes, WarmUp, parse_duration, run_bench, run_search,
};
use rota_core::EngineName;

use super::{PlaceArgs, one_of, show};
use crate::say::tell;

/// Options of a load.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Which protocol orders the messages
    #[arg(long, default_value = "accelerated-ring",
        value_parser = one_of::<Subject>(&Subject::names().collect::<Vec<_>>()))]
    engine: Subject,
    /// What the load goes through
    #[arg(long, default_value = "library", value_parser = one_of::<Mode>(&["library", "daemon"]))]
    mode: Mode,
    /// Load the daemons of a running cluster instead, a client for each, at these addresses with commas between them: sockets
    /// or tcp:HOST:PORT; settings of nodes and links are the cluster's then
    #[arg(
        long,
        value_name = "ADDRESSES",
        value_delimiter = ',',
        conflicts_with = "mode"
    )]
    connect: Vec<String>,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    times: TimesArgs,
    #[command(flatten)]
    trouble: TroubleArgs,
    /// Find the highest rate with which latency keeps this bound, like p99=1ms, instead of measuring one load
    #[arg(long, value_name = "BOUND", conflicts_with_all = ["rate", "outstanding", "first_message"])]
    within: Option<Bound>,
    /// Write all latencies of other nodes' messages to this file, by percentiles, as HdrHistogram's tools plot them
    #[arg(long, value_name = "FILE", conflicts_with = "within")]
    histogram: Option<PathBuf>,
    /// Seal datagrams between nodes, with a key made for the run
    #[arg(long)]
    sealed: bool,
    #[command(flatten)]
    ring: RingArgs,
    /// What links take in, by which senders go with fastcast: what --link-rate says, less while packets get lost, what
    /// losses tell, or nothing; with ring-paxos: what --link-rate says, or (estimated, off) nothing
    #[arg(long, default_value = "configured",
        value_parser = one_of::<LinkShares>(&["configured", "yielding", "estimated", "off"]))]
    shares: LinkShares,
    #[command(flatten)]
    votes: VotesArgs,
    #[command(flatten)]
    many: ManyArgs,
    /// A TCP stream from node 1 to node 2 uses the same links
    #[arg(long)]
    beside_tcp: bool,
    /// Slow motion: links, hops and time-outs this many times slower, and all that is measured told as if they were not. The
    /// processors of one host count that much less
    #[arg(long, value_name = "TIMES", default_value_t = 1, requires = "link_rate",
        value_parser = clap::value_parser!(u32).range(1..1000))]
    slow: u32,
}

impl LoadArgs {
    fn options(&self) -> BenchOptions {
        BenchOptions {
            place: self.place.place(),
            engine: self.engine,
            mode: self.mode,
            traffic: self.traffic.traffic(),
            times: self.times.times(),
            trouble: self.trouble.trouble(),
            sealed: self.sealed,
            ring: self.ring.limits(),
            shares: self.shares,
            votes: self.votes.votes(),
            many: self.many.many(),
            beside_tcp: self.beside_tcp,
            connect: self.connect.clone(),
            slow: self.slow,
        }
    }
}

/// What is sent.
#[derive(Clone, Debug, clap::Args)]
struct TrafficArgs {
    /// Clean payload of a message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1350)]
    size: usize,
    /// What all senders together send: a rate like 500mbit, max, or 0 for an idle ring
    #[arg(long, value_name = "RATE", default_value = "max")]
    rate: Load,
    /// Messages of a rate come at random times (a Poisson process) instead of evenly
    #[arg(long)]
    random: bool,
    /// Instead, a closed loop: so many messages under way in all. Each sender keeps the same share of them (what is left over
    /// goes to the first nodes, one each) and submits the next when one of its own is delivered to it; latencies count from
    /// the submission
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "first_message"],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    outstanding: Option<u32>,
    /// Which nodes send: all, half, or how many
    #[arg(long, default_value = "all")]
    senders: Senders,
    /// The delivery guarantee
    #[arg(long, default_value = "agreed",
        value_parser = one_of::<ServiceName>(&["agreed", "safe"]))]
    service: ServiceName,
    /// Waste so many nanoseconds of the processor with each submission: a comparison has to find it
    #[arg(long, value_name = "NS", default_value_t = 0, hide = true)]
    waste_ns: u64,
}

impl TrafficArgs {
    fn traffic(&self) -> Traffic {
        Traffic {
            size: self.size,
            load: self.outstanding.map_or(self.rate, Load::Outstanding),
            is_random: self.random,
            senders: self.senders,
            service: self.service,
            waste: Duration::from_nanos(self.waste_ns),
        }
    }
}

/// `auto`, or a duration.
#[derive(Clone, Copy, Debug)]
struct WarmUpArg(WarmUp);

impl FromStr for WarmUpArg {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Ok(Self(match text {
            "auto" => WarmUp::Found,
            _ => WarmUp::For(parse_duration(text)?),
        }))
    }
}

/// What is measured, and for how long.
#[derive(Clone, Debug, clap::Args)]
struct TimesArgs {
    /// How long to measure, like 5s
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    duration: Duration,
    /// How long the load runs before that; auto: as long as a run before this one takes to settle
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    warm_up: WarmUpArg,
    /// Measure the first message after a silence instead, so many times
    #[arg(long, value_name = "TRIALS")]
    first_message: Option<u32>,
    /// Report what was delivered over time, in slots of this length
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    series: Option<Duration>,
}

impl TimesArgs {
    const fn times(&self) -> Times {
        Times {
            duration: self.duration,
            warm_up: self.warm_up.0,
            first_message: self.first_message,
            series: self.series,
        }
    }
}

/// What disturbs the nodes.
#[derive(Clone, Debug, clap::Args)]
struct TroubleArgs {
    /// Share of received data packets that each node drops, from 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    loss: f64,
    /// Drop only packets of the node so many places before the one that drops
    #[arg(long, value_name = "K")]
    loss_distance: Option<usize>,
    /// Every datagram arrives so much later, tokens too
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    delay: Duration,
    /// What happens, so long after the measured time began: kill:2@1s, pause:3@1s+500ms, cut:1-2@2s+1s (with --testbed netns);
    /// several times for several events
    #[arg(long, value_name = "EVENT")]
    event: Vec<Event>,
}

impl TroubleArgs {
    fn trouble(&self) -> Trouble {
        Trouble {
            loss: self.loss,
            loss_distance: self.loss_distance,
            delay: self.delay,
            events: self.event.clone(),
        }
    }
}

/// Settings of a ring.
#[derive(Clone, Debug, clap::Args)]
struct RingArgs {
    /// New packets a node may send in one visit of the token
    #[arg(long, value_name = "PACKETS")]
    personal_window: Option<u32>,
    /// How many of them may leave after the token
    #[arg(long, value_name = "PACKETS")]
    accelerated_window: Option<u32>,
    /// Packets all nodes together may send in one rotation
    #[arg(long, value_name = "PACKETS")]
    global_window: Option<u32>,
    /// The method by which the priority of the token is raised again (thesis, 3.1.4)
    #[arg(long, value_name = "METHOD", value_parser = clap::value_parser!(u8).range(1..=2))]
    priority_method: Option<u8>,
    /// The largest datagram, in bytes of UDP payload
    #[arg(long, value_name = "BYTES")]
    datagram_bytes: Option<usize>,
}

impl RingArgs {
    const fn limits(&self) -> RingLimits {
        RingLimits {
            personal_window: self.personal_window,
            accelerated_window: self.accelerated_window,
            global_window: self.global_window,
            priority_method: self.priority_method,
            datagram_bytes: self.datagram_bytes,
        }
    }
}

/// Settings of engines in which acceptors vote.
#[derive(Clone, Debug, clap::Args)]
struct VotesArgs {
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
}

impl VotesArgs {
    fn votes(&self) -> Votes {
        Votes {
            storage: self.storage,
            acceptors: self.acceptors.clone(),
            instance_per_message: self.instance_per_message,
        }
    }
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

/// Measures the load, or searches for one.
pub(super) fn main(args: &LoadArgs) -> ExitCode {
    let (options, json) = (args.options(), args.place.json);
    if let Some(bound) = args.within {
        let searched = run_search(&options, bound, &mut |what| tell(&what));
        return show(searched, json, |report| report.failure());
    }
    let measured = run_bench(&options).and_then(|report| {
        if let Some(file) = &args.histogram {
            write_histogram(&report, file)?;
        }
        Ok(report)
    });
    show(measured, json, |report| report.failure.as_deref())
}

fn write_histogram(report: &BenchReport, path: &Path) -> Result<(), BenchError> {
    let file = File::create(path).map_err(BenchError::io("cannot make the histogram's file"))?;
    let mut out = BufWriter::new(file);
    let written = report.latencies.write_percentiles(&mut out);
    let written = written.and_then(|()| std::io::Write::flush(&mut out));
    written.map_err(BenchError::io("cannot write the histogram"))
}
