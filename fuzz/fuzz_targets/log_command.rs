//! Whatever is ordered in a ring of the logs, each replica does it: any bytes are a message or none, what they do is sound, and any bytes are a state, entries, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rota_core::bytes::Reader;
use rota_log::machine::{Answer, Effect, Logs};
use rota_log::store::{Run, Tails};
use rota_multiring::{Place, Rank};

fn state(logs: &Logs) -> Vec<u8> {
    let mut out = Vec::new();
    logs.encode(&mut out);
    out
}

fuzz_target!(|data: &[u8]| {
    let mut logs = Logs::default();
    let (mut rest, mut instance) = (data, 0);
    // Messages, each behind its length.
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
        let Some(applied) = logs.apply(place, bytes) else {
            continue;
        };
        assert!(Answer::all(&applied.answers).is_some(), "answers are some");
        for effect in applied.effects {
            if let Effect::Append(run) = effect {
                let (log, first) = (run.log(), run.first());
                assert!(Run::check(log, first, run.into_bytes()).is_ok(), "entries are sound");
            }
        }
        for (_, log) in logs.iter() {
            assert!(1 <= log.first && log.first <= log.next);
        }
    }
    let bytes = state(&logs);
    let other = Logs::decode(&mut Reader(&bytes)).expect("it is a state");
    assert!(other == logs, "it is the same");
    if let Some(any) = Logs::decode(&mut Reader(data)) {
        assert!(Logs::decode(&mut Reader(&state(&any))) == Some(any));
    }
    let _ = Tails::decode(data);
    let _ = Run::check(1, 1, data.to_vec().into());
});
