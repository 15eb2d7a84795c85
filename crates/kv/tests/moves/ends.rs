//! Keys that come to their ends by clocks that differ, in several partitions and while their slots move.

#![cfg_attr(
    feature = "mutants",
    allow(
        dead_code,
        unused_imports,
        reason = "most tests are not for broken versions"
    )
)]

use rota_kv::store::{
    Action, Answer, Batch, Copied, Freeze, Life, Looking, MoveName, Only, Operation, Outcome, Step,
    Wanted,
};
use rota_kv::{Map, Partition};
use rota_replica::{Frozen as _, Machine as _};

use super::run::{ONE, Run, TWO};

const OF: MoveName = (7, 1);
/// A key of each partition.
const KEYS: [&[u8]; 2] = [b"bar", b"foo"];
const KEY: &[u8] = KEYS[0];
const END: u64 = 2_000;

fn begin(me: Partition) -> Run {
    let map = Map::even(&[ONE, TWO]).expect("two");
    assert_eq!(KEYS.map(|key| map.of_key(key)), [ONE, TWO]);
    Run::new(me, map)
}

/// What is asked for by clocks that differ.
trait ByClocks {
    /// What becomes of operations that somebody asks for whose clock says this.
    fn act_all(&mut self, operations: Vec<Operation<'_>>, stamp: u64) -> Vec<Outcome>;

    fn act_by(&mut self, operation: Operation<'_>, stamp: u64) -> Outcome {
        let outcomes = self.act_all(vec![operation], stamp);
        let [outcome] = outcomes.try_into().expect("one");
        outcome
    }

    fn get(&mut self, stamp: u64) -> Outcome {
        self.act_by(Operation::Key(KEY, Action::Get), stamp)
    }

    fn step(&mut self, step: Step, stamp: u64) -> Outcome {
        self.act_by(Operation::Step(step), stamp)
    }

    /// It begins again with its own state.
    fn restart(&mut self);
}

impl ByClocks for Run {
    fn act_all(&mut self, operations: Vec<Operation<'_>>, stamp: u64) -> Vec<Outcome> {
        let batch = Batch {
            stamp,
            operations,
            ..Batch::default()
        };
        match self.batch(&batch) {
            Answer::Outcomes(outcomes) => outcomes.into_iter().map(|(_, of)| of).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn restart(&mut self) {
        let mut state = Vec::new();
        self.store.freeze().write(&mut state).expect("memory");
        self.store.install(&mut &state[..]).expect("its own state");
    }
}

/// Both partitions do a transaction with the same action on a key of each.
fn both(runs: &mut [Run; 2], action: &Action<'_>, stamp: u64) -> [Outcome; 2] {
    let operations = KEYS.map(|key| Operation::Key(key, action.clone()));
    runs.each_mut().map(|run| {
        let outcomes = run.act_all(operations.to_vec(), stamp);
        let [outcome] = outcomes.try_into().expect("one");
        outcome
    })
}

const fn set(life: Life) -> Action<'static> {
    Action::Set {
        value: b"x",
        life,
        only: Only::Always,
        get: false,
    }
}

/// Whether a transaction finds one key at its end, and another one with the same end alive. The clock of whoever asks
/// the first partition is ahead of that of whoever asks for the transaction.
pub fn ends_in_one_partition_only() -> bool {
    let mut runs = [ONE, TWO].map(begin);
    both(&mut runs, &set(Life::Until(END)), END - 1_000);
    runs[0].get(END + 500);
    let [first, second] = both(&mut runs, &Action::Get, END - 10);
    first != second
}

/// The maps of partitions whose processes have different files, after the store was founded with the first one's.
fn founded_with_the_first_ones() -> [Map; 3] {
    let even = Map::even(&[ONE, TWO]).expect("two");
    let other = Map::of_ranges(&[ONE, TWO], &[(ONE, 0, 99), (TWO, 100, 16_383)]);
    let other = other.expect("all slots");
    let mut runs = [(ONE, &even), (TWO, &other)].map(|(me, map)| Run::new(me, map.unfounded()));
    for run in &mut runs {
        for epoch in [0, 1] {
            let early = Batch {
                epoch,
                operations: vec![Operation::Key(KEY, set(Life::Ever))],
                ..Batch::default()
            };
            assert_eq!(
                run.batch(&early),
                Answer::Moving,
                "nobody knows whose it is"
            );
        }
        run.restart();
        assert_eq!(run.step(Step::Found(even.clone()), 0), Outcome::Done);
        assert_eq!(run.step(Step::Found(other.clone()), 0), Outcome::Nothing);
        run.restart();
    }
    let [first, second] = runs.map(|run| Map::clone(run.store.map()));
    [even, first, second]
}

/// Whether partitions begin with different slots.
pub fn begin_with_other_slots() -> bool {
    let [given, first, second] = founded_with_the_first_ones();
    first != given || second != given
}

#[cfg(not(feature = "mutants"))]
#[test]
fn all_partitions_begin_with_the_same_slots_whatever_their_files_say() {
    assert!(!begin_with_other_slots());
}

#[cfg(not(feature = "mutants"))]
#[test]
fn keys_with_the_same_end_are_there_or_gone_in_all_partitions() {
    assert!(!ends_in_one_partition_only());
}

/// A transaction gives keys of both partitions the same life.
#[cfg(not(feature = "mutants"))]
#[test]
fn lives_of_one_transaction_end_together() {
    let mut runs = [ONE, TWO].map(begin);
    runs[0].get(5_000);
    both(&mut runs, &set(Life::For(100)), 1_000);
    let ends = runs.each_ref().map(|run| {
        let mut entries = run.store.entries();
        entries.next().and_then(|(_, entry)| entry.until)
    });
    assert_eq!(ends, [Some(1_100); 2]);
    for (stamp, is_there) in [(1_099, true), (1_100, false), (1_000, false)] {
        let found = both(&mut runs, &Action::Get, stamp);
        assert_eq!(found.map(|of| of != Outcome::Nothing), [is_there; 2]);
    }
}

/// A life is set through one process, and asked for through another one whose clock is behind.
#[cfg(not(feature = "mutants"))]
#[test]
fn no_more_is_left_of_a_life_than_was_set() {
    let mut run = begin(ONE);
    let left = || Operation::Key(KEY, Action::LivesUntil);
    run.act_by(Operation::Key(KEY, set(Life::For(300))), 10_000);
    assert_eq!(run.act_by(left(), 9_999), Outcome::Number(300));
    assert_eq!(run.act_by(left(), 9_000), Outcome::Number(300));
    run.restart();
    assert_eq!(run.act_by(left(), 9_000), Outcome::Number(300));
    // Somebody that does not know the time.
    assert_eq!(run.act_by(left(), 0), Outcome::Number(300));
    assert_eq!(run.act_by(left(), 10_100), Outcome::Number(200));
    // A clock that was far ahead does not count for long.
    assert_eq!(run.act_by(left(), 60_000), Outcome::Number(0));
    assert_eq!(run.act_by(left(), 10_200), Outcome::Number(100));
}

#[cfg(not(feature = "mutants"))]
#[test]
fn time_passes_in_all_partitions_where_one_of_their_processes_says_so() {
    let mut runs = [ONE, TWO].map(begin);
    both(&mut runs, &set(Life::Until(END)), 1_000);
    for run in &mut runs {
        assert!(run.store.has_ended(END) && !run.store.has_ended(0));
        // No partition has to hear of the others that they have it.
        let before = run.store.last();
        assert_eq!(run.act_all(vec![Operation::Time], END), []);
        assert!(run.store.is_empty());
        assert_eq!((run.store.time(), run.store.last()), (END, before));
    }
}

/// A life that begins has its whole time, though nothing has let the order's time pass for long.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_life_begins_when_it_was_asked_for() {
    let mut run = begin(ONE);
    let set = Operation::Key(KEY, set(Life::For(100)));
    assert_eq!(run.act_by(set, 50_000), Outcome::Done);
    let left = Operation::Key(KEY, Action::LivesUntil);
    assert_eq!(run.act_by(left.clone(), 50_040), Outcome::Number(60));
    // Its end has come by the clock of whoever asks, and not by the order's time.
    assert_eq!(run.act_by(left, 60_000), Outcome::Number(0));
    assert_ne!(run.get(60_000), Outcome::Nothing);
    run.act_all(vec![Operation::Time], 50_100);
    assert_eq!(run.get(50_000), Outcome::Nothing);
}

/// Whoever reads a key whose end has come is told to which time the order has to come first.
#[cfg(not(feature = "mutants"))]
#[test]
fn who_looks_is_told_of_ends_that_have_come() {
    let mut run = begin(ONE);
    run.act_by(Operation::Key(KEY, set(Life::Until(END))), 1_000);
    let range = |to| Operation::Range {
        from: b"",
        to,
        limit: 10,
        wanted: Wanted::Names,
        of: Some(ONE),
    };
    let late_by = |run: &Run, operation: &Operation<'static>, stamp| {
        let look = Batch {
            stamp,
            epoch: run.store.map().epoch(),
            operations: vec![operation.clone()],
            ..Batch::default()
        };
        let mut looking = Looking::default();
        let pack = look.alone();
        run.store.look_at_pack(&pack, &mut looking);
        looking.late()
    };
    // A range that does not come to the key finds nothing that is late.
    let without = range(Some(KEY));
    assert_eq!(late_by(&run, &without, END + 5), None);
    for operation in [Operation::Key(KEY, Action::Get), range(None)] {
        let late = |stamp| late_by(&run, &operation, stamp);
        assert_eq!(
            [END - 1, END, END + 5].map(late),
            [None, Some(END), Some(END + 5)]
        );
    }
    run.act_all(vec![Operation::Time], END);
    for operation in [Operation::Key(KEY, Action::Get), range(None)] {
        assert_eq!(late_by(&run, &operation, END + 5), None);
    }
}

/// Time goes on while slots are frozen, and is the same where they go: a key that somebody was told to be gone is not
/// there afterwards.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_key_does_not_end_while_its_slot_is_frozen_and_live_again_where_it_goes() {
    let mut runs = [ONE, TWO].map(begin);
    runs[0].act_by(Operation::Key(KEY, set(Life::Until(END))), 1_000);
    let freeze = Freeze {
        of: OF,
        from: ONE,
        to: TWO,
        slots: [rota_resp::slot::of(KEY)].into_iter().collect(),
    };
    for run in &mut runs {
        assert_eq!(
            run.step(Step::Freeze(freeze.clone()), END - 10),
            Outcome::Done
        );
    }
    let [from, to] = &mut runs;
    let sealed = from.store.snapshot();
    from.act_all(vec![Operation::Time], END);
    assert_eq!(from.get(0), Outcome::Nothing);
    from.restart();
    assert_eq!(from.get(0), Outcome::Nothing);
    let entry = sealed.keys.get(KEY).expect("it is there").clone();
    let is_more = false;
    let copy = Step::Copy {
        of: OF,
        to: TWO,
        at: 0,
        keys: vec![(KEY.into(), Some(Copied { entry, is_more }))],
    };
    // The second partition is behind.
    assert_eq!(to.step(copy, END - 10), Outcome::Number(1));
    to.act_all(vec![Operation::Time], END);
    for run in [&mut *from, &mut *to] {
        assert_eq!(run.step(Step::Give(OF), END - 10), Outcome::Done);
    }
    assert_eq!(to.get(0), Outcome::Nothing);
}
