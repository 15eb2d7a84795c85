//! The room for answers: what is not told is not done.

#[path = "common/run.rs"]
mod run;

use rota_kv::Map;
use rota_kv::store::MOST_VALUE_BYTES;
use rota_kv::store::{Action, Answer, Answered, Batch, Looking, Operation, Outcome, Pack};
use rota_replica::{Command, Machine as _};

use run::{ONE, Run, TWO, place, set, text};

fn of(operations: Vec<Operation<'_>>) -> Batch<'_> {
    Batch {
        operations,
        ..Batch::default()
    }
}

fn texts(answer: &Answer) -> usize {
    let Answer::Outcomes(outcomes) = answer else {
        panic!("{answer:?}");
    };
    let is_text = |(_, outcome): &&(u32, Outcome)| matches!(outcome, Outcome::Text(_));
    outcomes.iter().filter(is_text).count()
}

#[test]
fn answers_are_bounded_and_what_is_not_told_is_not_done() {
    let mut run = Run::alone();
    let large = vec![b'x'; MOST_VALUE_BYTES];
    run.act("a", Action::Append(&large));
    let get = |key| Operation::Key(key, Action::Get);
    let with_gets = |first: Operation<'static>, (key, count): (&'static [u8], usize)| {
        let mut operations = vec![first];
        operations.extend((0..count).map(|_| get(key)));
        operations
    };
    let write = || Operation::Key(b"b", set("1"));
    // A key of that size takes a little more than a quarter.
    let mut most = with_gets(write(), (b"a", 3));
    assert_eq!(texts(&run.batch(&of(most.clone()))), 3);
    assert_eq!(run.act("b", Action::Delete), Outcome::Number(1));
    most.push(Operation::Key(b"a", Action::Take));
    assert_eq!(run.batch(&of(most)), Answer::TooMuch);
    // The values that it makes count as well.
    let append = Operation::Key(b"c", Action::Append(&large));
    let reads = (0..4).map(|_| get(b"c"));
    let own: Vec<_> = [append.clone()].into_iter().chain(reads).collect();
    assert_eq!(run.batch(&of(own.clone())), Answer::TooMuch);
    assert_eq!(texts(&run.batch(&of(own[..4].to_vec()))), 3);
    let fields = |value, names| {
        vec![
            Operation::Key(b"h", Action::SetFields(vec![(b"f", value)])),
            Operation::Key(b"h", Action::Fields(vec![b"f"; names])),
        ]
    };
    let field = &large[1..];
    assert_eq!(run.batch(&of(fields(field, 9))), Answer::TooMuch);
    for key in ["b", "h"] {
        assert_eq!(run.act(key, Action::Exists), Outcome::Number(0), "{key}");
    }
    for value in [&b"x"[..], field] {
        let answer = run.batch(&of(fields(value, 3)));
        assert!(matches!(&answer, Answer::Outcomes(two) if two.len() == 2));
    }
    let length = Outcome::Number(large.len() as i64);
    assert_eq!(run.act("a", Action::Length), length);
    // Deleted is deleted.
    let gone = Operation::Key(b"a", Action::Delete);
    assert_eq!(texts(&run.batch(&of(with_gets(gone, (b"a", 9))))), 0);
}

/// What one client reads keeps no other from what it writes, or a transaction would be torn between partitions; and what has no room for its answer is asked again, and not done.
#[test]
fn what_is_read_in_a_message_tears_nothing_else_in_it() {
    let mut run = Run::alone();
    let large = vec![b'x'; MOST_VALUE_BYTES];
    run.act("a", Action::Append(&large));
    let read = |count| of(vec![Operation::Key(b"a", Action::Get); count]);
    let write = of(vec![
        Operation::Key(b"b", set("1")),
        Operation::Key(b"c", Action::Add(1)),
        Operation::Key(b"b", Action::Take),
    ]);
    let take = of(vec![
        Operation::Key(b"c", Action::Add(1)),
        Operation::Key(b"a", Action::Take),
    ]);
    let epoch = run.store.map().epoch();
    let batches = [read(3), write, read(1), take.clone(), read(5)];
    let batches = batches.map(|batch| Batch { epoch, ..batch }.encode());
    let pack = Pack(batches.to_vec()).encode();
    let command = Command {
        place: place(9),
        client: 1,
        bytes: &pack,
    };
    let answered = Answered::decode(&run.store.apply(command)).expect("an answer");
    let [first, written, later, too, never] = answered.answers.try_into().expect("five");
    assert_eq!(texts(&first), 3);
    let done = vec![(0, Outcome::Done), (1, Outcome::Number(1)), (2, text("1"))];
    assert_eq!(written, Answer::Outcomes(done));
    assert_eq!((later, too), (Answer::Later, Answer::Later));
    assert_eq!(never, Answer::TooMuch);
    assert_eq!(run.act("c", Action::Get), text("1"));
    assert_eq!(texts(&run.batch(&take)), 1);
    assert_eq!(run.act("c", Action::Get), text("2"));
}

/// A partition cannot leave undone what others do. Its sender has asked before.
#[test]
fn a_transaction_of_several_partitions_has_room_for_its_answer_in_any_case() {
    let map = Map::even(&[ONE, TWO]).expect("two");
    assert_eq!([b"bar", b"foo"].map(|key| map.of_key(key)), [ONE, TWO]);
    let mut run = Run::new(ONE, map);
    let large = vec![b'x'; MOST_VALUE_BYTES];
    run.act("bar", Action::Append(&large));
    let epoch = run.store.map().epoch();
    let reads = |count| vec![Operation::Key(b"bar", Action::Get); count];
    let write = |count| {
        let mut operations = reads(count);
        operations.push(Operation::Key(b"foo", set("1")));
        Batch {
            epoch,
            ..of(operations)
        }
        .encode()
    };
    let asked = |run: &Run, count| {
        let pack = Pack(vec![write(count)]).encode();
        let [answer] = run
            .store
            .look_at_pack(&pack, &mut Looking::default())
            .try_into()
            .expect("one");
        answer
    };
    assert_eq!(asked(&run, 3), Answer::Outcomes(Vec::new()));
    assert_eq!(asked(&run, 4), Answer::TooMuch);
    let first = Batch {
        epoch,
        ..of(reads(3))
    }
    .encode();
    let pack = Pack(vec![first, write(3), write(7)]).encode();
    let command = Command {
        place: place(9),
        client: 1,
        bytes: &pack,
    };
    let answered = Answered::decode(&run.store.apply(command)).expect("an answer");
    let all: Vec<usize> = answered.answers.iter().map(texts).collect();
    assert_eq!(all, [3, 3, 7]);
}
