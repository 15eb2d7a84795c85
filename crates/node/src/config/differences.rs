//! The outcome of settings that differ between nodes, as they do while they are changed node by node.

use std::fmt;

/// Settings that have the same outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// By their names in the file; `paxos.NAME` is in `[paxos]`, `daemon.NAME` in `[daemon]`.
    pub settings: &'static [&'static str],
    /// The outcome for nodes with different values.
    pub outcome: Outcome,
    /// The outcome in a sentence, for people.
    pub says: &'static str,
}

/// The outcome for nodes with different values of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The nodes go on together, each by its own value.
    Own,
    /// The nodes go on together by what all agree on, and each names the nodes with another value (`note` in `rota
    /// status`).
    Agreed,
    /// The nodes do not see each other, and each counts that.
    Apart,
}

/// All settings.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        settings: &[
            "cluster",
            "engine",
            "primary",
            "transport",
            "paxos.coordination",
        ],
        outcome: Outcome::Apart,
        says: "the nodes do not see each other (`datagrams_foreign_cluster`); but for the engines `accelerated-ring` and `totem-ring`, which \
               understand each other and go on together",
    },
    Difference {
        settings: &["key_file", "insecure"],
        outcome: Outcome::Apart,
        says: "a node drops datagrams that are not sealed with a key of its own file, or are sealed while it has none (`net_checksum_errors`); \
               [keys are changed](operations/security.md) with both in the file for a while",
    },
    Difference {
        settings: &["global_window", "outstanding_window"],
        outcome: Outcome::Agreed,
        says: "the smallest is in force on a ring, and each node says who has another",
    },
    Difference {
        settings: &["timing", "time_scale"],
        outcome: Outcome::Agreed,
        says: "the longest token loss is in force on a ring, and each node says who has another. A node waits for disks, joins and \
               silent nodes as its own says",
    },
    Difference {
        settings: &["primary_nodes"],
        outcome: Outcome::Agreed,
        says: "where it is not set, the listed nodes are the list. A primary needs more than half of each list that its nodes have, have met \
               or had before, and the notes of each node name these lists. A list that no node has any more counts until a primary has had \
               most of its nodes: switch nodes of the old list off only when the notes are gone. Without `state_dir` a restarted node has \
               forgotten the lists that it met: then change lists by one node at a time, and wait until all have the new one. Nodes that \
               never met are two clusters. With `\"dynamic\"` lists count before the first primary only, and there is none while they \
               differ",
    },
    Difference {
        settings: &["message_bytes"],
        outcome: Outcome::Own,
        says: "each node's own messages keep to it; larger ones of others are delivered",
    },
    Difference {
        settings: &["node", "open_membership"],
        outcome: Outcome::Own,
        says: "if only one of two nodes lists the other, it looks for that one, which takes it in only with `open_membership`, and otherwise \
               does not hear it (`net_foreign_source`). A third node that lists both is on a ring with nodes that list each other. Where \
               `primary_nodes` is not set, that row counts as well",
    },
    Difference {
        settings: &["interface", "multicast_ttl"],
        outcome: Outcome::Own,
        says: "each node multicasts by its own",
    },
    Difference {
        settings: &["link_mbps", "link_yields"],
        outcome: Outcome::Own,
        says: "each node keeps to its share of what it is configured with",
    },
    Difference {
        settings: &[
            "personal_window",
            "accelerated_window",
            "priority_method",
            "datagram_bytes",
            "backlog_bytes",
            "receive_buffer_bytes",
            "send_buffer_bytes",
            "busy_poll_us",
            "offload",
            "state_dir",
            "reset_ring_id",
            "reset_primary",
            "trace",
            "faults",
        ],
        outcome: Outcome::Own,
        says: "each node has its own",
    },
    Difference {
        settings: &["paxos.acceptors"],
        outcome: Outcome::Own,
        says: "the list that the cluster was founded with is in force, and a node with another list has no vote by that",
    },
    Difference {
        settings: &["paxos.observers"],
        outcome: Outcome::Own,
        says: "a node that finds itself in its own list asks for no place in the ring, and is taken in only if a majority is missing and \
               the others' lists do not have it; without `acceptors` other lists are other acceptors",
    },
    Difference {
        settings: &[
            "paxos.storage",
            "paxos.kept_instances",
            "paxos.hold_bytes",
            "paxos.memory_bytes",
            "paxos.instance_per_message",
            "paxos.etcd",
            "paxos.etcd_tls",
            "paxos.etcd_login",
        ],
        outcome: Outcome::Own,
        says: "each node has its own. A vote counts as each acceptor stores it",
    },
    Difference {
        settings: &["daemon.message_bytes", "daemon.client_queue_bytes"],
        outcome: Outcome::Own,
        says: "each daemon's own clients keep to it; a client's queue takes two messages of the largest that it was sent, whatever the limit",
    },
    Difference {
        settings: &["daemon"],
        outcome: Outcome::Own,
        says: "each daemon has its own",
    },
];

/// The table of the manual.
#[derive(Clone, Copy, Debug)]
pub struct DifferencesTable;

impl fmt::Display for DifferencesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("| setting | where it differs |\n|---|---|\n")?;
        for row in DIFFERENCES {
            let names = row.settings.iter().map(|name| match name.split_once('.') {
                Some((section, name)) => format!("`[{section}] {name}`"),
                None if *name == "daemon" => "the rest of `[daemon]`".to_owned(),
                None if *name == "node" => "the nodes that are listed".to_owned(),
                None => format!("`{name}`"),
            });
            let names: Vec<String> = names.collect();
            writeln!(f, "| {} | {} |", names.join(", "), row.says)?;
        }
        Ok(())
    }
}
