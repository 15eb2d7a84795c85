//! Names of hosts in place of addresses.

use rota_core::contract::NodeId;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use rota_net::{NodeAddress, Transport, look_up};

use super::NodeConfig;

/// The time for which the start of a node waits for other nodes' names: the ring looks them up again while it runs.
const OTHERS_PATIENCE: Duration = Duration::from_secs(1);
/// The time for which it waits for its own name, without which it cannot open its sockets. A name of a host that has just
/// started takes some seconds to get about.
const OWN_PATIENCE: Duration = Duration::from_secs(30);
/// The time between two lookups of its own name.
const AGAIN: Duration = Duration::from_millis(500);

/// The configuration with the addresses that the names of its nodes have, for node `me` if it is chosen.
pub(super) fn resolved(config: &NodeConfig, me: Option<NodeId>) -> NodeConfig {
    let mut hosts = Hosts::of(config);
    if let Some(me) = me {
        hosts.wait_for_own(me);
    }
    let others = hosts.names(|id| Some(id) != me);
    if !others.is_empty() {
        hosts.take(look_up(&others, OTHERS_PATIENCE));
    }
    NodeConfig {
        nodes: hosts.nodes,
        ..config.clone()
    }
}

/// The nodes, while their names are looked up.
struct Hosts {
    nodes: Vec<NodeAddress>,
    /// Whether the multicast group is of IPv4, if there is one.
    group_is_v4: Option<bool>,
}

impl Hosts {
    fn of(config: &NodeConfig) -> Self {
        let group_is_v4 = match config.transport {
            Transport::Multicast(group) => Some(group.is_ipv4()),
            Transport::Unicast => None,
        };
        Self {
            nodes: config.nodes.clone(),
            group_is_v4,
        }
    }

    /// The names of the nodes for which `wanted` holds, of those that have no address yet: a service looks names up for
    /// its own connections before its rings do.
    fn names(&self, wanted: impl Fn(NodeId) -> bool) -> Vec<(NodeId, String)> {
        let nodes = self.nodes.iter().filter(|node| !node.is_known());
        let named = nodes.filter_map(|node| Some((NodeId::new(node.id)?, node.host.clone()?)));
        named.filter(|(id, _)| wanted(*id)).collect()
    }

    fn wait_for_own(&mut self, me: NodeId) {
        let own = self.names(|id| id == me);
        let until = Instant::now() + OWN_PATIENCE;
        let mut is_said = false;
        while let [(_, host)] = &own[..] {
            self.take(look_up(
                &own,
                until.saturating_duration_since(Instant::now()),
            ));
            let is_known = NodeAddress::find(&self.nodes, me).is_some_and(NodeAddress::is_known);
            if is_known || Instant::now() >= until {
                return;
            }
            if !is_said {
                tracing::warn!(
                    host,
                    "the name of this node has no address yet: waiting for it"
                );
                is_said = true;
            }
            thread::sleep(AGAIN);
        }
    }

    /// Takes over the first address of each name that fits the sockets.
    fn take(&mut self, found: BTreeMap<NodeId, Vec<IpAddr>>) {
        for (id, found) in found {
            let is_v4 = self.version();
            let fits = |ip: &&IpAddr| is_v4.is_none_or(|is_v4| ip.is_ipv4() == is_v4);
            let ip = found.iter().find(fits).copied();
            let node = self.nodes.iter_mut().find(|node| node.id == id.get());
            if let (Some(node), Some(ip)) = (node, ip) {
                node.address = ip;
            }
        }
    }

    /// Whether the addresses are of IPv4: as the multicast group is, or the first address that is known. `None`: nothing says so.
    fn version(&self) -> Option<bool> {
        let mut known = self.nodes.iter().filter(|node| node.is_known());
        self.group_is_v4
            .or_else(|| known.next().map(|node| node.address.is_ipv4()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).unwrap()
    }

    fn named(hosts: &[&str]) -> NodeConfig {
        let mut text = NodeConfig::loopback(hosts.len() as u16, 27_700)
            .to_toml()
            .expect("TOML");
        for host in hosts {
            text = text.replacen("\"127.0.0.1\"", &format!("\"{host}\""), 1);
        }
        NodeConfig::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn names_are_read_written_and_looked_up() {
        let config = named(&["localhost", "localhost"]);
        assert_eq!(config.nodes[1].host.as_deref(), Some("localhost"));
        assert!(!config.nodes[1].is_known());
        assert_eq!(config.address(id(2)), None, "it has not been looked up");
        assert!(
            config
                .to_toml()
                .expect("TOML")
                .contains("address = \"localhost\"")
        );
        let resolved = config.resolved(id(1));
        assert!(resolved.nodes.iter().all(|node| node.address.is_loopback()));
        assert_eq!(resolved.nodes[0].host.as_deref(), Some("localhost"));
        let addresses = [1, 2].map(|node| resolved.address(id(node)).map(|ip| ip.is_loopback()));
        assert_eq!(addresses, [Some(true); 2]);
        assert_eq!(resolved.address(id(3)), None, "it is not listed");
    }

    #[test]
    fn another_nodes_name_without_an_address_does_not_keep_the_node_from_starting() {
        let config = named(&["localhost", "no-such-host.invalid"]);
        let resolved = config.resolved(id(1));
        assert!(resolved.nodes[0].is_known() && !resolved.nodes[1].is_known());
        resolved.check().expect("it may come");
    }

    /// A service that had looked up the names of its file waited for them again when its rings began.
    #[test]
    fn a_name_that_has_an_address_is_not_looked_up_again() {
        let mut config = named(&["localhost", "localhost"]).resolved(id(1));
        for node in &mut config.nodes {
            node.host = Some("no-such-host.invalid".to_owned());
        }
        assert_eq!(Hosts::of(&config).names(|_| true), []);
        assert_eq!(config.resolved(id(1)), config);
    }

    #[test]
    fn addresses_need_no_lookup() {
        let config = NodeConfig::loopback(2, 27_710);
        assert_eq!(config.resolved(id(1)), config);
    }

    #[test]
    fn two_nodes_on_one_host_need_two_ports() {
        let mut config = named(&["one", "one"]);
        config.nodes[1].data_port = config.nodes[0].data_port;
        config.nodes[1].token_port = config.nodes[0].token_port;
        config
            .check()
            .expect_err("two sockets would have one address");
        let mut config = named(&["one", "two"]);
        config.nodes[1].data_port = config.nodes[0].data_port;
        config.nodes[1].token_port = config.nodes[0].token_port;
        config.check().expect("two hosts");
    }

    #[test]
    fn what_cannot_be_a_name_is_refused() {
        for host in ["", "two words", "-x", "a..b", "1.2.3", "host:7701"] {
            let config = NodeConfig::loopback(1, 27_720).to_toml().expect("TOML");
            let text = config.replace("\"127.0.0.1\"", &format!("{host:?}"));
            assert!(NodeConfig::from_toml(&text).is_err(), "{host:?}");
        }
    }
}
