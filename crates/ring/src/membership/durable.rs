//! The things that a process must not forget before it agrees to a ring: ring numbers and electorates, and the disk that
//! they are written to.
//!
//! A disk may refuse, or not answer. Then the process is silent, so that no other waits for it, and tries again once in
//! a while (A7).

use alloc::vec::Vec;
use core::hash::Hasher;

use super::electorates::{Electorates, OfRing};
use super::outputs::Outputs;
use super::ring_seq::RingSeq;
use crate::RingConfig;
use crate::wire::{Counts, Electorate};
use rota_core::contract::{PersistId, Process, RingId, StartState, Time};
use rota_core::fingerprint::Fingerprint;

/// A new ring's number is larger than all known ones by this much.
const RING_SEQ_STEP: u64 = 4;

/// The durable state of membership, and the requests to the disk that are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Durable {
    ring_seq: RingSeq,
    electorates: Electorates,
    /// In nanoseconds.
    token_loss: u64,
    /// The disk has refused a ring number: no ring is agreed to before this time.
    pause_until: Time,
    /// The time of the last request.
    asked_at: Time,
    /// The disk has failed, or does not answer, and has made nothing durable since: no process must wait for this one.
    has_failed: bool,
}

impl Durable {
    /// The state that was found on the disk.
    pub fn new(config: &RingConfig, start: &StartState) -> Self {
        Self {
            ring_seq: RingSeq::new(start),
            electorates: Electorates::new(&config.electorate, start),
            token_loss: config.timers.token_loss,
            ..Self::default()
        }
    }

    /// Takes note of a ring number that another process knows; returns whether it is plausible.
    pub fn see(&mut self, ring_seq: u64) -> bool {
        self.ring_seq.see(ring_seq)
    }

    /// The largest ring number known.
    pub const fn newest(&self) -> u64 {
        self.ring_seq.max
    }

    /// The largest ring number agreed to.
    pub const fn agreed(&self) -> u64 {
        self.ring_seq.agreed
    }

    /// The number of a ring that is formed now.
    pub const fn next_number(&self) -> u64 {
        self.ring_seq.max + RING_SEQ_STEP
    }

    /// Whether this process may agree to a ring of this number now, as far as its disk is concerned.
    pub fn allows_number(&self, ring_seq: u64) -> bool {
        ring_seq > self.agreed() && ring_seq - self.agreed() <= 1 << 32
    }

    /// Whether this process may agree to a ring now, as far as its disk is concerned.
    pub fn allows_a_ring(&self, now: Time) -> bool {
        now >= self.pause_until && !self.has_failed && self.electorates.is_durable()
    }

    /// Whether the disk has failed, so that the process says nothing.
    pub const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The time before which no ring is agreed to, and the first one not asked for again.
    pub const fn pause_until(&self) -> Time {
        self.pause_until
    }

    /// The electorates of this process.
    pub const fn electorates(&self) -> &Electorates {
        &self.electorates
    }

    /// Adds the electorates of this process to the table of a commit token.
    pub fn tell(&self, table: &mut Vec<Electorate>) -> Counts {
        self.electorates.tell(table)
    }

    /// Asks for the number of the first ring of a process that has just started, unless it was asked for lately.
    pub fn ask_for_first(&mut self, now: Time, outputs: &mut Outputs) {
        if now < self.pause_until {
            return;
        }
        let ring_seq = self.ring_seq.max + 1;
        self.agree(now, ring_seq, outputs);
        self.save_electorates(now, outputs);
        self.pause_until = now.after(self.token_loss);
    }

    /// Ends the wait for the first ring's number.
    pub const fn on_first(&mut self, now: Time) {
        self.pause_until = now;
    }

    /// Agrees to a ring of this number: answers with the request that must be durable first, if there is one.
    pub fn agree(&mut self, now: Time, ring_seq: u64, outputs: &mut Outputs) -> Option<PersistId> {
        let (waits_for, output) = self.ring_seq.agree(ring_seq);
        if output.is_some() {
            self.asked_at = now;
        }
        outputs.extend(output);
        waits_for
    }

    /// Makes the electorates durable, if they have changed. No ring is agreed to before that.
    fn save_electorates(&mut self, now: Time, outputs: &mut Outputs) {
        if self.electorates.has_to_save() {
            self.asked_at = now;
            let id = self.ring_seq.next_id();
            outputs.extend([self.electorates.save(id)]);
        }
    }

    /// Takes in the electorates `told` by the members of a ring that is installed.
    pub fn on_ring(
        &mut self,
        now: Time,
        (ring, members): (RingId, &[Process]),
        told: OfRing,
        outputs: &mut Outputs,
    ) {
        self.electorates.on_ring(ring, members, told);
        self.save_electorates(now, outputs);
    }

    /// Forgets the electorates that are over, as the primary on this ring has begun here.
    pub fn on_carried_on(&mut self, now: Time, ring: RingId, outputs: &mut Outputs) {
        self.electorates.on_carried_on(ring);
        self.save_electorates(now, outputs);
    }

    /// Takes note of a request that is durable.
    pub fn on_persisted(&mut self, id: PersistId) {
        self.ring_seq.on_persisted(id);
        self.electorates.on_persisted(id);
    }

    /// Whether a ring of this number may be used now.
    pub const fn is_durable(&self, ring_seq: u64) -> bool {
        self.ring_seq.is_durable(ring_seq)
    }

    /// Whether the disk owes nothing.
    pub const fn is_all_durable(&self) -> bool {
        self.ring_seq.is_durable(self.ring_seq.agreed) && self.electorates.is_durable()
    }

    /// Whether the disk, which had failed, has made everything durable with this.
    pub const fn is_well_again(&mut self, now: Time) -> bool {
        let is_well = self.has_failed && self.is_all_durable();
        if is_well {
            self.has_failed = false;
            self.pause_until = now;
        }
        is_well
    }

    /// Takes note of a request that failed; returns whether anything still waits for it. Outputs that wait for it are
    /// not sent.
    pub fn on_failed(&mut self, now: Time, id: PersistId) -> bool {
        let failed = self.ring_seq.on_failed(id) | self.electorates.on_failed(id);
        if failed {
            self.begin_silence(now);
        }
        failed
    }

    /// Whether the disk has just been found not to answer: that is as bad as one that refuses.
    pub fn is_found_hanging(&mut self, now: Time) -> bool {
        let long = now.since(self.asked_at) >= self.token_loss;
        let hangs = !self.is_all_durable() && long && !self.has_failed;
        if hangs {
            self.begin_silence(now);
        }
        hangs
    }

    fn begin_silence(&mut self, now: Time) {
        self.has_failed = true;
        self.pause_until = now.after(self.token_loss);
    }

    /// While the disk has failed: tries it again once in a while, with the number agreed to last.
    pub fn try_again(&mut self, now: Time, outputs: &mut Outputs) {
        if self.has_failed && now >= self.pause_until {
            self.pause_until = now.after(self.token_loss);
            self.agree(now, self.ring_seq.agreed, outputs);
            self.save_electorates(now, outputs);
        }
    }

    /// Feeds `print` with all that decides on agreements.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        print.add((&self.ring_seq, &self.electorates));
        print.due(self.pause_until);
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.agreed() <= self.newest(),
            "no number is agreed to that is not known"
        );
        assert!(
            self.ring_seq.is_cared_for() || self.has_failed,
            "a number that is agreed to is made durable"
        );
        self.ring_seq.check();
        self.electorates.check();
    }
}
