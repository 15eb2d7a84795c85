//! Written frames are read again, in pieces of any size.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_client::protocol::{
    DecodeError, Frame, Inbox, MAX_REPLY_BYTES, Message, Reply, Request, own_index, request_limit,
};

use crate::any::{reply, request, view};

/// All frames of a stream that arrives in pieces of these sizes, over and over.
pub fn in_pieces<T: Frame>(
    bytes: &[u8],
    sizes: &[usize],
    limit: usize,
) -> Result<Vec<T>, DecodeError> {
    let mut inbox = Inbox::new(limit);
    let mut frames = Vec::new();
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        inbox.feed(piece);
        while let Some(frame) = inbox.pull()? {
            frames.push(frame);
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    Ok(frames)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        Just(vec![usize::MAX]),
        vec(1..300_usize, 1..20)
    ]
}

proptest! {
    #[test]
    fn requests(requests in vec(request(), 1..6), sizes in sizes()) {
        let mut bytes = Vec::new();
        for request in &requests {
            let before = bytes.len();
            request.encode(&mut bytes).expect("it fits");
            prop_assert!(bytes.len() - before - 4 <= request_limit(300));
            if let Request::Send(send) = request {
                prop_assert_eq!(send.frame_bytes(), bytes.len() - before);
            }
        }
        prop_assert_eq!(in_pieces(&bytes, &sizes, request_limit(300)), Ok(requests));
    }

    #[test]
    fn replies(replies in vec(reply(), 1..6), sizes in sizes()) {
        let mut bytes = Vec::new();
        for reply in &replies {
            let before = bytes.len();
            reply.encode(&mut bytes).expect("it fits");
            prop_assert_eq!(&reply.chunks().expect("it fits").concat(), &bytes[before..]);
        }
        prop_assert_eq!(in_pieces(&bytes, &sizes, MAX_REPLY_BYTES), Ok(replies));
    }

    #[test]
    fn a_shared_view_with_an_index_is_that_members_view(view in view()) {
        let mut bytes = view.encode_shared().expect("it fits").to_vec();
        bytes.extend(own_index(view.own));
        prop_assert_eq!(in_pieces(&bytes, &[9], MAX_REPLY_BYTES), Ok(vec![Reply::View(Box::new(view))]));
    }
}

#[test]
fn the_payload_of_a_message_is_shared_in_both_directions() {
    let payload = Bytes::from(vec![7; 1000]);
    let message = Message {
        sender: "#a#b".parse().expect("legal"),
        service: rota_core::contract::Service::Agreed,
        self_discard: false,
        kind: 0,
        to: ["g".parse().expect("legal")].into(),
        payload: payload.clone(),
    };
    let [head, tail] = Reply::Message(message).chunks().expect("it fits");
    assert_eq!(tail.as_ptr(), payload.as_ptr());
    let whole = Bytes::from([head, tail].concat());
    let Ok(rota_client::protocol::Decoded::Frame(Reply::Message(read), length)) =
        Reply::decode(&whole, 2000)
    else {
        panic!("a message");
    };
    assert_eq!(read.payload.as_ptr(), whole[length - 1000..].as_ptr());
}

#[test]
fn a_long_text_is_cut_where_a_character_ends() {
    let text = "ä".repeat(200);
    let mut bytes = Vec::new();
    let code = rota_client::protocol::Code::TooSlow;
    let long = Reply::Goodbye { code, text };
    long.encode(&mut bytes).expect("it fits");
    let text = "ä".repeat(127);
    let read = in_pieces::<Reply>(&bytes, &[1], 1000);
    assert_eq!(read, Ok(vec![Reply::Goodbye { code, text }]));
}
