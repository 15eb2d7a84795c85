//! Batches of all kinds, often the same ones again.

use rota_log::machine::{Append, Batch, Keep, Limits, Operation, Pack};

use crate::model::Model;
use crate::sim::Random;

const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];

/// What an entry has.
fn fields(random: &mut Random, number: u64) -> Vec<u8> {
    let length = match random.below(40) {
        0 => 2_000 + random.below(3_000),
        _ => random.below(150),
    };
    let value = vec![b'v'; length as usize];
    [format!("*2\r\n$1\r\nn\r\n{number}:").as_bytes(), &value].concat()
}

fn keep(random: &mut Random, next: u64) -> Keep {
    match random.below(2) {
        0 => Keep::Last(random.below(next + 3)),
        _ => Keep::From(random.below(next + 3)),
    }
}

/// A message: several batches.
pub fn message(random: &mut Random, model: &Model, number: u64) -> Vec<u8> {
    let count = 1 + random.below(3) * random.below(2);
    let batches: Vec<Vec<u8>> = (0..count)
        .map(|at| batch(random, model, 10 * number + at))
        .collect();
    Pack(batches).encode()
}

fn batch(random: &mut Random, model: &Model, number: u64) -> Vec<u8> {
    let count = 1 + random.below(4) * random.below(2);
    let of = |random: &mut Random| NAMES[random.below(NAMES.len() as u64) as usize];
    let logs: Vec<&[u8]> = (0..count).map(|_| of(random)).collect();
    let entries: Vec<Vec<Vec<u8>>> = logs
        .iter()
        .map(|_| {
            (0..1 + random.below(3))
                .map(|_| fields(random, number))
                .collect()
        })
        .collect();
    let names: Vec<Vec<u8>> = logs
        .iter()
        .map(|_| random.below(30).to_le_bytes().to_vec())
        .collect();
    let mut operations = Vec::new();
    for ((log, entries), name) in logs.iter().zip(&entries).zip(&names) {
        let next = model.0.get(*log).map_or(1, crate::model::Log::next);
        operations.push(match random.below(40) {
            0 => Operation::Seal(log),
            1 | 2 => Operation::Delete(log),
            3 | 4 => Operation::Trim(log, keep(random, next), None),
            5 => {
                let most = random.one_in(2).then(|| random.below(20));
                let limits = Limits {
                    entries: most,
                    ..Limits::default()
                };
                Operation::Make(log, limits, random.one_in(2))
            }
            _ => Operation::Append(Append {
                log,
                makes: !random.one_in(10),
                expected: random
                    .one_in(5)
                    .then(|| next.saturating_sub(1) + random.below(3)),
                producer: random.one_in(3).then_some((&b"me"[..], &name[..])),
                keep: random.one_in(20).then(|| keep(random, next)),
                entries: entries.iter().map(|entry| &entry[..]).collect(),
            }),
        });
    }
    let batch = Batch {
        stamp: 1_000 + number + random.below(50),
        is_atomic: random.one_in(2),
        operations,
    };
    batch.encode()
}
