//! `rota demo`: a local cluster of real daemons, each with a client.
//!
//! This process coordinates: it copies the input ([`spool`]), starts the nodes ([`cluster`]), lets
//! them go together and compares what they received ([`report`]). A node is a daemon (`rota daemon`) and a client
//! of it ([`node`], [`client`]), which is this program again with a hidden subcommand; its application ([`app`])
//! reads its share of the input itself ([`source`]) and keeps only digests ([`tally`]). Where a daemon is killed
//! ([`kill`]), the clients of the others note more ([`witness`]).

mod app;
mod client;
mod cluster;
mod in_flight;
mod kill;
pub mod node;
pub mod ports;
mod progress;
mod report;
mod rings;
pub mod scratch;
mod setting;
mod source;
mod spool;
mod talk;
mod tally;
mod witness;

use std::fmt;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use rota_client::protocol::MAX_REPLY_BYTES;
use rota_core::groups::OVERHEAD_BYTES;
use rota_net::{Transport, probe_multicast, random_u64};
use rota_node::{EngineName, NodeConfig, PaxosConfig, VoteStorage};

use crate::say::{complain, print, print_json};
use cluster::Cluster;
use kill::{KillOne, Outcome};
use report::Report;
use scratch::Scratch;
use setting::{MULTI_RING, Setting};
use source::Input;
use talk::{Done, Task};
use tally::Census;

/// Ranges of ports to try: another program may take one between the look and the use.
const PORT_RANGES: usize = 5;
/// Bytes that may wait for a client: one that writes what it gets to a slow disk is not to be disconnected.
const QUEUE_BYTES: usize = 512 << 20;

/// The most messages: more would be generated for minutes before anything is seen.
const MOST_MESSAGES: u64 = 100_000_000;

/// Options of `rota demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How many nodes, each a daemon and a client of it: two processes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Which protocol orders the messages
    #[arg(long, default_value = "accelerated-ring",
        value_parser = PossibleValuesParser::new(setting::engines()))]
    engine: String,
    /// With multi-ring: how many rings each node is on
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    rings: u16,
    /// The delivery guarantee: in the one total order (agreed), or the same once every node is known
    /// to have the message (safe)
    #[arg(long, default_value = "agreed",
        value_parser = PossibleValuesParser::new(["causal", "agreed", "safe"]))]
    service: String,
    /// Send the lines of this file (`-`: standard input) instead of generated messages; any bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["messages", "size"])]
    input: Option<PathBuf>,
    /// How many messages to generate
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(..=MOST_MESSAGES))]
    messages: u64,
    /// Bytes of each generated message
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    size: usize,
    /// Kill a daemon midway (kill -9): that of any node, or of the one named. The clients of the others have to go
    /// on, identical, with all of their own messages and the same first part of the killed one's
    #[arg(long, value_name = "NODE", num_args = 0..=1,
        default_missing_value = "random")]
    kill_one: Option<KillOne>,
    /// Write what each node delivers to node-1.out, node-2.out ... in this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The reason why a demo came to no result.
#[derive(Debug)]
pub enum DemoError {
    /// The request makes no sense.
    Usage(String),
    /// It went wrong.
    Failed(String),
    /// Another program has a port: with others it may work.
    PortInUse(String),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(what) | Self::Failed(what) | Self::PortInUse(what)) = self;
        f.write_str(what)
    }
}

/// Runs the demo.
pub fn main(options: &Options) -> ExitCode {
    match run(options) {
        Ok(report) => {
            if options.json {
                print_json(&report);
            } else {
                print(&report);
            }
            if report.is_good() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(1)
            }
        }
        Err(error) => {
            complain(&error);
            ExitCode::from(if matches!(error, DemoError::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn run(options: &Options) -> Result<Report, DemoError> {
    if options.engine == MULTI_RING && options.kill_one.is_some() {
        let what = "--kill-one is not for multi-ring: its nodes are no daemons with clients";
        return Err(DemoError::Usage(what.to_owned()));
    }
    let majority = engine(options).is_uniform();
    let kill = options
        .kill_one
        .map(|kill| kill.victim(options.nodes, majority));
    let victim = kill.transpose()?;
    let limit = message_limit(options);
    let (input, census, spool) = take_input(options, limit)?;
    if let Some(dir) = &options.output {
        std::fs::create_dir_all(dir).map_err(|error| {
            DemoError::Usage(format!(
                "cannot create the directory {}: {error}",
                dir.display()
            ))
        })?;
    }
    let multicast = probe_multicast(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if let Err(what) = &multicast {
        complain(&format!(
            "no multicast on loopback ({what}): each node gets a copy by unicast"
        ));
    }
    let dir = Scratch::new();
    let dir = dir.map_err(|error| DemoError::Failed(format!("no directory: {error}")))?;
    let daemons = Daemons {
        dir: dir.path(),
        message_bytes: limit,
        multicast: multicast.is_ok(),
    };
    let (mut cluster, setting) = start(options, victim, &input, census.messages, &daemons)?;
    if !options.json {
        print(&setting);
    }
    let done: Vec<Done> = cluster.run()?;
    let killed = cluster.killed();
    let lost = cluster.lost().to_owned();
    cluster.stop();
    let judge = |killed| {
        Outcome::new(
            &input,
            census.messages,
            options.nodes,
            (killed, &lost),
            &done,
        )
    };
    let outcome = killed.map(judge).transpose()?;
    // The copy of the input was needed until now.
    drop(spool);
    Report::new(&setting, &census, done, outcome)
}

/// The messages, and the copy of them to keep until nobody opens it any more.
fn take_input(options: &Options, limit: usize) -> Result<(Input, Census, Option<File>), DemoError> {
    let Some(path) = &options.input else {
        let (messages, size) = (options.messages, options.size);
        let least = source::digits(messages);
        if size < least || size > limit {
            let what = format!("--size must be {least} to {limit} bytes for {messages} messages");
            return Err(DemoError::Usage(format!("{what} that all differ")));
        }
        return Ok((
            Input::Generated { messages, size },
            spool::generated(messages, size),
            None,
        ));
    };
    let spool::Spool {
        file,
        census,
        longest,
    } = spool::spool(path)?;
    if longest.bytes > limit as u64 {
        let what = format!("line {} has {} bytes", longest.line, longest.bytes);
        return Err(DemoError::Usage(format!(
            "{what}; a message may have at most {limit}"
        )));
    }
    Ok((Input::Lines(spool::path(&file)), census, Some(file)))
}

/// The largest message that the daemons take, and tell their clients of.
fn message_limit(options: &Options) -> usize {
    let limit = NodeConfig::loopback(options.nodes, 1).message_limit() - OVERHEAD_BYTES;
    limit.min(MAX_REPLY_BYTES - OVERHEAD_BYTES)
}

/// The settings of all daemons.
struct Daemons<'a> {
    /// The directory of their files.
    dir: &'a Path,
    message_bytes: usize,
    multicast: bool,
}

impl Daemons<'_> {
    fn path(&self, node: &str, what: &str) -> PathBuf {
        self.dir.join(format!("{node}.{what}"))
    }

    fn section(&self) -> toml::Table {
        let path = |what| self.path("{node}", what).display().to_string();
        let number = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut section = toml::Table::new();
        section.insert("socket".to_owned(), path("sock").into());
        section.insert("admin".to_owned(), path("admin").into());
        section.insert(
            "message_bytes".to_owned(),
            number(self.message_bytes).into(),
        );
        section.insert("client_queue_bytes".to_owned(), number(QUEUE_BYTES).into());
        section
    }

    /// The task of one node, of what is common to all.
    fn task(&self, common: &Task, node: u16) -> Task {
        let output = common.output.as_ref();
        Task {
            node,
            socket: self.path(&node.to_string(), "sock"),
            admin: self.path(&node.to_string(), "admin"),
            output: output.map(|dir| dir.join(format!("node-{node}.out"))),
            ..common.clone()
        }
    }

    /// Writes the file of all daemons.
    fn write(&self, config: &NodeConfig, rings: Option<u16>) -> Result<PathBuf, DemoError> {
        let path = self.dir.join("rota.toml");
        let mut config = config.clone();
        config.daemon = rings.is_none().then(|| self.section());
        let failed = |what: String| DemoError::Failed(format!("{}: {what}", path.display()));
        let mut text = config
            .to_toml()
            .map_err(|error| failed(error.to_string()))?;
        if let Some(rings) = rings {
            text += &setting::sections(config.nodes.len() as u16, rings);
        }
        std::fs::write(&path, text).map_err(|error| failed(error.to_string()))?;
        Ok(path)
    }
}

fn engine(options: &Options) -> EngineName {
    match options.engine.as_str() {
        // The engine that orders each ring.
        MULTI_RING => EngineName::URingPaxos,
        name => name.parse().unwrap_or_default(),
    }
}

fn config(options: &Options, base: u16, multicast: bool) -> NodeConfig {
    let mut config = NodeConfig::loopback(options.nodes, base);
    config.engine = engine(options);
    if config.engine.has_votes() {
        // A node that is killed here does not come back.
        config.paxos = Some(PaxosConfig {
            acceptors: None,
            storage: VoteStorage::Memory,
            ..PaxosConfig::default()
        });
    }
    if !multicast {
        config.transport = Transport::Unicast;
    }
    // Two demos that meet on the same ports must not understand each other.
    if let Ok(random) = random_u64() {
        config.cluster = (random >> 32) as u32;
    }
    config
}

/// Starts the nodes, on other ports if some are taken, and waits until they form a ring.
fn start(
    options: &Options,
    victim: Option<u16>,
    input: &Input,
    messages: u64,
    daemons: &Daemons<'_>,
) -> Result<(Cluster, Setting), DemoError> {
    let mut error = DemoError::Failed("no free UDP ports on 127.0.0.1".to_owned());
    let rings = (options.engine == MULTI_RING).then_some(options.rings);
    for _ in 0..PORT_RANGES {
        let ports = (2 * options.nodes + 1) * rings.unwrap_or(1);
        let Some(base) = ports::free_range(ports) else {
            break;
        };
        let config = config(options, base, daemons.multicast);
        let group = match config.transport {
            Transport::Multicast(group) => Some(group),
            Transport::Unicast => None,
        };
        let task = Task {
            node: 0,
            config: daemons.write(&config, rings)?,
            has_rings: rings.is_some(),
            socket: PathBuf::new(),
            admin: PathBuf::new(),
            nodes: options.nodes,
            service: options.service.clone(),
            input: input.clone(),
            messages,
            output: options.output.clone(),
            victim,
        };
        let tasks: Vec<Task> = (1..=options.nodes)
            .map(|node| daemons.task(&task, node))
            .collect();
        let mut cluster = Cluster::start(&tasks)?;
        match cluster.wait_ready() {
            Ok(()) => {
                let size = options.input.is_none().then_some(options.size);
                let setting = Setting {
                    nodes: options.nodes,
                    engine: options.engine.clone(),
                    rings,
                    service: options.service.clone(),
                    size,
                    group,
                };
                return Ok((cluster, setting));
            }
            Err(taken @ DemoError::PortInUse(_)) => error = taken,
            Err(other) => return Err(other),
        }
    }
    Err(error)
}
