//! `rota config check`: what a configuration file means.

mod from_spread;
mod here;
mod table;
mod votes;

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rota_core::contract::NodeId;
use rota_core::pack::Outbox;
use rota_daemon::DaemonConfig;
use rota_daemon::access::{AccessRule, Pattern};
use rota_daemon::tls::{ListsEnd, TlsConfig};
use rota_net::{KeyRing, Transport};
use rota_node::{ConfigError, DatagramSize, NodeConfig, PrimaryName};
use rota_ring::{PriorityMethod, RingConfig, RingConfigError};

use crate::key;
use crate::log::Levels;
use crate::say::{complain, print, print_json};
use crate::which::Which;
pub use from_spread::{FromSpreadOptions, from_spread};
pub use here::node_here;
use here::viewpoint;
use table::Table;

/// Options of `rota config check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// The configuration file
    file: PathBuf,
    /// Also whether this node can run with it: its number, from-hostname or from-ordinal
    #[arg(long, value_name = "ID")]
    node: Option<Which>,
    /// Print one JSON object instead of text: a section for each part, with names and values
    #[arg(long)]
    json: bool,
}

/// Checks a file and prints every effective and derived value.
pub fn check(options: &CheckOptions) -> ExitCode {
    let node = options.node.map(Which::id).transpose();
    match node.and_then(|node| checked(&options.file, node)) {
        Ok(table) => {
            match options.json {
                true => print_json(&table.to_json()),
                false => print(&table.to_string().trim_end()),
            }
            ExitCode::SUCCESS
        }
        Err(what) => {
            complain(&what);
            ExitCode::from(2)
        }
    }
}

fn checked(file: &Path, node: Option<NodeId>) -> Result<Table, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let wrong = |error: &dyn Display| format!("{}: {error}", file.display());
    let config = NodeConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    if let Some(node) = node {
        config.check_for(node).map_err(|error| wrong(&error))?;
    }
    let daemon = DaemonConfig::from_toml(&text).map_err(|error| wrong(&error))?;
    let mut checked = daemon.check_here();
    if config.daemon.is_some() {
        checked = checked.and_then(|()| daemon.check_ring(&config));
    }
    if let Some(node) = node {
        checked = checked.and_then(|()| daemon.check_paths(node));
    }
    checked.map_err(|error| wrong(&error))?;
    let _: Levels = daemon.log.parse().map_err(|error: String| wrong(&error))?;
    let config = node.map_or_else(|| config.resolved_as_seen(), |node| config.resolved(node));
    let host = node.map_or(Ok(()), |node| config.check_host(node));
    host.map_err(|error| wrong(&error))?;
    let keys = config.keys().map_err(|error| {
        let path = config.key_file.clone().unwrap_or_default();
        format!("{}: {error}", rota_net::whole_path(&path).display())
    })?;
    let described = describe(&config, keys.as_ref(), node);
    let mut table = described.map_err(|error| wrong(&error))?;
    // Files of certificates are those of one host.
    let etcd = node.map_or(Ok(()), |node| config.check_etcd_files(node));
    etcd.map_err(|error| wrong(&error))?;
    let lists = match (&daemon.tls, node) {
        (Some(tls), Some(node)) => tls.check_files(node).map_err(|error| wrong(&error))?,
        _ => None,
    };
    describe_daemon(&daemon, lists, &mut table);
    Ok(table)
}

fn describe(
    config: &NodeConfig,
    keys: Option<&KeyRing>,
    node: Option<NodeId>,
) -> Result<Table, ConfigError> {
    let viewpoint = viewpoint(config, node).ok_or(ConfigError::Ring(RingConfigError::Members))?;
    let size = config.datagram_size(viewpoint);
    let ring = config.ring_config_at(viewpoint)?;
    let mut table = Table::default();
    describe_cluster(config, keys, &mut table);
    describe_ring(config, &ring, &size, &mut table);
    describe_timers(config, &ring, &mut table);
    describe_sockets(config, &mut table);
    describe_state(config, node, &mut table);
    describe_primary(config, node, &mut table);
    votes::describe(config, &ring, node, &mut table);
    describe_nodes(config, &ring, node, &mut table);
    Ok(table)
}

fn describe_cluster(config: &NodeConfig, keys: Option<&KeyRing>, table: &mut Table) {
    table.section("cluster");
    table.row("cluster", config.cluster);
    table.row("engine", config.engine.name());
    table.row("insecure", config.insecure);
    if let (Some(path), Some(keys)) = (&config.key_file, keys) {
        let value = format!("{} ({})", path.display(), key::describe(keys));
        table.row("key_file", value);
    }
    match config.transport {
        Transport::Unicast => table.row("transport", "unicast"),
        Transport::Multicast(group) => table.row("transport", format!("multicast {group}")),
    }
    table.row(
        "interface",
        config.interface.as_deref().unwrap_or("by address"),
    );
    if let Some(ttl) = config.multicast_ttl {
        table.row("multicast_ttl", ttl);
    }
    table.row("open_membership", config.open_membership);
}

fn describe_ring(config: &NodeConfig, ring: &RingConfig, size: &DatagramSize, table: &mut Table) {
    table.section("ring");
    let members: Vec<String> = ring.members.iter().map(ToString::to_string).collect();
    table.row(
        "members",
        format!("{} ({})", members.len(), members.join(", ")),
    );
    if let Some(representative) = ring.members.first() {
        table.row("representative", representative);
    }
    if let Some(mbps) = config.link_mbps {
        let says = format!("{mbps} Mbit/s, of which senders get shares");
        table.row("link_mbps", says);
    }
    if config.link_yields {
        table.row("link_yields", "less while packets get lost");
    }
    table.row(
        "personal_window",
        format!("{} packets", ring.windows.personal),
    );
    table.row(
        "accelerated_window",
        format!("{} packets", ring.windows.accelerated),
    );
    table.row("global_window", format!("{} packets", ring.windows.global));
    table.row(
        "outstanding_window",
        format!("{} packets", ring.windows.outstanding),
    );
    let method = match ring.priority_method {
        PriorityMethod::First => 1,
        PriorityMethod::Second => 2,
    };
    table.row("priority_method", method);
    table.row("datagram_bytes", format!("{} ({size})", size.bytes));
    table.row("packet_payload_bytes", ring.frame_bytes());
    // The limit of a message in the most parts may be smaller than what was asked for.
    let outbox = Outbox::new(ring.frame_bytes(), ring.message_bytes, ring.backlog_bytes);
    table.row("message_bytes", outbox.limit().min(config.message_limit()));
    table.row("backlog_bytes", ring.backlog_bytes);
}

fn describe_timers(config: &NodeConfig, ring: &RingConfig, table: &mut Table) {
    table.section("timers");
    let timing = serde_json::to_value(config.timing).unwrap_or_default();
    table.row("timing", timing.as_str().unwrap_or("?"));
    let timers = &ring.timers;
    let rows = [
        ("token_loss_ms", timers.token_loss),
        ("token_retransmit_ms", timers.token_retransmit),
        ("idle_retransmit_ms", timers.idle_retransmit()),
        ("token_hold_ms", timers.token_hold),
        ("join_ms", timers.join),
        ("consensus_ms", timers.consensus),
        ("merge_ms", timers.merge),
    ];
    for (name, nanos) in rows {
        table.row(name, nanos as f64 / 1e6);
    }
}

fn describe_sockets(config: &NodeConfig, table: &mut Table) {
    table.section("sockets");
    table.row("receive_buffer_bytes", config.receive_buffer_bytes);
    table.row("send_buffer_bytes", config.send_buffer_bytes);
    table.row("busy_poll_us", config.busy_poll_us);
    table.row("offload", config.offload);
    match &config.trace {
        Some(path) => table.row("trace", path.display()),
        None => table.row("trace", "off"),
    }
    match &config.faults {
        Some(faults) => table.row("faults", serde_json::to_string(faults).unwrap_or_default()),
        None => table.row("faults", "none"),
    }
}

fn describe_state(config: &NodeConfig, me: Option<NodeId>, table: &mut Table) {
    table.section("state");
    match &config.state_dir {
        Some(directory) => table.row("state_dir", directory.display()),
        None => table.row(
            "state_dir",
            "none (ring ids are in memory only: the incarnation alone keeps them unique)",
        ),
    }
    table.row("reset_ring_id", config.reset_ring_id);
    if let Some(file) = me.and_then(|me| config.ring_id_file(me)) {
        table.row("ring_id_file", file.display());
    }
}

fn describe_primary(config: &NodeConfig, me: Option<NodeId>, table: &mut Table) {
    table.section("primary");
    let rule = match config.primary_in_force() {
        PrimaryName::None => "none (no configuration is called primary)",
        PrimaryName::Static => "static (more than half of primary_nodes)",
        PrimaryName::Dynamic => {
            "dynamic (more than half of the last primary, or half with its smallest node)"
        }
    };
    table.row("primary", rule);
    if config.primary_in_force() == PrimaryName::None {
        return;
    }
    let nodes: Vec<String> = config
        .counted_nodes()
        .iter()
        .map(NodeId::to_string)
        .collect();
    let from = match config.primary_nodes {
        Some(_) => "set",
        None => "all that are listed",
    };
    table.row("primary_nodes", format!("{} ({from})", nodes.join(", ")));
    let reset = config.reset_primary.map(serde_json::to_value);
    let reset = reset.and_then(Result::ok).unwrap_or_default();
    table.row("reset_primary", reset.as_str().unwrap_or("no"));
    if let Some(file) = me.and_then(|me| config.primary_file(me)) {
        table.row("primary_file", file.display());
    }
}

fn describe_nodes(config: &NodeConfig, ring: &RingConfig, me: Option<NodeId>, table: &mut Table) {
    here::begin_nodes(config, me, table);
    for &member in &ring.members {
        let Some(node) = config.node(member) else {
            continue;
        };
        let is_me = me == Some(member);
        let mark = if is_me { "  <- this node" } else { "" };
        let has_links = config.engine.has_links();
        let links = has_links.then(|| format!(", links tcp {}", node.link()));
        let links = links.unwrap_or_default();
        let value = format!("data {}, token {}{links}{mark}", node.data(), node.token());
        table.row(&format!("node {member}"), value);
    }
    let Some(place) = ring.members.iter().position(|member| me == Some(*member)) else {
        return;
    };
    let count = ring.members.len();
    table.row(
        "token comes from",
        format!("node {}", ring.members[(place + count - 1) % count]),
    );
    table.row(
        "token goes to",
        format!("node {}", ring.members[(place + 1) % count]),
    );
}

fn describe_daemon(daemon: &DaemonConfig, lists: Option<ListsEnd>, table: &mut Table) {
    table.section("daemon");
    table.row("socket", daemon.socket.display());
    table.row("admin", daemon.admin.display());
    table.row("tcp", list(&daemon.tcp));
    table.row("message_bytes", daemon.message_bytes);
    table.row("clients", daemon.clients);
    table.row("client_memberships", daemon.client_memberships);
    table.row("client_queue_bytes", daemon.client_queue_bytes);
    table.row("queues_bytes", daemon.queues_bytes);
    table.row("client_memory_bytes", daemon.client_memory_bytes);
    table.row("slow_clients", daemon.slow_clients);
    table.row("throttle_ms", daemon.throttle_ms);
    table.row("throttle_then", daemon.throttle_then);
    table.row("handshake_ms", daemon.handshake_ms);
    table.row("handshakes", daemon.handshakes);
    table.row("per_address", daemon.per_address);
    table.row("per_user", daemon.per_user);
    let or = |value: Option<String>, none: &str| value.unwrap_or_else(|| none.to_owned());
    let metrics = daemon
        .metrics
        .map(|address| format!("http://{address}/metrics"));
    table.row("metrics", or(metrics, "none"));
    let realtime = daemon.realtime.map(|priority| priority.to_string());
    table.row("realtime", or(realtime, "off"));
    table.row("log", &daemon.log);
    table.row("cluster_status", daemon.cluster_status);
    describe_tls(daemon.tls.as_ref(), lists, table);
    describe_access(&daemon.access, table);
    table.section("daemon.spread");
    let Some(spread) = &daemon.spread else {
        table.row("closed", "(there is no such section)");
        return;
    };
    let socket = spread.socket.as_deref();
    table.row(
        "socket",
        socket.map_or_else(|| "none".into(), Path::to_string_lossy),
    );
    table.row("tcp", list(&spread.tcp));
    table.row("allow", &spread.allow);
}

fn list(addresses: &[SocketAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if addresses.is_empty() {
        "none".to_owned()
    } else {
        addresses.join(", ")
    }
}

fn describe_tls(tls: Option<&TlsConfig>, lists: Option<ListsEnd>, table: &mut Table) {
    table.section("daemon.tls");
    let Some(tls) = tls else {
        table.row("closed", "(there is no such section)");
        return;
    };
    table.row("listen", list(&tls.listen));
    table.row("certificate", tls.certificate.display());
    table.row("key", tls.key.display());
    match &tls.client_ca {
        Some(path) => table.row("client_ca", path.display()),
        None => table.row("client_ca", "none"),
    }
    match (&tls.client_crl, lists) {
        (Some(path), Some(end)) => {
            let value = format!("{} (good until {end})", path.display());
            table.row("client_crl", value);
        }
        (Some(path), None) => table.row("client_crl", path.display()),
        (None, _) => table.row("client_crl", "none"),
    }
    let asked = match (tls.anonymous, &tls.client_ca) {
        (false, _) => "no (clients need a certificate of client_ca)",
        (true, Some(_)) => "yes (a certificate, if there is one, has to be of client_ca)",
        (true, None) => "yes (clients are asked for no certificate)",
    };
    table.row("anonymous", asked);
}

fn describe_access(rules: &[AccessRule], table: &mut Table) {
    table.section("daemon.access");
    if rules.is_empty() {
        table.row("no rules", "(whoever can open a socket may do everything)");
    }
    let list = |patterns: &[Pattern]| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        patterns.join(" ")
    };
    for rule in rules {
        let mut rights = Vec::new();
        if rule.connect {
            rights.push("connect".to_owned());
        }
        if rule.admin {
            rights.push("admin".to_owned());
        }
        for (name, patterns) in [("join", &rule.join), ("send", &rule.send)] {
            if !patterns.is_empty() {
                rights.push(format!("{name} {}", list(patterns)));
            }
        }
        table.row(&rule.who.to_string(), rights.join(", "));
    }
}
