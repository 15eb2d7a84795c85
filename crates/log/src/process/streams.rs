//! Entries are told.

use std::io;
use std::pin::pin;

use bytes::Bytes;
use rota_resp::{Reply, Version};
use tokio::time::{Instant, sleep_until};

use super::client::Client;
use super::reading::ReadFailed;
use super::waiters::Waiter;
use crate::machine::{Log, Position};
use crate::redis::{After, Read, Streams, id_of};
use crate::store::Run;

/// Entries that are read backwards are read so many at once.
const BACK: u64 = 256;

/// Some of a log, from a position on and before another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) log: u64,
    pub(super) from: Position,
    pub(super) to: Position,
}

impl Part {
    pub(super) const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// The connection ends: what it was told that it would get is not there.
pub(super) fn lost(why: ReadFailed) -> io::Error {
    match why {
        ReadFailed::Trimmed => io::Error::other("entries were trimmed as they were told"),
        ReadFailed::Nowhere => io::Error::other("no process has entries that are to be told"),
    }
}

impl Client<'_> {
    /// Reads, and tells it.
    pub(super) async fn read(&mut self, read: &Read) -> io::Result<()> {
        if let Read::Streams(streams) = read {
            return self.streams(streams).await;
        }
        if let Read::Range {
            log,
            from,
            to,
            count,
            is_back,
        } = read
        {
            return self.range(log, (*from, *to), *count, *is_back).await;
        }
        match self.server.way.catch_up().await {
            Ok(()) => self.answer(read).await,
            Err(error) => {
                self.say(&Reply::Error(error.to_string()));
                Ok(())
            }
        }
    }

    pub(super) fn head(&mut self, kind: u8, count: u64) {
        let line = format!("{}{count}\r\n", char::from(kind));
        self.wire.out.extend_from_slice(line.as_bytes());
    }

    async fn range(
        &mut self,
        log: &Bytes,
        (from, to): (Position, Position),
        count: Option<u64>,
        is_back: bool,
    ) -> io::Result<()> {
        if count == Some(0) {
            self.say(&Reply::NullArray);
            return Ok(());
        }
        let most = count.unwrap_or(u64::MAX);
        let is_whole = |head: &Log| {
            let last = match is_back {
                true => to,
                false => to.min(head.first.max(from).saturating_add(most - 1)),
            };
            last < head.next
        };
        // What is there does not change: only whether there is more has to be asked.
        let mut head = self.server.head(log);
        if !head.as_ref().is_some_and(is_whole) || !self.server.way.ready.is_open() {
            if let Err(error) = self.server.way.catch_up().await {
                self.say(&Reply::Error(error.to_string()));
                return Ok(());
            }
            head = self.server.head(log);
        }
        let Some(head) = head else {
            self.head(b'*', 0);
            return Ok(());
        };
        let (from, to) = (from.max(head.first), to.saturating_add(1).min(head.next));
        let count = most.min(to.saturating_sub(from));
        self.head(b'*', count);
        let part = |from, to| Part {
            log: head.id,
            from,
            to,
        };
        match (is_back, count) {
            (_, 0) => Ok(()),
            (false, count) => self.tell(part(from, from + count)).await,
            (true, count) => self.tell_back(part(to - count, to)).await,
        }
    }

    /// Tells all of it.
    pub(super) async fn tell(&mut self, part: Part) -> io::Result<()> {
        let mut from = part.from;
        while from < part.to {
            let run = self.server.entries(part.log, (from, part.to)).await;
            let run = run.map_err(lost)?;
            self.tell_run(&run);
            from = run.next();
            self.make_room().await?;
        }
        Ok(())
    }

    fn tell_run(&mut self, run: &Run) {
        for record in run.iter() {
            self.wire.out.extend_from_slice(record.payload);
        }
        self.count(run.next() - run.first(), run.bytes().len());
    }

    pub(super) fn count(&self, entries: u64, bytes: usize) {
        use std::sync::atomic::Ordering::Relaxed;
        self.server.told.fetch_add(entries, Relaxed);
        self.server.told_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Tells all of it, the last one first.
    async fn tell_back(&mut self, part: Part) -> io::Result<()> {
        let mut to = part.to;
        while part.from < to {
            let mut from = part.from.max(to.saturating_sub(BACK));
            let (begin, mut runs) = (from, Vec::new());
            while from < to {
                let run = self.server.entries(part.log, (from, to)).await;
                let run = run.map_err(lost)?;
                from = run.next();
                runs.push(run);
            }
            for run in runs.iter().rev() {
                let payloads: Vec<&[u8]> = run.iter().map(|record| record.payload).collect();
                for payload in payloads.into_iter().rev() {
                    self.wire.out.extend_from_slice(payload);
                }
                self.count(run.next() - run.first(), run.bytes().len());
                self.make_room().await?;
            }
            to = begin;
        }
        Ok(())
    }

    async fn streams(&mut self, streams: &Streams) -> io::Result<()> {
        let logs: Vec<&Bytes> = streams.of.iter().map(|(log, _)| log).collect();
        let waiter = streams.block.map(|_| self.server.waiters.wait_for(&logs));
        let until = streams.block.map(|block| Instant::now() + block);
        let is_open = |(_, after): &(Bytes, After)| !matches!(after, After::Position(_));
        let mut is_caught_up = false;
        // What stands before the end has to be known for that.
        if streams.of.iter().any(is_open) {
            if let Err(error) = self.server.way.catch_up().await {
                self.say(&Reply::Error(error.to_string()));
                return Ok(());
            }
            is_caught_up = true;
        }
        let heads = self.server.heads(logs.iter().copied());
        let begins: Vec<Position> = streams.of.iter().zip(&heads).map(begin).collect();
        loop {
            let heads = self.server.heads(logs.iter().copied());
            if streams.is_merged
                && let Some(refusal) = trimmed(&logs, &begins, &heads)
            {
                self.say(&refusal);
                return Ok(());
            }
            let parts = parts(&begins, &heads);
            let found: u64 = parts.iter().map(Part::len).sum();
            let is_enough = match streams.block {
                Some(_) => found > 0,
                None => is_caught_up || is_whole(streams, &parts),
            };
            if is_enough && self.server.way.ready.is_open() {
                return match streams.is_merged {
                    true => self.tell_merged(streams, &parts).await,
                    false => self.tell_each(streams, parts).await,
                };
            }
            let (Some(waiter), Some(until)) = (&waiter, until) else {
                // Whether there is more has to be asked.
                if let Err(error) = self.server.way.catch_up().await {
                    self.say(&Reply::Error(error.to_string()));
                    return Ok(());
                }
                is_caught_up = true;
                continue;
            };
            if !self.news(waiter, until).await? {
                self.say(&Reply::NullArray);
                return Ok(());
            }
        }
    }

    /// Until something has changed. `false`: it is too late.
    async fn news(&mut self, waiter: &Waiter, until: Instant) -> io::Result<bool> {
        let mut late = pin!(sleep_until(until));
        let mut again = pin!(sleep_until(Instant::now() + self.server.way.patience));
        loop {
            let kept = self.connection.bytes();
            self.wire.write(kept).await?;
            tokio::select! {
                biased;
                () = waiter.news() => return Ok(true),
                () = &mut late => return Ok(false),
                // A process that is behind is looked at again.
                () = &mut again => return Ok(true),
                read = self.wire.read() => {
                    if !read? || self.wire.has_too_much(kept).await {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }

    async fn tell_each(&mut self, streams: &Streams, mut parts: Vec<Part>) -> io::Result<()> {
        let most = streams.count.unwrap_or(u64::MAX);
        for part in &mut parts {
            part.to = part.to.min(part.from.saturating_add(most));
        }
        let with = parts.iter().filter(|part| part.len() > 0).count() as u64;
        if with == 0 {
            self.say(&Reply::NullArray);
            return Ok(());
        }
        let version = self.connection.who.version();
        match version {
            Version::Resp2 => self.head(b'*', with),
            Version::Resp3 => self.head(b'%', with),
        }
        for ((log, _), part) in streams.of.iter().zip(parts) {
            if part.len() == 0 {
                continue;
            }
            if version == Version::Resp2 {
                self.head(b'*', 2);
            }
            self.say(&Reply::Bulk(log.clone()));
            self.head(b'*', part.len());
            self.tell(part).await?;
        }
        Ok(())
    }
}

/// Where a reader goes on in a log.
fn begin(((_, after), head): (&(Bytes, After), &Option<Log>)) -> Position {
    let next = head.as_ref().map_or(1, |head| head.next);
    let first = head.as_ref().map_or(1, |head| head.first);
    match after {
        After::Position(position) => position.saturating_add(1),
        After::Last => next,
        After::BeforeLast => next.saturating_sub(1).max(first),
    }
}

fn parts(begins: &[Position], heads: &[Option<Log>]) -> Vec<Part> {
    let part = |(from, head): (&Position, &Option<Log>)| match head {
        Some(head) => Part {
            log: head.id,
            from: (*from).max(head.first),
            to: head.next,
        },
        None => Part {
            log: 0,
            from: *from,
            to: *from,
        },
    };
    begins.iter().zip(heads).map(part).collect()
}

/// Whether there is as much as was asked for.
fn is_whole(streams: &Streams, parts: &[Part]) -> bool {
    let Some(most) = streams.count else {
        return false;
    };
    // Where logs are merged each may have something that stands before what is there.
    !streams.is_merged && parts.iter().all(|part| part.len() >= most)
}

/// Entries that a reader has not seen were trimmed.
fn trimmed(logs: &[&Bytes], begins: &[Position], heads: &[Option<Log>]) -> Option<Reply> {
    let mut all = logs.iter().zip(begins).zip(heads);
    all.find_map(|((log, from), head)| {
        let first = head.as_ref()?.first;
        (*from < first).then(|| {
            Reply::Error(format!(
                "TRIMMED the first entry of {} that is kept is {}",
                String::from_utf8_lossy(log),
                id_of(first)
            ))
        })
    })
}
