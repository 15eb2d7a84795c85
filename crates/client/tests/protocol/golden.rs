//! The bytes of each frame, as the tables have them.

use bytes::Bytes;
use rota_client::protocol::{
    Cause, Code, Decoded, Destination, Frame, Hello, Message, PrivateName, Reply, Request, Send,
    Skimmed, SlowPolicy, View, Welcome, groups_in, own_index, skim,
};
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::groups::{GroupName, ViewId};

fn group(text: &str) -> GroupName {
    GroupName::new(text).expect("a legal name")
}

fn private(text: &str) -> PrivateName {
    text.parse().expect("a legal name")
}

fn to(text: &str) -> Destination {
    text.parse().expect("a legal destination")
}

fn ring(ring_seq: u64) -> RingId {
    RingId {
        ring_seq,
        rep: NodeId::new(3).expect("not 0"),
        incarnation: Incarnation(0x0102),
    }
}

fn view_id() -> ViewId {
    ViewId {
        ring: ring(9),
        next: None,
        index: 5,
    }
}

/// A frame with its length in front.
fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

fn request_is(request: &Request, parts: &[&[u8]]) {
    let mut bytes = Vec::new();
    request.encode(&mut bytes).expect("it fits");
    assert_eq!(bytes, framed(parts));
    let length = bytes.len();
    let decoded = Request::decode(&bytes.into(), 4096);
    assert_eq!(decoded, Ok(Decoded::Frame(request.clone(), length)));
}

fn reply_is(reply: &Reply, parts: &[&[u8]]) {
    let mut bytes = Vec::new();
    reply.encode(&mut bytes).expect("it fits");
    assert_eq!(bytes, framed(parts));
    let length = bytes.len();
    let decoded = Reply::decode(&bytes.into(), 4096);
    assert_eq!(decoded, Ok(Decoded::Frame(reply.clone(), length)));
}

#[test]
fn requests() {
    let hello = Hello {
        lowest: 1,
        highest: 2,
        membership: true,
        when_slow: Some(SlowPolicy::Skip),
        memory: false,
        name: Some(rota_core::groups::ClientName::new("alice").expect("legal")),
    };
    request_is(
        &Request::Hello(hello),
        &[b"\x01ROTA\x01\0\x02\0\x05\x05alice"],
    );
    for (policy, flags) in [
        (SlowPolicy::Disconnect, 0b0011),
        (SlowPolicy::ThrottleThenDisconnect, 0b1011),
        (SlowPolicy::ThrottleThenSkip, 0b1101),
    ] {
        let when_slow = Some(policy);
        let hello = Hello { when_slow, ..hello };
        request_is(
            &Request::Hello(hello),
            &[b"\x01ROTA\x01\0\x02\0", &[flags], b"\x05alice"],
        );
    }
    let memory = Hello {
        memory: true,
        ..hello
    };
    request_is(
        &Request::Hello(memory),
        &[b"\x01ROTA\x01\0\x02\0\x15\x05alice"],
    );
    let nameless = Request::Hello(Hello::new(None, false));
    request_is(&nameless, &[b"\x01ROTA\x01\0\x03\0\0\0"]);
    let (request, group) = (0x0102, group("orders"));
    request_is(
        &Request::Join { request, group },
        &[b"\x02\x02\x01\0\0\x06orders"],
    );
    request_is(
        &Request::Leave { request, group },
        &[b"\x03\x02\x01\0\0\x06orders"],
    );
    let send = Send {
        service: Service::Agreed,
        self_discard: true,
        kind: 0x0708,
        to: vec![to("orders"), to("#bob#n2")],
        payload: Bytes::from_static(b"hello"),
    };
    request_is(
        &Request::Send(send),
        &[b"\x04\x04\x01\x08\x07\x02\x06orders\x07#bob#n2hello"],
    );
    let all = Request::List {
        request,
        group: None,
    };
    request_is(&all, &[b"\x05\x02\x01\0\0\0"]);
    let of_one = Request::List {
        request,
        group: Some(group),
    };
    request_is(&of_one, &[b"\x05\x02\x01\0\0\x06orders"]);
    request_is(&Request::Bye, &[b"\x06"]);
}

#[test]
fn replies() {
    let welcome = Welcome {
        version: 1,
        name: private("#alice#n1"),
        credit: 0x0004_0000,
        largest_payload: 0x0002_0000,
        memory: 0,
    };
    reply_is(
        &Reply::Welcome(welcome),
        &[b"\x81\x01\0\x09#alice#n1\0\0\x04\0\0\0\x02\0"],
    );
    let memory = Welcome {
        memory: 0x0004_0000,
        ..welcome
    };
    reply_is(
        &Reply::Welcome(memory),
        &[b"\x81\x01\0\x09#alice#n1\0\0\x04\0\0\0\x02\0\0\0\x04\0"],
    );
    let text = || "no".to_owned();
    let code = Code::NameInUse;
    reply_is(
        &Reply::Refused { code, text: text() },
        &[b"\x82\x02\0\x02no"],
    );
    let request = 7;
    reply_is(&Reply::Done { request }, &[b"\x83\x07\0\0\0"]);
    let failed = Reply::Failed {
        request,
        code: Code::Other(0x1234),
        text: text(),
    };
    reply_is(&failed, &[b"\x84\x07\0\0\0\x34\x12\x02no"]);
    let message = Message {
        sender: private("#bob#n2"),
        service: Service::Safe,
        self_discard: false,
        kind: 3,
        to: [to("orders")].into(),
        payload: Bytes::from_static(b"hello"),
    };
    reply_is(
        &Reply::Message(message),
        &[b"\x85\x07#bob#n2\x05\0\x03\0\x01\x06orders", b"hello"],
    );
    let group = group("orders");
    reply_is(&Reply::SelfLeave { group }, &[b"\x88\x06orders"]);
    reply_is(&Reply::Credit { bytes: 258 }, &[b"\x89\x02\x01\0\0"]);
    let groups = vec![(group, 2)];
    reply_is(
        &Reply::Groups { request, groups },
        &[b"\x8a\x07\0\0\0\x01\0\0\0\x06orders\x02\0\0\0"],
    );
    let members = vec![private("#a#b")];
    reply_is(
        &Reply::Members { request, members },
        &[b"\x8b\x07\0\0\0\x01\0\0\0\x04#a#b"],
    );
    let lagging = Reply::Lagging {
        waiting: 1,
        limit: 2,
    };
    reply_is(&lagging, &[b"\x8c\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"]);
    let skipped = Reply::Skipped {
        messages: 3,
        bytes: 0x0102,
        groups: vec![group, self::group("zoo")],
    };
    reply_is(
        &skipped,
        &[b"\x8f\x03\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x02\0\0\0\x06orders\x03zoo"],
    );
    reply_is(&Reply::Excluded, &[b"\x90"]);
    reply_is(&Reply::Included { missed: false }, &[b"\x91\0"]);
    reply_is(&Reply::Included { missed: true }, &[b"\x91\x01"]);
    let code = Code::ShuttingDown;
    reply_is(
        &Reply::Goodbye { code, text: text() },
        &[b"\x8d\x06\0\x02no"],
    );
    let not_sent = Reply::NotSent {
        kind: 0x0102,
        to: to("#a#b"),
        code: Code::NotAllowed,
        text: text(),
    };
    reply_is(&not_sent, &[b"\x8e\x02\x01\x04#a#b\x05\0\x02no"]);
}

const RING_9: &[u8] = b"\x09\0\0\0\0\0\0\0\x03\0\x02\x01\0\0\0\0\0\0";
const INDEX_5: &[u8] = b"\x05\0\0\0\0\0\0\0";

fn join_view() -> View {
    View {
        group: group("g"),
        id: view_id(),
        cause: Cause::Join(private("#c#d")),
        members: vec![private("#a#b"), private("#c#d")],
        own: 1,
    }
}

#[test]
fn views() {
    reply_is(
        &Reply::View(Box::new(join_view())),
        &[
            b"\x86\x01g",
            RING_9,
            b"\0",
            INDEX_5,
            b"\x01\x04#c#d\x02\0\0\0\x04#a#b\x04#c#d\0\0\0\0\x01\0\0\0",
        ],
    );
    let network = View {
        cause: Cause::Network(vec![vec![1], vec![0, 2]]),
        members: vec![private("#a#b"), private("#c#d"), private("#e#f")],
        id: ViewId {
            next: Some(ring(10)),
            ..view_id()
        },
        ..join_view()
    };
    let ring_10 = [&[10], &RING_9[1..]].concat();
    reply_is(
        &Reply::View(Box::new(network)),
        &[
            b"\x86\x01g",
            RING_9,
            b"\x01",
            &ring_10,
            INDEX_5,
            b"\x04\0\x03\0\0\0\x04#a#b\x04#c#d\x04#e#f",
            b"\x02\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0",
            b"\x01\0\0\0",
        ],
    );
    let transitional = Reply::Transitional {
        group: group("g"),
        view: view_id(),
    };
    reply_is(&transitional, &[b"\x87\x01g", RING_9, b"\0", INDEX_5]);
}

#[test]
fn a_view_for_many_members_is_encoded_once() {
    let shared = join_view().encode_shared().expect("it fits");
    for own in [0, 1] {
        let mut alone = Vec::new();
        let view = Reply::View(Box::new(View { own, ..join_view() }));
        view.encode(&mut alone).expect("it fits");
        assert_eq!([&shared[..], &own_index(own)].concat(), alone);
    }
}

#[test]
fn who_came_with_the_receiver() {
    let view = join_view();
    assert_eq!(view.me(), Some(&private("#c#d")));
    assert_eq!(view.came_with_me(), [&private("#c#d")]);
    let there_before = View { own: 0, ..view };
    assert_eq!(there_before.came_with_me(), [&private("#a#b")]);
    let left = View {
        cause: Cause::Leave(private("#x#y")),
        ..there_before.clone()
    };
    assert_eq!(left.came_with_me().len(), 2);
    let network = View {
        cause: Cause::Network(vec![vec![1], vec![0]]),
        ..there_before
    };
    assert_eq!(network.came_with_me(), [&private("#a#b")]);
}

#[test]
fn a_hello_of_a_later_version_is_understood_so_far() {
    let bytes = framed(&[b"\x01ROTA\x04\0\x09\0\x87\x05alice", b"and more"]);
    let Ok(Decoded::Frame(Request::Hello(hello), _)) = Request::decode(&bytes.into(), 64) else {
        panic!("it is a hello");
    };
    assert!(hello.membership);
    assert_eq!(hello.agreed_version(), None);
    assert_eq!(hello.when_slow, None);
    let mine = Hello::new(None, true);
    assert_eq!(mine.agreed_version(), Some(3));
    for highest in 1..=3 {
        let older = Hello {
            lowest: 1,
            highest,
            ..mine
        };
        assert_eq!(older.agreed_version(), Some(highest));
    }
}

#[test]
fn a_message_says_where_it_goes_without_being_read_whole() {
    let message = Message {
        sender: private("#bob#n2"),
        service: Service::Safe,
        self_discard: false,
        kind: 3,
        to: [to("orders"), to("#alice#n1"), to("zoo")].into(),
        payload: Bytes::from_static(b"hello"),
    };
    let [head, payload] = Reply::Message(message).chunks().expect("it fits");
    for frame in [head.to_vec(), [&head[..], &payload[..]].concat()] {
        let Skimmed::Message { to, payload } = skim(&frame) else {
            panic!("it is a message");
        };
        assert_eq!(payload, 5);
        let groups: Vec<GroupName> = groups_in(to).collect();
        assert_eq!(groups, [group("orders"), group("zoo")]);
    }
    let mut view = Vec::new();
    let reply = Reply::View(Box::new(join_view()));
    reply.encode(&mut view).expect("it fits");
    assert_eq!(skim(&view), Skimmed::Membership);
    assert_eq!(skim(&head[..12]), Skimmed::Other);
}

#[test]
fn a_refusal_of_a_later_version_is_understood_so_far() {
    let bytes = framed(&[b"\x82\x01\0\x02no", b"and more"]);
    let decoded = Reply::decode(&bytes.into(), 64);
    assert!(matches!(
        decoded,
        Ok(Decoded::Frame(
            Reply::Refused {
                code: Code::Version,
                ..
            },
            _
        ))
    ));
}
