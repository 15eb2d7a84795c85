//! The messages to the successor: batches of packets, and of words on packets that all hold or have delivered.

use super::super::Config;
use super::super::member::cost;
use super::super::wire::{Entry, record_bytes};
use super::super::write::Writer;
use super::{Item, Run};
use crate::Backlog;
use rota_core::contract::Pieces;
use rota_core::mutants::{self, Mutant};
use rota_core::pack::OutFrame;

/// The source that has its turn.
enum Turn {
    Own,
    Input,
    Nobody,
}

impl Run {
    /// The next message to the successor, of at most `room` bytes.
    pub fn batch(&mut self, config: &Config, room: usize, backlog: &mut Backlog) -> Option<Pieces> {
        let resumed = self.log.resumed()?;
        let own = !backlog.is_empty() && self.flight.is_open();
        if self.is_told_all() && self.input.is_empty() && !own && !self.has_news() {
            return None;
        }
        let mut batch = Writer::new(self.ring, resumed.epoch(), room, config.batch_bytes);
        if self.is_told_all() && self.has_news() {
            // Not only behind the packets: there may be no room left behind them.
            self.put_words(&mut batch);
        }
        self.put_packets(&mut batch, backlog);
        if self.is_told_all() && (batch.packets() > 0 || self.has_news()) {
            self.put_words(&mut batch);
        }
        (!batch.is_empty()).then(|| batch.finish())
    }

    /// Whether the successor was sent all packets that have had their turn. Words on packets that all hold are sent
    /// only then: they must not overtake packets that came here before them.
    fn is_told_all(&self) -> bool {
        self.log.is_sent()
    }

    fn put_packets(&mut self, batch: &mut Writer, backlog: &mut Backlog) {
        loop {
            if !self.put_log(batch) {
                return;
            }
            match self.turn(backlog) {
                Turn::Own => {
                    if !batch.takes(record_bytes(self.me) + self.flight.frame_bytes()) {
                        return;
                    }
                    let Some(frame) = backlog.take() else {
                        return;
                    };
                    self.broadcast(frame);
                }
                Turn::Input => {
                    if let Some(Item::Packet(entry)) = self.input.front()
                        && self.passes_on(usize::from(entry.sender))
                        && !batch.takes(entry.size())
                    {
                        return;
                    }
                    self.take_in();
                }
                Turn::Nobody => return,
            }
        }
    }

    /// Appends the packets that have had their turn and were not sent; `false` if some are left.
    fn put_log(&mut self, batch: &mut Writer) -> bool {
        while let Some((sender, number, has)) = self.log.unsent() {
            // A packet that is not found is held by all, and this process has delivered it.
            if let Some(entry) = self.members[sender].find(number)
                && !has
            {
                if !batch.takes(entry.size()) {
                    return false;
                }
                batch.packet(entry);
            }
            self.log.on_sent();
        }
        true
    }

    fn turn(&mut self, backlog: &Backlog) -> Turn {
        let own = !backlog.is_empty() && self.flight.is_open();
        let next = match self.input.front() {
            Some(Item::Packet(entry)) if self.passes_on(usize::from(entry.sender)) => {
                Some(usize::from(entry.sender))
            }
            // A record that ends here takes nothing of the link.
            Some(_) => return Turn::Input,
            None => None,
        };
        if self.fair.own_first(own, next) {
            Turn::Own
        } else if next.is_some() {
            Turn::Input
        } else {
            Turn::Nobody
        }
    }

    /// Starts own packets on their way as far as the window is open, in a view without others.
    pub fn broadcast_alone(&mut self, backlog: &mut Backlog) {
        while self.flight.is_open()
            && let Some(frame) = backlog.take()
        {
            self.broadcast(frame);
        }
    }

    /// Starts an own packet on its way.
    fn broadcast(&mut self, out: OutFrame) {
        let me = self.me;
        let own = &self.members[me];
        let clock = self.members.iter().zip(own.last()).take(me);
        let gains = clock.map(|(member, before)| {
            let seen = if mutants::on(Mutant::L07) {
                member.received
            } else {
                member.passed
            };
            seen - before
        });
        let frame = out.frame.into_bytes();
        let entry = Entry::own(me, own.passed + 1, out.service, gains, &frame);
        self.flight.take_off(cost(&entry));
        self.fair.on_served(me, entry.size());
        let (number, own) = (entry.number, &mut self.members[me]);
        own.receive(&entry);
        own.pass(entry);
        if self.members.len() == 1 {
            self.members[me].stable = number;
        } else {
            self.log.push(me, number);
        }
    }

    /// Takes in the oldest record of the predecessor, which has its turn.
    fn take_in(&mut self) {
        match self.input.pop_front() {
            Some(Item::Packet(entry)) => {
                let (sender, number) = (usize::from(entry.sender), entry.number);
                let bytes = entry.size();
                self.members[sender].pass(entry);
                if self.passes_on(sender) {
                    self.log.push(sender, number);
                    self.fair.on_served(sender, bytes);
                } else {
                    // The packet has been everywhere.
                    self.members[sender].stable = number;
                }
            }
            Some(Item::Stable(sender, number)) => {
                self.members[sender].stable = number;
                let members = &self.members;
                self.log
                    .forget(|sender, number| number <= members[sender].stable);
            }
            None => {}
        }
    }

    /// Whether the successor has to be told that all hold a member's packets: not if it found out itself.
    fn tells_stable(&self, sender: usize) -> bool {
        let end = self.successor_of(self.successor());
        if mutants::on(Mutant::L01) {
            return sender != end && sender != self.successor_of(end);
        }
        sender != end
    }

    /// Whether there is something to tell that is worth a message of its own.
    fn has_news(&self) -> bool {
        self.members.iter().enumerate().any(|(sender, member)| {
            let stable = member.stable > member.told_stable && self.tells_stable(sender);
            stable || sender != self.me && self.untold(sender) >= self.tell_every
        })
    }

    fn put_words(&mut self, batch: &mut Writer) {
        for sender in 0..self.members.len() {
            let stable = self.members[sender].stable;
            let news = self.tells_stable(sender) && stable > self.members[sender].told_stable;
            if news && batch.takes_word() {
                batch.stable(sender, stable);
                self.members[sender].told_stable = stable;
            }
            let untold = sender != self.me && self.untold(sender) > 0;
            if untold && batch.takes_word() {
                let delivered = self.delivered_behind(sender);
                batch.delivered(sender, delivered);
                self.members[sender].told_delivered = delivered;
            }
        }
    }
}
