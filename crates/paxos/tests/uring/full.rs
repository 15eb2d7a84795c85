//! A full disk: proposals wait for it, and records that speak of no votes do not.

use rota_core::contract::LogRecord;
use rota_paxos as paxos;
use rota_paxos::state_key::COMPLETE;
use rota_paxos::uring::{AcceptorConfig, Hello, Record, ResumeFrom, URingConfig, Word};
use rota_paxos::{Ballot, Promise, STATE_LOG};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::logs::{many, proposed};
use super::rules::{batch_by, follow};

/// With room for two or three values at the disk.
fn narrow() -> URingConfig {
    URingConfig {
        acceptor: AcceptorConfig {
            disk_bytes: 1000,
            ..settings().acceptor
        },
        ..settings()
    }
}

/// Proposals that were passed on.
fn passed_on(alone: &Alone) -> usize {
    let records = alone.batches.iter().flatten();
    let is_proposal = |record: &&Record| matches!(record, Record::Proposal(_));
    records.filter(is_proposal).count()
}

/// However much waits to be proposed, no more is than the coordinator's own disk has room for.
pub fn a_coordinator_proposes_what_its_disk_has_room_for() -> bool {
    let mut first = Alone::with(narrow(), process(1, 1), Vec::new());
    first.join();
    first.write_all();
    let promise = Promise {
        round: 1,
        acceptor: acceptor(2),
        from: 1,
        held: 1,
        kept: 1,
        votes: Vec::new(),
    };
    first.hear(2, Word::Promise(promise, false).encode(FOUNDED));
    first.write_all();
    let hail = ResumeFrom {
        round: 1,
        epoch: 1,
        next: 1,
    };
    first.hear(2, Word::ResumeFrom(hail, Vec::new()).encode(FOUNDED));
    let (epoch, before) = (first.follow().epoch, passed_on(&first));
    batch_by(&mut first, 3, (epoch, 2), |batch| {
        for (id, frame) in many(40) {
            batch.value(None, id, &frame);
        }
    });
    let at_once = passed_on(&first) - before;
    first.write_all();
    let all = passed_on(&first) - before;
    (1..10).contains(&at_once) && all == 40
}

/// The second of three, at whose disk many more votes wait than are under way.
fn second_with_much_to_write() -> Alone {
    let mut alone = Alone::with(narrow(), process(2, 1), Vec::new());
    alone.join();
    alone.write_all();
    follow(&mut alone, 1, 1);
    proposed(&mut alone, (1, 1), &many(60));
    alone
}

/// Whoever stands for the next configuration is answered when that is durable, whatever else waits.
pub fn who_follows_is_not_asked_behind_votes() -> bool {
    let mut alone = second_with_much_to_write();
    let by = process(1, 1);
    let ballot = Ballot { count: 1, by };
    let word = Word::Ask(2, paxos::Word::Prepare(ballot));
    alone.hear(1, word.encode(FOUNDED));
    let early = alone.answer().is_some();
    alone.write();
    !early && alone.answer().is_some() && alone.unanswered > 0
}

/// That a configuration is complete says nothing of the own votes, and is not written behind them.
pub fn what_is_complete_is_not_written_behind_votes() -> bool {
    let mut alone = second_with_much_to_write();
    let before = alone.records.len();
    let here = Hello {
        number: 1,
        acceptor: Some(acceptor(1)),
        complete: 1,
        joins: false,
    };
    alone.hear(1, Word::Hello(here).encode(FOUNDED));
    let is_it = |record: &LogRecord| matches!(record, LogRecord::Put { log, position, .. } if (*log, *position) == (STATE_LOG, COMPLETE));
    let at_once = alone.records[before..].iter().any(is_it);
    alone.write();
    at_once && alone.unanswered > 0
}
