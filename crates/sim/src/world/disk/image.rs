//! The contents of a disk: records by log and position.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord};
use rota_paxos::{VOTES_LOG, VoteHead};

/// Records as logs keep them. A record takes the place of what was at its position; a vote for a range of instances that
/// of all that was kept of them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Image {
    records: BTreeMap<(LogId, u64), Bytes>,
}

impl Image {
    /// Takes over a record.
    pub fn apply(&mut self, record: LogRecord) {
        match record {
            LogRecord::Put {
                log,
                position,
                bytes,
            } => {
                let bytes = bytes.into_bytes();
                if log == VOTES_LOG {
                    self.cut(position, end(position, &bytes));
                }
                self.records.insert((log, position), bytes);
            }
            LogRecord::Trim { log, position } => {
                if log == VOTES_LOG {
                    self.cut(0, position);
                }
                let below = (log, 0)..(log, position);
                let gone = self.records.extract_if(below, |_, _| true);
                gone.for_each(drop);
            }
        }
    }

    /// Forgets what is kept of votes for instances from the first to before the last. Of votes for ranges the rest stays.
    fn cut(&mut self, from: u64, to: u64) {
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else {
            return;
        };
        // They do not overlap: only one may reach in from before.
        let before = self.records.range(..(VOTES_LOG, from)).next_back();
        let before = before.filter(|((log, at), vote)| *log == VOTES_LOG && end(*at, vote) > from);
        let within = self.records.range((VOTES_LOG, from)..=(VOTES_LOG, last));
        let hit: Vec<(u64, Bytes)> = before
            .into_iter()
            .chain(within)
            .map(|((_, at), vote)| (*at, vote.clone()))
            .collect();
        for (at, vote) in hit {
            let after = end(at, &vote);
            self.records.remove(&(VOTES_LOG, at));
            self.put_part(at, from, &vote);
            self.put_part(to, after, &vote);
        }
    }

    fn put_part(&mut self, from: u64, to: u64, vote: &Bytes) {
        let span = to.saturating_sub(from);
        let part = VoteHead::with_span(vote.clone(), span);
        if let Some(part) = part.filter(|_| span > 0) {
            self.records.insert((VOTES_LOG, from), part);
        }
    }

    /// Everything, by log and position.
    pub fn records(&self) -> Vec<(LogId, u64, Bytes)> {
        let with_log =
            |(&(log, position), bytes): (&(LogId, u64), &Bytes)| (log, position, bytes.clone());
        self.records.iter().map(with_log).collect()
    }

    /// The records of a log from one position to before another.
    pub fn between(&self, log: LogId, from: u64, to: u64) -> Vec<(u64, Bytes)> {
        let before = self.records.range((log, 0)..(log, from)).next_back();
        let before = before.filter(|((_, at), vote)| log == VOTES_LOG && end(*at, vote) > from);
        // Of a vote for a range, the part that is asked for.
        let before = before.and_then(|((_, at), vote)| {
            let span = end(*at, vote).min(to).checked_sub(from)?;
            Some((from, VoteHead::with_span(vote.clone(), span)?))
        });
        let found = self.records.range((log, from)..(log, to.max(from)));
        let found = found.map(|(&(_, position), bytes)| (position, bytes.clone()));
        before.into_iter().chain(found).collect()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.records.clear();
    }
}

/// The instance behind those that a vote is for. A vote without a head is for one.
fn end(first: u64, vote: &[u8]) -> u64 {
    let span = VoteHead::read(vote).map_or(1, |head| head.span);
    first.saturating_add(span)
}
