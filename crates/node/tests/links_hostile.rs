//! Links with a host on the path between the nodes, and with others at their ports.

#[allow(dead_code, reason = "another test uses the rest")]
#[path = "links/chatty.rs"]
mod chatty;
#[path = "links/proxy.rs"]
mod proxy;
#[allow(dead_code, reason = "another test uses the rest")]
#[path = "links/world.rs"]
mod world;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use proxy::{Mode, Proxy};
use rota_node::NodeConfig;
use world::{Node, World, config, id, sealed, until, until_with};

/// Two nodes and who is between them.
struct Path {
    one: Node,
    two: Node,
    proxy: Proxy,
    config: NodeConfig,
    led: NodeConfig,
}

impl Path {
    fn new(config: NodeConfig) -> Self {
        let (proxy, led) = Proxy::before(&config, 2);
        let (one, two) = (Node::start(&led, 1), Node::start(&config, 2));
        Self {
            one,
            two,
            proxy,
            config,
            led,
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Node, &Node) -> bool) {
        let Self {
            one, two, proxy, ..
        } = self;
        let done = |nodes: &[&mut Node]| done(nodes[0], nodes[1]);
        until_with(&mut [one, two], what, || proxy.pump(), done);
    }

    fn link(&mut self) {
        self.until("a session", |one, two| {
            one.session(2).is_some() && one.session(2) == two.session(1)
        });
    }

    /// So many messages, which fill the path.
    fn say(&mut self, count: u32, size: usize) -> Vec<Bytes> {
        let message = |number: u32| {
            let mut bytes = vec![7; size];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            Bytes::from(bytes)
        };
        let messages: Vec<_> = (0..count).map(message).collect();
        for message in &messages {
            self.one.tell(|engine| engine.say(id(2), message.clone()));
        }
        messages
    }
}

/// Without a key and with one.
fn both(world: &World) -> [NodeConfig; 2] {
    [config(2), sealed(&config(2), &world.new_key("key"))]
}

#[test]
fn a_turned_bit_ends_the_session_and_nothing_wrong_is_handed_on() {
    let world = World::new();
    for config in both(&world) {
        let mut path = Path::new(config);
        path.link();
        for _ in 0..10 {
            let session = path.one.session(2).expect("a session");
            let said = path.say(40, 5000);
            path.proxy.mode = Mode::Damage;
            path.until("the end of the session", |one, two| {
                one.session(2) > Some(session) && one.session(2) == two.session(1)
            });
            let came = path.two.chatty().messages(id(1), session);
            assert!(came.len() < said.len() && said.starts_with(&came));
            path.two.tell(|engine| engine.heard.clear());
        }
        assert_eq!(path.two.stats().link_forged, 10);
    }
}

#[test]
fn what_is_cut_off_in_the_middle_is_not_handed_on() {
    for bytes in [1, 3, 4, 5, 100, 32 << 10, 40_000, 100_000] {
        let mut path = Path::new(config(2));
        path.link();
        let session = path.one.session(2).expect("a session");
        path.proxy.mode = Mode::EndAfter(bytes);
        let said = path.say(40, 5000);
        path.until("another session", |one, two| {
            one.session(2) > Some(session) && one.session(2) == two.session(1)
        });
        let came = path.two.chatty().messages(id(1), session);
        assert!(
            came.len() * 5000 < bytes && said.starts_with(&came),
            "{bytes} bytes"
        );
        assert_eq!(path.two.stats().link_forged, 0);
    }
}

#[test]
fn what_was_said_in_a_session_begins_none_when_it_is_said_again() {
    let world = World::new();
    let mut path = Path::new(sealed(&config(2), &world.new_key("key")));
    path.link();
    let said = path.say(20, 1000);
    path.until("all messages", |_, two| two.chatty().count(id(1)) == 20);
    let session = path.one.session(2);
    let recorded = path.proxy.said();
    assert!(recorded.len() > said.len() * 1000);
    let mut replays = Vec::new();
    for _ in 0..3 {
        let mut replay = TcpStream::connect(path.config.nodes[1].link()).expect("a port");
        replay.write_all(&recorded).expect("written");
        replays.push(replay);
    }
    path.until("refusals", |_, two| two.stats().link_forged == 3);
    assert_eq!(
        (path.one.session(2), path.two.session(1)),
        (session, session)
    );
    assert_eq!(path.two.chatty().count(id(1)), 20);
    path.say(20, 1000);
    path.until("messages", |_, two| two.chatty().count(id(1)) == 40);
}

#[test]
fn a_dialer_that_is_gone_without_a_word_is_replaced_by_its_next_life() {
    let world = World::new();
    for config in both(&world) {
        let mut path = Path::new(config);
        path.link();
        let before = path.two.session(1).expect("a session");
        path.say(10, 1000);
        path.until("all messages", |_, two| two.chatty().count(id(1)) == 10);
        // Its connection stays open on the other side, and what it had said last comes when it is over.
        path.proxy.mode = Mode::Hold;
        path.say(10, 1000);
        for _ in 0..20 {
            path.one.turn();
            path.proxy.pump();
        }
        let (mut proxy, mut led) = Proxy::before(&path.config, 2);
        // The old life is still there for the host; only the path knows that nothing comes of it any more.
        led.nodes[0].data_port += 20;
        led.nodes[0].token_port += 20;
        let _gone = std::mem::replace(&mut path.one, Node::start(&led, 1));
        std::mem::swap(&mut path.proxy, &mut proxy);
        let now = path.one.process;
        path.until("the next life", |_, two| {
            two.chatty().peer(id(1)) == Some(now)
        });
        proxy.mode = Mode::Pass;
        path.link();
        for _ in 0..20 {
            proxy.pump();
            path.two.turn();
        }
        assert_eq!(path.two.chatty().count(id(1)), 10);
        assert!(path.two.session(1) > Some(before));
        path.say(10, 1000);
        path.until("messages", |_, two| two.chatty().count(id(1)) == 20);
    }
}

#[test]
fn a_path_that_holds_everything_back_only_delays() {
    let mut path = Path::new(config(2));
    path.link();
    let session = path.one.session(2);
    path.proxy.mode = Mode::Hold;
    path.say(40, 500);
    for _ in 0..100 {
        path.one.turn();
        path.two.turn();
    }
    assert_eq!(path.two.chatty().count(id(1)), 0);
    path.proxy.mode = Mode::Pass;
    path.until("all messages", |_, two| two.chatty().count(id(1)) == 40);
    assert_eq!(
        (path.one.session(2), path.two.session(1)),
        (session, session)
    );
}

#[test]
fn who_connects_through_a_path_that_takes_long_gets_in_later() {
    let mut path = Path::new(config(2));
    path.proxy.mode = Mode::Hold;
    // The handshake does not end in time, on either side.
    path.until("given up", |_, two| two.stats().link_silent > 0);
    assert_eq!(path.one.session(2), None);
    path.proxy.mode = Mode::Pass;
    path.link();
    assert!(path.proxy.connections() >= 1);
    assert_eq!(path.led.nodes[0], path.config.nodes[0]);
}

/// Whether the other end has closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("non-blocking");
    match stream.read(&mut [0; 256]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn garbage_is_thrown_out_and_links_go_on() {
    let world = World::new();
    for config in both(&world) {
        let (mut one, mut two) = (Node::start(&config, 1), Node::start(&config, 2));
        let session = world::linked(&mut one, &mut two);
        let mut words = Vec::new();
        for seed in 0..30_u32 {
            let mut word = TcpStream::connect(config.nodes[1].link()).expect("a port");
            let garbage: Vec<u8> = (0..2000_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 13) as u8)
                .collect();
            word.write_all(&garbage).expect("written");
            words.push(word);
        }
        // Bytes that look like a greeting are none either.
        let mut greeting = TcpStream::connect(config.nodes[1].link()).expect("a port");
        let mut hello = vec![0; 88];
        hello[..8].copy_from_slice(b"rotalnk\x01");
        greeting.write_all(&hello).expect("written");
        words.push(greeting);
        until(&mut [&mut one, &mut two], "refusals", |nodes| {
            nodes[1].stats().link_refused == 31
        });
        assert!(words.iter_mut().all(is_closed));
        assert_eq!(
            (one.session(2), two.session(1)),
            (Some(session), Some(session))
        );
        one.tell(|engine| engine.say(id(2), "still here"));
        until(&mut [&mut one, &mut two], "a message", |nodes| {
            nodes[1].chatty().count(id(1)) == 1
        });
    }
}

#[test]
fn who_is_silent_or_slow_is_thrown_out_and_does_not_keep_others_out() {
    let config = config(2);
    let mut two = Node::start(&config, 2);
    let connect = || TcpStream::connect(config.nodes[1].link()).expect("a port");
    // More than one address may have, so that the oldest goes.
    let mut silent: Vec<_> = (0..60).map(|_| connect()).collect();
    until(&mut [&mut two], "a crowd", |nodes| {
        nodes[0].stats().link_crowded >= 40
    });
    assert!(is_closed(&mut silent[0]) && !is_closed(&mut silent[59]));
    let mut slow = connect();
    let mut one = Node::start(&config, 1);
    let session = world::linked(&mut one, &mut two);
    let kept = silent.len() as u64 - two.stats().link_crowded;
    let mut rest = b"rotalnk\x01".iter();
    let drip = || {
        let _ = rest.next().map(|byte| slow.write_all(&[*byte]));
        std::thread::sleep(Duration::from_millis(1));
    };
    until_with(&mut [&mut one, &mut two], "time is over", drip, |nodes| {
        nodes[1].stats().link_silent > kept
    });
    assert!(silent.iter_mut().all(is_closed) && is_closed(&mut slow));
    assert_eq!(
        (one.session(2), two.session(1)),
        (Some(session), Some(session))
    );
}

#[test]
fn a_node_without_links_listens_at_no_port() {
    let config = config(2);
    let node = rota_node::Node::start(config.clone(), id(2)).expect("a node");
    let refused = TcpStream::connect(config.nodes[1].link()).map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
    node.stop().expect("stopped");
    // The node with the smallest number has nobody who would connect.
    let _one = Node::start(&config, 1);
    let refused = TcpStream::connect(config.nodes[0].link()).map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
}
