//! Configuration files: those that are accepted, and the messages about those that are not.

use std::num::NonZeroU64;

use rota_core::contract::NodeId;
use rota_core::primary::{OWN_BYTES, Rule};
use rota_net::{FaultConfig, Transport};
use rota_node::{
    ConfigError, CoordinationName, EngineName, NodeConfig, PaxosConfig, PrimaryName, ResetPrimary,
    TimingName, VoteStorage,
};
use rota_ring::{PriorityMethod, Protocol};

const GOOD: &str = r#"
cluster = 7
insecure = true
transport = { multicast = "239.192.0.7:7700" }

[[node]]
id = 1
address = "10.0.0.1"
data_port = 7701
token_port = 7702

[[node]]
id = 2
address = "10.0.0.2"
data_port = 7701
token_port = 7702
"#;

#[test]
fn a_small_file_is_enough_and_the_rest_has_defaults() {
    let config = NodeConfig::from_toml(GOOD).unwrap();
    let ring = config.ring_config();
    assert_eq!(config.engine, EngineName::AcceleratedRing);
    assert_eq!(ring.cluster, config.wire_cluster());
    let unicast = NodeConfig {
        transport: Transport::Unicast,
        ..config.clone()
    };
    assert_eq!((config.cluster, unicast.wire_cluster()), (7, 7));
    assert_eq!(ring.members.len(), 2);
    assert_eq!(ring.protocol, Protocol::Accelerated);
    assert!(config.offload);
    assert_eq!(ring.check(), Ok(()));
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let mut config = NodeConfig::loopback(3, 22_000);
    config.engine = EngineName::TotemRing;
    config.timing = TimingName::LanFast;
    config.priority_method = Some(1);
    config.personal_window = Some(10);
    config.link_mbps = std::num::NonZeroU32::new(1_000);
    config.state_dir = Some("state".into());
    config.reset_ring_id = true;
    config.primary = PrimaryName::Dynamic;
    config.primary_nodes = Some(vec![1, 3]);
    config.reset_primary = Some(ResetPrimary::Forgotten);
    config.open_membership = true;
    config.trace = Some("node-1.trace.jsonl".into());
    config.faults = Some(FaultConfig {
        loss: 0.5,
        loss_distance: Some(2),
        ..FaultConfig::default()
    });
    let again = NodeConfig::from_toml(&config.to_toml().unwrap()).unwrap();
    assert_eq!(config, again);
    config.transport = Transport::Unicast;
    config.faults = None;
    let again = NodeConfig::from_toml(&config.to_toml().unwrap()).unwrap();
    assert_eq!(config, again);
    let ring = again.ring_config();
    assert_eq!(ring.priority_method, PriorityMethod::First);
    assert_eq!((ring.windows.accelerated, ring.windows.personal), (0, 10));
    assert!(ring.trace);
    config.engine = EngineName::FastCast;
    config.link_yields = true;
    let again = NodeConfig::from_toml(&config.to_toml().unwrap()).unwrap();
    assert_eq!(config, again);
}

#[test]
fn who_counts_in_a_primary_is_all_that_are_listed_or_what_is_said() {
    let rule = |settings: &str, node: u16| {
        let config = NodeConfig::from_toml(&format!("{settings}{GOOD}")).unwrap();
        config.primary_rule(NodeId::new(node).unwrap())
    };
    let nodes =
        |ids: &[u16]| -> Vec<NodeId> { ids.iter().filter_map(|id| NodeId::new(*id)).collect() };
    assert_eq!(rule("", 1), None);
    assert_eq!(rule("primary = \"none\"", 1), None);
    let configured = nodes(&[1, 2]);
    let majority = Some(Rule::StaticMajority { configured });
    assert_eq!(rule("primary = \"static\"", 1), majority);
    let configured = nodes(&[1, 2, 9]);
    let majority = Some(Rule::StaticMajority { configured });
    let listed = "primary = \"static\"\nprimary_nodes = [9, 2, 1, 2]";
    assert_eq!(rule(listed, 1), majority);
    let dynamic = |first: &[u16]| {
        let first = nodes(first);
        Some(Rule::DynamicLinear { first })
    };
    let settings = "state_dir = \"s\"\nprimary = \"dynamic\"";
    assert_eq!(rule(settings, 1), dynamic(&[1, 2]));
    let founders = format!("{settings}\nprimary_nodes = [1]");
    assert_eq!(rule(&founders, 1), dynamic(&[1]));
    assert_eq!(rule(&founders, 2), dynamic(&[]), "it joined later");
}

#[test]
fn a_primary_layer_has_room_for_its_own_and_a_cluster_number_of_its_own() {
    let config = |settings: &str| NodeConfig::from_toml(&format!("{settings}{GOOD}")).unwrap();
    let (plain, layered) = (config(""), config("primary = \"static\""));
    assert_eq!(plain.message_limit(), layered.message_limit());
    assert!(layered.ring_config().message_bytes > layered.message_limit());
    assert_ne!(plain.ring_config().cluster, layered.ring_config().cluster);
    let small = config("primary = \"static\"\nmessage_bytes = 100\nbacklog_bytes = 100");
    assert_eq!(small.message_limit(), 100);
    assert!(small.ring_config().message_bytes >= OWN_BYTES);
    for wrong in [
        "message_bytes = 0",
        "message_bytes = 200\nbacklog_bytes = 100",
    ] {
        let text = format!("primary = \"static\"\n{wrong}{GOOD}");
        let error = NodeConfig::from_toml(&text).unwrap_err();
        assert!(matches!(error, ConfigError::Ring(_)), "{error}");
    }
}

#[test]
fn a_smaller_personal_window_takes_the_accelerated_one_with_it() {
    let text = format!("personal_window = 5{GOOD}");
    let ring = NodeConfig::from_toml(&text).unwrap().ring_config();
    assert_eq!((ring.windows.personal, ring.windows.accelerated), (5, 5));
}

#[test]
fn every_mistake_has_a_sentence_of_its_own() {
    let cases = [
        ("insecure = true", "insecure = false", "insecure = true"),
        ("id = 2", "id = 0", "start at 1"),
        ("id = 2", "id = 1", "listed twice"),
        (
            "\"10.0.0.2\"",
            "\"10.0.0.1\"",
            "10.0.0.1:7701 is used by two sockets",
        ),
        (
            "token_port = 7702",
            "token_port = 7701",
            "used by two sockets",
        ),
        ("token_port = 7702", "token_port = 0", "not 0"),
        ("239.192.0.7", "10.0.0.7", "no multicast address"),
        ("\"10.0.0.2\"", "\"fe80::1\"", "another IP version"),
        ("cluster = 7", "cluster = 7\npriority_method = 3", "1 or 2"),
        ("cluster = 7", "cluster = 7\nlink_mbps = 0", "nonzero"),
        (
            "cluster = 7",
            "cluster = 7\npersonal_window = 0",
            "personal_window",
        ),
        (
            "cluster = 7",
            "cluster = 7\naccelerated_window = 99",
            "accelerated_window",
        ),
        (
            "cluster = 7",
            "cluster = 7\ndatagram_bytes = 10",
            "datagram_bytes",
        ),
        (
            "cluster = 7",
            "cluster = 7\nmessage_bytes = 0",
            "message_bytes",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary = \"dynamic\"",
            "set `state_dir`",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary = \"weighted\"",
            "weighted",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary_nodes = [1]",
            "set `primary`",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary = \"static\"\nprimary_nodes = []",
            "at least one",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary = \"static\"\nprimary_nodes = [1, 0]",
            "start at 1",
        ),
        (
            "cluster = 7",
            "cluster = 7\nprimary = \"static\"\nreset_primary = \"forgotten\"",
            "reset_primary is for",
        ),
        (
            "cluster = 7",
            "cluster = 7\npersonal_widow = 1",
            "personal_widow",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"fastest\"",
            "fastest",
        ),
        (
            "[[node]]\nid = 1",
            "[faults]\nloss = 1.5\n[[node]]\nid = 1",
            "between 0 and 1",
        ),
        ("multicast = ", "anycast = ", "anycast"),
    ];
    expect_sentences(&cases);
}

/// Cases of a good text, the bad one in its place, and the message about that.
fn expect_sentences(cases: &[(&str, &str, &str)]) {
    for (good, bad, sentence) in cases {
        assert!(GOOD.contains(good), "{good}");
        let text = GOOD.replacen(good, bad, 1);
        let error = NodeConfig::from_toml(&text).expect_err(bad);
        assert!(error.to_string().contains(sentence), "{bad}: {error}");
    }
}

#[test]
fn every_mistake_about_votes_has_a_sentence_of_its_own() {
    expect_sentences(&[
        (
            "cluster = 7",
            "cluster = 7\npaxos = { storage = \"memory\" }",
            "does not",
        ),
        (
            "cluster = 7",
            "cluster = 7\npaxos = { storage = \"tape\" }",
            "tape",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"",
            "set `state_dir`",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\nprimary = \"static\"\npaxos = { storage = \"memory\" }",
            "take it out",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"ring-paxos\"\nlink_yields = true\npaxos = { storage = \"memory\" }",
            "link_yields is for engine = \"fastcast\"",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\nopen_membership = true\npaxos = { storage = \"memory\" }",
            "list all nodes",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", acceptors = [] }",
            "at least one node",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", acceptors = [1, 2, 1] }",
            "acceptor 1 is listed twice",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", acceptors = [1, 9] }",
            "acceptor 9 is listed twice, or there is no such node",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", acceptors = [0] }",
            "acceptor 0",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", observers = [9] }",
            "observer 9 is listed twice, is an acceptor, or there is no such node",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", observers = [2, 2] }",
            "observer 2",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", acceptors = [1, 2], observers = [2] }",
            "observer 2",
        ),
        (
            "cluster = 7",
            "cluster = 7\nengine = \"u-ring-paxos\"\npaxos = { storage = \"memory\", observers = [1, 2] }",
            "at least one node",
        ),
    ]);
}

#[test]
fn a_node_that_is_not_listed_cannot_run() {
    let config = NodeConfig::from_toml(GOOD).unwrap();
    let [two, three] = [2, 3].map(|id| NodeId::new(id).unwrap());
    assert!(config.check_for(two).is_ok());
    assert!(matches!(
        config.check_for(three),
        Err(ConfigError::UnknownNode(_))
    ));
}

#[test]
fn who_votes_is_set_or_the_first_five_and_votes_are_synced_unless_something_else_is_said() {
    let mut config = NodeConfig::loopback(7, 22_000);
    assert_eq!(
        (config.vote_storage(), config.votes_warning()),
        (None, None)
    );
    let nodes =
        |ids: &[u16]| -> Vec<NodeId> { ids.iter().filter_map(|id| NodeId::new(*id)).collect() };
    config.engine = EngineName::URingPaxos;
    config.state_dir = Some("state".into());
    config.check().unwrap();
    assert_eq!(config.acceptors(), nodes(&[1, 2, 3, 4, 5]));
    let observed = NodeConfig {
        paxos: Some(PaxosConfig {
            observers: Some(vec![5, 2]),
            ..PaxosConfig::default()
        }),
        ..config.clone()
    };
    observed.check().unwrap();
    assert_eq!(observed.acceptors(), nodes(&[1, 3, 4, 6, 7]));
    let engine = observed.uring_config(&observed.ring_config());
    assert_eq!((engine.observers, engine.ring.len()), (nodes(&[5, 2]), 7));
    assert_eq!(config.vote_storage(), Some(VoteStorage::Sync));
    let me = NodeId::new(3).unwrap();
    assert_eq!(
        config.votes_directory(me),
        Some("state/node-3.votes".into())
    );
    assert_eq!(config.votes_warning(), None);
    config.paxos = Some(PaxosConfig {
        acceptors: Some(vec![7, 2]),
        storage: VoteStorage::Memory,
        instance_per_message: true,
        kept_instances: NonZeroU64::new(70_000),
        memory_bytes: NonZeroU64::new(5 << 20),
        ..PaxosConfig::default()
    });
    config.check().unwrap();
    assert_eq!(config.acceptors(), nodes(&[2, 7]));
    let engine = config.uring_config(&config.ring_config());
    assert!(engine.proposer.value_per_message);
    assert_eq!(engine.acceptor.kept_instances, 70_000);
    assert_eq!(engine.acceptor.memory_bytes, 5 << 20);
    assert_eq!(config.votes_directory(me), None);
    assert!(config.votes_warning().unwrap().contains("2 acceptors"));
    let again = NodeConfig::from_toml(&config.to_toml().unwrap()).unwrap();
    assert_eq!(again, config);
}

#[test]
fn nodes_that_ask_etcd_are_another_cluster_and_say_what_they_depend_on() {
    let mut config = NodeConfig::loopback(3, 22_000);
    config.engine = EngineName::URingPaxos;
    config.state_dir = Some("state".into());
    let embedded = config.ring_config().cluster;
    assert_eq!(config.etcd(), None);
    let urls = vec!["http://127.0.0.1:2379".to_owned()];
    config.paxos = Some(PaxosConfig {
        coordination: CoordinationName::Etcd,
        etcd: Some(urls.clone()),
        ..PaxosConfig::default()
    });
    config.check().unwrap();
    let prefix = "/rota/22000/configurations/".to_owned();
    assert_eq!(config.etcd(), Some((&urls[..], prefix)));
    assert_ne!(config.ring_config().cluster, embedded);
    assert_eq!(config.coordination_warning(), None);
    let again = NodeConfig::from_toml(&config.to_toml().unwrap()).unwrap();
    assert_eq!(again, config);
    config.paxos.as_mut().unwrap().storage = VoteStorage::Memory;
    assert!(
        config
            .coordination_warning()
            .unwrap()
            .contains("/rota/22000/")
    );
    config.paxos.as_mut().unwrap().coordination = CoordinationName::Embedded;
    assert!(matches!(config.check(), Err(ConfigError::EtcdUnused)));
    config.engine = EngineName::Lcr;
    assert!(matches!(config.check(), Err(ConfigError::PaxosUnused)));
}
