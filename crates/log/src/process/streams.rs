//! Reads of streams: entries go to clients as they are, and readers wait for new ones.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use rota_front::command::error;
use rota_front::place::place_text;
use rota_resp::{Reply, Version};
use tokio::time::{Instant, sleep, sleep_until};

use super::client::Client;
use super::merging::Merger;
use super::parts::{Part, begin, parts, trimmed};
use super::reading::ReadFailed;
use super::waiters::Waiter;
use crate::machine::Position;
use crate::redis::{After, Read, Streams};
use crate::store::Run;

/// The bytes up to which a reply is read as a whole before anything of it is told.
const LITTLE_BYTES: usize = 4 << 20;
/// The pause before the logs are looked at again.
const AGAIN: Duration = Duration::from_millis(1);
/// The number of entries that are read at once when they are told backwards.
const BACK: u64 = 256;
/// The number of entries of several logs, at most, if the client names none.
const MERGED: u64 = 1_000;

/// The error that ends a connection: the client was told a number of entries, and they are not there.
fn lost(why: ReadFailed) -> io::Error {
    match why {
        ReadFailed::Trimmed => io::Error::other("entries were trimmed as they were told"),
        ReadFailed::Nowhere => io::Error::other("no process has entries that are to be told"),
    }
}

impl Client<'_> {
    /// Reads, and tells the client.
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
        match self.catch_up().await {
            true => self.answer(read).await,
            false => Ok(()),
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
        if !self.catch_up().await {
            return Ok(());
        }
        for is_last in [false, true] {
            let Some(head) = self.server.head(log) else {
                self.head(b'*', 0);
                return Ok(());
            };
            let (from, to) = (from.max(head.first), to.saturating_add(1).min(head.next));
            let count = most.min(to.saturating_sub(from));
            let (from, to) = match is_back {
                false => (from, from + count),
                true => (to.max(from) - count, to.max(from)),
            };
            let log = head.id;
            let (part, mut left) = (Part { log, from, to }, LITTLE_BYTES);
            match self.little(part, &mut left).await {
                // Some entries were trimmed meanwhile: the client gets those that are there now.
                Err(ReadFailed::Trimmed) if !is_last => {}
                Err(why) => return Err(lost(why)),
                Ok(Some(runs)) => {
                    self.head(b'*', count);
                    match is_back {
                        false => runs.iter().for_each(|run| self.tell_run(run)),
                        true => runs.iter().rev().for_each(|run| self.tell_run_back(run)),
                    }
                    return Ok(());
                }
                Ok(None) => {
                    self.head(b'*', count);
                    return match is_back {
                        false => self.tell(part).await,
                        true => self.tell_back(part).await,
                    };
                }
            }
        }
        Ok(())
    }

    /// Waits until this process has all that any client was answered before now. `false`: the process has not, and the
    /// client was told so.
    async fn catch_up(&mut self) -> bool {
        match self.server.way.catch_up().await {
            Ok(()) => true,
            Err(error) => {
                self.say(&Reply::Error(error.to_string()));
                false
            }
        }
    }

    /// Reads the whole part, if it is no larger than `left`: entries that are read before any is told cannot be trimmed
    /// while they are told.
    async fn little(&self, part: Part, left: &mut usize) -> Result<Option<Vec<Run>>, ReadFailed> {
        let (mut from, mut runs) = (part.from, Vec::new());
        while from < part.to {
            let run = self.server.entries(part.log, (from, part.to)).await?;
            match left.checked_sub(run.bytes().len()) {
                Some(less) => *left = less,
                None => return Ok(None),
            }
            from = run.next();
            runs.push(run);
        }
        Ok(Some(runs))
    }

    /// Tells the whole part.
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

    fn tell_run_back(&mut self, run: &Run) {
        let payloads: Vec<&[u8]> = run.iter().map(|record| record.payload).collect();
        for payload in payloads.into_iter().rev() {
            self.wire.out.extend_from_slice(payload);
        }
        self.count(run.next() - run.first(), run.bytes().len());
    }

    fn count(&self, entries: u64, bytes: usize) {
        use std::sync::atomic::Ordering::Relaxed;
        self.server.told.fetch_add(entries, Relaxed);
        self.server.told_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Tells the whole part, the last entry first.
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
                self.tell_run_back(run);
                self.make_room().await?;
            }
            to = begin;
        }
        Ok(())
    }

    async fn streams(&mut self, streams: &Streams) -> io::Result<()> {
        let users = self.server.guests.users.number();
        let logs: Vec<&Bytes> = streams.of.iter().map(|(log, _)| log).collect();
        let waiter = streams.block.map(|_| self.server.waiters.wait_for(&logs));
        let until = streams.block.map(|block| Instant::now() + block);
        let is_open = |(_, after): &(Bytes, After)| !matches!(after, After::Position(_));
        // An end that is not a position has to be known for that. A reader that waits is content with any state.
        let must_know = streams.block.is_none() || streams.of.iter().any(is_open);
        if must_know && !self.catch_up().await {
            return Ok(());
        }
        let heads = self.server.heads(logs.iter().copied());
        let begins: Vec<Position> = streams.of.iter().zip(&heads).map(begin).collect();
        let mut is_last = streams.block.is_none();
        loop {
            if self.server.guests.users.number() != users {
                // What this client may read may be less than when it asked.
                self.say(&error("UNBLOCKED the users have changed: ask again"));
                return Ok(());
            }
            let heads = self.server.heads(logs.iter().copied());
            if streams.is_merged
                && let Some(refusal) = trimmed(&logs, &begins, &heads)
            {
                self.say(&refusal);
                return Ok(());
            }
            let parts = parts(&begins, &heads);
            let found: u64 = parts.iter().map(Part::len).sum();
            if is_last || found > 0 && self.server.way.ready.is_open() {
                if streams.is_merged {
                    return self.tell_merged(streams, &parts).await;
                }
                if self.tell_each(streams, parts).await? {
                    return Ok(());
                }
                // Some entries were trimmed meanwhile: the client gets those that are there now.
                sleep(AGAIN).await;
                continue;
            }
            let (Some(waiter), Some(until)) = (&waiter, until) else {
                return Ok(());
            };
            if !self.news(waiter, until).await? {
                // An empty reply, too, needs a state that is as new as any answer.
                if !self.catch_up().await {
                    return Ok(());
                }
                is_last = true;
            }
        }
    }

    /// Waits until a log has changed. `false`: the time is over.
    async fn news(&mut self, waiter: &Waiter, until: Instant) -> io::Result<bool> {
        let mut late = pin!(sleep_until(until));
        let mut again = pin!(sleep_until(Instant::now() + self.server.way.patience));
        loop {
            let kept = self.connection.bytes();
            self.wire.write(kept).await?;
            tokio::select! {
                biased;
                () = waiter.news() => {
                    let pause = self.server.lag.pause();
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                    return Ok(true);
                }
                () = &mut late => return Ok(false),
                // A process that was behind is looked at again.
                () = &mut again => return Ok(true),
                read = self.wire.read() => {
                    if !read? || self.wire.has_too_much(kept).await {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }

    /// Tells entries in the order of all logs. Each comes with its log and its place.
    async fn tell_merged(&mut self, streams: &Streams, parts: &[Part]) -> io::Result<()> {
        let all: u64 = parts.iter().map(Part::len).sum();
        let most = all.min(streams.count.unwrap_or(MERGED));
        if most == 0 {
            self.say(&Reply::NullArray);
            return Ok(());
        }
        self.head(b'*', most);
        let mut merger = Merger::begin(self.server, parts).await.map_err(lost)?;
        for _ in 0..most {
            let next = merger.next(self.server).await.map_err(lost)?;
            let Some((at, place, payload)) = next else {
                break;
            };
            self.head(b'*', 4);
            self.say(&Reply::Bulk(streams.of[at].0.clone()));
            // The id and the fields, without the head of the array of two that they are in the payload.
            let rest = payload.get(4..).unwrap_or_default();
            self.wire.out.extend_from_slice(rest);
            self.say(&Reply::from(place_text(Some(place))));
            self.count(1, payload.len());
            self.make_room().await?;
        }
        Ok(())
    }

    /// Tells the entries of each log. `false`: some were trimmed, and nothing was told.
    async fn tell_each(&mut self, streams: &Streams, mut parts: Vec<Part>) -> io::Result<bool> {
        let most = streams.count.unwrap_or(u64::MAX);
        for part in &mut parts {
            part.to = part.to.min(part.from.saturating_add(most));
        }
        let (mut little, mut left) = (Vec::new(), LITTLE_BYTES);
        for part in parts.iter().filter(|part| part.len() > 0) {
            match self.little(*part, &mut left).await {
                Ok(runs) => little.push(runs),
                Err(ReadFailed::Trimmed) => return Ok(false),
                Err(why) => return Err(lost(why)),
            }
        }
        let mut little = little.into_iter();
        let with = parts.iter().filter(|part| part.len() > 0).count() as u64;
        if with == 0 {
            self.say(&Reply::NullArray);
            return Ok(true);
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
            match little.next().flatten() {
                Some(runs) => runs.iter().for_each(|run| self.tell_run(run)),
                None => self.tell(part).await?,
            }
            self.make_room().await?;
        }
        Ok(true)
    }
}
