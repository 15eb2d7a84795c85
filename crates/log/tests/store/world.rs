//! The data that are the same at all replicas: commands, and records that are the same whenever they are made.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use rota_log::store::{Run, encode};
use rota_multiring::{Place, Rank};

use crate::sim::Random;

/// A command that was ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    Append { log: u64, first: u64, count: u32 },
    Trim { log: u64, first: u64 },
    Delete { log: u64 },
}

/// The logs of a state: first and next.
pub type Logs = BTreeMap<u64, (u64, u64)>;

pub fn apply(logs: &mut Logs, command: Command) {
    match command {
        Command::Append { log, first, count } => {
            let entry = logs.entry(log).or_insert((1, 1));
            assert_eq!(entry.1, first);
            entry.1 += u64::from(count);
        }
        Command::Trim { log, first } => logs.get_mut(&log).unwrap().0 = first,
        Command::Delete { log } => drop(logs.remove(&log)),
    }
}

fn hash(log: u64, position: u64) -> u64 {
    Random(log << 32 | position).below(1 << 40)
}

fn put_record(out: &mut BytesMut, log: u64, position: u64) {
    let hash = hash(log, position);
    let length = match hash % 50 {
        0 => 3_000,
        _ => hash / 50 % 200,
    };
    let place = Place {
        round: position * 3,
        rank: Rank(log as u16),
        instance: position,
        index: 2,
    };
    let payload: Vec<u8> = (0..length).map(|at| (hash >> (at % 32)) as u8).collect();
    encode(out, log, position, place, stamp(position), &payload);
}

pub const fn stamp(position: u64) -> u64 {
    1_000 + position / 3
}

pub fn records(log: u64, from: u64, to: u64) -> Bytes {
    let mut out = BytesMut::new();
    (from..to).for_each(|position| put_record(&mut out, log, position));
    out.freeze()
}

pub fn run(log: u64, from: u64, to: u64) -> Run {
    Run::check(log, from, records(log, from, to)).unwrap()
}

/// A set of positions of logs.
pub type Positions = BTreeMap<u64, Vec<u64>>;

/// All that files have, each up to its first bad record: found by other code than the store's.
pub fn on_disk(files: &BTreeMap<String, Vec<u8>>) -> Positions {
    let mut all = Positions::new();
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".seg")) {
        let log = u64::from_str_radix(&name[1..17], 16).unwrap();
        let mut position: u64 = name[19..39].parse().unwrap();
        let sum = bytes
            .get(..60)
            .map(|all| crc_fast::crc32_iscsi(all).to_le_bytes());
        let has_header = bytes.starts_with(b"ROTALOGS")
            && sum.is_some_and(|sum| bytes.get(60..64) == Some(&sum));
        let mut rest = match has_header {
            true => &bytes[64..],
            false => &[],
        };
        while let Some(length) = rest.get(4..8) {
            let length = 46 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
            let Some(record) = rest.get(..length) else {
                break;
            };
            if Run::check(log, position, Bytes::copy_from_slice(record)).is_err() {
                break;
            }
            all.entry(log).or_default().push(position);
            (rest, position) = (&rest[length..], position + 1);
        }
    }
    for positions in all.values_mut() {
        positions.sort_unstable();
        positions.dedup();
    }
    all
}
