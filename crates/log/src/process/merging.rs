//! The merge of several logs into one, in the order of all logs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use rota_multiring::Place;

use super::parts::Part;
use super::reading::{READ_BYTES, ReadFailed};
use super::server::Server;
use crate::mutants::{self, Mutant};
use crate::store::{RecordRef, Run};

/// The bytes of all logs together that are read before they are told.
const MOST_BYTES: usize = 4 << 20;

/// A log as it is merged with others.
struct Merging {
    /// The part that was not read yet.
    part: Part,
    /// The entries that were read, and not told yet.
    waiting: VecDeque<(Place, Bytes)>,
}

impl Merging {
    fn new(part: Part) -> Self {
        Self {
            part,
            waiting: VecDeque::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn refill(&mut self, run: &Run) {
        let bytes = run.bytes().clone();
        let one = |record: RecordRef<'_>| (record.place, bytes.slice_ref(record.payload));
        self.waiting = run.iter().map(one).collect();
        self.part.from = run.next();
    }

    /// The place of the next entry.
    fn key(&self) -> Option<Place> {
        let next = self.waiting.front().map(|(place, _)| *place);
        next.filter(|_| !mutants::on(Mutant::D08))
    }

    fn take(&mut self) -> Option<(Place, Bytes)> {
        self.waiting.pop_front()
    }
}

/// The merge of several logs: the next entry is always the one of several logs that stands first.
pub(super) struct Merger {
    logs: Vec<Merging>,
    /// The place of the next entry of each log that has one.
    next: BinaryHeap<Reverse<(Option<Place>, usize)>>,
    /// The bytes that are read of a log at once, about.
    most: usize,
}

impl Merger {
    /// A merge of parts of logs.
    pub(super) async fn begin(server: &Server, parts: &[Part]) -> Result<Self, ReadFailed> {
        let mut merger = Self {
            logs: parts.iter().map(|part| Merging::new(*part)).collect(),
            next: BinaryHeap::new(),
            // All logs together read no more than this at once.
            most: (MOST_BYTES / parts.len().max(1)).clamp(1, READ_BYTES),
        };
        for at in 0..parts.len() {
            merger.line_up(server, at).await?;
        }
        Ok(merger)
    }

    /// The next entry: the number of its log, its place, and what it has.
    pub(super) async fn next(
        &mut self,
        server: &Server,
    ) -> Result<Option<(usize, Place, Bytes)>, ReadFailed> {
        let Some(Reverse((_, at))) = self.next.pop() else {
            return Ok(None);
        };
        let Some((place, payload)) = self.logs[at].take() else {
            return Ok(None);
        };
        self.line_up(server, at).await?;
        Ok(Some((at, place, payload)))
    }

    /// Has a log take part with its next entry, if it has one.
    async fn line_up(&mut self, server: &Server, at: usize) -> Result<(), ReadFailed> {
        let log = &mut self.logs[at];
        if log.is_empty() {
            if log.part.len() == 0 {
                return Ok(());
            }
            let of = (log.part.from, log.part.to);
            let run = server.some_entries(log.part.log, of, self.most).await?;
            log.refill(&run);
            // Other clients have their turn.
            tokio::task::yield_now().await;
        }
        self.next.push(Reverse((log.key(), at)));
        Ok(())
    }
}
