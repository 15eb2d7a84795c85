//! Words that are longer than a message of the ring.

use super::*;
use crate::exchange::{Exchange, Step};
use crate::message::WORD_BYTES;

/// The knowledge of a process with this many tiny packets of a view of three, with places that are far from each other.
fn laden(packets: u64) -> Recover {
    let far = |number: u64| (number % 2) << 60;
    let held: Vec<Name> = (1..=packets)
        .map(|number| name(1, number, &[far(number), far(number + 1), number + 2]))
        .collect();
    installed(standing(3, &[0, 0, 0], &held, 1))
}

fn exchange(me: u16) -> Exchange {
    let members = (1..=2).map(process).collect();
    Exchange::new(ring(4), members, process(me), Time(0))
}

/// All that an exchange has to submit.
pub(super) fn submitted(exchange: &mut Exchange) -> Vec<Bytes> {
    let mut all = Vec::new();
    while let Some(bytes) = exchange.unsent().map(Bytes::copy_from_slice) {
        exchange.sent();
        all.push(bytes);
    }
    all
}

#[test]
fn what_a_laden_member_knows_comes_in_messages_that_the_ring_takes() {
    for packets in [10, 2000, 40_000] {
        let mut from = exchange(1);
        from.tell(laden(packets));
        let parts = submitted(&mut from);
        assert!(parts.iter().all(|part| part.len() <= WORD_BYTES));
        assert_eq!(parts.len() > 1, packets > 2000, "{}", parts.len());

        let mut at = exchange(2);
        at.tell(Recover::default());
        for (count, part) in parts.iter().enumerate() {
            assert!(at.all_told().is_none(), "{count} of {} parts", parts.len());
            assert!(at.on_message(process(1), part));
        }
        for own in submitted(&mut at) {
            assert!(at.on_message(process(2), &own));
        }
        assert_eq!(
            at.all_told(),
            Some(vec![&laden(packets), &Recover::default()])
        );
    }
}

#[test]
fn parts_of_several_members_do_not_mix() {
    let (mut one, mut two) = (exchange(1), exchange(2));
    one.tell(laden(10_000));
    two.tell(laden(9_000));
    let mut at = exchange(1);
    let (mut of_one, mut of_two) = (submitted(&mut one), submitted(&mut two));
    while !of_one.is_empty() || !of_two.is_empty() {
        for (from, parts) in [(1, &mut of_one), (2, &mut of_two)] {
            if !parts.is_empty() {
                assert!(at.on_message(process(from), &parts.remove(0)));
            }
        }
    }
    assert_eq!(at.all_told(), Some(vec![&laden(10_000), &laden(9_000)]));
}

#[test]
fn parts_that_make_no_word_are_refused() {
    let part = |bytes: &[u8], last: bool| {
        let bytes = Bytes::copy_from_slice(bytes);
        Bytes::from(Word::Part { last, bytes }.encode(ring(4)))
    };
    let of_another_ring = Word::Recover(laden(1)).encode(ring(5));
    let no_recover = Word::EndRecovery.encode(ring(4));
    for bytes in [&b"nothing"[..], &of_another_ring, &no_recover] {
        let mut at = exchange(2);
        assert!(at.on_message(process(1), &part(&bytes[..3], false)));
        assert!(!at.on_message(process(1), &part(&bytes[3..], true)));
        assert_eq!(at.waiting_for(), [node(1), node(2)]);
    }
    // Parts of parts would have no end.
    let nested = part(&part(b"nothing", true), true);
    assert!(!exchange(2).on_message(process(1), &nested));
    // A member that has told has no more to tell.
    let mut at = exchange(2);
    let word = Word::Recover(laden(1)).encode(ring(4));
    assert!(at.on_message(process(1), &Bytes::from(word)));
    let again = Word::Recover(laden(1)).encode(ring(4));
    assert!(!at.on_message(process(1), &part(&again, true)));
    assert_eq!(at.step, Step::Silent);
}
