//! What is drawn of rings with disks, and of regions.

use super::{Leveling, MOST_REGIONS, MOST_RINGS, Regions, rings_setup};
use crate::experiments::{Chart, Series};
use crate::lab::Lab;

/// Figure 6: throughput and delay by rings.
pub fn rings(lab: &Lab) -> Vec<Chart> {
    let runs: Vec<_> = (1..=MOST_RINGS)
        .map(|rings| (rings as f64, lab.run_rings(&rings_setup(lab, rings, 1))))
        .collect();
    let throughput = runs.iter().map(|(rings, run)| (*rings, run.ordered_mbps));
    let throughput: Vec<(f64, f64)> = throughput.collect();
    let first = throughput.first().map_or(0.0, |(_, mbps)| *mbps);
    let linear = throughput.iter().map(|(rings, _)| (*rings, first * rings));
    let delay = runs
        .iter()
        .map(|(rings, run)| (*rings, run.rings[0].delays.mean / 1000.0));
    vec![
        Chart {
            title: "throughput, a disk for each ring".to_owned(),
            x: "rings",
            y: "Mbit/s",
            series: vec![
                series("ours", throughput.clone(), false),
                series("linear", linear.collect(), true),
            ],
            marks: Vec::new(),
        },
        Chart {
            title: "mean delay of the first ring at that load".to_owned(),
            x: "rings",
            y: "ms",
            series: vec![series("ours", delay.collect(), false)],
            marks: Vec::new(),
        },
    ]
}

/// Figure 7: throughput and delay by regions, by leveling.
pub fn regions(lab: &Lab) -> Vec<Chart> {
    let throughput = |leveling: Leveling| {
        let at = |count: usize| lab.regions(&Regions::full(count, leveling), 1).ordered_mbps;
        by_regions(leveling, at)
    };
    let delay = |leveling: Leveling| {
        let run = |count: usize| lab.regions(&Regions::new(count, leveling), 1);
        by_regions(leveling, |count| run(count).rings[0].delays.p50 / 1000.0)
    };
    // A ring that is faster than the paper's rate leaves its learners behind.
    let bearing = Leveling::EACH
        .into_iter()
        .filter(|leveling| *leveling != Leveling::Paper);
    let chart = |title: &str, y: &'static str, series: Vec<Series>| Chart {
        title: title.to_owned(),
        x: "regions",
        y,
        series,
        marks: Vec::new(),
    };
    vec![
        chart(
            "throughput of all regions",
            "Mbit/s",
            bearing.map(throughput).collect(),
        ),
        chart(
            "median delay in us-west-2 at 50 Mbit/s a region",
            "ms",
            Leveling::EACH.map(delay).to_vec(),
        ),
    ]
}

fn by_regions(leveling: Leveling, of: impl Fn(usize) -> f64) -> Series {
    let points = (1..=MOST_REGIONS).map(|count| (count as f64, of(count)));
    series(
        leveling.name(),
        points.collect(),
        leveling == Leveling::Alone,
    )
}

fn series(name: &str, points: Vec<(f64, f64)>, is_broken: bool) -> Series {
    Series {
        name: name.to_owned(),
        points,
        is_broken,
    }
}
