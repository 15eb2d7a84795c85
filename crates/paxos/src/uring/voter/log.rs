//! The acceptor when its log fails, and when the log is opened again.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::super::context::Context;
use super::super::disk::Effect;
use super::super::found::Found;
use super::super::membership::Membership;
use super::Voter;
use super::refill::LogRepair;
use crate::{Config, Instance, Record, Round, Slot, Vote};
use rota_core::contract::{LogId, PersistId, Time};
use rota_core::mutants::{self, Mutant};

/// A log that has hung or failed again and again is waited for up to this many times as long.
const MOST_PATIENCE: u64 = 16;

/// After this many times the patience without a failure the log is waited for as at first.
const FORGIVEN: u64 = 200;

/// The state beside votes that a log lacks when it is opened again.
#[derive(Debug)]
pub struct Reopened<'a> {
    /// The newest configuration, and the state of the register for the next one.
    pub config: Option<&'a Config>,
    pub slot: Option<&'a Slot<Arc<Config>>>,
}

impl<'a> Reopened<'a> {
    /// As the membership knows it.
    pub fn of(membership: &'a Membership) -> Self {
        let config = membership.config().map(Arc::as_ref);
        let slot = config.and_then(|_| membership.slot());
        Self { config, slot }
    }
}

impl Voter {
    /// A request is durable, and all before it.
    pub fn on_persisted(&mut self, cx: &Context, id: PersistId) {
        let at = (cx.now, cx.settings.patience.disk);
        self.disk
            .on_persisted(id, &mut self.acceptor, at, &mut self.ready);
    }

    /// Gives up the log, as the fate of its requests is unknown: this acceptor votes for nothing before its log is open
    /// again. `false` if that was so before.
    pub fn give_up(&mut self, cx: &Context) -> bool {
        if self.disk.has_failed() {
            return false;
        }
        self.disk.on_failed();
        // Effects that waited for the log do not follow.
        (self.lack, self.named) = (None, false);
        let is_rare = cx.now.since(self.gave_up) > FORGIVEN * cx.settings.patience.disk;
        self.hang_patience = match is_rare {
            true => 2,
            false => (2 * self.hang_patience).min(MOST_PATIENCE),
        };
        self.gave_up = cx.now;
        true
    }

    /// The time at which the disk has taken too long.
    pub fn hangs_at(&self, cx: &Context) -> Option<Time> {
        let patience = cx.settings.patience;
        // A disk for which the ring waits gets no more patience than at first: with multicast the ring waits for the
        // first vote.
        let is_waited_for = self.is_full() || cx.settings.multicast.is_some();
        let times = match is_waited_for && !mutants::on(Mutant::U73) {
            true => 1,
            false => self.hang_patience,
        };
        let most = patience.disk * times;
        let at = self.disk.hangs_at(most, patience.heartbeat)?;
        (!mutants::on(Mutant::U48)).then_some(at)
    }

    /// That time has come. Returns whether the log is to be given up.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.disk.is_late(now)
    }

    /// The log is open again, or an empty one is. It gets the records that it lacks; then this acceptor votes again.
    /// The acceptor is the same, whatever the log has lost: the process has not ended, and remembers its whole state.
    pub fn on_reopened(
        &mut self,
        cx: &Context,
        (records, lost_some): (Vec<(LogId, u64, Bytes)>, bool),
        lacks: &Reopened<'_>,
    ) {
        if !self.disk.has_failed() || self.disk.is_damaged() {
            return;
        }
        let found = Found::read(records, lost_some);
        // A log with another name is of unknown origin.
        let is_others = found
            .store
            .is_some_and(|store| store != self.acceptor.id().store);
        self.disk.on_open(found.damaged || is_others);
        if self.disk.is_damaged() {
            return;
        }
        let votes = found.votes.into_iter().map(|vote| (vote.first, vote));
        let mut votes = votes.collect();
        self.forget_lost(cx, &votes);
        let resident = votes.split_off(&self.resident());
        self.write_all(cx, resident, lacks);
    }

    /// A process that has just started gives its log everything if that has no name. A log in which a first part is
    /// written is a store without a name, which is as good as none.
    pub fn name(&mut self, cx: &Context, lacks: &Reopened<'_>) {
        if self.is_acceptor && !self.named && !self.disk.is_damaged() {
            self.write_all(cx, BTreeMap::new(), lacks);
        }
    }

    /// Writes the state of this acceptor that the log lacks; then the log gets its name.
    fn write_all(&mut self, cx: &Context, has: BTreeMap<Instance, Vote>, lacks: &Reopened<'_>) {
        self.named = false;
        if cx.settings.acceptor.forgets {
            self.named = true;
            return;
        }
        if let Some(config) = lacks.config {
            self.disk.put_config(config);
            if let Some(slot) = lacks.slot {
                self.disk.put_slot(config.number + 1, slot);
            }
        }
        let (promised, floor) = (self.acceptor.promised(), self.acceptor.floor());
        self.disk.put_first(Record::Promised(promised));
        self.disk.put_first(Record::Floor(floor));
        self.disk.begin_refill(LogRepair::new(has));
    }

    /// The log has the whole state of this acceptor, as of when the last of it was handed over. Returns whether the
    /// acceptor votes again; it does not in a round that has begun (`early`).
    pub fn on_named(&mut self, early: bool) -> bool {
        if self.disk.has_failed() || !self.end_rest() {
            return false;
        }
        self.disk.end_refill();
        (self.named, self.early) = (true, early);
        true
    }

    /// Whether so much waits for the disk that the ring has to wait, too. The ring does not wait for the log of a
    /// process that does not vote: the records that it lacks are in memory.
    pub fn is_full(&self) -> bool {
        self.disk.is_behind() && (self.votes() || mutants::on(Mutant::U76))
    }

    /// Whether so much waits that nothing should be asked of others: answers have to be written, no faster than the
    /// disk takes them, and proposals that the ring brings come first.
    pub fn is_busy(&self) -> bool {
        self.votes() && self.disk.is_busy() && !mutants::on(Mutant::U51)
    }

    /// Whether it votes, and its disk is not behind.
    pub fn is_well(&self) -> bool {
        self.votes() && !self.disk.is_behind()
    }

    /// Whether it has not voted for something of this round.
    pub const fn is_early(&self) -> bool {
        self.early
    }

    /// The bytes that its disk takes now; without a bound if it does not vote.
    pub fn room(&self) -> usize {
        match self.votes() && !mutants::on(Mutant::U89) {
            true => self.disk.room(),
            false => usize::MAX,
        }
    }

    /// The trouble with its log, for people. The driver tells what has become of a log that was given up.
    pub const fn trouble(&self) -> &'static str {
        if self.disk.is_damaged() {
            "; its log cannot be read, it votes for nothing"
        } else if self.disk.is_refilled() {
            "; its log gets what it lacks, it votes for nothing until then"
        } else {
            ""
        }
    }

    /// Puts the records that speak of all votes, once the log has them: the snapshot, the decided instances, the newest
    /// complete configuration, and the name.
    pub(super) fn put_all(&mut self, (number, complete): (Round, Round), next: Instance) {
        let values = self.trimmed.values(self.label(number));
        self.disk.put_base(&self.trimmed, values);
        self.disk.put_decided(next);
        self.disk.put_complete(complete);
        // The name comes last: a log without a name, or one of which something was lost, is another acceptor's until
        // then.
        self.disk.put_store(self.acceptor.id().store);
    }
}

/// The repair of a log that was opened again.
impl Voter {
    /// Hands the disk more of the votes that its log lacks, as far as there is room. `numbers`: the newest
    /// configuration, and the newest that is complete; `next`: all before is learnt.
    pub fn refill(&mut self, numbers: (Round, Round), next: Instance) {
        let mut room = self.disk.room();
        while room > 0
            && let Some(refill) = self.disk.refill().filter(|refill| !refill.is_ending)
        {
            let Some(vote) = refill.next(&self.acceptor) else {
                return self.end_refill(numbers, next);
            };
            room = room.saturating_sub(self.disk.put_again(Record::Voted(vote)));
        }
    }

    /// Puts the records that speak of the votes, and the name, when the log has all votes.
    fn end_refill(&mut self, numbers: (Round, Round), next: Instance) {
        let is_idle = self.disk.is_idle();
        let Some(refill) = self.disk.refill().filter(|_| is_idle) else {
            return;
        };
        refill.is_ending = true;
        self.put_all(numbers, next);
        self.disk.then(Effect::Named);
        self.disk.hand_over();
    }

    /// The last of it is written. Returns whether that is all: then little has come meanwhile, and goes behind.
    pub(super) fn end_rest(&mut self) -> bool {
        let little = self.disk.room() / 4;
        let refill = self.disk.refill();
        let rest = refill.map(|refill| refill.rest(&self.acceptor, little));
        match rest {
            Some(None) => return false,
            Some(Some(rest)) => {
                for vote in rest {
                    self.disk.put_again(Record::Voted(vote));
                }
            }
            None => {}
        }
        true
    }
}
