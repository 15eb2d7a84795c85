//! Leaves nothing behind: not on Ctrl-C, not on SIGTERM, and not after a crash.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, Once};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Names of namespaces start with this and the pid of their maker.
pub(super) const PREFIX: &str = "rota-";

/// Namespaces of this process that exist now.
static OURS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn with_ours<T>(work: impl FnOnce(&mut Vec<String>) -> T) -> T {
    work(
        &mut OURS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    )
}

/// Remembers a namespace, before it is created.
pub(super) fn register(name: &str) {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch_signals);
    with_ours(|ours| ours.push(name.to_owned()));
}

/// Removes a namespace and forgets it.
pub(super) fn remove(name: &str) {
    delete(name);
    with_ours(|ours| ours.retain(|other| other != name));
}

fn delete(name: &str) {
    // One that is gone already is as good as removed.
    let _ = Command::new("ip")
        .args(["netns", "delete", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

fn watch_signals() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // The lock is kept: nobody may create another one any more.
            with_ours(|ours| {
                ours.iter().for_each(|name| delete(name));
                std::process::exit(128 + signal);
            });
        }
    });
}

/// Removes the namespaces of makers that are no longer alive.
pub(super) fn remove_stale() {
    let Ok(entries) = fs::read_dir("/run/netns") else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if maker(&name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            delete(&name);
        }
    }
}

/// The pid in a namespace's name, if it is one of ours.
fn maker(name: &str) -> Option<u32> {
    let (pid, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let known = rest == "sw" || rest.parse::<u32>().is_ok();
    // A process may have several test beds.
    let pid = pid.split_once('.').map_or(pid, |(pid, _)| pid);
    known.then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::maker;

    #[test]
    fn only_our_own_names_have_a_maker() {
        assert_eq!(maker("rota-17-3"), Some(17));
        assert_eq!(maker("rota-17-sw"), Some(17));
        assert_eq!(maker("rota-17.2-sw"), Some(17));
        for foreign in ["rota-17", "rota-x-1", "rota-17-db", "other-17-1"] {
            assert_eq!(maker(foreign), None, "{foreign}");
        }
    }
}
