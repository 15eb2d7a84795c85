//! `CLUSTER`: the cluster for clients that know Redis' cluster protocol.

use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;
use rota_front::command::{error, is, number, wrong_count};
use rota_resp::{Reply, slot};

use super::view::{NodeView, View};

/// The slots of a process's partition in ranges, as the map has them.
fn ranges_of(view: &View, node: &NodeView) -> Vec<Range<u16>> {
    let ranges = view.map.ranges().into_iter();
    let own = ranges.filter(|(_, partition)| *partition == node.partition);
    own.map(|(range, _)| range).collect()
}

fn integer(number: impl Into<i64>) -> Reply {
    Reply::Integer(number.into())
}

/// Handles `CLUSTER SLOTS`.
fn slots(view: &View) -> Reply {
    let range = |(range, partition): (Range<u16>, _)| {
        let nodes = view.of(partition);
        let node = |node: &&NodeView| {
            Reply::Array(vec![
                Reply::from(node.host.as_str()),
                integer(node.port),
                Reply::from(node.id(view.cluster)),
                Reply::Array(Vec::new()),
            ])
        };
        let ends = [integer(range.start), integer(range.end - 1)];
        Reply::Array(ends.into_iter().chain(nodes.iter().map(node)).collect())
    };
    Reply::Array(view.map.ranges().into_iter().map(range).collect())
}

/// Handles `CLUSTER SHARDS`.
fn shards(view: &View) -> Reply {
    let text = |text: &str| Reply::from(text);
    let shard = |partition| {
        let nodes = view.of(partition);
        let ranges = nodes
            .first()
            .map_or(Vec::new(), |node| ranges_of(view, node));
        let ends = ranges.iter().flat_map(|range| [range.start, range.end - 1]);
        let node = |(at, node): (usize, &&NodeView)| {
            Reply::Map(vec![
                (text("id"), Reply::from(node.id(view.cluster))),
                (text("port"), integer(node.port)),
                (text("ip"), text(&node.host)),
                (text("endpoint"), text(&node.host)),
                (
                    text("role"),
                    text(if at == 0 { "master" } else { "replica" }),
                ),
                (text("replication-offset"), integer(0)),
                (
                    text("health"),
                    text(if node.is_up { "online" } else { "failed" }),
                ),
            ])
        };
        Reply::Map(vec![
            (text("slots"), Reply::Array(ends.map(integer).collect())),
            (
                text("nodes"),
                Reply::Array(nodes.iter().enumerate().map(node).collect()),
            ),
        ])
    };
    Reply::Array(view.map.partitions().into_iter().map(shard).collect())
}

/// Handles `CLUSTER NODES`: a line for each process.
fn nodes(view: &View) -> Reply {
    let mut text = String::new();
    for partition in view.map.partitions() {
        let nodes = view.of(partition);
        for (at, node) in nodes.iter().enumerate() {
            let myself = if node.node == view.me { "myself," } else { "" };
            let failed = if node.is_up { "" } else { ",fail" };
            let (role, master) = match at {
                0 => ("master", "-".to_owned()),
                _ => ("slave", nodes[0].id(view.cluster)),
            };
            let (id, host, port) = (node.id(view.cluster), &node.host, node.port);
            // The port of the bus between Redis' nodes, which does not exist here.
            let bus = u32::from(port) + 10_000;
            let epoch = view.map.epoch();
            let link = if node.is_up {
                "connected"
            } else {
                "disconnected"
            };
            let _ = write!(
                text,
                "{id} {host}:{port}@{bus} {myself}{role}{failed} {master} 0 0 {epoch} {link}"
            );
            if at == 0 {
                for range in ranges_of(view, node) {
                    let _ = match range.len() {
                        1 => write!(text, " {}", range.start),
                        _ => write!(text, " {}-{}", range.start, range.end - 1),
                    };
                }
            }
            text.push('\n');
        }
    }
    Reply::Text(text)
}

/// Handles `CLUSTER INFO`.
fn info(view: &View) -> Reply {
    let partitions = view.map.partitions();
    let is_up = |partition: &_| view.of(*partition).iter().any(|node| node.is_up);
    let state = if partitions.iter().all(is_up) {
        "ok"
    } else {
        "fail"
    };
    let (known, size, epoch) = (view.nodes.len(), partitions.len(), view.map.epoch());
    Reply::Text(format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:16384\r\n\
         cluster_slots_ok:16384\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n\
         cluster_known_nodes:{known}\r\ncluster_size:{size}\r\ncluster_current_epoch:{epoch}\r\n\
         cluster_my_epoch:{epoch}\r\n"
    ))
}

/// The reply to `CLUSTER`.
pub(super) fn cluster(view: &View, arguments: &[Bytes]) -> Reply {
    let Some((word, rest)) = arguments.split_first() else {
        return wrong_count("cluster");
    };
    match rest {
        [] if is(word, "SLOTS") => slots(view),
        [] if is(word, "SHARDS") => shards(view),
        [] if is(word, "NODES") => nodes(view),
        [] if is(word, "INFO") => info(view),
        [] if is(word, "MYID") => {
            let own = view.own().map(|own| own.id(view.cluster));
            own.map_or(Reply::Null, Reply::from)
        }
        [key] if is(word, "KEYSLOT") => integer(slot::of(key)),
        [count] if is(word, "COUNTKEYSINSLOT") => match number(count) {
            Ok(_) => error("ERR slots' keys are not counted"),
            Err(reply) => reply,
        },
        _ => {
            let word = String::from_utf8_lossy(word);
            error(&format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try CLUSTER HELP."
            ))
        }
    }
}
