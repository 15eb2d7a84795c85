//! The state machine alone.

#[path = "common/run.rs"]
mod run;

use std::sync::atomic::Ordering::SeqCst;

use proptest::prelude::*;
use rota_kv::outlook::Past;
use rota_kv::store::{Action, Answer, Answered, Batch, Copied, Entry, Fault, Freeze, Life};
use rota_kv::store::{Change, Changed, Only, OnlyLife, Operation, Step, Told, Value, Witness};
use rota_kv::store::{MOST_FIELDS_BYTES, MOST_VALUE_BYTES, Outcome, Pack, Store, Test, Wanted};
use rota_kv::{Map, Partitions};
use rota_multiring::Place;
use rota_replica::{Command, Frozen as _, Machine as _};

use run::{ONE, Run, TWO, place, set, text};

#[test]
fn texts_are_set_and_read_and_gone() {
    let mut run = Run::alone();
    assert_eq!(run.act("k", Action::Get), Outcome::Nothing);
    assert_eq!(run.act("k", set("value")), Outcome::Done);
    assert_eq!(run.act("k", Action::Get), text("value"));
    assert_eq!(run.act("k", Action::Length), Outcome::Number(5));
    assert_eq!(run.act("k", Action::Append(b"s")), Outcome::Number(6));
    let only = |only, get| Action::Set {
        value: b"new",
        life: Life::Ever,
        only,
        get,
    };
    assert_eq!(run.act("k", only(Only::New, false)), Outcome::Nothing);
    assert_eq!(run.act("k", only(Only::New, true)), text("values"));
    assert_eq!(run.act("k", only(Only::Old, true)), text("values"));
    assert_eq!(run.act("k", Action::Take), text("new"));
    assert_eq!(run.act("k", only(Only::Old, false)), Outcome::Nothing);
    assert_eq!(run.act("k", Action::Exists), Outcome::Number(0));
    assert_eq!(run.act("k", only(Only::New, false)), Outcome::Done);
    assert_eq!(run.act("k", Action::Delete), Outcome::Number(1));
    assert_eq!(run.act("k", Action::Delete), Outcome::Number(0));
    assert_eq!(run.store.bytes(), 0);
    let large = vec![b'x'; MOST_VALUE_BYTES];
    assert_eq!(
        run.act("k", Action::Append(&large)),
        Outcome::Number(large.len() as i64)
    );
    let more = run.act("k", Action::Append(b"x"));
    assert_eq!(more, Outcome::Fault(Fault::TooLarge));
}

#[test]
fn numbers_are_added_and_what_is_none_is_told() {
    let mut run = Run::alone();
    assert_eq!(run.act("n", Action::Add(5)), Outcome::Number(5));
    assert_eq!(run.act("n", Action::Add(-7)), Outcome::Number(-2));
    assert_eq!(run.act("n", Action::Get), text("-2"));
    run.act("n", set("9223372036854775807"));
    let over = run.act("n", Action::Add(1));
    assert_eq!(over, Outcome::Fault(Fault::Overflow));
    for none in ["", " 1", "1 ", "+1", "01", "1.0", "9223372036854775808"] {
        run.act("n", set(none));
        let added = run.act("n", Action::Add(1));
        assert_eq!(added, Outcome::Fault(Fault::NotANumber), "{none:?}");
    }
}

#[test]
fn fields_are_a_kind_of_their_own() {
    let mut run = Run::alone();
    let pairs = |of: &[(&str, &str)]| {
        let pair = |(field, value): &(&str, &str)| {
            ((*field).to_owned().into(), (*value).to_owned().into())
        };
        Outcome::Pairs(of.iter().map(pair).collect())
    };
    let new = run.act("h", Action::SetFields(vec![(b"b", b"1"), (b"a", b"2")]));
    assert_eq!(new, Outcome::Number(2));
    let new = run.act("h", Action::SetFields(vec![(b"b", b"3"), (b"b", b"4")]));
    assert_eq!(new, Outcome::Number(0));
    assert_eq!(
        run.act("h", Action::AllFields),
        pairs(&[("a", "2"), ("b", "4")])
    );
    let some = run.act("h", Action::Fields(vec![b"b", b"c"]));
    assert_eq!(some, Outcome::Texts(vec![Some("4".into()), None]));
    assert_eq!(run.act("h", Action::CountFields), Outcome::Number(2));
    for wrong in [
        Action::Get,
        Action::Append(b"x"),
        Action::Add(1),
        Action::Take,
    ] {
        assert_eq!(run.act("h", wrong), Outcome::Fault(Fault::Kind));
    }
    run.act("t", set("x"));
    assert_eq!(run.act("t", Action::AllFields), Outcome::Fault(Fault::Kind));
    let gone = run.act("h", Action::DeleteFields(vec![b"a", b"z", b"a"]));
    assert_eq!(gone, Outcome::Number(1));
    let gone = run.act("h", Action::DeleteFields(vec![b"b"]));
    assert_eq!(gone, Outcome::Number(1));
    assert_eq!(run.act("h", Action::Exists), Outcome::Number(0));
}

#[test]
fn keys_end_by_the_order_s_time() {
    let mut run = Run::alone();
    run.act("k", set("v"));
    assert_eq!(run.act("k", Action::LivesUntil), Outcome::Number(-1));
    let lives = |life, only| Action::Lives(life, only);
    let done = run.act("k", lives(Life::For(100), OnlyLife::Limited));
    assert_eq!(done, Outcome::Number(0));
    let done = run.act("k", lives(Life::For(100), OnlyLife::Ever));
    assert_eq!(done, Outcome::Number(1));
    assert_eq!(run.act("k", Action::LivesUntil), Outcome::Number(100));
    let longer = run.act("k", lives(Life::For(50), OnlyLife::Longer));
    assert_eq!(longer, Outcome::Number(0));
    let shorter = run.act("k", lives(Life::For(50), OnlyLife::Shorter));
    assert_eq!(shorter, Outcome::Number(1));
    // A clock that is behind takes nothing back.
    run.now -= 500;
    assert_eq!(run.act("k", Action::LivesUntil), Outcome::Number(50));
    run.now += 549;
    assert_eq!(run.act("k", Action::Get), text("v"));
    run.now += 1;
    assert_eq!(run.act("k", Action::Get), Outcome::Nothing);
    assert_eq!(run.act("k", Action::LivesUntil), Outcome::Nothing);
    run.act("k", set("v"));
    let past = run.act("k", lives(Life::Until(1), OnlyLife::Always));
    assert_eq!(past, Outcome::Number(1));
    assert_eq!(run.act("k", Action::Exists), Outcome::Number(0));
}

#[test]
fn a_batch_is_done_whole_or_not_at_all() {
    let mut run = Run::alone();
    run.act("a", set("1"));
    let Outcome::Version(version) = run.act("a", Action::Version) else {
        panic!("a version");
    };
    assert_eq!(version, Some(place(1)));
    let batch = |version| Batch {
        conditions: vec![
            (&b"a"[..], Test::Version(version)),
            (&b"b"[..], Test::Version(None)),
        ],
        operations: vec![
            Operation::Key(b"a", Action::Add(1)),
            Operation::Key(b"b", set("x")),
        ],
        ..Batch::default()
    };
    let done = Answer::Outcomes(vec![(0, Outcome::Number(2)), (1, Outcome::Done)]);
    assert_eq!(run.batch(&batch(version)), done);
    assert_eq!(run.batch(&batch(version)), Answer::Refused);
    assert_eq!(run.act("a", Action::Get), text("2"));
}

#[test]
fn a_key_has_no_more_fields_than_can_be_kept() {
    let mut run = Run::alone();
    let large = vec![b'x'; MOST_VALUE_BYTES];
    let mut set = |field: usize| {
        let field = field.to_string();
        let value = &large[field.len()..];
        run.act("h", Action::SetFields(vec![(field.as_bytes(), value)]))
    };
    assert_eq!(set(0), Outcome::Number(1));
    let most = MOST_FIELDS_BYTES / MOST_VALUE_BYTES;
    for field in 1..most {
        assert_eq!(set(field), Outcome::Number(1));
    }
    assert_eq!(set(most), Outcome::Fault(Fault::TooLarge));
    assert_eq!(set(0), Outcome::Number(0));
}

/// Of two batches of one message each has a place of its own: whoever watches what the first has written sees that the second has changed it.
#[test]
fn batches_of_one_message_are_done_one_after_the_other() {
    let mut run = Run::alone();
    let add = Batch {
        epoch: run.store.map().epoch(),
        operations: vec![
            Operation::Key(b"n", Action::Add(1)),
            Operation::Key(b"n", Action::Version),
        ],
        ..Batch::default()
    };
    let add = add.encode();
    let pack = Pack(vec![&add[..], b"none", &add]).encode();
    let command = Command {
        place: place(7),
        client: 1,
        bytes: &pack,
    };
    let answered = Answered::decode(&run.store.apply(command)).expect("an answer");
    run.store.check();
    let version = |index| {
        let place = Place { index, ..place(7) };
        (1, Outcome::Version(Some(place)))
    };
    let expected = [
        Answer::Outcomes(vec![(0, Outcome::Number(1)), version(0)]),
        Answer::Unreadable,
        Answer::Outcomes(vec![(0, Outcome::Number(2)), version(2)]),
    ];
    assert_eq!(answered.answers, expected);
}

#[test]
fn each_partition_does_its_own_part() {
    let map = Map::even(&[ONE, TWO]).expect("two");
    let of = |partition| {
        let mut keys = (0..).map(|n: u32| format!("key {n}"));
        keys.find(|key| map.of_key(key.as_bytes()) == partition)
            .expect("a key")
    };
    let (first, second) = (of(ONE), of(TWO));
    let mut runs = [ONE, TWO].map(|me| Run::new(me, map.clone()));
    let batch = Batch {
        operations: vec![
            Operation::Key(second.as_bytes(), set("2")),
            Operation::Key(first.as_bytes(), set("1")),
            Operation::Size(None),
        ],
        ..Batch::default()
    };
    assert_eq!(batch.to(&map), [ONE, TWO].into());
    let answers = [0, 1].map(|at| runs[at].batch(&batch));
    for (answer, at) in answers.iter().zip([1, 0]) {
        let expected = vec![(at, Outcome::Done), (2, Outcome::Number(1))];
        assert_eq!(*answer, Answer::Outcomes(expected));
    }
    assert!(runs.iter().all(|run| run.store.last() == Some(place(1))));
    let spread = Batch {
        conditions: vec![(first.as_bytes(), Test::Version(None))],
        ..batch
    };
    assert_eq!(runs[0].batch(&spread), Answer::Spread);
    // What is asked of one partition is of no other.
    let size = Batch {
        operations: vec![Operation::Size(Some(TWO))],
        ..Batch::default()
    };
    assert_eq!(size.to(&map), [TWO].into());
    assert_eq!(runs[0].batch(&size), Answer::Outcomes(Vec::new()));
    let one = vec![(0, Outcome::Number(1))];
    assert_eq!(runs[1].batch(&size), Answer::Outcomes(one));
}

#[test]
fn keys_whose_end_has_come_are_taken_away_though_nobody_asks() {
    let mut run = Run::alone();
    let end = run.now + 1_000;
    for key in 0..100 {
        let until = Action::Set {
            value: b"x",
            life: Life::Until(end),
            only: Only::Always,
            get: false,
        };
        run.act(&format!("key{key}"), until);
    }
    assert!(!run.store.has_ended(end - 1) && run.store.has_ended(end));
    let nothing = Batch {
        stamp: end,
        ..Batch::default()
    };
    assert_eq!(run.batch(&nothing), Answer::Outcomes(Vec::new()));
    assert!(run.store.is_empty() && !run.store.has_ended(u64::MAX));
}

#[test]
fn a_range_is_in_order_and_says_whether_there_is_more() {
    let mut run = Run::alone();
    for key in ["b", "a", "d", "c", "e"] {
        run.act(key, set(key));
    }
    let mut range = |from: &str, to: Option<&str>, limit| {
        let operations = vec![Operation::Range {
            from: from.as_bytes(),
            to: to.map(str::as_bytes),
            limit,
            wanted: Wanted::Values,
            of: None,
        }];
        let batch = Batch {
            operations,
            ..Batch::default()
        };
        let Answer::Outcomes(outcomes) = run.batch(&batch) else {
            panic!("outcomes");
        };
        let Outcome::Entries(entries, next) = &outcomes[0].1 else {
            panic!("{outcomes:?}");
        };
        let keys = entries.iter().flat_map(|(key, _)| key.to_vec()).collect();
        (String::from_utf8(keys).expect("text"), next.is_some())
    };
    assert_eq!(range("", None, 9), ("abcde".to_owned(), false));
    assert_eq!(range("b", Some("d"), 9), ("bc".to_owned(), false));
    assert_eq!(range("b", None, 2), ("bc".to_owned(), true));
    assert_eq!(range("d", None, 2), ("de".to_owned(), false));
}

fn life() -> impl Strategy<Value = Life> {
    prop_oneof![
        Just(Life::Ever),
        Just(Life::Keep),
        (0..3_000u64).prop_map(Life::Until),
        (0..300u64).prop_map(Life::For),
    ]
}

fn action() -> impl Strategy<Value = Action<'static>> {
    let text = prop_oneof![Just(&b"1"[..]), Just(&b""[..]), Just(&b"some text"[..])];
    let field = prop_oneof![Just(&b"f"[..]), Just(&b"g"[..])];
    let only = prop_oneof![Just(Only::Always), Just(Only::New), Just(Only::Old)];
    let only_life = prop_oneof![
        Just(OnlyLife::Always),
        Just(OnlyLife::Ever),
        Just(OnlyLife::Limited),
        Just(OnlyLife::Longer),
        Just(OnlyLife::Shorter),
    ];
    prop_oneof![
        Just(Action::Get),
        Just(Action::Kind),
        Just(Action::LivesUntil),
        Just(Action::Version),
        Just(Action::Take),
        (text.clone(), life(), only, any::<bool>()).prop_map(|(value, life, only, get)| {
            Action::Set {
                value,
                life,
                only,
                get,
            }
        }),
        text.clone().prop_map(Action::Append),
        (-3..3i64).prop_map(Action::Add),
        Just(Action::Delete),
        (life(), only_life).prop_map(|(life, only)| Action::Lives(life, only)),
        life().prop_map(Action::GetAndLives),
        Just(Action::AllFields),
        (field.clone(), text).prop_map(|(field, value)| Action::SetFields(vec![(field, value)])),
        field.prop_map(|field| Action::DeleteFields(vec![field])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A replica that begins with a state of another goes on as that does, and has the same state then, byte by byte. A
    /// state that is written later is the one of its place.
    #[test]
    fn who_goes_on_behind_a_state_answers_alike(
        steps in proptest::collection::vec((0..4usize, action(), 0..200u64), 1..60),
        at in 0..60usize,
    ) {
        let keys = ["a", "b", "c", "d"];
        let mut run = Run::alone();
        let mut other: Option<Run> = None;
        let mut unwritten = None;
        for (step, (key, action, passes)) in steps.into_iter().enumerate() {
            if step == at {
                let mut bytes = Vec::new();
                run.store.freeze().write(&mut bytes).expect("it is written");
                let mut behind = Run::alone();
                (behind.at, behind.now) = (run.at, run.now);
                behind.store.install(&mut &bytes[..]).expect("a state");
                other = Some(behind);
                unwritten = Some((run.store.freeze(), bytes));
            }
            for run in [Some(&mut run), other.as_mut()].into_iter().flatten() {
                run.now += passes;
            }
            let outcome = run.act(keys[key], action.clone());
            if let Some(other) = &mut other {
                prop_assert_eq!(other.act(keys[key], action), outcome);
                prop_assert!(other.store.freeze() == run.store.freeze());
            }
        }
        if let Some((frozen, bytes)) = unwritten {
            let mut late = Vec::new();
            frozen.write(&mut late).expect("it is written");
            prop_assert!(late == bytes);
        }
    }

    /// Nothing that is no command or answer makes it panic, and nothing that is damaged is a state.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut run = Run::alone();
        let command = Command { place: place(1), client: 1, bytes: &bytes };
        let answer = Answered::decode(&run.store.apply(command)).expect("an answer");
        run.store.check();
        let is_pack = Pack::decode(&bytes).is_some();
        prop_assert!(is_pack || answer.answers == [Answer::Unreadable]);
        let pack = Pack(vec![&bytes]).encode();
        let command = Command { place: place(2), client: 1, bytes: &pack };
        let answer = Answered::decode(&run.store.apply(command)).expect("an answer");
        run.store.check();
        prop_assert!(answer.answers == [Answer::Unreadable] || Batch::decode(&bytes).is_some());
        let _ = Answered::decode(&bytes);
        prop_assert!(run.store.install(&mut &bytes[..]).is_err());
    }
}

#[test]
fn a_state_that_is_damaged_anywhere_is_none_or_another() {
    let mut run = Run::alone();
    run.act("a", set("text"));
    run.act("a", Action::Lives(Life::For(9), OnlyLife::Always));
    run.act("b", Action::SetFields(vec![(b"f", b"v")]));
    let frozen = run.store.freeze();
    let mut bytes = Vec::new();
    frozen.clone().write(&mut bytes).expect("it is written");
    let read = |bytes: &[u8]| {
        let mut store = Run::alone().store;
        store.install(&mut &bytes[..]).map(|()| store.freeze())
    };
    assert_eq!(read(&bytes).expect("a state"), frozen);
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at]).is_err(), "{at}");
        let mut other = bytes.clone();
        other[at] ^= 1;
        // The checkpoint's hash finds these; here nothing panics, and nothing is read as what it was.
        assert!(
            read(&other).is_ok_and(|read| read != frozen) || read(&other).is_err(),
            "{at}"
        );
    }
    bytes.push(0);
    assert!(read(&bytes).is_err());
}

/// A slot's keys went one by one at the place where it was given: commands waited for seconds where it had a million.
#[test]
fn a_slot_of_many_keys_is_given_in_bounded_steps() {
    const MANY: usize = 20_000;
    const AT_ONCE: usize = 512;
    let map = || Map::even(&[ONE, TWO]).expect("two");
    let [mut from, mut to] = [ONE, TWO].map(|me| Run::new(me, map()));
    let name = |number: usize| format!("{{bar}}{number:06}");
    let slot = rota_resp::slot::of(b"bar");
    assert_eq!(map().of_slot(slot), ONE);
    let step = |run: &mut Run, step: Step| {
        let batch = Batch {
            operations: vec![Operation::Step(step)],
            ..Batch::default()
        };
        match run.batch(&batch) {
            Answer::Outcomes(outcomes) => outcomes[0].1.clone(),
            other => panic!("{other:?}"),
        }
    };
    let version = place(1);
    let (of, mut at) = ((7, 1), 0);
    for first in (0..MANY).step_by(1_000) {
        let names: Vec<String> = (first..first + 1_000).map(name).collect();
        let sets = names
            .iter()
            .map(|name| Operation::Key(name.as_bytes(), set("old")));
        let batch = Batch {
            operations: sets.collect(),
            ..Batch::default()
        };
        from.batch(&batch);
        drop(batch);
        let entry = |name: String| {
            let entry = Entry::new(Value::Text("old".into()), version, None);
            let is_more = false;
            (name.into(), Some(Copied { entry, is_more }))
        };
        let keys = names.into_iter().map(entry).collect();
        step(
            &mut to,
            Step::Copy {
                of,
                to: TWO,
                at,
                keys,
            },
        );
        at += 1;
    }
    let freeze = Freeze {
        of,
        from: ONE,
        to: TWO,
        slots: [slot].into_iter().collect(),
    };
    for run in [&mut from, &mut to] {
        assert_eq!(step(run, Step::Freeze(freeze.clone())), Outcome::Done);
        assert_eq!(step(run, Step::Give(of)), Outcome::Done);
        assert!(!run.store.is_settled());
    }
    // All of it counts at once, and what is written meanwhile stays.
    assert_eq!((from.store.len(), to.store.len()), (0, MANY));
    assert_eq!(from.store.get(name(5).as_bytes()), None);
    assert_eq!(to.act(&name(MANY - 1), set("new")), Outcome::Done);
    assert_eq!(to.act(&name(MANY - 2), Action::Delete), Outcome::Number(1));
    let mut messages = 0;
    while !from.store.is_settled() || !to.store.is_settled() {
        messages += 1;
        let settled = |run: &Run| run.store.snapshot().keys.len();
        let before = (settled(&from), settled(&to));
        from.act("b", Action::Get);
        assert_eq!(to.act(&name(messages), Action::Get), text("old"));
        let (gone, come) = (before.0 - settled(&from), settled(&to) - before.1);
        assert!(gone <= AT_ONCE && come <= AT_ONCE, "{gone} {come}");
        // A state in the middle of it is one like any other.
        let mut state = Vec::new();
        to.store.freeze().write(&mut state).expect("memory");
        to.store.install(&mut &state[..]).expect("its own state");
    }
    assert!(messages >= MANY / AT_ONCE - 2);
    assert_eq!((from.store.len(), to.store.len()), (0, MANY - 1));
    assert_eq!(to.act(&name(MANY - 1), Action::Get), text("new"));
    assert_eq!(to.act(&name(MANY - 2), Action::Get), Outcome::Nothing);
    assert_eq!(from.store.bytes(), 0);
}

/// What another version has ordered does nothing, and is counted.
#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_done() {
    let mut run = Run::alone();
    let add = Batch {
        stamp: 1,
        epoch: run.store.map().epoch(),
        operations: vec![Operation::Key(b"n", Action::Add(1))],
        ..Batch::default()
    };
    let apply = |store: &mut Store, bytes: &[u8]| {
        let answered = store.apply(Command {
            place: place(1),
            client: 1,
            bytes,
        });
        Answered::decode(&answered).expect("an answer").answers
    };
    let pack = Pack(vec![
        add.encode(),
        b"of a later version".to_vec(),
        add.encode(),
    ]);
    let counted = run.store.unreadable();
    let answers = apply(&mut run.store, &pack.encode());
    assert_eq!(answers[1], Answer::Unreadable);
    assert_eq!(counted.load(SeqCst), 1);
    // What is counted does not go with a state that is taken in.
    let mut state = Vec::new();
    run.store.freeze().write(&mut state).expect("it is written");
    run.store.install(&mut &state[..]).expect("a state");
    assert_eq!(apply(&mut run.store, b"no pack"), [Answer::Unreadable]);
    assert_eq!(counted.load(SeqCst), 2);
    assert_eq!(run.act("n", Action::Get), text("2"));
}

/// A witness that keeps what it hears.
struct Hears(bool, std::sync::mpsc::Sender<Change>);

impl Witness for Hears {
    fn began(&mut self, _: Option<Place>, _: &Past) {}

    fn delivered(&mut self, _: Place, _: &Partitions) {}

    fn mapped(&mut self, _: &std::sync::Arc<Map>) {}

    fn hears_changes(&self) -> bool {
        self.0
    }

    fn changed(&mut self, changed: Changed) {
        for change in changed.changes {
            self.1.send(change).expect("the test listens");
        }
    }
}

#[test]
fn fields_are_told_whole_and_to_nobody_who_hears_no_changes() {
    for hears in [true, false] {
        let (tell, told) = std::sync::mpsc::channel();
        let mut run = Run::alone();
        let mut state = Vec::new();
        run.store.freeze().write(&mut state).expect("it is written");
        run.store = run.store.with_witness(Box::new(Hears(hears, tell)));
        // Also after a state was taken in.
        run.store.install(&mut &state[..]).expect("a state");
        // A few fields, and many, a change of which shares memory with the key.
        for number in 0..100_u8 {
            run.act("h", Action::SetFields(vec![(&[number], b"v")]));
            if !hears {
                continue;
            }
            let pair = |number| (vec![number].into(), b"v"[..].into());
            let fields: Vec<(bytes::Bytes, bytes::Bytes)> = (0..=number).map(pair).collect();
            let value = match told.try_recv().expect("a change") {
                Change::Set(_, Told::Fields(fields)) => fields,
                Change::Set(_, Told::ManyFields(fields)) => fields.into_iter().collect(),
                other => panic!("{other:?}"),
            };
            assert_eq!(value, fields);
        }
        let more = told.try_recv();
        assert!(more.is_err(), "{more:?}");
    }
}
