//! Whatever is ordered in a ring of the key-value store, each replica does it: any bytes are a batch or none, what they do leaves a sound state, and any bytes are a state or
//! none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rota_kv::store::{Answered, Store};
use rota_kv::{Map, Partition};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Frozen as _, Machine as _};

fuzz_target!(|data: &[u8]| {
    let one = Partition(1);
    let map = Map::even(&[one]).expect("one");
    let mut store = Store::new(one, map.clone());
    let mut rest = data;
    let mut instance = 0;
    // Commands, each behind its length.
    while let Some((&length, behind)) = rest.split_first() {
        let (bytes, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        instance += 1;
        let place = Place {
            round: instance,
            rank: Rank(1),
            instance,
            index: 0,
        };
        let client = 1;
        let answer = store.apply(Command {
            place,
            client,
            bytes,
        });
        assert!(Answered::decode(&answer).is_some(), "an answer is one");
        store.check();
    }
    let mut state = Vec::new();
    store.freeze().write(&mut state).expect("it is written");
    let mut other = Store::new(one, map.clone());
    other.install(&mut &state[..]).expect("it is a state");
    assert!(other.freeze() == store.freeze(), "it is the same");
    let mut any = Store::new(one, map);
    if any.install(&mut &data[..]).is_ok() {
        any.check();
    }
});
