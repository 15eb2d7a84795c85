//! The text of a new configuration: the settings that somebody may want to change, with a remark each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use rota_core::EngineName;
use toml::Value;

use super::hosts::Host;

/// The decisions that a configuration is written from.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub cluster: u32,
    pub engine: EngineName,
    pub hosts: &'a [Host],
    /// Multicast: to this group, or to one of the cluster's own.
    pub multicast: Option<Option<SocketAddr>>,
    pub interface: Option<&'a str>,
    /// The data port of the first node at an address.
    pub port: u16,
    pub key: &'a Path,
    pub state_dir: &'a Path,
    pub run_dir: &'a Path,
    /// Daemons share the directory for their sockets.
    pub one_host: bool,
}

/// The configuration as TOML. An error says in words what cannot be written.
pub fn write(plan: &Plan<'_>) -> Result<String, String> {
    let mut text = String::new();
    cluster(plan, &mut text)?;
    transport(plan, &mut text);
    state(plan, &mut text)?;
    nodes(plan, &mut text)?;
    daemon(plan, &mut text)?;
    Ok(text)
}

fn put(text: &mut String, lines: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = text.write_fmt(lines);
}

/// A string as TOML.
fn quoted(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A path as TOML, which holds nothing but Unicode.
fn path(path: &Path) -> Result<Value, String> {
    let text = path.to_str();
    text.map(quoted)
        .ok_or_else(|| format!("{}: a configuration holds Unicode only", path.display()))
}

fn cluster(plan: &Plan<'_>, text: &mut String) -> Result<(), String> {
    put(
        text,
        format_args!(
            "\
# A cluster of {nodes}, the same file on all hosts. `rota config check` says what every setting means in effect;
# docs/operations.md has all of them.

# Tells clusters on one network apart: others are counted and ignored.
cluster = {cluster}

# Datagrams between nodes are sealed with the keys in this file, which only the daemon's user may read. Whoever has it
# can be any of the nodes. Where a service manager hands it over: \"$CREDENTIALS_DIRECTORY/cluster.key\".
key_file = {key}

# The protocol that orders messages: {about}.
engine = \"{engine}\"
",
            nodes = match plan.hosts.len() {
                1 => "one node".to_owned(),
                nodes => format!("{nodes} nodes"),
            },
            cluster = plan.cluster,
            key = path(plan.key)?,
            about = about(plan.engine),
            engine = plan.engine,
        ),
    );
    Ok(())
}

fn transport(plan: &Plan<'_>, text: &mut String) {
    let transport = match plan.multicast {
        None => "\"unicast\"".to_owned(),
        Some(group) => {
            let group = group.unwrap_or_else(|| own_group(plan));
            format!("{{ multicast = \"{group}\" }}")
        }
    };
    put(
        text,
        format_args!(
            "\
\n# Data goes to each node as a copy, which works everywhere, or once to all, which is faster where switches carry
# multicast: \"unicast\" or {{ multicast = \"{}\" }}
transport = {transport}
",
            own_group(plan)
        ),
    );
    if let Some(interface) = plan.interface {
        put(text, format_args!("interface = {}\n", quoted(interface)));
    }
    put(
        text,
        format_args!(
            "\
\n# How long silence may last before a node is taken for gone: \"lan-fast\" with a processor for each daemon, \"relaxed\" on
# crowded or virtual hosts.
timing = \"default\"
"
        ),
    );
}

const fn about(engine: EngineName) -> &'static str {
    match engine {
        EngineName::AcceleratedRing => {
            "a token goes round; each side of a network that splits goes on"
        }
        EngineName::TotemRing => {
            "the original token ring; each side of a network that splits goes on"
        }
        EngineName::FastCast => {
            "a sequencer, and all acknowledge; only the side with most of the nodes goes on"
        }
        EngineName::Lcr => {
            "vector clocks along a ring of links; only the side with most of the nodes goes on"
        }
        EngineName::RingPaxos => {
            "a majority of the acceptors votes, and values are multicast; what is delivered is on disks"
        }
        EngineName::URingPaxos => {
            "a majority of the acceptors votes, along a ring of links; what is delivered is on disks"
        }
    }
}

/// A group of this cluster's own, from the range for the inside of an organisation.
fn own_group(plan: &Plan<'_>) -> SocketAddr {
    let [_, _, high, low] = plan.cluster.to_be_bytes();
    let is_ipv6 = |host: &Host| host.ip().is_some_and(|ip| ip.is_ipv6());
    let is_ipv6 = plan.hosts.iter().any(is_ipv6);
    let group = match is_ipv6 {
        true => {
            let last = u16::from_be_bytes([high, low]);
            IpAddr::V6(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0x7207, last))
        }
        false => IpAddr::V4(Ipv4Addr::new(239, 192, high, low)),
    };
    SocketAddr::new(group, plan.port.saturating_sub(1).max(1))
}

fn state(plan: &Plan<'_>, text: &mut String) -> Result<(), String> {
    put(
        text,
        format_args!(
            "\
\n# Each node keeps here what it must not forget. The directory has to exist, on a disk that stays with the host; do not
# restore it from a backup.
state_dir = {}
",
            path(plan.state_dir)?
        ),
    );
    if plan.engine.has_votes() {
        put(
            text,
            format_args!(
                "\
\n[paxos]
# What a vote waits for: \"sync\" is the disk, \"async\" the kernel (a loss of power forgets the last moments), \"memory\"
# nothing.
storage = \"sync\"
"
            ),
        );
    }
    Ok(())
}

fn nodes(plan: &Plan<'_>, text: &mut String) -> Result<(), String> {
    let mut at_address: BTreeMap<&str, u16> = BTreeMap::new();
    put(
        text,
        format_args!(
            "\
\n# The nodes. Firewalls have to let both UDP ports through{links}; `name` is what clients call the daemon.
",
            links = match plan.engine.has_links() {
                true => ", and TCP at the number of the token port",
                false => "",
            }
        ),
    );
    for (at, host) in plan.hosts.iter().enumerate() {
        let id = u16::try_from(at + 1).map_err(|_| "these are too many hosts".to_owned())?;
        let nth = at_address.entry(host.address.as_str()).or_default();
        let data_port = plan.port.checked_add(2 * *nth);
        let data_port = data_port.filter(|port| *port < u16::MAX);
        let data_port = data_port.ok_or_else(|| {
            format!(
                "{}: there are no ports left behind {}",
                host.address, plan.port
            )
        })?;
        *nth += 1;
        put(text, format_args!("\n[[node]]\nid = {id}\n"));
        if let Some(name) = &host.name {
            put(text, format_args!("name = {}\n", quoted(name)));
        }
        put(
            text,
            format_args!(
                "address = {}\ndata_port = {data_port}\ntoken_port = {}\n",
                quoted(&host.address),
                data_port + 1
            ),
        );
    }
    Ok(())
}

fn daemon(plan: &Plan<'_>, text: &mut String) -> Result<(), String> {
    let socket = |name: &str| match plan.one_host {
        true => path(&plan.run_dir.join(format!("{name}-{{node}}.sock"))),
        false => path(&plan.run_dir.join(format!("{name}.sock"))),
    };
    put(
        text,
        format_args!(
            "\
\n[daemon]
# Where clients of this host connect, and where operators ask (rota status, rota top). The directory has to exist.
socket = {}
admin = {}

# A page for people at /, metrics for Prometheus at /metrics, and /livez and /readyz for probes, by HTTP without
# protection. At an address that other hosts can reach it needs metrics_insecure = true, and a network that you trust.
# metrics = \"127.0.0.1:9464\"

# One daemon answers for all (rota status --cluster): whoever can connect here may ask how each of them is.
# cluster_status = true

# What becomes of clients that do not read: \"disconnect\", \"skip\", or \"throttle\": others wait for them a while.
# slow_clients = \"disconnect\"

# Clients of other hosts, by TLS:
# [daemon.tls]
# listen = [\"0.0.0.0:4805\"]
# certificate = \"/etc/rota/host.pem\"
# key = \"/etc/rota/host.key\"
# client_ca = \"/etc/rota/clients-ca.pem\"

# Without rules, whoever can open a socket may do everything:
# [[daemon.access]]
# who = {{ group = \"traders\" }}
# join = [\"orders*\"]
# send = [\"orders*\"]
",
            socket("rota")?,
            socket("admin")?
        ),
    );
    Ok(())
}
