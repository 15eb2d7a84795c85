//! What a running daemon reads again when it is told to, by SIGHUP or `rota reload`: the keys of its cluster,
//! and of its settings those that can change while it runs.
//!
//! It reads in a thread of its own, since a disk may take its time and the ring does not wait. What
//! cannot be used changes nothing. What needs a restart is named, and the rest is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_daemon::{CertificateFiles, Control, DaemonConfig, NewSettings};
use rota_net::{KeyRing, Keys, NodeConfig};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use toml::Value;

use crate::ask::Place;
use crate::client::Failure;
use crate::notify;
use crate::say::print;

/// The rules, which are named together.
const RULES: &str = "daemon.access";

/// The section that cannot come or go while a daemon runs.
const TLS: &str = "daemon.tls.";

/// Settings that count as soon as they are read again, beside the rules. `key_file` is looked at by itself.
const AT_ONCE: [&str; 11] = [
    "daemon.tls.certificate",
    "daemon.tls.key",
    "daemon.tls.client_ca",
    "daemon.tls.client_crl",
    "daemon.tls.anonymous",
    "daemon.clients",
    "daemon.client_memory_bytes",
    "daemon.client_queue_bytes",
    "daemon.handshake_ms",
    "daemon.handshakes",
    "daemon.spread.allow",
];

/// How long a daemon may take to reload.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a daemon was started with.
pub struct Reload {
    path: PathBuf,
    me: NodeId,
    /// The settings in force, each by its whole name.
    in_force: BTreeMap<String, Value>,
    daemon: DaemonConfig,
    certificates: CertificateFiles,
    keys: Option<Keys>,
    control: Control,
}

impl Reload {
    /// Of a daemon that was started with this file.
    pub fn new(
        (path, text): (PathBuf, &str),
        (me, daemon): (NodeId, DaemonConfig),
        keys: Option<Keys>,
        control: Control,
    ) -> Self {
        Self {
            path,
            me,
            in_force: settings(text),
            certificates: CertificateFiles::of(&daemon, me),
            daemon,
            keys,
            control,
        }
    }

    /// Reads again whenever the process is told to, as long as it lives.
    pub fn on_signal(mut self) -> io::Result<()> {
        let mut signals = Signals::new([SIGHUP])?;
        thread::Builder::new()
            .name("rota-reload".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    notify::reloading();
                    let outcome = self.read_again();
                    match &outcome {
                        Ok(text) => tracing::info!("reloaded: {text}"),
                        Err(what) => tracing::error!("nothing was changed: {what}"),
                    }
                    self.control.reloaded(outcome);
                    notify::ready();
                }
            })?;
        Ok(())
    }

    /// What was changed, and what needs a restart.
    fn read_again(&mut self) -> Result<String, String> {
        let wrong = |error: &dyn Display| format!("{}: {error}", self.path.display());
        let text = std::fs::read_to_string(&self.path).map_err(|error| wrong(&error))?;
        let config = NodeConfig::from_toml(&text).map_err(|error| wrong(&error))?;
        let daemon = DaemonConfig::from_toml(&text).map_err(|error| wrong(&error))?;
        let keys = self.read_keys(&config)?;
        let new = settings(&text);
        let (changed, waiting) = sort(&self.in_force, &new);
        let daemon = self.daemon.changed_to(&daemon).map_err(|error| {
            let what = wrong(&error);
            if waiting.is_empty() {
                what
            } else {
                format!("{what}; needs a restart: {}", named(&waiting))
            }
        })?;
        let certificates = CertificateFiles::of(&daemon, self.me);
        let settings = NewSettings::read(daemon.clone(), self.me).map_err(|error| wrong(&error))?;
        // From here on nothing fails.
        let mut said = Vec::new();
        if !self.control.reconfigure(settings, PATIENCE) {
            said.push("not in force yet, as the daemon's loop does not turn".to_owned());
        }
        self.note(&changed, &new, daemon);
        if std::mem::replace(&mut self.certificates, certificates) != self.certificates {
            said.push("certificates: read again".to_owned());
        }
        if let (Some(keys), Some(ring)) = (&self.keys, keys) {
            let takes: Vec<u16> = ring.ids().map(|id| id.get()).collect();
            said.push(format!("keys: sends {}, takes {takes:?}", ring.sending()));
            keys.set(ring);
        }
        if !changed.is_empty() {
            said.push(format!("changed: {}", named(&changed)));
        }
        if !waiting.is_empty() {
            let waiting = named(&waiting);
            tracing::warn!("needs a restart: {waiting}");
            said.push(format!("needs a restart, and is as it was: {waiting}"));
        }
        if said.is_empty() {
            said.push("nothing had changed".to_owned());
        }
        Ok(said.join("; "))
    }

    fn read_keys(&self, config: &NodeConfig) -> Result<Option<KeyRing>, String> {
        match (&self.keys, &config.key_file) {
            (Some(_), Some(file)) => KeyRing::load(file)
                .map(Some)
                .map_err(|error| format!("{}: {error}", file.display())),
            (None, None) => Ok(None),
            _ => Err("whether datagrams are sealed cannot change while a daemon runs".to_owned()),
        }
    }

    /// These settings are in force now.
    fn note(&mut self, changed: &[String], new: &BTreeMap<String, Value>, daemon: DaemonConfig) {
        for name in changed {
            match new.get(name) {
                Some(value) => self.in_force.insert(name.clone(), value.clone()),
                None => self.in_force.remove(name),
            };
        }
        self.daemon = daemon;
    }
}

/// Settings for people: the rules are one.
fn named(settings: &[String]) -> String {
    let name = |setting: &String| {
        let name = if is_rule(setting) { RULES } else { setting };
        name.to_owned()
    };
    let mut names: Vec<String> = settings.iter().map(name).collect();
    names.dedup();
    names.join(", ")
}

/// Which settings have changed: those that count at once, and those that need a restart. Keys that are read
/// from another file count at once.
fn sort(
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
) -> (Vec<String>, Vec<String>) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name));
    let has_tls = |all: &BTreeMap<String, Value>| all.keys().any(|name| name.starts_with(TLS));
    let tls_stays = has_tls(old) == has_tls(new);
    let at_once = |name: &String| {
        let is_listed = name == "key_file" || AT_ONCE.contains(&name.as_str());
        is_listed && (tls_stays || !name.starts_with(TLS)) || is_rule(name)
    };
    changed.cloned().partition(at_once)
}

fn is_rule(name: &str) -> bool {
    let rest = name.strip_prefix(RULES);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All settings of a file, each by its whole name: `daemon.clients`, `node.1.address`.
fn settings(text: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        flatten("", &Value::Table(table), &mut all);
    }
    all
}

fn flatten(name: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    let below = |key: &dyn Display| {
        if name.is_empty() {
            key.to_string()
        } else {
            format!("{name}.{key}")
        }
    };
    match value {
        Value::Table(table) => table
            .iter()
            .for_each(|(key, value)| flatten(&below(key), value, into)),
        Value::Array(values) if values.iter().any(Value::is_table) => {
            for (at, value) in values.iter().enumerate() {
                let id = value.get("id").and_then(Value::as_integer);
                let key = id.map_or_else(|| at.to_string(), |id| id.to_string());
                flatten(&below(&key), value, into);
            }
        }
        _ => {
            into.insert(name.to_owned(), value.clone());
        }
    }
}

/// Options of `rota reload`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReloadOptions {
    /// The daemon's admin socket
    #[arg(long, visible_alias = "admin", value_name = "PATH", default_value_os_t = DaemonConfig::default().admin)]
    socket: PathBuf,
}

/// Tells a daemon to read its configuration again, and says what came of it.
pub fn main(options: &ReloadOptions) -> ExitCode {
    match reload(&options.socket) {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(failure) => failure.exit(),
    }
}

fn reload(socket: &std::path::Path) -> Result<String, Failure> {
    let place = Place::Unix(socket.to_owned());
    let (_, before) = place.ask()?;
    let count = before.reload.map_or(0, |reload| reload.count);
    let pid = listener_of(socket)?;
    kill_process(pid, Signal::HUP)
        .map_err(|error| Failure::failed(format!("process {}: {error}", pid.as_raw_nonzero())))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let (_, now) = place.ask()?;
        match now.reload {
            Some(reload) if reload.count > count && reload.done => return Ok(reload.text),
            Some(reload) if reload.count > count => {
                return Err(Failure::failed(format!(
                    "nothing was changed: {}",
                    reload.text
                )));
            }
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    Err(Failure::failed("the daemon has not reloaded"))
}

/// The process that listens at a socket, as the kernel knows it: what a daemon says of itself is its number in its own
/// PID namespace, which here may be somebody else's.
fn listener_of(socket: &std::path::Path) -> Result<Pid, Failure> {
    let wrong = |error: io::Error| Failure::failed(format!("{}: {error}", socket.display()));
    let stream = UnixStream::connect(socket).map_err(wrong)?;
    let pid = rota_net::peer_process(stream.as_fd()).map_err(wrong)?;
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.ok_or_else(|| {
        Failure::failed(
            "the daemon runs in a PID namespace that cannot be seen from here, as in a container: run `rota reload` there, or \
             send it SIGHUP",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_at_once_and_what_needs_a_restart_is_told_apart_by_name() {
        let old = "cluster = 7\ntiming = \"default\"\nkey_file = \"a\"\n[[node]]\nid = 3\ndata_port = 1\n\
                   [daemon]\nclients = 5\n[daemon.spread]\nallow = [\"10.0.0.0/8\"]\n";
        let same = sort(&settings(old), &settings(&format!("# a remark\n{old}")));
        assert_eq!(same, (vec![], vec![]));
        let new = "cluster = 7\ntiming = \"relaxed\"\nkey_file = \"b\"\n[[node]]\nid = 3\ndata_port = 2\n\
                   [daemon]\nclients = 6\nmetrics = \"127.0.0.1:1\"\n[daemon.spread]\n";
        let (changed, waiting) = sort(&settings(old), &settings(new));
        assert_eq!(
            changed,
            ["daemon.clients", "daemon.spread.allow", "key_file"]
        );
        assert_eq!(waiting, ["daemon.metrics", "node.3.data_port", "timing"]);
    }

    #[test]
    fn rules_are_one_setting_and_tls_does_not_come_or_go() {
        let rules = "[[daemon.access]]\nwho = { uid = 1 }\nsend = [\"a\"]\n";
        let old = format!("[daemon.tls]\nlisten = [\"a\"]\nkey = \"k\"\n{rules}");
        let new = old.replace("uid = 1", "uid = 2").replace("\"k\"", "\"l\"") + rules;
        let (changed, waiting) = sort(&settings(&old), &settings(&new));
        assert_eq!(named(&changed), "daemon.access, daemon.tls.key");
        assert_eq!(waiting, [""; 0]);
        let (changed, waiting) = sort(&settings(rules), &settings(&new));
        assert_eq!(named(&changed), "daemon.access");
        assert_eq!(waiting, ["daemon.tls.key", "daemon.tls.listen"]);
    }
}
