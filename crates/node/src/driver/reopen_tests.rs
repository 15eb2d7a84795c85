//! An engine that gives its log of votes up, on a disk that fails, hangs or is full.

use super::durable_tests::{Idle, PATIENCE, Script, config, id, me, token};
use super::log_keeper::SLOW;
use super::votes_tests::{
    ASYNC, Outcome, World, a_life, fetch, put, request, vote, vote_of, voting, world, world_with,
};
use super::*;
use crate::config::VoteStorage;
use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord, Output, PersistId};
use rota_paxos::{STATE_LOG, VOTES_LOG};
use rota_storage::acceptor::Mode;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The contents of a log: the state under key 0, and the positions of votes.
type Votes = (Option<u8>, Vec<u64>);

fn votes_of(records: &[(LogId, u64, Bytes)]) -> Votes {
    let state = records
        .iter()
        .find(|(log, key, _)| (*log, *key) == (STATE_LOG, 0));
    let votes = records.iter().filter(|(log, ..)| *log == VOTES_LOG);
    (
        state.map(|found| found.2[0]),
        votes.map(|vote| vote.1).collect(),
    )
}

impl World {
    fn found_again(&self) -> Vec<(Votes, bool)> {
        let heard = self.driver.engine.heard.iter();
        let found = heard.filter_map(|input| match input {
            Input::Reopened { records, lost_some } => Some((votes_of(records), *lost_some)),
            _ => None,
        });
        found.collect()
    }

    /// Turns until the engine is told that its log is open again; says what it is told.
    fn reopened(&mut self) -> (Votes, bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.found_again().pop() {
                assert_eq!(self.found_again().len(), 1);
                let heard = &mut self.driver.engine.heard;
                heard.retain(|input| !matches!(input, Input::Reopened { .. }));
                return found;
            }
            assert!(Instant::now() < deadline);
            self.turn();
        }
    }

    fn turn_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.turn();
        }
    }

    /// The text of the state, and the counter of a node that votes for nothing.
    fn seen(&self) -> (String, u64) {
        let status = self.driver.status();
        (status.state, status.counters["votes_failed"])
    }
}

const GIVEN_UP: &str = "; its log was given up and is being opened again, it votes for nothing";

#[test]
fn a_log_that_has_failed_is_opened_again_only_when_the_engine_gives_it_up() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), token(1, Some(1))]);
    world.sync_has_begun();
    world.say([vote_of(2), token(2, Some(2))]);
    world.outcomes.send(Outcome::Fails).unwrap();
    assert_eq!(world.answers(2), [(1, true), (2, true)]);
    world.turn_for(Duration::from_millis(50));
    assert_eq!(world.gate.openings.load(SeqCst), 1);
    world.gate.closed.store(false, SeqCst);
    world.say([Output::Reopen]);
    // It was written, and what can be read is durable now.
    assert_eq!(world.reopened(), ((Some(1), vec![1]), false));
    assert_eq!(world.gate.openings.load(SeqCst), 2);
    assert_eq!(world.seen().1, 0);
    world.say([vote_of(3), token(3, Some(3)), fetch(VOTES_LOG, 0, 9)]);
    assert_eq!(world.answers(3)[2], (3, false));
    assert_eq!(world.fetched().len(), 2);
    assert_eq!(world.arrived(), [3]);
    assert_eq!(
        (
            world.failures(),
            world.driver.status().counters["votes_reopened"]
        ),
        (2, 1)
    );
}

#[test]
fn what_is_to_be_read_when_the_log_is_given_up_is_read_when_it_is_open_again() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), token(1, Some(1))]);
    world.sync_has_begun();
    // Both wait for the thread.
    world.say([fetch(VOTES_LOG, 0, 9), Output::Reopen]);
    world.gate.closed.store(false, SeqCst);
    world.outcomes.send(Outcome::Good).unwrap();
    assert_eq!(world.reopened(), ((Some(1), vec![1]), false));
    assert_eq!(world.fetched().len(), 1);
}

#[test]
fn what_hangs_when_the_log_is_given_up_is_nobodys_and_the_log_is_opened_when_it_ends() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), token(1, Some(1))]);
    world.sync_has_begun();
    world.say((2..=9).map(vote_of).chain([token(2, Some(9))]));
    world.say([
        Output::Reopen,
        token(3, Some(1)),
        token(4, None),
        Output::Reopen,
    ]);
    // The status does not tell of a slow request that nobody waits for.
    world.turn_for(SLOW + Duration::from_millis(100));
    assert_eq!((world.answers(0), world.found_again()), (vec![], vec![]));
    assert_eq!(world.arrived(), [4]);
    assert_eq!(world.seen(), (GIVEN_UP.to_owned(), 1));
    assert_eq!(world.driver.status().counters["votes_waiting_bytes"], 0);
    world.gate.closed.store(false, SeqCst);
    world.outcomes.send(Outcome::Good).unwrap();
    // The first may be there, and is; the others were on no disk.
    assert_eq!(world.reopened(), ((Some(1), vec![1]), false));
    world.say([vote_of(10), token(5, Some(10))]);
    assert_eq!(world.answers(1), [(10, false)]);
    assert_eq!((world.arrived(), world.failures()), (vec![5], 0));
    assert_eq!(world.seen(), (String::new(), 0));
}

#[test]
fn what_hangs_and_then_fails_does_not_fail_what_is_open_again() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1)]);
    world.sync_has_begun();
    world.say([Output::Reopen]);
    world.gate.closed.store(false, SeqCst);
    world.outcomes.send(Outcome::Fails).unwrap();
    assert!(!world.reopened().1);
    world.say([vote_of(2)]);
    assert_eq!(world.answers(1), [(2, false)]);
}

#[test]
fn without_room_it_is_tried_again_until_there_is_some() {
    let mut world = world_with(Mode::Sync, 1);
    world.gate.full.store(true, SeqCst);
    // Segments are of 4 MiB.
    let mib = Bytes::from(vote(1, 1, &vec![7; 1 << 20]));
    let mut number = 0;
    let failed = loop {
        number += 1;
        world.say([request(number, vec![put(VOTES_LOG, number, mib.clone())])]);
        let answers = world.answers(number as usize);
        if answers.last().is_some_and(|last| last.1) {
            break number;
        }
    };
    assert!((3..=8).contains(&failed), "{failed}");
    world.say([Output::Reopen]);
    // At once, after a second, and after two more.
    world.turn_for(Duration::from_millis(1500));
    assert_eq!(
        (world.found_again(), world.seen()),
        (vec![], (GIVEN_UP.to_owned(), 1))
    );
    assert_eq!(world.gate.openings.load(SeqCst), 3);
    world.gate.full.store(false, SeqCst);
    let ((_, votes), lost) = world.reopened();
    assert!(votes.iter().copied().eq(1..failed) && !lost, "{votes:?}");
    world.say([request(failed + 1, vec![put(VOTES_LOG, failed, mib)])]);
    assert_eq!(
        world.answers(failed as usize + 1).last(),
        Some(&(failed + 1, false))
    );
}

#[test]
fn a_sync_beside_is_waited_for_and_what_was_answered_before_it_failed_may_be_missing() {
    for outcome in [Outcome::Good, Outcome::Fails] {
        let mut world = world(ASYNC);
        world.say([vote_of(1)]);
        assert_eq!(world.answers(1), [(1, false)]);
        world.sync_has_begun();
        world.say([Output::Reopen]);
        world.turn_for(Duration::from_millis(50));
        assert_eq!(
            (world.found_again(), world.gate.openings.load(SeqCst)),
            (vec![], 1)
        );
        world.gate.closed.store(false, SeqCst);
        world.outcomes.send(outcome).unwrap();
        let failed = matches!(outcome, Outcome::Fails);
        assert_eq!(world.reopened(), ((Some(1), vec![1]), failed));
        world.say([vote_of(2)]);
        assert_eq!(world.answers(2)[1], (2, false));
    }
}

#[test]
fn a_node_ends_while_its_log_cannot_be_opened() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1)]);
    world.sync_has_begun();
    world.outcomes.send(Outcome::Fails).unwrap();
    world.answers(1);
    let path = world.directory.path().to_owned();
    std::fs::write(path.join("mark"), [0; 8192]).unwrap();
    world.say([Output::Reopen]);
    world.turn_for(Duration::from_millis(50));
    assert_eq!(
        (world.found_again(), world.gate.openings.load(SeqCst)),
        (vec![], 2)
    );
    let began = Instant::now();
    drop(world.driver);
    assert!(began.elapsed() < Duration::from_millis(500));
}

#[test]
fn in_memory_it_is_empty_and_open_again_at_once() {
    let in_memory = voting(VoteStorage::Memory, None);
    let sockets = Sockets::open(&in_memory.network(), id(1)).unwrap();
    let mut driver = Driver::with_process(Script::default(), sockets, me(), 1, &in_memory).unwrap();
    driver.engine.outputs.extend([
        vote_of(1),
        Output::Reopen,
        vote_of(2),
        fetch(VOTES_LOG, 0, 9),
    ]);
    driver.carry_out().unwrap();
    let [Input::Start(_), rest @ ..] = &driver.engine.heard[..] else {
        panic!("not started");
    };
    let [
        Input::Reopened {
            records,
            lost_some: false,
        },
        Input::Persisted { id },
        Input::Fetched { records: votes, .. },
    ] = rest
    else {
        panic!("{rest:?}");
    };
    assert_eq!((records.len(), *id, votes.len()), (0, PersistId(2), 1));
}

#[test]
fn where_there_is_no_log_there_is_none_to_open() {
    let config = config();
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let mut driver = Driver::with_process(Script::default(), sockets, me(), 1, &config).unwrap();
    driver.engine.outputs.push_back(Output::Reopen);
    driver.turn(&mut Idle, Some(0)).unwrap();
    assert_eq!(
        (driver.engine.heard.len(), driver.stats().unsupported),
        (1, 1)
    );
}

/// Copies a directory of files.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

fn some_votes(number: u64) -> Vec<Vec<LogRecord>> {
    vec![vec![put(VOTES_LOG, number, vote(1, 1, b"value"))]]
}

#[test]
fn an_older_copy_of_the_log_is_refused_and_one_that_was_put_away_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let config = voting(VoteStorage::Sync, Some(directory.path()));
    let votes = directory.path().join("node-1.votes");
    let refused = || {
        let sockets = Sockets::open(&config.network(), id(1)).unwrap();
        let driver = Driver::with_process(Script::default(), sockets, me(), 1, &config);
        driver.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(a_life(&config, some_votes(1)), []);
    let (old, newer) = (directory.path().join("old"), directory.path().join("newer"));
    copy(&votes, &old);
    assert_eq!(a_life(&config, some_votes(2)).len(), 1);
    // Not older than the newest opening.
    copy(&votes, &newer);
    std::fs::remove_dir_all(&votes).unwrap();
    copy(&newer, &votes);
    assert_eq!(a_life(&config, some_votes(3)).len(), 2);
    for copied in [&old, &newer] {
        std::fs::remove_dir_all(&votes).unwrap();
        copy(copied, &votes);
        let said = refused();
        assert!(
            said.contains("an older copy") && said.contains("move this one away"),
            "{said}"
        );
    }
    // Another acceptor; and what was put away is not taken for its log.
    std::fs::remove_dir_all(&votes).unwrap();
    assert_eq!(a_life(&config, some_votes(1)), []);
    assert_eq!(a_life(&config, Vec::new()).len(), 1);
    std::fs::remove_dir_all(&votes).unwrap();
    copy(&newer, &votes);
    assert!(refused().contains("an older copy"));
    // Without the file beside it, nothing is known of others.
    std::fs::remove_file(directory.path().join("node-1.votes.life")).unwrap();
    assert_eq!(a_life(&config, Vec::new()).len(), 2);
}
