//! The batches for the successor.

use super::super::word::Head;
use super::super::write::Writer;
use super::Stream;
use super::following::{Following, Progress};
use crate::{Instance, Value};
use rota_core::contract::{Pieces, Time};
use rota_core::mutants::{self, Mutant};

impl Stream {
    /// Whether the next batch waits until all other input has come, as the dissemination makes it gather others.
    pub fn puts_off(
        &mut self,
        now: Time,
        head: &Head,
        voted: (&[Instance], &impl Fn(usize) -> bool),
    ) -> bool {
        let (places, window, values) = (&self.places, &self.window, &self.values);
        let has_more = |at: Instance| {
            let has_proposals = places.passes_on() && at < window.next();
            has_proposals || values.has_unsent()
        };
        values.gathers_batches() && self.successor.puts_off(now, head, voted, has_more)
    }

    /// The next message to the successor, of at most `room` bytes; with nothing in it only if `force`. `own`: whether
    /// an acceptor is the successor's.
    pub fn batch(
        &mut self,
        mut head: Head,
        progress: &Progress<'_>,
        own: impl Fn(usize) -> bool,
        (room, enough): (usize, usize),
        force: bool,
    ) -> Option<Pieces> {
        let following = self.successor.following()?;
        following.begin(&mut head, self.window.first());
        let mut batch = Writer::new(&head, room, enough);
        self.put_proposals(&mut batch);
        if !self.places.leads() {
            self.values.put_values(&self.places, &mut batch);
        }
        let following = self.successor.following()?;
        following.put_votes(&mut batch, progress.voted, &own);
        let news = following.on_head(&head);
        let leaves = !batch.is_empty() || news || force;
        if leaves {
            let losses = (self.values.losses(), self.places.next());
            following.put_rest(&mut batch, progress, &own, losses);
        }
        leaves.then(|| batch.finish())
    }

    fn put_proposals(&mut self, batch: &mut Writer) {
        let Some(following) = self.successor.following() else {
            return;
        };
        if !self.places.passes_on() {
            return;
        }
        for item in self.window.from(following.at()) {
            match &item.vote.value {
                Value::Packet { id, frame } => {
                    let place = self.places.place(id.process);
                    let has = !item.whole
                        && !lacks(following, item.vote.first)
                        && self.values.successor_has(&self.places, place);
                    if has {
                        if !batch.takes(0) {
                            return;
                        }
                        batch.proposal(place, *id);
                    } else {
                        if !batch.takes(frame.len()) {
                            return;
                        }
                        batch.packet(place, *id, frame, item.whole);
                    }
                }
                Value::Members(number, members) => {
                    if !batch.takes(2 + 10 * members.len()) {
                        return;
                    }
                    batch.members(*number, members);
                }
                Value::Skip(count) => {
                    if !batch.takes(0) {
                        return;
                    }
                    batch.skip(*count);
                }
            }
            following.on_proposal(item.vote.end());
        }
    }
}

fn lacks(following: &Following, first: Instance) -> bool {
    !mutants::on(Mutant::U29) && following.lacks(first)
}
