//! The bytes of messages and notices are those of `testdata/golden/members.txt`, and are read back as what they were; and so
//! are the lines of operators and daemons, which are here.

#[path = "../../../core/tests/golden/mod.rs"]
mod golden;

use rota_core::contract::{Incarnation, NodeId, RingId};
use rota_net::NodeAddress;
use rota_node::MemberList;
use rota_node::members::{Change, Version};

use super::message::{self, Proposal, Tell, Told};
use super::notice::{Parts, notices};
use super::{AcceptorStatus, MemberPlace, MemberReply, MemberRequest, MemberStatus};
use golden::Golden;

fn node(id: u16) -> NodeId {
    NodeId::new(id).expect("not 0")
}

fn ring(ring_seq: u64) -> RingId {
    RingId {
        ring_seq,
        rep: node(0x0102),
        incarnation: Incarnation(0x0011_2233_4455_6677),
    }
}

fn list() -> MemberList {
    let at = |id, place| NodeAddress::at(id, place, (0x1e15, 0x1e16));
    let named = NodeAddress {
        name: Some("left".to_owned()),
        ..at(0x0203, "rota-2.example")
    };
    MemberList {
        version: Version {
            number: 0x0304,
            made: Some(ring(0x0a0b)),
        },
        nodes: vec![at(0x0102, "10.0.0.1"), named, at(0x0304, "fe80::7")],
    }
}

#[test]
fn bytes_of_messages_and_notices() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "members");
    let tell = |version, keeps| {
        Told::Tell(Tell {
            version,
            checksum: 0x3132_3334,
            keeps,
        })
    };
    let change = |change, force| {
        Told::Change(Proposal {
            number: 0x2122,
            base: list().version,
            force,
            change,
        })
    };
    let other = NodeAddress::at(0x0405, "10.0.0.4", (0x1e15, 0x1e16));
    for (name, told) in [
        ("tell, first list", tell(Version::FIRST, false)),
        ("tell", tell(list().version, true)),
        ("give", Told::Give(list())),
        ("add", change(Change::Add(other.clone()), false)),
        ("remove", change(Change::Remove(node(0x0405)), true)),
        ("replace", change(Change::Replace(other), false)),
    ] {
        let bytes = golden.compare(name, &message::encode(ring(0x0a0c), &told));
        assert!(message::is_one(&bytes), "{name}");
        let read = message::decode(&bytes);
        assert_eq!(read, Some((ring(0x0a0c), told)), "{name}");
    }
    let notices = notices(&list(), 0x4142_4344, 4);
    let notice = golden.compare("notice", &notices[0]);
    assert_eq!(notices.len(), 1);
    assert_eq!(
        Parts::default().take(&notice, 0x4142_4344),
        Ok(Some(list()))
    );
    golden.finish();
}

fn place() -> MemberPlace {
    MemberPlace {
        id: 4,
        address: "10.0.0.4".to_owned(),
        name: Some("four".to_owned()),
        data_port: Some(7701),
        token_port: None,
        force: false,
    }
}

#[test]
fn lines_of_operators() {
    for (request, line) in [
        (MemberRequest::List, r#""list""#),
        (
            MemberRequest::Add(place()),
            r#"{"add":{"id":4,"address":"10.0.0.4","name":"four","data_port":7701,"token_port":null,"force":false}}"#,
        ),
        (
            MemberRequest::Remove { id: 4, force: true },
            r#"{"remove":{"id":4,"force":true}}"#,
        ),
        (
            MemberRequest::Vote {
                id: 4,
                instead_of: Some(3),
                force: false,
            },
            r#"{"vote":{"id":4,"instead_of":3,"force":false}}"#,
        ),
        (
            MemberRequest::Unvote { id: 4, force: true },
            r#"{"unvote":{"id":4,"force":true}}"#,
        ),
        (
            MemberRequest::Replace(place()),
            r#"{"replace":{"id":4,"address":"10.0.0.4","name":"four","data_port":7701,"token_port":null,"force":false}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&request).expect("JSON"), line);
        let read: MemberRequest = serde_json::from_str(line).expect("a request");
        assert_eq!(read, request);
    }
}

#[test]
fn lines_of_daemons() {
    let one = MemberStatus {
        id: 4,
        name: None,
        address: "10.0.0.4".to_owned(),
        data_port: 7701,
        token_port: 7702,
        on_ring: true,
    };
    let reply = MemberReply {
        done: true,
        text: "done".to_owned(),
        number: 2,
        nodes: vec![one],
        acceptors: None,
    };
    let line = concat!(
        r#"{"done":true,"text":"done","number":2,"nodes":[{"id":4,"name":null,"address":"10.0.0.4","#,
        r#""data_port":7701,"token_port":7702,"on_ring":true}]}"#
    );
    assert_eq!(serde_json::to_string(&reply).expect("JSON"), line);
    let read: MemberReply = serde_json::from_str(line).expect("a reply");
    assert_eq!(read, reply);
    let votes = MemberReply {
        acceptors: Some(AcceptorStatus {
            list: 1,
            listed: vec![1, 2, 4],
            voting: vec![1, 2, 3],
        }),
        ..MemberReply::default()
    };
    let line = concat!(
        r#"{"done":false,"text":"","number":0,"nodes":[],"acceptors":{"list":1,"listed":[1,2,4],"#,
        r#""voting":[1,2,3]}}"#
    );
    assert_eq!(serde_json::to_string(&votes).expect("JSON"), line);
    let read: MemberReply = serde_json::from_str(line).expect("a reply");
    assert_eq!(read, votes);
    // Daemons of other versions may leave fields out, or have more.
    let other: MemberReply = serde_json::from_str(r#"{"done":false,"new":1}"#).expect("a reply");
    assert_eq!(other, MemberReply::default());
}
