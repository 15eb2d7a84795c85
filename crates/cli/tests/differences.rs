//! Two nodes with different values of each setting, on real sockets: what the manual says becomes of them, and no violation in their
//! traces.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rota_check::trace::Trace;
use rota_check::{Options, Order, check_order};
use rota_core::contract::{Delivery, NodeId, Service};
use rota_net::{FaultConfig, KeyRing, Transport};
use rota_node::{
    DIFFERENCES, DifferencesTable, EngineName, Node, NodeConfig, Outcome, PaxosConfig, PrimaryName,
    ResetPrimary, TimingName, VoteStorage,
};

const PATIENCE: Duration = Duration::from_secs(20);
/// Two nodes that see each other have a ring in a tenth of it.
const APART: Duration = Duration::from_secs(3);
/// Of each node.
const MESSAGES: usize = 200;

/// What both have, and what the second one has beside.
struct Case {
    setting: &'static str,
    both: fn(&mut NodeConfig),
    second: fn(&mut NodeConfig),
    /// What becomes of these values, where that is not what becomes of most.
    outcome: Option<Outcome>,
}

const fn case(setting: &'static str, second: fn(&mut NodeConfig)) -> Case {
    Case {
        setting,
        both: |_| {},
        second,
        outcome: None,
    }
}

fn with_votes(config: &mut NodeConfig) {
    config.engine = EngineName::URingPaxos;
    config.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        acceptors: Some(vec![1]),
        ..PaxosConfig::default()
    });
}

fn paxos(config: &mut NodeConfig) -> &mut PaxosConfig {
    config.paxos.as_mut().expect("they have one")
}

fn in_views(config: &mut NodeConfig) {
    config.engine = EngineName::FastCast;
}

fn static_primary(config: &mut NodeConfig) {
    config.primary = PrimaryName::Static;
}

/// Settings of one of which a case stands for others that are read at the same place.
const CASES: &[Case] = &[
    case("cluster", |config| config.cluster += 1),
    Case {
        outcome: Some(Outcome::Own),
        ..case("engine", |config| config.engine = EngineName::TotemRing)
    },
    case("engine", |config| config.engine = EngineName::Lcr),
    case("primary", static_primary),
    case("key_file", |config| {
        let path = config.state_dir.as_ref().expect("set").join("key");
        let ring = KeyRing::generate().expect("made");
        ring.create(&path).expect("written");
        config.key_file = Some(path);
        config.insecure = false;
    }),
    case("global_window", |config| config.global_window = Some(5)),
    case("outstanding_window", |config| {
        config.outstanding_window = Some(100);
    }),
    case("timing", |config| config.timing = TimingName::LanFast),
    case("timing", |config| config.timing = TimingName::Relaxed),
    case("time_scale", |config| {
        config.time_scale = NonZeroU32::new(2);
    }),
    Case {
        setting: "primary_nodes",
        both: static_primary,
        second: |config| config.primary_nodes = Some(vec![2]),
        outcome: None,
    },
    Case {
        setting: "primary_nodes",
        both: in_views,
        second: |config| config.primary_nodes = Some(vec![1, 2]),
        outcome: None,
    },
    case("message_bytes", |config| config.message_bytes = Some(1000)),
    Case {
        setting: "message_bytes",
        both: in_views,
        second: |config| config.message_bytes = Some(1000),
        outcome: None,
    },
    Case {
        setting: "message_bytes",
        both: with_votes,
        second: |config| config.message_bytes = Some(1000),
        outcome: None,
    },
    case("node", |config| config.nodes.truncate(2)),
    case("open_membership", |config| config.open_membership = true),
    case("transport", |config| config.transport = Transport::Unicast),
    case("transport", |config| {
        config.transport = Transport::Multicast("239.192.9.9:26999".parse().expect("an address"));
    }),
    case("interface", |config| {
        config.interface = Some("lo".to_owned())
    }),
    Case {
        setting: "link_mbps",
        both: in_views,
        second: |config| config.link_mbps = NonZeroU32::new(100),
        outcome: None,
    },
    Case {
        setting: "link_yields",
        both: |config| {
            in_views(config);
            config.link_mbps = NonZeroU32::new(1000);
        },
        second: |config| config.link_yields = true,
        outcome: None,
    },
    case("personal_window", |config| config.personal_window = Some(1)),
    case("accelerated_window", |config| {
        config.accelerated_window = Some(0);
    }),
    case("priority_method", |config| config.priority_method = Some(1)),
    case("datagram_bytes", |config| config.datagram_bytes = Some(700)),
    Case {
        setting: "datagram_bytes",
        both: in_views,
        second: |config| config.datagram_bytes = Some(700),
        outcome: None,
    },
    case("backlog_bytes", |config| {
        (config.backlog_bytes, config.message_bytes) = (Some(100_000), Some(50_000));
    }),
    case("receive_buffer_bytes", |config| {
        config.receive_buffer_bytes = 100_000;
    }),
    case("send_buffer_bytes", |config| {
        config.send_buffer_bytes = 50_000
    }),
    case("busy_poll_us", |config| config.busy_poll_us = 20),
    case("offload", |config| config.offload = false),
    case("state_dir", |config| config.state_dir = None),
    Case {
        setting: "state_dir",
        both: in_views,
        second: |config| config.state_dir = None,
        outcome: None,
    },
    case("reset_ring_id", |config| config.reset_ring_id = true),
    Case {
        setting: "reset_primary",
        both: static_primary,
        second: |config| config.reset_primary = Some(ResetPrimary::First),
        outcome: None,
    },
    case("faults", |config| {
        config.faults = Some(FaultConfig {
            loss: 0.1,
            ..FaultConfig::default()
        });
    }),
    Case {
        setting: "paxos.acceptors",
        both: with_votes,
        second: |config| paxos(config).acceptors = Some(vec![1, 2, 3]),
        outcome: None,
    },
    Case {
        setting: "paxos.observers",
        both: with_votes,
        second: |config| paxos(config).observers = Some(vec![3]),
        outcome: None,
    },
    Case {
        setting: "paxos.storage",
        both: with_votes,
        second: |config| paxos(config).storage = VoteStorage::Async,
        outcome: None,
    },
    Case {
        setting: "paxos.kept_instances",
        both: with_votes,
        second: |config| paxos(config).kept_instances = NonZeroU64::new(300),
        outcome: None,
    },
    Case {
        setting: "paxos.memory_bytes",
        both: with_votes,
        second: |config| paxos(config).memory_bytes = NonZeroU64::new(1 << 20),
        outcome: None,
    },
    Case {
        setting: "paxos.instance_per_message",
        both: with_votes,
        second: |config| paxos(config).instance_per_message = true,
        outcome: None,
    },
];

/// Not here: what is about a daemon's clients and what needs a service has tests of its own, and traces are what is looked at.
const ELSEWHERE: [&str; 10] = [
    "insecure",
    "trace",
    "paxos.coordination",
    "paxos.etcd",
    "paxos.etcd_tls",
    "paxos.etcd_login",
    "daemon.message_bytes",
    "daemon.client_queue_bytes",
    "daemon",
    "paxos",
];

fn outcome(case: &Case) -> Outcome {
    let mut rows = DIFFERENCES.iter();
    let row = rows.find(|row| row.settings.contains(&case.setting));
    let row = row.unwrap_or_else(|| panic!("no row for {}", case.setting));
    case.outcome.unwrap_or(row.outcome)
}

fn id(node: u16) -> NodeId {
    NodeId::new(node).expect("not 0")
}

struct Running {
    nodes: [Node; 2],
    /// What each has got, in its order.
    got: [Vec<Vec<u8>>; 2],
    traces: Vec<PathBuf>,
}

impl Running {
    fn start(case: &Case, port: u16, directory: &Path) -> Self {
        let config = |node: u16| {
            let mut config = NodeConfig::loopback(3, port);
            config.state_dir = Some(directory.to_owned());
            config.trace = Some(directory.join("node-{node}.jsonl"));
            (case.both)(&mut config);
            if node == 2 {
                (case.second)(&mut config);
            }
            config
        };
        let start = |node| Node::start(config(node), id(node)).expect("it starts");
        Self {
            nodes: [start(1), start(2)],
            got: [Vec::new(), Vec::new()],
            traces: [1, 2]
                .map(|node| directory.join(format!("node-{node}.jsonl")))
                .to_vec(),
        }
    }

    fn take(&mut self) {
        for (node, got) in self.nodes.iter().zip(&mut self.got) {
            while let Ok(delivery) = node.recv_timeout(Duration::ZERO) {
                if let Delivery::Message(message) = delivery {
                    got.push(message.payload.to_vec());
                }
            }
        }
    }

    fn wait(&mut self, patience: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            self.take();
            if holds(self) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn are_together(&self) -> bool {
        let says = |node: &Node, both: &str| {
            let status = node.status();
            status.is_some_and(|status| status.engine.state.contains(both))
        };
        self.nodes
            .iter()
            .all(|node| says(node, "1, 2") || says(node, "2, 1"))
    }

    fn counter(&self, at: usize, name: &str) -> u64 {
        let counters = self.nodes[at].status().map(|status| status.engine.counters);
        let counters = counters.unwrap_or_default();
        let named = counters.iter().filter(|(of, _)| of.starts_with(name));
        named.map(|(_, count)| count).sum()
    }

    /// Each sends, all services in turn, what the smallest limits allow.
    fn talk(&mut self, setting: &str) {
        let services = [
            Service::Fifo,
            Service::Causal,
            Service::Agreed,
            Service::Safe,
        ];
        for number in 0..MESSAGES {
            for (at, node) in self.nodes.iter().enumerate() {
                let mut text = format!("{at} {number} ").into_bytes();
                // The first node's are larger than the second may send itself.
                let longer = if at == 0 { 3000 } else { 900 };
                text.resize(if number % 10 == 0 { longer } else { 40 }, b'.');
                let sent = node.submit_blocking(services[number % 4], &text);
                sent.unwrap_or_else(|error| panic!("{setting}: {error:?}"));
            }
        }
    }

    fn judge(self, case: &Case) {
        let has_votes = self.nodes[0]
            .status()
            .is_some_and(|status| status.engine.counters.contains_key("uring_rounds_led"));
        for node in self.nodes {
            node.stop().expect("it stops");
        }
        if has_votes {
            assert_eq!(self.got[0], self.got[1], "{}", case.setting);
        }
        // Who does not see the other is a cluster of its own.
        let alone: Vec<&[PathBuf]> = match outcome(case) {
            Outcome::Apart => self.traces.chunks(1).collect(),
            Outcome::Own | Outcome::Agreed => vec![&self.traces],
        };
        for files in alone {
            let trace = Trace::from_files(files).expect("traces");
            let order = trace.shown_order();
            assert_eq!(
                has_votes,
                order == Order::Whole,
                "{}: {order:?}",
                case.setting
            );
            let report = check_order(&trace, &Options::default(), order);
            let (setting, violations) = (case.setting, &report.violations);
            assert!(violations.is_empty(), "{setting}: {violations:?}");
            let checked: u64 = report.verdicts.iter().map(|verdict| verdict.checked).sum();
            assert!(checked > 10, "{setting}: {checked}");
        }
    }
}

fn run(case: &Case, port: u16) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(case, port, directory.path());
    let setting = case.setting;
    if outcome(case) == Outcome::Apart {
        let met = running.wait(APART, Running::are_together);
        assert!(!met, "{setting}: they are together");
        let says = match setting {
            "key_file" => ["net_checksum_errors", "net_seal_"],
            _ => ["datagrams_foreign_cluster"; 2],
        };
        let counted = running.wait(PATIENCE, |running| {
            (0..2).all(|at| running.counter(at, says[at]) > 0)
        });
        assert!(counted, "{setting}: {says:?}");
        running.talk(setting);
        // Where one alone may order something it orders its own messages.
        running.wait(APART, |running| {
            running.got.iter().all(|got| got.len() >= MESSAGES)
        });
        running.judge(case);
        return;
    }
    let met = running.wait(PATIENCE, Running::are_together);
    assert!(
        met,
        "{setting}: {:?}",
        running
            .nodes
            .each_ref()
            .map(|node| node.status().map(|status| status.engine.state))
    );
    if outcome(case) == Outcome::Agreed {
        let noted = running.wait(PATIENCE, |running| {
            let notes = |node: &Node| node.status().map(|status| status.engine.notes);
            running
                .nodes
                .iter()
                .all(|node| notes(node).is_some_and(|notes| !notes.is_empty()))
        });
        assert!(noted, "{setting}: nobody says so");
    }
    running.talk(setting);
    let all = running.wait(PATIENCE, |running| {
        running.got.iter().all(|got| got.len() == 2 * MESSAGES)
    });
    let got = running.got.each_ref().map(Vec::len);
    assert!(all, "{setting}: {got:?} of {}", 2 * MESSAGES);
    running.judge(case);
}

#[test]
fn two_nodes_with_different_values_of_each_setting() {
    for (index, case) in (0..).zip(CASES) {
        println!("{}: {:?}", case.setting, outcome(case));
        run(case, 26_000 + 10 * index);
    }
}

#[test]
fn every_setting_has_a_row_and_a_case() {
    let mut config = NodeConfig::loopback(3, 26_900);
    with_votes(&mut config);
    let path = || Some(PathBuf::from("x"));
    (config.key_file, config.state_dir, config.trace) = (path(), path(), path());
    config.interface = Some("lo".to_owned());
    (config.personal_window, config.accelerated_window) = (Some(1), Some(1));
    (config.global_window, config.outstanding_window) = (Some(1), Some(1));
    (config.link_mbps, config.link_yields) = (NonZeroU32::new(1), true);
    (config.priority_method, config.datagram_bytes) = (Some(1), Some(700));
    (config.message_bytes, config.backlog_bytes) = (Some(1), Some(1));
    (
        config.reset_ring_id,
        config.open_membership,
        config.insecure,
    ) = (true, true, true);
    (config.primary, config.primary_nodes) = (PrimaryName::Static, Some(vec![1]));
    config.reset_primary = Some(ResetPrimary::First);
    config.time_scale = NonZeroU32::new(2);
    config.daemon = Some(toml::Table::new());
    config.faults = Some(FaultConfig::default());
    let paxos = paxos(&mut config);
    paxos.kept_instances = NonZeroU64::new(1);
    paxos.instance_per_message = true;
    paxos.observers = Some(vec![3]);
    let table = toml::Table::try_from(&config).expect("a table");
    let mut names: Vec<String> = table
        .keys()
        .filter(|name| *name != "paxos")
        .cloned()
        .collect();
    let of_votes = table["paxos"].as_table().expect("a table");
    names.extend(of_votes.keys().map(|name| format!("paxos.{name}")));
    assert!(names.len() > 30, "{names:?}");
    for name in &names {
        let rows = DIFFERENCES
            .iter()
            .filter(|row| row.settings.contains(&name.as_str()));
        assert_eq!(rows.count(), 1, "rows for {name}");
        let mut cases = CASES.iter().map(|case| case.setting).chain(ELSEWHERE);
        assert!(cases.any(|setting| setting == name), "no case for {name}");
    }
}

#[test]
fn the_manual_has_the_table() {
    let manual = include_str!("../../../docs/operations.md");
    let table = DifferencesTable.to_string();
    assert!(
        manual.contains(&table),
        "docs/operations.md lacks this table:\n{table}"
    );
}
