//! Figure 3 of Multi-Ring Paxos (§8.3.1): one ring of three processes that propose, vote and learn, with different
//! storages, against the size of requests.
//!
//! Each proposer has ten requests under way, as many as the paper's has threads, and each request has an instance of
//! consensus of its own. Other than there, votes that wait for the disk are written together, also where writes are
//! synchronous.

use super::FiguresOptions;
use super::charts::{line_points, median};
use super::draw::{Chart, Corner, Line};
use super::plan::{Run, Spec};
use super::series::{Figure, Series};
use super::table::Table;
use crate::library::BenchReport;
use crate::options::{BenchOptions, Load, Place, StorageName, Times, Traffic, Votes, WarmUp};
use rota_core::EngineName;

/// Processes of the ring, and requests under way at each.
const NODES: usize = 3;
const THREADS: u32 = 10;

/// Columns in front of those of quantiles.
const FIRST: [&str; 14] = [
    "size_bytes",
    "series",
    "storage",
    "round",
    "mbps",
    "messages",
    "sender_mean_us",
    "sender_p50_us",
    "sender_p90_us",
    "sender_p99_us",
    "coordinator_cpu_percent",
    "cpu_percent",
    "complete",
    "identical",
];

/// Percents for which there is a column with the latency that so many messages do not exceed.
const PERCENTS: [u32; 25] = [
    1, 3, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 93, 95, 97, 98, 99,
];

fn quantile_column(percent: u32) -> String {
    format!("cdf_{percent}_us")
}

pub(super) fn columns() -> Vec<String> {
    let first = FIRST.map(str::to_owned).into_iter();
    first.chain(PERCENTS.map(quantile_column)).collect()
}

/// One round: for each size all engines and storages, one after the other.
pub(super) fn runs(options: &FiguresOptions) -> Vec<Run> {
    let wanted = |series: &&Series| options.series.is_empty() || options.series.contains(series);
    let series: Vec<Series> = Figure::Storage
        .series()
        .iter()
        .filter(wanted)
        .copied()
        .collect();
    let mut runs = Vec::new();
    for &size in &options.sizes {
        for &storage in &options.storages {
            runs.extend(series.iter().map(|&series| Run {
                series,
                x: size as f64,
                spec: Spec::Load(Box::new(load(series, size, storage, options))),
            }));
        }
    }
    runs
}

fn load(
    series: Series,
    size: usize,
    storage: StorageName,
    options: &FiguresOptions,
) -> BenchOptions {
    let defaults = BenchOptions::default();
    series.of(BenchOptions {
        place: Place {
            nodes: NODES,
            ..options.place.clone()
        },
        traffic: Traffic {
            size,
            load: Load::Outstanding(NODES as u32 * THREADS),
            ..defaults.traffic
        },
        votes: Votes {
            storage,
            instance_per_message: true,
            ..defaults.votes
        },
        times: Times {
            duration: options.duration,
            warm_up: WarmUp::For(options.warm_up),
            ..defaults.times
        },
        ..BenchOptions::default()
    })
}

/// The row of a report.
pub(super) fn row(run: &Run, round: u32, report: &BenchReport) -> Vec<String> {
    let tenths = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let us = report.latency_sender_us;
    let first = [
        run.x.to_string(),
        run.series.to_string(),
        report.setting.storage.unwrap_or_default().to_owned(),
        round.to_string(),
        tenths(Some(report.goodput_mbps)),
        report.messages.to_string(),
        tenths(us.map(|us| us.mean)),
        tenths(us.map(|us| us.p50)),
        tenths(us.map(|us| us.p90)),
        tenths(us.map(|us| us.p99)),
        tenths(report.cpu_percent_coordinator),
        tenths(Some(report.cpu_percent_per_node)),
        yes(report.complete),
        yes(report.identical),
    ];
    let quantile = |percent| {
        let share = f64::from(percent) / 100.0;
        tenths(report.latencies_at_sender.quantile(share))
    };
    first.into_iter().chain(PERCENTS.map(quantile)).collect()
}

/// The four drawings, each with the end of its file's name.
pub(super) fn charts(table: &Table) -> Vec<(&'static str, Chart)> {
    let against_size = |title: &str, y, column: &'static str, scale: f64| Chart {
        title: title.to_owned(),
        x: "bytes of a request",
        y,
        lines: lines(table, |row| Some(table.number(row, column)? * scale)),
        logarithmic_x: Some(2.0),
        ..Chart::default()
    };
    let throughput = against_size("Throughput", "Mbit/s", "mbps", 1.0);
    let latency = against_size(
        "Latency at the proposer",
        "mean, ms",
        "sender_mean_us",
        1e-3,
    );
    let cpu = "coordinator_cpu_percent";
    let cpu = against_size("Processor time of the coordinator", "% of a core", cpu, 1.0);
    vec![
        (
            "throughput",
            Chart {
                logarithmic: true,
                names: Corner::LowerRight,
                ..throughput
            },
        ),
        (
            "latency",
            Chart {
                logarithmic: true,
                names: Corner::UpperLeft,
                ..latency
            },
        ),
        (
            "cpu",
            Chart {
                headroom: 0.6,
                ..cpu
            },
        ),
        ("cdf", distribution(table)),
    ]
}

/// A line for each engine and storage.
fn each_line() -> impl Iterator<Item = (Series, StorageName, Line)> {
    let series = Figure::Storage.series().iter();
    series.flat_map(|&series| {
        StorageName::ALL.map(|storage| {
            let line = Line {
                name: format!("{series}, {storage}"),
                color: match storage {
                    StorageName::Memory => 0,
                    StorageName::Async => 2,
                    StorageName::Sync => 1,
                },
                dashed: series == Series::Engine(EngineName::URingPaxos),
                marked: true,
                points: Vec::new(),
            };
            (series, storage, line)
        })
    })
}

fn rows_of(table: &Table, series: Series, storage: StorageName) -> Vec<&Vec<String>> {
    let rows = table.rows.iter().filter(|row| {
        table.cell(row, "series") == series.name() && table.cell(row, "storage") == storage.name()
    });
    rows.collect()
}

/// Medians over rounds of a value, against the size.
fn lines(table: &Table, value: impl Fn(&[String]) -> Option<f64>) -> Vec<Line> {
    let lines = each_line().map(|(series, storage, line)| Line {
        points: line_points(&rows_of(table, series, storage), &value),
        ..line
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The distribution of the latencies of the largest requests: medians over rounds of each quantile.
fn distribution(table: &Table) -> Chart {
    let largest = table.largest("size_bytes").to_string();
    let lines = each_line().map(|(series, storage, line)| {
        let mut rows = rows_of(table, series, storage);
        rows.retain(|row| table.cell(row, "size_bytes") == largest);
        let point = |percent| {
            let column = quantile_column(percent);
            let values = rows.iter().filter_map(|row| table.number(row, &column));
            Some((median(values.collect())? / 1000.0, f64::from(percent)))
        };
        Line {
            points: PERCENTS.into_iter().filter_map(point).collect(),
            marked: false,
            ..line
        }
    });
    Chart {
        title: format!("Latency at the proposer, requests of {largest} bytes"),
        x: "ms",
        y: "% of requests that took no longer",
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        names: Corner::LowerRight,
        logarithmic_x: Some(10.0),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str, &str, f64, f64)]) -> Table {
        let columns = columns();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut table = Table::new(Vec::new(), &columns);
        for (size, series, storage, mbps, us) in rows {
            let mut row = vec![us.to_string(); columns.len()];
            for (at, cell) in [size, series, storage].into_iter().enumerate() {
                row[at] = (*cell).to_owned();
            }
            row[4] = mbps.to_string();
            table.rows.push(row);
        }
        table
    }

    #[test]
    fn each_size_has_all_engines_and_storages_with_ten_requests_at_each_node() {
        let options = FiguresOptions {
            sizes: vec![512, 32_768],
            storages: vec![StorageName::Memory, StorageName::Sync],
            ..FiguresOptions::default()
        };
        let all = runs(&options);
        assert_eq!(all.len(), 2 * 2 * 2);
        let Spec::Load(last) = &all[7].spec else {
            panic!("{all:?}")
        };
        assert_eq!((last.traffic.size, last.place.nodes), (32_768, 3));
        assert_eq!(last.votes.storage, StorageName::Sync);
        assert!(last.votes.instance_per_message);
        assert_eq!(last.traffic.load, Load::Outstanding(30));
        let one = FiguresOptions {
            series: vec![Series::Engine(EngineName::URingPaxos)],
            ..options
        };
        assert_eq!(runs(&one).len(), 4);
    }

    #[test]
    fn points_are_medians_of_the_rounds_of_an_engine_and_a_storage() {
        let table = table(&[
            ("512", "ring-paxos", "sync", 10.0, 1000.0),
            ("512", "ring-paxos", "sync", 30.0, 3000.0),
            ("512", "ring-paxos", "sync", 20.0, 9000.0),
            ("1024", "ring-paxos", "sync", 40.0, 4000.0),
            ("512", "u-ring-paxos", "memory", 70.0, 500.0),
        ]);
        let charts = charts(&table);
        let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["throughput", "latency", "cpu", "cdf"]);
        let lines = &charts[0].1.lines;
        assert_eq!(lines[0].name, "ring-paxos, sync");
        assert_eq!(lines[0].points, [(512.0, 20.0), (1024.0, 40.0)]);
        assert_eq!(lines[1].points, [(512.0, 70.0)]);
        assert!(lines[1].dashed && !lines[0].dashed);
        assert_eq!(charts[1].1.lines[0].points, [(512.0, 3.0), (1024.0, 4.0)]);
        // Of the largest size only.
        let spread = &charts[3].1;
        assert_eq!(spread.lines.len(), 1);
        assert_eq!(spread.lines[0].points.len(), PERCENTS.len());
        assert_eq!(spread.lines[0].points[0], (4.0, 1.0));
        for (name, chart) in &charts {
            assert!(chart.svg().is_ok(), "{name}");
        }
    }
}
