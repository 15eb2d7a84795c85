//! The bytes of the layer: written bytes are read back, and no others are read. The states are in `states`, clients
//! that are made to skip in `restart`, daemons that are in no view in `exclusion`, bytes of other daemons in `hostile`,
//! over daemons in `cluster`.

mod cluster;
mod exclusion;
mod hold;
mod hostile;
mod large;
mod leaving;
mod memberships;
mod restart;
mod states;

use bytes::Bytes;

use super::event::{Connection, Member};
use super::message::{Request, Told, parse, stamp};
use super::name::{ClientName, GroupName, NameError};
use crate::contract::{Incarnation, NodeId, Process, RingId};

fn process(id: u16) -> Process {
    Process {
        node: NodeId::new(id).expect("not 0"),
        incarnation: Incarnation(7),
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

#[test]
fn a_request_is_read_whole_or_not_at_all() {
    let member = Member {
        daemon: process(1),
        name: ClientName::new("ann").expect("a name"),
        connection: Connection(3),
    };
    let ring = ring(5);
    let group = GroupName::new("apples").expect("a name");
    let request = Request::Join(member, group);
    let mut bytes = request.message();
    stamp(&mut bytes, ring);
    let bytes = Bytes::from(bytes);
    let told = parse(member.daemon, &bytes).map(|stamped| (stamped.ring, stamped.told));
    assert_eq!(told, Some((ring, Told::Request(request))));
    for end in 0..bytes.len() {
        assert_eq!(parse(member.daemon, &bytes.slice(..end)), None);
    }
}

#[test]
fn names_are_bounded_and_have_no_hash_and_no_space() {
    assert_eq!(GroupName::new(""), Err(NameError::Empty));
    assert_eq!(GroupName::new("a b"), Err(NameError::Character));
    assert_eq!(ClientName::new("a#b"), Err(NameError::Character));
    let limit = 10;
    assert_eq!(
        ClientName::new("12345678901"),
        Err(NameError::TooLong { limit })
    );
    assert!(ClientName::new("1234567890").is_ok());
}
