//! What daemons say to each other about the list of nodes, in the order and in notices, and operators to them: any bytes are
//! refused, or are written again as they came; a list that is taken over, or that a change has made, is one that all daemons
//! read; and notices of a list give that list, in whatever order they come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rota_core::contract::{Incarnation, NodeId, RingId};
use rota_daemon::members::message::{Told, decode, encode, is_one};
use rota_daemon::members::notice::{Parts, notices};
use rota_daemon::{MemberReply, MemberRequest};
use rota_net::NOTICE;
use rota_node::{MemberList, NodeConfig};

const CLUSTER: u32 = 77;

/// Mark and format of a message, and the kind and format of a notice: few inputs would ever get past them.
const MESSAGE: &[u8] = &[0x4d, 1];
const PART: &[u8] = &[NOTICE, 1];

fuzz_target!(|data: &[u8]| {
    let Some((&control, bytes)) = data.split_first() else {
        return;
    };
    match control % 4 {
        0 => message(bytes),
        1 => message(&[MESSAGE, bytes].concat()),
        2 => parts(bytes),
        _ => lines(bytes),
    }
    if let Some(list) = MemberList::decode(bytes) {
        whole(&list, control);
    }
});

fn message(bytes: &[u8]) {
    let Some((ring, told)) = decode(bytes) else {
        return;
    };
    assert!(is_one(bytes));
    assert_eq!(encode(ring, &told), bytes, "{told:?}");
    let config = NodeConfig::loopback(3, 27_000);
    match told {
        Told::Tell(_) => {}
        Told::Give(list) => {
            if list.put_into(&config).is_ok() {
                assert_eq!(MemberList::decode(&list.encode()), Some(list));
            }
        }
        Told::Change(proposal) => {
            let made = RingId {
                ring_seq: 9,
                rep: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(1),
            };
            if let Ok(next) = MemberList::of(&config).with(&proposal.change, made, &config) {
                assert_eq!(next.version.number, 1);
                assert!(next.put_into(&config).is_ok(), "{next:?}");
                assert_eq!(MemberList::decode(&next.encode()), Some(next));
            }
        }
    }
}

/// Notices, each behind its length.
fn parts(bytes: &[u8]) {
    let (mut parts, mut rest) = (Parts::default(), bytes);
    while let Some((&length, behind)) = rest.split_first() {
        let (notice, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let (index, notice) = notice.split_at(notice.len().min(2));
        let notice = [PART, index, &CLUSTER.to_le_bytes(), notice].concat();
        if let Ok(Some(list)) = parts.take(&notice, CLUSTER) {
            whole(&list, length);
        }
    }
}

/// The notices of a list give it, beginning anywhere.
fn whole(list: &MemberList, from: u8) {
    let mut sent = notices(list, CLUSTER, 4);
    let from = usize::from(from) % sent.len();
    sent.rotate_left(from);
    let mut parts = Parts::default();
    let last = sent.pop().expect("a list has bytes");
    for notice in &sent {
        assert_eq!(parts.take(notice, CLUSTER), Ok(None));
    }
    assert_eq!(parts.take(&last, CLUSTER), Ok(Some(list.clone())));
}

/// A line of an operator, or of a daemon.
fn lines(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<MemberRequest>(bytes) {
        let line = serde_json::to_vec(&request).expect("it is JSON");
        assert_eq!(
            serde_json::from_slice::<MemberRequest>(&line).ok(),
            Some(request)
        );
    }
    if let Ok(reply) = serde_json::from_slice::<MemberReply>(bytes) {
        let line = serde_json::to_vec(&reply).expect("it is JSON");
        assert_eq!(
            serde_json::from_slice::<MemberReply>(&line).ok(),
            Some(reply)
        );
    }
}
