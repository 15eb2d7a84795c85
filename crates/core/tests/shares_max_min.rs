//! Max-min fair shares: the rates of [`max_min`] fit every link, and no sender could get more without taking it from
//! one that has no more.

mod property;

use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::shares::max_min;

const GBIT: u64 = 1_000_000_000;

fn all(requirements: &[u64], capacity: u64) -> Vec<u64> {
    (0..requirements.len())
        .map(|me| max_min(requirements, me, capacity))
        .collect()
}

/// What the link of `receiver` has to take in.
fn load(shares: &[u64], receiver: usize) -> u128 {
    let others = shares.iter().enumerate().filter(|&(at, _)| at != receiver);
    others.map(|(_, &share)| u128::from(share)).sum()
}

/// Few different values, so that there are ties, and those at the ends of the range.
fn requirement() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..2 * GBIT,
        3 => (0..6u64).prop_map(|part| part * GBIT / 6),
        1 => Just(0),
        1 => Just(u64::MAX),
        1 => u64::MAX - 5..=u64::MAX,
        2 => 0..40u64,
    ]
}

fn case() -> impl Strategy<Value = (Vec<u64>, u64)> {
    let capacity = prop_oneof![
        4 => Just(GBIT),
        1 => Just(0),
        1 => Just(u64::MAX),
        2 => 0..100u64,
        2 => 0..3 * GBIT,
    ];
    (vec(requirement(), 1..=32), capacity)
}

#[test]
fn the_papers_example() {
    let mbits = |values: &[u64]| {
        values
            .iter()
            .map(|mbit| mbit * 1_000_000)
            .collect::<Vec<_>>()
    };
    let shares = all(&mbits(&[700, 600, 300]), GBIT);
    assert_eq!(shares, mbits(&[500, 500, 300]));
}

#[test]
fn alone_and_for_two_there_is_nobody_to_share_with() {
    assert_eq!(all(&[7], 10), [7]);
    assert_eq!(all(&[70], 10), [10]);
    assert_eq!(all(&[0], 0), [0]);
    assert_eq!(all(&[u64::MAX, 3], u64::MAX), [u64::MAX, 3]);
    assert_eq!(all(&[12, 9], 10), [10, 9]);
}

#[test]
fn all_who_want_all_fill_every_link() {
    for members in 2..=32 {
        let shares = all(&vec![u64::MAX; members], GBIT);
        assert_eq!(shares, vec![GBIT / (members as u64 - 1); members]);
    }
}

#[test]
fn no_link_takes_in_more_than_it_can() {
    property::check(4000, case(), |(requirements, capacity)| {
        let shares = all(&requirements, capacity);
        for receiver in 0..shares.len() {
            prop_assert!(
                load(&shares, receiver) <= u128::from(capacity),
                "{shares:?}"
            );
        }
        for (share, requirement) in shares.iter().zip(&requirements) {
            prop_assert!(share <= requirement, "{shares:?}");
        }
        Ok(())
    });
}

/// Who gets less than it requires sends to a full link on which nobody gets more. What cannot be
/// divided may be left over: less than one bit for each sender.
#[test]
fn nobody_could_get_more_without_taking_it_from_who_has_no_more() {
    property::check(4000, case(), |(requirements, capacity)| {
        let shares = all(&requirements, capacity);
        for (me, &share) in shares.iter().enumerate() {
            let bound = share == requirements[me]
                || shares.len() == 1 && share == capacity
                || (0..shares.len()).filter(|&to| to != me).any(|to| {
                    let full = load(&shares, to) + shares.len() as u128 > u128::from(capacity);
                    let mut rivals = shares.iter().enumerate().filter(|&(at, _)| at != to);
                    full && rivals.all(|(_, &rival)| rival <= share)
                });
            prop_assert!(bound, "member {me} of {shares:?}");
        }
        Ok(())
    });
}

/// What the state machine's safety rests on: who believes that another requires more takes no more.
#[test]
fn who_wants_more_gets_no_less_and_the_others_get_no_more() {
    let more = (case(), any::<prop::sample::Index>(), requirement());
    property::check(4000, more, |((before, capacity), who, requirement)| {
        let who = who.index(before.len());
        let mut after = before.clone();
        after[who] = after[who].max(requirement);
        let (old, new) = (all(&before, capacity), all(&after, capacity));
        for at in 0..old.len() {
            let holds = if at == who {
                new[at] >= old[at]
            } else {
                new[at] <= old[at]
            };
            prop_assert!(holds, "member {at}: {old:?}, then {new:?}");
        }
        Ok(())
    });
}

/// All compute the same, also where two require the same: shares go by requirement, not by place.
#[test]
fn places_make_no_difference() {
    let shuffled = case().prop_flat_map(|(requirements, capacity)| {
        let places: Vec<usize> = (0..requirements.len()).collect();
        (
            Just(requirements),
            Just(capacity),
            Just(places).prop_shuffle(),
        )
    });
    property::check(2000, shuffled, |(requirements, capacity, places)| {
        let moved: Vec<u64> = places.iter().map(|&place| requirements[place]).collect();
        let (shares, moved_shares) = (all(&requirements, capacity), all(&moved, capacity));
        for (at, &place) in places.iter().enumerate() {
            prop_assert_eq!(moved_shares[at], shares[place]);
        }
        for (a, b) in (0..shares.len()).zip(1..shares.len()) {
            prop_assert!(requirements[a] != requirements[b] || shares[a] == shares[b]);
        }
        Ok(())
    });
}

#[test]
fn words_and_notes_are_read_as_written_and_nothing_else_is() {
    use rota_core::shares::{Note, Word, WordError};
    property::check(
        500,
        (any::<u64>(), any::<u64>(), vec(any::<u8>(), 0..40)),
        |(a, b, bytes)| {
            let word = Word::Requirement {
                number: a,
                requirement: b,
            };
            prop_assert_eq!(Word::decode(&word.encode()), Ok(word));
            let link = Word::Capacity {
                number: a,
                capacity: b,
            };
            prop_assert_eq!(Word::decode(&link.encode()), Ok(link));
            let note = Note {
                requirement: a,
                capacity: b,
            };
            prop_assert_eq!(Note::decode(&note.encode()), Some(note));
            for end in 0..Word::MAX_BYTES {
                prop_assert_eq!(Word::decode(&word.encode()[..end]), Err(WordError::Length));
            }
            let expected = match bytes.first() {
                None => Err(WordError::Length),
                Some(1 | 2) if bytes.len() == Word::MAX_BYTES => Word::decode(&bytes),
                Some(1 | 2) => Err(WordError::Length),
                Some(_) => Err(WordError::Kind),
            };
            prop_assert_eq!(Word::decode(&bytes), expected);
            prop_assert_eq!(Note::decode(&bytes).is_some(), bytes.len() == Note::BYTES);
            Ok(())
        },
    );
}
