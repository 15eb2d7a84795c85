//! What is decided, in order, and which of it counts.

use super::base::Base;
use super::engine::URing;
use crate::paxos::{Instance, Value, Vote};

/// A hint at what is decided is written once for so many instances.
const HINT_EVERY: u64 = 256;

impl URing {
    /// Own votes that have become durable, and what follows from all of them.
    pub(super) fn vote_and_learn(&mut self) {
        let (round, next) = self.acceptor.voted();
        self.learner.on_voted(round, self.acceptor.id(), next);
        while self.hand_out.has_room()
            && let Some(vote) = self.learner.take()
        {
            self.counters.decided += 1;
            self.count(&vote);
            if self.is_acceptor() && !self.disk.failed {
                self.acceptor.learn(vote);
            }
        }
        self.on_reached();
        self.hint();
        self.trim();
    }

    fn on_reached(&mut self) {
        let number = self.number();
        if self.learner.round() != number {
            return;
        }
        let reached = self.learner.reached();
        if let Some(leading) = &mut self.leading {
            if leading.knows_what_counts() {
                leading.machine.on_reached(reached);
            }
            if leading.machine.is_complete(reached) {
                self.on_complete(number);
            }
        }
        let low = self.voted_by_all();
        if let Some(stream) = &mut self.stream {
            stream.forget(low);
        }
    }

    /// Before this instance all acceptors in the ring have voted.
    fn voted_by_all(&self) -> Instance {
        let Some(config) = &self.config else {
            return 0;
        };
        let nodes = Self::nodes(&config.ring);
        let voted = config.acceptors.iter().zip(self.learner.voted());
        let voted = voted.filter(|(who, _)| nodes.contains(&who.node));
        voted.map(|(_, next)| *next).min().unwrap_or(0)
    }

    fn count(&mut self, vote: &Vote) {
        let counts = self.counted.advance(vote);
        match &vote.value {
            Value::Packet { .. } if !counts => self.counters.uncounted += 1,
            Value::Packet { id, frame } => {
                if let Some(stream) = &mut self.stream {
                    stream.counted(*id);
                }
                if id.process == self.me {
                    self.own.on_counted(id.counter);
                }
                self.hand_out.packet(vote.first, *id, frame.clone());
            }
            Value::Members(members) => {
                let (inside, own) = (members.contains(&self.me), self.own.done());
                self.hand_out
                    .members(vote.first, members.clone(), inside, own);
            }
            Value::Skip(_) => {}
        }
    }

    /// The next start of this process need not ask others for what is below.
    fn hint(&mut self) {
        let next = self.learner.next();
        let is_due = next >= self.told_decided + HINT_EVERY;
        if is_due && self.votes() && self.disk.is_idle() {
            self.told_decided = next;
            self.disk.put_decided(next);
        }
    }

    /// An acceptor forgets what is far behind.
    fn trim(&mut self) {
        let next = self.learner.next();
        if !self.votes() {
            return;
        }
        if self.base.next < self.acceptor.kept() && next >= self.acceptor.kept() {
            // It forgot because others had, before it had learnt.
            return self.rest_on(self.counted.clone());
        }
        let keep = self.settings.kept_instances;
        // Not one by one.
        let slack = (keep / 16).max(1);
        if next >= self.base.next + keep + slack {
            self.trim_to(next - keep);
        }
    }

    fn rest_on(&mut self, base: Base) {
        self.acceptor.trim(base.next);
        self.disk.put_base(&base);
        self.base = base;
    }

    /// Everything below is forgotten here.
    fn trim_to(&mut self, below: Instance) {
        let mut base = self.base.clone();
        let votes = self.acceptor.votes().from(base.next);
        for vote in votes.map_while(|vote| vote.part(0, below)) {
            base.advance(&vote);
        }
        base.next = below;
        self.rest_on(base);
    }

    /// Others have forgotten everything before this.
    pub(super) fn begin_at(&mut self, base: Base) {
        let next = self.learner.next();
        if base.next <= next {
            return;
        }
        self.learner.skip_to(base.next);
        self.counted = base.clone();
        if let Some(counted) = base.counted(self.me) {
            self.own.on_counted(counted);
        }
        let inside = base.table.members().any(|member| member == self.me);
        self.hand_out.missed(next, &base, inside, self.own.done());
        if self.votes() {
            self.rest_on(base);
        }
    }
}
