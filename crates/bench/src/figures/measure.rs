//! Runs benchmarks, and makes rows of their reports.

use super::FiguresOptions;
use super::plan::{Run, Spec};
use super::series::{Figure, Series};
use super::storage;
use super::table::Table;
use crate::error::BenchError;
use crate::hist::Summary;
use crate::library::{BenchReport, run_bench};
use crate::options::{Place, RawOptions};
use crate::raw::{RawReport, run_raw};
use crate::shares::{SharesOptions, SharesReport, run_shares};

/// Columns of figures 6 to 8 behind the figure's own axis. Times are counted from when a message was due; those of the
/// sender are the figures'.
pub(super) const COLUMNS: [&str; 12] = [
    "series",
    "round",
    "mbps",
    "messages",
    "sender_mean_us",
    "sender_p50_us",
    "sender_p99_us",
    "receivers_mean_us",
    "slowest_mean_us",
    "sent_again",
    "complete",
    "identical",
];

/// Columns of figure 5.
pub(super) const SHARES_COLUMNS: [&str; 14] = [
    "round",
    "seconds",
    "wanted_1",
    "wanted_2",
    "wanted_3",
    "wanted_4",
    "share_1",
    "share_2",
    "share_3",
    "share_4",
    "delivered_1",
    "delivered_2",
    "delivered_3",
    "delivered_4",
];

/// Share of a load that has to be delivered where the load is not too much.
const SUSTAINED: f64 = 0.95;

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub row: Vec<String>,
    /// The reason why it does not count, if it does not.
    pub failure: Option<String>,
}

/// The values of a report that become a row.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    mbps: f64,
    messages: u64,
    sender: Option<Summary>,
    receivers: Option<f64>,
    slowest: Option<f64>,
    sent_again: Option<u64>,
    complete: Option<bool>,
    identical: Option<bool>,
}

/// Runs one benchmark of a figure with lines.
pub(super) fn run(figure: Figure, run: &Run, round: u32) -> Result<Outcome, BenchError> {
    match &run.spec {
        Spec::Load(options) => {
            let report = run_bench(options)?;
            let failure = failure(figure, &report);
            let row = match figure {
                Figure::Storage => storage::row(run, round, &report),
                _ => row(run.x, run.series, round, &of_engine(&report)),
            };
            Ok(Outcome { row, failure })
        }
        Spec::Raw(options) => {
            let values = of_raw(run.series, options, &run_raw(options)?);
            let row = row(run.x, run.series, round, &values);
            let failure = None;
            Ok(Outcome { row, failure })
        }
    }
}

/// A load that is too much is where a curve of response times ends. An order that differs is never right.
fn failure(figure: Figure, report: &BenchReport) -> Option<String> {
    let too_much = figure == Figure::ResponseTime && report.identical;
    report.failure.clone().filter(|_| !too_much)
}

fn of_engine(report: &BenchReport) -> Values {
    Values {
        mbps: report.goodput_mbps,
        messages: report.messages,
        sender: report.latency_sender_us,
        receivers: report.latency_us.map(|us| us.mean),
        slowest: report.latency_slowest_us.map(|us| us.mean),
        sent_again: Some(report.retransmissions),
        complete: Some(report.complete),
        identical: Some(report.identical),
    }
}

fn of_raw(series: Series, options: &RawOptions, report: &RawReport) -> Values {
    let rounds = report.rounds.unwrap_or(0);
    let one_at_a_time = matches!(series, Series::AllAck | Series::Hop);
    Values {
        // No receiver gets its own messages, where all send.
        mbps: if one_at_a_time {
            rounds as f64 * options.size as f64 * 8e-6 / report.seconds
        } else {
            report.received_mbps
        },
        messages: if one_at_a_time {
            rounds
        } else {
            report.deliveries
        },
        sender: match report.hops {
            Some(hops) => Some(hops.at_sender_us),
            None => report.latency_us,
        },
        slowest: report.hops.and(report.latency_us).map(|us| us.mean),
        ..Values::default()
    }
}

fn row(x: f64, series: Series, round: u32, values: &Values) -> Vec<String> {
    let tenths = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
    let yes = |is: Option<bool>| is.map_or("", |is| if is { "yes" } else { "no" }).to_owned();
    let sender = |of: fn(Summary) -> f64| tenths(values.sender.map(of));
    vec![
        x.to_string(),
        series.to_string(),
        round.to_string(),
        tenths(Some(values.mbps)),
        values.messages.to_string(),
        sender(|us| us.mean),
        sender(|us| us.p50),
        sender(|us| us.p99),
        tenths(values.receivers),
        tenths(values.slowest),
        values
            .sent_again
            .map_or(String::new(), |count| count.to_string()),
        yes(values.complete),
        yes(values.identical),
    ]
}

/// Whether a run delivered the load that the first column of its row names.
pub(super) fn sustained(table: &Table, row: &[String]) -> bool {
    let load = row.first().and_then(|load| load.parse::<f64>().ok());
    let mbps = table.number(row, "mbps");
    let enough = load
        .zip(mbps)
        .is_some_and(|(load, mbps)| mbps >= SUSTAINED * load);
    enough && table.cell(row, "complete") != "no"
}

/// Runs the experiment of figure 5.
pub(super) fn shares(options: &FiguresOptions) -> Result<SharesReport, BenchError> {
    run_shares(&SharesOptions {
        place: Place {
            nodes: crate::shares::NODES,
            ..options.place.clone()
        },
        phase: options.phase,
        json: false,
    })
}

/// The rows of figure 5: one for each tenth of a second, in Mbit/s of payload.
pub(super) fn shares_rows(report: &SharesReport, round: u32) -> Vec<Vec<String>> {
    let per_phase = report.slots.len() / report.phases.len().max(1);
    let slots = report.slots.iter().enumerate();
    let rows = slots.filter_map(|(at, delivered)| {
        let phase = report.phases.get(at / per_phase.max(1))?;
        let rates = phase.wanted.iter().chain(&phase.shares).chain(delivered);
        let seconds = (at + 1) as f64 * crate::shares::SLOT_NS as f64 / 1e9;
        let head = [round.to_string(), format!("{seconds:.1}")];
        let rates = rates.map(|mbps| format!("{mbps:.1}"));
        Some(head.into_iter().chain(rates).collect())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(mbps: f64, complete: Option<bool>) -> Table {
        let columns: Vec<&str> = std::iter::once("load_mbps").chain(COLUMNS).collect();
        let mut table = Table::new(Vec::new(), &columns);
        let values = Values {
            mbps,
            complete,
            sender: Some(Summary {
                mean: 1234.56,
                ..Summary::default()
            }),
            ..Values::default()
        };
        table.rows = vec![row(100.0, Series::AllAck, 1, &values)];
        table
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let table = table(99.94, Some(true));
        let row = &table.rows[0];
        assert_eq!(row.len(), table.columns.len());
        assert_eq!(table.number(row, "load_mbps"), Some(100.0));
        assert_eq!(table.cell(row, "series"), "raw-all-ack");
        assert_eq!(table.number(row, "mbps"), Some(99.9));
        assert_eq!(table.number(row, "sender_mean_us"), Some(1234.6));
        assert_eq!(table.cell(row, "complete"), "yes");
        assert_eq!(table.cell(row, "identical"), "");
    }

    #[test]
    fn a_load_is_sustained_when_nearly_all_of_it_is_delivered_and_nothing_is_missing() {
        let sustained = |table: &Table| sustained(table, &table.rows[0]);
        assert!(sustained(&table(95.0, Some(true))));
        assert!(sustained(&table(95.0, None)));
        assert!(!sustained(&table(94.9, Some(true))));
        assert!(!sustained(&table(100.0, Some(false))));
    }
}
