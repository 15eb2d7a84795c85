//! A log whose answers do not wait for the disk, and a machine that loses its power: a possible loss is never passed
//! over in silence.

mod sim;

use rota_storage::acceptor::{BootId, DiskLog, Kind, LogOpenError, LogOptions, Mode, inspect_on};
use sim::life::vote;
use sim::{Keep, Random, SimDir, append, options, record};

const NAME: u64 = 4;

/// Runs of the machine.
const MONDAY: BootId = [1; 16];
const TUESDAY: BootId = [2; 16];
const UNKNOWN: BootId = [0; 16];

fn with(mode: Mode, boot_id: BootId) -> LogOptions {
    LogOptions {
        mode,
        boot_id,
        name_key: Some(NAME),
        ..options()
    }
}

fn open(dir: &SimDir, mode: Mode, boot: BootId) -> DiskLog<SimDir> {
    DiskLog::open_on(dir.clone(), with(mode, boot)).unwrap()
}

/// Answers a vote, in one step more than are there.
fn answer(log: &mut DiskLog<SimDir>) {
    let next = log.last().map_or(0, |last| last + 1);
    append(log, &[vote(next)]).unwrap();
    log.commit().unwrap();
}

/// A log that was used in such a way and not closed.
fn killed(mode: Mode, boot: BootId) -> SimDir {
    let dir = SimDir::default();
    let mut log = open(&dir, mode, boot);
    assert!(!log.lost_some());
    answer(&mut log);
    drop(log);
    dir
}

#[test]
fn only_another_run_of_the_machine_takes_back_what_was_not_synced() {
    for (mode, before, now, lost) in [
        (Mode::ASYNC, MONDAY, MONDAY, false),
        (Mode::ASYNC, MONDAY, TUESDAY, true),
        (Mode::ASYNC, UNKNOWN, UNKNOWN, true),
        (Mode::ASYNC, MONDAY, UNKNOWN, true),
        (Mode::ASYNC, UNKNOWN, MONDAY, true),
        (Mode::Sync, MONDAY, TUESDAY, false),
        (Mode::Sync, UNKNOWN, UNKNOWN, false),
    ] {
        // However it is kept from now on.
        for next in [Mode::ASYNC, Mode::Sync] {
            let dir = killed(mode, before);
            let log = open(&dir, next, now);
            assert_eq!(
                log.lost_some(),
                lost,
                "{mode:?} {before:?} {next:?} {now:?}"
            );
            assert_eq!(log.last(), Some(0));
        }
        // A log that was closed in order has all records.
        let dir = killed(mode, before);
        open(&dir, mode, before).close().unwrap();
        assert_eq!(open(&dir, mode, now).lost_some(), lost && before == UNKNOWN);
    }
}

#[test]
fn what_was_found_is_durable_when_it_is_open_and_so_another_mode_begins_with_all() {
    let dir = killed(Mode::ASYNC, MONDAY);
    let mut log = open(&dir, Mode::Sync, MONDAY);
    answer(&mut log);
    drop(log);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    let mut log = open(&dir, Mode::ASYNC, TUESDAY);
    assert_eq!((log.lost_some(), log.last()), (false, Some(1)));
    answer(&mut log);
    drop(log);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    let log = open(&dir, Mode::Sync, MONDAY);
    assert_eq!((log.lost_some(), log.last()), (true, Some(1)));
}

#[test]
fn it_is_said_until_a_new_name_is_durable() {
    let name =
        |log: &mut DiskLog<SimDir>, key| append(log, &[record(Kind::State, key, key, b"me")]);
    let dir = killed(Mode::ASYNC, MONDAY);
    for (mode, boot) in [(Mode::Sync, TUESDAY), (Mode::ASYNC, TUESDAY)] {
        let mut log = open(&dir, mode, boot);
        assert!(log.lost_some());
        // Something else.
        name(&mut log, NAME + 1).unwrap();
        answer(&mut log);
        log.close().unwrap();
        assert!(inspect_on(&dir, 0..0).unwrap().lost_some);
    }
    let mut log = open(&dir, Mode::ASYNC, TUESDAY);
    name(&mut log, NAME).unwrap();
    answer(&mut log);
    // It is in the system's memory only.
    assert!(log.lost_some());
    drop(log);
    let mut log = open(&dir, Mode::ASYNC, TUESDAY);
    assert!(log.lost_some());
    name(&mut log, NAME).unwrap();
    log.sync().unwrap();
    assert!(!log.lost_some() && !inspect_on(&dir, 0..0).unwrap().lost_some);
    log.close().unwrap();
    assert!(!open(&dir, Mode::ASYNC, MONDAY).lost_some());
    // The name that it had before anything was lost does not count.
    let dir = SimDir::default();
    let mut log = open(&dir, Mode::ASYNC, MONDAY);
    name(&mut log, NAME).unwrap();
    log.sync().unwrap();
    answer(&mut log);
    drop(log);
    let mut log = open(&dir, Mode::Sync, TUESDAY);
    answer(&mut log);
    assert!(log.lost_some());
}

#[test]
fn a_disk_that_fails_behind_an_answer_may_have_taken_it_back() {
    let dir = killed(Mode::ASYNC, MONDAY);
    let mut log = open(&dir, Mode::ASYNC, MONDAY);
    answer(&mut log);
    dir.world().fail_in(1, libc::EIO, 0);
    log.sync().unwrap_err();
    drop(log);
    assert!(open(&dir, Mode::ASYNC, MONDAY).lost_some());
    // With answers that wait for the disk, there was no answer.
    let dir = killed(Mode::Sync, MONDAY);
    let mut log = open(&dir, Mode::Sync, MONDAY);
    append(&mut log, &[vote(1)]).unwrap();
    log.write().unwrap();
    dir.world().fail_in(1, libc::EIO, 0);
    log.commit().unwrap_err();
    drop(log);
    assert!(!open(&dir, Mode::Sync, MONDAY).lost_some());
}

/// Power goes at each call of a life, or of the opening of the next one, or that opening fails there.
#[test]
fn what_was_answered_is_there_or_it_is_said_that_something_may_be_missing() {
    let life = |dir: &SimDir, boot| {
        let mut answered = 0;
        let Ok(mut log) = DiskLog::open_on(dir.clone(), with(Mode::ASYNC, boot)) else {
            return 0;
        };
        let first = log.last().map_or(0, |last| last + 1);
        for instance in first..first + 12 {
            let done = append(&mut log, &[vote(instance)]).and_then(|()| log.commit());
            if done.is_err() {
                break;
            }
            answered = instance + 1;
            if instance % 5 == 4 && log.sync().is_err() {
                break;
            }
        }
        answered
    };
    let start = killed(Mode::ASYNC, MONDAY);
    let whole = start.fork();
    let from = whole.world().calls;
    assert_eq!(life(&whole, MONDAY), 13);
    let calls = whole.world().calls - from;
    let (mut lost, mut kept) = (0, 0);
    let mut check = |dir: &SimDir, boot, answered: u64, case: &str| {
        let log = open(dir, Mode::ASYNC, boot);
        let found = log.last().map_or(0, |last| last + 1);
        assert!(
            found >= answered || log.lost_some(),
            "{case}: {found} of {answered}"
        );
        lost += usize::from(found < answered);
        kept += usize::from(!log.lost_some());
    };
    for call in 1..=calls {
        for keep in [Keep::Nothing, Keep::Some, Keep::All] {
            let dir = start.fork();
            dir.world().power_until = Some(from + call);
            let answered = life(&dir, MONDAY).max(1);
            dir.world().lose_power(&mut Random(call as u64), keep);
            check(&dir, TUESDAY, answered, &format!("power {call} {keep:?}"));
        }
        // The disk fails, and the system gives the memory away that it believes to be written.
        let dir = start.fork();
        dir.world().fail_in(call, libc::EIO, 0);
        let answered = life(&dir, MONDAY).max(1);
        dir.world().forget_what_is_clean();
        check(&dir, MONDAY, answered, &format!("error {call}"));
    }
    assert!(lost > 20 && kept > 5, "{lost} {kept}");
}

/// A process is killed at each call of an opening, and of the next one: it takes nothing with it, however its log is
/// kept from then on. A loss of power after that may, and then it is said.
#[test]
fn who_is_killed_while_its_log_is_opened_has_lost_nothing() {
    let start = killed(Mode::ASYNC, MONDAY);
    let (mut said, mut kept) = (0, 0);
    for mode in [Mode::ASYNC, Mode::Sync] {
        let is_killed = |dir: &SimDir, call: usize| {
            let from = dir.world().calls;
            dir.world().power_until = Some(from + call);
            let log = DiskLog::open_on(dir.clone(), with(mode, MONDAY));
            dir.world().power_until = None;
            log.is_err()
        };
        let mut after: Vec<SimDir> = Vec::new();
        for call in 1.. {
            let once = start.fork();
            if !is_killed(&once, call) {
                break;
            }
            for call in 1.. {
                let twice = once.fork();
                if !is_killed(&twice, call) {
                    break;
                }
                after.push(twice);
            }
            after.push(once);
        }
        assert!(after.len() > 30, "{}", after.len());
        for (at, dir) in after.iter().enumerate() {
            for keep in [Keep::Nothing, Keep::Some, Keep::All] {
                let dark = dir.fork();
                dark.world().lose_power(&mut Random(at as u64), keep);
                let log = open(&dark, mode, TUESDAY);
                assert!(log.last() == Some(0) || log.lost_some(), "{mode:?} {at}");
                said += usize::from(log.lost_some());
                kept += usize::from(!log.lost_some());
            }
            let log = open(dir, mode, MONDAY);
            assert_eq!(
                (log.last(), log.lost_some()),
                (Some(0), false),
                "{mode:?} {at}"
            );
            log.close().unwrap();
            assert!(!open(dir, mode, TUESDAY).lost_some(), "{mode:?} {at}");
        }
    }
    assert!(said > 30 && kept > 5, "{said} {kept}");
}

/// As the first version wrote it.
fn of_the_first_version(slot: &[u8]) -> Vec<u8> {
    let mut slot = slot[..56].to_vec();
    slot[8..10].copy_from_slice(&1_u16.to_le_bytes());
    slot.extend(crc_fast::crc32_iscsi(&slot).to_le_bytes());
    slot
}

#[test]
fn a_mark_of_the_first_version_is_read_and_its_log_was_kept_as_it_is_now() {
    for (mode, closed, lost) in [
        (Mode::ASYNC, false, true),
        (Mode::ASYNC, true, false),
        (Mode::Sync, false, false),
    ] {
        let dir = killed(mode, MONDAY);
        if closed {
            open(&dir, mode, MONDAY).close().unwrap();
        }
        let mut files = dir.world().files();
        let mark = files.get_mut("mark").unwrap();
        let slots = [&mark[..4096], &mark[4096..]].map(of_the_first_version);
        let mut old = slots[0].clone();
        old.resize(4096, 0);
        old.extend(&slots[1]);
        *mark = old;
        let log = open(&SimDir::with(&files), mode, MONDAY);
        assert_eq!((log.last(), log.lost_some()), (Some(0), lost), "{mode:?}");
        // And a later one is told from damage.
        let mark = files.get_mut("mark").unwrap();
        for slot in [0, 4096] {
            mark[slot + 8] = 3;
            let sum = crc_fast::crc32_iscsi(&mark[slot..slot + 56]).to_le_bytes();
            mark[slot + 56..slot + 60].copy_from_slice(&sum);
        }
        let refused = DiskLog::open_on(SimDir::with(&files), with(mode, MONDAY));
        assert!(matches!(
            refused,
            Err(LogOpenError::Version { found: 3, .. })
        ));
    }
}
