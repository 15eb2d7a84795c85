//! The contents of logs, the possible losses with those that are not here, and the steps to take: in words.

use std::fmt::Write as _;
use std::path::Path;

use rota_node::NodeConfig;
use rota_paxos::{AcceptorId, Config};
use serde::Serialize;

use super::merge::Order;
use super::state::Log;

/// The report before anything is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    logs: Vec<LogSeen>,
    /// The newest configuration that any of them knows, with its voters.
    configuration: u64,
    acceptors: Vec<u16>,
    /// Acceptors without a log here,
    missing: Vec<u16>,
    /// or with one that may lack its last moments, or was begun anew.
    changed: Vec<u16>,
    /// A majority is here of all who may have decided something: nothing is lost.
    majority: bool,
    first: u64,
    decided: u64,
    end: u64,
    cut_off: u64,
    #[serde(skip)]
    etcd: Option<String>,
    #[serde(skip)]
    new: Vec<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct LogSeen {
    log: String,
    node: u16,
    configuration: u64,
    first: u64,
    decided: u64,
    end: u64,
    lost_some: bool,
}

impl LogSeen {
    fn of(log: &Log) -> Self {
        Self {
            log: log.path.display().to_string(),
            node: log.identity.node.get(),
            configuration: log.config.as_ref().map_or(0, |config| config.number),
            first: log.kept,
            decided: log.decided,
            end: log.end(),
            lost_some: log.lost_some,
        }
    }
}

impl Report {
    pub fn of(logs: &[Log], order: &Order, config: &NodeConfig) -> Self {
        let here = |who: &AcceptorId| {
            let mut whole = logs.iter().filter(|log| !log.lost_some);
            whole.any(|log| log.name == Some(*who))
        };
        let known = logs.iter().filter_map(|log| log.config.as_ref());
        let newest = known.max_by_key(|config| config.number);
        let number = newest.map_or(0, |config| config.number);
        let complete = logs.iter().map(|log| log.complete).max().unwrap_or(0);
        // A configuration that was agreed on may have come about without these.
        let wanted = logs.iter().filter_map(|log| log.accepted.as_ref());
        let wanted = wanted.filter(|config| config.number > number);
        let mut perhaps = newest.into_iter().chain(wanted);
        let majority = perhaps.all(|config: &Config| config.may_begin(complete, here));
        let acceptors = newest.map_or(&[][..], |config| &config.acceptors[..]);
        let node = |who: &AcceptorId| who.node.get();
        let has_log = |who: &&AcceptorId| logs.iter().any(|log| log.identity.node == who.node);
        let others = acceptors.iter().filter(|who| !here(who));
        let (changed, missing): (Vec<_>, Vec<_>) = others.partition(has_log);
        Self {
            logs: logs.iter().map(LogSeen::of).collect(),
            configuration: number,
            acceptors: acceptors.iter().map(node).collect(),
            missing: missing.into_iter().map(node).collect(),
            changed: changed.into_iter().map(node).collect(),
            majority,
            first: order.kept,
            decided: order.decided,
            end: order.end,
            cut_off: order.cut_off,
            etcd: config.etcd().map(|(_, prefix)| prefix),
            new: config.acceptors().iter().map(|node| node.get()).collect(),
        }
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |what: &str, said: &str| {
            let _ = writeln!(out, "{what:<9} {said}");
        };
        for log in &self.logs {
            line("log", &log.text());
        }
        let acceptors = list(&self.acceptors);
        let votes = format!("{}: {acceptors}", self.configuration);
        line("voters", &format!("of configuration {votes}"));
        let Self {
            first,
            decided,
            end,
            ..
        } = self;
        line(
            "goes on",
            &format!(
                "from {first} as it was decided, from {decided} as these logs have voted; new messages come from {end} on"
            ),
        );
        for lost in self.lost() {
            line("LOST", &lost);
        }
        line("must", MUST_STOP);
        line("must", MUST_NOT_START);
        out.trim_end().to_owned()
    }

    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        let number = self.configuration;
        if self.majority {
            let mut nothing = format!(
                "nothing: of configuration {number} a majority of the acceptors is here. They go on by themselves when they are \
                 started: that is better"
            );
            if self.etcd.is_some() {
                nothing += ". That no later configuration was agreed on only etcd knows";
            }
            lost.push(nothing);
        } else {
            lost.push(format!(
                "perhaps, and nobody can say how much: what was acknowledged and only others had voted for. Of the acceptors of \
                 configuration {number}:{}",
                self.others()
            ));
        }
        if self.cut_off > 0 {
            let Self { end, cut_off, .. } = self;
            lost.push(format!(
                "what these logs have of {cut_off} places from {end} on: place {end} is in none of them"
            ));
        }
        lost
    }

    fn others(&self) -> String {
        let mut said = Vec::new();
        if !self.missing.is_empty() {
            said.push(format!(" {} are not here", list(&self.missing)));
        }
        if !self.changed.is_empty() {
            let changed = list(&self.changed);
            said.push(format!(
                " {changed} may lack their last moments, or were begun anew"
            ));
        }
        said.join(";")
    }

    /// The steps that are left when the new logs are written.
    pub fn what_to_do(&self, into: &Path, number: u64) -> String {
        let mut out = format!("\nwritten to {}. Now\n", into.display());
        let nodes = list(&self.new);
        let _ = writeln!(
            out,
            "* for each of the nodes {nodes}: move node-ID.votes away in its state_dir, and put the new one there, for the same owner;"
        );
        if let Some(prefix) = &self.etcd {
            let _ = writeln!(
                out,
                "* etcdctl del --prefix {prefix}\n  etcdctl put {prefix}{number:020} recovered"
            );
        }
        out += "* start all nodes. Each delivers the order from the first place that is kept.";
        out
    }
}

impl LogSeen {
    fn text(&self) -> String {
        let Self {
            log,
            node,
            configuration,
            first,
            decided,
            end,
            lost_some,
        } = self;
        let some = if *lost_some {
            "; its last moments may be missing"
        } else {
            ""
        };
        format!(
            "{log}: node {node}, configuration {configuration}, kept from {first}, decided before {decided}, votes before {end}{some}"
        )
    }
}

const MUST_STOP: &str = "all nodes are stopped, also those that do not vote: a process that goes on may have delivered what is lost";

const MUST_NOT_START: &str = "no acceptor starts with a log of before, now or ever. One alone stays outside; a majority of them goes on with the old \
     order beside the new one";

fn list(nodes: &[u16]) -> String {
    let nodes: Vec<String> = nodes.iter().map(u16::to_string).collect();
    nodes.join(", ")
}
