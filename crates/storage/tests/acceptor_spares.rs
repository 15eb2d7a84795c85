//! New segments that are written beside further appends.

mod sim;

use std::thread;
use std::time::Duration;

use rota_storage::acceptor::{AppendError, DiskLog};
use sim::life::{Upkeep, every_error_has_its_outcome, no_loss_takes_anything_back, prepared, vote};
use sim::{Keep, Random, SimDir, append, open, told};

#[test]
fn no_loss_of_power_takes_anything_back_that_was_promised() {
    no_loss_takes_anything_back(Upkeep::Late);
}

#[test]
fn every_error_has_its_outcome_and_what_was_promised_is_there_afterwards() {
    every_error_has_its_outcome(Upkeep::Late);
}

/// Votes in 8.. until the log has begun another segment.
fn until_it_rolls(log: &mut DiskLog<SimDir>) -> u64 {
    let before = log.end().segment;
    for instance in 8.. {
        append(log, &[vote(instance)]).unwrap();
        log.commit().unwrap();
        if log.end().segment > before {
            return instance;
        }
    }
    unreachable!("a segment has an end")
}

#[test]
fn a_log_that_needs_the_file_waits_for_who_writes_it() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let job = log.start_upkeep().unwrap().expect("there is no spare file");
    assert!(log.start_upkeep().unwrap().is_none(), "one at a time");
    let created = dir.world().inodes.len();
    let last = thread::scope(|scope| {
        scope.spawn(|| {
            // The log is there first.
            thread::sleep(Duration::from_millis(50));
            job.run();
        });
        until_it_rolls(&mut log)
    });
    assert_eq!(dir.world().inodes.len(), created, "it took another file");
    drop(log);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    assert_eq!(open(&dir).unwrap().last(), Some(last));
}

#[test]
fn a_log_that_ends_waits_for_who_still_writes() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let job = log.start_upkeep().unwrap().expect("there is no spare file");
    let last = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            job.run();
        });
        drop(log);
        // The file may be a segment from now on: no zeros come any more.
        let mut log = open(&dir).unwrap();
        let last = until_it_rolls(&mut log);
        thread::sleep(Duration::from_millis(100));
        last
    });
    let instances = told(&mut open(&dir).unwrap()).instances;
    assert_eq!(instances, (0..=last).map(vote).collect::<Vec<_>>());
}

#[test]
fn who_gives_up_fails_the_log() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    drop(log.start_upkeep().unwrap());
    let failed = log.start_upkeep();
    assert!(matches!(failed, Err(AppendError::Io(_))), "{failed:?}");
    assert!(log.has_failed());

    let mut log = open(&dir).unwrap();
    drop(log.start_upkeep().unwrap());
    let mut refused = Ok(());
    for instance in 8..60 {
        refused = refused.and_then(|()| append(&mut log, &[vote(instance)]));
    }
    assert!(matches!(refused, Err(AppendError::Io(_))), "{refused:?}");
}

#[test]
fn without_room_it_is_tried_again() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let job = log.start_upkeep().unwrap().expect("there is no spare file");
    dir.world().fail_in(1, libc::ENOSPC, 90);
    job.run();
    let refused = log.start_upkeep();
    assert!(
        matches!(refused, Err(AppendError::NoSpace(_))),
        "{refused:?}"
    );
    assert!(!log.has_failed());
    let job = log.start_upkeep().unwrap().expect("it is begun anew");
    job.run();
    assert!(log.start_upkeep().unwrap().is_none());
    until_it_rolls(&mut log);
}
