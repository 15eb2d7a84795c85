//! New segments that are written beside further appends.

mod sim;

use std::thread;
use std::time::Duration;

use rota_storage::acceptor::{AppendError, DiskLog, SpareJob, Upkeep};
use sim::life::{
    LARGE, SMALL, When, every_error_has_its_outcome, no_loss_takes_anything_back, prepared, vote,
};
use sim::{Keep, Random, SimDir, SimFile, append, open, told};

#[test]
fn no_loss_of_power_takes_anything_back_that_was_promised() {
    no_loss_takes_anything_back(When::Late, SMALL);
    no_loss_takes_anything_back(When::Late, LARGE);
}

#[test]
fn every_error_has_its_outcome_and_what_was_promised_is_there_afterwards() {
    every_error_has_its_outcome(When::Late, SMALL);
    every_error_has_its_outcome(When::Late, LARGE);
}

/// There is no spare file.
fn job(log: &mut DiskLog<SimDir>) -> SpareJob<SimFile> {
    match log.start_upkeep().unwrap() {
        Upkeep::Job(job) => job,
        other => panic!("{other:?}"),
    }
}

/// Votes in 8.. until the log has begun another segment.
fn until_it_rolls(log: &mut DiskLog<SimDir>) -> u64 {
    until_it_rolls_from(log, 8)
}

fn until_it_rolls_from(log: &mut DiskLog<SimDir>, from: u64) -> u64 {
    let before = log.end().segment;
    for instance in from.. {
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
    let job = job(&mut log);
    assert!(matches!(log.start_upkeep(), Ok(Upkeep::UnderWay)));
    assert!(!log.maintain().unwrap(), "there is nothing to do now");
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
    let job = job(&mut log);
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
    drop(job(&mut log));
    let failed = log.start_upkeep();
    assert!(matches!(failed, Err(AppendError::Io(_))), "{failed:?}");
    assert!(log.has_failed());

    let mut log = open(&dir).unwrap();
    drop(job(&mut log));
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
    let job = job(&mut log);
    dir.world().fail_in(1, libc::ENOSPC, 90);
    job.run();
    let refused = log.start_upkeep();
    assert!(
        matches!(refused, Err(AppendError::NoSpace(_))),
        "{refused:?}"
    );
    assert!(!log.has_failed());
    // It is begun anew.
    while let Upkeep::Job(job) = log.start_upkeep().unwrap() {
        job.run();
    }
    until_it_rolls(&mut log);
}

#[test]
fn a_segment_that_ends_tries_itself_when_there_was_no_room_before() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let job = job(&mut log);
    dir.world().fail_in(1, libc::ENOSPC, 90);
    job.run();
    // Nobody has looked since, and there is room again.
    until_it_rolls(&mut log);
}

#[test]
fn no_more_spare_files_are_kept_than_is_said() {
    let dir = prepared();
    let mut log = open(&dir).unwrap();
    let mut last = until_it_rolls(&mut log);
    while let Upkeep::Job(job) = log.start_upkeep().unwrap() {
        job.run();
    }
    for _ in 0..4 {
        last = until_it_rolls_from(&mut log, last + 1);
    }
    // The next one is nearly whole when others become free.
    let mut held = job(&mut log);
    while dir.world().files()["spare.new"].len() < 4096 {
        held.run();
        held = job(&mut log);
    }
    log.trim(last).unwrap();
    log.commit().unwrap();
    assert!(matches!(
        log.start_upkeep(),
        Ok(Upkeep::UnderWay | Upkeep::Done)
    ));
    held.run();
    log.maintain().unwrap();
    let names = dir.world().files();
    let spare = names.keys().filter(|name| name.starts_with("spare-"));
    assert_eq!(spare.count(), 2, "{:?}", names.keys());
    assert!(!names.contains_key("spare.new"));
}
