//! Links between drivers, over real sockets on the loopback interface.

#[path = "links/chatty.rs"]
mod chatty;
#[path = "links/world.rs"]
mod world;

use bytes::Bytes;
use chatty::Heard;
use rota_core::contract::{Channel, Session};
use rota_net::links::{MESSAGE_BYTES, QUEUE_BYTES};
use rota_node::NodeConfig;
use world::{Node, World, config, id, linked, sealed, until};

/// Messages of different sizes, each of its own.
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

/// Sends all of these and waits until as many have come.
fn pass(one: &mut Node, two: &mut Node, messages: &[Bytes]) {
    let (from, to) = (one.process.node, two.process.node);
    let before = two.chatty().count(from);
    for message in messages {
        one.tell(|engine| engine.say(to, message.clone()));
    }
    until(&mut [one, two], "all messages", |nodes| {
        nodes[1].chatty().count(from) >= before + messages.len()
    });
}

fn all_arrives_in_order_both_ways(config: &NodeConfig) {
    let (mut one, mut two) = (Node::start(config, 1), Node::start(config, 2));
    let session = linked(&mut one, &mut two);
    assert_eq!(session, Session(1));
    assert_eq!(one.chatty().heard, [Heard::Up(two.process, session)]);
    assert_eq!(two.chatty().heard, [Heard::Up(one.process, session)]);
    let there = numbered(3000, |number| number * 7 % 3000);
    let back = numbered(500, |number| number * 331 % 90_000);
    for message in &back {
        two.tell(|engine| engine.say(id(1), message.clone()));
    }
    pass(&mut one, &mut two, &there);
    until(&mut [&mut one, &mut two], "all messages", |nodes| {
        nodes[0].chatty().count(id(2)) >= back.len()
    });
    assert!(two.chatty().messages(id(1), session) == there);
    assert!(one.chatty().messages(id(2), session) == back);
    assert_eq!(one.stats().link_messages_out, there.len() as u64);
    assert_eq!(two.stats().link_messages_in, there.len() as u64);
    assert_eq!(one.stats().link_sessions, 1);
}

#[test]
fn two_nodes_have_one_session_and_all_arrives_in_order_both_ways() {
    all_arrives_in_order_both_ways(&config(2));
}

#[test]
fn the_same_with_a_key() {
    let world = World::new();
    all_arrives_in_order_both_ways(&sealed(&config(2), &world.new_key("key")));
}

#[test]
fn messages_of_all_sizes_around_those_of_records_arrive_on_their_channels() {
    let world = World::new();
    for config in [config(2), sealed(&config(2), &world.new_key("key"))] {
        let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
        linked(&mut one, &mut two);
        const RECORD: usize = 32 << 10;
        let around = [RECORD, 2 * RECORD, 3 * RECORD].map(|size| size - 80..size + 10);
        let sizes: Vec<usize> = around
            .into_iter()
            .flatten()
            .chain([0, 1, MESSAGE_BYTES])
            .collect();
        for (number, size) in sizes.iter().enumerate() {
            let (channel, bytes) = (Channel(number as u8), vec![number as u8; *size]);
            one.tell(|engine| engine.say_on(id(2), channel, bytes));
        }
        until(&mut [&mut one, &mut two], "all sizes", |nodes| {
            nodes[1].chatty().count(id(1)) == sizes.len()
        });
        let heard = two.chatty().heard.iter().skip(1);
        for ((number, size), heard) in sizes.iter().enumerate().zip(heard) {
            let bytes = Bytes::from(vec![number as u8; *size]);
            let expected = Heard::Message(id(1), Session(1), Channel(number as u8), bytes);
            assert!(*heard == expected, "{size} bytes");
        }
    }
}

#[test]
fn three_nodes_have_a_session_for_each_two() {
    let config = config(3);
    let mut nodes = [1, 2, 3].map(|number| Node::start(&config, number));
    let mut all: Vec<&mut Node> = nodes.iter_mut().collect();
    until(&mut all, "three links", |nodes| {
        nodes.iter().all(|node| node.chatty().links() == 2)
    });
    for node in &mut all {
        let me = node.process.node;
        for to in [1, 2, 3].map(id).into_iter().filter(|to| *to != me) {
            let text = format!("{me} to {to}");
            node.tell(|engine| engine.say(to, text));
        }
    }
    until(&mut all, "six messages", |nodes| {
        let heard_both = |node: &&mut Node| {
            let count = |from: u16| node.chatty().count(id(from));
            count(1) + count(2) + count(3) == 2
        };
        nodes.iter().all(heard_both)
    });
    for node in &all {
        let me = node.process.node;
        for from in [1, 2, 3].map(id).into_iter().filter(|from| *from != me) {
            let session = node.chatty().session(from).expect("a session");
            let said = node.chatty().messages(from, session);
            assert_eq!(said, [format!("{from} to {me}")]);
        }
    }
}

#[test]
fn who_does_not_read_is_not_sent_more_than_the_queue_and_the_kernel_take() {
    let config = config(2);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    let session = linked(&mut one, &mut two);
    let messages = numbered(2000, |_| 10_000);
    for message in &messages {
        one.tell(|engine| engine.say(id(2), message.clone()));
    }
    // Until it takes no more, whatever happens at this end.
    let (mut taken, mut same) = (0, 0);
    while same < 300 {
        one.turn();
        let now = one.chatty().taken;
        same = if now == taken { same + 1 } else { 0 };
        taken = now;
    }
    assert!(one.chatty().held_back(id(2)) > 0, "all of it was taken");
    // The buffers of both ends in the kernel hold at most 4 and 6 MiB by default.
    assert!(
        taken >= QUEUE_BYTES,
        "{taken} bytes are less than the queue"
    );
    assert!(taken <= QUEUE_BYTES + (12 << 20), "{taken} bytes");
    let rooms = one.chatty().rooms;
    (0..50).for_each(|_| one.turn());
    assert_eq!(one.chatty().rooms, rooms, "room where nothing left");
    until(&mut [&mut one, &mut two], "the rest", |nodes| {
        nodes[1].chatty().count(id(1)) == messages.len()
    });
    assert!(two.chatty().messages(id(1), session) == messages);
    assert!(one.chatty().least_growth >= Some(QUEUE_BYTES / 16));
    // One word for each sixteenth, and not for each message.
    let parts = 16 * (messages.len() * 10_000).div_ceil(QUEUE_BYTES);
    assert!(one.chatty().rooms <= parts, "{}", one.chatty().rooms);
}

#[test]
fn a_link_that_was_cut_is_a_new_session_and_nothing_of_the_old_one_comes_in_it() {
    let config = config(2);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    let mut before = linked(&mut one, &mut two);
    for round in 0..6 {
        let messages = numbered(200, |number| 1000 + number + round);
        let count = two.chatty().count(id(1));
        for message in &messages {
            one.tell(|engine| engine.say(id(2), message.clone()));
        }
        until(&mut [&mut one, &mut two], "some messages", |nodes| {
            nodes[1].chatty().count(id(1)) > count
        });
        // Either end can be where it breaks.
        let ends = [(1, 2), (2, 1)];
        let (at, peer) = ends[round % 2];
        let mut set = |is_cut| {
            if at == 1 {
                one.cut(peer, is_cut)
            } else {
                two.cut(peer, is_cut)
            }
        };
        set(true);
        set(false);
        let again = |nodes: &[&mut Node]| {
            let (here, there) = (nodes[0].session(2), nodes[1].session(1));
            here == there && here > Some(before)
        };
        until(&mut [&mut one, &mut two], "another session", again);
        let arrived = two.chatty().messages(id(1), before);
        let of_round = &arrived[arrived.len().saturating_sub(messages.len())..];
        let first_of_them = of_round
            .iter()
            .skip_while(|bytes| bytes.len() != 1000 + round);
        assert!(
            first_of_them
                .zip(&messages)
                .all(|(came, sent)| came == sent)
        );
        // Messages that are sent in a session that has ended go nowhere.
        one.tell(|engine| engine.force(id(2), before, b"of an old session"));
        let now = one.session(2).expect("a session");
        pass(&mut one, &mut two, &numbered(3, |_| 8));
        assert_eq!(two.chatty().messages(id(1), now), numbered(3, |_| 8));
        before = now;
    }
}

#[test]
fn while_a_link_is_cut_there_is_none_and_others_go_on() {
    let config = config(3);
    let mut nodes = [1, 2, 3].map(|number| Node::start(&config, number));
    let mut all: Vec<&mut Node> = nodes.iter_mut().collect();
    let meshed = |nodes: &[&mut Node]| nodes.iter().all(|node| node.chatty().links() == 2);
    until(&mut all, "three links", meshed);
    all[1].cut(1, true);
    until(&mut all, "one link less", |nodes| {
        nodes[0].session(2).is_none() && nodes[1].session(1).is_none()
    });
    // Node 1 tries again and again meanwhile, and is not let in.
    until(&mut all, "refusals", |nodes| {
        nodes[1].stats().link_refused >= 3
    });
    assert_eq!(all[0].session(2), None);
    all[0].tell(|engine| engine.say(id(3), "still here"));
    until(&mut all, "a message", |nodes| {
        nodes[2].chatty().count(id(1)) == 1
    });
    all[1].cut(1, false);
    until(&mut all, "all links again", meshed);
    assert_eq!(all[2].stats().link_ends, 0);
}

#[test]
fn a_restarted_node_is_another_process_whichever_of_the_two_it_is() {
    let config = config(2);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    for round in 0..4 {
        let before = linked(&mut one, &mut two);
        pass(&mut one, &mut two, &numbered(50, |_| 700));
        let (stays, restarted) = if round % 2 == 0 {
            drop(two);
            two = Node::start(&config, 2);
            (&mut one, &mut two)
        } else {
            drop(one);
            one = Node::start(&config, 1);
            (&mut two, &mut one)
        };
        let (who, process) = (restarted.process.node, restarted.process);
        let up = |nodes: &[&mut Node]| nodes[0].chatty().peer(who) == Some(process);
        until(&mut [&mut *stays, restarted], "the new process", up);
        let heard = &stays.chatty().heard;
        let down = heard
            .iter()
            .position(|heard| *heard == Heard::Down(who, before));
        let session = stays.chatty().session(who).expect("a session");
        let up = heard
            .iter()
            .position(|heard| *heard == Heard::Up(process, session));
        assert!(down.expect("down") < up.expect("up"));
        assert!(session > before, "{session:?} after {before:?}");
    }
}

#[test]
fn of_two_processes_with_one_number_only_one_has_the_link_at_a_time() {
    // The engine of node 2 asserts that it never has two sessions with a node.
    let config = config(2);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    linked(&mut one, &mut two);
    // Another at the same address: its datagrams come from other ports, its links from the same one.
    let mut beside = config.clone();
    let place = &mut beside.nodes[0];
    (place.data_port, place.token_port) = (place.data_port + 20, place.token_port + 20);
    let mut twin = Node::start(&beside, 1);
    until(&mut [&mut one, &mut two, &mut twin], "a change", |nodes| {
        nodes[1].stats().link_sessions >= 5
    });
    drop(twin);
    linked(&mut one, &mut two);
    pass(&mut one, &mut two, &numbered(20, |_| 100));
}

#[test]
fn nodes_with_other_keys_clusters_or_none_have_no_link() {
    let world = World::new();
    let config = config(2);
    let first = sealed(&config, &world.new_key("first"));
    let second = sealed(&config, &world.new_key("second"));
    let other_id = sealed(&config, &world.new_key_with_id_2("third"));
    let other_cluster = NodeConfig {
        cluster: 1,
        ..first.clone()
    };
    type Count = fn(&Node) -> u64;
    let forged: Count = |node| node.stats().link_forged;
    let unknown: Count = |node| node.stats().link_unknown_key;
    let refused: Count = |node| node.stats().link_refused;
    let cases = [
        (&first, &second, forged),
        (&first, &other_id, unknown),
        (&first, &config, unknown),
        (&config, &first, unknown),
        (&first, &other_cluster, refused),
    ];
    for (here, there, counter) in cases {
        let (mut one, mut two) = (Node::start(here, 1), Node::start(there, 2));
        until(&mut [&mut one, &mut two], "refusals", |nodes| {
            counter(nodes[1]) >= 3
        });
        assert_eq!((one.chatty().heard.len(), two.chatty().heard.len()), (0, 0));
    }
    let (mut one, mut two) = (Node::start(&first, 1), Node::start(&first, 2));
    linked(&mut one, &mut two);
}

#[test]
fn keys_change_without_a_session_ending_and_new_sessions_have_the_new_ones() {
    let world = World::new();
    let path = world.new_key("key");
    let config = sealed(&config(2), &path);
    let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
    let session = linked(&mut one, &mut two);
    let mut ring = rota_net::KeyRing::load(&path).expect("a key file");
    let old = ring.sending().get();
    let new = ring.add().expect("another key").get();
    let give = |ring: &rota_net::KeyRing, nodes: [&mut Node; 2]| {
        for node in nodes {
            node.keys().set(ring.clone());
        }
    };
    give(&ring, [&mut one, &mut two]);
    pass(&mut one, &mut two, &numbered(10, |_| 100));
    ring.send_with(new).expect("a known key");
    give(&ring, [&mut one, &mut two]);
    pass(&mut one, &mut two, &numbered(10, |_| 100));
    ring.remove(old).expect("an old key");
    give(&ring, [&mut one, &mut two]);
    pass(&mut one, &mut two, &numbered(10, |_| 100));
    assert_eq!(one.session(2), Some(session));
    one.cut(2, true);
    one.cut(2, false);
    until(
        &mut [&mut one, &mut two],
        "a session under the new key",
        |nodes| nodes[0].session(2) > Some(session) && nodes[1].session(1) > Some(session),
    );
    pass(&mut one, &mut two, &numbered(10, |_| 100));
}
