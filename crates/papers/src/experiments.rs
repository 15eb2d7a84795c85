//! What is drawn of each experiment: the paper's points on our curves, and the same with Rota's bursts.

use rota_core::contract::Service;
use rota_ring::Protocol;
use rota_wire::{Load, LossPlan};

use crate::case::{Case, Network, System, mbps};
use crate::cluster::{self, Engine};
use crate::judge::Judged;
use crate::lab::Lab;
use crate::rings::{WINDOWS, name};
use crate::several;
use crate::target::Target;

/// An experiment, with its drawings.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name in `docs/papers/claims.csv`.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Its drawings.
    pub charts: Vec<Chart>,
}

/// A drawing.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What is drawn.
    pub title: String,
    /// The axis from left to right.
    pub x: &'static str,
    /// The axis upwards.
    pub y: &'static str,
    /// Our curves.
    pub series: Vec<Series>,
    /// The paper's points.
    pub marks: Vec<Mark>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// It is a prediction, and broken.
    pub is_broken: bool,
}

/// A point of the paper.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The claim.
    pub id: String,
    /// Where it is.
    pub at: (f64, f64),
}

/// The experiments, in the order of the page: the name of each, and what it is.
pub const EXPERIMENTS: [(&str, &str); 29] = [
    (
        "E1",
        "Delay against throughput, 1 Gbit/s (report figs. 2, 3)",
    ),
    (
        "E2",
        "Delay against throughput, 10 Gbit/s (report figs. 4, 6, 8)",
    ),
    (
        "E3",
        "Datagrams of 9000 bytes, 10 Gbit/s (report figs. 5, 7)",
    ),
    ("E4", "Loss at 480 Mbit/s, 10 Gbit/s (report fig. 9)"),
    ("E5", "Loss at 1200 Mbit/s, 10 Gbit/s (report fig. 10)"),
    ("E6", "Loss at 140 Mbit/s, 1 Gbit/s (report fig. 11)"),
    ("E7", "Loss at 350 Mbit/s, 1 Gbit/s (report fig. 12)"),
    ("E8", "Whose packets are lost (report fig. 13)"),
    ("E9", "Peers on the same servers (report §V)"),
    (
        "T1",
        "The library at full load, 1 Gbit/s (thesis figs. 5.1 to 5.6)",
    ),
    (
        "T2",
        "The library at full load, 10 Gbit/s (thesis figs. 5.7 to 5.12)",
    ),
    ("T4", "Spread at a rate, 1 Gbit/s (thesis figs. 6.3, 6.4)"),
    (
        "T5",
        "Spread with messages of many sizes, 1 Gbit/s (thesis figs. 6.5 to 6.8)",
    ),
    ("T6", "Virtual machines (thesis fig. 6.9)"),
    (
        "T8",
        "Spread at a rate, 10 Gbit/s (thesis figs. 6.12 to 6.15)",
    ),
    (
        "T9",
        "Spread with messages of many sizes, 10 Gbit/s (thesis figs. 6.16 to 6.19)",
    ),
    ("F1", "The raw link (FastCast §4.1)"),
    ("F-tables", "Shares step by step (FastCast tables 1 to 3)"),
    ("F5", "Bandwidth over time (FastCast fig. 5)"),
    ("F6", "Throughput by nodes (FastCast fig. 6)"),
    ("F7", "Response time by rate (FastCast fig. 7)"),
    ("F8", "Delay by nodes (FastCast fig. 8)"),
    ("M-defaults", "Constants (Multi-Ring §7, §8.2)"),
    ("M3", "One ring, by storage and size (Multi-Ring fig. 3)"),
    ("M4", "The store under YCSB (Multi-Ring fig. 4)"),
    ("M5", "The log against BookKeeper (Multi-Ring fig. 5)"),
    ("M6", "Rings and disks (Multi-Ring fig. 6)"),
    ("M7", "Rings and regions (Multi-Ring fig. 7)"),
    (
        "M8",
        "A replica that ends and comes back (Multi-Ring fig. 8)",
    ),
];

const RATES_1G: [f64; 9] = [
    100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0,
];
const RATES_10G: [f64; 8] = [100.0, 400.0, 800.0, 1200.0, 1600.0, 2000.0, 2500.0, 3000.0];
const LOSSES: [u32; 6] = [0, 5, 10, 15, 20, 25];
const BOTH: [Protocol; 2] = [Protocol::Original, Protocol::Accelerated];
const SERVICES: [Service; 2] = [Service::Agreed, Service::Safe];

/// The drawings of an experiment; none where nothing of it is simulated.
pub fn charts(lab: &Lab, experiment: &str, judged: &[Judged]) -> Vec<Chart> {
    let marked = |charts: Vec<Chart>, key: &str| {
        let marks = |chart: Chart| with_marks(chart, experiment, judged, key);
        charts.into_iter().map(marks).collect()
    };
    let case = |network, system| Case {
        network,
        system,
        protocol: Protocol::Original,
        nodes: 8,
        senders: 8,
        payload: 1350,
        service: Service::Agreed,
        windows: None,
        loss: None,
        is_in_bursts: false,
    };
    let (one, ten) = (Network::OneGig, Network::TenGig);
    match experiment {
        "E1" => marked(by_rate(lab, &case(one, System::Spread), &RATES_1G), "rate"),
        "E2" => {
            let mut charts = by_rate(lab, &case(ten, System::Spread), &RATES_10G);
            charts.extend(by_rate(lab, &case(ten, System::Daemon), &RATES_10G));
            marked(charts, "rate")
        }
        "T1" => marked(by_window(lab, &case(one, System::Library)), "pw"),
        "T2" => marked(by_window(lab, &case(ten, System::Library)), "pw"),
        "E4" => by_loss(lab, &case(ten, System::Daemon), 480.0),
        "E5" => by_loss(lab, &case(ten, System::Daemon), 1200.0),
        "E6" => by_loss(lab, &case(one, System::Daemon), 140.0),
        "E7" => by_loss(lab, &case(one, System::Daemon), 350.0),
        "F6" => vec![cluster_throughput(lab)],
        "F8" => vec![cluster_delay(lab)],
        "M6" => several::charts::rings(lab),
        "M7" => several::charts::regions(lab),
        _ => Vec::new(),
    }
}

/// The chart with the paper's points that belong to it.
fn with_marks(mut chart: Chart, experiment: &str, judged: &[Judged], key: &str) -> Chart {
    let of = judged.iter().map(|one| &one.claim);
    for claim in of.filter(|claim| claim.experiment == experiment) {
        let recipe = &claim.judging.recipe;
        let Some(x) = recipe.number(key).filter(|_| recipe.get("ratio").is_none()) else {
            continue;
        };
        let y = match claim.judging.target {
            Target::Value(y) | Target::AtLeast(y) | Target::AtMost(y) => y,
            Target::Range(low, high) => f64::midpoint(low, high),
            Target::Holds => continue,
        };
        let has = |word: &str| chart.title.contains(word);
        let is_delay = recipe.what() == "latency";
        let is_here = match key {
            "pw" => {
                (is_delay && has(&claim.service) && has("delay"))
                    || (!is_delay && has("throughput"))
            }
            _ => is_delay && has(&claim.service) && (has(&claim.system) || claim.system == "all"),
        };
        if is_here {
            let id = claim.id.clone();
            chart.marks.push(Mark { id, at: (x, y) });
        }
    }
    chart
}

const fn word(system: System) -> &'static str {
    match system {
        System::Library => "library",
        System::Daemon => "daemon",
        System::Spread => "spread",
    }
}

fn by_rate(lab: &Lab, case: &Case, rates: &[f64]) -> Vec<Chart> {
    let chart = |service: Service| {
        let mut series = Vec::new();
        for (protocol, is_in_bursts) in [
            (Protocol::Original, false),
            (Protocol::Accelerated, false),
            (Protocol::Accelerated, true),
        ] {
            let case = Case {
                protocol,
                service,
                is_in_bursts,
                ..*case
            };
            let at = |rate: &f64| Some((*rate, lab.at_rate(&case, *rate, 1).ok()?.delays.mean));
            series.push(Series {
                name: labelled(protocol, is_in_bursts),
                points: rates.iter().map_while(at).collect(),
                is_broken: is_in_bursts,
            });
        }
        Chart {
            title: format!("{}, {}: mean delay", word(case.system), service.name()),
            x: "Mbit/s",
            y: "us",
            series,
            marks: Vec::new(),
        }
    };
    SERVICES.map(chart).to_vec()
}

fn labelled(protocol: Protocol, is_in_bursts: bool) -> String {
    let bursts = if is_in_bursts { ", Rota's bursts" } else { "" };
    format!("{}{bursts}", name(protocol))
}

/// Throughput and delays of the library by personal window, each with the best accelerated window.
fn by_window(lab: &Lab, case: &Case) -> Vec<Chart> {
    let mut charts = vec![
        ("throughput", "Mbit/s", Service::Agreed),
        ("agreed delay", "us", Service::Agreed),
        ("safe delay", "us", Service::Safe),
    ];
    let chart = |(what, y, service): (&str, &'static str, Service)| {
        let of = |protocol: Protocol| {
            let case = Case {
                protocol,
                service,
                ..*case
            };
            let at = |window: u32| {
                let case = match protocol {
                    Protocol::Original => Case {
                        windows: Some((window, 0)),
                        ..case
                    },
                    Protocol::Accelerated => lab.best(&case, window),
                };
                let full = lab.full(&case, 1);
                let y = if what == "throughput" {
                    full.mbps
                } else {
                    full.delay
                };
                (f64::from(window), y)
            };
            Series {
                name: name(protocol).to_owned(),
                points: WINDOWS.into_iter().map(at).collect(),
                is_broken: false,
            }
        };
        Chart {
            title: format!("{what} by personal window"),
            x: "messages",
            y,
            series: BOTH.map(of).to_vec(),
            marks: Vec::new(),
        }
    };
    charts.drain(..).map(chart).collect()
}

fn by_loss(lab: &Lab, case: &Case, rate: f64) -> Vec<Chart> {
    let chart = |service: Service| {
        let of = |protocol: Protocol| {
            let at = |percent: u32| {
                let loss = (percent > 0).then_some(LossPlan {
                    ppm: percent * 10_000,
                    distance: None,
                });
                let case = Case {
                    protocol,
                    service,
                    loss,
                    ..*case
                };
                let run = lab.at_rate(&case, rate, 1).ok()?;
                Some((f64::from(percent), run.delays.mean))
            };
            Series {
                name: name(protocol).to_owned(),
                points: LOSSES.into_iter().filter_map(at).collect(),
                is_broken: false,
            }
        };
        Chart {
            title: format!("{}: mean delay by loss", service.name()),
            x: "% lost at each daemon",
            y: "us",
            series: BOTH.map(of).to_vec(),
            marks: Vec::new(),
        }
    };
    SERVICES.map(chart).to_vec()
}

const ENGINES: [(Engine, &str); 3] = [
    (Engine::FastCast, "FastCast"),
    (Engine::Lcr, "LCR"),
    (Engine::RingPaxos, "Ring Paxos"),
];

fn cluster_throughput(lab: &Lab) -> Chart {
    let of = |(engine, name): (Engine, &str)| {
        let at = |nodes: usize| {
            let senders = if engine == Engine::RingPaxos {
                1
            } else {
                nodes
            };
            let setup = cluster::setup(lab, engine, (nodes, senders), Load::Full, 1);
            (nodes as f64, lab.run(&setup).goodput_mbps)
        };
        Series {
            name: name.to_owned(),
            points: [2, 4, 6, 8].map(at).to_vec(),
            is_broken: false,
        }
    };
    let mut series = ENGINES.map(of).to_vec();
    let best = |nodes: u32| {
        (
            f64::from(nodes),
            942.0 * f64::from(nodes) / f64::from(nodes - 1),
        )
    };
    series.push(Series {
        name: "optimum".to_owned(),
        points: [2, 3, 4, 5, 6, 7, 8].map(best).to_vec(),
        is_broken: true,
    });
    Chart {
        title: "throughput, all send".to_owned(),
        x: "nodes",
        y: "Mbit/s",
        series,
        marks: Vec::new(),
    }
}

fn cluster_delay(lab: &Lab) -> Chart {
    let of = |(engine, name): (Engine, &str)| {
        let at = |nodes: usize| {
            let load = Load::Rate(mbps(1.0));
            let setup = cluster::setup(lab, engine, (nodes, 1), load, 1);
            (nodes as f64, lab.run(&setup).delays.at_sender)
        };
        Series {
            name: name.to_owned(),
            points: [2, 4, 6, 8].map(at).to_vec(),
            is_broken: false,
        }
    };
    Chart {
        title: "delay at the one sender".to_owned(),
        x: "nodes",
        y: "us",
        series: ENGINES.map(of).to_vec(),
        marks: Vec::new(),
    }
}
