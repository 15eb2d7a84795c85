//! `rota bench figures`: FastCast's figures 5 to 8 and figure 3 of Multi-Ring Paxos, measured here.
//!
//! The series of a figure take turns, so that a busy minute of the machine hits all of them. All measurements are
//! written to one table for each figure, and the drawings are made from these tables: again at any time, without
//! measuring.

mod charts;
mod draw;
mod measure;
mod paper;
mod plan;
mod report;
mod series;
mod storage;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use draw::{Chart, Corner, Line};
pub use paper::Paper;
pub use report::{FigureReport, FiguresReport};
pub use series::{Figure, Series};

use crate::error::BenchError;
use crate::library::MIN_PAYLOAD;
use crate::options::{BitRate, Place, StorageName, TestbedKind};
use table::Table;

/// Options of `rota bench figures`.
#[derive(Clone, Debug)]
pub struct FiguresOptions {
    /// The place where the nodes run; `nodes` has their numbers.
    pub place: Place,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The series that are compared; nothing: all that the figures have.
    pub series: Vec<Series>,
    /// Numbers of nodes in figures 6 and 8; figure 7 has the largest of them.
    pub nodes: Vec<usize>,
    /// Loads of all senders together in figure 7.
    pub loads: Vec<BitRate>,
    /// Clean payload of a message in figures 6 to 8.
    pub size: usize,
    /// Sizes of requests in figure 3.
    pub sizes: Vec<usize>,
    /// Storages in figure 3.
    pub storages: Vec<StorageName>,
    /// The time that each benchmark measures; not in figure 5.
    pub duration: Duration,
    /// The time for which its load runs before that.
    pub warm_up: Duration,
    /// The time for which requirements stay as they are in figure 5.
    pub phase: Duration,
    /// The number of times that everything is measured.
    pub rounds: u32,
    /// Goes on with the tables that are there.
    pub append: bool,
    /// The folder for tables and drawings.
    pub output: PathBuf,
}

impl Default for FiguresOptions {
    fn default() -> Self {
        Self {
            place: Place::default(),
            figures: Paper::FastCast.figures(),
            series: Vec::new(),
            nodes: (2..=8).collect(),
            loads: Vec::new(),
            size: 10_000,
            sizes: (9..=15).map(|power| 1 << power).collect(),
            storages: StorageName::ALL.to_vec(),
            duration: Duration::from_secs(2),
            warm_up: Duration::from_millis(500),
            phase: Duration::from_secs(10),
            rounds: 1,
            append: false,
            output: PathBuf::new(),
        }
    }
}

/// Measures the figures and draws them. `progress` is told of each benchmark when it is done.
///
/// # Errors
/// [`BenchError::Usage`] before anything is measured; later only errors that make it impossible to go on. A benchmark
/// that fails is reported: see [`FiguresReport::failure`].
pub fn run_figures(
    options: &FiguresOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<FiguresReport, BenchError> {
    check(options)?;
    fs::create_dir_all(&options.output).map_err(BenchError::io("cannot make the folder"))?;
    let begin = |&figure: &Figure| Ok((figure, begin(figure, options)?));
    let tables: Result<Vec<_>, BenchError> = options.figures.iter().map(begin).collect();
    let mut report = FiguresReport::default();
    for (figure, mut table) in tables? {
        let mut failures = Vec::new();
        let first = table.largest("round") + 1;
        for round in first..first + options.rounds {
            let mut on = |said: Result<String, String>| {
                let what = said.as_ref().unwrap_or_else(|failure| failure);
                progress(&format!("figure {figure}, round {round}: {what}"));
                failures.extend(said.err());
            };
            match figure {
                Figure::Shares => shares_round(options, round, &mut table, &mut on)?,
                _ => lines_round(figure, options, round, &mut table, &mut on)?,
            }
        }
        finish(figure, &table, options, failures, &mut report)?;
    }
    Ok(report)
}

/// Draws the measurements of a figure. If it has none, the others have their turn all the same.
fn finish(
    figure: Figure,
    table: &Table,
    options: &FiguresOptions,
    mut failures: Vec<String>,
    report: &mut FiguresReport,
) -> Result<(), BenchError> {
    let drawings = match draw_table(figure, table, &options.output) {
        Ok(drawings) => drawings,
        Err(BenchError::Figure(what)) => {
            failures.push(what);
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let files = (csv(&options.output, figure), drawings);
    report.add(figure, table, files, failures);
    Ok(())
}

/// Draws figures from the tables in `from`: all that are there, or those asked for.
///
/// # Errors
/// [`BenchError`] where a table is missing or says nothing.
pub fn draw_figures(
    from: &Path,
    figures: Option<&[Figure]>,
    output: &Path,
) -> Result<FiguresReport, BenchError> {
    let there = |figure: &Figure| csv(from, *figure).is_file();
    let figures = match figures {
        Some(figures) => figures.to_vec(),
        None => Figure::ALL.into_iter().filter(there).collect(),
    };
    if figures.is_empty() {
        let what = format!("{}: no table of a figure is there", from.display());
        return Err(BenchError::Usage(what));
    }
    fs::create_dir_all(output).map_err(BenchError::io("cannot make the folder"))?;
    let mut report = FiguresReport::default();
    for figure in figures {
        let table = Table::read(&csv(from, figure))?;
        let drawings = draw_table(figure, &table, output)?;
        report.add(figure, &table, (csv(from, figure), drawings), Vec::new());
    }
    Ok(report)
}

fn check(options: &FiguresOptions) -> Result<(), BenchError> {
    let wants = |figure| options.figures.contains(&figure);
    let no_links = options.place.testbed == TestbedKind::Loopback;
    let no_nodes = options.nodes.is_empty() || options.nodes.iter().any(|nodes| *nodes < 2);
    let wrong = if options.figures.is_empty() {
        "no figure is asked for"
    } else if wants(Figure::Shares) && (no_links || options.place.link_rate.is_none()) {
        "figure 5 is about shares of links: it needs --testbed netns and --link-rate"
    } else if wants(Figure::ResponseTime) && options.loads.is_empty() {
        "figure 7 needs loads"
    } else if wants(Figure::Storage) && (options.sizes.is_empty() || options.storages.is_empty()) {
        "figure 3 needs sizes of requests and storages"
    } else if wants(Figure::Storage) && options.sizes.iter().any(|size| *size < MIN_PAYLOAD) {
        "a size of requests is too small: each carries its time"
    } else if no_nodes {
        "a cluster has two nodes at least"
    } else if options.rounds == 0 {
        "--rounds must be at least 1"
    } else {
        return Ok(());
    };
    Err(BenchError::Usage(wrong.to_owned()))
}

fn csv(folder: &Path, figure: Figure) -> PathBuf {
    folder.join(format!("{}.csv", figure.stem()))
}

/// A table with nothing in it but notes on how it is measured, or the one that is to be gone on with.
fn begin(figure: Figure, options: &FiguresOptions) -> Result<Table, BenchError> {
    let path = csv(&options.output, figure);
    let columns = columns(figure);
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let new = Table::new(notes(figure, options), &columns);
    match (path.exists(), options.append) {
        (true, true) => new.append_to(Table::read(&path)?),
        (true, false) => Err(BenchError::Usage(format!(
            "{} is there: --append goes on with it",
            path.display()
        ))),
        (false, _) => Ok(new),
    }
}

fn columns(figure: Figure) -> Vec<String> {
    let axis = match figure {
        Figure::Shares => return measure::SHARES_COLUMNS.map(str::to_owned).to_vec(),
        Figure::Storage => return storage::columns(),
        Figure::ResponseTime => "load_mbps",
        Figure::Throughput | Figure::Latency => "nodes",
    };
    let columns = std::iter::once(axis).chain(measure::COLUMNS);
    columns.map(str::to_owned).collect()
}

/// The way in which a figure is measured: the command of each benchmark, and the settings of the testbed.
fn notes(figure: Figure, options: &FiguresOptions) -> Vec<String> {
    let mut notes = vec![match figure.paper() {
        Paper::FastCast => format!("FastCast figure {figure}: rota bench figures"),
        paper => format!("Multi-Ring Paxos figure {figure}: rota bench figures --paper {paper}"),
    }];
    let testbed = crate::testbed::Values::of(&options.place);
    notes.push(testbed.to_string());
    if figure == Figure::Shares {
        let rate = options.place.link_rate.unwrap_or(BitRate(0));
        let phase = options.phase.as_millis();
        notes.push(format!(
            "fastcast: rota bench shares --link-rate {rate} --phase {phase}ms"
        ));
        return notes;
    }
    let all = FiguresOptions {
        series: Vec::new(),
        ..options.clone()
    };
    // Each series stands there once, at whichever place of the axis it comes first.
    for run in plan::round(figure, &all) {
        let note = format!("{}: {}", run.series, plan::command(figure, &run.spec));
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Measures one round of a figure with lines, and writes down each benchmark when it is done.
fn lines_round(
    figure: Figure,
    options: &FiguresOptions,
    round: u32,
    table: &mut Table,
    on: &mut dyn FnMut(Result<String, String>),
) -> Result<(), BenchError> {
    let mut over: Vec<Series> = Vec::new();
    for run in plan::round(figure, options) {
        // A series that does not deliver a load will not deliver a larger one.
        if over.contains(&run.series) {
            continue;
        }
        let name = format!(
            "{}{} at {}",
            run.series,
            plan::storage_of(figure, &run.spec),
            run.x
        );
        let outcome = match measure::run(figure, &run, round) {
            Ok(outcome) => outcome,
            Err(error @ BenchError::Usage(_)) => return Err(error),
            Err(error) => {
                on(Err(format!("{name}: {error}")));
                continue;
            }
        };
        if figure == Figure::ResponseTime && !measure::sustained(table, &outcome.row) {
            over.push(run.series);
        }
        let (mbps, us) = (
            table.cell(&outcome.row, "mbps").to_owned(),
            table.cell(&outcome.row, "sender_mean_us").to_owned(),
        );
        table.rows.push(outcome.row);
        table.write(&csv(&options.output, figure))?;
        let us = Some(us).filter(|us| !us.is_empty());
        let us = us.map(|us| format!(", {us} us"));
        on(match outcome.failure {
            None => Ok(format!("{name}: {mbps} Mbit/s{}", us.unwrap_or_default())),
            Some(failure) => Err(format!("{name}: {failure}")),
        });
    }
    Ok(())
}

/// Measures figure 5 once.
fn shares_round(
    options: &FiguresOptions,
    round: u32,
    table: &mut Table,
    on: &mut dyn FnMut(Result<String, String>),
) -> Result<(), BenchError> {
    let report = match measure::shares(options) {
        Ok(report) => report,
        Err(error @ BenchError::Usage(_)) => return Err(error),
        Err(error) => {
            on(Err(error.to_string()));
            return Ok(());
        }
    };
    let said = format!(
        "{} increases, {:.2} ms on average, {} slow; {:.3} % of packets sent again; phases differ from the sum of the \
         shares by {} %",
        report.increases,
        report.increase_ms,
        report.slow_increases,
        report.resent_percent,
        report
            .phases
            .iter()
            .map(|phase| format!("{:+.1}", phase.off_percent))
            .collect::<Vec<_>>()
            .join(" "),
    );
    table.notes.push(format!("round {round}: {said}"));
    table.rows.extend(measure::shares_rows(&report, round));
    table.write(&csv(&options.output, Figure::Shares))?;
    on(Ok(said));
    Ok(())
}

fn draw_table(figure: Figure, table: &Table, output: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut drawings = Vec::new();
    for (name, chart) in charts::charts(figure, table) {
        let text = chart.svg()?;
        let name = if name.is_empty() {
            format!("{}.svg", figure.stem())
        } else {
            format!("{}-{name}.svg", figure.stem())
        };
        let path = output.join(name);
        fs::write(&path, text).map_err(BenchError::io("cannot write a drawing"))?;
        drawings.push(path);
    }
    Ok(drawings)
}

#[cfg(test)]
mod tests;
