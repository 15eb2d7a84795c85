//! Links between drivers, over real sockets on the loopback interface.

#[path = "links/chatty.rs"]
mod chatty;
#[path = "links/world.rs"]
mod world;

use bytes::Bytes;
use chatty::Heard;
use rota_core::contract::{Channel, Session};
use world::{Node, config, id, linked, until};

/// Messages with different sizes, each of its own.
fn numbered(count: usize, size: impl Fn(usize) -> usize) -> Vec<Bytes> {
    let message = |number: usize| {
        let mut bytes = vec![number as u8; size(number)];
        let label = number.to_le_bytes();
        let len = bytes.len().min(label.len());
        bytes[..len].copy_from_slice(&label[..len]);
        Bytes::from(bytes)
    };
    (0..count).map(message).collect()
}

#[test]
fn two_nodes_have_one_session_and_all_arrives_in_order_both_ways() {
    let config = config(2);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    let session = linked(&mut one, &mut two);
    assert_eq!(session, Session(1));
    assert_eq!(one.chatty().heard, [Heard::Up(two.process, session)]);
    assert_eq!(two.chatty().heard, [Heard::Up(one.process, session)]);
    let there = numbered(3000, |number| number * 7 % 3000);
    let back = numbered(500, |number| number * 331 % 90_000);
    for message in &there {
        one.tell(|engine| engine.say(id(2), message.clone()));
    }
    for message in &back {
        two.tell(|engine| engine.say(id(1), message.clone()));
    }
    until(&mut [&mut one, &mut two], "all messages", |nodes| {
        nodes[1].chatty().count(id(1)) >= there.len()
            && nodes[0].chatty().count(id(2)) >= back.len()
    });
    assert!(two.chatty().messages(id(1), session) == there);
    assert!(one.chatty().messages(id(2), session) == back);
}
