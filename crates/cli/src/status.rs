//! `rota status`: how a daemon is.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rota_daemon::{ClientStatus, DaemonStatus};
use rota_net::KeysInUse;

use crate::ask::{AskOptions, Place, ask_all};
use crate::client::Failure;
use crate::say::{complain, escaped, print};
use rota_daemon::explain::{Seen, distinct, explain, missing};

/// Counters of its clients and groups that ought to stand still, beside those of the ring.
const QUIET: [&str; 12] = [
    "admins_not_allowed",
    "clients_garbled",
    "clients_not_allowed",
    "clients_silent",
    "clients_slow",
    "clients_turned_away",
    "groups_malformed",
    "groups_refused",
    "reloads_failed",
    "requests_not_allowed",
    "tls_revoked",
    "vote_groups_slow",
];

/// Options of `rota status`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusOptions {
    #[command(flatten)]
    ask: AskOptions,
    /// Print what each daemon answers, one JSON object on a line, instead of text
    #[arg(long)]
    json: bool,
    /// Look twice, and say in words what is wrong and where; of several daemons if there are several
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// How long to look, with --explain, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    interval: u64,
}

/// Asks daemons, and prints what they say.
pub fn main(options: &StatusOptions) -> ExitCode {
    match run(options) {
        Ok(code) => code,
        Err(failure) => failure.exit(),
    }
}

fn run(options: &StatusOptions) -> Result<ExitCode, Failure> {
    let places = options.ask.places()?;
    if options.explain {
        return Ok(say_why(&places, Duration::from_millis(options.interval)));
    }
    let mut failed = None;
    let mut at = 0;
    for answer in ask_all(&places) {
        let (line, status) = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                failed.replace(failure).iter().for_each(complain);
                continue;
            }
        };
        if options.json {
            print(&line);
        } else {
            let gap = if at > 0 { "\n" } else { "" };
            print(&format!("{gap}{}", text(&status).trim_end()));
        }
        at += 1;
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Says what is wrong; the status is 1 if something is, or if a daemon does not answer.
fn say_why(places: &[Place], interval: Duration) -> ExitCode {
    let before = ask_all(places);
    thread::sleep(interval);
    let mut seen = Vec::new();
    let mut silent = false;
    for answers in before.into_iter().zip(ask_all(places)) {
        match answers {
            (Ok((_, before)), Ok((_, after))) => seen.push(Seen { before, after }),
            (Err(failure), _) | (_, Err(failure)) => {
                silent = true;
                complain(&failure);
            }
        }
    }
    let findings = explain(&distinct(seen));
    for finding in &findings {
        print(&escaped(&finding.text));
    }
    let wrong = silent || findings.iter().any(|finding| finding.wrong);
    ExitCode::from(u8::from(wrong))
}

fn text(answer: &DaemonStatus) -> String {
    let mut text = String::new();
    let mut put = |line: std::fmt::Arguments<'_>| {
        // Names and sentences are the daemon's own.
        text.push_str(&escaped(line.to_string()));
        text.push('\n');
    };
    let (name, node, version) = (&answer.name, answer.node, &answer.version);
    put(format_args!(
        "daemon   {name} (node {node}), rota {version}"
    ));
    put(format_args!("ring     {}", answer.ring));
    let known = if answer.excluded {
        "excluded: in no primary view; requests of clients wait"
    } else if answer.groups_ready {
        "known to all daemons"
    } else {
        "the daemons tell each other; requests of clients wait"
    };
    for note in &answer.notes {
        put(format_args!("note     {note}"));
    }
    if let Some(missing) = missing_line(answer) {
        put(format_args!("missing  {missing}"));
    }
    match &answer.keys {
        Some(KeysInUse { sends, takes }) => {
            let takes: Vec<String> = takes.iter().map(ToString::to_string).collect();
            let takes = takes.join(", ");
            put(format_args!("sealed   with key {sends}, takes {takes}"));
        }
        None => put(format_args!("sealed   no: checksums only")),
    }
    if let Some(links) = links(answer) {
        put(format_args!("links    {links}"));
    }
    put(format_args!("groups   {}, {known}", answer.groups));
    put(format_args!("clients  {}", answer.clients.len()));
    for client in &answer.clients {
        put(format_args!("         {}", client_line(client)));
    }
    for hold in &answer.holds {
        let (to, client) = (&hold.to, &hold.client);
        put(format_args!("held     {to}: its senders wait for {client}"));
    }
    let quiet = rota_node::watched_counters().chain(QUIET);
    let grown = quiet.filter_map(|name| answer.counters.get_key_value(name));
    let grown: Vec<_> = grown.filter(|(_, count)| **count > 0).collect();
    if grown.is_empty() {
        put(format_args!(
            "counters that ought to stand still have not moved"
        ));
    } else {
        put(format_args!("counters that ought to stand still:"));
    }
    for (name, count) in grown {
        put(format_args!("         {name} {count}"));
    }
    text
}

/// The nodes in the configuration that are not with this daemon, if there are any.
fn missing_line(answer: &DaemonStatus) -> Option<String> {
    let missing = missing(answer);
    let missing: Vec<String> = missing.iter().map(|node| format!("node {node}")).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// The capacities that FastCast's senders go by, if they go by any.
fn links(answer: &DaemonStatus) -> Option<String> {
    let level = |name: &str| answer.counters.get(name).copied();
    let mbps = |kbps: u64| match kbps {
        0 => "unknown".to_owned(),
        kbps => format!("{:.1} Mbit/s", kbps as f64 / 1e3),
    };
    let own = mbps(level("fast_link_kbps")?);
    let slowest = mbps(level("fast_slowest_link_kbps")?);
    let rate = level("fast_rate_kbps")? as f64 / 1e3;
    Some(format!(
        "own {own}, slowest {slowest}; may send {rate:.1} Mbit/s"
    ))
}

/// A client, and what is wrong with it.
fn client_line(client: &ClientStatus) -> String {
    let (name, protocol) = (&client.name, &client.protocol);
    let mut line = format!("{name} ({protocol}): {} messages", client.messages);
    if client.waiting_bytes > 0 {
        line += &format!(", {} bytes wait", client.waiting_bytes);
    }
    if client.unread_ms > 0 {
        line += &format!(", not read for {} ms", client.unread_ms);
    }
    if client.held_back {
        line += ", held back";
    }
    if let Some(slow) = &client.held_for {
        line += &format!(", waits for {slow}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_senders_go_by_is_said_where_they_do() {
        let mut answer = DaemonStatus::default();
        assert_eq!(links(&answer), None);
        let mut level = |name: &'static str, kbps| answer.counters.insert(name.into(), kbps);
        level("fast_link_kbps", 0);
        level("fast_slowest_link_kbps", 250_040);
        level("fast_rate_kbps", 83_300);
        let expected = "links    own unknown, slowest 250.0 Mbit/s; may send 83.3 Mbit/s\n";
        assert!(text(&answer).contains(expected), "{}", text(&answer));
    }

    #[test]
    fn who_is_missing_is_named() {
        let mut answer = DaemonStatus {
            nodes: vec![1, 2, 3, 4],
            ring: "operational: 1, 3 (configuration 2, coordinator 1)".to_owned(),
            ..DaemonStatus::default()
        };
        assert!(text(&answer).contains("missing  node 2, node 4\n"));
        "operational: 1, 2, 3, 4".clone_into(&mut answer.ring);
        assert!(!text(&answer).contains("missing"));
        // A node that is on no ring says so, and what it lacks.
        "no majority: nothing is ordered".clone_into(&mut answer.ring);
        assert!(!text(&answer).contains("missing"));
        "in no view; operational: 1, 2".clone_into(&mut answer.ring);
        assert!(text(&answer).contains("missing  node 3, node 4\n"));
    }

    #[test]
    fn a_status_is_readable() {
        let answer = serde_json::from_str(
            "{\"node\":2,\"name\":\"n2\",\"version\":\"0.1.0\",\"ring\":\"operational: 1, 2\",\
             \"notes\":[\"node 1 differs\"],\"keys\":{\"sends\":2,\"takes\":[1,2]},\"groups_ready\":true,\"groups\":1,\"later\":[],\
             \"counters\":{\"clients_slow\":3,\"clients_silent\":0,\"net_kernel_drops\":1,\"gathers\":9},\
             \"clients\":[{\"name\":\"#a#n2\",\"protocol\":\"native\",\"waiting_bytes\":70,\
             \"unread_ms\":1500,\"held_back\":true,\"messages\":12},\
             {\"name\":\"#b#n2\",\"protocol\":\"spread\",\"held_for\":\"#c#n1\"}],\
             \"holds\":[{\"to\":\"g\",\"client\":\"#c#n1\"}]}",
        );
        let expected = "\
daemon   n2 (node 2), rota 0.1.0
ring     operational: 1, 2
note     node 1 differs
sealed   with key 2, takes 1, 2
groups   1, known to all daemons
clients  2
         #a#n2 (native): 12 messages, 70 bytes wait, not read for 1500 ms, held back
         #b#n2 (spread): 0 messages, waits for #c#n1
held     g: its senders wait for #c#n1
counters that ought to stand still:
         net_kernel_drops 1
         clients_slow 3
";
        assert_eq!(text(&answer.expect("an answer")), expected);
    }

    #[test]
    fn what_a_daemon_says_neither_ends_a_line_nor_tells_a_terminal_anything() {
        let evil = "a\u{1b}[2J\u{9b}31m\r\nb".to_owned();
        let answer = DaemonStatus {
            name: evil.clone(),
            version: evil.clone().into(),
            ring: evil.clone(),
            notes: vec![evil.clone()],
            clients: vec![ClientStatus {
                name: evil.clone(),
                protocol: evil.clone().into(),
                held_for: Some(evil.clone()),
                ..ClientStatus::default()
            }],
            holds: vec![rota_daemon::HoldStatus {
                to: evil.clone(),
                client: evil,
            }],
            ..DaemonStatus::default()
        };
        let text = text(&answer);
        let is_plain = |line: &str| !line.contains(char::is_control) && !line.starts_with('b');
        assert!(text.split('\n').all(is_plain), "{text:?}");
        // Four in the lines of the daemon, three of its client, two of what is held.
        let said = text.matches(r"a\x1b[2J\xc2\x9b31m\r\nb").count();
        assert_eq!(said, 9, "{text}");
    }
}
