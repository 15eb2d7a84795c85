//! The engine of `accelerated-ring` and `totem-ring`: the dispatch of its inputs, and its steps from phase to phase.

use alloc::boxed::Box;
use bytes::Bytes;

use super::commit::{Committing, fill, is_first_visit};
use super::gather::Gather;
use super::local::Local;
use super::phase::{Phase, Step};
use super::recovery::Recovery;
use super::sets::Verdict;
use crate::wire::{self, Commit, Data, Hurry, Join, MergeDetect, Packet, Token};
use crate::{Context, Ordering, RingConfig, RingConfigError};
use rota_core::contract::{PersistId, RingId};
use rota_core::mutants::{self, Mutant};

/// One process's ring: membership and, on the installed ring, ordering.
#[derive(Clone, Debug)]
pub struct RingEngine {
    pub(super) local: Local,
    pub(super) phase: Phase,
    /// Whether messages that wait may be ordered now: the application has made room, or has seen its configuration.
    pub(super) release: bool,
}

impl RingEngine {
    /// An engine that waits for its `Start`.
    pub fn new(config: RingConfig) -> Result<Self, RingConfigError> {
        config.check()?;
        Ok(Self {
            local: Local::new(config),
            phase: Phase::Idle,
            release: false,
        })
    }

    /// Calls the installed ring with the context of one call.
    #[inline(always)]
    pub(super) fn on_installed<T>(
        &mut self,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let hold_messages = !self.phase.is_operational()
            || !self.local.stages.is_empty() && !mutants::on(Mutant::M33);
        self.local.on_installed(hold_messages, call)
    }

    #[inline(always)]
    pub(super) fn on_datagram(&mut self, bytes: Bytes) {
        let (cluster, seal_bytes) = (self.local.config.cluster, self.local.config.seal_bytes);
        if wire::is_data(&bytes) {
            return match Data::decode(bytes, seal_bytes) {
                Ok(data) if data.cluster == cluster => self.on_data(data),
                Ok(_) => self.local.counters.datagrams_foreign_cluster += 1,
                Err(why) => self.local.counters.refuse(why),
            };
        }
        let packet = match wire::decode_sealed(bytes, seal_bytes) {
            Ok(packet) => packet,
            Err(why) => return self.local.counters.refuse(why),
        };
        if packet.cluster() != cluster {
            self.local.counters.datagrams_foreign_cluster += 1;
            return;
        }
        match packet {
            Packet::Data(data) => self.on_data(data),
            Packet::Token(token) => self.on_token(token),
            Packet::Hurry(hurry) => self.on_hurry(&hurry),
            Packet::Join(join) => {
                let step = self.on_join(&join);
                self.take(step);
            }
            Packet::Commit(commit) => {
                let step = self.on_commit(commit);
                self.take(step);
            }
            Packet::MergeDetect(presence) => {
                let step = self.on_presence(&presence);
                self.take(step);
            }
        }
    }

    /// Hands a data packet to the ring it names. Packets of the old ring are taken until this process has told which
    /// ones it has (A8, fill).
    #[inline(always)]
    fn on_data(&mut self, data: Data) {
        let mine = self.local.installed.id() == Some(data.ring);
        match &mut self.phase {
            Phase::Operational | Phase::Gather(_) if mine => {
                self.on_installed(|ring, ctx| ring.on_data(ctx, data));
            }
            Phase::Recovery(recovery) if recovery.ring().ring() == data.ring => {
                let step = recovery.on_data(&mut self.local, data);
                self.take(step);
            }
            Phase::Commit(_) | Phase::Recovery(_) if mine && mutants::on(Mutant::R06) => {
                self.on_installed(|ring, ctx| ring.on_data(ctx, data));
            }
            Phase::Operational => self.local.on_foreign_data(&data),
            _ => self.local.counters.datagrams_foreign_ring += 1,
        }
    }

    /// Hands a token to the ring it belongs to, and judges the members by it afterwards.
    fn on_token(&mut self, token: Token) {
        if self.is_operational_on(token.ring) {
            self.on_installed(|ring, ctx| ring.on_token(ctx, token));
            let step = self.give_up_ill();
            self.take(step);
            let step = self.leave_if_hung();
            return self.take(step);
        }
        match &mut self.phase {
            Phase::Recovery(recovery) if recovery.ring().ring() == token.ring => {
                let step = recovery.on_token(&mut self.local, token);
                self.take(step);
                let step = self.give_up_ill();
                self.take(step);
            }
            _ => self.local.counters.datagrams_foreign_ring += 1,
        }
    }

    fn on_hurry(&mut self, hurry: &Hurry) {
        if self.is_operational_on(hurry.ring) {
            self.on_installed(|ring, ctx| ring.on_hurry(ctx, hurry));
        } else {
            self.local.counters.datagrams_foreign_ring += 1;
        }
    }

    fn is_operational_on(&self, ring: RingId) -> bool {
        let is_installed = self.local.installed.id() == Some(ring);
        if mutants::on(Mutant::M09) && self.phase.is_gather() {
            return is_installed;
        }
        if mutants::on(Mutant::M10) && self.phase.is_operational() {
            return true;
        }
        self.phase.is_operational() && is_installed
    }

    /// Handles a join, in any phase (A6).
    fn on_join(&mut self, join: &Join) -> Step {
        let (local, sender) = (&mut self.local, join.sender);
        if !local.is_another(sender) || !local.durable.see(join.ring_seq) {
            return Step::Stay;
        }
        if !self.phase.takes_join(local, join) {
            local.counters.joins_ignored += 1;
            return Step::Stay;
        }
        if !local.sets.know(sender) && local.avoids(sender) {
            local.others.let_in(local.now, sender.node);
        }
        if self.phase.is_operational() {
            local.leave_ring();
        }
        let gathers = self.phase.is_gather();
        local.others.forget_refusals(sender.node);
        let is_new = !local.others.were_heard(sender);
        let restarted = local.hear(join);
        if local.others.hears_each() && is_new && gathers {
            local.send_join_at_once();
        }
        match local.sets.process(local.me, join) {
            Verdict::Merged => {
                local.give_up_unlisted();
                Step::Gather
            }
            Verdict::Agrees => {
                if !gathers || restarted {
                    self.take(Step::Gather);
                }
                match &mut self.phase {
                    Phase::Gather(gather) => gather.on_agreement(&mut self.local, sender),
                    _ => Step::Stay,
                }
            }
            Verdict::Behind | Verdict::GivenUp if !gathers || restarted => Step::Gather,
            Verdict::Behind | Verdict::GivenUp => {
                if !local.sets.have_given_up(sender) {
                    local.answer(sender);
                }
                Step::Stay
            }
        }
    }

    /// Handles a commit token, in any phase: the rows "Commit token" of A6.
    fn on_commit(&mut self, commit: Commit) -> Step {
        match &mut self.phase {
            Phase::Gather(_) if is_first_visit(&self.local, &commit) => Step::Commit(commit),
            Phase::Commit(sent) if sent.is_second_visit(&commit) => Step::Recover(commit),
            Phase::Recovery(recovery) => {
                recovery.on_third_visit(&mut self.local, &commit);
                Step::Stay
            }
            _ => {
                self.local.counters.commits_ignored += 1;
                Step::Stay
            }
        }
    }

    /// Handles a merge-detect message: another ring is there (A6, merge-detect).
    fn on_presence(&mut self, presence: &MergeDetect) -> Step {
        let (local, sender) = (&mut self.local, presence.sender);
        if !local.is_another(sender) || !local.durable.see(presence.ring.ring_seq) {
            return Step::Stay;
        }
        let takes = self.phase.takes_presence(local, presence);
        if self.phase.is_gather() && !local.sets.have_given_up(sender) {
            local.others.on_heard(local.now, sender);
        }
        if !takes {
            return Step::Stay;
        }
        if self.phase.is_operational() {
            local.leave_ring();
        }
        // A process that can be heard and hears nothing never gets as far as a join (P-13).
        local.others.on_heard(local.now, sender);
        local.sets.hear(sender);
        local.sets.want(sender);
        Step::Gather
    }

    /// Acts on the time that `next_timer` named.
    pub(super) fn on_timer(&mut self) {
        if self.release {
            self.release_messages();
        }
        let local = &mut self.local;
        let step = match &mut self.phase {
            Phase::Idle => {
                local.durable.ask_for_first(local.now, &mut local.outputs);
                Step::Stay
            }
            Phase::Operational => self.on_operational_timer(),
            Phase::Gather(gather) => gather.on_timer(local),
            Phase::Commit(committing) => committing.on_timer(local),
            Phase::Recovery(recovery) => recovery.on_timer(local),
            Phase::Left => Step::Stay,
        };
        self.take(step);
    }

    fn on_operational_timer(&mut self) -> Step {
        let now = self.local.now;
        if self.on_installed(|ring, _| ring.has_lost_token(now)) == Some(true) {
            self.local.counters.token_losses += 1;
            self.local.leave_ring();
            return Step::Gather;
        }
        self.on_installed(Ordering::on_timer);
        if now >= self.local.merge.look_at() {
            self.local.look_for_absent();
        }
        Step::Stay
    }

    /// Whether the ring's token was lost long ago, and this process was not there to notice: packets that have come in
    /// the meantime are out of date, and above all tokens (P-14).
    pub(super) fn has_overslept(&self) -> bool {
        let is_on_ring = matches!(self.phase, Phase::Operational | Phase::Recovery(_));
        let ring = self.phase.ring_in_use(&self.local);
        is_on_ring && ring.is_some_and(|ring| ring.is_overdue(self.local.now))
    }

    /// Orders the messages that wait, or sees that a token comes for them.
    pub(super) fn release_messages(&mut self) {
        self.release = false;
        if self.may_release() {
            self.on_installed(|ring, ctx| ring.on_submit(ctx));
        }
    }

    pub(super) fn may_release(&self) -> bool {
        let local = &self.local;
        self.phase.is_operational() && local.stages.is_empty() && !local.outbox.is_empty()
    }

    /// Takes note of a request to the disk that is durable.
    pub(super) fn on_persisted(&mut self, id: PersistId) {
        let local = &mut self.local;
        local.durable.on_persisted(id);
        let step = match &self.phase {
            Phase::Idle if local.durable.is_all_durable() => {
                local.install_first();
                self.phase = Phase::Operational;
                Step::Stay
            }
            Phase::Commit(committing) => committing.install_if_alone(local),
            _ => Step::Stay,
        };
        self.take(step);
        let is_well = self.local.durable.is_well_again(self.local.now);
        if is_well && self.phase.is_gather() {
            self.take(Step::Gather);
        }
    }

    /// Takes note of a request to the disk that has failed: the others will go on without this process, which tries
    /// again after a while (A7).
    pub(super) fn on_persist_failed(&mut self, id: PersistId) -> Step {
        let local = &mut self.local;
        if !local.durable.on_failed(local.now, id) {
            return Step::Stay;
        }
        local.counters.persist_failures += 1;
        match self.phase {
            Phase::Commit(_) | Phase::Recovery(_) => Step::Gather,
            _ => Step::Stay,
        }
    }

    /// Takes a step, and those that follow from it at once.
    pub(super) fn take(&mut self, mut step: Step) {
        loop {
            step = match step {
                Step::Stay => return,
                Step::Gather => self.shift_to_gather(),
                Step::Form(members) => match self.local.name_ring(members) {
                    Some(token) => self.shift_to_commit(token),
                    None => Step::Stay,
                },
                Step::Commit(commit) => {
                    if let Some(token) = fill(&self.local, commit) {
                        let committing = Committing::new(&mut self.local, token);
                        self.phase = Phase::Commit(committing);
                    }
                    Step::Stay
                }
                Step::Recover(commit) => {
                    if let Some(recovery) = Recovery::new(&mut self.local, commit) {
                        self.phase = Phase::Recovery(Box::new(recovery));
                    }
                    Step::Stay
                }
                Step::Install => {
                    self.shift_to_operational();
                    Step::Stay
                }
            };
        }
    }

    /// Enters Gather, from anywhere (A5); enters it anew when the sets have changed.
    fn shift_to_gather(&mut self) -> Step {
        let local = &mut self.local;
        if let Phase::Recovery(recovery) = &self.phase {
            recovery.give_up(local);
        }
        let is_found_hanging = local.durable.is_found_hanging(local.now);
        local.counters.persist_failures += u64::from(is_found_hanging);
        let before = match &self.phase {
            Phase::Gather(before) => Some(before),
            _ => {
                local.counters.gathers += 1;
                local.joins.begin(local.now);
                None
            }
        };
        let mut gather = Gather::new(local, before);
        gather.hurry(local);
        local.send_join_at_once();
        let step = gather.check_consensus(local);
        self.phase = Phase::Gather(gather);
        step
    }

    /// Enters Commit at the representative, which names the ring.
    fn shift_to_commit(&mut self, token: Commit) -> Step {
        let committing = Committing::new(&mut self.local, token);
        let step = committing.install_if_alone(&self.local);
        self.phase = Phase::Commit(committing);
        step
    }

    /// Enters Operational, on the ring that was formed.
    fn shift_to_operational(&mut self) {
        let formed = match core::mem::replace(&mut self.phase, Phase::Operational) {
            Phase::Recovery(recovery) => Some(recovery.into_ring()),
            Phase::Commit(committing) => committing.ring_of_one(&self.local),
            _ => None,
        };
        if let Some((next, plan)) = formed {
            self.local.install(next, plan);
        }
    }
}
