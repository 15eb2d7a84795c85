//! Keys that come to their ends while their slots move, by clocks that differ.

use rota_kv::store::{
    Action, Answer, Answered, Batch, Copied, Freeze, Life, MoveName, Only, Operation, Outcome,
    Pack, Step, Store,
};
use rota_kv::{Map, Partition};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Frozen as _, Machine as _};

const ONE: Partition = Partition(1);
const TWO: Partition = Partition(2);
const OF: MoveName = (7, 1);
/// Of the first partition.
const KEY: &[u8] = b"bar";
const END: u64 = 2_000;

struct Run {
    store: Store,
    at: u64,
}

impl Run {
    fn new(me: Partition) -> Self {
        let map = Map::even(&[ONE, TWO]).expect("two");
        assert_eq!(map.of_key(KEY), ONE);
        let store = Store::new(me, map);
        Self { store, at: 0 }
    }

    /// What becomes of an operation that somebody asks for whose clock says this.
    fn act(&mut self, operation: Operation<'_>, stamp: u64) -> Outcome {
        self.at += 1;
        let batch = Batch {
            stamp,
            epoch: self.store.map().epoch(),
            operations: vec![operation],
            ..Batch::default()
        };
        let place = Place {
            round: self.at,
            rank: Rank(1),
            instance: self.at,
            index: 0,
        };
        let answered = self.store.apply(Command {
            place,
            client: 1,
            bytes: &Pack(vec![batch.encode()]).encode(),
        });
        self.store.check();
        let answered = Answered::decode(&answered).expect("an answer");
        match &answered.answers[..] {
            [Answer::Outcomes(outcomes)] if outcomes.len() == 1 => outcomes[0].1.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn get(&mut self, stamp: u64) -> Outcome {
        self.act(Operation::Key(KEY, Action::Get), stamp)
    }

    fn step(&mut self, step: Step, stamp: u64) -> Outcome {
        self.act(Operation::Step(step), stamp)
    }

    /// It begins again with its own state.
    fn restart(&mut self) {
        let mut state = Vec::new();
        self.store.freeze().write(&mut state).expect("memory");
        self.store.install(&mut &state[..]).expect("its own state");
    }
}

/// The first partition with a key that ends, whose slot it is to give away, and the second.
fn frozen() -> [Run; 2] {
    let mut runs = [ONE, TWO].map(Run::new);
    let set = Action::Set {
        value: b"x",
        life: Life::Until(END),
        only: Only::Always,
        get: false,
    };
    assert_eq!(runs[0].act(Operation::Key(KEY, set), 1_000), Outcome::Done);
    let freeze = Freeze {
        of: OF,
        from: ONE,
        to: TWO,
        slots: [rota_resp::slot::of(KEY)].into_iter().collect(),
    };
    for run in &mut runs {
        let outcome = run.step(Step::Freeze(freeze.clone()), END - 10);
        assert_eq!(outcome, Outcome::Done);
    }
    runs
}

/// Whether a key that somebody was told to be gone is there afterwards. The clock of whoever reads is ahead of that of whoever moves the slot.
pub fn lives_again() -> bool {
    let [mut from, mut to] = frozen();
    let sealed = from.store.snapshot();
    let seen = from.get(END + 500);
    from.restart();
    assert_eq!(from.get(END + 500), seen);
    let entry = sealed.keys.get(KEY).expect("it is there");
    let copied = Copied {
        entry: entry.clone(),
        is_more: false,
    };
    let copy = Step::Copy {
        of: OF,
        to: TWO,
        at: 0,
        keys: vec![(KEY.into(), Some(copied))],
    };
    assert_eq!(to.step(copy, END - 10), Outcome::Number(1));
    for run in [&mut from, &mut to] {
        assert_eq!(run.step(Step::Give(OF), END - 10), Outcome::Done);
    }
    let there = to.get(END - 10);
    assert_eq!(to.get(END), Outcome::Nothing);
    seen == Outcome::Nothing && there != Outcome::Nothing
}

#[cfg(not(feature = "mutants"))]
#[test]
fn a_key_does_not_end_while_its_slot_is_frozen_and_live_again_where_it_goes() {
    assert!(!lives_again());
}

#[cfg(not(feature = "mutants"))]
#[test]
fn time_goes_on_where_a_move_has_ended() {
    let [mut from, _] = frozen();
    assert_ne!(from.get(END), Outcome::Nothing);
    assert_eq!(from.step(Step::End(OF), END), Outcome::Done);
    assert_eq!(from.get(END), Outcome::Nothing);
}

/// Its end has come by the clock of whoever asks, and not by that of the slot.
#[cfg(not(feature = "mutants"))]
#[test]
fn a_key_whose_slot_is_frozen_has_what_was_left_of_its_life() {
    let [mut from, _] = frozen();
    let left = Operation::Key(KEY, Action::LivesUntil);
    assert_eq!(from.act(left, END + 500), Outcome::Number(10));
}
