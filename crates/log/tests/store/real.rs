//! Real directories and threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_log::store::{Options, ReadError, Store};
use rota_storage::acceptor::FileDir;

use crate::world::{records, run};

fn options() -> Options {
    Options {
        segment_bytes: 60_000,
        cache_bytes: 100_000,
        unwritten_bytes: 50_000,
        index_bytes: 2_000,
        trim_every: Duration::from_millis(1),
        ..Options::default()
    }
}

/// Reads a log as it grows.
fn follow(store: &Store, log: u64, to: u64) {
    let mut at = 1;
    while at < to {
        match store.read(log, at, u64::MAX, 20_000) {
            Ok(run) => {
                assert_eq!(run.bytes(), &records(log, at, run.next()));
                at = run.next();
            }
            Err(ReadError::NotThere { .. }) => std::thread::yield_now(),
            Err(ReadError::Trimmed { first }) => at = first,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn many_threads_use_a_store_in_a_real_directory() {
    const LOGS: u64 = 3;
    const MOST: u64 = 6_000;
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(FileDir::new(dir.path().to_owned()), options());
    let store = open().unwrap();
    assert_eq!(open().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    store.begin(&[], None).unwrap();
    let (next, first) = (AtomicU64::new(1), AtomicU64::new(1));
    let (mark, tails) = std::thread::scope(|scope| {
        (1..=LOGS).for_each(|log| {
            drop(scope.spawn({
                let store = &store;
                move || follow(store, log, MOST)
            }))
        });
        let appender = scope.spawn(|| {
            let mut mark = None;
            while next.load(Ordering::Relaxed) < MOST {
                let at = next.fetch_add(20, Ordering::Relaxed);
                for log in 1..=LOGS {
                    store.append(log, at, 20, records(log, at, at + 20));
                }
                if at % 1_000 == 1 && at > 2_000 {
                    first.store(at - 1_500, Ordering::Relaxed);
                    (1..=LOGS).for_each(|log| store.trim(log, at - 1_500));
                    mark = Some((at + 20, store.mark()));
                }
            }
            mark
        });
        let checkpoints = scope.spawn(|| {
            while next.load(Ordering::Relaxed) < MOST - 500 {
                // Another mark may have taken its place.
                let _ = store.sync(store.mark());
            }
        });
        checkpoints.join().unwrap();
        let (at, _) = appender.join().unwrap().unwrap();
        (at, store.sync(store.mark()).unwrap())
    });
    let status = store.status();
    assert_eq!((status.errors, status.damaged, status.gaps), (0, 0, 0));
    drop(store);
    assert!(mark < MOST);
    let store = open().unwrap();
    let (first, next) = (first.into_inner(), next.into_inner());
    let logs: Vec<_> = (1..=LOGS).map(|log| (log, first, next)).collect();
    assert_eq!(store.begin(&logs, Some(&tails)).unwrap(), []);
    for log in 1..=LOGS {
        follow(&store, log, next);
        let found = store.first_after(log, crate::world::stamp(first + 900));
        assert_eq!(found.unwrap(), Some((first + 900) / 3 * 3));
    }
}

#[test]
fn a_store_that_is_dropped_writes_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(FileDir::new(dir.path().to_owned()), options()).unwrap();
    let store = open();
    store.append(1, 1, 99, records(1, 1, 100));
    drop(store);
    let store = open();
    assert_eq!(store.begin(&[(1, 1, 100)], None).unwrap(), []);
    store.fill(&run(1, 5, 10)).unwrap();
    let read = store.read(1, 1, 100, usize::MAX).unwrap();
    assert_eq!(read.bytes(), &records(1, 1, 100));
}
