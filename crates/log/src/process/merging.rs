//! The merge of several logs into one, in the order of all logs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use bytes::Bytes;
use rota_multiring::Place;
use rota_resp::Reply;

use super::client::Client;
use super::reading::READ_BYTES;
use super::streams::{Part, lost};
use crate::mutants::{self, Mutant};
use crate::redis::Streams;
use crate::store::{RecordRef, Run};

/// The number of entries, at most, if the client names none.
const MERGED: u64 = 1_000;
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

impl Client<'_> {
    /// Tells entries in the order of all logs: the next one is always the one of several logs that stands first. Each
    /// comes with its log and its place.
    pub(super) async fn tell_merged(
        &mut self,
        streams: &Streams,
        parts: &[Part],
    ) -> io::Result<()> {
        let all: u64 = parts.iter().map(Part::len).sum();
        let mut left = all.min(streams.count.unwrap_or(MERGED));
        if left == 0 {
            self.say(&Reply::NullArray);
            return Ok(());
        }
        self.head(b'*', left);
        let mut heads: Vec<Merging> = parts.iter().map(|part| Merging::new(*part)).collect();
        // All logs together read no more than this at once.
        let most = (MOST_BYTES / parts.len().max(1)).clamp(1, READ_BYTES);
        let mut next: BinaryHeap<Reverse<(Option<Place>, usize)>> = BinaryHeap::new();
        for (at, head) in heads.iter_mut().enumerate() {
            if self.refill(head, most).await? {
                next.push(Reverse((head.key(), at)));
            }
        }
        while left > 0 {
            let Some(Reverse((_, at))) = next.pop() else {
                break;
            };
            self.tell_one(&streams.of[at].0, &mut heads[at]);
            left -= 1;
            if !heads[at].is_empty() || self.refill(&mut heads[at], most).await? {
                next.push(Reverse((heads[at].key(), at)));
            }
            self.make_room().await?;
        }
        Ok(())
    }

    /// Reads more entries of a log. `false`: there are none.
    async fn refill(&self, head: &mut Merging, most: usize) -> io::Result<bool> {
        if head.part.len() == 0 {
            return Ok(false);
        }
        let of = (head.part.from, head.part.to);
        let run = self.server.some_entries(head.part.log, of, most).await;
        head.refill(&run.map_err(lost)?);
        // Other clients have their turn.
        tokio::task::yield_now().await;
        Ok(true)
    }

    fn tell_one(&mut self, log: &Bytes, head: &mut Merging) {
        let Some((place, payload)) = head.take() else {
            return;
        };
        self.head(b'*', 4);
        self.say(&Reply::Bulk(log.clone()));
        // The id and the fields, without the head of the array of two that they are in the payload.
        self.wire
            .out
            .extend_from_slice(payload.get(4..).unwrap_or_default());
        let (ring, instance) = (place.rank.0, place.instance);
        let place = format!("{}.{ring}.{instance}.{}", place.round, place.index);
        self.say(&Reply::from(place));
        self.count(1, payload.len());
    }
}
