//! Rules of the ring that its pages list and no run shows by itself: one member, whose neighbours are the test.

mod one_node;

use one_node::{ME, Node};
use rota_ring::wire::Packet;

/// Behind the token leaves only what is accelerated.
fn data_behind_the_token(sent: &[Packet]) -> (usize, usize) {
    let is_token = |packet: &Packet| matches!(packet, Packet::Token(_));
    let token = sent.iter().position(is_token).expect("a token");
    let data = |packets: &[Packet]| {
        let data = packets.iter();
        data.filter(|packet| matches!(packet, Packet::Data(_)))
            .count()
    };
    (data(&sent[..token]), data(&sent[token..]))
}

#[test]
fn nothing_is_accelerated_before_a_ring_is_installed() {
    let mut node = Node::operational(ME);
    node.submit();
    let token = node.next_token();
    node.tell(&Packet::Token(token));
    assert_eq!(data_behind_the_token(&node.sent()), (0, 1), "accelerated");
    // The peer has not got the packet, and says so in the commit token: it is sent again on the ring to be.
    node.wait_for("gathering");
    node.commit_anew();
    let second = node.second_visit();
    node.tell(&Packet::Commit(second));
    assert_eq!(node.phase(), "recovering");
    node.sent();
    let first = node.first_token();
    node.tell(&Packet::Token(first));
    let sent = node.sent();
    let is_wrapped = |packet: &Packet| matches!(packet, Packet::Data(data) if data.encapsulated);
    assert!(sent.iter().any(is_wrapped), "{sent:?}");
    assert_eq!(data_behind_the_token(&sent), (1, 0));
}
