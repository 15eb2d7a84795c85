//! Single rules of the machine.

use rota_log::machine::{Answer, Append, Batch, Fault, Keep, Logs, Operation, Outcome, Pack};
use rota_multiring::{Place, Rank};

/// What a batch is answered by itself.
fn apply(logs: &mut Logs, operations: Vec<Operation<'_>>, is_atomic: bool) -> Answer {
    let batch = Batch {
        stamp: 1,
        is_atomic,
        operations,
    };
    let place = Place {
        round: 1,
        rank: Rank(1),
        instance: 1,
        index: 0,
    };
    let applied = logs.apply(place, &Pack(vec![batch.encode()]).encode());
    let answers = Answer::all(&applied.expect("it is a message").answers);
    answers.expect("they are some").pop().expect("it is one")
}

fn append<'a>(log: &'a [u8], named: Option<(&'a [u8], &'a [u8])>) -> Operation<'a> {
    Operation::Append(Append {
        log,
        makes: true,
        expected: None,
        producer: named,
        keep: None,
        entries: vec![b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"],
    })
}

#[test]
fn what_is_to_be_trimmed_is_the_log_that_was_looked_at_and_none_that_has_its_name_by_then() {
    let mut logs = Logs::default();
    let three = || vec![append(b"a", None), append(b"a", None), append(b"a", None)];
    apply(&mut logs, three(), false);
    let id = logs.get(b"a").expect("it is there").id;
    apply(&mut logs, vec![Operation::Delete(b"a")], false);
    apply(&mut logs, three(), false);
    let trim = |id| vec![Operation::Trim(b"a", Keep::From(7), id)];
    let gone = |count| Answer::Outcomes(vec![Outcome::Gone(count)]);
    assert_eq!(apply(&mut logs, trim(Some(id)), false), gone(0));
    assert_eq!(logs.get(b"a").map(rota_log::machine::Log::len), Some(3));
    assert!(logs.is_gone(id) && !logs.is_gone(id + 1) && !logs.is_gone(id + 2));
    let other = logs.get(b"a").expect("it is there").id;
    assert_eq!(apply(&mut logs, trim(Some(other)), false), gone(3));
}

/// What is known of a producer moves within one transaction, too.
#[test]
fn a_transaction_is_whole_though_names_are_forgotten_in_it() {
    let mut logs = Logs::default();
    apply(&mut logs, vec![append(b"a", Some((b"p", b"first")))], false);
    let names: Vec<Vec<u8>> = (0..1_024_u32)
        .map(|name| format!("m{name}").into())
        .collect();
    let mut operations: Vec<Operation<'_>> = names
        .iter()
        .map(|name| append(b"a", Some((b"p", name))))
        .collect();
    let Operation::Append(again) = append(b"a", Some((b"p", b"first"))) else {
        unreachable!("it is one");
    };
    operations.push(Operation::Append(Append {
        expected: Some(1),
        ..again
    }));
    operations.push(append(b"b", None));
    let before = logs.clone();
    let refused = Answer::Refused(1_024, Fault::Expected(1_026));
    assert_eq!(apply(&mut logs, operations, true), refused);
    assert_eq!((logs.len(), logs.get(b"a")), (1, before.get(b"a")));
}

#[test]
fn a_number_that_may_have_been_used_is_refused() {
    let mut logs = Logs::default();
    let names: Vec<Vec<u8>> = (1..=1_100_u32)
        .map(|name| name.to_string().into())
        .collect();
    for name in &names {
        apply(&mut logs, vec![append(b"a", Some((b"p", name)))], false);
    }
    let asked = |logs: &mut Logs, name: &[u8]| match apply(
        logs,
        vec![append(b"a", Some((b"p", name)))],
        false,
    ) {
        Answer::Outcomes(outcomes) => outcomes[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(asked(&mut logs, b"1100"), Outcome::Again(1_100));
    assert_eq!(asked(&mut logs, b"77"), Outcome::Again(77));
    assert_eq!(asked(&mut logs, b"76"), Outcome::Fault(Fault::Forgotten));
    assert_eq!(asked(&mut logs, b"1101"), Outcome::Appended(1_101));
    assert_eq!(logs.get(b"a").map(|log| log.next), Some(1_102));
}

/// What another version has ordered does nothing, and is counted.
#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_done() {
    let mut logs = Logs::default();
    let batch = |operations| {
        let batch = Batch {
            operations,
            ..Batch::default()
        };
        batch.encode()
    };
    let place = Place {
        round: 1,
        rank: Rank(1),
        instance: 1,
        index: 0,
    };
    let message = Pack(vec![
        batch(vec![append(b"a", None)]),
        b"of a later version".to_vec(),
        batch(vec![append(b"a", None)]),
    ]);
    let applied = logs.apply(place, &message.encode()).expect("a message");
    assert_eq!(applied.unreadable, 1);
    let answers = Answer::all(&applied.answers).expect("they are some");
    assert_eq!(answers[1], Answer::Unreadable);
    assert_eq!(logs.get(b"a").map(rota_log::machine::Log::len), Some(2));
    assert!(logs.apply(place, b"no message").is_none());
}
