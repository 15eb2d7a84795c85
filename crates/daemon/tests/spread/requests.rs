//! The requests of clients, in both byte orders, and every reason to refuse one.

use bytes::Bytes;
use rota_daemon::spread::{
    ByteOrder, Decoded, GroupName, Hint, Multicast, NameError, Request, RequestError, Service,
    SessionError, decode,
};

use crate::support::{
    AGREED, DISCONNECT, Frame, JOIN, LEAVE, ORDERS, SAFE, group, name, request_in,
};

fn multicast_in(bytes: &[u8]) -> Multicast {
    match request_in(bytes) {
        Ok(Request::Multicast(multicast)) => multicast,
        other => panic!("no multicast: {other:?}"),
    }
}

fn error_in(bytes: &[u8]) -> RequestError {
    match request_in(bytes) {
        Err(SessionError::Request(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn a_message_seen_on_a_wire_is_read() {
    let mut bytes = vec![0x90, 0, 0, 0x80];
    bytes.extend(b"#alice#n1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend([1, 0, 0, 0, 0x80, 0x34, 0x12, 0x80, 5, 0, 0, 0]);
    bytes.extend(b"grp\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(b"hello");
    let multicast = multicast_in(&bytes);
    assert_eq!(multicast.service, Service::Agreed);
    assert_eq!(multicast.groups, [name("grp")]);
    assert_eq!(multicast.hint.mess_type(), 0x1234);
    assert_eq!(multicast.hint.order(), ByteOrder::Little);
    assert_eq!(&multicast.data[..], b"hello");
    assert!(!multicast.self_discard);
}

#[test]
fn a_big_endian_client_says_the_same() {
    let bytes = Frame::new(ByteOrder::Big, SAFE | 0x40, &["grp", "#bob#n2"], b"hello").bytes();
    assert_eq!(bytes[..4], [0, 0, 0, 0x60]);
    assert_eq!(bytes[36..48], [0, 0, 0, 2, 0, 0x12, 0x34, 0, 0, 0, 0, 5]);
    let multicast = multicast_in(&bytes);
    assert_eq!(multicast.service, Service::Safe);
    assert!(multicast.self_discard);
    assert_eq!(multicast.groups, [name("grp"), name("#bob#n2")]);
    assert_eq!(multicast.hint.mess_type(), 0x1234);
    assert_eq!(multicast.hint.order(), ByteOrder::Big);
    assert_eq!(multicast.hint.bytes(), [0, 0x12, 0x34, 0], "as it came");
}

#[test]
fn every_service_is_read_in_both_orders() {
    for order in ORDERS {
        for (bit, service) in (0..6).zip(Service::ALL) {
            let bytes = Frame::new(order, 1 << bit, &["grp"], b"").bytes();
            assert_eq!(multicast_in(&bytes).service, service);
        }
    }
}

#[test]
fn joins_leaves_and_disconnects_are_read_in_both_orders() {
    for order in ORDERS {
        let of = |bits, target: &str| request_in(&Frame::new(order, bits, &[target], b"").bytes());
        assert_eq!(of(JOIN, "grp"), Ok(Request::Join(group("grp"))));
        assert_eq!(of(LEAVE, "grp"), Ok(Request::Leave(group("grp"))));
        assert_eq!(of(DISCONNECT, "#alice#n1"), Ok(Request::Disconnect));
    }
}

#[test]
fn destinations_tell_clients_from_groups() {
    let frame = Frame::new(ByteOrder::Little, AGREED, &["grp", "#bob#n2", "#", ""], b"");
    let groups = multicast_in(&frame.bytes()).groups;
    assert_eq!(
        groups
            .iter()
            .map(|name| name.is_private())
            .collect::<Vec<_>>(),
        [false, true, true, false]
    );
    assert_eq!(groups[1].private_parts(), Some((&b"bob"[..], &b"n2"[..])));
    assert_eq!(groups[2].private_parts(), None);
}

#[test]
fn a_message_to_a_name_nobody_can_have_reaches_nobody_and_is_no_error() {
    let frame = Frame::new(ByteOrder::Little, AGREED, &["no such group"], b"x");
    let groups = multicast_in(&frame.bytes()).groups;
    assert_eq!(groups, [name("no such group")]);
    assert_eq!(GroupName::try_from(groups[0]), Err(NameError::Character));
}

#[test]
fn messages_without_groups_or_data_are_legal() {
    let multicast = multicast_in(&Frame::new(ByteOrder::Little, AGREED, &[], b"").bytes());
    assert!(multicast.groups.is_empty() && multicast.data.is_empty());
}

#[test]
fn what_comes_after_the_end_of_a_name_is_dropped() {
    let mut bytes = Frame::new(ByteOrder::Little, AGREED, &["grp"], b"").bytes();
    bytes[48 + 10] = b'x';
    let groups = multicast_in(&bytes).groups;
    assert_eq!(groups[0].slot()[10], 0);
}

#[test]
fn a_name_of_32_characters_is_none() {
    let long = "x".repeat(32);
    let bytes = Frame::new(ByteOrder::Little, AGREED, &[&long], b"").bytes();
    assert_eq!(error_in(&bytes), RequestError::Name(NameError::Length));
    let fits = "x".repeat(31);
    let bytes = Frame::new(ByteOrder::Little, JOIN, &[&fits], b"").bytes();
    assert_eq!(request_in(&bytes), Ok(Request::Join(group(&fits))));
}

#[test]
fn only_legal_names_of_groups_are_joined() {
    for (target, error) in [
        ("", NameError::Length),
        ("#bob#n2", NameError::Character),
        ("a b", NameError::Character),
    ] {
        let bytes = Frame::new(ByteOrder::Big, JOIN, &[target], b"").bytes();
        assert_eq!(error_in(&bytes), RequestError::Name(error), "{target}");
    }
}

#[test]
fn requests_about_one_group_name_exactly_one() {
    for bits in [JOIN, LEAVE, DISCONNECT] {
        for groups in [&[][..], &["#alice#n1", "#alice#n1"]] {
            let bytes = Frame::new(ByteOrder::Little, bits, groups, b"").bytes();
            assert_eq!(error_in(&bytes), RequestError::Target);
        }
    }
    let bytes = Frame::new(ByteOrder::Little, DISCONNECT, &["#bob#n1"], b"").bytes();
    assert_eq!(error_in(&bytes), RequestError::Target, "only itself");
}

#[test]
fn exactly_one_thing_is_asked_for() {
    for bits in [0, 0x40, 0x30, AGREED | JOIN, JOIN | LEAVE, 0x3f, 0x1000] {
        let bytes = Frame::new(ByteOrder::Little, bits, &["grp"], b"").bytes();
        assert_eq!(error_in(&bytes), RequestError::Kind(bits));
    }
}

#[test]
fn nobody_speaks_for_another_session() {
    for sender in ["#bob#n1", "alice", "", "#alice#n1x"] {
        let mut frame = Frame::new(ByteOrder::Big, AGREED, &["grp"], b"");
        frame.sender = sender.to_owned();
        assert_eq!(error_in(&frame.bytes()), RequestError::Sender);
    }
}

#[test]
fn half_a_mark_of_the_byte_order_is_an_error() {
    let mut bytes = Frame::new(ByteOrder::Little, AGREED, &["grp"], b"").bytes();
    bytes[3] = 0;
    assert_eq!(error_in(&bytes), RequestError::Mark(0x90));
}

#[test]
fn a_hint_has_16_bits_of_type_and_a_mark() {
    for bad in [[0x81, 0, 0, 0x80], [0x80, 0, 0, 0], [0, 0, 0, 1]] {
        let mut bytes = Frame::new(ByteOrder::Little, AGREED, &["grp"], b"").bytes();
        bytes[40..44].copy_from_slice(&bad);
        assert_eq!(error_in(&bytes), RequestError::Hint(bad));
    }
    let mut bytes = Frame::new(ByteOrder::Little, AGREED, &["grp"], b"").bytes();
    bytes[40..44].copy_from_slice(&[0, 0x12, 0x34, 0]);
    let hint = multicast_in(&bytes).hint;
    assert_eq!((hint.order(), hint.mess_type()), (ByteOrder::Big, 0x1234));
    assert_eq!(Hint::new(ByteOrder::Big, 0x1234), hint);
}

#[test]
fn lengths_are_judged_by_the_header_alone() {
    for order in ORDERS {
        let frame = Frame::new(order, AGREED, &[], b"");
        let judge = |groups, data| request_in_header(&frame.header(groups, data));
        assert_eq!(judge(100, 143_952 - 3_200), Ok(()));
        assert_eq!(judge(101, 0), Err(RequestError::Groups(101)));
        assert_eq!(
            judge(0xffff_ffff, 0),
            Err(RequestError::Groups(0xffff_ffff))
        );
        assert_eq!(judge(0, 143_952), Ok(()));
        assert_eq!(judge(0, 143_953), Err(RequestError::Length(143_953)));
        assert_eq!(judge(1, 143_921), Err(RequestError::Length(143_921)));
        assert_eq!(
            judge(0, 0x8000_0000),
            Err(RequestError::Length(0x8000_0000))
        );
    }
}

fn request_in_header(header: &[u8]) -> Result<(), RequestError> {
    let own = name("#alice#n1");
    decode(&Bytes::copy_from_slice(header), &own).map(|decoded| match decoded {
        Decoded::Needs(bytes) => assert!(bytes > 48),
        Decoded::Request(request, _) => panic!("more than there was: {request:?}"),
    })
}
