//! `rota status`: how a daemon is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rota_daemon::DaemonConfig;
use serde::Deserialize;

use crate::client::Failure;
use crate::say::print;

/// How long the daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What its clients and groups count that ought to stand still, beside what the ring does.
const QUIET: [&str; 9] = [
    "admins_not_allowed",
    "clients_garbled",
    "clients_not_allowed",
    "clients_silent",
    "clients_slow",
    "clients_turned_away",
    "groups_malformed",
    "groups_refused",
    "requests_not_allowed",
];

/// Options of `rota status`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusOptions {
    /// The daemon's admin socket
    #[arg(long, value_name = "PATH", default_value_os_t = DaemonConfig::default().admin)]
    socket: PathBuf,
    /// Print what the daemon answers, one JSON object, instead of text
    #[arg(long)]
    json: bool,
}

/// What is read of a daemon's answer. Other versions may say less or more.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    node: u16,
    name: String,
    version: String,
    ring: String,
    keys: Option<KeysAnswer>,
    groups_ready: bool,
    groups: usize,
    counters: BTreeMap<String, u64>,
    clients: Vec<ClientAnswer>,
    /// Why there is nothing else.
    refused: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeysAnswer {
    sends: u16,
    takes: Vec<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClientAnswer {
    name: String,
    protocol: String,
    waiting_bytes: usize,
    held_back: bool,
    messages: u64,
}

/// Asks a daemon, and prints what it says.
pub fn main(options: &StatusOptions) -> ExitCode {
    match run(options) {
        Ok(text) => {
            print(&text.trim_end());
            ExitCode::SUCCESS
        }
        Err(failure) => failure.exit(),
    }
}

fn run(options: &StatusOptions) -> Result<String, Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::failed(format!("{}: {what}", options.socket.display()))
    };
    let line = ask(&options.socket).map_err(|error| wrong(&error))?;
    let answer: Answer = serde_json::from_str(&line)
        .map_err(|error| wrong(&format!("not a daemon's answer: {error}")))?;
    if let Some(why) = &answer.refused {
        return Err(wrong(&format!("refused: {why}")));
    }
    Ok(if options.json { line } else { text(&answer) })
}

/// What a daemon answers at its admin socket.
pub fn ask(path: &Path) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    stream.read_to_string(&mut line)?;
    Ok(line)
}

fn text(answer: &Answer) -> String {
    let mut text = format!(
        "daemon   {} (node {}), rota {}\nring     {}\n",
        answer.name, answer.node, answer.version, answer.ring
    );
    let known = if answer.groups_ready {
        "known to all daemons"
    } else {
        "the daemons tell each other; requests of clients wait"
    };
    let mut put = |line: std::fmt::Arguments<'_>| {
        // A string takes everything.
        let _ = text.write_fmt(line);
    };
    match &answer.keys {
        Some(KeysAnswer { sends, takes }) => {
            let takes: Vec<String> = takes.iter().map(ToString::to_string).collect();
            let takes = takes.join(", ");
            put(format_args!("sealed   with key {sends}, takes {takes}\n"));
        }
        None => put(format_args!("sealed   no: checksums only\n")),
    }
    put(format_args!("groups   {}, {known}\n", answer.groups));
    put(format_args!("clients  {}\n", answer.clients.len()));
    for client in &answer.clients {
        let ClientAnswer { name, protocol, .. } = client;
        put(format_args!(
            "         {name} ({protocol}): {} messages",
            client.messages
        ));
        if client.waiting_bytes > 0 {
            put(format_args!(", {} bytes wait", client.waiting_bytes));
        }
        put(format_args!(
            "{}\n",
            if client.held_back { ", held back" } else { "" }
        ));
    }
    let quiet = rota_net::watched_counters().chain(QUIET);
    let grown = quiet.filter_map(|name| answer.counters.get_key_value(name));
    let grown: Vec<_> = grown.filter(|(_, count)| **count > 0).collect();
    if grown.is_empty() {
        put(format_args!(
            "counters that ought to stand still have not moved\n"
        ));
    } else {
        put(format_args!("counters that ought to stand still:\n"));
    }
    for (name, count) in grown {
        put(format_args!("         {name} {count}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_readable() {
        let answer = serde_json::from_str(
            "{\"node\":2,\"name\":\"n2\",\"version\":\"0.1.0\",\"ring\":\"operational: 1, 2\",\
             \"keys\":{\"sends\":2,\"takes\":[1,2]},\"groups_ready\":true,\"groups\":1,\"later\":[],\
             \"counters\":{\"clients_slow\":3,\"clients_silent\":0,\"net_kernel_drops\":1,\"gathers\":9},\
             \"clients\":[{\"name\":\"#a#n2\",\"protocol\":\"native\",\"waiting_bytes\":70,\
             \"held_back\":true,\"messages\":12}]}",
        );
        let expected = "\
daemon   n2 (node 2), rota 0.1.0
ring     operational: 1, 2
sealed   with key 2, takes 1, 2
groups   1, known to all daemons
clients  1
         #a#n2 (native): 12 messages, 70 bytes wait, held back
counters that ought to stand still:
         net_kernel_drops 1
         clients_slow 3
";
        assert_eq!(text(&answer.expect("an answer")), expected);
    }
}
