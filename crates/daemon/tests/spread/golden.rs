//! The bytes of a daemon, as they were seen on a wire or follow from the layouts.

use bytes::Bytes;
use rota_daemon::spread::{
    ByteOrder, Cause, EncodeError, GroupId, Hint, Message, Outgoing, Rejected, Rejection, Service,
    View,
};

use crate::support::{ORDERS, group, name, open, open_as, slot, word, written};

const ID: GroupId = GroupId {
    leader: 0x4a78_16e7,
    time: 0x6b01_7725,
    index: 2,
};

fn told(order: ByteOrder, outgoing: &Outgoing) -> Vec<u8> {
    let mut session = open(order);
    assert_eq!(session.send(outgoing), Ok(true));
    written(&mut session)
}

fn view(members: &[&str], cause: Cause) -> Outgoing {
    Outgoing::View(View {
        group: group("grp"),
        id: ID,
        members: members.iter().map(|member| name(member)).collect(),
        cause,
    })
}

fn join_view() -> Outgoing {
    view(&["#alice#n1", "#bob#n1"], Cause::Join(name("#bob#n1")))
}

#[test]
fn a_join_is_the_one_seen_on_a_wire() {
    let mut expected = vec![0x80, 0x11, 0x00, 0x80];
    expected.extend(slot("grp"));
    expected.extend([2, 0, 0, 0, 0x80, 0, 0, 0x80, 0x38, 0, 0, 0]);
    expected.extend(slot("#alice#n1"));
    expected.extend(slot("#bob#n1"));
    expected.extend([0xe7, 0x16, 0x78, 0x4a, 0x25, 0x77, 0x01, 0x6b, 2, 0, 0, 0]);
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    expected.extend(slot("#bob#n1"));
    assert_eq!(told(ByteOrder::Little, &join_view()), expected);
}

#[test]
fn a_join_of_a_big_endian_daemon_has_no_marks() {
    let mut expected = vec![0, 0, 0x11, 0];
    expected.extend(slot("grp"));
    expected.extend([0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x38]);
    expected.extend(slot("#alice#n1"));
    expected.extend(slot("#bob#n1"));
    expected.extend([0x4a, 0x78, 0x16, 0xe7, 0x6b, 0x01, 0x77, 0x25, 0, 0, 0, 2]);
    expected.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    expected.extend(slot("#bob#n1"));
    assert_eq!(told(ByteOrder::Big, &join_view()), expected);
}

#[test]
fn leaves_and_disconnects_name_who_went() {
    let bob = name("#bob#n1");
    let causes = [(Cause::Leave(bob), 0x12), (Cause::Disconnect(bob), 0x14)];
    for (cause, bits) in causes {
        let little = told(ByteOrder::Little, &view(&["#alice#n1"], cause.clone()));
        assert_eq!(little[..4], [0x80, bits, 0, 0x80]);
        assert_eq!(little.len(), 48 + 32 + 56);
        assert_eq!(little[80 + 24..], slot("#bob#n1"));
        let big = told(ByteOrder::Big, &view(&["#alice#n1"], cause));
        assert_eq!(big[..4], [0, 0, bits, 0]);
    }
}

#[test]
fn survivors_of_a_partition_get_one_set() {
    let members = ["#alice#n1", "#bob#n2", "#carol#n3"];
    let sets = vec![members.map(name).to_vec()];
    let bytes = told(ByteOrder::Little, &view(&members, Cause::Network(sets)));
    assert_eq!(bytes[..4], [0x80, 0x18, 0, 0x80]);
    assert_eq!(bytes[36..40], [3, 0, 0, 0]);
    assert_eq!(bytes[44..48], [120, 0, 0, 0]);
    assert_eq!(bytes.len(), 48 + 96 + 120);
}

#[test]
fn a_merge_points_every_receiver_at_its_own_set() {
    for order in ORDERS {
        let members = ["#alice#n1", "#bob#n2", "#carol#n3"];
        let sets = vec![
            vec![name("#bob#n2"), name("#carol#n3")],
            vec![name("#alice#n1")],
        ];
        let bytes = told(order, &view(&members, Cause::Network(sets)));
        let mut expected = [ID.leader, ID.time, ID.index, 2, 4 + 64, 2]
            .map(|number| word(order, number))
            .concat();
        expected.extend([slot("#bob#n2"), slot("#carol#n3")].concat());
        expected.extend(word(order, 1));
        expected.extend(slot("#alice#n1"));
        assert_eq!(bytes[48 + 96..], expected);
    }
}

#[test]
fn a_view_without_its_receiver_cannot_be_told() {
    let elsewhere = view(&["#bob#n2"], Cause::Network(vec![vec![name("#bob#n2")]]));
    let mut session = open(ByteOrder::Little);
    assert_eq!(session.send(&elsewhere), Err(EncodeError::NotInView));
    assert_eq!(session.backlog(), 0, "nothing of it is sent");
}

#[test]
fn a_transition_carries_the_id_of_the_view_that_ends() {
    let id = GroupId {
        leader: 0xb2fd_66b0,
        time: 0x6b01_776e,
        index: 2,
    };
    let transition = Outgoing::Transition {
        group: group("grp"),
        old: id,
    };
    let mut little = vec![0x80, 0x20, 0, 0x80];
    little.extend(slot("grp"));
    little.extend([0, 0, 0, 0, 0x80, 0, 0, 0x80, 12, 0, 0, 0]);
    little.extend([0xb0, 0x66, 0xfd, 0xb2, 0x6e, 0x77, 0x01, 0x6b, 2, 0, 0, 0]);
    assert_eq!(told(ByteOrder::Little, &transition), little);
    let mut big = vec![0, 0, 0x20, 0];
    big.extend(slot("grp"));
    big.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12]);
    big.extend([0xb2, 0xfd, 0x66, 0xb0, 0x6b, 0x01, 0x77, 0x6e, 0, 0, 0, 2]);
    assert_eq!(told(ByteOrder::Big, &transition), big);
}

#[test]
fn a_self_leave_has_no_body() {
    let leave = Outgoing::SelfLeave(group("grp"));
    let mut little = vec![0x80, 0x02, 0, 0x80];
    little.extend(slot("grp"));
    little.extend([0, 0, 0, 0, 0x80, 0, 0, 0x80, 0, 0, 0, 0]);
    assert_eq!(told(ByteOrder::Little, &leave), little);
    let mut big = vec![0, 0, 0x02, 0];
    big.extend(slot("grp"));
    big.extend([0; 12]);
    assert_eq!(told(ByteOrder::Big, &leave), big);
}

fn hello(hint: Hint) -> Outgoing {
    Outgoing::Message(Message {
        sender: name("#alice#n1"),
        service: Service::Agreed,
        self_discard: false,
        groups: vec![name("grp")],
        hint,
        data: Bytes::from_static(b"hello"),
    })
}

#[test]
fn a_message_is_the_one_seen_on_a_wire() {
    let mut expected = vec![0x90, 0, 0, 0x80];
    expected.extend(slot("#alice#n1"));
    expected.extend([1, 0, 0, 0, 0x80, 0x34, 0x12, 0x80, 5, 0, 0, 0]);
    expected.extend(slot("grp"));
    expected.extend(b"hello");
    let hint = Hint::new(ByteOrder::Little, 0x1234);
    assert_eq!(told(ByteOrder::Little, &hello(hint)), expected);
}

#[test]
fn the_hint_keeps_the_order_of_its_sender_in_a_daemon_of_the_other() {
    let hint = Hint::new(ByteOrder::Big, 0x1234);
    let bytes = told(ByteOrder::Little, &hello(hint));
    assert_eq!(bytes[..4], [0x90, 0, 0, 0x80]);
    assert_eq!(bytes[40..44], [0, 0x12, 0x34, 0]);
    let hint = Hint::new(ByteOrder::Little, 0x1234);
    let bytes = told(ByteOrder::Big, &hello(hint));
    assert_eq!(bytes[..4], [0, 0, 0, 0x10]);
    assert_eq!(
        bytes[36..48],
        [0, 0, 0, 1, 0x80, 0x34, 0x12, 0x80, 0, 0, 0, 5]
    );
}

#[test]
fn a_refused_join_has_its_old_type_and_its_sender() {
    let refused = Outgoing::Rejected(Rejection {
        what: Rejected::Join,
        groups: vec![name("grp")],
        hint: Hint::new(ByteOrder::Little, 0),
        data: Bytes::new(),
    });
    let mut expected = vec![0x80, 0, 0x40, 0x80];
    expected.extend(slot("#alice#n1"));
    expected.extend([2, 0, 0, 0, 0x80, 0, 0, 0x80, 0, 0, 0, 0]);
    expected.extend([0x80, 0x01, 0, 0x80]);
    expected.extend(slot("grp"));
    expected.extend(slot("#alice#n1"));
    assert_eq!(told(ByteOrder::Little, &refused), expected);
}

#[test]
fn a_refused_message_comes_back_whole() {
    let refused = Outgoing::Rejected(Rejection {
        what: Rejected::Message {
            service: Service::Safe,
            self_discard: true,
        },
        groups: (0..100).map(|at| name(&format!("g{at}"))).collect(),
        hint: Hint::new(ByteOrder::Big, 7),
        data: Bytes::from_static(b"data"),
    });
    let bytes = told(ByteOrder::Big, &refused);
    assert_eq!(bytes[..4], [0, 0x40, 0, 0x40]);
    assert_eq!(bytes[36..40], [0, 0, 0, 100], "no room for its sender");
    assert_eq!(bytes[48..52], [0, 0, 0, 0x20]);
    assert_eq!(bytes.len(), 52 + 3_200 + 4);
    assert_eq!(&bytes[52 + 3_200..], b"data");
    let leave = Outgoing::Rejected(Rejection {
        what: Rejected::Leave,
        groups: vec![name("grp")],
        hint: Hint::new(ByteOrder::Big, 0),
        data: Bytes::new(),
    });
    assert_eq!(told(ByteOrder::Big, &leave)[48..52], [0, 0, 2, 0]);
}

#[test]
fn who_did_not_ask_for_membership_is_told_of_none() {
    let mut session = open_as(ByteOrder::Little, "alice", false);
    let transition = Outgoing::Transition {
        group: group("grp"),
        old: ID,
    };
    for outgoing in [join_view(), transition, Outgoing::SelfLeave(group("grp"))] {
        assert_eq!(session.send(&outgoing), Ok(false));
    }
    assert_eq!(session.backlog(), 0);
    let message = hello(Hint::new(ByteOrder::Little, 0));
    assert_eq!(session.send(&message), Ok(true));
}

#[test]
fn a_socket_may_take_what_is_sent_in_any_pieces() {
    let whole = told(ByteOrder::Little, &join_view());
    for piece in [1, 3, 48, 100] {
        let mut session = open(ByteOrder::Little);
        assert_eq!(session.send(&join_view()), Ok(true));
        let mut bytes = Vec::new();
        while session.backlog() > 0 {
            let all: Vec<u8> = session.chunks().flatten().copied().collect();
            let taken = piece.min(all.len());
            bytes.extend_from_slice(&all[..taken]);
            session.sent(taken);
        }
        assert_eq!(bytes, whole);
        assert_eq!(session.chunks().count(), 0);
    }
}
