//! Merge detection: the search for absent nodes, and rings that hear of each other (A6, A10).

use super::engine::RingEngine;
use super::gather::is_outdated;
use super::phase::Phase;
use crate::wire::{Data, MergeDetect, Packet};
use crate::{Ordering, send_to};
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::MAX_MEMBERS;

impl RingEngine {
    /// Handles a merge-detect message: another ring is there (A6, merge-detect).
    pub(super) fn on_presence(&mut self, presence: &MergeDetect) {
        let sender = presence.sender;
        if !self.is_another(sender) || !self.ring_seq.see(presence.ring.ring_seq) {
            return;
        }
        let Some(installed) = &self.installed else {
            return;
        };
        let stale = installed.members().contains(&sender)
            && presence.ring.ring_seq <= installed.ring().ring_seq;
        let outdated = is_outdated(installed, sender, presence.ring.ring_seq);
        let known = self.sets.procs.contains(&sender);
        let news = match &self.phase {
            Phase::Operational => !stale && !outdated && presence.ring != installed.ring(),
            Phase::Gather(_) => !known,
            _ => false,
        };
        if matches!(self.phase, Phase::Gather(_)) && !self.sets.fails.contains(&sender) {
            self.note_heard(sender);
        }
        if !news || self.avoids(sender) || !self.sets.have_room() || self.is_full_for(sender) {
            return;
        }
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
        }
        // A process that can be heard and hears nothing never gets as far as a join (P-13).
        self.note_heard(sender);
        self.sets.hear(sender);
        self.sets.procs.insert(sender);
        self.gather();
    }

    /// Answers data of another ring, so that its sender learns of this one (A6, foreign data).
    pub(super) fn on_foreign_data(&mut self, data: &Data) {
        self.counters.datagrams_foreign_ring += 1;
        let Some(installed) = &self.installed else {
            return;
        };
        let member = installed.members().iter().any(|m| m.node == data.sender);
        let late = member && data.ring.ring_seq < installed.ring().ring_seq;
        let pause = self.config.timers.join;
        let lately = self
            .answered_at
            .is_some_and(|at| self.now.since(at) < pause);
        if mutants::on(Mutant::M31) || late || lately || data.sender == self.me.node {
            return;
        }
        self.answered_at = Some(self.now);
        self.show_merge_detect(data.sender);
    }

    /// Shows the ring to the configured nodes that it lacks, on its representative.
    pub(super) fn look_for_absent(&mut self) {
        self.presence_at = self.now.after(self.config.timers.merge);
        if !self.looks_for_absent() || mutants::on(Mutant::M31) {
            return;
        }
        for node in self.config.members.clone() {
            if self.is_absent(node) {
                self.show_merge_detect(node);
            }
        }
    }

    /// Whether a process cannot be on this ring, as the ring has the most members that it may have: the first that are
    /// together stay.
    pub(super) fn is_full_for(&self, process: Process) -> bool {
        let operational = matches!(self.phase, Phase::Operational);
        let Some(ring) = self.installed.as_ref().filter(|_| operational) else {
            return false;
        };
        let members = ring.members();
        let is_full = members.len() >= MAX_MEMBERS && !mutants::on(Mutant::M44);
        is_full && members.iter().all(|member| member.node != process.node)
    }

    pub(super) fn looks_for_absent(&self) -> bool {
        let rep = self.installed.as_ref().map(|ring| ring.ring().rep);
        rep == Some(self.me.node) && self.config.members.iter().any(|&node| self.is_absent(node))
    }

    fn is_absent(&self, node: NodeId) -> bool {
        let installed = self.installed.as_ref().map_or(&[][..], Ordering::members);
        !installed.iter().any(|member| member.node == node)
    }

    pub(super) fn show_merge_detect(&mut self, node: NodeId) {
        let Some(ring) = self.installed_ring().filter(|_| !self.is_silent()) else {
            return;
        };
        let presence = MergeDetect {
            cluster: self.config.cluster,
            sender: self.me,
            ring,
        };
        self.outputs.push_back(send_to(
            node,
            &Packet::MergeDetect(presence),
            self.config.seal_bytes,
        ));
    }
}
