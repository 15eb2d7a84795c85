//! The benchmarks that a figure needs, in turns over its series.

use std::time::Duration;

use super::FiguresOptions;
use super::series::{Figure, Series};
use super::storage;
use crate::options::{
    BenchOptions, BitRate, Load, Offload, Pattern, Pin, Place, RawOptions, Senders, ServiceName,
    Times, Traffic, WarmUp,
};
use crate::raw::NETNS_PAYLOAD;

/// The rate of a node where latency is measured without contention (§4.5).
const LITTLE: BitRate = BitRate(1_000_000);

/// One benchmark, and where its result belongs.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub series: Series,
    /// Nodes, or Mbit/s of load.
    pub x: f64,
    pub spec: Spec,
}

#[derive(Clone, Debug)]
pub(super) enum Spec {
    Load(Box<BenchOptions>),
    Raw(RawOptions),
}

/// One round of a figure: for each place on its axis, all that is compared, one after the other.
pub(super) fn round(figure: Figure, options: &FiguresOptions) -> Vec<Run> {
    if figure == Figure::Storage {
        return storage::runs(options);
    }
    let wanted = |series: &&Series| options.series.is_empty() || options.series.contains(series);
    let series: Vec<Series> = figure.series().iter().filter(wanted).copied().collect();
    let nodes = options.nodes.iter().map(|&nodes| (nodes as f64, nodes, 0));
    let most = options.nodes.iter().copied().max().unwrap_or(0);
    let loads = options.loads.iter().map(|rate| rate.0);
    let loads = loads.map(|rate| (rate as f64 / 1e6, most, rate));
    let places: Vec<(f64, usize, u64)> = match figure {
        Figure::Shares | Figure::Storage => Vec::new(),
        Figure::ResponseTime => loads.collect(),
        Figure::Throughput | Figure::Latency => nodes.collect(),
    };
    let runs = places.iter().flat_map(|&(x, nodes, rate)| {
        series.iter().map(move |&series| Run {
            series,
            x,
            spec: spec(figure, series, nodes, BitRate(rate), options),
        })
    });
    runs.collect()
}

fn spec(
    figure: Figure,
    series: Series,
    nodes: usize,
    load: BitRate,
    options: &FiguresOptions,
) -> Spec {
    let place = Place {
        nodes,
        ..options.place.clone()
    };
    let rate = match figure {
        Figure::Shares | Figure::Throughput | Figure::Storage => None,
        Figure::ResponseTime => Some(load),
        Figure::Latency => Some(LITTLE),
    };
    let senders = match figure {
        Figure::Latency => Senders::Count(1),
        _ => Senders::All,
    };
    let Some(pattern) = series.pattern() else {
        return Spec::Load(Box::new(engine(series, place, rate, senders, options)));
    };
    let tcp = series == Series::Tcp;
    Spec::Raw(RawOptions {
        place,
        pattern,
        tcp,
        // Larger ones would be cut into fragments, which engines do not send.
        size: if pattern == Pattern::Multicast && !tcp {
            options.size.min(NETNS_PAYLOAD)
        } else {
            options.size
        },
        rate,
        // Without a pace the limit is one sender's: all together would only lose packets.
        senders: if pattern == Pattern::Multicast {
            Senders::Count(1)
        } else {
            senders
        },
        duration: options.duration,
        warm_up: options.warm_up,
        ..RawOptions::default()
    })
}

fn engine(
    series: Series,
    place: Place,
    rate: Option<BitRate>,
    senders: Senders,
    options: &FiguresOptions,
) -> BenchOptions {
    let defaults = BenchOptions::default();
    series.of(BenchOptions {
        place,
        traffic: Traffic {
            size: options.size,
            load: rate.map_or(Load::Max, Load::Fixed),
            senders,
            // The paper's protocols deliver nothing that not all have.
            service: ServiceName::Safe,
            ..defaults.traffic
        },
        times: Times {
            duration: options.duration,
            warm_up: WarmUp::For(options.warm_up),
            ..defaults.times
        },
        ..BenchOptions::default()
    })
}

/// The command that runs one benchmark of a figure, with `N` and `RATE` for what the figure's axis has.
pub(super) fn command(figure: Figure, spec: &Spec) -> String {
    let nodes = |place: &Place| match figure {
        Figure::ResponseTime | Figure::Storage => place.nodes.to_string(),
        _ => "N".to_owned(),
    };
    let rate = |rate: BitRate| match figure {
        Figure::ResponseTime => "RATE".to_owned(),
        _ => rate.to_string(),
    };
    let size = |bytes: usize| match figure {
        Figure::Storage => "BYTES".to_owned(),
        _ => bytes.to_string(),
    };
    match spec {
        Spec::Load(bench) => {
            let Traffic {
                size: bytes,
                load,
                senders,
                service,
                ..
            } = bench.traffic;
            let load = match load {
                Load::Max => "--rate max".to_owned(),
                Load::Fixed(fixed) => format!("--rate {}", rate(fixed)),
                Load::Outstanding(count) => format!("--outstanding {count}"),
            };
            format!(
                "rota bench --engine {}{}{} --nodes {} --size {} {load} --senders {} --service {}{}",
                bench.engine,
                if figure == Figure::Storage {
                    " --storage STORAGE --instance-per-message"
                } else {
                    ""
                },
                place(&bench.place),
                nodes(&bench.place),
                size(bytes),
                who(senders),
                service,
                times(bench.times.duration, warm_up_of(bench)),
            )
        }
        Spec::Raw(raw) => {
            let kind = match raw.tcp {
                true => " --tcp".to_owned(),
                false => format!(" --pattern {} --senders {}", raw.pattern, who(raw.senders)),
            };
            let rate = raw.rate.map(|fixed| format!(" --rate {}", rate(fixed)));
            format!(
                "rota bench raw{kind}{} --nodes {} --size {}{}{}",
                place(&raw.place),
                nodes(&raw.place),
                raw.size,
                rate.unwrap_or_default(),
                times(raw.duration, raw.warm_up),
            )
        }
    }
}

/// Of a figure that compares storages, which one a benchmark has.
pub(super) fn storage_of(figure: Figure, spec: &Spec) -> String {
    match spec {
        Spec::Load(bench) if figure == Figure::Storage => format!(", {}", bench.votes.storage),
        _ => String::new(),
    }
}

/// The warm-up of a figure's benchmark, which is never one to be found.
const fn warm_up_of(bench: &BenchOptions) -> Duration {
    match bench.times.warm_up {
        WarmUp::For(warm_up) => warm_up,
        WarmUp::Found => Duration::ZERO,
    }
}

fn who(senders: Senders) -> String {
    match senders {
        Senders::All => "all".to_owned(),
        Senders::Half => "half".to_owned(),
        Senders::Count(count) => count.to_string(),
    }
}

/// The place of a run, as options; defaults are left out.
fn place(place: &Place) -> String {
    let mut text = format!(" --testbed {}", place.testbed);
    if let Some(rate) = place.link_rate {
        text += &format!(" --link-rate {rate}");
    }
    if place.offload != Offload::Pass {
        text += &format!(" --offload {}", place.offload);
    }
    if place.pin != Pin::None {
        text += &format!(" --pin {}", place.pin);
    }
    text
}

fn times(duration: Duration, warm_up: Duration) -> String {
    let (duration, warm_up) = (duration.as_millis(), warm_up.as_millis());
    format!(" --duration {duration}ms --warm-up {warm_up}ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TestbedKind;
    use rota_core::EngineName;

    fn options() -> FiguresOptions {
        FiguresOptions {
            place: Place {
                testbed: TestbedKind::Netns,
                link_rate: Some(BitRate(1_000_000_000)),
                ..Place::default()
            },
            nodes: vec![2, 8],
            loads: vec![BitRate(100_000_000), BitRate(200_000_000)],
            duration: Duration::from_secs(1),
            warm_up: Duration::from_millis(500),
            ..FiguresOptions::default()
        }
    }

    fn names(runs: &[Run]) -> Vec<(f64, &'static str)> {
        runs.iter().map(|run| (run.x, run.series.name())).collect()
    }

    #[test]
    fn what_is_compared_runs_in_turns() {
        let some = FiguresOptions {
            series: vec![
                Series::Tcp,
                Series::Engine(EngineName::Lcr),
                Series::Engine(EngineName::FastCast),
            ],
            ..options()
        };
        let runs = round(Figure::Throughput, &some);
        let turns = [
            (2.0, "fastcast"),
            (2.0, "lcr"),
            (2.0, "raw-tcp"),
            (8.0, "fastcast"),
            (8.0, "lcr"),
            (8.0, "raw-tcp"),
        ];
        assert_eq!(names(&runs), turns);
        // A stream's limit says nothing of response times.
        let runs = round(Figure::ResponseTime, &some);
        let turns = [
            (100.0, "fastcast"),
            (100.0, "lcr"),
            (200.0, "fastcast"),
            (200.0, "lcr"),
        ];
        assert_eq!(names(&runs), turns);
        assert_eq!(round(Figure::Throughput, &options()).len(), 2 * 8);
        assert_eq!(round(Figure::Latency, &options()).len(), 2 * 8);
    }

    #[test]
    fn commands_say_what_is_run() {
        let of = |figure, at: usize| command(figure, &round(figure, &options())[at].spec);
        assert_eq!(
            of(Figure::Throughput, 0),
            "rota bench --engine fastcast --testbed netns --link-rate 1gbit --nodes N --size 10000 --rate max \
             --senders all --service safe --duration 1000ms --warm-up 500ms"
        );
        assert_eq!(
            of(Figure::ResponseTime, 6),
            "rota bench raw --pattern all-ack --senders all --testbed netns --link-rate 1gbit --nodes 8 \
             --size 10000 --rate RATE --duration 1000ms --warm-up 500ms"
        );
        assert_eq!(
            of(Figure::Latency, 7),
            "rota bench raw --pattern hop --senders 1 --testbed netns --link-rate 1gbit --nodes N --size 10000 \
             --rate 1mbit --duration 1000ms --warm-up 500ms"
        );
        let paxos = of(Figure::Throughput, 4);
        assert!(
            paxos.starts_with("rota bench --engine ring-paxos "),
            "{paxos}"
        );
        let multicast = of(Figure::Throughput, 6);
        assert!(
            multicast.contains("--pattern multicast --senders 1 ")
                && multicast.contains("--size 1472 ")
        );
        assert!(of(Figure::Throughput, 7).starts_with("rota bench raw --tcp --testbed netns"));
    }
}
