//! The rings below a service, as each of its processes sees them; and the orders that only an operator gives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rota_front::rings::REFUSED;
use rota_resp::Reply;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::who::Who;
use crate::say::{complain, escaped, escaped_lines, print, print_json};

/// Rings that are busy answer within a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before it gives an order, a process asks others whether they are there, each for a few seconds at most.
const ORDER_PATIENCE: Duration = Duration::from_secs(15);
/// The counters that are shown to people: what they are called there, and their names.
const COUNTERS: [(&str, &str); 7] = [
    ("learnt", "uring_instances_learnt"),
    ("forgotten", "uring_instances_forgotten"),
    ("skipped", "ring_skipped"),
    ("needs", "ring_needs"),
    ("needs refused", "ring_needs_refused"),
    ("bytes waiting", "merge_waiting_bytes"),
    ("mean wait us", "merge_wait_us"),
];

/// Options of a command about the rings below a service.
#[derive(Clone, Debug, clap::Args)]
pub struct RingsOptions {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The ring that is shown alone, or that --abandon or --replace is about
    #[arg(long, value_name = "RING")]
    ring: Option<u16>,
    /// Let go what the ring keeps for this partition, whose replicas do not come back: it has to begin again from a backup
    #[arg(long, value_name = "PARTITION", requires = "ring", group = "order")]
    abandon: Option<u32>,
    /// Say anew which replicas this partition has, with --replicas: the ring keeps nothing for others
    #[arg(
        long,
        value_name = "PARTITION",
        requires = "ring",
        requires = "replicas",
        group = "order"
    )]
    replace: Option<u32>,
    /// The nodes of all replicas of the partition
    #[arg(
        long,
        value_name = "NODE,...",
        value_delimiter = ',',
        requires = "replace"
    )]
    replicas: Vec<u16>,
    /// Nodes that are gone for good though nobody can know: their hosts do not answer, or the file does not name them
    #[arg(
        long,
        value_name = "NODE,...",
        value_delimiter = ',',
        requires = "order"
    )]
    absent: Vec<u16>,
    #[command(flatten)]
    who: Who,
    /// Print one JSON object on the last line, with everything that the rings count
    #[arg(long)]
    json: bool,
}

/// A node of a service, and the address at which its clients connect.
pub type Process = (u16, Option<SocketAddr>);

/// The words of a process on its rings: sections with fields.
type Sections = Vec<(String, BTreeMap<String, String>)>;

/// The rings as a process sees them.
#[derive(Clone, Debug, Serialize)]
struct Seen {
    node: u16,
    /// The reason why nothing is known.
    failed: Option<String>,
    #[serde(serialize_with = "as_object")]
    sections: Sections,
}

/// An object of sections, each an object of its fields: numbers as numbers, and `null` for a field that has no value.
fn as_object<S: Serializer>(sections: &Sections, serializer: S) -> Result<S::Ok, S::Error> {
    let value = |text: &str| match text.parse::<u64>() {
        Ok(number) => Value::from(number),
        Err(_) if text.is_empty() => Value::Null,
        Err(_) => Value::from(text),
    };
    let object = |fields: &BTreeMap<String, String>| -> Value {
        let fields = fields.iter();
        Value::Object(
            fields
                .map(|(name, text)| (name.clone(), value(text)))
                .collect(),
        )
    };
    serializer.collect_map(sections.iter().map(|(name, fields)| (name, object(fields))))
}

/// Shows the rings, or has something ordered in one of them.
pub fn main(options: &RingsOptions, processes: Result<Vec<Process>, String>) -> ExitCode {
    let processes = match processes {
        Ok(processes) => processes,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    match order(options) {
        Some(words) => give(&words, &processes, &options.who),
        None => show(options, &processes),
    }
}

/// The trouble of a process that could not read so many messages.
pub fn unreadable(count: &str) -> Option<String> {
    let is_some = !matches!(count, "" | "0");
    is_some
        .then(|| format!("it could not read {count} messages: another process has another version"))
}

/// The order that is asked for, as words.
fn order(options: &RingsOptions) -> Option<Vec<String>> {
    let ring = options.ring?.to_string();
    let nodes = |nodes: &[u16]| {
        let nodes: Vec<String> = nodes.iter().map(u16::to_string).collect();
        nodes.join(",")
    };
    let mut words = vec!["RINGS".to_owned()];
    words.extend(match (options.abandon, options.replace) {
        (Some(partition), _) => vec!["ABANDON".to_owned(), ring, partition.to_string()],
        (None, Some(partition)) => {
            let replicas = nodes(&options.replicas);
            vec!["REPLACE".to_owned(), ring, partition.to_string(), replicas]
        }
        (None, None) => return None,
    });
    if !options.absent.is_empty() {
        words.extend(["ABSENT".to_owned(), nodes(&options.absent)]);
    }
    Some(words)
}

/// The first process that is there, and on the ring, has it ordered, or says that it would do harm.
fn give(words: &[String], processes: &[Process], who: &Who) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut last = "no process has a port for clients".to_owned();
    for (node, address) in processes {
        let Some(address) = address else { continue };
        match who.ask(*address, ORDER_PATIENCE, &words) {
            Ok(_) => {
                print(&format!("process {node} has it ordered"));
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                last = format!("process {node}: {error}");
                // Another process may know less, and do what this one must not.
                if error.starts_with(REFUSED) {
                    break;
                }
            }
        }
    }
    complain(&escaped(&last));
    ExitCode::FAILURE
}

fn show(options: &RingsOptions, processes: &[Process]) -> ExitCode {
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let ask = |(node, address): &Process| {
            let (node, address, who) = (*node, *address, &options.who);
            scope.spawn(move || look(node, address, who))
        };
        let asked: Vec<_> = processes.iter().map(ask).collect();
        asked.into_iter().flat_map(|asked| asked.join()).collect()
    });
    let texts = seen.iter().map(|seen| text(seen, options.ring));
    print(&escaped_lines(texts.collect::<String>().trim_end()));
    if options.json {
        print_json(&json!({ "processes": seen }));
    }
    match seen.iter().all(|seen| seen.failed.is_none()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn look(node: u16, address: Option<SocketAddr>, who: &Who) -> Seen {
    let nowhere = || "it has no port for clients".to_owned();
    let told = address.ok_or_else(nowhere);
    let told = told.and_then(|address| who.ask(address, PATIENCE, &["RINGS"]));
    let (failed, sections) = match told {
        Ok(Reply::Bulk(text)) => (None, sections(&String::from_utf8_lossy(&text))),
        Ok(Reply::Text(text)) => (None, sections(&text)),
        Ok(_) => (Some("it says nothing of its rings".to_owned()), Vec::new()),
        Err(error) => (Some(error), Vec::new()),
    };
    Seen {
        node,
        failed,
        sections,
    }
}

fn sections(text: &str) -> Sections {
    let mut sections = Sections::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("# ") {
            sections.push((name.to_owned(), BTreeMap::new()));
        } else if let (Some((name, value)), Some((_, fields))) =
            (line.split_once(':'), sections.last_mut())
        {
            fields.insert(name.to_owned(), value.to_owned());
        }
    }
    sections
}

/// What people are shown of a process.
fn text(seen: &Seen, ring: Option<u16>) -> String {
    let mut text = format!("process {}", seen.node);
    if let Some(failed) = &seen.failed {
        return format!("{text}: {failed}\n");
    }
    for (name, fields) in &seen.sections {
        let of = |name: &str| fields.get(name).map_or("", String::as_str);
        if let Some(number) = name.strip_prefix("Founded ") {
            founded(&mut text, (number, ring), of("state"));
            continue;
        }
        let Some(number) = name.strip_prefix("Ring ") else {
            let _ = write!(text, ", delivered up to round {}", of("point_round"));
            text.push('\n');
            continue;
        };
        if ring.is_some_and(|ring| number != ring.to_string()) {
            continue;
        }
        let _ = write!(text, "  ring {number}: {}", of("state"));
        for (shown, name) in COUNTERS {
            let _ = write!(text, ", {shown} {}", fields.get(name).map_or("-", |of| of));
        }
        let needed = of("needed_up_to_round");
        if !needed.is_empty() {
            let _ = write!(text, "; waited for, up to round {needed}");
        }
        text.push('\n');
        accounts(&mut text, fields);
    }
    text
}

/// A ring that was founded while the processes ran, unless another one is to be shown.
fn founded(text: &mut String, (number, shown): (&str, Option<u16>), state: &str) {
    if shown.is_none_or(|shown| number == shown.to_string()) {
        let _ = writeln!(
            text,
            "  ring {number} was founded while processes ran: {state}"
        );
    }
}

fn accounts(text: &mut String, fields: &BTreeMap<String, String>) {
    for (name, value) in fields {
        let part = |wanted: &str| {
            let mut parts = value.split(',').filter_map(|part| part.split_once('='));
            let found = parts.find(|(name, _)| *name == wanted);
            found.map_or("", |(_, value)| value)
        };
        if let Some(partition) = name.strip_prefix("account_") {
            let replicas = part("replicas").replace('/', ", ");
            let _ = writeln!(
                text,
                "    kept for partition {partition} (replicas {replicas}): from instance {} on",
                part("needs")
            );
        } else if let Some(node) = name.strip_prefix("pin_") {
            let _ = writeln!(
                text,
                "    kept for node {node}, which recovers: from instance {} on",
                part("needs")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_says_of_its_rings_is_shown() {
        let said = "# Merge\r\npoint_round:7\r\n\r\n# Ring 1\r\nstate:operational\r\n\
            needed_up_to_round:\r\nring_needs:3\r\naccount_2:needs=5,replicas=1/3\r\n\r\n\
            # Ring 2\r\nstate:forming: no majority\r\nneeded_up_to_round:9\r\npin_3:needs=4,until_ns=1\r\n\r\n\
            # Founded 2\r\nstate:open\r\norigin:31\r\n\r\n# Founded 9\r\nstate:refused: ring 9: why\r\n";
        let seen = Seen {
            node: 4,
            failed: None,
            sections: sections(said),
        };
        let shown = text(&seen, None);
        assert_eq!(
            shown,
            "process 4, delivered up to round 7\n\
             \x20 ring 1: operational, learnt -, forgotten -, skipped -, needs 3, needs refused -, bytes waiting -, mean wait us -\n\
             \x20   kept for partition 2 (replicas 1, 3): from instance 5 on\n\
             \x20 ring 2: forming: no majority, learnt -, forgotten -, skipped -, needs -, needs refused -, bytes waiting -, mean wait us -; waited for, up to round 9\n\
             \x20   kept for node 3, which recovers: from instance 4 on\n\
             \x20 ring 2 was founded while processes ran: open\n\
             \x20 ring 9 was founded while processes ran: refused: ring 9: why\n"
        );
        assert!(!text(&seen, Some(2)).contains("ring 1"));
        assert!(!text(&seen, Some(2)).contains("ring 9"));
        let sections = &json!(seen)["sections"];
        assert_eq!(sections["Ring 1"]["ring_needs"], 3);
        assert_eq!(sections["Ring 1"]["needed_up_to_round"], Value::Null);
        assert_eq!(sections["Ring 2"]["state"], "forming: no majority");
        assert_eq!(sections["Founded 2"]["origin"], 31);
    }
}
