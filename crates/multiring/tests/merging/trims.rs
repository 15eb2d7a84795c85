//! What a ring may forget.

use rota_multiring::trim::{Command, Refused, Replicas, Table};

#[cfg(not(feature = "mutants"))]
use super::world::Random;

fn of(stores: &[u64]) -> Replicas {
    Replicas::new(stores.iter().copied())
}

fn table(partitions: &[(u32, &[u64])]) -> Table {
    let partitions = partitions.iter();
    let partitions = partitions.map(|(partition, stores)| (*partition, of(stores)));
    Table::new(partitions).expect("majorities")
}

/// Of three replicas two have to be behind what is forgotten, of each partition that has the ring.
pub fn each_partition_counts_for_itself() -> bool {
    let mut table = table(&[(1, &[11, 12, 13]), (2, &[21, 22, 23])]);
    let mut mark = |partition, store, next| {
        let marked = table.apply((next, 0), Command::Mark(partition, store, next));
        marked.expect("a replica");
        table.bound()
    };
    let first = [mark(1, 11, 50), mark(1, 12, 40), mark(1, 13, 90)];
    let second = [mark(2, 21, 70), mark(2, 22, 30), mark(2, 21, 60)];
    first == [Some(1); 3] && second == [Some(1), Some(30), Some(30)]
}

/// A replica whose store is empty is another one, and counts when its partition has taken it in.
pub fn an_empty_store_counts_for_nothing() -> bool {
    let mut table = table(&[(1, &[11, 12, 13])]);
    let mark =
        |table: &mut Table, store, next| table.apply((next, 0), Command::Mark(1, store, next));
    mark(&mut table, 11, 50).expect("a replica");
    let refused = mark(&mut table, 99, 60) == Err(Refused::NoReplica) && table.bound() == Some(1);
    let taken_in = Command::Replace(1, of(&[11, 12, 99]));
    table.apply((70, 0), taken_in).expect("it has an account");
    mark(&mut table, 99, 60).expect("a replica");
    refused && table.bound() == Some(50)
}

/// While somebody recovers, what it needs is kept; not for ever; and what may be forgotten already is not promised.
pub fn a_pin_keeps_what_is_needed() -> bool {
    let mut table = table(&[(1, &[11])]);
    let mut apply = |at, command| {
        let done = table.apply(at, command);
        (done, table.bound())
    };
    let kept = [
        apply((10, 100), Command::Mark(1, 11, 10)),
        apply((11, 101), Command::Pin(12, 10, 399)),
        apply((90, 200), Command::Mark(1, 11, 80)),
    ];
    let late = apply((91, 201), Command::Pin(13, 9, 399));
    let expired = apply((99, 501), Command::Mark(1, 11, 90));
    kept.iter().all(|kept| *kept == (Ok(()), Some(10)))
        && late == (Err(Refused::Forgotten(10)), Some(10))
        && expired == (Ok(()), Some(90))
}

/// A partition that leaves and comes back is not let go by what releases its first hold.
pub fn a_release_names_its_hold() -> bool {
    let mut table = table(&[(1, &[11])]);
    let mut apply = |instance, command| table.apply((instance, 0), command);
    apply(50, Command::Hold(2, of(&[21]))).expect("a hold");
    apply(60, Command::Release(2, 50)).expect("its hold");
    apply(70, Command::Hold(2, of(&[21]))).expect("another one");
    let late = apply(80, Command::Release(2, 50)) == Err(Refused::NoAccount);
    apply(90, Command::Mark(1, 11, 90)).expect("a replica");
    late && table.bound() == Some(70)
}

/// Whatever is ordered: nothing is forgotten that a partition or a pin needs, and what was allowed once stays allowed.
#[cfg(not(feature = "mutants"))]
#[test]
fn whatever_is_ordered_nothing_is_forgotten_that_is_needed() {
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut table = table(&[(1, &[11, 12, 13])]);
        let mut granted = 1;
        for instance in 1..200 {
            let partition = 1 + random.below(3) as u32;
            let store = 10 * u64::from(partition) + 1 + random.below(4);
            let (next, time) = (1 + random.below(instance), instance + random.below(5));
            let command = match random.below(12) {
                0 => Command::Hold(
                    partition,
                    of(&[10 * u64::from(partition) + 1, 10 * u64::from(partition) + 2]),
                ),
                1 => Command::Release(partition, next),
                2 => Command::Pin(store, next, random.below(40)),
                3 => Command::Unpin(store),
                4 => Command::Replace(
                    partition,
                    Replicas {
                        q_t: random.below(4) as usize,
                        ..of(&[store, 10 * u64::from(partition) + 1])
                    },
                ),
                5 if random.below(4) == 0 => Command::Abandon(partition),
                _ => Command::Mark(partition, store, next),
            };
            let pinned = matches!(command, Command::Pin(..));
            let before = table.granted();
            let done = table.apply((instance, time), command);
            assert!(
                !pinned || done.is_err() || next >= before,
                "seed {seed}: a promise that cannot be kept"
            );
            assert!(table.granted() >= granted, "seed {seed}");
            granted = table.granted();
            for (_, pin, until) in table.pins() {
                assert!(
                    pin >= table.bound().unwrap_or(1) && until >= 1,
                    "seed {seed}"
                );
            }
            for partition in 1..4 {
                let account = table.account(partition);
                assert!(account.is_none_or(|(needs, of)| needs
                    >= table.bound().expect("an account")
                    && of.is_sound()));
            }
        }
    }
}

#[cfg(not(feature = "mutants"))]
#[test]
fn rules() {
    assert!(each_partition_counts_for_itself());
    assert!(an_empty_store_counts_for_nothing());
    assert!(a_pin_keeps_what_is_needed());
    assert!(a_release_names_its_hold());
    assert!(Table::new([(1, of(&[]))]).is_err());
    let mut table = table(&[(1, &[11, 12, 13])]);
    assert_eq!(
        table.apply((5, 0), Command::Mark(1, 11, 6)),
        Err(Refused::Ahead)
    );
    let unsound = Replicas {
        q_t: 1,
        ..of(&[11, 12, 13])
    };
    assert_eq!(
        table.apply((5, 0), Command::Hold(2, unsound)),
        Err(Refused::Unsound)
    );
    assert_eq!(
        table.apply((5, 0), Command::Hold(1, of(&[1]))),
        Err(Refused::HasAccount)
    );
    assert_eq!(
        table.apply((5, 0), Command::Abandon(7)),
        Err(Refused::NoAccount)
    );
    table
        .apply((6, 0), Command::Abandon(1))
        .expect("it has an account");
    assert_eq!(table.bound(), None);
}
