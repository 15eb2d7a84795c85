//! Several logs are told as one, in the order of everything.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use rota_multiring::Place;
use rota_resp::Reply;

use super::client::Client;
use super::streams::{Part, lost};
use crate::mutants::{self, Mutant};
use crate::redis::Streams;
use crate::store::{RecordRef, Run};

/// So many entries are told at most if nobody says how many.
const MERGED: u64 = 1_000;

/// A log as it is merged with others.
struct Merging {
    /// What was not read yet.
    part: Part,
    /// What was read, and not told.
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

    fn place(&self) -> Option<Place> {
        self.waiting.front().map(|(place, _)| *place)
    }

    fn take(&mut self) -> Option<(Place, Bytes)> {
        self.waiting.pop_front()
    }
}

impl Client<'_> {
    /// In the order of everything: of several logs always the entry next that stands first there. Each with its log and its place.
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
        while left > 0 {
            for head in &mut heads {
                if head.is_empty() && head.part.len() > 0 {
                    let of = (head.part.from, head.part.to);
                    let run = self.server.entries(head.part.log, of).await;
                    head.refill(&run.map_err(lost)?);
                }
            }
            // Until one of them has to be read on.
            while left > 0 {
                let next = heads
                    .iter()
                    .enumerate()
                    .filter(|(_, head)| !head.is_empty());
                let next = match mutants::on(Mutant::D08) {
                    true => next.map(|(at, _)| at).next(),
                    false => next.min_by_key(|(_, head)| head.place()).map(|(at, _)| at),
                };
                let Some(next) = next else { break };
                self.tell_one(&streams.of[next].0, &mut heads[next]);
                left -= 1;
                if heads[next].is_empty() {
                    break;
                }
            }
            self.make_room().await?;
        }
        Ok(())
    }

    fn tell_one(&mut self, log: &Bytes, head: &mut Merging) {
        let Some((place, payload)) = head.take() else {
            return;
        };
        self.head(b'*', 4);
        self.say(&Reply::Bulk(log.clone()));
        // The id and the fields, which are an array of two there.
        self.wire
            .out
            .extend_from_slice(payload.get(4..).unwrap_or_default());
        let (ring, instance) = (place.rank.0, place.instance);
        let place = format!("{}.{ring}.{instance}.{}", place.round, place.index);
        self.say(&Reply::from(place));
        self.count(1, payload.len());
    }
}
