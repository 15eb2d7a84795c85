use super::*;

const COMMON: Rank = Rank(9);
const OWN: Rank = Rank(1);

fn apply_in(sessions: &mut Sessions, client: ClientId, of: (Rank, Sequence)) -> Verdict {
    let verdict = sessions.begin(client, of);
    if verdict == Verdict::New {
        sessions.answer(client, of, vec![of.1 as u8]);
    }
    verdict
}

fn apply(sessions: &mut Sessions, client: ClientId, sequence: Sequence) -> Verdict {
    apply_in(sessions, client, (COMMON, sequence))
}

#[test]
fn a_command_counts_once() {
    let mut sessions = Sessions::default();
    assert_eq!(apply(&mut sessions, 7, 1), Verdict::Unknown);
    sessions.open(7);
    assert_eq!(apply(&mut sessions, 7, 1), Verdict::New);
    assert_eq!(apply(&mut sessions, 7, 3), Verdict::New);
    assert_eq!(apply(&mut sessions, 7, 1), Verdict::Again(vec![1]));
    assert_eq!(apply(&mut sessions, 7, 2), Verdict::New, "it comes late");
    sessions.open(7);
    assert_eq!(apply(&mut sessions, 7, 3), Verdict::Again(vec![3]));
    for sequence in 4..=3 + WINDOW {
        assert_eq!(apply(&mut sessions, 7, sequence), Verdict::New);
    }
    assert_eq!(apply(&mut sessions, 7, 3), Verdict::Forgotten);
    assert_eq!(apply(&mut sessions, 7, 4), Verdict::Again(vec![4]));
    assert_eq!(apply(&mut sessions, 7, u64::MAX), Verdict::New);
    assert_eq!(apply(&mut sessions, 7, 3 + WINDOW), Verdict::Forgotten);
    sessions.close(7);
    assert_eq!(apply(&mut sessions, 7, 4), Verdict::Unknown);
    assert!(sessions.is_empty());
    assert_eq!(sessions.bytes(), 0);
}

#[test]
fn each_ring_has_numbers_that_are_too_old_and_a_command_counts_once_in_all() {
    let mut sessions = Sessions::default();
    sessions.open(7);
    assert_eq!(apply_in(&mut sessions, 7, (OWN, 1)), Verdict::New);
    for sequence in 3..200 {
        assert_eq!(apply(&mut sessions, 7, sequence), Verdict::New);
    }
    assert_eq!(apply(&mut sessions, 7, 2), Verdict::Forgotten);
    assert_eq!(apply_in(&mut sessions, 7, (OWN, 2)), Verdict::New);
    let again = apply(&mut sessions, 7, 1);
    assert_eq!(again, Verdict::Again(vec![1]), "it went to another ring");
    let again = apply_in(&mut sessions, 7, (OWN, 199));
    assert_eq!(again, Verdict::Again(vec![199]));
}

#[test]
fn who_was_used_longest_ago_makes_way() {
    let mut sessions = Sessions::with_room(3, MOST_BYTES);
    (1..=3).for_each(|client| sessions.open(client));
    sessions.renew(1);
    sessions.renew(5);
    sessions.open(4);
    assert_eq!(apply(&mut sessions, 2, 1), Verdict::Unknown);
    assert_eq!(apply(&mut sessions, 1, 1), Verdict::New);
    assert_eq!(sessions.len(), 3);
}

/// Only answers do: what was applied stays known, and so do the sessions.
#[test]
fn answers_make_way_for_others_by_their_size() {
    let mut sessions = Sessions::with_room(10, 300);
    (1..=3).for_each(|client| sessions.open(client));
    let mut answer = |client, sequence, length| {
        let of = (COMMON, sequence);
        assert_eq!(sessions.begin(client, of), Verdict::New);
        sessions.answer(client, of, vec![0; length]);
        let answers = sessions.of.values().flat_map(Session::answers);
        let known: usize = answers.map(|answer| cost(&answer.bytes)).sum();
        assert_eq!(known, sessions.bytes);
        (sessions.by_age.len(), sessions.bytes)
    };
    assert_eq!(answer(1, 1, 40), (1, 40 + COST));
    assert_eq!(answer(2, 1, 40), (2, 80 + 2 * COST));
    assert_eq!(answer(2, 2, 30), (2, 70 + 2 * COST));
    assert_eq!(answer(2, 3, 90), (2, 120 + 2 * COST));
    assert_eq!(answer(2, 4, 400), (1, 400 + COST));
    let verdicts =
        [(1, 1), (2, 3), (3, 1)].map(|(client, of)| sessions.begin(client, (COMMON, of)));
    let [first, second, third] = verdicts;
    assert_eq!((first, second), (Verdict::Forgotten, Verdict::Forgotten));
    assert_eq!(third, Verdict::New);
    assert_eq!(sessions.begin(2, (COMMON, 4)), Verdict::Again(vec![0; 400]));
    let kept = Sessions::decode(&sessions.encode()).expect("sessions");
    assert_eq!((kept.bytes, kept.of), (sessions.bytes, sessions.of));
    assert_eq!(kept.by_age, sessions.by_age);
}

#[test]
fn a_checkpoint_has_them_and_nothing_else_is_taken_for_them() {
    let mut sessions = Sessions::default();
    for client in [9, 2, 5] {
        sessions.open(client);
        (1..=70).for_each(|sequence| {
            let ring = [OWN, COMMON][sequence as usize % 2];
            apply_in(&mut sessions, client, (ring, sequence * client));
        });
    }
    let bytes = sessions.encode();
    assert_eq!(Sessions::decode(&bytes), Some(sessions));
    for at in 0..bytes.len() {
        assert_eq!(Sessions::decode(&bytes[..at]), None, "{at}");
    }
    assert_eq!(Sessions::decode(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(Sessions::decode(&[0xff; 64]), None);
    let mut other = bytes;
    other[7] += 1;
    assert_eq!(Sessions::decode(&other), None, "another version");
}
