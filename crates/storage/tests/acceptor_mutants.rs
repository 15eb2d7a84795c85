//! Broken versions of the log, and the properties that have to hold and do not with them.

mod sim;

use rota_core::mutants::{self, Mutant};
use rota_storage::acceptor::Kind;
use sim::{Keep, Random, SimDir, append, open, record, told};

/// A broken version, and what does not hold with it.
type Rule = (Mutant, fn() -> bool);

/// A record that is answered as durable is there after a loss of power, though a sync has failed.
fn what_is_answered_is_on_the_disk() -> bool {
    let dir = SimDir::default();
    let mut log = open(&dir).expect("a new one");
    append(&mut log, &[record(Kind::Vote, 0, 0, b"value")]).expect("there is room");
    log.write().expect("there is room");
    dir.world().fail_in(1, libc::EIO, 0);
    let is_answered = log.commit().is_ok();
    drop(log);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    let is_there = open(&dir).is_ok_and(|log| log.last() == Some(0));
    !is_answered || is_there
}

/// A change of any byte is found, or nothing else is told than was written.
fn nothing_else_is_told_than_was_written() -> bool {
    let dir = SimDir::default();
    let mut log = open(&dir).expect("a new one");
    let mut history = vec![told(&mut log)];
    for what in [
        record(Kind::Promise, 5, u64::MAX, b"round 2"),
        record(Kind::Vote, 5, 5, b"value"),
        record(Kind::State, 3, 0, b"a name"),
    ] {
        append(&mut log, &[what]).expect("there is room");
        log.commit().expect("there is room");
        history.push(told(&mut log));
    }
    drop(log);
    let files = dir.world().files();
    files.iter().all(|(name, bytes)| {
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        (0..=used).all(|at| {
            let mut changed = files.clone();
            changed.get_mut(name).expect("it is there")[at] ^= 1;
            let log = open(&SimDir::with(&changed));
            log.map_or(true, |mut log| history.contains(&told(&mut log)))
        })
    })
}

#[test]
fn each_broken_version_is_found_out() {
    let rules: [Rule; 2] = [
        (Mutant::M36, what_is_answered_is_on_the_disk),
        (Mutant::M37, nothing_else_is_told_than_was_written),
    ];
    for (mutant, holds) in rules {
        assert!(holds(), "{mutant}");
        mutants::set(Some(mutant));
        let holds_with_it = std::panic::catch_unwind(holds);
        mutants::set(None);
        assert!(!holds_with_it.expect("a rule, and no panic"), "{mutant}");
    }
}
