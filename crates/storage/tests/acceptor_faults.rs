//! An acceptor's log on a disk that fails where it is told to, and loses its power at every single step.

mod sim;

use std::time::Duration;

use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{AppendError, DiskLog, Kind, LogOpenError, Mode};
use sim::life::{
    LARGE, SMALL, When, every_error_has_its_outcome, no_loss_takes_anything_back, prepared, vote,
};
use sim::{Keep, Random, SimDir, append, identity, open, options, record, told};

#[test]
fn no_loss_of_power_takes_anything_back_that_was_promised() {
    no_loss_takes_anything_back(When::AtOnce, SMALL);
    no_loss_takes_anything_back(When::AtOnce, LARGE);
}

#[test]
fn no_loss_of_power_in_a_first_start_leaves_a_log_that_is_refused() {
    let whole = SimDir::default();
    drop(open(&whole).unwrap());
    let calls = whole.world().calls;
    assert!(calls > 15);
    for last in 1..=calls {
        for keep in [Keep::Nothing, Keep::All, Keep::Some, Keep::Some] {
            let dir = SimDir::default();
            dir.world().power_until = Some(last);
            drop(open(&dir));
            dir.world().lose_power(&mut Random(last as u64), keep);
            let mut log = open(&dir).unwrap_or_else(|error| panic!("{keep:?} {last}: {error}"));
            assert_eq!(log.last(), None);
            append(&mut log, &[vote(1)]).unwrap();
            log.commit().unwrap();
        }
    }
}

#[test]
fn every_error_has_its_outcome_and_what_was_promised_is_there_afterwards() {
    every_error_has_its_outcome(When::AtOnce, SMALL);
    every_error_has_its_outcome(When::AtOnce, LARGE);
}

/// Appends one vote after another, each durable, until one is refused.
fn until_refused(log: &mut DiskLog<SimDir>, from: u64) -> (u64, AppendError) {
    for instance in from.. {
        match append(log, &[vote(instance)]) {
            Ok(()) => log.commit().unwrap(),
            Err(error) => return (instance, error),
        }
    }
    unreachable!("it is refused at last")
}

#[test]
fn without_room_for_another_segment_nothing_is_appended_and_a_later_try_works() {
    let dir = SimDir::default();
    let mut with_none = options();
    with_none.spares = 0;
    let mut log = DiskLog::open_on(dir.clone(), with_none).unwrap();
    // Files can be written to, but not made.
    dir.world().always = Some(("open", libc::ENOSPC));
    let (refused, error) = until_refused(&mut log, 0);
    assert!(matches!(error, AppendError::NoSpace(_)), "{error}");
    assert!(!log.has_failed() && refused > 5);
    assert_eq!(log.last(), Some(refused - 1));
    let before = told(&mut log);
    dir.world().always = None;
    append(&mut log, &[vote(refused)]).unwrap();
    log.commit().unwrap();
    assert_eq!(told(&mut log).instances.len(), before.instances.len() + 1);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    assert_eq!(open(&dir).unwrap().last(), Some(refused));
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    for code in [libc::EIO, libc::ENOSPC] {
        let dir = prepared();
        let mut log = open(&dir).unwrap();
        append(&mut log, &[vote(8)]).unwrap();
        log.write().unwrap();
        dir.world().fail_in(1, code, 0);
        assert!(matches!(log.commit(), Err(AppendError::Io(_))));
        let calls = dir.world().calls;
        assert!(matches!(log.commit(), Err(AppendError::Failed)));
        assert!(matches!(log.sync(), Err(AppendError::Failed)));
        assert!(matches!(log.trim(3), Err(AppendError::Failed)));
        assert!(matches!(log.maintain(), Err(AppendError::Failed)));
        assert!(matches!(log.settle(), Err(AppendError::Failed)));
        assert!(matches!(
            append(&mut log, &[vote(9)]),
            Err(AppendError::Failed)
        ));
        assert!(log.fetch(0, 9, 1).is_err() && log.has_failed());
        assert!(log.close().is_err());
        assert_eq!(dir.world().calls, calls);
        // The disk does not have it, whatever the next process reads.
        dir.world().lose_power(&mut Random(1), Keep::All);
        assert_eq!(open(&dir).unwrap().last(), Some(7));
    }
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_durable_before_the_next_process_tells_of_it() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    append(&mut log, &[vote(8)]).unwrap();
    log.write().unwrap();
    dir.world().fail_in(1, libc::EIO, 0);
    log.commit().unwrap_err();
    drop(log);
    let log = open(&dir).unwrap();
    assert_eq!(log.last(), Some(8));
    drop(log);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    assert_eq!(open(&dir).unwrap().last(), Some(8));
}

/// A record was cut off, and a whole one behind it came to the disk. The record that is written in place of the first
/// is as long, so the second would follow it.
#[test]
fn what_was_behind_a_cut_never_comes_back() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let at = log.end().offset as usize;
    append(&mut log, &[vote(8), vote(9)]).unwrap();
    log.write().unwrap();
    let mut files = dir.world().files();
    files.get_mut("segment-0000000000000001").unwrap()[at + 50] ^= 1;
    let dir = SimDir::with(&files);
    let mut log = open(&dir).unwrap();
    assert_eq!((log.last(), log.end().offset), (Some(7), at as u64));
    append(&mut log, &[record(Kind::Vote, 20, 20, &[5; 300])]).unwrap();
    log.commit().unwrap();
    drop(log);
    let mut log = open(&dir).unwrap();
    let instances = told(&mut log).instances;
    let instances: Vec<u64> = instances.iter().map(|r| r.first).collect();
    assert_eq!(instances, [0, 1, 2, 3, 4, 5, 6, 7, 20]);
}

#[test]
fn a_slow_sync_delays_and_does_nothing_else() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    append(&mut log, &[vote(8)]).unwrap();
    let job = log.start_sync().unwrap().unwrap();
    let asked = log.end();
    // It runs elsewhere; meanwhile there is more, which it does not cover.
    append(&mut log, &[vote(9)]).unwrap();
    log.write().unwrap();
    assert!(log.durable() < asked);
    let done = job.run();
    log.finish_sync(done).unwrap();
    assert_eq!(log.durable(), asked);
    assert!(log.end() > asked && log.unsynced_bytes() > 0);
    // One that ends behind a later one takes nothing back.
    let late = log.start_sync().unwrap().unwrap();
    append(&mut log, &[vote(10)]).unwrap();
    log.sync().unwrap();
    let durable = log.durable();
    log.finish_sync(late.run()).unwrap();
    assert_eq!((log.durable(), log.unsynced_bytes()), (durable, 0));
}

#[test]
fn what_is_written_survives_the_process_and_is_synced_in_time() {
    let mut slack = options();
    slack.mode = Mode::Async {
        interval: Duration::from_millis(100),
        bytes: 1000,
    };
    let dir = SimDir::default();
    let mut log = DiskLog::open_on(dir.clone(), slack.clone()).unwrap();
    assert!(!log.sync_due(Duration::from_secs(9)));
    append(&mut log, &[vote(1)]).unwrap();
    let syncs = |dir: &SimDir| dir.world().log.iter().filter(|c| **c == "sync").count();
    let before = syncs(&dir);
    log.commit().unwrap();
    assert_eq!(syncs(&dir), before);
    assert!(!log.sync_due(Duration::from_millis(99)) && log.sync_due(Duration::from_millis(100)));
    append(&mut log, &[vote(2), record(Kind::Vote, 3, 3, &[3; 264])]).unwrap();
    log.commit().unwrap();
    let unsynced = log.unsynced_bytes();
    assert!(
        (968..1000).contains(&unsynced) && !log.sync_due(Duration::ZERO),
        "{unsynced}"
    );
    append(&mut log, &[record(Kind::Vote, 4, 4, b"")]).unwrap();
    log.commit().unwrap();
    assert!(log.sync_due(Duration::ZERO));
    drop(log);
    assert_eq!(
        DiskLog::open_on(dir.fork(), slack.clone()).unwrap().last(),
        Some(4)
    );
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    assert_eq!(DiskLog::open_on(dir, slack).unwrap().last(), None);
}

#[test]
fn somebody_elses_log_is_refused() {
    let dir = prepared();
    let mine = identity();
    for other in [
        rota_storage::acceptor::Identity { cluster: 8, ..mine },
        rota_storage::acceptor::Identity {
            node: NodeId::new(2).unwrap(),
            ..mine
        },
        rota_storage::acceptor::Identity {
            log: LogId(2),
            ..mine
        },
    ] {
        let mut wanted = options();
        wanted.identity = other;
        let before = dir.world().files();
        let refused = DiskLog::open_on(dir.clone(), wanted);
        assert!(matches!(&refused, Err(LogOpenError::WrongOwner { found, .. }) if *found == mine));
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("cluster 7, node 1, ring 1")
        );
        assert_eq!(dir.world().files(), before);
    }
    // One file of somebody else's, among one's own.
    let mut files = dir.world().files();
    let theirs = SimDir::default();
    let mut of_theirs = options();
    of_theirs.identity.log = LogId(2);
    drop(DiskLog::open_on(theirs.clone(), of_theirs).unwrap());
    let segment = "segment-0000000000000001".to_owned();
    let file = theirs.world().files()[&segment].clone();
    files.insert(segment, file);
    let refused = open(&SimDir::with(&files));
    assert!(matches!(refused, Err(LogOpenError::WrongOwner { .. })));
}

#[test]
fn a_lost_log_and_an_older_copy_are_refused_where_it_is_known_that_there_was_another() {
    let mut wanted = options();
    wanted.create = false;
    let refused = DiskLog::open_on(SimDir::default(), wanted.clone());
    assert!(matches!(refused, Err(LogOpenError::Lost(_))));
    // One that is made where there was another goes on counting, so that no copy of that one is taken for it.
    wanted.create = true;
    wanted.least_life = 4;
    let anew = DiskLog::open_on(SimDir::default(), wanted.clone()).unwrap();
    assert_eq!(anew.life(), 5);

    let dir = prepared();
    let copy = dir.fork();
    let life = open(&dir).unwrap().life();
    assert_eq!(life, 2);
    wanted.least_life = life;
    assert_eq!(DiskLog::open_on(dir, wanted.clone()).unwrap().life(), 3);
    let refused = DiskLog::open_on(copy, wanted);
    assert!(matches!(
        refused,
        Err(LogOpenError::Older {
            found: 1,
            wanted: 2,
            ..
        })
    ));
}

#[test]
fn more_than_fits_is_refused_and_nothing_of_it_is_there() {
    let dir = SimDir::default();
    let mut log = open(&dir).unwrap();
    let limit = log.append_limit() as usize;
    let fits = record(Kind::Vote, 1, 1, &vec![1; limit - 32]);
    append(&mut log, &[fits]).unwrap();
    let over = record(Kind::Vote, 2, 2, &vec![1; limit - 31]);
    let refused = append(&mut log, &[over]);
    assert!(matches!(refused, Err(AppendError::TooLong { .. })));
    // The records that are written again in each segment must leave room for more.
    let large = record(Kind::Configuration, 0, 0, &vec![1; 1900]);
    append(&mut log, &[large]).unwrap();
    let refused = append(&mut log, &[record(Kind::Promise, 0, 9, &[1; 200])]);
    assert!(matches!(refused, Err(AppendError::TooLong { .. })));
    log.trim(1).unwrap();
    append(&mut log, &[vote(3)]).unwrap();
    log.commit().unwrap();
    drop(log);
    let mut log = open(&dir).unwrap();
    let instances: Vec<u64> = told(&mut log).instances.iter().map(|r| r.first).collect();
    assert_eq!(instances, [1, 3]);
}
