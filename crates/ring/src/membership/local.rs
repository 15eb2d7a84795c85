//! The state that a process keeps in every phase: its ring, its beliefs about others, its disk, its queues. The phases
//! themselves are machines beside it (`phase`), which are lent it for each step.

use alloc::vec;
use alloc::vec::Vec;

use super::durable::Durable;
use super::electorates::OfRing;
use super::installed::Installed;
use super::joins::Joins;
use super::others::Others;
use super::outputs::Outputs;
use super::plan::Plan;
use super::presence::Merge;
use super::sets::Sets;
use super::silence::Silence;
use super::stages::Stages;
use crate::wire::{Commit, Electorate, Join, OldRing, have_ranges_for};
use crate::{Context, Counters, Ordering, RingConfig};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Process, RingId, StartState, Time,
};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::Outbox;
use rota_core::random::Random;

/// What a process is besides its phase: machines, each with state of its own, and the facts that all of them need.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub config: RingConfig,
    pub me: Process,
    /// The time of the newest call.
    pub now: Time,
    /// The ring installed last.
    pub installed: Installed,
    /// The deliveries of the rings before that the application has not taken yet.
    pub stages: Stages,
    pub outbox: Outbox,
    pub outputs: Outputs,
    pub counters: Counters,
    pub sets: Sets,
    pub joins: Joins,
    pub durable: Durable,
    pub silence: Silence,
    pub others: Others,
    pub merge: Merge,
}

impl Local {
    /// A process that waits for its start.
    pub fn new(config: RingConfig) -> Self {
        let (frame, message) = (config.frame_bytes(), config.message_bytes);
        // `start` replaces this placeholder.
        let me = Process {
            node: config.members[0],
            incarnation: Incarnation(0),
        };
        Self {
            me,
            now: Time(0),
            installed: Installed::default(),
            stages: Stages::default(),
            outbox: Outbox::new(frame, message, config.backlog_bytes),
            outputs: Outputs::new(config.seal_bytes),
            counters: Counters::default(),
            sets: Sets::default(),
            joins: Joins::default(),
            durable: Durable::default(),
            silence: Silence::default(),
            others: Others::new(me, config.timers.token_loss),
            merge: Merge::default(),
            config,
        }
    }

    /// Takes in what survived an earlier life, and asks for the number of a first ring.
    pub fn start(&mut self, start: &StartState) {
        self.me = start.me;
        self.joins = Joins::new(Random::of(start));
        self.durable = Durable::new(&self.config, start);
        self.others = Others::new(self.me, self.config.timers.token_loss);
        self.durable.ask_for_first(self.now, &mut self.outputs);
    }

    /// The context of one call of a ring that is not installed: the application's messages wait.
    pub const fn context(&mut self) -> Context<'_> {
        Context {
            now: self.now,
            outbox: &mut self.outbox,
            hold_messages: true,
            outputs: self.outputs.queue(),
            counters: &mut self.counters,
        }
    }

    /// Calls the installed ring with the context of one call.
    #[inline(always)]
    pub fn on_installed<T>(
        &mut self,
        hold_messages: bool,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut context = Context {
            now: self.now,
            outbox: &mut self.outbox,
            hold_messages,
            outputs: self.outputs.queue(),
            counters: &mut self.counters,
        };
        let ordering = self.installed.ring_mut()?;
        Some(call(ordering, &mut context))
    }

    /// The next delivery of the rings before the installed one, and the configurations between.
    pub fn poll_stages(&mut self) -> Option<Delivery> {
        let mut context = Context {
            now: self.now,
            outbox: &mut self.outbox,
            hold_messages: true,
            outputs: self.outputs.queue(),
            counters: &mut self.counters,
        };
        self.stages.poll(&mut context)
    }

    /// Whether this process says nothing, so that no other waits for it.
    pub fn is_silent(&self) -> bool {
        self.durable.has_failed() || self.silence.is_on(self.now)
    }

    /// Whether this process can agree to a ring now.
    pub fn allows_a_ring(&self) -> bool {
        self.durable.allows_a_ring(self.now) && self.silence.allows_a_ring(self.now)
    }

    /// Whether a packet comes from another node, in its present life: two processes that go by one number are a mistake
    /// of the operator (P-07).
    pub fn is_another(&mut self, sender: Process) -> bool {
        let same_node = sender.node == self.me.node;
        self.counters.duplicate_nodes += u64::from(same_node && sender != self.me);
        !same_node && !self.others.are_former(sender)
    }

    /// Whether a process is left alone now: members of the installed ring never are.
    pub fn avoids(&self, process: Process) -> bool {
        !self.installed.members().contains(&process)
            && self.others.are_avoided(self.now, process.node)
    }

    /// Whether a join comes from a process that is left alone now, and is not let in either.
    pub fn leaves_alone(&self, join: &Join) -> bool {
        let wants_me = join.procs.contains(&self.me);
        let open = wants_me && self.others.are_open_to(self.now, join.sender.node);
        self.avoids(join.sender) && !open
    }

    /// Notes that the sender of a join is alive; answers whether that ends another life of its node.
    pub fn hear(&mut self, join: &Join) -> bool {
        if join.leaving && !mutants::on(Mutant::M58) {
            self.others.on_leave(join.sender);
        }
        if join.leaving || self.sets.have_given_up(join.sender) {
            return false;
        }
        self.others.on_heard(self.now, join.sender);
        let before = self.sets.fails().len();
        self.sets.hear(join.sender);
        let ended = self.sets.fails().len() - before;
        self.counters.members_dead += ended as u64;
        ended > 0
    }

    /// Gives up nodes that are not listed here, where no other may join: no packet of theirs reaches this process,
    /// though others, which have a newer list, list them. No ring forms with them, and the others need not wait until
    /// this process has found that out.
    pub fn give_up_unlisted(&mut self) {
        if self.config.closed && !mutants::on(Mutant::M63) {
            self.sets.give_up_unlisted(&self.config.members);
        }
    }

    /// Leaves the installed ring: its members are wanted on the next.
    pub fn leave_ring(&mut self) {
        if self.installed.ring().is_some() {
            self.sets.begin_anew(self.installed.members());
        }
        let members = self.sets.members();
        if self.others.on_broken(self.now, &members) {
            self.silence.forget_mute();
        }
        // A member that cannot receive what others can may hear enough to come back at once, and be as deaf as before
        // (P-38). All leave it alone, not only the member that gives it up first.
        let ring = self.installed.ring();
        let deaf = ring.and_then(|ring| ring.suspected_member(self.now));
        if let Some(deaf) = deaf.and_then(|node| self.sets.process_of(node)) {
            self.others
                .back_off_from(self.now, deaf, &mut self.counters);
        }
    }

    /// Names a ring of the processes that agree, if this process, the smallest of them, can: its commit token.
    pub fn name_ring(&self, members: Vec<Process>) -> Option<Commit> {
        if !self.allows_a_ring() {
            return None;
        }
        let ring = RingId {
            ring_seq: self.durable.next_number(),
            rep: self.me.node,
            incarnation: self.me.incarnation,
        };
        let mut electorates = Vec::new();
        let told = self.tell(members.len(), &mut electorates)?;
        Some(Commit {
            cluster: self.config.cluster,
            ring,
            sender: self.me.node,
            token_seq: 1,
            members,
            electorates,
            told: vec![told],
        })
    }

    /// The word of this process to the ring to be of `members` members; adds its electorates to those of the token.
    pub fn tell(&self, members: usize, electorates: &mut Vec<Electorate>) -> Option<OldRing> {
        let installed = self.installed.ring()?;
        let next_message = self.outbox.next_to_leave();
        let ranges = have_ranges_for(members);
        let counts = self.durable.tell(electorates);
        let own = (next_message, self.config.settings(), counts);
        let mut told = installed.tell(self.installed.obligations(), own, ranges);
        if mutants::on(Mutant::M15) && self.installed.has_failed_to_end() {
            told.ring.ring_seq = self.durable.agreed();
        }
        Some(told)
    }

    /// A ring of this process alone.
    pub fn ring_alone(&self, ring: RingId) -> Ordering {
        let me = self.me;
        let told = (&[self.outbox.next_to_leave()][..], Vec::new());
        Ordering::new(&self.config, ring, vec![me], told, me.node, self.now)
    }

    /// Installs the first ring of this process: nothing comes before it.
    pub fn install_first(&mut self) {
        let ring = RingId {
            ring_seq: self.durable.agreed(),
            rep: self.me.node,
            incarnation: self.me.incarnation,
        };
        self.durable.on_first(self.now);
        let first = self.ring_alone(ring);
        let electorates = self.durable.electorates().alone(self.me.node);
        self.enter(first, electorates);
    }

    /// Installs a ring (A9). The remaining deliveries of the old ring, and the configuration of each, are settled here
    /// in one step, and handed out as the application takes them.
    pub fn install(&mut self, mut next: Ordering, plan: Plan) {
        let Some(old) = self.installed.end() else {
            return;
        };
        let before = old.members().to_vec();
        next.go_on_judging(&old);
        let transitional = Configuration {
            kind: ConfigurationKind::Transitional {
                old: old.ring(),
                new: next.ring(),
            },
            members: plan.transitional,
        };
        self.stages.end(old, plan.ended, transitional);
        next.install();
        let counters = &mut self.counters;
        self.others
            .on_next_ring(self.now, &before, next.members(), counters);
        self.enter(next, plan.electorates);
    }

    fn enter(&mut self, ring: Ordering, electorates: OfRing) {
        let members = ring.members();
        self.others
            .on_installed(self.now, members, &mut self.counters);
        self.stages.begin(Configuration {
            kind: ConfigurationKind::Regular(ring.ring()),
            members: members.to_vec(),
        });
        self.sets.begin_anew(members);
        if !mutants::on(Mutant::R01) {
            self.outbox.rewind();
        }
        self.counters.configurations += 1;
        let on_ring = (ring.ring(), members);
        self.durable
            .on_ring(self.now, on_ring, electorates, &mut self.outputs);
        self.installed.begin(ring, self.me);
        self.silence.on_stages(self.stages.len());
        self.look_for_absent();
    }
}
