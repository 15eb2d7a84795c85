use super::*;
use crate::map::Map;
use crate::store::{MOST_BATCH_BYTES, MOST_KEY_BYTES};
use rota_multiring::{Place, Rank};
use std::sync::Arc;

const SLOT: u16 = 5;

/// Names of one slot, as long as they may be or shorter.
fn names(count: usize, bytes: usize) -> Vec<Bytes> {
    let tag = (0..).map(|n: u32| format!("{{{n}}}"));
    let mut tag = tag.filter(|tag| rota_resp::slot::of(tag.as_bytes()) == SLOT);
    let tag = tag.next().expect("one");
    let name = |n: usize| Bytes::from(format!("{tag}{n:0width$}", width = bytes - tag.len()));
    (0..count).map(name).collect()
}

fn snapshot(names: &[Bytes], value: &[u8], round: u64) -> Snapshot {
    let version = Place {
        round,
        rank: Rank(1),
        instance: round,
        index: 0,
    };
    let entry = Entry::new(Value::Text(Bytes::copy_from_slice(value)), version, None);
    let all = [Partition(1), Partition(2)];
    Snapshot {
        keys: names
            .iter()
            .map(|key| (key.clone(), entry.clone()))
            .collect(),
        by_slot: names.iter().map(|key| (SLOT, key.clone())).collect(),
        unsettled: Slots::default(),
        map: Arc::new(Map::even(&all).expect("two")),
        frozen: None,
    }
}

fn mover() -> Mover {
    let wanted = [SLOT].into_iter().collect();
    Mover::new((1, 1), (Partition(1), Partition(2)), wanted)
}

/// All that is copied until it is to be looked again: each part is small enough.
fn copy(mover: &mut Mover) -> usize {
    let mut count = 0;
    loop {
        match mover.go_on() {
            Next::Order(Step::Copy { at, keys, .. }) => {
                count += keys.len();
                let own = keys.iter().map(|(key, copied)| {
                    let of = copied.as_ref().map_or(0, |copied| copied.entry.takes(key));
                    key.len() + of
                });
                assert!(own.sum::<usize>() < MOST_BATCH_BYTES);
                mover.heard(Some(&Outcome::Number(i64::from(at) + 1)));
            }
            _ => return count,
        }
    }
}

#[test]
fn parts_with_long_names_are_no_larger_than_others() {
    let names = names(100, MOST_KEY_BYTES);
    let mut mover = mover();
    mover.looked(snapshot(&names, b"", 1));
    assert_eq!(copy(&mut mover), 100);
    // There are no such keys any more: their names are copied.
    mover.looked(snapshot(&[], b"", 2));
    assert_eq!(copy(&mut mover), 100);
}

#[test]
fn what_changes_faster_than_it_is_copied_is_not_frozen() {
    let names = names(8, 20);
    let mut mover = mover();
    let large = vec![b'x'; 512 << 10];
    for round in 0..=u64::from(MOST_ROUNDS) {
        mover.looked(snapshot(&names, &large, round));
        copy(&mut mover);
    }
    // No other partition knows of the move.
    let (of, to) = ((1, 1), Partition(2));
    assert_eq!(mover.go_on(), Next::Order(Step::Forget { of, to }));
    mover.heard(Some(&Outcome::Done));
    mover.looked(snapshot(&names, &large, 9));
    assert_eq!(mover.go_on(), Next::Ended(Err(Failure::Fast)));
}

#[test]
fn nothing_is_frozen_while_a_partition_does_not_answer() {
    let names = names(3, 20);
    let ask = |mover: &mut Mover| {
        mover.looked(snapshot(&names, b"value", 1));
        assert_eq!(copy(mover), 3);
        mover.looked(snapshot(&names, b"value", 1));
        assert_eq!(mover.go_on(), Next::Ask);
    };
    let of = (1, 1);
    let mut lost = mover();
    ask(&mut lost);
    lost.answered(false);
    let to = Partition(2);
    assert_eq!(lost.go_on(), Next::Order(Step::Forget { of, to }));
    let mut goes_on = mover();
    ask(&mut goes_on);
    goes_on.answered(true);
    assert!(matches!(goes_on.go_on(), Next::Order(Step::Freeze(_))));
    // Slots that may be frozen have to be given free in all partitions.
    goes_on.heard(None);
    assert_eq!(goes_on.go_on(), Next::Order(Step::End(of)));
}

#[test]
fn slots_that_have_just_come_do_not_go_yet() {
    let names = names(3, 20);
    let mut early = mover();
    let unsettled = || Snapshot {
        unsettled: [SLOT].into_iter().collect(),
        ..snapshot(&names, b"value", 1)
    };
    early.looked(unsettled());
    assert_eq!(early.go_on(), Next::Ended(Err(Failure::Busy)));
    // They have gone and come back behind the back of a process that is behind.
    let mut late = mover();
    late.looked(snapshot(&names, b"value", 1));
    assert_eq!(copy(&mut late), 3);
    late.looked(unsettled());
    let (of, to) = ((1, 1), Partition(2));
    assert_eq!(late.go_on(), Next::Order(Step::Forget { of, to }));
}
