//! Handshakes and records without sockets.

use super::cipher::{Direction, Trust, Use};
use super::handshake::{Accepting, Agreed, CONFIRM_BYTES, Dialing, Own, Refusal};
use super::record::{Broken, Found, Inbox, Outbox, RECORD_BYTES};
use super::*;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::Incarnation;

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn own(number: u16) -> Own {
    Own {
        me: Process {
            node: id(number),
            incarnation: Incarnation(u64::from(number) + 100),
        },
        cluster: 7,
        magic: super::handshake::LINKS,
    }
}

fn last(session: u64) -> impl Fn(NodeId) -> Option<Session> {
    move |node| (node == id(1)).then_some(Session(session))
}

/// Without a key and with one.
fn both() -> [Option<KeyRing>; 2] {
    [None, Some(KeyRing::generate().expect("random numbers"))]
}

/// A handshake in which `change` may change each message: its place, and its bytes.
fn handshake(
    keys: Option<&KeyRing>,
    mut change: impl FnMut(usize, &mut [u8]),
) -> Result<(Agreed, Agreed), (usize, Refusal)> {
    let dialed = Dialing::begin(own(1), (id(2), Session(4)), keys, [1; NONCE_BYTES]);
    let (dialing, mut hello) = dialed.expect("a hello");
    change(0, &mut hello);
    let accepted = Accepting::begin(own(2), &hello, keys, [2; NONCE_BYTES], last(6));
    let (accepting, mut welcome) = accepted.map_err(|why| (0, why))?;
    change(1, &mut welcome);
    let (here, mut confirm) = dialing.welcomed(&welcome).map_err(|why| (1, why))?;
    change(2, &mut confirm);
    let there = accepting.confirmed(&confirm, Some(Session(6)));
    Ok((here, there.map_err(|why| (2, why))?))
}

#[test]
fn both_sides_agree_on_a_session_later_than_those_that_either_knows() {
    for keys in both() {
        let (here, there) = handshake(keys.as_ref(), |_, _| {}).expect("an agreement");
        assert_eq!((here.session, there.session), (Session(7), Session(7)));
        assert_eq!((here.peer, there.peer), (own(2).me, own(1).me));
        let (mut one, mut two) = (here, there);
        for (seals, opens) in [
            (&mut one.seals, &mut two.opens),
            (&mut two.seals, &mut one.opens),
        ] {
            let mut body = b"body and room for the tag".to_vec();
            let plain = body.clone();
            seals.seal(b"head", &mut body);
            let len = opens.open(b"head", &mut body).expect("opened");
            assert_eq!(body[..len], plain[..len]);
        }
    }
}

#[test]
fn no_bit_of_a_handshake_can_be_turned() {
    for keys in both() {
        let lengths = [88, 64, CONFIRM_BYTES];
        for (message, length) in lengths.into_iter().enumerate() {
            for bit in 0..8 * length {
                let turn = |which: usize, bytes: &mut [u8]| {
                    assert_eq!(bytes.len(), lengths[which]);
                    if which == message {
                        bytes[bit / 8] ^= 1 << (bit % 8);
                    }
                };
                let refused = handshake(keys.as_ref(), turn).map(drop);
                let (at, _) = refused.expect_err("a refusal");
                assert_eq!(at, message, "bit {bit}");
            }
        }
    }
}

#[test]
fn a_recorded_side_of_a_handshake_fits_no_other() {
    let keys = KeyRing::generate().expect("random numbers");
    let keys = Some(&keys);
    let begin = |nonce| Dialing::begin(own(1), (id(2), Session(4)), keys, nonce).expect("a hello");
    let (dialing, hello) = begin([1; NONCE_BYTES]);
    let accept =
        |hello, nonce| Accepting::begin(own(2), hello, keys, nonce, last(0)).expect("a welcome");
    let (_, welcome) = accept(&hello, [2; NONCE_BYTES]);
    let (_, confirm) = dialing.welcomed(&welcome).expect("a confirm");
    // The whole of it again, to an acceptor that draws other bytes.
    let (again, _) = accept(&hello, [3; NONCE_BYTES]);
    let refused = again.confirmed(&confirm, Some(Session(0))).err();
    assert_eq!(refused, Some(Refusal::Forged));
    // The welcome again, to a dialer that draws other bytes.
    let (dialing, _) = begin([4; NONCE_BYTES]);
    assert_eq!(dialing.welcomed(&welcome).err(), Some(Refusal::Forged));
}

#[test]
fn who_does_not_dial_here_and_who_is_late_is_refused() {
    for keys in both() {
        let keys = keys.as_ref();
        let hello = |from, to| {
            let begun = Dialing::begin(own(from), (id(to), Session(4)), keys, [1; NONCE_BYTES]);
            begun.expect("a hello").1
        };
        let accept = |hello| Accepting::begin(own(2), &hello, keys, [2; NONCE_BYTES], last(6));
        assert_eq!(accept(hello(3, 2)).err(), Some(Refusal::Stranger));
        assert_eq!(accept(hello(2, 2)).err(), Some(Refusal::Stranger));
        assert_eq!(accept(hello(1, 3)).err(), Some(Refusal::Foreign));
        // Of another version all that follows may be different.
        let mut newer = hello(1, 2);
        newer[7] += 1;
        assert_eq!(accept(newer).err(), Some(Refusal::Version));
        newer[8..].fill(0xFF);
        assert_eq!(accept(newer).err(), Some(Refusal::Version));
        newer[6] ^= 1;
        assert_eq!(accept(newer).err(), Some(Refusal::Foreign));
        let other = Own {
            cluster: 8,
            ..own(1)
        };
        let begun = Dialing::begin(other, (id(2), Session(4)), keys, [1; NONCE_BYTES]);
        assert_eq!(
            accept(begun.expect("a hello").1).err(),
            Some(Refusal::Foreign)
        );
        let greatest = Session(u64::MAX);
        let begun = Dialing::begin(own(1), (id(2), greatest), keys, [1; NONCE_BYTES]);
        assert_eq!(
            accept(begun.expect("a hello").1).err(),
            Some(Refusal::Stale)
        );
        // Another session began while this one waited for its confirm.
        let (dialing, hello) =
            Dialing::begin(own(1), (id(2), Session(4)), keys, [1; NONCE_BYTES]).expect("a hello");
        let (accepting, welcome) = accept(hello).expect("a welcome");
        let (_, confirm) = dialing.welcomed(&welcome).expect("a confirm");
        for meanwhile in [None, Some(Session(7)), Some(Session(8))] {
            let refused = accepting.confirmed(&confirm, meanwhile).err();
            assert_eq!(refused, Some(Refusal::Stale));
        }
    }
}

/// The cipher that seals one direction, and the one that opens it.
fn direction(trust: &Trust) -> (Direction, Direction) {
    let one = || trust.direction(Use::ToDialer, &[b"said"]).expect("a key");
    (one(), one())
}

fn trusts() -> [Trust; 2] {
    let keys = KeyRing::generate().expect("random numbers");
    [Trust::new(None), Trust::new(keys.get(keys.sending()))]
}

/// Messages, each with its channel.
type Messages = Vec<(u8, Vec<u8>)>;

/// The messages of what was read in pieces of these sizes.
fn read(inbox: &mut Inbox, bytes: &[u8], pieces: &[usize]) -> Result<Messages, Broken> {
    let (mut messages, mut rest, mut left) = (Vec::new(), Vec::new(), bytes);
    for piece in pieces.iter().cycle() {
        let (now, after) = left.split_at((*piece).min(left.len()));
        left = after;
        rest.extend_from_slice(now);
        let mut found = Vec::new();
        let end = inbox.open(&mut rest, &mut found)?;
        messages.extend(found.into_iter().map(|found| match found {
            Found::Here(channel, range) => (channel.0, rest[range].to_vec()),
            Found::Joined(channel, bytes) => (channel.0, bytes.to_vec()),
        }));
        rest.drain(..end);
        assert!(
            rest.len() < RECORD_BYTES,
            "more than a record waits for the rest of one"
        );
        if left.is_empty() {
            break;
        }
    }
    Ok(messages)
}

/// A message cut into pieces of these sizes.
fn cut(mut message: &[u8], sizes: &[usize]) -> Pieces {
    let mut pieces = Pieces::default();
    for size in sizes.iter().cycle() {
        let (piece, rest) = message.split_at((*size).min(message.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        message = rest;
        if message.is_empty() {
            break;
        }
    }
    pieces
}

/// The bytes that may leave with one call.
fn unsent(outbox: &mut Outbox) -> Vec<u8> {
    let (pieces, count) = outbox.unsent();
    pieces[..count]
        .iter()
        .flat_map(|piece| piece.to_vec())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_come_out_as_they_went_in(
        sizes in vec((any::<u8>(), prop_oneof![0_usize..100, 0_usize..80_000]), 1..20),
        sends in vec((any::<bool>(), 1_usize..100_000), 1..40),
        pieces in vec(1_usize..50_000, 1..10),
    ) {
        for trust in trusts() {
            let (seals, opens) = direction(&trust);
            let (mut outbox, mut inbox) = (Outbox::new(seals), Inbox::new(opens));
            let mut bytes = Vec::new();
            let mut said = Vec::new();
            let mut sends = sends.iter().cycle();
            for (number, (channel, size)) in sizes.iter().enumerate() {
                let message = vec![number as u8; *size];
                outbox.push(Channel(*channel), cut(&message, &pieces));
                said.push((*channel, message));
                if let Some((true, most)) = sends.next() {
                    let sent = unsent(&mut outbox);
                    let count = sent.len().min(*most);
                    bytes.extend_from_slice(&sent[..count]);
                    outbox.sent(count);
                }
            }
            while outbox.waiting() > 0 {
                let left = unsent(&mut outbox);
                bytes.extend_from_slice(&left);
                outbox.sent(left.len());
            }
            prop_assert!(read(&mut inbox, &bytes, &pieces) == Ok(said));
        }
    }

    #[test]
    fn any_bytes_are_messages_or_refused(
        bytes in vec(any::<u8>(), 0..200),
        pieces in vec(1_usize..50, 1..5),
    ) {
        for trust in trusts() {
            let (_, opens) = direction(&trust);
            let found = read(&mut Inbox::new(opens), &bytes, &pieces);
            prop_assert!(found.is_err() || found == Ok(Vec::new()));
        }
    }

    #[test]
    fn any_body_that_opens_is_messages_or_refused(
        bodies in vec(vec(any::<u8>(), 1..100), 1..5),
    ) {
        let (mut seals, opens) = direction(&Trust::new(None));
        let mut bytes = Vec::new();
        for body in &bodies {
            let mut sealed = body.clone();
            sealed.extend_from_slice(&[0; 4]);
            let header = (sealed.len() as u32).to_le_bytes();
            seals.seal(&header, &mut sealed);
            bytes.extend_from_slice(&header);
            bytes.extend_from_slice(&sealed);
        }
        let found = read(&mut Inbox::new(opens), &bytes, &[37]);
        prop_assert!(matches!(found, Ok(_) | Err(Broken::Layout)));
    }
}

/// Five records of one message each.
fn records(seals: Direction) -> Vec<Vec<u8>> {
    let mut outbox = Outbox::new(seals);
    let record = |number: u8| {
        outbox.push(Channel(0), cut(&[number; 50], &[50]));
        let record = unsent(&mut outbox);
        outbox.sent(record.len());
        record
    };
    (0..5).map(record).collect()
}

#[test]
fn records_that_are_left_out_doubled_swapped_or_of_another_session_end_it() {
    for trust in trusts() {
        let order = |order: &[usize]| {
            let (seals, opens) = direction(&trust);
            let records = records(seals);
            let bytes: Vec<u8> = order.iter().flat_map(|at| records[*at].clone()).collect();
            read(&mut Inbox::new(opens), &bytes, &[1000]).map(|messages| messages.len())
        };
        assert_eq!(order(&[0, 1, 2, 3, 4]), Ok(5));
        assert_eq!(order(&[0, 1]), Ok(2));
        for wrong in [
            [1, 2, 3, 4].as_slice(),
            &[0, 2],
            &[0, 0],
            &[0, 1, 0],
            &[1, 0],
            &[0, 1, 3],
        ] {
            assert_eq!(order(wrong), Err(Broken::Forged), "{wrong:?}");
        }
    }
    let [_, keyed] = trusts();
    let (seals, _) = direction(&keyed);
    let first = records(seals).swap_remove(0);
    // Of another session, or back to its sender.
    for (of, said) in [(Use::ToDialer, b"else"), (Use::ToAcceptor, b"said")] {
        let opens = keyed.direction(of, &[said]).expect("a key");
        let found = read(&mut Inbox::new(opens), &first, &[1000]);
        assert_eq!(found, Err(Broken::Forged));
    }
}

#[test]
fn a_message_in_parts_is_no_longer_than_messages_may_be() {
    let (seals, opens) = direction(&Trust::new(None));
    let mut outbox = Outbox::new(seals);
    outbox.push(Channel(0), Bytes::from(vec![0; MESSAGE_BYTES]).into());
    outbox.push(Channel(0), Bytes::from(vec![0; MESSAGE_BYTES + 1]).into());
    let mut bytes = Vec::new();
    while outbox.waiting() > 0 {
        let sent = unsent(&mut outbox);
        outbox.sent(sent.len());
        bytes.extend(sent);
    }
    let mut inbox = Inbox::new(opens);
    let mut rest = bytes;
    let mut found = Vec::new();
    assert_eq!(inbox.open(&mut rest, &mut found), Err(Broken::Layout));
    assert_eq!(found.len(), 1);
}
