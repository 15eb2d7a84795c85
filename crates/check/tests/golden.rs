//! The lines of a trace are those of `testdata/golden/trace.jsonl`, and are read back as what they were.
//!
//! `ROTA_BLESS=1` writes the lines of today into the file; the diff is what to review.

use std::fs;
use std::path::{Path, PathBuf};

use rota_check::event::{Cause, ClientEvent, ClientSaw, Conf, Event, EventKind, Gid, GroupView};
use rota_check::event::{Placed, Post, Sent};
use rota_check::trace::{Trace, TraceWriter};
use rota_core::contract::ConfigurationKind::{Regular, Transitional};
use rota_core::contract::{Incarnation, MessageId, NodeId, Process, RingId, Service, Time};

fn process(node: u16) -> Process {
    Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(u64::from(node) + 6),
    }
}

fn ring(ring_seq: u64) -> RingId {
    let Process { node, incarnation } = process(1);
    RingId {
        ring_seq,
        rep: node,
        incarnation,
    }
}

const HASH: u64 = 0x9f2c_0000_0000_0001;

fn message(node: u16) -> MessageId {
    MessageId {
        process: process(node),
        counter: 42,
    }
}

fn placed(service: Service, position: u64) -> Placed {
    Placed {
        message: message(1),
        conf: Regular(ring(12)),
        position,
        service,
        hash: HASH,
    }
}

fn of_rings() -> Vec<EventKind> {
    let (old, new) = (ring(12), ring(16));
    let conf = |id, members: &[Process]| {
        EventKind::Configuration(Conf {
            id,
            members: members.to_vec(),
        })
    };
    let sent = Sent {
        message: message(1),
        service: Service::Safe,
        hash: HASH,
    };
    vec![
        EventKind::Start,
        conf(Regular(old), &[process(1), process(2)]),
        EventKind::Primary(old),
        EventKind::Send(sent),
        EventKind::Originated(placed(Service::Safe, 9)),
        EventKind::Broadcast(sent),
        EventKind::Delivered(placed(Service::Safe, 9)),
        EventKind::Delivered(placed(Service::Agreed, 10)),
        EventKind::Delivered(placed(Service::Causal, 11)),
        EventKind::Delivered(placed(Service::Fifo, 12)),
        EventKind::Delivered(placed(Service::Reliable, 13)),
        conf(Transitional { old, new }, &[process(1)]),
        EventKind::Excluded(new),
        EventKind::Missed { upto: 14, own: 3 },
    ]
}

fn of_clients() -> Vec<EventKind> {
    let group = || "chat".to_owned();
    let gid = Gid {
        conf: Regular(ring(12)),
        index: 5,
    };
    let post = Post {
        message: message(2),
        groups: vec![group(), "#ben#two".to_owned()],
        service: Service::Agreed,
        hash: HASH,
    };
    let view = |cause, vs_sets| {
        ClientSaw::View(GroupView {
            group: group(),
            gid,
            cause,
            members: vec!["#anna#one".to_owned(), "#ben#two".to_owned()],
            vs_sets,
        })
    };
    let set = |name: &str| vec![name.to_owned()];
    let saw = vec![
        ClientSaw::Join(group()),
        view(Cause::Join, vec![]),
        view(Cause::Leave, vec![]),
        view(Cause::Disconnect, vec![]),
        view(Cause::Network, vec![set("#anna#one"), set("#ben#two")]),
        ClientSaw::Send {
            post: post.clone(),
            discard: true,
        },
        ClientSaw::Deliver(post),
        ClientSaw::Transition {
            group: group(),
            gid,
        },
        ClientSaw::Excluded,
        ClientSaw::Included { missed: true },
        ClientSaw::Leave(group()),
        ClientSaw::SelfLeave(group()),
        ClientSaw::Disconnect,
    ];
    let client = |saw| {
        EventKind::Client(ClientEvent {
            client: "#anna#one".to_owned(),
            saw,
        })
    };
    saw.into_iter().map(client).collect()
}

fn written() -> String {
    let mut writer = TraceWriter::new(Vec::new());
    let ends = [EventKind::Leave, EventKind::Crash];
    for (at, kind) in of_rings()
        .into_iter()
        .chain(of_clients())
        .chain(ends)
        .enumerate()
    {
        let event = Event {
            time: Time(100 + at as u64),
            process: process(1),
            kind,
        };
        writer.event(&event).expect("memory");
    }
    writer.quiesce(Time(200)).expect("memory");
    String::from_utf8(writer.finish().expect("memory")).expect("UTF-8")
}

#[test]
fn lines_of_a_trace() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/golden/trace.jsonl");
    let now = written();
    if std::env::var_os("ROTA_BLESS").is_some() {
        fs::write(&path, &now).expect("a writable file");
    }
    let golden = fs::read_to_string(&path).expect("it is there");
    for (line, (now, golden)) in now.lines().zip(golden.lines()).enumerate() {
        assert_eq!(now, golden, "trace: line {}", line + 1);
    }
    assert_eq!(
        now.lines().count(),
        golden.lines().count(),
        "trace: its lines"
    );
    let mut trace = Trace::new();
    let read = trace.read(Path::new("golden.jsonl"), golden.as_bytes());
    read.expect("a trace");
    let events = of_rings().len() + of_clients().len() + 2;
    assert_eq!(trace.events(), events, "all of it is read");
}
