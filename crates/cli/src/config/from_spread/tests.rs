use rota_core::EngineName;
use rota_daemon::DaemonConfig;
use rota_net::Transport;
use rota_node::{NodeConfig, TimingName};

use super::{read, write};

fn convert(text: &str) -> (NodeConfig, DaemonConfig, Vec<String>) {
    let conf = read::read(text).unwrap_or_else(|error| panic!("{error}"));
    let (text, remarks) = write::write(&conf).unwrap_or_else(|error| panic!("{error}"));
    let config = NodeConfig::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let daemon = DaemonConfig::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (config, daemon, remarks)
}

const ONE_SEGMENT: &str = r#"
# Three machines.
Spread_Segment  10.0.0.255:4913 {
    alpha       10.0.0.1   { D 10.0.0.1  C 10.1.0.1 }
    beta        10.0.0.2 ;
    10.0.0.3
}
DebugFlags = { PRINT EXIT }
EventLogFile = "/var/log/spread # not a comment"
DangerousMonitor = true
Window = 200
PersonalWindow = 40
AcceleratedWindow = 35
"#;

#[test]
fn one_segment_becomes_one_ring_with_the_same_windows_and_ports() {
    let (config, daemon, remarks) = convert(ONE_SEGMENT);
    assert_eq!(config.engine, EngineName::AcceleratedRing);
    let names: Vec<Option<&str>> = config
        .nodes
        .iter()
        .map(|node| node.name.as_deref())
        .collect();
    assert_eq!(names, [Some("alpha"), Some("beta"), None]);
    assert_eq!(config.nodes[2].address.to_string(), "10.0.0.3");
    assert_eq!(
        (config.nodes[0].data_port, config.nodes[0].token_port),
        (4913, 4914)
    );
    let windows = [
        config.global_window,
        config.personal_window,
        config.accelerated_window,
    ];
    assert_eq!(windows, [Some(200), Some(40), Some(35)]);
    let group = "239.192.0.255:4913".parse().expect("an address");
    assert_eq!(config.transport, Transport::Multicast(group));
    let spread = daemon.spread.expect("for Spread's clients");
    assert_eq!(spread.socket.expect("a socket").to_str(), Some("/tmp/4913"));
    for said in [
        "broadcast address",
        "DangerousMonitor",
        "EventLogFile",
        "alpha: its interfaces",
    ] {
        assert!(
            remarks.iter().any(|remark| remark.contains(said)),
            "{said}: {remarks:?}"
        );
    }
    assert!(!remarks.iter().any(|remark| remark.contains("DebugFlags")));
}

#[test]
fn several_segments_are_a_wide_ring_of_the_original_protocol() {
    let text = "Spread_Segment 10.0.0.255:4803 { a 10.0.0.1 }\nSpread_Segment 10.9.0.255:4803 { b 10.9.0.1 }\n";
    let (config, _, remarks) = convert(text);
    assert_eq!(config.engine, EngineName::TotemRing);
    assert_eq!(
        (config.timing, config.transport),
        (TimingName::Relaxed, Transport::Unicast)
    );
    assert!(remarks[0].contains("no segments"), "{remarks:?}");
    let (config, ..) = convert(&format!(
        "AcceleratedRing = true\nWideAreaNetwork = false\n{text}"
    ));
    assert_eq!(config.engine, EngineName::AcceleratedRing);
    assert_eq!(config.timing, TimingName::Default);
}

#[test]
fn names_without_addresses_are_looked_up() {
    let (config, ..) = convert("Spread_Segment 225.0.1.1 { one VirtualID = 7 two }");
    let hosts: Vec<Option<&str>> = config
        .nodes
        .iter()
        .map(|node| node.host.as_deref())
        .collect();
    assert_eq!(hosts, [Some("one"), Some("two")]);
    let group = "225.0.1.1:4803".parse().expect("an address");
    assert_eq!(config.transport, Transport::Multicast(group));
}

#[test]
fn the_same_daemons_have_the_same_cluster_number() {
    let (one, ..) = convert(ONE_SEGMENT);
    let (again, ..) = convert(&ONE_SEGMENT.replace("200", "160"));
    let (other, ..) = convert(&ONE_SEGMENT.replace("beta", "gamma"));
    assert_eq!(one.cluster, again.cluster);
    assert_ne!(one.cluster, other.cluster);
}

#[test]
fn half_a_file_is_refused_with_its_line() {
    for (text, said) in [
        ("", "no Spread_Segment"),
        ("Window = 100", "no Spread_Segment"),
        (
            "Spread_Segment 10.0.0.255:4803 { a 10.0.0.1",
            "the file ends",
        ),
        (
            "Spread_Segment 10.0.0.255:x { a 10.0.0.1 }",
            "line 1: `10.0.0.255:x`",
        ),
        (
            "\n= 5\nSpread_Segment 10.0.0.255 { a 10.0.0.1 }",
            "line 2: `=`",
        ),
        (
            "EventLogFile = \"x\nSpread_Segment 10.0.0.255 { a 10.0.0.1 }",
            "line 1: a quote",
        ),
        (
            "Spread_Segment 10.0.0.255 { a 10.0.0.1 VirtualID 5 }",
            "line 1: `5`",
        ),
    ] {
        let error = read::read(text).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    let conf = read::read("Window = x\nSpread_Segment 10.0.0.255 { a 10.0.0.1 }").expect("sound");
    assert!(
        write::write(&conf)
            .expect_err("no number")
            .contains("Window = x")
    );
}
