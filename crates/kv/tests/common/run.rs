//! A store without anything else, for tests.

#![allow(dead_code, reason = "each test uses some of it")]

use rota_kv::store::{
    Action, Answer, Answered, Batch, Life, Only, Operation, Outcome, Pack, Store,
};
use rota_kv::{Map, Partition};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Machine as _};

pub const ONE: Partition = Partition(1);
pub const TWO: Partition = Partition(2);

pub fn place(instance: u64) -> Place {
    Place {
        round: instance,
        rank: Rank(1),
        instance,
        index: 0,
    }
}

/// A store, and how far it is.
pub struct Run {
    pub store: Store,
    pub at: u64,
    pub now: u64,
}

impl Run {
    pub fn new(me: Partition, map: Map) -> Self {
        Self {
            store: Store::new(me, map),
            at: 0,
            now: 1_000,
        }
    }

    pub fn alone() -> Self {
        Self::new(ONE, Map::even(&[ONE]).expect("one"))
    }

    pub fn batch(&mut self, batch: &Batch<'_>) -> Answer {
        self.at += 1;
        let batch = &Batch {
            epoch: self.store.map().epoch(),
            ..batch.clone()
        };
        let bytes = batch.encode();
        assert_eq!(Batch::decode(&bytes).as_ref(), Some(batch));
        let pack = Pack(vec![&bytes]).encode();
        let answered = self.store.apply(Command {
            place: place(self.at),
            client: 1,
            bytes: &pack,
        });
        self.store.check();
        let decoded = Answered::decode(&answered).expect("an answer");
        assert_eq!(decoded.encode(), answered);
        let [answer] = decoded.answers.try_into().expect("one");
        answer
    }

    pub fn act(&mut self, key: &str, action: Action<'_>) -> Outcome {
        let batch = Batch {
            stamp: self.now,
            operations: vec![Operation::Key(key.as_bytes(), action)],
            ..Batch::default()
        };
        match self.batch(&batch) {
            Answer::Outcomes(mut outcomes) if outcomes.len() == 1 => outcomes.remove(0).1,
            other => panic!("{other:?}"),
        }
    }
}

pub fn set(value: &str) -> Action<'_> {
    Action::Set {
        value: value.as_bytes(),
        life: Life::Ever,
        only: Only::Always,
        get: false,
    }
}

pub fn text(text: &str) -> Outcome {
    Outcome::Text(text.to_owned().into())
}
