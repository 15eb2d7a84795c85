//! `rota sim run`, `replay`, `explore` and `reproduce`: from the command line to the simulator's options.

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rota_sim::campaign::{self, Cuts, EngineName, GroupsChoice, Options, PrimaryChoice};
use rota_sim::explore::{self, Start};
use rota_sim::plan::Profile;

use crate::explore_paxos::PaxosArgs;
use crate::reproduce::ReproduceArgs;
use crate::say::{complain, print, print_json};

/// Subcommands of `rota sim`.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Sim {
    /// Run many seeds, with all properties checked
    #[command(after_help = "Example:\n  rota sim run --seeds 0..1000 --jobs 2\n\n\
        Exit status: 0 if every property held, 1 if not, 2 for wrong use.")]
    Run(RunArgs),
    /// Run one seed again, with all its faults or some of them
    #[command(after_help = "Examples:\n  rota sim replay --seed 17\n  \
        rota sim replay --seed 17 --keep 2,5 --trace traces\n\n\
        Exit status: 0 if every property held, 1 if not, 2 for wrong use.")]
    Replay(ReplayArgs),
    /// Search all schedules of a few nodes, up to a depth
    #[command(after_help = "Examples:\n  rota sim explore --nodes 2 --depth 30\n  \
        rota sim explore --nodes 3 --losses 2 --crashes 1 --start lost\n\n\
        Exit status: 0 if every property held, 1 if not, 2 for wrong use.")]
    Explore(ExploreArgs),
    /// Search all schedules of the consensus of Ring Paxos and U-Ring Paxos, up to a depth or to the end
    #[command(
        after_help = "Examples:\n  rota sim explore-paxos --stands 1 --values 1\n  \
        rota sim explore-paxos --acceptors 5 --start mended --stands 1 --crashes 2 --coordinators 3\n\n\
        Exit status: 0 if every property held, 1 if not, 2 for wrong use."
    )]
    ExplorePaxos(PaxosArgs),
    /// The papers' experiments on a simulated network: every claim beside ours, with a verdict
    #[command(after_help = "Examples:\n  rota sim reproduce --output report\n  \
        rota sim reproduce --only r22,r23 --explain --output report\n\n\
        Exit status: 0 if it was simulated and written, 1 if not or if nodes did not deliver in one order, 2 for wrong use.")]
    Reproduce(ReproduceArgs),
}

#[derive(Clone, Debug, clap::Args)]
struct CommonArgs {
    /// Which protocol orders the messages
    #[arg(long, default_value = "accelerated-ring", value_parser = engines())]
    engine: EngineName,
    /// Which faults to draw from; all: those that the engine claims to survive
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = profiles())]
    faults: Profile,
    /// Which seeds have the layer that says which configurations are primary: those that are drawn
    /// to, none, or all with one of the rules
    #[arg(long, value_name = "WHICH", default_value = "drawn", value_parser = primaries())]
    primary: PrimaryChoice,
    /// Which seeds have clients and groups: those that are drawn to, none, or all
    #[arg(long, value_name = "WHICH", default_value = "drawn", value_parser = groups())]
    groups: GroupsChoice,
    /// A protocol bug to put in (only in builds with --features mutants)
    #[arg(long, value_name = "M")]
    mutant: Option<String>,
    /// Write what each node saw, below a directory for each seed
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Which seeds: from A, without B
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    seeds: Range<u64>,
    /// Threads; the result does not depend on them
    #[arg(long, value_name = "K", default_value_t = 1)]
    jobs: usize,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Which seed
    #[arg(long)]
    seed: u64,
    /// Only these of its timed faults, by their places from 0, or none
    #[arg(long, value_name = "PLACES", value_parser = parse_keep)]
    keep: Option<Keep>,
    /// End the faults at this time, in nanoseconds
    #[arg(long, value_name = "NANOSECONDS")]
    horizon_ns: Option<u64>,
    /// Without the network's own losses, repetitions and delays
    #[arg(long)]
    calm: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ExploreArgs {
    /// Which protocol orders the messages
    #[arg(long, default_value = "accelerated-ring", value_parser = rings())]
    engine: EngineName,
    /// How many nodes
    #[arg(long, default_value_t = 2)]
    nodes: usize,
    /// Where from; heard: rings of one about to hear of each other; lost: one ring without its token
    #[arg(long, value_name = "NAME", default_value = "heard", value_parser = starts())]
    start: Start,
    /// Steps in a row, at most
    #[arg(long, default_value_t = 30)]
    depth: u32,
    /// Datagrams that may be lost
    #[arg(long, value_name = "N", default_value_t = 0)]
    losses: u32,
    /// Nodes that may die, and start again
    #[arg(long, value_name = "N", default_value_t = 0)]
    crashes: u32,
    /// Timers that may fire while something else could happen
    #[arg(long, value_name = "N", default_value_t = 0)]
    early: u32,
    /// Let datagrams of one link overtake each other
    #[arg(long)]
    reorder: bool,
    /// End after this many distinct states
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    states: u64,
    /// Look from one of N states whether all come together
    #[arg(long, value_name = "N", default_value_t = 64)]
    settle: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl ExploreArgs {
    const fn options(&self) -> explore::Options {
        explore::Options {
            protocol: campaign::protocol(self.engine),
            nodes: self.nodes,
            start: self.start,
            depth: self.depth,
            losses: self.losses,
            crashes: self.crashes,
            early: self.early,
            reorder: self.reorder,
            states: self.states,
            settle: self.settle,
        }
    }
}

/// Places of faults that stay.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Keep(Vec<usize>);

fn engines() -> impl TypedValueParser<Value = EngineName> {
    PossibleValuesParser::new(EngineName::ALL.map(EngineName::name))
        .try_map(|name| name.parse::<EngineName>())
}

fn rings() -> impl TypedValueParser<Value = EngineName> {
    PossibleValuesParser::new(campaign::RINGS.map(EngineName::name))
        .try_map(|name| name.parse::<EngineName>())
}

fn starts() -> impl TypedValueParser<Value = Start> {
    PossibleValuesParser::new(Start::EACH.map(Start::name)).try_map(|name| name.parse::<Start>())
}

fn profiles() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::EACH.map(Profile::name))
        .try_map(|name| name.parse::<Profile>())
}

fn primaries() -> impl TypedValueParser<Value = PrimaryChoice> {
    PossibleValuesParser::new(PrimaryChoice::EACH.map(PrimaryChoice::name))
        .try_map(|name| name.parse::<PrimaryChoice>())
}

fn groups() -> impl TypedValueParser<Value = GroupsChoice> {
    PossibleValuesParser::new(GroupsChoice::EACH.map(GroupsChoice::name))
        .try_map(|name| name.parse::<GroupsChoice>())
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let ends = text.split_once("..").and_then(|(start, end)| {
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        Some(start..end)
    });
    ends.ok_or_else(|| "a range of seeds looks like 0..1000".to_owned())
}

fn parse_keep(text: &str) -> Result<Keep, String> {
    if text == "none" {
        return Ok(Keep(Vec::new()));
    }
    let places: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    places
        .map(Keep)
        .map_err(|_| "places of faults look like 0,3,4".to_owned())
}

impl CommonArgs {
    fn options(&self, seeds: Range<u64>, jobs: usize, cuts: Cuts) -> Options {
        Options {
            engine: self.engine,
            seeds,
            faults: self.faults,
            primary: self.primary,
            groups: self.groups,
            mutant: self.mutant.clone(),
            first: false,
            trace: self.trace.clone(),
            jobs,
            cuts,
        }
    }
}

/// Runs the simulation that was asked for.
pub fn main(sim: &Sim) -> ExitCode {
    match sim {
        Sim::Run(run) => {
            let options = run
                .common
                .options(run.seeds.clone(), run.jobs, Cuts::default());
            show(&options, run.common.json)
        }
        Sim::Replay(replay) => {
            let cuts = Cuts {
                keep: replay.keep.clone().map(|Keep(places)| places),
                horizon: replay.horizon_ns,
                calm: replay.calm,
            };
            let seeds = replay.seed..replay.seed.saturating_add(1);
            let options = replay.common.options(seeds, 1, cuts);
            if !replay.common.json {
                let plan = options.plan(replay.seed);
                for line in plan.differences() {
                    print(&line);
                }
                for fault in plan.faults {
                    print(&fault);
                }
            }
            show(&options, replay.common.json)
        }
        Sim::Explore(search) => search_all(search),
        Sim::ExplorePaxos(search) => search.run(),
        Sim::Reproduce(claims) => claims.run(),
    }
}

fn search_all(search: &ExploreArgs) -> ExitCode {
    let options = search.options();
    if let Err(error) = options.check() {
        complain(&error);
        return ExitCode::from(2);
    }
    let report = explore::explore(&options);
    if search.json {
        print_json(&report);
    } else {
        print(&report);
    }
    if report.violation.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn show(options: &Options, json: bool) -> ExitCode {
    if let Err(error) = options.check() {
        complain(&error);
        return ExitCode::from(2);
    }
    let report = match campaign::run(options) {
        Ok(report) => report,
        Err(error) => {
            complain(&format_args!("traces cannot be written: {error}"));
            return ExitCode::FAILURE;
        }
    };
    if json {
        print_json(&report);
    } else {
        print(&report);
    }
    if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
