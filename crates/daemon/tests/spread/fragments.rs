//! A stream in pieces of any size is the same stream; and a request that was read can be sent on.

use bytes::Bytes;
use proptest::prelude::*;
use rota_daemon::spread::{
    ByteOrder, Cause, Event, GroupId, Message, Multicast, Outgoing, Request, View,
};

use crate::client::{Received, number, own_set, receive};
use crate::hostile::{drive, stream};
use crate::support::{Frame, ORDERS, group, name, new_session, open, request_in, slot, written};

#[test]
fn a_session_byte_by_byte_is_the_session_at_once() {
    for order in ORDERS {
        let stream = stream(order);
        let at_once = drive(&mut new_session(), [&stream[..]]).expect("a good stream");
        let mut session = new_session();
        let by_byte = drive(&mut session, stream.chunks(1)).expect("the same");
        assert_eq!(by_byte, at_once);
        let replies = [&b"\x05NULL "[..], b"\x01\x05\x00\x01\x09#alice#n1"].concat();
        assert_eq!(written(&mut session), replies);
    }
}

#[test]
fn header_groups_and_elements_of_data_may_come_apart() {
    let bytes = Frame::new(ByteOrder::Big, 0x10, &["a", "b"], b"onetwo").bytes();
    let ends = [0, 48, 80, 112, 115, bytes.len()];
    let pieces = ends.windows(2).map(|at| &bytes[at[0]..at[1]]);
    let events = drive(&mut open(ByteOrder::Little), pieces).expect("a good message");
    assert_eq!(
        events,
        [Event::Request(request_in(&bytes).expect("the same"))]
    );
}

fn order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)]
}

prop_compose! {
    fn frame()(
        order in order(),
        service in 0..6_u32,
        discard in any::<bool>(),
        groups in proptest::collection::vec("[!-~]{0,31}", 0..=100),
        mess_type in any::<u16>(),
        data in proptest::collection::vec(any::<u8>(), 0..600),
    ) -> Frame {
        let bits = (1 << service) | if discard { 0x40 } else { 0 };
        let sender = "#alice#n1".to_owned();
        Frame { order, bits, sender, groups, mess_type, data }
    }
}

/// The message as a receiver gets it, if the groups do nothing to it.
fn forward(multicast: &Multicast) -> Outgoing {
    Outgoing::Message(Message {
        sender: name("#alice#n1"),
        service: multicast.service,
        self_discard: multicast.self_discard,
        groups: multicast.groups.clone(),
        hint: multicast.hint,
        data: multicast.data.clone(),
    })
}

proptest! {
    #[test]
    fn any_fragmentation_gives_the_same_events(
        frames in proptest::collection::vec(frame(), 1..4),
        sizes in proptest::collection::vec(1..200_usize, 1..60),
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        let at_once = drive(&mut open(ByteOrder::Little), [&bytes[..]]);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let in_pieces = drive(&mut open(ByteOrder::Little), pieces);
        prop_assert_eq!(at_once.as_ref().map(Vec::len), Ok(frames.len()));
        prop_assert_eq!(in_pieces, at_once);
    }

    #[test]
    fn what_a_client_sends_its_receivers_get(frame in frame(), daemon in order()) {
        let Ok(Request::Multicast(multicast)) = request_in(&frame.bytes()) else {
            panic!("a good message");
        };
        prop_assert_eq!(multicast.hint.mess_type(), frame.mess_type);
        let mut session = open(daemon);
        prop_assert_eq!(session.send(&forward(&multicast)), Ok(true));
        let bytes = written(&mut session);
        let mut rest = &bytes[..];
        let received = receive(&mut rest);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(received, Received {
            bits: frame.bits,
            sender: b"#alice#n1".to_vec(),
            groups: frame.groups.iter().map(|group| group.as_bytes().to_vec()).collect(),
            hint: frame.bytes()[40..44].try_into().expect("four bytes"),
            old_bits: None,
            data: frame.data.clone(),
        });
    }

    #[test]
    fn clients_find_their_own_set_in_any_view(
        daemon in order(),
        sizes in proptest::collection::vec(0..5_usize, 0..6),
        at in 0..6_usize,
        id in any::<[u32; 3]>(),
    ) {
        let mut count = 0;
        let mut sets: Vec<Vec<String>> = sizes.iter().map(|&size| {
            count += size;
            (count - size..count).map(|member| format!("#m{member}#n2")).collect()
        }).collect();
        let at = at.min(sets.len());
        let own_names = ["#alice#n1".to_owned(), "#also#n1".to_owned()];
        sets.insert(at, own_names.to_vec());
        let members = sets.concat();
        let to_names = |set: &Vec<String>| set.iter().map(|member| name(member)).collect();
        let view = Outgoing::View(View {
            group: group("grp"),
            id: GroupId { leader: id[0], time: id[1], index: id[2] },
            members: to_names(&members),
            cause: Cause::Network(sets.iter().map(to_names).collect()),
        });
        let mut session = open(daemon);
        prop_assert_eq!(session.send(&view), Ok(true));
        let bytes = written(&mut session);
        let received = receive(&mut &bytes[..]);
        prop_assert_eq!(received.bits, 0x1800);
        prop_assert_eq!(received.groups.len(), members.len());
        let own = own_names.map(String::into_bytes).to_vec();
        prop_assert_eq!(own_set(daemon, &received.data), (id, sets.len() as u32, own));
    }
}

#[test]
fn several_messages_are_queued_in_order() {
    let mut session = open(ByteOrder::Big);
    for text in [&b"one"[..], b"", b"three"] {
        let frame = Frame::new(ByteOrder::Little, 0x20, &["grp"], text).bytes();
        let Ok(Request::Multicast(multicast)) = request_in(&frame) else {
            panic!("a good message");
        };
        assert_eq!(multicast.data, Bytes::copy_from_slice(text));
        assert_eq!(session.send(&forward(&multicast)), Ok(true));
    }
    let bytes = written(&mut session);
    let mut rest = &bytes[..];
    let texts = [(); 3].map(|()| receive(&mut rest).data);
    assert_eq!(texts, [&b"one"[..], b"", b"three"]);
    assert_eq!(number(ByteOrder::Big, &bytes), 0x20);
    assert_eq!(bytes[48..80], slot("grp"));
}
