//! `rota doctor`: the hosts of a configuration and the network between them, before anything is started.
//!
//! It runs on all hosts at the same time, and sends what daemons would send from where they would send it: small and full
//! datagrams to the data ports or to the group, and questions to the token ports, which the others answer. What arrives,
//! how long it takes, how far the clocks are apart and how long a host stands still is then known on both sides. Its datagrams
//! are not sealed and say nothing that is secret; those from addresses that are not listed are dropped.

mod host;
mod judge;
mod sockets;
mod talk;
mod wire;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rota_bench::parse_duration;
use rota_daemon::DaemonConfig;
use rota_node::NodeConfig;
use serde::Serialize;

use crate::client::Failure;
use crate::config::node_here;
use crate::say::{print, print_json, tell};
use crate::which::Which;
use host::Host;
use talk::Peer;

/// Options of `rota doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct DoctorOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Which node of it this host is: its number, from-hostname or from-ordinal [default: the one whose address this host has]
    #[arg(long, value_name = "ID")]
    node: Option<Which>,
    /// How long to look, like 10s: start it on all hosts within that time
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    length: Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was seen from one node.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The node that this host is.
    pub node: u16,
    /// Bytes of a full datagram.
    pub datagram_bytes: usize,
    /// The reason for that size: set, or the narrowest path that the kernel knows.
    pub datagram_bytes_by: String,
    /// How data goes: `unicast`, or the group.
    pub transport: String,
    /// This host.
    pub host: Host,
    /// The others.
    pub peers: Vec<Peer>,
    /// What is wrong, a sentence each.
    pub wrong: Vec<String>,
}

/// Looks, and says what is wrong; the status is 1 if something is.
pub fn main(options: &DoctorOptions) -> ExitCode {
    match look(options) {
        Ok(report) => {
            if options.json {
                print_json(&report);
            } else {
                print(&text(&report).trim_end());
            }
            ExitCode::from(u8::from(!report.wrong.is_empty()))
        }
        Err(failure) => failure.exit(),
    }
}

fn look(options: &DoctorOptions) -> Result<Report, Failure> {
    let path = &options.config;
    let wrong =
        |error: &dyn std::fmt::Display| Failure::misused(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let config = NodeConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let daemon = DaemonConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let me = match options.node {
        Some(which) => which.id().map_err(|error| wrong(&error))?,
        None => node_here(&config).map_err(|error| wrong(&error))?,
    };
    config.check_for(me).map_err(|error| wrong(&error))?;
    // Names are looked up once: a host whose address changes meanwhile is silent.
    let config = config.resolved(me);
    // A directory may be made later, and this asks about the network first.
    let state = config.check_host(me).err().map(|error| error.to_string());
    let sockets = sockets::Sockets::open(&config, me).map_err(|error| wrong(&error))?;
    let others = config.members().len() - 1;
    tell(&format!(
        "node {me}: looking for {} s; start it on the other hosts ({others}) now",
        options.length.as_secs_f64()
    ));
    let datagrams = config.datagram_size(me);
    let size = datagrams.bytes;
    let pauses = host::Pauses::start();
    let peers = talk::talk(&config, me, (&sockets, size), (options.length, &pauses));
    let host = Host::of(&daemon, &sockets, &config, pauses);
    let timers = config.ring_config().timers;
    let seen = judge::Seen {
        config: &config,
        me,
        datagram_bytes: size,
        token_loss: Duration::from_nanos(timers.token_loss),
        host: &host,
        peers: &peers,
    };
    let mut found = judge::judge(&seen);
    found.extend(state);
    Ok(Report {
        node: me.get(),
        datagram_bytes: size,
        datagram_bytes_by: datagrams.to_string(),
        transport: judge::way(&config),
        host,
        peers,
        wrong: found,
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut put = |line: std::fmt::Arguments<'_>| {
        // A string takes everything.
        let _ = writeln!(text, "{line}");
    };
    let host = &report.host;
    put(format_args!(
        "node {} (this host): receive buffer {} of {} bytes, {} descriptors, longest pause {:.1} ms, {:.1} % of its time \
         stolen",
        report.node,
        host.receive_buffer_bytes,
        host.receive_buffer_wanted_bytes,
        host.descriptors,
        host.longest_pause_ms,
        host.stolen_percent
    ));
    put(format_args!(
        "data goes by {}, in datagrams of {} bytes ({})",
        report.transport, report.datagram_bytes, report.datagram_bytes_by
    ));
    for peer in &report.peers {
        let Some(seen) = &peer.seen else {
            put(format_args!(
                "node {} ({}): no answer",
                peer.node, peer.address
            ));
            continue;
        };
        put(format_args!(
            "node {} ({}): {} of {} answers, round trip {:.2} ms at best, {} of {} small and {} of {} datagrams of {} bytes \
             arrive there, its clock is {:+.1} ms from this one, longest pause {:.1} ms, {:.1} % of its time stolen",
            peer.node,
            peer.address,
            seen.answers,
            seen.questions,
            seen.round_trip_ms,
            seen.small_arrived,
            seen.small_sent,
            seen.full_arrived,
            seen.full_sent,
            report.datagram_bytes,
            seen.clock_offset_ms,
            seen.longest_pause_ms,
            seen.stolen_percent
        ));
    }
    if report.wrong.is_empty() {
        put(format_args!("all well"));
    }
    for sentence in &report.wrong {
        put(format_args!("{sentence}"));
    }
    text
}
