//! The batches for the successor.

use super::super::successor::Successor;
use super::super::word::Head;
use super::super::write::Writer;
use super::{PendingControl, Stream};
use crate::{Instance, Value};
use rota_core::contract::{Pieces, Time};
use rota_core::mutants::{self, Mutant};

impl Stream {
    /// Whether the next batch waits until all other input has come: it brings no values that the successor lacks, and
    /// many such batches are small.
    pub fn puts_off(
        &mut self,
        now: Time,
        head: &Head,
        (voted, own): (&[Instance], &impl Fn(usize) -> bool),
    ) -> bool {
        let (Some(out), Some(_)) = (&self.out, &self.cast) else {
            return false;
        };
        let begins = head.start > 0 && !out.told_start || head.complete && !out.told_complete;
        let brings = out.lacks.last().is_some_and(|last| *last >= out.at);
        if begins || brings || self.news == PendingControl::Due {
            return false;
        }
        let mut votes = out.told.iter().zip(voted).enumerate();
        let has_votes = votes.any(|(index, (told, next))| told < next && !own(index));
        let goes_on = self.successor() != Some(self.ring[self.coordinator]);
        let has_proposals = goes_on && out.at < self.window.next();
        let has_values = self.through.unsent().is_some();
        self.news = match self.news {
            _ if !has_votes && !has_proposals && !has_values => PendingControl::None,
            PendingControl::Waits(since) => PendingControl::Waits(since),
            PendingControl::None | PendingControl::Due => PendingControl::Waits(now),
        };
        true
    }

    /// The next message to the successor, of at most `room` bytes; with nothing in it only if `force`. `own`: whether
    /// an acceptor is the successor's.
    pub fn batch(
        &mut self,
        mut head: Head,
        (voted, learnt, mute): (&[Instance], &[Instance], &[bool]),
        own: impl Fn(usize) -> bool,
        (room, enough): (usize, usize),
        force: bool,
    ) -> Option<Pieces> {
        let mut out = self.out.take()?;
        out.at = out.at.max(self.window.first());
        head.epoch = out.epoch;
        head.from = out.at;
        let mut batch = Writer::new(&head, room, enough);
        self.put_proposals(&mut batch, &mut out);
        self.put_values(&mut batch);
        for (index, (told, next)) in out.told.iter_mut().zip(voted).enumerate() {
            if *told < *next && !own(index) && batch.takes_vote() {
                batch.voted(index as u8, *next);
                *told = *next;
            }
        }
        let news = head.start > 0 && !out.told_start || head.complete && !out.told_complete;
        out.told_start |= head.start > 0;
        out.told_complete |= head.complete;
        let leaves = !batch.is_empty() || news || force;
        if leaves {
            // These records go with others, or with the next heartbeat.
            for (index, (told, next)) in out.told_learnt.iter_mut().zip(learnt).enumerate() {
                if *told < *next && !own(index) && batch.takes_vote() {
                    batch.learnt(index as u8, *next);
                    *told = *next;
                }
            }
            for (index, (told, mute)) in out.told_mute.iter_mut().zip(mute).enumerate() {
                if *mute && !*told && !own(index) && batch.takes_vote() {
                    batch.mute(index as u8);
                    *told = true;
                }
            }
            self.put_losses(&mut batch, &mut out);
        }
        self.out = Some(out);
        leaves.then(|| batch.finish())
    }

    fn put_proposals(&self, batch: &mut Writer, out: &mut Successor) {
        if self.successor() == Some(self.ring[self.coordinator]) {
            return;
        }
        for item in self.window.from(out.at) {
            match &item.vote.value {
                Value::Packet { id, frame } => {
                    let place = self.place(id.process);
                    let lacks = !mutants::on(Mutant::U29)
                        && out.lacks.binary_search(&item.vote.first).is_ok();
                    if !item.whole && !lacks && self.successor_has(place) {
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
            out.at = item.vote.end();
        }
    }

    fn put_values(&mut self, batch: &mut Writer) {
        if self.leads() {
            return;
        }
        self.clean();
        loop {
            let through = self.through.unsent();
            // Multicast values do not go along the ring, but for those that do not get to the coordinator.
            let own = self.own.unsent().filter(|_| self.cast.is_none());
            let next = through.and_then(|id| self.place(id.process));
            let own_first = self.fair.own_first(own.is_some(), next);
            let Some(id) = (if own_first { own } else { through }) else {
                return;
            };
            let place = self.place(id.process);
            if let Some(frame) = self.carried.get(id) {
                if !batch.takes(frame.len()) {
                    return;
                }
                batch.value(place, id, frame);
                self.fair.on_served(place.unwrap_or(self.me), frame.len());
            }
            let queue = if own_first {
                &mut self.own
            } else {
                &mut self.through
            };
            queue.sent += 1;
        }
    }

    fn put_losses(&self, batch: &mut Writer, out: &mut Successor) {
        let Some(cast) = &self.cast else {
            return;
        };
        let to = (self.me + 1) % self.ring.len();
        for (place, (told, count)) in out.told_losses.iter_mut().zip(&cast.losses).enumerate() {
            if *told < *count && place != to && batch.takes_vote() {
                batch.lost(place as u8, *count);
                *told = *count;
            }
        }
    }
}
