//! The frames of the vectors.

use bytes::Bytes;
use rota_client::protocol::{
    Cause, Code, Destination, Hello, Message, PrivateName, Reply, Request, Send, SlowPolicy, View,
    Welcome,
};
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::groups::{ClientName, GroupName, ViewId};

/// The longest names of each kind.
const LONGEST_GROUP: &str = "abcdefghijklmnopqrstuvwxyz$-~.0";
const LONGEST_CLIENT: &str = "#client-789#daemon-789-123456~$";

/// More than one read brings.
const LARGE: usize = 200_000;

pub type Requests = Vec<(&'static str, Request)>;
pub type Replies = Vec<(&'static str, Reply)>;

pub fn named<'a, T>(frames: &'a [(&str, T)], name: &str) -> &'a T {
    let found = frames.iter().find(|(other, _)| *other == name);
    &found.unwrap_or_else(|| panic!("there is no {name}")).1
}

fn group(text: &str) -> GroupName {
    GroupName::new(text).expect("a legal name")
}

fn private(text: &str) -> PrivateName {
    text.parse().expect("a legal name")
}

fn to(texts: &[&str]) -> Vec<Destination> {
    let parse = |text: &&str| text.parse().expect("a legal destination");
    texts.iter().map(parse).collect()
}

fn ring(ring_seq: u64, rep: u16, incarnation: u64) -> RingId {
    RingId {
        ring_seq,
        rep: NodeId::new(rep).expect("not 0"),
        incarnation: Incarnation(incarnation),
    }
}

fn hello(name: Option<&str>) -> Hello {
    let name = name.map(|name| ClientName::new(name).expect("a legal name"));
    Hello::new(name, false)
}

fn send(texts: &[&str], payload: &'static [u8]) -> Send {
    Send {
        service: Service::Agreed,
        self_discard: false,
        kind: 0,
        to: to(texts),
        payload: Bytes::from_static(payload),
    }
}

fn hellos() -> Requests {
    let alice = hello(Some("alice"));
    let policy = |policy| Hello {
        when_slow: Some(policy),
        ..alice
    };
    let mut hellos = vec![
        ("hello", alice),
        ("hello-nameless", hello(None)),
        (
            "hello-membership",
            Hello {
                membership: true,
                ..alice
            },
        ),
        (
            "hello-memory",
            Hello {
                memory: true,
                ..alice
            },
        ),
        (
            "hello-version-1",
            Hello {
                highest: 1,
                ..alice
            },
        ),
        ("hello-longest-name", hello(Some("client-789"))),
    ];
    hellos.extend([
        ("hello-disconnect", policy(SlowPolicy::Disconnect)),
        ("hello-skip", policy(SlowPolicy::Skip)),
        (
            "hello-throttle-then-disconnect",
            policy(SlowPolicy::ThrottleThenDisconnect),
        ),
        (
            "hello-throttle-then-skip",
            policy(SlowPolicy::ThrottleThenSkip),
        ),
    ]);
    let request = |(name, hello)| (name, Request::Hello(hello));
    hellos.into_iter().map(request).collect()
}

pub fn requests() -> Requests {
    let orders = group("orders");
    let join = |request, group| Request::Join { request, group };
    let list = |request, group| Request::List { request, group };
    let mut all = hellos();
    all.extend([
        ("join", join(1, orders)),
        ("join-longest-name", join(u32::MAX, group(LONGEST_GROUP))),
        (
            "leave",
            Request::Leave {
                request: 4,
                group: orders,
            },
        ),
        ("list-groups", list(2, None)),
        ("list-members", list(3, Some(orders))),
        ("bye", Request::Bye),
    ]);
    all.extend(
        sends()
            .into_iter()
            .map(|(name, send)| (name, Request::Send(send))),
    );
    all
}

fn sends() -> Vec<(&'static str, Send)> {
    let plain = send(&["orders"], b"hello");
    let served = |service| Send {
        service,
        ..plain.clone()
    };
    let most: Vec<String> = (0..100).map(|at| format!("g{at}")).collect();
    let most: Vec<&str> = most.iter().map(String::as_str).collect();
    vec![
        ("send", plain.clone()),
        ("send-reliable", served(Service::Reliable)),
        ("send-fifo", served(Service::Fifo)),
        ("send-causal", served(Service::Causal)),
        ("send-safe", served(Service::Safe)),
        ("send-empty", send(&["orders"], b"")),
        ("send-private", send(&["#bob#n2"], b"for you alone")),
        (
            "send-to-several",
            Send {
                self_discard: true,
                kind: 0x0708,
                ..send(
                    &["orders", "#bob#n2", LONGEST_GROUP, LONGEST_CLIENT],
                    b"\0\x01\xfe\xff",
                )
            },
        ),
        ("send-to-the-most", send(&most, b"x")),
        (
            "send-large",
            Send {
                payload: vec![0x2e; LARGE].into(),
                ..plain
            },
        ),
    ]
}

fn message(sender: &str, texts: &[&str], payload: &'static [u8]) -> Message {
    Message {
        sender: private(sender),
        service: Service::Agreed,
        self_discard: false,
        kind: 0,
        to: to(texts).into(),
        payload: Bytes::from_static(payload),
    }
}

fn messages() -> Replies {
    let plain = message("#alice#n1", &["orders"], b"hello");
    let served = |service| Message {
        service,
        ..plain.clone()
    };
    let several = [LONGEST_GROUP, LONGEST_CLIENT, "orders"];
    let all = vec![
        ("message", plain.clone()),
        ("message-reliable", served(Service::Reliable)),
        ("message-fifo", served(Service::Fifo)),
        ("message-causal", served(Service::Causal)),
        ("message-safe", served(Service::Safe)),
        ("message-empty", message("#bob#n2", &["orders"], b"")),
        (
            "message-private",
            message("#bob#n2", &["#alice#n1"], b"for you alone"),
        ),
        (
            "message-to-several",
            Message {
                self_discard: true,
                kind: 0x0708,
                ..message(LONGEST_CLIENT, &several, b"\0\x01\xfe\xff")
            },
        ),
        (
            "message-large",
            Message {
                payload: vec![0x2e; LARGE].into(),
                ..plain
            },
        ),
    ];
    let reply = |(name, message)| (name, Reply::Message(message));
    all.into_iter().map(reply).collect()
}

fn view(cause: Cause, members: &[&str], own: u32) -> View {
    View {
        group: group("orders"),
        id: ViewId {
            ring: ring(9, 3, 258),
            next: None,
            index: 5,
        },
        cause,
        members: members.iter().map(|name| private(name)).collect(),
        own,
    }
}

fn views() -> Replies {
    let alice = "#alice#n1";
    let (bob, carol) = ("#bob#n2", "#carol#n3");
    let between = ViewId {
        ring: ring(9, 3, 258),
        next: Some(ring(u64::MAX, u16::MAX, u64::MAX)),
        index: 0x0102_0304_0506_0708,
    };
    let split = View {
        id: between,
        ..view(
            Cause::Network(vec![vec![1], vec![0, 2]]),
            &[alice, bob, carol],
            2,
        )
    };
    let all = vec![
        (
            "view-own-join",
            view(Cause::Join(private(alice)), &[alice], 0),
        ),
        (
            "view-join",
            view(Cause::Join(private(bob)), &[alice, bob], 0),
        ),
        ("view-leave", view(Cause::Leave(private(bob)), &[alice], 0)),
        (
            "view-disconnect",
            view(Cause::Disconnect(private(carol)), &[bob, alice], 1),
        ),
        (
            "view-network",
            view(Cause::Network(vec![vec![0, 1]]), &[alice, bob], 0),
        ),
        ("view-network-met", split),
    ];
    let reply = |(name, view)| (name, Reply::View(Box::new(view)));
    let mut all: Replies = all.into_iter().map(reply).collect();
    let group = group("orders");
    all.extend([
        (
            "transitional",
            Reply::Transitional {
                group,
                view: view(Cause::Join(private(alice)), &[alice], 0).id,
            },
        ),
        (
            "transitional-between",
            Reply::Transitional {
                group,
                view: between,
            },
        ),
        ("self-leave", Reply::SelfLeave { group }),
    ]);
    all
}

fn welcomes() -> Replies {
    let welcome = Welcome {
        version: 3,
        name: private("#alice#n1"),
        credit: 262_144,
        largest_payload: 1 << 20,
        memory: 0,
    };
    let memory = Welcome {
        memory: 1 << 20,
        ..welcome
    };
    let first = Welcome {
        version: 1,
        ..welcome
    };
    let refused = |code| Reply::Refused {
        code,
        text: "ask later".to_owned(),
    };
    vec![
        ("welcome", Reply::Welcome(welcome)),
        ("welcome-memory", Reply::Welcome(memory)),
        ("welcome-version-1", Reply::Welcome(first)),
        ("refused-version", refused(Code::Version)),
        ("refused-name-in-use", refused(Code::NameInUse)),
        ("refused-not-allowed", refused(Code::NotAllowed)),
    ]
}

fn answers() -> Replies {
    let failed = |code, text: &str| Reply::Failed {
        request: 1,
        code,
        text: text.to_owned(),
    };
    let groups = vec![(group("orders"), 2), (group("stock"), 70_000)];
    let members = vec![private("#alice#n1"), private("#bob#n2")];
    let none = Vec::new();
    vec![
        ("done", Reply::Done { request: 1 }),
        ("done-leave", Reply::Done { request: 4 }),
        ("failed-quota", failed(Code::Quota, "größer als erlaubt")),
        ("failed-unknown", failed(Code::Other(0x1234), "")),
        ("groups", Reply::Groups { request: 2, groups }),
        (
            "members",
            Reply::Members {
                request: 3,
                members,
            },
        ),
        (
            "members-none",
            Reply::Members {
                request: 3,
                members: none,
            },
        ),
    ]
}

pub fn replies() -> Replies {
    let goodbye = |code| Reply::Goodbye {
        code,
        text: "the end".to_owned(),
    };
    let not_sent = Reply::NotSent {
        kind: 0x0708,
        to: to(&["#bob#n2"])[0],
        code: Code::NotAllowed,
        text: "rule 2".to_owned(),
    };
    let skipped = |groups| Reply::Skipped {
        messages: 3,
        bytes: 0x0001_0000_0000,
        groups,
    };
    let mut all = welcomes();
    all.extend(answers());
    all.extend(messages());
    all.extend(views());
    all.extend([
        ("credit", Reply::Credit { bytes: 22 }),
        ("credit-large", Reply::Credit { bytes: 200_017 }),
        (
            "lagging",
            Reply::Lagging {
                waiting: 9_000_000,
                limit: 16_777_216,
            },
        ),
        ("not-sent", not_sent),
        ("skipped", skipped(vec![group("orders"), group("stock")])),
        ("skipped-nothing", skipped(Vec::new())),
        ("excluded", Reply::Excluded),
        ("included", Reply::Included { missed: false }),
        ("included-missed", Reply::Included { missed: true }),
        ("goodbye-shutting-down", goodbye(Code::ShuttingDown)),
        ("goodbye-not-allowed", goodbye(Code::NotAllowed)),
    ]);
    all
}
