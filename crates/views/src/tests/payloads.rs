//! Packets that others lack, several to a word.

use super::*;
use crate::exchange::{Exchange, Step};
use crate::message::WORD_BYTES;

/// The bytes of a word, and of each packet in it, beside the packets' bytes, as docs/protocols/views.md says.
const HEAD: usize = 20;
const PACKET_HEAD: usize = 15;

fn packet(number: u64, len: usize) -> Packet {
    let id = PacketId { sender: 0, number };
    Packet {
        id,
        load: Load::Messages(Service::Safe),
        bytes: Bytes::from(vec![number as u8; len]),
    }
}

fn packets(count: u64, len: usize) -> Vec<Packet> {
    (1..=count).map(|number| packet(number, len)).collect()
}

/// The number of packets in each word.
fn in_words(packets: &[Packet]) -> Vec<usize> {
    let words = Word::payloads(packets.iter().cloned());
    let counts = words.iter().map(|word| match word {
        Word::Payload(packets) => packets.len(),
        _ => panic!("{word:?}"),
    });
    counts.collect()
}

/// The first of two members, which has told and has these packets to send; and the words that it submits.
fn sender(packets: &[Packet]) -> (Exchange, Vec<Bytes>) {
    let mut from = told(1);
    let to_send = packets.iter().map(|packet| packet.id).collect();
    let outcome = Outcome {
        to_send: vec![to_send, Vec::new()],
        ..Outcome::default()
    };
    from.send_all(outcome, |id| packets.iter().find(|packet| packet.id == id));
    let all = super::parts::submitted(&mut from);
    (from, all)
}

/// A member that knows what both have told.
fn told(me: u16) -> Exchange {
    let members = (1..=2).map(process).collect();
    let mut exchange = Exchange::new(ring(4), members, process(me), Time(0));
    exchange.tell(Recover::default());
    super::parts::submitted(&mut exchange);
    let word = Bytes::from(Word::Recover(Recover::default()).encode(ring(4)));
    for from in [1, 2] {
        assert!(exchange.on_message(process(from), &word));
    }
    exchange
}

/// The packets that the second member has once it was told all of that.
fn arrived(messages: &[Bytes]) -> BTreeMap<PacketId, Packet> {
    let mut at = told(2);
    at.send_all(Outcome::default(), |_| None);
    for own in super::parts::submitted(&mut at) {
        assert!(at.on_message(process(2), &own));
    }
    for message in messages {
        assert!(at.all_ended().is_none());
        assert!(at.on_message(process(1), message));
    }
    let (_, payloads) = at.all_ended().expect("both have ended");
    payloads.clone()
}

fn by_id(packets: &[Packet]) -> BTreeMap<PacketId, Packet> {
    let packets = packets.iter().cloned();
    packets.map(|packet| (packet.id, packet)).collect()
}

#[test]
fn thousands_of_packets_come_in_a_few_full_messages() {
    for (count, len) in [
        (5000, 300),
        (5000, 0),
        (300, 1400),
        (40, 16_000),
        (7, 65_507),
    ] {
        let packets = packets(count, len);
        let (_, messages) = sender(&packets);
        assert!(messages.iter().all(|message| message.len() <= WORD_BYTES));
        // All but the last word have no room for another packet; then comes END_RECOVERY.
        let per_word = (WORD_BYTES - HEAD) / (PACKET_HEAD + len);
        let words = packets.len().div_ceil(per_word);
        assert_eq!(messages.len(), words + 1, "{count} of {len}");
        assert_eq!(arrived(&messages), by_id(&packets));
    }
}

#[test]
fn a_word_is_full_to_its_last_byte_and_not_beyond() {
    let room = WORD_BYTES - HEAD - 2 * PACKET_HEAD;
    let two = |first: usize, second: usize| [packet(1, first), packet(2, second)];
    let exact = two(room / 2, room - room / 2);
    assert_eq!(in_words(&exact), [2]);
    let word = &Word::payloads(exact.iter().cloned())[0];
    assert_eq!(word.encode(ring(4)).len(), WORD_BYTES);
    assert_eq!(in_words(&two(room / 2, room - room / 2 + 1)), [1, 1]);
    assert_eq!(in_words(&two(room, 0)), [2]);
    assert_eq!(in_words(&two(room + 1, 0)), [1, 1]);
    assert_eq!(in_words(&[]), [0; 0]);
}

#[test]
fn a_packet_larger_than_a_word_comes_in_parts_and_its_neighbours_do_not() {
    // As much as a word takes, with no room for others; one byte more; and several times that.
    let alone = WORD_BYTES - HEAD - PACKET_HEAD;
    for (len, parts) in [(alone, 1), (alone + 1, 2), (3 * WORD_BYTES, 4)] {
        let packets = [packet(1, 10), packet(2, len), packet(3, 10), packet(4, 10)];
        assert_eq!(in_words(&packets), [1, 1, 2]);
        let (_, messages) = sender(&packets);
        assert!(messages.iter().all(|message| message.len() <= WORD_BYTES));
        assert_eq!(messages.len(), 1 + parts + 1 + 1, "{len}");
        assert_eq!(arrived(&messages), by_id(&packets));
    }
}

#[test]
fn packets_without_end_or_of_nobody_and_words_without_packets_are_refused() {
    let refused = |bytes: &[u8]| Word::decode(&Bytes::copy_from_slice(bytes)).is_none();
    let whole = Word::Payload(packets(3, 10)).encode(ring(4));
    assert!(!refused(&whole));
    assert!(refused(&whole[..HEAD]), "no packet");
    let (length, number) = (HEAD + 11, HEAD + 2);
    for (at, value) in [(length, 11), (length, 61), (length + 3, 0xff), (number, 0)] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        assert!(refused(&bytes), "{value} at {at}");
    }
}

#[test]
fn who_sends_several_packets_in_parts_or_before_it_has_told_is_refused() {
    let part = |word: &Word| {
        let bytes = Bytes::from(word.encode(ring(4)));
        let part = Word::Part { last: true, bytes };
        Bytes::from(part.encode(ring(4)))
    };
    let one = part(&Word::Payload(packets(1, 10)));
    assert!(told(2).on_message(process(1), &one));
    let several = part(&Word::Payload(packets(2, 10)));
    assert!(!told(2).on_message(process(1), &several));
    let members = (1..=2).map(process).collect();
    let mut silent = Exchange::new(ring(4), members, process(2), Time(0));
    assert!(!silent.on_message(process(1), &one));
    assert_eq!(silent.step, Step::Silent);
}
