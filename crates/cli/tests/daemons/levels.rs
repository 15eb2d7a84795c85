//! Levels of the log, changed while a daemon runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_node::{EngineName, NodeConfig};

use crate::access::await_line;
use crate::bad_clients::status;
use crate::cluster::Cluster;
use crate::native::PATIENCE;
use crate::reload::{configuration, reload};

/// The daemon that others connect to: of two nodes the one with the larger number.
const LISTENS: u16 = 2;

/// Connections to it that were refused as links.
fn refused(cluster: &Cluster) -> u64 {
    let count = status(cluster, LISTENS)["counters"]["net_link_refused"].as_u64();
    count.expect("a counter")
}

/// Connects where links are expected, and says something else; ends when the daemon has noticed.
fn poke(cluster: &Cluster) {
    let text = configuration(cluster, LISTENS);
    let config = NodeConfig::from_toml(&text).expect("a configuration");
    let node = config
        .node(NodeId::new(LISTENS).expect("not 0"))
        .expect("it is listed");
    let before = refused(cluster);
    let mut stream = TcpStream::connect(node.link()).expect("it listens");
    stream.write_all(&[b'x'; 4096]).expect("written");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    // The end may be rough.
    let _ = stream.read_to_end(&mut Vec::new());
    let until = Instant::now() + PATIENCE;
    while refused(cluster) == before {
        assert!(Instant::now() < until, "it has not noticed");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_target_says_more_after_a_reload_and_a_level_that_is_none_changes_nothing() {
    const SAID: &str = "a connection is no link";
    let cluster = Cluster::voting(2, EngineName::URingPaxos);
    poke(&cluster);
    assert_eq!(cluster.said(SAID), 0);
    let text = configuration(&cluster, LISTENS);
    let with =
        |levels: &str| text.replacen("[daemon]\n", &format!("[daemon]\nlog = \"{levels}\"\n"), 1);
    let (code, said) = reload(&cluster, LISTENS, &with("info,rota_net::links=debug"));
    assert_eq!((code, said.trim_end()), (Some(0), "changed: daemon.log"));
    poke(&cluster);
    await_line(&cluster, SAID);
    let (code, said) = reload(&cluster, LISTENS, &with("info,rota_net=loud"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("log = \"info,rota_net=loud\""), "{said}");
    let before = cluster.said(SAID);
    poke(&cluster);
    let until = Instant::now() + PATIENCE;
    while cluster.said(SAID) == before {
        assert!(Instant::now() < until, "the levels from before hold");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (code, _) = reload(&cluster, LISTENS, &with("off"));
    assert_eq!(code, Some(0));
    let before = cluster.said("reloaded");
    let (code, _) = reload(&cluster, LISTENS, &text);
    assert_eq!(code, Some(0));
    let until = Instant::now() + PATIENCE;
    while cluster.said("reloaded") == before {
        assert!(Instant::now() < until, "what is off comes on again");
        std::thread::sleep(Duration::from_millis(10));
    }
}
