//! `rota bench figures`: from the command line to what is measured, or only drawn.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::value_parser;
use rota_bench::{
    BitRate, Figure, FiguresOptions, Place, Series, TestbedKind, draw_figures, parse_duration,
    run_figures,
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
    /// Which figures of the paper, like 6,8 [default: all; with --from those that are there]
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    only: Option<Vec<Figure>>,
    /// What to compare: engines, raw-multicast, raw-tcp, raw-all-ack, raw-hop [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    series: Vec<Series>,
    /// Where the nodes run; namespaces need root
    #[arg(long, default_value = "netns", value_parser = one_of::<TestbedKind>(&["loopback", "netns"]))]
    testbed: TestbedKind,
    /// Speed of every link [default: 1gbit in namespaces]
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
    /// How long each benchmark of figures 6 to 8 measures
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
    fn options(&self) -> FiguresOptions {
        let in_namespaces = self.testbed == TestbedKind::Netns;
        FiguresOptions {
            place: Place {
                testbed: self.testbed,
                link_rate: self.link_rate.or(in_namespaces.then_some(LINK)),
                ..Place::default()
            },
            figures: self.only.clone().unwrap_or_else(|| Figure::ALL.to_vec()),
            series: self.series.clone(),
            nodes: self.nodes.iter().map(|nodes| usize::from(*nodes)).collect(),
            loads: self.loads.clone(),
            size: self.size,
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
    let result = match &figures.from {
        Some(from) => draw_figures(from, figures.only.as_deref(), &figures.output),
        None => run_figures(&figures.options(), &mut |what| tell(&what)),
    };
    show(result, figures.json, |report| report.failure())
}
