//! The parent process: deals the tasks, gives the start, merges the figures.

use std::time::Duration;

use rota_node::NodeConfig;
use rota_node::rings::{LevelingName, RingSection, RingsConfig};

use super::events::Events;
use super::load::{MIN_PAYLOAD, Plan};
use super::node::{Measured, Running, Task};
use super::report::{BenchReport, Context};
use super::rings::RingsTask;
use super::setup::{keep_votes, key, node_config};
use super::{slow, warm_up};
use crate::clock::now_ns;
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::host::Watch;
use crate::options::{
    BenchOptions, BitRate, Happening, Leveling, Load, ManyRings, Mode, Place, Subject, Subscribe,
    TestbedKind, WarmUp, share,
};
use crate::raw::TcpBeside;
use crate::testbed::Testbed;

/// The time that the nodes may take to start and to form a ring.
pub(crate) const FORM_PATIENCE: Duration = Duration::from_secs(30);
/// The time between `go` and the start: every node has read `go` by then.
pub(crate) const HEAD_START_NS: u64 = 100_000_000;
/// Silence before each trial of a first message: the ring has long gone idle.
pub(super) const TRIAL_GAP_NS: u64 = 600_000_000;
/// The most that a run may be slowed down.
const SLOWEST: u32 = 1000;

/// Loads a cluster as the options say, and measures it.
///
/// # Errors
/// [`BenchError`] where there is nothing to report. A run in which nodes disagree or lack messages is
/// reported: see [`BenchReport::failure`].
pub fn run_bench(options: &BenchOptions) -> Result<BenchReport, BenchError> {
    check(options)?;
    let warm_up = match options.times.warm_up {
        WarmUp::For(warm_up) => warm_up,
        WarmUp::Found => warm_up::find(options)?,
    };
    run_once(options, warm_up)
}

/// One run, of which the load's first `warm_up` is not measured.
pub(super) fn run_once(
    options: &BenchOptions,
    warm_up: Duration,
) -> Result<BenchReport, BenchError> {
    let (asked, asked_warm_up) = (options, warm_up);
    let (options, warm_up) = &slow::slowed(options, warm_up);
    let testbed = match options.connect.len() {
        0 => Testbed::new(&options.place)?,
        // The nodes of this benchmark are clients, and run here.
        clients => Testbed::loopback(clients, options.place.offload),
    };
    let key = if options.sealed { Some(key()?) } else { None };
    let mut config = node_config(options, &testbed, key.as_deref())?;
    let _votes = keep_votes(options, &mut config)?;
    let tasks: Vec<Task> = (1..=testbed.nodes())
        .map(|node| task(options, *warm_up, &config, node, testbed.nodes()))
        .collect();
    let [warm_up_ns, duration_ns] = [tasks[0].warm_up_ns, tasks[0].duration_ns];
    let length = Duration::from_nanos(warm_up_ns + duration_ns);
    let mut events = Events::prepare(&options.trouble.events, &testbed)?;
    let mut cluster = Cluster::start(&testbed, "bench-node", &tasks)?;
    cluster.wait_ready(FORM_PATIENCE)?;
    let mut beside = if options.beside_tcp {
        let [warm_up, measured] = [warm_up_ns, duration_ns].map(Duration::from_nanos);
        Some(TcpBeside::start(&testbed, warm_up, measured)?)
    } else {
        None
    };
    let start = now_ns() + HEAD_START_NS;
    let go = format!("go {start}");
    cluster.tell_all(&go)?;
    if let Some(tcp) = &mut beside {
        tcp.go(&go)?;
    }
    let from = start + warm_up_ns;
    let watch = Watch::start(from, from + duration_ns);
    events.happen(from, &mut cluster)?;
    let patience = length + slow::drain(options.slow) + Duration::from_secs(15);
    let mut results: Vec<Measured> = cluster.results(patience)?;
    let host = watch.end(
        results
            .iter()
            .map(|one| one.cpu_ns + one.client_cpu_ns)
            .sum(),
    );
    results
        .iter_mut()
        .for_each(|one| slow::sped_up(one, options.slow));
    let context = Context {
        options: asked,
        warm_up: asked_warm_up,
        testbed: &testbed,
        ring: &config.ring_config(),
        host,
        tcp_mbps: beside.map(TcpBeside::mbps).transpose()?,
    };
    Ok(BenchReport::new(&context, &results))
}

fn check(options: &BenchOptions) -> Result<(), BenchError> {
    let wrong = wrong_traffic(options)
        .or_else(|| wrong_trouble(options))
        .or_else(|| wrong_engine(options))
        .or_else(|| wrong_slow(options))
        .or_else(|| wrong_connect(options));
    wrong.map_or(Ok(()), |what| Err(BenchError::Usage(what)))
}

/// What is wrong with what is sent, or with how long.
fn wrong_traffic(options: &BenchOptions) -> Option<String> {
    let (traffic, times) = (&options.traffic, &options.times);
    if traffic.size < MIN_PAYLOAD {
        return Some(format!(
            "--size must be at least {MIN_PAYLOAD}: a message carries its time"
        ));
    }
    let what = if times.first_message == Some(0) {
        "--first-message needs at least one trial"
    } else if traffic.load == Load::Outstanding(0) {
        "--outstanding needs at least one message under way"
    } else if matches!(traffic.load, Load::Outstanding(_)) && times.first_message.is_some() {
        "--outstanding keeps messages under way, and --first-message waits for silence"
    } else if traffic.is_random && !matches!(traffic.load, Load::Fixed(BitRate(1..))) {
        "--random is for a load with a rate"
    } else if traffic.is_random && times.first_message.is_some() {
        "--first-message has times of its own, and --random others"
    } else if times.duration.is_zero() {
        "--duration must not be 0"
    } else if times
        .series
        .is_some_and(|slot| slot < Duration::from_millis(1))
    {
        "--series is at least 1ms"
    } else if options.beside_tcp && options.place.nodes < 2 {
        "--beside-tcp needs two nodes"
    } else {
        return None;
    };
    Some(what.to_owned())
}

/// What is wrong with what disturbs the nodes.
fn wrong_trouble(options: &BenchOptions) -> Option<String> {
    let trouble = &options.trouble;
    if !(0.0..=1.0).contains(&trouble.loss) {
        return Some("--loss is a probability from 0 to 1".to_owned());
    }
    if !trouble.delay.is_zero() && trouble.loss > 0.0 {
        return Some("--delay is for tokens, too, and --loss is not: one of them".to_owned());
    }
    if !trouble.delay.is_zero() && options.engine.has_links() {
        return Some(
            "--delay is for datagrams, and this engine sends over links of TCP".to_owned(),
        );
    }
    let nodes = options.place.nodes;
    for event in &trouble.events {
        let is_cut = matches!(event.what, Happening::Cut(..));
        let what = if event.nodes().any(|node| node == 0 || node > nodes) {
            format!("there are nodes 1 to {nodes}")
        } else if event.ends() > options.times.duration {
            "it would not be over at the end".to_owned()
        } else if is_cut && options.place.testbed != TestbedKind::Netns {
            "links are cut with --testbed netns".to_owned()
        } else if !is_cut && options.mode == Mode::Daemon {
            "nodes are killed or paused with --mode library".to_owned()
        } else {
            continue;
        };
        return Some(format!("--event {event}: {what}"));
    }
    None
}

/// What an engine does not have.
fn wrong_engine(options: &BenchOptions) -> Option<String> {
    let has_votes = options.engine.has_votes();
    let ManyRings { rings, busy, .. } = options.many;
    let is_many = options.engine == Subject::MultiRing;
    let what = if !options.votes.acceptors.is_empty() && !has_votes {
        "--acceptors is for engines in which some nodes vote"
    } else if options.votes.instance_per_message && !has_votes {
        "--instance-per-message is for engines with instances of Paxos"
    } else if is_many && (options.mode == Mode::Daemon || options.times.first_message.is_some()) {
        "--engine multi-ring is for --mode library, and not for --first-message"
    } else if is_many
        && (rings == 0 || rings > 64 || busy.is_some_and(|busy| busy == 0 || busy > rings))
    {
        "--rings is 1 to 64, and --busy at most that"
    } else {
        return None;
    };
    Some(what.to_owned())
}

/// What a cluster that runs already cannot be told.
fn wrong_connect(options: &BenchOptions) -> Option<String> {
    if options.connect.is_empty() {
        return None;
    }
    let clients = options.connect.len();
    let what = if options.place.testbed != TestbedKind::Loopback {
        "--connect has no testbed: the cluster is where it is"
    } else if clients > 128 {
        "--connect is for at most 128 daemons"
    } else if options
        .connect
        .iter()
        .any(|address| address.starts_with("tls:"))
    {
        "--connect is for sockets and tcp:HOST:PORT"
    } else if !options.trouble.events.is_empty() || options.trouble.loss > 0.0 {
        "--connect does nothing to the cluster but load it"
    } else {
        return None;
    };
    Some(what.to_owned())
}

/// What slow motion does not have.
fn wrong_slow(options: &BenchOptions) -> Option<String> {
    let Place { link_rate, .. } = options.place;
    let what = match options.slow {
        1 => return None,
        0 | SLOWEST.. => "--slow is 1 to 999",
        _ if link_rate.is_none() => {
            "--slow is for links with a speed: --testbed netns --link-rate RATE"
        }
        _ if options.beside_tcp || options.engine.has_links() => {
            "--slow is for engines that send datagrams: TCP has time-outs of its own"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

fn task(
    options: &BenchOptions,
    warm_up: Duration,
    config: &NodeConfig,
    node: usize,
    nodes: usize,
) -> Task {
    let (traffic, times) = (&options.traffic, &options.times);
    let trials = times.first_message;
    let duration_ns = match trials {
        Some(trials) => u64::from(trials) * TRIAL_GAP_NS,
        None => times.duration.as_nanos() as u64,
    };
    let warm_up_ns = warm_up.as_nanos() as u64;
    Task {
        node: node as u16,
        config: config.clone(),
        mode: options.mode,
        service: traffic.service,
        size: traffic.size,
        plan: match trials {
            // The nodes take turns. The trials start with the measured time.
            Some(_) => Plan::Fixed {
                offset: warm_up_ns as f64 + (node - 1) as f64 * TRIAL_GAP_NS as f64,
                interval: nodes as f64 * TRIAL_GAP_NS as f64,
            },
            None => plan(options, node, traffic.load.senders(traffic.senders, nodes)),
        },
        warm_up_ns,
        duration_ns,
        drain_ns: slow::drain(options.slow).as_nanos() as u64,
        trials: trials.is_some(),
        series_ns: times.series.map(|slot| slot.as_nanos() as u64),
        waste_ns: traffic.waste.as_nanos() as u64,
        rings: (options.engine == Subject::MultiRing).then(|| rings(options, config, node)),
        running: options.connect.get(node - 1).map(|address| Running {
            address: address.clone(),
            group: format!("bench-{}", std::process::id()),
        }),
    }
}

/// The rings, and those that a node delivers and sends to.
fn rings(options: &BenchOptions, config: &NodeConfig, node: usize) -> RingsTask {
    let ManyRings {
        rings,
        busy,
        engine,
        leveling,
        subscribe,
    } = options.many;
    let ports = 2 * config.nodes.len() as u16 + 1;
    let section = |id: u16| RingSection {
        id,
        engine: Some(engine),
        leveling: match leveling {
            Leveling::Pull => LevelingName::Pull,
            Leveling::Paper => LevelingName::Paper,
            // It is for a ring that seldom speaks.
            Leveling::Horizon if subscribe == Subscribe::OwnAndGlobal && id < rings => {
                LevelingName::Pull
            }
            Leveling::Horizon => LevelingName::Horizon,
        },
        port_offset: Some((id - 1) * ports),
        ..RingSection::default()
    };
    let locals = match subscribe {
        Subscribe::OwnAndGlobal => (rings - 1).max(1),
        Subscribe::All | Subscribe::Own => rings,
    };
    let own = 1 + (node as u16 - 1) % locals;
    let (subscribe, send) = match subscribe {
        Subscribe::All => ((1..=rings).collect(), (1..=busy.unwrap_or(rings)).collect()),
        Subscribe::Own => (vec![own], vec![own]),
        Subscribe::OwnAndGlobal => (vec![own, rings], vec![own]),
    };
    RingsTask {
        config: RingsConfig {
            common: config.clone(),
            rings: (1..=rings).map(section).collect(),
        },
        subscribe,
        send,
        is_one_order: options.many.subscribe == Subscribe::All,
    }
}

fn plan(options: &BenchOptions, node: usize, senders: usize) -> Plan {
    let traffic = &options.traffic;
    match traffic.load {
        _ if node > senders => Plan::Silent,
        Load::Max => Plan::Max,
        Load::Fixed(BitRate(0)) => Plan::Silent,
        Load::Outstanding(count) => Plan::UnderWay(share(count, node - 1, senders)),
        Load::Fixed(BitRate(rate)) => {
            let interval = traffic.size as f64 * 8e9 * senders as f64 / rate as f64;
            match traffic.is_random {
                true => Plan::Random {
                    seed: node as u64,
                    mean: interval,
                },
                // Each sender has its own phase, or all would tick together.
                false => Plan::Fixed {
                    offset: interval * (node - 1) as f64 / senders as f64,
                    interval,
                },
            }
        }
    }
}
