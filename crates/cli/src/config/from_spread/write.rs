//! Writes a `spread.conf` as a configuration of Rota.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::read::{Daemon, Segment, SpreadConf};

/// Options that Rota has no use for, or has by itself, and what to do instead, if anything.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "DangerousMonitor",
        "`rota status`, `rota top` and `rota reload` go through the admin socket, which only its owner can open",
    ),
    (
        "EventLogFile",
        "the log goes to standard error: systemd keeps it",
    ),
    (
        "MaxSessionMessages",
        "`client_queue_bytes` in [daemon] bounds what waits for a client, in bytes",
    ),
    (
        "RequiredAuthMethods",
        "see docs/operations/security.md: rules in [[daemon.access]], and TLS",
    ),
    (
        "AllowedAuthMethods",
        "see docs/operations/security.md: rules in [[daemon.access]], and TLS",
    ),
    (
        "AccessControlPolicy",
        "see docs/operations/security.md: rules in [[daemon.access]]",
    ),
    (
        "DaemonUser",
        "the unit file of systemd says who runs the daemon",
    ),
    (
        "RuntimeDir",
        "the unit file of systemd says where the daemon keeps its sockets",
    ),
    ("TokenTimeout", "time-outs come in families: `timing`"),
    (
        "LookupTimeout",
        "separate rings look for each other ten times a second",
    ),
];

/// The configuration, and remarks about what did not come along.
pub(super) fn write(conf: &SpreadConf) -> Result<(String, Vec<String>), String> {
    let mut remarks = remarks(conf);
    let is_wide = is_on(conf, "WideAreaNetwork").unwrap_or(conf.segments.len() > 1);
    let is_accelerated = is_on(conf, "AcceleratedRing").unwrap_or(!is_wide);
    let port = conf.segments[0].port;
    let mut text = String::new();
    let mut line = |text_of: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{text_of}");
    };
    line(format!("cluster = {}", cluster(conf)));
    let engine = if is_accelerated {
        "accelerated-ring"
    } else {
        "totem-ring"
    };
    line(format!("engine = \"{engine}\""));
    line("# The same key on all hosts: rota key new cluster.key".to_owned());
    line("key_file = \"/etc/rota/cluster.key\"".to_owned());
    line("state_dir = \"/var/lib/rota\"".to_owned());
    if is_wide {
        line("timing = \"relaxed\"".to_owned());
    }
    line(format!(
        "transport = {}",
        transport(conf, port, &mut remarks)
    ));
    for (option, setting) in [
        ("Window", "global_window"),
        ("PersonalWindow", "personal_window"),
        ("AcceleratedWindow", "accelerated_window"),
    ] {
        if let Some(value) = conf.option(option) {
            let value: u32 = value
                .parse()
                .map_err(|_| format!("{option} = {value} is no number"))?;
            if setting != "accelerated_window" || is_accelerated {
                line(format!("{setting} = {value}"));
            }
        }
    }
    for (id, (segment, daemon)) in (1..).zip(daemons(conf)) {
        line(node(id, segment, daemon)?);
    }
    line("\n[daemon]\nsocket = \"/run/rota/socket\"\nadmin = \"/run/rota/admin\"".to_owned());
    line("\n# Spread's clients go on as they are: by the socket on the same host, by TCP from elsewhere.".to_owned());
    line(format!(
        "[daemon.spread]\nsocket = \"/tmp/{port}\"\ntcp = [\"127.0.0.1:{port}\"]"
    ));
    line(format!(
        "# For clients of other hosts, name their networks:\n# tcp = [\"0.0.0.0:{port}\"]\n# allow = [\"10.0.0.0/8\"]"
    ));
    Ok((text, remarks))
}

fn daemons(conf: &SpreadConf) -> impl Iterator<Item = (&Segment, &Daemon)> {
    let segments = conf.segments.iter();
    segments.flat_map(|segment| segment.daemons.iter().map(move |daemon| (segment, daemon)))
}

fn node(id: u32, segment: &Segment, daemon: &Daemon) -> Result<String, String> {
    let token = segment.port.checked_add(1);
    let token = token.ok_or_else(|| format!("port {} has no port above it", segment.port))?;
    let address = daemon
        .address
        .map_or_else(|| daemon.name.clone(), |ip| ip.to_string());
    let name: String = daemon.name.chars().take(19).collect();
    let mut text = format!("\n[[node]]\nid = {id}\n");
    if daemon.name.parse::<IpAddr>().is_err() {
        let _ = writeln!(text, "name = {name:?}");
    }
    let _ = write!(
        text,
        "address = {address:?}\ndata_port = {}\ntoken_port = {token}",
        segment.port
    );
    Ok(text)
}

/// One segment with a multicast address stays one; a broadcast address becomes a group, and several segments take unicast.
fn transport(conf: &SpreadConf, port: u16, remarks: &mut Vec<String>) -> String {
    let group = conf.segments[0].address.parse::<IpAddr>();
    match (conf.segments.len(), group) {
        (1, Ok(group)) if group.is_multicast() => {
            let group = std::net::SocketAddr::new(group, port);
            format!("{{ multicast = \"{group}\" }}")
        }
        (1, Ok(IpAddr::V4(broadcast))) if !broadcast.is_loopback() => {
            let [_, _, high, low] = broadcast.octets();
            remarks.push(format!(
                "{broadcast} is a broadcast address: Rota sends multicasts, to 239.192.{high}.{low}; where switches do not carry \
                 them, set transport = \"unicast\""
            ));
            format!("{{ multicast = \"239.192.{high}.{low}:{port}\" }}")
        }
        (1, _) => "\"unicast\"".to_owned(),
        (segments, _) => {
            remarks.push(format!(
                "Rota has no segments: {segments} of them are one ring here, with a copy for each node (transport = \"unicast\")"
            ));
            "\"unicast\"".to_owned()
        }
    }
}

fn remarks(conf: &SpreadConf) -> Vec<String> {
    let mut remarks = Vec::new();
    for (option, instead) in LEFT_OUT {
        if conf.option(option).is_some() {
            remarks.push(format!("{option} did not come along: {instead}"));
        }
    }
    for daemon in daemons(conf).map(|(_, daemon)| daemon) {
        if daemon.name.chars().count() > 19 {
            remarks.push(format!(
                "{}: names of daemons have at most 19 characters, as with Spread",
                daemon.name
            ));
        }
        if daemon.has_interfaces {
            remarks.push(format!(
                "{}: its interfaces did not come along: nodes use the one that has their address",
                daemon.name
            ));
        }
    }
    remarks
}

fn is_on(conf: &SpreadConf, name: &str) -> Option<bool> {
    let value = conf.option(name)?;
    let yes = ["true", "yes", "on", "1"];
    Some(yes.iter().any(|yes| value.eq_ignore_ascii_case(yes)))
}

/// A number for the cluster, the same for the same daemons: FNV-1a of their names.
fn cluster(conf: &SpreadConf) -> u32 {
    let bytes = daemons(conf).flat_map(|(_, daemon)| daemon.name.bytes().chain([0]));
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash.max(1)
}
