//! The bytes of commands, answers, states and entries are those of `testdata/golden/log.txt`, and are read back as what
//! they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;

use golden::Golden;
use rota_core::bytes::Reader;
use rota_log::machine::{
    Answer, Append, Batch, Fault, Keep, Limits, Logs, Operation, Outcome, Pack,
};
use rota_log::store::record::{Run, RunBuilder};
use rota_multiring::{Place, Rank};

const STAMP: u64 = 0x0102_0304_0506_0708;

const fn place(instance: u64) -> Place {
    Place {
        round: 0x0a0b,
        rank: Rank(0x0c0d),
        instance,
        index: 0x0e,
    }
}

fn operations() -> Vec<Operation<'static>> {
    let limits = Limits {
        entries: Some(0x2122),
        bytes: None,
        millis: Some(0x2324),
    };
    let append = Append {
        log: b"log",
        makes: true,
        expected: Some(1),
        producer: Some((b"p", b"n1")),
        keep: Some(Keep::Last(0x3132)),
        entries: vec![b"one", b"two"],
    };
    vec![
        Operation::Make(b"log", limits, true),
        Operation::Append(append),
        Operation::Trim(b"log", Keep::From(2), Some(1)),
        Operation::Seal(b"log"),
        Operation::Delete(b"log"),
    ]
}

fn batch(operations: Vec<Operation<'static>>) -> Batch<'static> {
    Batch {
        stamp: STAMP,
        is_atomic: true,
        operations,
    }
}

fn answers() -> Vec<Answer> {
    let fault = |fault| Outcome::Fault(fault);
    vec![
        Answer::Outcomes(vec![
            Outcome::Appended(0x4142),
            Outcome::Again(0x4344),
            Outcome::Gone(0x4546),
            Outcome::Done,
            Outcome::Nothing,
            fault(Fault::Sealed),
            fault(Fault::Expected(0x4748)),
            fault(Fault::TooMany),
            fault(Fault::TooLarge),
            fault(Fault::Forgotten),
        ]),
        Answer::Refused(0x0506, Fault::Sealed),
        Answer::Unreadable,
    ]
}

/// Logs of which one was made, appended to, trimmed and sealed.
fn logs() -> Logs {
    let mut logs = Logs::default();
    let mut operations = operations();
    operations.pop();
    let message = Pack(vec![batch(operations).encode()]).encode();
    let applied = logs.apply(place(0x5152), &message).expect("a message");
    let answers = Answer::all(&applied.answers).expect("answers");
    assert!(matches!(answers[..], [Answer::Outcomes(_)]), "{answers:?}");
    logs
}

#[test]
fn commands_answers_states_and_entries() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "log");
    let bytes = Pack(vec![batch(operations()).encode()]).encode();
    let bytes = golden.compare("pack of a batch", &bytes);
    let pack = Pack::decode(&bytes).expect("a pack");
    assert_eq!(Batch::decode(pack.0[0]), Some(batch(operations())));

    let mut bytes = Vec::new();
    answers().iter().for_each(|answer| answer.put(&mut bytes));
    let bytes = golden.compare("answers", &bytes);
    assert_eq!(Answer::all(&bytes), Some(answers()));

    let mut bytes = Vec::new();
    logs().encode(&mut bytes);
    let bytes = golden.compare("state", &bytes);
    assert_eq!(Logs::decode(&mut Reader(&bytes)), Some(logs()));

    let mut run = RunBuilder::new(0x6162, 7);
    run.push(place(0x7172), STAMP, b"first");
    run.push(place(0x7173), STAMP + 1, b"2nd");
    let run = run.finish().expect("two records");
    let bytes = golden.compare("run of records", run.bytes());
    assert_eq!(Run::check(0x6162, 7, bytes.into()), Ok(run));
    golden.finish();
}
