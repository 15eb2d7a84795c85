//! The messages from the neighbours.

use super::super::Count;
use super::super::member::cost;
use super::super::wire::{Batch, Entry, Hello, Record};
use super::{Item, Run};
use rota_core::contract::{Session, Time};
use rota_core::mutants::{self, Mutant};

/// The time, in nanoseconds, before the predecessor is asked again, after a message that had to be refused.
const ASK_AGAIN_NANOS: u64 = 100_000_000;

/// A neighbour sent an impossible message.
struct Refused;

impl Run {
    /// Takes the hello of the successor, with the packets that it has: all others are sent to it, in the order of the
    /// log.
    pub fn on_hello(&mut self, session: Session, hello: Hello, count: &mut Count) {
        let successor = self.successor();
        let possible =
            |(sender, (&has, member)): (usize, (&u64, &super::super::member::Member))| {
                sender == successor || (member.stable <= has && has <= member.passed)
            };
        let known = hello.received.iter().zip(&self.members);
        if hello.received.len() != self.members.len() || !known.enumerate().all(possible) {
            count.refused += 1;
            return;
        }
        count.hellos += 1;
        self.log.on_hello(session, hello.epoch, hello.received);
        for member in &mut self.members {
            member.told_stable = 0;
            member.told_delivered = 0;
        }
    }

    /// Takes a batch of the predecessor in, up to the first impossible record.
    pub fn on_batch(&mut self, now: Time, batch: Batch, count: &mut Count) {
        for record in batch.records(self.members.len()) {
            let taken = record.map_err(|_| Refused).and_then(|record| match record {
                Record::Packet(entry) => self.on_packet(entry, count),
                Record::Stable(sender, number) => self.on_stable(sender, number),
                Record::Delivered(sender, number) => self.on_delivered_behind(sender, number),
            });
            if taken.is_err() {
                self.refuse(now, count);
                return;
            }
        }
    }

    /// Has the predecessor begin again behind the packets that were taken in, but not at once, lest two processes that
    /// do not understand each other do nothing else.
    pub fn refuse(&mut self, now: Time, count: &mut Count) {
        count.refused += 1;
        self.resume.refuse(now.after(ASK_AGAIN_NANOS));
    }

    fn on_packet(&mut self, entry: Entry, count: &mut Count) -> Result<(), Refused> {
        let sender = usize::from(entry.sender);
        let member = &self.members[sender];
        if sender != self.me && entry.number <= member.received {
            count.duplicates += 1;
            return Ok(());
        }
        let fits = member.bytes == 0 || member.bytes + cost(&entry) <= self.flight.window();
        let follows = entry.number == member.received + 1;
        if sender == self.me || !follows || !fits || !self.is_possible(&entry) {
            return Err(Refused);
        }
        self.members[sender].receive(&entry);
        if self.passes_on(sender) {
            self.fair.on_arrival(sender);
        }
        self.input.push_back(Item::Packet(entry));
        Ok(())
    }

    /// Whether all packets that the sender had passed on before have been here, as they must if links keep order.
    fn is_possible(&self, entry: &Entry) -> bool {
        let before = self.members[usize::from(entry.sender)].last();
        let here = self.members.iter().map(|member| member.received);
        let clock = before.iter().zip(entry.gains());
        clock
            .zip(here)
            .all(|((before, gain), here)| before.checked_add(gain).is_some_and(|at| at <= here))
    }

    fn on_stable(&mut self, sender: usize, number: u64) -> Result<(), Refused> {
        let comes_to_its_end = sender == self.successor();
        let member = &mut self.members[sender];
        if comes_to_its_end || number > member.received {
            return Err(Refused);
        }
        if number <= member.heard {
            return Ok(());
        }
        member.heard = number;
        if mutants::on(Mutant::L06) {
            member.stable = number;
        }
        match self.input.back_mut() {
            Some(Item::Stable(last, upto)) if *last == sender => *upto = number,
            _ => self.input.push_back(Item::Stable(sender, number)),
        }
        Ok(())
    }

    fn on_delivered_behind(&mut self, sender: usize, number: u64) -> Result<(), Refused> {
        let begins_here = sender == self.predecessor();
        let member = &mut self.members[sender];
        if begins_here && self.me != sender || number > member.received {
            return Err(Refused);
        }
        member.behind = member.behind.max(number);
        if sender == self.me {
            self.land();
        }
        Ok(())
    }
}
