use super::*;

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

fn peers() -> Peers {
    let mut network = Network::loopback(3, 27_900);
    network.open_membership = true;
    Peers::new(&network, id(1))
}

fn hello(node: u16, cluster: u32, kind: u8) -> Vec<u8> {
    let mut datagram = vec![0; 60];
    datagram[0] = VERSION;
    datagram[1] = kind;
    datagram[4..8].copy_from_slice(&cluster.to_le_bytes());
    datagram[32..34].copy_from_slice(&node.to_le_bytes());
    datagram
}

fn from(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

#[test]
fn a_stranger_is_where_its_datagram_came_from_and_its_data_port_is_one_below() {
    let mut peers = peers();
    assert!(peers.learn(&hello(9, 27_900, 3), from(9, 7702)));
    assert_eq!(peers.at(from(9, 7702)), Some(id(9)));
    assert_eq!(peers.at(from(9, 7701)), Some(id(9)));
    assert!(peers.learn(&hello(9, 27_900, 3), from(8, 7702)), "moved");
    assert_eq!(peers.at(from(9, 7702)), None);
    assert!(!peers.hear(from(9, 1).ip()) && peers.hear(from(8, 1).ip()));
}

#[test]
fn nothing_is_learned_from_what_is_not_a_control_datagram_of_this_cluster() {
    let mut peers = peers();
    let mut version = hello(9, 27_900, 3);
    version[0] ^= 1;
    let wrong = [
        hello(9, 27_901, 3),
        hello(9, 27_900, 0),
        hello(0, 27_900, 3),
        hello(1, 27_900, 3),
        hello(2, 27_900, 3),
        version,
        vec![VERSION; 20],
    ];
    for datagram in wrong {
        assert!(!peers.learn(&datagram, from(9, 7702)), "{datagram:?}");
    }
    for port in [0, 1] {
        assert!(!peers.learn(&hello(9, 27_900, 3), from(9, port)));
    }
    assert_eq!(peers.all.len(), 2);
}

#[test]
fn a_configured_node_stays_where_it_is_and_nobody_else_is_there() {
    let mut peers = peers();
    let here = peers.all[0].token.as_socket();
    assert!(peers.learn(&hello(9, 27_900, 3), here.unwrap()));
    assert_eq!(peers.all.len(), 2);
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], 9));
    assert!(peers.learn(&hello(2, 27_900, 3), elsewhere));
    assert_eq!(peers.all[0].token.as_socket(), here);
    assert_eq!(peers.at(elsewhere), None);
}

#[test]
fn the_one_that_was_not_used_for_longest_is_forgotten() {
    let mut peers = peers();
    let first = 100;
    for node in first..first + MOST_LEARNED as u16 {
        peers.learn(&hello(node, 27_900, 3), from(1, node));
    }
    peers.use_of(id(first));
    peers.learn(&hello(first + 1, 27_900, 3), from(1, first + 1));
    peers.learn(&hello(9, 27_900, 3), from(9, 7702));
    assert_eq!(peers.all.len(), 2 + MOST_LEARNED);
    let known = |peers: &Peers, node| peers.all.iter().any(|peer| peer.node == id(node));
    assert!(known(&peers, 2) && known(&peers, 3), "configured");
    assert!(known(&peers, first) && known(&peers, first + 1) && known(&peers, 9));
    assert!(!known(&peers, first + 2));
}

/// Node 1 of three; node 2 has a name.
fn named() -> Peers {
    let mut network = Network::loopback(3, 27_900);
    network.nodes[1].host = Some("two".to_owned());
    Peers::with_names(&network, id(1), None)
}

fn ip(last: u8) -> IpAddr {
    from(last, 1).ip()
}

#[test]
fn a_node_is_at_its_new_address_when_it_has_spoken_from_there() {
    let mut peers = named();
    let ports = [27_903, 27_904];
    let there = from(9, ports[1]);
    assert!(!peers.may_learn_from(there));
    peers.find(id(2), &[ip(9)]);
    assert_eq!(peers.next_moved(), Some((id(2), ip(9))));
    assert!(peers.may_learn_from(there) && peers.hear(ip(9)));
    let old = SocketAddr::from(([127, 0, 0, 1], ports[1]));
    assert_eq!(peers.at(old), Some(id(2)), "it may still be where it was");
    // Another node there, or another port: that is not the node.
    assert!(peers.learn(&hello(3, 27_900, 3), there));
    assert!(peers.learn(&hello(2, 27_900, 3), from(9, 5)));
    assert_eq!(peers.at(old), Some(id(2)));
    assert!(peers.learn(&hello(2, 27_900, 3), there));
    assert_eq!((peers.at(old), peers.at(there)), (None, Some(id(2))));
    assert_eq!(peers.at(from(9, ports[0])), Some(id(2)), "data, too");
    assert!(!peers.may_learn_from(there), "it has been learned");
    assert_eq!(peers.next_moved(), None);
}

#[test]
fn an_address_of_the_name_that_is_the_nodes_already_is_no_move() {
    let mut peers = named();
    let here = IpAddr::from([127, 0, 0, 1]);
    peers.find(id(2), &[ip(9), here]);
    assert_eq!(peers.next_moved(), None);
    peers.find(id(2), &[IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 9])]);
    assert_eq!(peers.next_moved(), None, "of the other version of IP");
    peers.find(id(2), &[ip(9)]);
    peers.find(id(2), &[ip(9)]);
    assert_eq!(peers.moved.len(), 1, "said once");
}

#[test]
fn a_node_without_an_address_is_nowhere_until_its_name_has_one() {
    let mut network = Network::loopback(3, 27_900);
    network.nodes[1].host = Some("two".to_owned());
    network.nodes[1].address = IpAddr::from([0, 0, 0, 0]);
    let mut peers = Peers::with_names(&network, id(1), None);
    assert!(!peers.get(0).unwrap().is_somewhere && !peers.hear(IpAddr::from([0, 0, 0, 0])));
    assert_eq!(peers.without_address().len(), 1);
    peers.find(id(2), &[ip(9)]);
    assert!(peers.hear(ip(9)) && peers.without_address().is_empty());
    assert_eq!(peers.at(from(9, 27_904)), Some(id(2)));
}

#[test]
fn strangers_are_not_learned_where_only_names_may_move() {
    let mut peers = named();
    peers.find(id(2), &[ip(9)]);
    peers.learn(&hello(7, 27_900, 3), from(9, 7702));
    assert_eq!(peers.at(from(9, 7702)), None);
}

#[test]
fn nodes_that_stay_listed_stay_where_they_are_and_others_are_heard_no_more() {
    let mut peers = named();
    peers.find(id(2), &[ip(9)]);
    assert!(
        peers.learn(&hello(2, 27_900, 3), from(9, 27_904)),
        "it has moved"
    );
    let mut network = Network::loopback(4, 27_900);
    network.nodes[1].host = Some("two".to_owned());
    network.nodes[1].address = IpAddr::from([0, 0, 0, 0]);
    network.nodes[2].address = ip(3);
    peers.relist(&network);
    assert_eq!(peers.at(from(9, 27_904)), Some(id(2)), "as it was known");
    assert_eq!(peers.at(from(3, 27_906)), Some(id(3)), "at another address");
    assert_eq!(peers.at(network.nodes[3].token()), Some(id(4)), "new");
    network.nodes.remove(1);
    peers.relist(&network);
    assert!(!peers.hear(ip(9)) && peers.hear(ip(3)));
}
