use rota_core::contract::NodeId;
use rota_net::Transport;
use rota_node::VoteStorage;

use super::*;

fn hosts(text: &str) -> Vec<Host> {
    let hosts: Result<Vec<Host>, String> = text.split(',').map(str::parse).collect();
    hosts.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The configuration for these hosts.
fn planned(list: &str, change: impl FnOnce(&mut Plan<'_>)) -> Result<NodeConfig, String> {
    let hosts = hosts(list);
    let mut plan = Plan {
        cluster: 0x0102_0304,
        engine: EngineName::default(),
        hosts: &hosts,
        multicast: None,
        interface: None,
        port: 7701,
        key: Path::new("/etc/rota/a \"key\""),
        state_dir: Path::new("/var/lib/rota"),
        run_dir: Path::new("/run/rota"),
        one_host: false,
    };
    change(&mut plan);
    text::write(&plan).and_then(|text| checked(&text))
}

#[test]
fn a_host_is_an_address_with_or_without_a_name() {
    let host = |text: &str| text.parse::<Host>().map(|host| (host.name, host.address));
    let left = Some("left".to_owned());
    assert_eq!(host("left=10.0.0.1"), Ok((left, "10.0.0.1".to_owned())));
    assert_eq!(host(" fd00::1 "), Ok((None, "fd00::1".to_owned())));
    for (wrong, word) in [
        ("left=a host", "\"a host\" is no address"),
        ("=10.0.0.1", "no name before"),
        ("a=b=10.0.0.1", "no address"),
        ("a=\"", "no address"),
        ("", "no address"),
    ] {
        let error = host(wrong).expect_err(wrong);
        assert!(error.contains(word), "{wrong}: {error}");
    }
}

#[test]
fn every_engine_has_a_configuration_that_it_can_run_with() {
    for engine in EngineName::ALL {
        let config = planned("a=10.0.0.1,b=10.0.0.2,10.0.0.3", |plan| {
            plan.engine = engine
        });
        let config = config.unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!((config.engine, config.cluster), (engine, 0x0102_0304));
        assert_eq!(config.transport, Transport::Unicast);
        assert!(!config.insecure);
        let key = config.key_file.as_deref();
        assert_eq!(key, Some(Path::new("/etc/rota/a \"key\"")));
        let names = config.nodes.iter().map(|node| node.name.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), [Some("a"), Some("b"), None]);
        for id in 1..=3 {
            let id = NodeId::new(id).expect("not 0");
            assert_eq!(config.node(id).map(|node| node.token_port), Some(7702));
        }
        let storage = config.paxos.map(|paxos| paxos.storage);
        let stored = engine.has_votes().then_some(VoteStorage::Sync);
        assert_eq!(storage, stored, "{engine}");
    }
}

#[test]
fn multicast_has_a_group_of_the_clusters_own_or_the_one_that_is_given() {
    let transport = |list: &str, group, interface| {
        let config = planned(list, |plan| {
            plan.multicast = Some(group);
            plan.interface = interface;
        });
        config.map(|config| config.transport)
    };
    let at = |text: &str| Transport::Multicast(text.parse().expect("an address"));
    let own = transport("10.0.0.1,10.0.0.2", None, None);
    assert_eq!(own, Ok(at("239.192.3.4:7700")));
    let given = "239.1.2.3:9000";
    let group = Some(given.parse().expect("an address"));
    assert_eq!(transport("10.0.0.1,10.0.0.2", group, None), Ok(at(given)));
    let own = transport("fd00::1,fd00::2", None, Some("eth0"));
    assert_eq!(own, Ok(at("[ff15::7207:304]:7700")));
    let error = transport("fd00::1,fd00::2", None, None).expect_err("it needs an interface");
    assert!(error.contains("interface"), "{error}");
}

#[test]
fn nodes_at_one_address_have_ports_and_sockets_of_their_own() {
    let list = "10.0.0.1,10.0.0.1,10.0.0.2,10.0.0.1";
    assert!(hosts::share_an_address(&hosts(list)));
    assert!(hosts::share_an_address(&hosts("127.0.0.1,127.0.0.2")));
    assert!(!hosts::share_an_address(&hosts("10.0.0.1,10.0.0.2")));
    let config = planned(list, |plan| plan.one_host = true).expect("a configuration");
    let ports = config
        .nodes
        .iter()
        .map(|node| (node.data_port, node.token_port));
    let expected = [(7701, 7702), (7703, 7704), (7701, 7702), (7705, 7706)];
    assert_eq!(ports.collect::<Vec<_>>(), expected);
    let daemon = config.daemon.expect("a section");
    assert_eq!(
        daemon["socket"].as_str(),
        Some("/run/rota/rota-{node}.sock")
    );
    let error = planned("10.0.0.1,10.0.0.1", |plan| plan.port = 65_533);
    let error = error.expect_err("there are two ports left, and four are needed");
    assert!(error.contains("no ports left"), "{error}");
}

#[test]
fn what_a_cluster_cannot_have_is_refused_in_words() {
    for (list, word) in [
        ("a=10.0.0.1,a=10.0.0.2", "two nodes"),
        ("a b=10.0.0.1", "name"),
        ("10.0.0.1,fd00::1", "fd00::1"),
        ("10.0.0.1,127.0.0.1", "loopback"),
        ("0.0.0.0", "0.0.0.0"),
        ("10.0.0.1:7", "address"),
    ] {
        let error = planned(list, |_| ()).expect_err(list);
        assert!(error.contains(word), "{list}: {error}");
    }
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let (config, key) = (dir.path().join(CONFIG), dir.path().join(KEY));
    let names = || {
        let entries = fs::read_dir(dir.path()).expect("it is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.collect::<Vec<_>>()
    };
    let nobody = Owner {
        name: "nobody".to_owned(),
        uid: u32::MAX - 1,
        gid: u32::MAX - 1,
    };
    // Whoever is not root cannot give files away, and root's kernel takes any number.
    if !nix::unistd::Uid::effective().is_root() {
        assert!(write("", (&config, &key), Some(&nobody)).is_err());
        assert!(names().is_empty());
    }
    let missing = dir.path().join("file");
    fs::write(&missing, "").expect("a file");
    assert!(write("", (&missing.join(CONFIG), &missing.join(KEY)), None).is_err());
    assert_eq!(names(), ["file"]);
    write("text", (&config, &key), None).expect("written");
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!((mode(&config), mode(&key)), (0o644, 0o600));
    let before = fs::read(&key).expect("a key");
    for gone in [&config, &key] {
        fs::remove_file(gone).expect("removed");
        let refused = write("new", (&config, &key), None).expect_err("one of them is there");
        assert!(
            refused.to_string().contains("not written over"),
            "{refused}"
        );
        assert!(!gone.exists());
        if *gone == config {
            fs::write(&config, "text").expect("written");
            assert_eq!(fs::read(&key).expect("a key"), before);
        }
    }
    assert_eq!(fs::read_to_string(&config).expect("a file"), "text");
}
