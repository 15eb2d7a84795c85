//! The files that a running daemon reads again when it is told to, by SIGHUP or `rota reload`: the keys of its cluster,
//! and of its settings those that can change while it runs.
//!
//! The daemon reads in a thread of its own, since a disk may take its time and the ring does not wait. The keys are one
//! part and the settings, with the rules and the files that they name, another: a part that cannot be used stays as it
//! is, and does not keep the other from being taken. Settings that need a restart are named, and the rest is done.

mod command;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_daemon::{CertificateFiles, Control, DaemonConfig, NewSettings};
use rota_net::{KeyRing, Keys};
use rota_node::NodeConfig;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use toml::Value;

use crate::log::{Levels, LevelsHandle};
use crate::notify;
pub use command::{ReloadOptions, main};

/// The rules, which are named together.
const RULES: &str = "daemon.access";

/// The section that cannot come or go while a daemon runs.
const TLS: &str = "daemon.tls.";

/// Settings that count as soon as they are read again, beside the rules. `key_file` is looked at by itself.
const AT_ONCE: [&str; 13] = [
    "daemon.tls.certificate",
    "daemon.tls.key",
    "daemon.tls.client_ca",
    "daemon.tls.client_crl",
    "daemon.tls.anonymous",
    "daemon.clients",
    "daemon.client_memory_bytes",
    "daemon.client_queue_bytes",
    "daemon.queues_bytes",
    "daemon.handshake_ms",
    "daemon.handshakes",
    "daemon.log",
    "daemon.spread.allow",
];

/// The name of the setting for the file of the keys.
const KEY_FILE: &str = "key_file";

/// The time that a daemon may take to reload.
const PATIENCE: Duration = Duration::from_secs(30);

/// The configuration of a daemon in force, and the way to change it.
pub struct Reload {
    path: PathBuf,
    me: NodeId,
    /// The settings in force, each by its whole name.
    in_force: BTreeMap<String, Value>,
    daemon: DaemonConfig,
    certificates: CertificateFiles,
    keys: Option<Keys>,
    /// The file that they were read from.
    key_file: Option<PathBuf>,
    levels: LevelsHandle,
    control: Control,
}

/// The outcome of one part of a reload.
#[derive(Debug, Default)]
struct Taken {
    /// The changes that were taken, in words.
    said: Vec<String>,
    /// Something is otherwise than before.
    changed: bool,
}

type Part = Result<Taken, String>;

impl Reload {
    /// Of a daemon that was started with this file.
    pub fn new(
        (path, text): (PathBuf, &str),
        (me, daemon): (NodeId, DaemonConfig),
        (keys, levels): (Option<Keys>, LevelsHandle),
        control: Control,
    ) -> Self {
        let in_force = settings(text);
        let key_file = in_force.get(KEY_FILE).and_then(Value::as_str);
        Self {
            path,
            me,
            key_file: key_file.map(PathBuf::from),
            in_force,
            certificates: CertificateFiles::of(&daemon, me),
            daemon,
            keys,
            levels,
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
                        Err(what) => tracing::error!("{what}"),
                    }
                    self.control.reloaded(outcome);
                    notify::ready();
                }
            })?;
        Ok(())
    }

    /// The changes, and the settings that need a restart; or the reasons why a part could not be taken.
    fn read_again(&mut self) -> Result<String, String> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| self.wrong(&error));
        let config = text.and_then(|text| {
            let config = NodeConfig::from_toml(&text).map_err(|error| self.wrong(&error))?;
            Ok((text, config))
        });
        // The keys are where they were, if the file cannot be used.
        let key_file = match &config {
            Ok((_, config)) => config.key_file.clone(),
            Err(_) => self.key_file.clone(),
        };
        let settings = config.and_then(|(text, _)| self.take_settings(&text));
        let keys = self.take_keys(key_file);
        together(settings, keys)
    }

    fn wrong(&self, error: &dyn Display) -> String {
        format!("{}: {error}", self.path.display())
    }

    /// Takes all settings but the keys.
    fn take_settings(&mut self, text: &str) -> Part {
        let wrong = |error: &dyn Display| self.wrong(error);
        let daemon = DaemonConfig::from_toml(text).map_err(|error| wrong(&error))?;
        let new = settings(text);
        let (mut changed, waiting) = sort(&self.in_force, &new);
        // The file of the keys is the other part's.
        changed.retain(|name| name != KEY_FILE);
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
        let levels: Levels = daemon.log.parse().map_err(|error: String| wrong(&error))?;
        // From here on nothing fails.
        self.levels.set(levels);
        let mut taken = Taken::default();
        if !self.control.reconfigure(settings, PATIENCE) {
            let late = "not in force yet, as the daemon's loop does not turn";
            taken.said.push(late.to_owned());
        }
        self.note(&changed, &new, daemon);
        if std::mem::replace(&mut self.certificates, certificates) != self.certificates {
            taken.said.push("certificates: read again".to_owned());
        }
        if !changed.is_empty() {
            taken.said.push(format!("changed: {}", named(&changed)));
        }
        taken.changed = !taken.said.is_empty();
        if !waiting.is_empty() {
            let waiting = named(&waiting);
            tracing::warn!("needs a restart: {waiting}");
            let waits = format!("needs a restart, and is as it was: {waiting}");
            taken.said.push(waits);
        }
        Ok(taken)
    }

    /// Takes the keys of a file.
    fn take_keys(&mut self, file: Option<PathBuf>) -> Part {
        let (keys, file) = match (&self.keys, file) {
            (Some(keys), Some(file)) => (keys, file),
            (None, None) => return Ok(Taken::default()),
            _ => {
                let what = "whether datagrams are sealed cannot change while a daemon runs";
                return Err(what.to_owned());
            }
        };
        let wrong = |error| format!("{}: {error}", file.display());
        let ring = KeyRing::load(&file).map_err(wrong)?;
        let takes: Vec<u16> = ring.ids().map(|id| id.get()).collect();
        let mut said = vec![format!("keys: sends {}, takes {takes:?}", ring.sending())];
        let moved = self.key_file.replace(file.clone()).as_ref() != Some(&file);
        if moved {
            said.push(format!("changed: {KEY_FILE}"));
        }
        let changed = keys.set(ring) | moved;
        Ok(Taken { said, changed })
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

/// The words on both parts. An error names what was taken all the same.
fn together(settings: Part, keys: Part) -> Result<String, String> {
    let (mut said, mut failed, mut changed) = (Vec::new(), Vec::new(), false);
    for part in [settings, keys] {
        match part {
            Ok(taken) => {
                changed |= taken.changed;
                said.extend(taken.said);
            }
            Err(what) => failed.push(what),
        }
    }
    let failed = failed.join("; ");
    match (failed.is_empty(), changed) {
        (true, _) if said.is_empty() => Ok("nothing had changed".to_owned()),
        (true, _) => Ok(said.join("; ")),
        (false, true) => Err(format!("taken: {}; not taken: {failed}", said.join("; "))),
        (false, false) => Err(format!("nothing was changed: {failed}")),
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

/// The settings that have changed: those that count at once, and those that need a restart. Keys that are read from
/// another file count at once.
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
        let is_listed = name == KEY_FILE || AT_ONCE.contains(&name.as_str());
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
    fn what_was_taken_and_what_not_is_told_apart() {
        let said = |text: &str| vec![text.to_owned()];
        let new = |text: &str| {
            Ok(Taken {
                said: said(text),
                changed: true,
            })
        };
        let same = |text: &str| {
            Ok(Taken {
                said: said(text),
                changed: false,
            })
        };
        let bad = |text: &str| Err(text.to_owned());
        let nothing = || Ok(Taken::default());
        for (settings, keys, expected) in [
            (nothing(), nothing(), Ok("nothing had changed")),
            (nothing(), same("keys"), Ok("keys")),
            (new("rules"), new("keys"), Ok("rules; keys")),
            (
                bad("no file"),
                same("keys"),
                Err("nothing was changed: no file"),
            ),
            (
                bad("no file"),
                new("keys"),
                Err("taken: keys; not taken: no file"),
            ),
            (
                new("rules"),
                bad("no key"),
                Err("taken: rules; not taken: no key"),
            ),
            (nothing(), bad("no key"), Err("nothing was changed: no key")),
            (
                bad("no file"),
                bad("no key"),
                Err("nothing was changed: no file; no key"),
            ),
        ] {
            let found = together(settings, keys);
            assert_eq!(found.as_deref().map_err(|text| &**text), expected);
        }
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
