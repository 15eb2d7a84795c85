//! Merge detection: the search for absent nodes, and rings that hear of each other (A6, A10).

use core::hash::Hasher;

use super::local::Local;
use crate::wire::{Data, MergeDetect, Packet};
use rota_core::contract::{NodeId, Process, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::MAX_MEMBERS;

/// The times of merge detection at one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Merge {
    /// The time of the next look for absent nodes.
    look_at: Time,
    /// The time of the last answer to a stranger.
    answered_at: Option<Time>,
}

impl Merge {
    /// The time of the next look for absent nodes.
    pub const fn look_at(&self) -> Time {
        self.look_at
    }

    /// Whether a stranger was answered within the last `pause` nanoseconds.
    fn has_answered_lately(&self, now: Time, pause: u64) -> bool {
        self.answered_at.is_some_and(|at| now.since(at) < pause)
    }

    /// Feeds `print` with the times; `looks`: absent nodes are looked for.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>, looks: bool) {
        print.due(looks.then_some(self.look_at));
        print.past(self.answered_at);
    }
}

impl Local {
    /// Answers data of another ring, so that its sender learns of this one (A6, foreign data).
    pub fn on_foreign_data(&mut self, data: &Data) {
        self.counters.datagrams_foreign_ring += 1;
        let Some(installed) = self.installed.ring() else {
            return;
        };
        let member = installed.members().iter().any(|m| m.node == data.sender);
        let late = member && data.ring.ring_seq < installed.ring().ring_seq;
        let pause = self.config.timers.join;
        let lately = self.merge.has_answered_lately(self.now, pause);
        if mutants::on(Mutant::M31) || late || lately || data.sender == self.me.node {
            return;
        }
        self.merge.answered_at = Some(self.now);
        self.show_merge_detect(data.sender);
    }

    /// Shows the ring to the configured nodes that it lacks, on its representative.
    pub fn look_for_absent(&mut self) {
        self.merge.look_at = self.now.after(self.config.timers.merge);
        if !self.looks_for_absent() || mutants::on(Mutant::M31) {
            return;
        }
        for node in self.config.members.clone() {
            if self.is_absent(node) {
                self.show_merge_detect(node);
            }
        }
    }

    /// Whether this process looks for absent nodes.
    pub fn looks_for_absent(&self) -> bool {
        let rep = self.installed.id().map(|ring| ring.rep);
        rep == Some(self.me.node) && self.config.members.iter().any(|&node| self.is_absent(node))
    }

    fn is_absent(&self, node: NodeId) -> bool {
        let mut members = self.installed.members().iter();
        !members.any(|member| member.node == node)
    }

    /// Whether a process cannot be on the installed ring, as the ring has the most members that it may have: the first
    /// that are together stay.
    pub fn is_full_for(&self, process: Process) -> bool {
        let members = self.installed.members();
        let is_full = members.len() >= MAX_MEMBERS && !mutants::on(Mutant::M44);
        is_full && members.iter().all(|member| member.node != process.node)
    }

    /// Shows the installed ring to a node.
    pub fn show_merge_detect(&mut self, node: NodeId) {
        let Some(ring) = self.installed.id().filter(|_| !self.is_silent()) else {
            return;
        };
        let presence = MergeDetect {
            cluster: self.config.cluster,
            sender: self.me,
            ring,
        };
        self.outputs.send(node, &Packet::MergeDetect(presence));
    }
}
