//! The way from a primary configuration to a view: the steps of the exchange, as the members take them.

use bytes::Bytes;

use super::engine::{Phase, ViewEngine};
use super::exchange::Step;
use super::memory::Next;
use super::outcome::Outcome;
use super::path::{DataPath, View};
use super::quorum::remembers_enough;
use rota_core::contract::{Delivery, Engine, Service, Time};
use rota_core::mutants::{self, Mutant};

/// The most tentative views, of which it is unknown whether any member installed them: with as many, this process lets
/// no view begin.
pub(super) const MOST_TENTATIVE: usize = 32;

impl<P: DataPath, E: Engine> ViewEngine<P, E> {
    /// Takes every step of the exchange that can be taken.
    pub(super) fn advance(&mut self) {
        self.tell();
        self.send_all();
        self.end();
    }

    /// Tells the knowledge of this process. The application has to take the deliveries of earlier changes first: so the
    /// deliveries that are kept for it are bounded.
    fn tell(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        let due = exchange.step == Step::Silent && exchange.primary && exchange.regular;
        if due && self.deliveries.is_empty() {
            let note = Bytes::from(self.path.note());
            self.counters.exchanges += 1;
            exchange.tell(self.memory.recover(note));
        }
    }

    /// Whether this process has to tell its knowledge now, as its application has taken all deliveries.
    pub(super) fn is_telling_due(&self) -> bool {
        let Phase::Changing(exchange) = &self.phase else {
            return false;
        };
        let due = exchange.step == Step::Silent && exchange.primary && exchange.regular;
        due && self.deliveries.is_empty()
    }

    /// Sends the packets that others lack, once all members have told.
    fn send_all(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        if exchange.step != Step::Told || !exchange.regular {
            return;
        }
        let Some(told) = exchange.all_told() else {
            return;
        };
        let enough = self.rule.configured.as_ref().is_none_or(|own| {
            let mut lists = self.ring.electorates().iter().chain([own]);
            lists.all(|nodes| remembers_enough(nodes, &exchange.members, &told))
        });
        if !enough {
            self.counters.forgotten += 1;
            exchange.step = Step::Forgotten;
            return;
        }
        let outcome = Outcome::of(&exchange.members, &told);
        self.memory.forget_refuted(&outcome);
        if self.memory.tentative.len() < MOST_TENTATIVE {
            let last = outcome.last.as_ref().map(|(ring, _)| *ring);
            let held = last.map(|last| self.memory.held(last));
            let held = held.unwrap_or_default();
            exchange.send_all(outcome, |id| held.get(&id).copied());
        }
    }

    /// Ends the exchange, once all members have sent the packets that others lack: the view begins, or may have begun
    /// elsewhere.
    fn end(&mut self) {
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        let Some((outcome, payloads)) = exchange.all_ended() else {
            return;
        };
        let Some(me) = self.me else { return };
        let this = (exchange.ring, exchange.members.as_slice(), me);
        let Some(next) = self.memory.next::<P>(this, outcome, payloads) else {
            self.counters.incomplete += 1;
            exchange.step = Step::Done;
            return;
        };
        let notes = exchange.notes();
        exchange.step = Step::Done;
        if exchange.regular || mutants::on(Mutant::V10) {
            self.install(next, &notes);
        } else if !mutants::on(Mutant::V02) {
            self.counters.tentative += 1;
            self.memory.tentative.push(next);
        }
    }

    fn install(&mut self, next: Next, notes: &[Bytes]) {
        let Some(me) = self.me else { return };
        let Ok(at) = next
            .members
            .binary_search_by_key(&me.node, |member| member.node)
        else {
            return;
        };
        let view = View {
            ring: next.ring,
            members: next.members.clone(),
            me: at,
        };
        self.counters.installed += 1;
        self.counters.forced += next.stretch.forced;
        self.delivering = None;
        self.deliveries.extend(self.memory.install(next));
        self.backlog.rewind(self.memory.account.watermarks.of(me));
        self.path.install(self.now, &view, notes);
        self.ring.carried_on(self.now, view.ring);
        self.phase = Phase::Operating(view);
    }

    /// Submits the words of the exchange; returns whether there were any. A word that finds no room is tried again with
    /// the next input: tokens make room.
    pub(super) fn submit_words(&mut self) -> bool {
        let mut any = false;
        let Phase::Changing(exchange) = &mut self.phase else {
            return false;
        };
        while let Some(bytes) = exchange.unsent() {
            if self.ring.submit(self.now, Service::Safe, bytes).is_err() {
                break;
            }
            exchange.sent();
            any = true;
        }
        any
    }

    /// The time at which the application has to be told that it is in no view, if nothing comes before.
    pub(super) fn excluded_at(&self) -> Option<Time> {
        let Phase::Changing(exchange) = &self.phase else {
            return None;
        };
        if exchange.told_excluded || !exchange.regular {
            return None;
        }
        match exchange.step {
            Step::Forgotten => Some(self.now),
            _ if exchange.primary => None,
            _ => Some(exchange.since.after(self.rule.patience)),
        }
    }

    pub(super) fn tell_excluded(&mut self) {
        if self.excluded_at().is_none_or(|at| at > self.now) {
            return;
        }
        let Phase::Changing(exchange) = &mut self.phase else {
            return;
        };
        exchange.told_excluded = true;
        self.counters.excluded += 1;
        // Of several exclusions in a row only the last says anything.
        let is_excluded = |delivery: &mut Delivery| matches!(delivery, Delivery::Excluded(_));
        self.deliveries.pop_back_if(is_excluded);
        self.deliveries.push_back(Delivery::Excluded(exchange.ring));
    }
}
