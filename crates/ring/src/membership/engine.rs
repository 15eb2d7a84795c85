//! The engine of `accelerated-ring` and `totem-ring`, and the dispatch of its inputs.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use bytes::Bytes;

use super::electorates::Electorates;
use super::evidence::{BackOff, Former, Refusals};
use super::phase::Phase;
use super::ring_seq::RingSeq;
use super::sets::Sets;
use super::stages::Stages;
use crate::wire::{self, Data, Packet};
use crate::{Context, Counters, Ordering, RingConfig, RingConfigError};
use rota_core::contract::{
    Configuration, ConfigurationKind, Incarnation, Output, Process, RingId, Seq, StartState, Time,
};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::Outbox;
use rota_core::random::Random;

/// One process's ring: membership and, on the installed ring, ordering.
#[derive(Clone, Debug)]
pub struct RingEngine {
    pub(super) config: RingConfig,
    pub(super) me: Process,
    pub(super) random: Random,
    /// The time of the newest call.
    pub(super) now: Time,
    pub(super) phase: Phase,
    /// The ring installed last: in every phase but the first there is one.
    pub(super) installed: Option<Ordering>,
    pub(super) installed_at: Time,
    /// The deliveries of the rings before that the application has not taken yet.
    pub(super) stages: Stages,
    pub(super) outbox: Outbox,
    pub(super) outputs: VecDeque<Output>,
    pub(super) counters: Counters,
    pub(super) sets: Sets,
    /// The time at which the installed ring broke.
    pub(super) broken_at: Time,
    /// The processes that were heard themselves since then, and whether late.
    pub(super) heard: BTreeMap<Process, bool>,
    /// The processes that have said since then that they leave.
    pub(super) left: BTreeSet<Process>,
    /// The members of the installed ring whose messages this process has to deliver even behind a gap: bit `i` is
    /// member `i` (A8, obligation set).
    pub(super) obligations: u128,
    /// Recoveries from the installed ring that have failed.
    pub(super) attempts: u32,
    pub(super) ring_seq: RingSeq,
    pub(super) electorates: Electorates,
    /// The disk has refused a ring number: no ring is agreed to before this time.
    pub(super) disk_pause_until: Time,
    /// The time of the last request to the disk.
    pub(super) disk_asked_at: Time,
    /// The disk has failed, or does not answer, and has made nothing durable since: no process must wait for this one,
    /// so it says nothing.
    pub(super) disk_failed: bool,
    /// The application is so far behind that there is no room for more rings: no process must wait for this one either.
    pub(super) lags: bool,
    /// The time since which the ring has waited for the application, which has taken nothing since.
    pub(super) held_since: Option<Time>,
    /// Set while the application hangs, and no process must wait for this one. True: this process was told; false: it
    /// found out itself.
    pub(super) hangs: Option<bool>,
    /// This process is mute, or loses much, and so says nothing until this time.
    pub(super) mute_until: Time,
    /// The number of times in succession that this was so.
    pub(super) times_mute: u32,
    /// Whether this process agrees to no ring with a process that it does not hear itself: a ring was well on which the
    /// layer above stood still.
    pub(super) hears_each: bool,
    pub(super) refusals: Refusals,
    pub(super) back_off: BackOff,
    pub(super) former: Former,
    /// The time of the next look for absent nodes.
    pub(super) presence_at: Time,
    /// Whether messages that wait may be ordered now: the application has made room, or has seen its configuration.
    pub(super) release: bool,
    /// The time of the last answer to a stranger.
    pub(super) answered_at: Option<Time>,
}

impl RingEngine {
    /// An engine that waits for its `Start`.
    pub fn new(config: RingConfig) -> Result<Self, RingConfigError> {
        config.check()?;
        let (frame, message) = (config.frame_bytes(), config.message_bytes);
        let outbox = Outbox::new(frame, message, config.backlog_bytes);
        // `Start` replaces this placeholder.
        let me = Process {
            node: config.members[0],
            incarnation: Incarnation(0),
        };
        Ok(Self {
            config,
            me,
            random: Random::default(),
            now: Time(0),
            phase: Phase::Idle,
            installed: None,
            installed_at: Time(0),
            stages: Stages::default(),
            outbox,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            sets: Sets::default(),
            broken_at: Time(0),
            heard: BTreeMap::new(),
            left: BTreeSet::new(),
            obligations: 0,
            attempts: 0,
            ring_seq: RingSeq::default(),
            electorates: Electorates::default(),
            disk_pause_until: Time(0),
            disk_asked_at: Time(0),
            disk_failed: false,
            lags: false,
            held_since: None,
            hangs: None,
            mute_until: Time(0),
            times_mute: 0,
            hears_each: false,
            refusals: Refusals::default(),
            back_off: BackOff::default(),
            former: Former::default(),
            presence_at: Time(0),
            release: false,
            answered_at: None,
        })
    }

    /// Its configuration.
    pub const fn config(&self) -> &RingConfig {
        &self.config
    }

    /// The ordering of the ring installed last.
    pub const fn ordering(&self) -> Option<&Ordering> {
        self.installed.as_ref()
    }

    /// The counters of the engine.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets waiting for a token.
    pub fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// The state of A3: `starting`, `operational`, `gathering`, `committing`, `recovering` or `left`.
    pub const fn phase_name(&self) -> &'static str {
        self.phase.name()
    }

    /// The time until which this process leaves some other alone with which no ring held, or is silent itself; in the
    /// past if neither is so any more.
    pub fn leaves_alone_until(&self) -> Option<Time> {
        let mute = Some(self.mute_until).filter(|until| *until > self.now);
        self.back_off.until().max(mute)
    }

    /// The ring to be on which this process recovers the packets of its old one.
    pub fn recovering(&self) -> Option<RingId> {
        match &self.phase {
            Phase::Recovery(recovery) => Some(recovery.next.ring()),
            _ => None,
        }
    }

    /// Whether this process has, or had, a packet of a ring; `None` if it knows that ring no more.
    pub fn has_received(&self, ring: RingId, seq: Seq) -> Option<bool> {
        let of_ring =
            |ordering: &Ordering| (ordering.ring() == ring).then(|| ordering.has_received(seq));
        let next = match &self.phase {
            Phase::Recovery(recovery) => of_ring(&recovery.next),
            _ => None,
        };
        next.or_else(|| self.installed.as_ref().and_then(of_ring))
            .or_else(|| self.stages.rings().find_map(of_ring))
    }

    /// Calls the installed ring with the context of one call.
    #[inline(always)]
    pub(super) fn on_installed<T>(
        &mut self,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let hold_messages = !matches!(self.phase, Phase::Operational)
            || !self.stages.is_empty() && !mutants::on(Mutant::M33);
        let mut context = Context {
            now: self.now,
            outbox: &mut self.outbox,
            hold_messages,
            outputs: &mut self.outputs,
            counters: &mut self.counters,
        };
        let ordering = self.installed.as_mut()?;
        Some(call(ordering, &mut context))
    }

    /// Calls the ring that is being formed with the context of one call.
    pub(super) fn on_next<T>(
        &mut self,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let Phase::Recovery(recovery) = &mut self.phase else {
            return None;
        };
        let mut context = Context {
            now: self.now,
            outbox: &mut self.outbox,
            hold_messages: true,
            outputs: &mut self.outputs,
            counters: &mut self.counters,
        };
        Some(call(&mut recovery.next, &mut context))
    }

    pub(super) fn start(&mut self, start: &StartState) {
        self.me = start.me;
        self.random = Random::of(start);
        self.ring_seq = RingSeq::new(start);
        self.electorates = Electorates::new(&self.config.electorate, start);
        self.form_first_ring();
    }

    #[inline(always)]
    pub(super) fn on_datagram(&mut self, bytes: Bytes) {
        if wire::is_data(&bytes) {
            return match Data::decode(bytes, self.config.seal_bytes) {
                Ok(data) if data.cluster == self.config.cluster => self.on_data(data),
                Ok(_) => self.counters.datagrams_foreign_cluster += 1,
                Err(_) => self.counters.datagrams_malformed += 1,
            };
        }
        let Ok(packet) = wire::decode_sealed(bytes, self.config.seal_bytes) else {
            self.counters.datagrams_malformed += 1;
            return;
        };
        if packet.cluster() != self.config.cluster {
            self.counters.datagrams_foreign_cluster += 1;
            return;
        }
        match packet {
            Packet::Data(data) => self.on_data(data),
            Packet::Token(token) => {
                if self.is_operational_on(token.ring) {
                    self.on_installed(|ring, ctx| ring.on_token(ctx, token));
                    self.give_up_deaf();
                    self.leave_if_hung();
                } else {
                    self.on_recovery_token(token);
                }
            }
            Packet::Hurry(hurry) => {
                if self.is_operational_on(hurry.ring) {
                    self.on_installed(|ring, ctx| ring.on_hurry(ctx, &hurry));
                } else {
                    self.counters.datagrams_foreign_ring += 1;
                }
            }
            Packet::Join(join) => self.on_join(&join),
            Packet::Commit(commit) => self.on_commit(commit),
            Packet::MergeDetect(presence) => self.on_presence(&presence),
        }
    }

    fn is_operational_on(&self, ring: RingId) -> bool {
        if mutants::on(Mutant::M09) && matches!(self.phase, Phase::Gather(_)) {
            return self.installed_ring() == Some(ring);
        }
        if mutants::on(Mutant::M10) && matches!(self.phase, Phase::Operational) {
            return true;
        }
        matches!(self.phase, Phase::Operational) && self.installed_ring() == Some(ring)
    }

    pub(super) fn installed_ring(&self) -> Option<RingId> {
        self.installed.as_ref().map(Ordering::ring)
    }

    /// Hands a data packet to the ring it names. Packets of the old ring are taken until this process has told which
    /// ones it has (A8, fill).
    #[inline(always)]
    fn on_data(&mut self, data: Data) {
        let mine = self.installed_ring() == Some(data.ring);
        match &self.phase {
            Phase::Operational | Phase::Gather(_) if mine => {
                self.on_installed(|ring, ctx| ring.on_data(ctx, data));
            }
            Phase::Recovery(recovery) if recovery.next.ring() == data.ring => {
                self.on_recovery_data(data);
            }
            Phase::Commit(_) | Phase::Recovery(_) if mine && mutants::on(Mutant::R06) => {
                self.on_installed(|ring, ctx| ring.on_data(ctx, data));
            }
            Phase::Operational => self.on_foreign_data(&data),
            _ => self.counters.datagrams_foreign_ring += 1,
        }
    }

    pub(super) fn on_timer(&mut self) {
        if self.release {
            self.release_messages();
        }
        match &self.phase {
            Phase::Idle => self.form_first_ring(),
            Phase::Operational => self.on_operational_timer(),
            Phase::Gather(_) => self.on_gather_timer(),
            Phase::Commit(_) => self.on_commit_timer(),
            Phase::Recovery(_) => self.on_recovery_timer(),
            Phase::Left => {}
        }
    }

    /// Whether the ring's token was lost long ago, and this process was not there to notice: packets that have come in
    /// the meantime are out of date, and above all tokens (P-14).
    pub(super) fn has_overslept(&self) -> bool {
        let ring = match &self.phase {
            Phase::Operational => self.installed.as_ref(),
            Phase::Recovery(recovery) => Some(&recovery.next),
            _ => None,
        };
        ring.is_some_and(|ring| ring.is_overdue(self.now))
    }

    fn on_operational_timer(&mut self) {
        let now = self.now;
        if self.on_installed(|ring, _| ring.has_lost_token(now)) == Some(true) {
            self.counters.token_losses += 1;
            self.leave_ring();
            return self.gather();
        }
        self.on_installed(Ordering::on_timer);
        if now >= self.presence_at {
            self.look_for_absent();
        }
    }

    /// Orders the messages that wait, or sees that a token comes for them.
    pub(super) fn release_messages(&mut self) {
        self.release = false;
        if self.may_release() {
            self.on_installed(|ring, ctx| ring.on_submit(ctx));
        }
    }

    pub(super) fn may_release(&self) -> bool {
        let operational = matches!(self.phase, Phase::Operational);
        operational && self.stages.is_empty() && !self.outbox.is_empty()
    }

    pub(super) fn is_alone(&self) -> bool {
        let ring = self.installed.as_ref();
        ring.is_some_and(|ring| ring.members().len() == 1)
    }

    pub(super) fn regular(ordering: &Ordering) -> Configuration {
        Configuration {
            kind: ConfigurationKind::Regular(ordering.ring()),
            members: ordering.members().to_vec(),
        }
    }
}
