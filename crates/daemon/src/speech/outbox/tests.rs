use super::*;
use rota_client::protocol::{Destination, Inbox, MAX_REPLY_BYTES, Message, Reply, own_index};
use rota_core::contract::Service;

fn message(number: u8, bytes: usize) -> Message {
    let name = |text: &str| text.parse().expect("a name");
    Message {
        sender: name("#ann#n1"),
        service: Service::Agreed,
        self_discard: false,
        kind: 0,
        to: [Destination::Group(name_of("g"))].into(),
        payload: vec![number; bytes].into(),
    }
}

fn name_of(text: &str) -> rota_core::groups::GroupName {
    rota_core::groups::GroupName::new(text).expect("a name")
}

fn put(outbox: &mut Outbox, reply: &Reply) {
    outbox.append(|bytes| reply.encode(bytes)).expect("it fits");
}

fn share(outbox: &mut Outbox, reply: &Reply) {
    let [head, payload] = reply.chunks().expect("it fits");
    outbox.append_shared(&head, &payload);
}

/// Sends this many bytes, in small pieces.
fn leave(outbox: &mut Outbox, mut bytes: usize, inbox: &mut Inbox<Reply>) {
    while bytes > 0 {
        let mut pieces = Vec::new();
        outbox.pieces(&mut pieces, 2);
        let piece = pieces[0].len().min(bytes).min(1000);
        inbox.feed(&pieces[0][..piece]);
        drop(pieces);
        outbox.sent(piece);
        bytes -= piece;
    }
}

fn all(inbox: &mut Inbox<Reply>) -> Vec<Reply> {
    std::iter::from_fn(|| inbox.pull().expect("the protocol")).collect()
}

/// From each place in the stream: frames that have begun to leave arrive whole, answers arrive, and the other messages
/// count as missed.
#[test]
fn what_is_taken_back_leaves_whole_frames() {
    for sent in 0..1190 {
        for how in [How::Copied, How::Shared, How::SharedUntilItWaits] {
            take_back_after(sent, how);
        }
    }
}

/// The way in which payloads are in the outbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Copied,
    Shared,
    SharedUntilItWaits,
}

fn take_back_after(sent: usize, how: How) {
    let mut outbox = Outbox::default();
    for number in 0..10 {
        let message = Reply::Message(message(number, 90));
        match how {
            How::Copied => put(&mut outbox, &message),
            _ => share(&mut outbox, &message),
        }
        let request = u32::from(number);
        put(&mut outbox, &Reply::Done { request });
    }
    share(&mut outbox, &Reply::Message(message(10, 300_000)));
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    leave(&mut outbox, sent, &mut inbox);
    if how == How::SharedUntilItWaits {
        outbox.wait();
    }
    let (mut lost, mut bytes) = (0, 0);
    outbox.take_back(|skimmed| match skimmed {
        Skimmed::Message { payload, .. } => {
            lost += 1;
            bytes += payload;
        }
        other => panic!("{other:?}"),
    });
    outbox.put_first(|bytes| {
        let credit = Reply::Credit { bytes: 7 };
        credit.encode(bytes).expect("it fits");
    });
    put(&mut outbox, &Reply::Message(message(11, 90)));
    let rest = outbox.len();
    leave(&mut outbox, rest, &mut inbox);
    assert_eq!(outbox.len(), 0);
    let got = all(&mut inbox);
    let is = |wanted: fn(&Reply) -> bool| got.iter().filter(|reply| wanted(reply)).count();
    assert_eq!(
        is(|reply| matches!(reply, Reply::Done { .. })),
        10,
        "{sent}"
    );
    assert_eq!(is(|reply| matches!(reply, Reply::Credit { .. })), 1);
    assert_eq!(is(|reply| matches!(reply, Reply::Message(_))), 12 - lost);
    assert_eq!(bytes, 300_000 + 90 * (lost - 1), "{sent}");
    assert_eq!(got.last(), Some(&Reply::Message(message(11, 90))));
}

#[test]
fn a_shared_payload_that_has_begun_to_leave_arrives_whole() {
    let mut outbox = Outbox::default();
    let large = Reply::Message(message(1, 300_000));
    let [head, payload] = large.chunks().expect("it fits");
    outbox.append_shared(&head, &payload);
    outbox.append_shared(&head, &payload);
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    leave(&mut outbox, 200_000, &mut inbox);
    let mut lost = 0;
    outbox.take_back(|_| lost += 1);
    let rest = outbox.len();
    leave(&mut outbox, rest, &mut inbox);
    assert_eq!((lost, all(&mut inbox)), (1, vec![large]));
    assert!(payload.is_unique(), "nothing is kept of it");
}

/// A receive buffer of the ring would be kept with it.
#[test]
fn what_waits_keeps_no_shared_payload_that_is_not_large() {
    let mut outbox = Outbox::default();
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    let all_of_it: Vec<Reply> = (0..5)
        .map(|number| Reply::Message(message(number, 1000)))
        .collect();
    let payloads: Vec<Bytes> = all_of_it
        .iter()
        .map(|reply| {
            let [head, payload] = reply.chunks().expect("it fits");
            // As the ring's payload would be: there is no other reference to it.
            let payload = Bytes::from(payload.to_vec());
            outbox.append_shared(&head, &payload);
            payload
        })
        .collect();
    leave(&mut outbox, 1500, &mut inbox);
    assert!(payloads.iter().any(|payload| !payload.is_unique()));
    outbox.wait();
    assert!(payloads.iter().all(Bytes::is_unique));
    let [head, _] = all_of_it[4].chunks().expect("it fits");
    outbox.append_shared(&head, &payloads[4]);
    assert!(payloads[4].is_unique(), "the socket still takes nothing");
    let rest = outbox.len();
    leave(&mut outbox, rest, &mut inbox);
    outbox.append_shared(&head, &payloads[4]);
    assert!(!payloads[4].is_unique(), "it takes everything again");
    let rest = outbox.len();
    leave(&mut outbox, rest, &mut inbox);
    let mut expected = all_of_it;
    expected.extend([expected[4].clone(), expected[4].clone()]);
    assert_eq!(all(&mut inbox), expected);
}

/// Many members of a group get the same view: however long it waits, all of it but their own part is one piece.
#[test]
fn what_is_common_to_many_stays_shared_leaves_whole_and_is_taken_back_whole() {
    let view = view();
    let frame = view.encode_shared().expect("it fits");
    let (head, common) = (frame.slice(..5), frame.slice(5..));
    let length = frame.len() + 4;
    for sent in 0..2 * length {
        let mut outbox = Outbox::default();
        let mut inbox = Inbox::new(MAX_REPLY_BYTES);
        for own in 0..3 {
            outbox.append_common(&head, &common, &own_index(own));
            put(&mut outbox, &Reply::Done { request: own });
        }
        leave(&mut outbox, sent, &mut inbox);
        outbox.wait();
        assert!(outbox.kept_alone() < 3 * 40, "it is not copied");
        let mut lost = 0;
        outbox.take_back(|skimmed| {
            assert!(matches!(skimmed, Skimmed::Membership), "{skimmed:?}");
            lost += 1;
        });
        let rest = outbox.len();
        leave(&mut outbox, rest, &mut inbox);
        let got = all(&mut inbox);
        let owns: Vec<u32> = got
            .iter()
            .filter_map(|reply| match reply {
                Reply::View(got) => Some(got.own),
                _ => None,
            })
            .collect();
        assert_eq!(owns, [0, 1, 2][..3 - lost], "{sent}");
        let is_done = |reply: &&Reply| matches!(reply, Reply::Done { .. });
        assert_eq!(got.iter().filter(is_done).count(), 3, "{sent}");
    }
}

fn view() -> rota_client::protocol::View {
    let name = |text: &str| text.parse().expect("a name");
    let ring = rota_core::contract::RingId {
        ring_seq: 1,
        rep: rota_core::contract::NodeId::new(1).expect("not 0"),
        incarnation: rota_core::contract::Incarnation(7),
    };
    rota_client::protocol::View {
        group: name_of("g"),
        id: rota_core::groups::ViewId {
            ring,
            next: None,
            index: 1,
        },
        cause: rota_client::protocol::Cause::Join(name("#ann#n1")),
        members: (0..3).map(|at| name(&format!("#m{at}#n1"))).collect(),
        own: 0,
    }
}
