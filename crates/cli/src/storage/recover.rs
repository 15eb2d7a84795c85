//! `rota storage recover`: goes on from the logs that are left when a majority of the acceptors is lost for good.
//!
//! The logs that are left are read and merged, and written into a new log for each acceptor: the same order, with the
//! same places, under a foundation of its own. `docs/protocols/paxos.md` has why that is safe, and what cannot be.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_core::contract::NodeId;
use rota_net::{new_process, random_u64};
use rota_node::{NodeConfig, VoteStorage};
use rota_paxos::{AcceptorId, Config, state_key};
use rota_storage::acceptor::{AppendError, DiskLog, Identity, Kind, LogOptions, RecordRef};

use super::merge::{Order, merge};
use super::report::Report;
use super::state::{Cast, Log, bytes_of};
use crate::say::{complain, print, print_json};

/// Configurations go on so much later, and logs count as if they had been opened so much more often: whatever is taken for one
/// of before is an earlier one.
const STEP: u64 = 1_000_000;

/// So much is written at once, in bytes.
const AT_ONCE: usize = 8 << 20;

/// Options of `rota storage recover`.
#[derive(Clone, Debug, clap::Args)]
pub struct RecoverOptions {
    /// The logs that are left, of any acceptors: directories, or copies of them. Their nodes must not run
    #[arg(required = true)]
    logs: Vec<PathBuf>,
    /// The cluster's configuration file; acceptors are those that it names
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// A directory for the new logs, which is not there yet
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    into: Option<PathBuf>,
    /// Say what there is and what may be lost, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object instead of text; with --dry-run or --yes
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(options: &RecoverOptions) -> ExitCode {
    match recover(options) {
        Ok(code) => code,
        Err(what) => {
            complain(&what);
            ExitCode::from(2)
        }
    }
}

fn recover(options: &RecoverOptions) -> Result<ExitCode, String> {
    let config = NodeConfig::load(&options.config).map_err(|error| error.to_string())?;
    let logs = read(&options.logs, &config)?;
    let order = merge(&logs).ok_or("there is nothing to go on from")?;
    let report = Report::of(&logs, &order, &config);
    if options.json {
        print_json(&report);
    } else {
        print(&report.text());
    }
    let Some(into) = options.into.as_ref().filter(|_| !options.dry_run) else {
        return Ok(ExitCode::SUCCESS);
    };
    if into.exists() {
        return Err(format!("{} is there already", into.display()));
    }
    if !options.yes && !is_confirmed(options.json)? {
        print(&"Nothing was written.");
        return Ok(ExitCode::FAILURE);
    }
    let next = next_config(&logs, &config)?;
    write_all(into, &config, &logs, &order, &next)?;
    if !options.json {
        print(&report.what_to_do(into, next.number));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(paths: &[PathBuf], config: &NodeConfig) -> Result<Vec<Log>, String> {
    match config.vote_storage() {
        None => return Err("the configuration names no engine with acceptors".to_owned()),
        Some(VoteStorage::Memory) => {
            return Err("with storage = \"memory\" nodes look at no log".to_owned());
        }
        Some(VoteStorage::Async | VoteStorage::Sync) => {}
    }
    let logs: Result<Vec<Log>, String> = paths.iter().map(|path| Log::read(path)).collect();
    let logs = logs?;
    for (index, log) in logs.iter().enumerate() {
        let path = log.path.display();
        if log.identity.cluster != config.cluster {
            let cluster = config.cluster;
            let of = log.identity;
            return Err(format!("{path}: it is of {of}, not of cluster {cluster}"));
        }
        let Some(own) = &log.config else {
            return Err(format!("{path}: its node has never been in a ring"));
        };
        for other in &logs[..index] {
            if other.identity.node == log.identity.node {
                return Err(format!("{path}: another log is of the same node"));
            }
            if other.config.as_ref().map(|config| config.founded) != Some(own.founded) {
                let other = other.path.display();
                return Err(format!(
                    "{path} and {other} are of two foundations: two orders, of which one can go on"
                ));
            }
        }
    }
    Ok(logs)
}

fn is_confirmed(json: bool) -> Result<bool, String> {
    let input = io::stdin();
    if json || !input.is_terminal() {
        return Err("nobody can be asked: say --yes, or --dry-run".to_owned());
    }
    print(&"\nIs all of this so? Type yes to go on:");
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    read.map_err(|error| error.to_string())?;
    Ok(answer.trim() == "yes")
}

/// The next configuration: acceptors that nobody has been before, all of which have everything.
fn next_config(logs: &[Log], config: &NodeConfig) -> Result<Config, String> {
    let wrong = |error: io::Error| error.to_string();
    let round = logs.iter().map(|log| log.round).max().unwrap_or(0);
    let nodes = config.acceptors();
    let acceptor = |node: &NodeId| Ok((*node, random_u64()?.max(1)));
    let acceptors: io::Result<Vec<(NodeId, u64)>> = nodes.iter().map(acceptor).collect();
    let acceptors = acceptors.map_err(wrong)?.into_iter();
    // Processes that nobody is: a process that starts finds that this ring is over.
    let ring: io::Result<Vec<_>> = nodes.iter().map(|node| new_process(*node)).collect();
    let ring = ring.map_err(wrong)?;
    Ok(Config {
        founded: random_u64().map_err(wrong)?.max(1),
        number: round + STEP,
        coordinator: *ring.first().ok_or("there are no acceptors")?,
        ring,
        acceptors: acceptors
            .map(|(node, store)| AcceptorId { node, store })
            .collect(),
        prior: Vec::new(),
    })
}

fn write_all(
    into: &Path,
    config: &NodeConfig,
    logs: &[Log],
    order: &Order,
    next: &Config,
) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{}: {error}", into.display());
    fs::create_dir(into).map_err(wrong)?;
    let first = &logs[order.begins];
    let lives = logs.iter().map(|log| log.life).max().unwrap_or(0);
    for who in &next.acceptors {
        let mut options = LogOptions::new(Identity {
            cluster: config.cluster,
            node: who.node,
            ..first.identity
        });
        options.least_life = lives + STEP;
        let part = into.join(format!("node-{}.votes.part", who.node));
        fs::create_dir(&part).map_err(wrong)?;
        let state = state(first, order, next, *who);
        write(&part, options, order, &state)?;
        // Half of a log is never taken for one.
        let whole = into.join(format!("node-{}.votes", who.node));
        fs::rename(&part, whole).map_err(wrong)?;
    }
    fs::File::open(into)
        .and_then(|dir| dir.sync_all())
        .map_err(wrong)
}

/// The state that a node finds in its new log beside votes.
fn state(first: &Log, order: &Order, next: &Config, who: AcceptorId) -> Vec<(u64, Vec<u8>)> {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let base = first.base.clone();
    base.map(|base| (state_key::BASE, base))
        .into_iter()
        .chain([
            (state_key::PROMISED, number(next.number)),
            (state_key::CONFIG, bytes_of(next)),
            (state_key::DECIDED, number(order.decided)),
            (state_key::COMPLETE, number(next.number)),
            (state_key::STORE, number(who.store)),
        ])
        .collect()
}

fn write(
    path: &Path,
    options: LogOptions,
    order: &Order,
    state: &[(u64, Vec<u8>)],
) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut log = DiskLog::open(path.to_owned(), options).map_err(|error| wrong(&error))?;
    if let Some(vote) = order.votes.first() {
        log.trim(vote.first).map_err(|error| wrong(&error))?;
    }
    let (mut some, mut bytes) = (Vec::new(), 0);
    for vote in &order.votes {
        bytes += vote.bytes.len();
        some.push(record_of(vote));
        if bytes >= AT_ONCE {
            put(&mut log, &some).map_err(|error| wrong(&error))?;
            (some, bytes) = (Vec::new(), 0);
        }
    }
    put(&mut log, &some).map_err(|error| wrong(&error))?;
    let state: Vec<RecordRef<'_>> = state
        .iter()
        .map(|(key, bytes)| keyed(*key, bytes))
        .collect();
    put(&mut log, &state).map_err(|error| wrong(&error))?;
    log.close().map_err(|error| wrong(&error))
}

fn put(log: &mut DiskLog, records: &[RecordRef<'_>]) -> Result<(), AppendError> {
    log.append(records)?;
    log.commit()
}

/// The rest of a range is as long as its record says: a reader looks there.
fn record_of(vote: &Cast) -> RecordRef<'_> {
    let kind = if vote.first == vote.last {
        Kind::Vote
    } else {
        Kind::Skip
    };
    RecordRef {
        kind,
        first: vote.first,
        last: vote.last,
        head: &[],
        bytes: &vote.bytes,
    }
}

fn keyed(key: u64, bytes: &[u8]) -> RecordRef<'_> {
    RecordRef {
        kind: Kind::State,
        first: key,
        last: key,
        head: &[],
        bytes,
    }
}
