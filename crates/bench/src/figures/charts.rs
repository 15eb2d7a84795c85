//! Charts of the tables of measurements.

use super::draw::{Chart, Corner, Line};
use super::measure::sustained;
use super::series::{Figure, Series};
use super::storage;
use super::table::Table;
use crate::shares::NODES;
use rota_core::EngineName;

/// The drawings of a table: several drawings have names each.
pub(super) fn charts(figure: Figure, table: &Table) -> Vec<(&'static str, Chart)> {
    let one = match figure {
        Figure::Storage => return storage::charts(table),
        Figure::Shares => shares(table),
        Figure::Throughput => Chart {
            title: "Throughput at each node, all sending as much as they can".to_owned(),
            x: "nodes",
            y: "Mbit/s",
            lines: lines(figure, table),
            whole_x: true,
            ..Chart::default()
        },
        Figure::ResponseTime => Chart {
            title: "Response time at the sender, all sending".to_owned(),
            x: "load of all senders, Mbit/s",
            y: "mean, ms",
            lines: lines(figure, table),
            logarithmic: true,
            names: Corner::UpperLeft,
            ..Chart::default()
        },
        Figure::Latency => Chart {
            title: "Latency at the sender, one sending 1 Mbit/s".to_owned(),
            x: "nodes",
            y: "mean, ms",
            lines: lines(figure, table),
            names: Corner::UpperLeft,
            whole_x: true,
            ..Chart::default()
        },
    };
    vec![("", one)]
}

fn lines(figure: Figure, table: &Table) -> Vec<Line> {
    let all = figure.series().iter().map(|&series| Line {
        name: name(figure, series),
        color: color(series),
        dashed: series.pattern().is_some(),
        marked: true,
        points: points(figure, series, table),
    });
    all.filter(|line| !line.points.is_empty()).collect()
}

fn name(figure: Figure, series: Series) -> String {
    let name = match (figure, series) {
        (Figure::Throughput, Series::Multicast) => "N/(N-1) × raw multicast",
        (Figure::Throughput, Series::Tcp) => "N/(N-1) × raw TCP",
        (_, Series::AllAck) => "raw, all acknowledge",
        (_, Series::Hop) => "raw, N hops over TCP",
        (_, series) => series.name(),
    };
    name.to_owned()
}

const fn color(series: Series) -> usize {
    match series {
        Series::Engine(EngineName::FastCast) => 0,
        Series::Engine(EngineName::Lcr) => 1,
        Series::Engine(EngineName::AcceleratedRing) => 2,
        Series::Engine(EngineName::TotemRing) => 3,
        Series::Multicast | Series::AllAck => 4,
        Series::Tcp | Series::Hop => 5,
        Series::Engine(EngineName::URingPaxos) => 6,
        Series::Engine(EngineName::RingPaxos) => 7,
    }
}

/// The medians over rounds, along the axis.
fn points(figure: Figure, series: Series, table: &Table) -> Vec<(f64, f64)> {
    let rows = table.rows.iter();
    let rows: Vec<&Vec<String>> = rows
        .filter(|row| table.cell(row, "series") == series.name())
        .collect();
    let places = rows.iter().filter_map(|row| row.first()?.parse().ok());
    let mut places: Vec<f64> = places.collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let points = places.iter().map_while(|&x| {
        let here = rows
            .iter()
            .filter(|row| row.first().and_then(|at| at.parse().ok()) == Some(x));
        let counts = here.filter(|row| figure != Figure::ResponseTime || sustained(table, row));
        let values = counts.filter_map(|row| value(figure, series, x, table, row));
        let values: Vec<f64> = values.collect();
        // A curve ends where most rounds did not deliver the load; they are not all tried there any more.
        let rounds = rows
            .iter()
            .filter(|row| row.first().map(String::as_str) == rows[0].first().map(String::as_str));
        let most = figure != Figure::ResponseTime || 2 * values.len() > rounds.count();
        most.then(|| Some((x, median(values)?)))
    });
    points.flatten().collect()
}

fn value(figure: Figure, series: Series, x: f64, table: &Table, row: &[String]) -> Option<f64> {
    match (figure, series) {
        // The rate that links make possible where all send, and nobody hears itself.
        (Figure::Throughput, Series::Multicast | Series::Tcp) => {
            Some(table.number(row, "mbps")? * x / (x - 1.0))
        }
        (Figure::Throughput, _) => table.number(row, "mbps"),
        _ => Some(table.number(row, "sender_mean_us")? / 1000.0),
    }
}

/// Medians over rows with the same place on the axis, in its order.
pub(super) fn line_points(
    rows: &[&Vec<String>],
    value: &impl Fn(&[String]) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let place = |row: &[String]| row.first()?.parse::<f64>().ok();
    let mut places: Vec<f64> = rows.iter().filter_map(|row| place(row)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let points = places.iter().filter_map(|&x| {
        let here = rows.iter().filter(|row| place(row) == Some(x));
        let values = here.filter_map(|row| value(row));
        Some((x, median(values.collect())?))
    });
    points.collect()
}

/// The middle one; of two in the middle their mean.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The last round of the experiment: rates over time do not add up to a median.
fn shares(table: &Table) -> Chart {
    let last = table.largest("round").to_string();
    let rows = table.rows.iter();
    let rows: Vec<&Vec<String>> = rows
        .filter(|row| table.cell(row, "round") == last)
        .collect();
    let sum = |row: &[String], kind: &str| -> Option<f64> {
        (1..=NODES)
            .map(|node| table.number(row, &format!("{kind}_{node}")))
            .sum()
    };
    let line = |name: String, color: usize, of: &dyn Fn(&[String]) -> Option<f64>| {
        let point = |row: &&Vec<String>| Some((table.number(row, "seconds")?, of(row)?));
        Line {
            name,
            color,
            points: rows.iter().filter_map(point).collect(),
            dashed: false,
            marked: false,
        }
    };
    let nodes = (1..=NODES).map(|node| {
        let column = format!("delivered_{node}");
        line(format!("node {node}"), node - 1, &|row| {
            table.number(row, &column)
        })
    });
    let all = line("all".to_owned(), 6, &|row| sum(row, "delivered"));
    let best = line("sum of the shares".to_owned(), 4, &|row| sum(row, "share"));
    Chart {
        title: "Bandwidth of four nodes whose requirements change".to_owned(),
        x: "seconds",
        y: "Mbit/s delivered",
        lines: nodes.chain([all, best]).collect(),
        headroom: 0.5,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(figure: Figure, table: &Table) -> Chart {
        charts(figure, table).remove(0).1
    }

    fn table(columns: &[&str], rows: &[&str]) -> Table {
        let mut table = Table::new(Vec::new(), columns);
        let cells = |row: &&str| row.split(',').map(str::to_owned).collect();
        table.rows = rows.iter().map(cells).collect();
        table
    }

    #[test]
    fn a_point_is_the_median_of_its_rounds() {
        let rows = ["2,lcr,1,10", "4,lcr,1,7", "2,lcr,2,30", "2,lcr,3,20"];
        let table = table(&["nodes", "series", "round", "mbps"], &rows);
        let chart = chart(Figure::Throughput, &table);
        assert_eq!(chart.lines.len(), 1);
        assert_eq!(chart.lines[0].points, [(2.0, 20.0), (4.0, 7.0)]);
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn limits_of_links_count_for_all_that_send() {
        let rows = [
            "2,raw-tcp,1,900",
            "4,raw-tcp,1,900",
            "4,raw-multicast,1,600",
        ];
        let table = table(&["nodes", "series", "round", "mbps"], &rows);
        let chart = chart(Figure::Throughput, &table);
        let points: Vec<_> = chart.lines.iter().map(|line| &line.points[..]).collect();
        assert_eq!(
            points,
            [&[(4.0, 800.0)][..], &[(2.0, 1800.0), (4.0, 1200.0)]]
        );
        assert!(chart.lines.iter().all(|line| line.dashed));
    }

    #[test]
    fn a_curve_of_response_times_ends_where_the_load_is_too_much_in_most_rounds() {
        let columns = [
            "load_mbps",
            "series",
            "round",
            "mbps",
            "sender_mean_us",
            "complete",
        ];
        let rows = [
            "100,fastcast,1,100,1000,yes",
            "200,fastcast,1,200,2000,yes",
            "300,fastcast,1,299,9000,no",
            "100,fastcast,2,100,3000,yes",
            "200,fastcast,2,150,7000,yes",
            "100,fastcast,3,100,2000,yes",
            "200,fastcast,3,200,4000,yes",
            "300,fastcast,3,300,5000,yes",
        ];
        let chart = chart(Figure::ResponseTime, &table(&columns, &rows));
        assert_eq!(chart.lines[0].points, [(100.0, 2.0), (200.0, 3.0)]);
        assert!(chart.logarithmic);
    }

    #[test]
    fn shares_are_drawn_for_each_node_and_for_all_from_the_last_round() {
        let columns = super::super::measure::SHARES_COLUMNS;
        let rows = [
            "1,0.1,9,9,9,9,9,9,9,9,9,9,9,9",
            "2,0.1,5,5,5,5,1,2,3,4,10,20,30,40",
        ];
        let chart = chart(Figure::Shares, &table(&columns, &rows));
        let last: Vec<f64> = chart.lines.iter().map(|line| line.points[0].1).collect();
        assert_eq!(last, [10.0, 20.0, 30.0, 40.0, 100.0, 10.0]);
        assert!(chart.lines.iter().all(|line| line.points.len() == 1));
    }
}
