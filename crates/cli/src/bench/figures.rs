//! `rota bench figures`: from the command line to what is measured, or only drawn.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::value_parser;
use rota_bench::{
    BenchError, BitRate, Figure, FiguresOptions, FiguresReport, Paper, Place, Series, StorageName,
    TestbedKind, draw_figures, parse_duration, run_figures,
};

use super::{one_of, show};
use crate::say::tell;

/// Speed of links where nothing else is said, in bits per second.
const LINK: BitRate = BitRate(1_000_000_000);

/// Options of `rota bench figures`.
#[derive(Clone, Debug, clap::Args)]
pub struct FiguresArgs {
    /// The folder for tables (CSV) and drawings (SVG)
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Only draw, from the tables in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["append", "series"])]
    from: Option<PathBuf>,
    /// Whose figures: 5 to 8 of fastcast, 3 of multi-ring [default: fastcast; with --from both]
    #[arg(long, value_parser = one_of::<Paper>(&["fastcast", "multi-ring"]))]
    paper: Option<Paper>,
    /// Which figures of the paper, like 6,8 [default: all; with --from those that are there]
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// What to compare: engines, raw-multicast, raw-tcp, raw-all-ack, raw-hop [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    series: Vec<Series>,
    /// Where the nodes run; namespaces need root
    #[arg(long, default_value = "netns", value_parser = one_of::<TestbedKind>(&["loopback", "netns"]))]
    testbed: TestbedKind,
    /// Speed of every link [default: 1gbit in namespaces; not limited for multi-ring]
    #[arg(long, value_name = "RATE")]
    link_rate: Option<BitRate>,
    /// Numbers of nodes for figures 6 and 8; figure 7 has the largest
    #[arg(long, value_delimiter = ',', default_value = "2,3,4,5,6,7,8",
        value_parser = value_parser!(u16).range(2..=128))]
    nodes: Vec<u16>,
    /// Loads of all senders together for figure 7; a curve ends where they are too much
    #[arg(
        long,
        value_name = "RATES",
        value_delimiter = ',',
        default_value = "50mbit,100mbit,200mbit,300mbit,400mbit,500mbit,600mbit,700mbit,800mbit,900mbit,1gbit"
    )]
    loads: Vec<BitRate>,
    /// Clean payload of a message for figures 6 to 8, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10_000)]
    size: usize,
    /// Sizes of requests for figure 3 of multi-ring, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "512,1024,2048,4096,8192,16384,32768"
    )]
    sizes: Vec<usize>,
    /// Storages for figure 3 of multi-ring
    #[arg(long, value_delimiter = ',', default_value = "memory,async,sync",
        value_parser = one_of::<StorageName>(&["memory", "async", "sync"]))]
    storage: Vec<StorageName>,
    /// How long each benchmark measures; not in figure 5
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    duration: Duration,
    /// How long its load runs before that
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_duration)]
    warm_up: Duration,
    /// How long requirements stay as they are in figure 5
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    phase: Duration,
    /// How often everything is measured; drawn are medians
    #[arg(long, value_name = "TIMES", default_value_t = 3)]
    rounds: u32,
    /// Go on with the tables that are there
    #[arg(long)]
    append: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl FiguresArgs {
    /// The figures that are asked for by number, or all of the paper.
    fn figures(&self) -> Result<Vec<Figure>, BenchError> {
        let paper = self.paper.unwrap_or(Paper::FastCast);
        let Some(numbers) = &self.only else {
            return Ok(paper.figures());
        };
        // The drawings are of both papers.
        let is_open = self.from.is_some() && self.paper.is_none();
        let figures = numbers.iter().map(|number| match paper.figure(number) {
            Err(_) if is_open => Paper::MultiRing.figure(number),
            figure => figure,
        });
        let figures: Result<Vec<Figure>, _> = figures.collect();
        figures.map_err(|error| BenchError::Usage(error.to_string()))
    }

    fn options(&self, figures: Vec<Figure>) -> FiguresOptions {
        // The paper's links took in more than two processors send.
        let limited = self.testbed == TestbedKind::Netns && self.paper != Some(Paper::MultiRing);
        FiguresOptions {
            place: Place {
                testbed: self.testbed,
                link_rate: self.link_rate.or(limited.then_some(LINK)),
                ..Place::default()
            },
            figures,
            series: self.series.clone(),
            nodes: self.nodes.iter().map(|nodes| usize::from(*nodes)).collect(),
            loads: self.loads.clone(),
            size: self.size,
            sizes: self.sizes.clone(),
            storages: self.storage.clone(),
            duration: self.duration,
            warm_up: self.warm_up,
            phase: self.phase,
            rounds: self.rounds,
            append: self.append,
            output: self.output.clone(),
        }
    }
}

/// Measures and draws, or only draws.
pub fn main(figures: &FiguresArgs) -> ExitCode {
    show(measure(figures), figures.json, |report| report.failure())
}

fn measure(figures: &FiguresArgs) -> Result<FiguresReport, BenchError> {
    let wanted = figures.figures()?;
    match &figures.from {
        Some(from) => {
            let any = figures.only.is_none() && figures.paper.is_none();
            let wanted = (!any).then_some(wanted);
            draw_figures(from, wanted.as_deref(), &figures.output)
        }
        None => run_figures(&figures.options(wanted), &mut |what| tell(&what)),
    }
}
