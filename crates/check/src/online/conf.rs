//! Configurations, one after the other.

use rota_core::contract::ConfigurationKind::{Regular, Transitional};
use rota_core::contract::{ConfigurationKind, Process, RingId};

use super::ring::{Progress, RingState};
use super::{Online, wrong};
use crate::event::Conf;
use crate::name::Name;
use crate::report::Violation;

impl Online {
    pub(super) fn on_configuration(&mut self, who: Process, conf: &Conf) -> Result<(), Violation> {
        let current = self.processes.get(&who).and_then(|state| state.current);
        let text = |what: String| {
            let (who, conf, members) = (Name(who), Name(conf.id), Name(conf.members.as_slice()));
            format!("{who} delivered configuration {conf} of {members}, {what}")
        };
        self.check_membership(who, conf)
            .map_err(|what| wrong("C1", text(what)))?;
        if current == Some(conf.id) {
            return Err(wrong("C2", text("again".into())));
        }
        if let Regular(ring) = conf.id {
            let last = self.nodes.get(&who.node).and_then(|node| node.ring);
            if let Some(last) = last.filter(|last| last.ring_seq >= ring.ring_seq) {
                let property = if last == ring { "C2" } else { "C7" };
                return Err(wrong(property, text(format!("after {last}"))));
            }
        }
        self.check_alternation(current, conf)
            .map_err(|what| wrong("C3", text(what)))?;
        self.install(who, conf);
        Ok(())
    }

    fn check_membership(&self, who: Process, conf: &Conf) -> Result<(), String> {
        if !conf.members.contains(&who) {
            return Err("without itself".into());
        }
        match self.listed(conf.id) {
            Some(listed) if *listed != conf.members => {
                Err(format!("which others had as {}", Name(listed)))
            }
            _ => Ok(()),
        }
    }

    /// The members of a configuration, if it was delivered and is not forgotten.
    fn listed(&self, id: ConfigurationKind) -> Option<&[Process]> {
        match id {
            Regular(ring) => self.rings.get(&ring).map(|ring| ring.members.as_slice()),
            Transitional { old, new } => {
                let ways = &self.rings.get(&old)?.transitional;
                let way = ways.iter().find(|(ring, _)| *ring == new);
                way.map(|(_, members)| members.as_slice())
            }
        }
    }

    fn check_alternation(
        &self,
        current: Option<ConfigurationKind>,
        conf: &Conf,
    ) -> Result<(), String> {
        match (current, conf.id) {
            (None, Regular(_)) if conf.members.len() == 1 => Ok(()),
            (None, _) => Err("first of all, not a regular one of itself alone".into()),
            (Some(Transitional { new, .. }), Regular(ring)) if ring == new => {
                let ways = self.listed(current.unwrap_or(conf.id)).unwrap_or_default();
                within(ways, &conf.members)
            }
            (Some(Regular(ring)), Transitional { old, new }) if ring == old => {
                within(&conf.members, self.listed(Regular(old)).unwrap_or_default())?;
                let new = self.listed(Regular(new));
                new.map_or(Ok(()), |new| within(&conf.members, new))
            }
            (Some(current), _) => Err(format!("after {}", Name(current))),
        }
    }

    fn install(&mut self, who: Process, conf: &Conf) {
        match conf.id {
            Regular(ring) => self.install_ring(who, ring, &conf.members),
            Transitional { old, new } => {
                if let Some(state) = self.rings.get_mut(&old)
                    && !state.transitional.iter().any(|(ring, _)| *ring == new)
                {
                    state.transitional.push((new, conf.members.clone()));
                }
            }
        }
        let state = self.processes.entry(who).or_default();
        state.current = Some(conf.id);
    }

    fn install_ring(&mut self, who: Process, ring: RingId, members: &[Process]) {
        if !self.rings.contains_key(&ring) {
            let can_come = |member: &Process| {
                let life = self.nodes.get(&member.node);
                let state = self.processes.get(member);
                let alive = state.is_some_and(|state| state.ended.is_none());
                let last = life.and_then(|life| life.ring);
                alive && last.is_none_or(|last| last.ring_seq < ring.ring_seq)
            };
            let owing: Vec<Process> = members.iter().copied().filter(can_come).collect();
            for member in &owing {
                let state = self.processes.entry(*member).or_default();
                state.rings.push(ring);
            }
            self.rings
                .insert(ring, RingState::new(members.to_vec(), owing));
        }
        if let Some(known) = self.rings.get_mut(&ring)
            && !known.owing.contains(&who)
        {
            known.owing.push(who);
        }
        if let Some(node) = self.nodes.get_mut(&who.node) {
            node.ring = Some(ring);
        }
        let state = self.processes.entry(who).or_default();
        state.progress = Progress::default();
        if !state.rings.contains(&ring) {
            state.rings.push(ring);
        }
        // Ring numbers grow at every process: it will never come to an earlier ring.
        let (passed, kept) = state
            .rings
            .iter()
            .partition(|other| other.ring_seq <= ring.ring_seq && **other != ring);
        state.rings = kept;
        let passed: Vec<RingId> = passed;
        passed.iter().for_each(|ring| self.gone(who, *ring));
    }
}

fn within(members: &[Process], all: &[Process]) -> Result<(), String> {
    match members.iter().find(|member| !all.contains(member)) {
        None => Ok(()),
        Some(stranger) => Err(format!(
            "of which {} is not in {}",
            Name(*stranger),
            Name(all)
        )),
    }
}
