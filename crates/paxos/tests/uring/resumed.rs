//! Applications that keep a state: a process that is started again begins behind one, its own or another's.

use std::collections::BTreeMap;

use rota_core::contract::{Process, Time};
use rota_paxos::uring::accounts::Command;
use rota_paxos::uring::{Snapshot, URing};

use super::judge::Judge;
use super::world::{MILLI, roll};

/// So many states are kept.
const KEPT: usize = 6;
/// Until then something is ordered about who needs what.
const ORDERED: u64 = 8_000 * MILLI;

/// The states of all applications.
pub struct Resumed {
    dice: u64,
    /// Of the foundation that goes on, the newest last.
    states: Vec<Snapshot>,
    /// One base for each place.
    told: BTreeMap<u64, Snapshot>,
    founded: u64,
    /// What is before this may be forgotten, by the word of any; none: anything may be.
    granted: Option<u64>,
    /// Until then nothing more is ordered about it.
    quiet: u64,
    pub commands: u64,
    /// How often somebody kept something longer since it was needed.
    pub held: u64,
    pub resumed: u64,
    pub within_messages: u64,
    pub compared: u64,
}

impl Resumed {
    pub fn new(seed: u64) -> Self {
        Self {
            dice: seed ^ 0x5e_ed,
            states: Vec::new(),
            told: BTreeMap::new(),
            founded: 0,
            granted: None,
            quiet: 0,
            commands: 0,
            held: 0,
            resumed: 0,
            within_messages: 0,
            compared: 0,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        roll(&mut self.dice) % end
    }

    /// States of what was before are of no use.
    fn belong(&mut self, judge: &Judge) {
        let founded = judge.founded().unwrap_or(0);
        if founded != self.founded {
            self.founded = founded;
            self.granted = None;
            self.states.clear();
            self.told.clear();
        }
    }

    /// A process begins: perhaps behind a state. Where that is.
    pub fn begin(&mut self, engine: &mut URing, judge: &Judge) -> Option<u64> {
        self.belong(judge);
        let count = self.states.len() as u64;
        if count == 0 || self.below(4) == 0 {
            return None;
        }
        let at = self.below(count) as usize;
        let base = self.states[at].clone();
        self.resumed += 1;
        self.within_messages += u64::from(!base.open.is_empty());
        let next = base.next;
        engine.resume(self.founded, base);
        Some(next)
    }

    /// The application has taken what there was: it wants a state soon, and has perhaps come to one.
    pub fn look_at(&mut self, (engine, me): (&mut URing, Process), now: u64, judge: &mut Judge) {
        self.belong(judge);
        let founded = engine.config().map_or(0, |config| config.founded);
        if founded == self.founded {
            self.judge_accounts(engine, judge);
        }
        while let Some(base) = engine.take_base() {
            if founded == self.founded {
                self.order((engine, me), now, base.next);
                self.keep(base, judge);
            }
        }
        if self.below(10) == 0 {
            let next = engine.learnt() + self.below(30);
            let _ = engine.want_snapshot(next);
        }
    }

    /// It has a state with everything before an instance.
    fn order(&mut self, (engine, me): (&mut URing, Process), now: u64, next: u64) {
        if now < self.quiet || now > ORDERED {
            return;
        }
        self.quiet = now + self.below(100 * MILLI);
        let command = match self.below(12) {
            0..4 if self.granted.is_none() => {
                let ring = engine.config().map(|config| config.ring.clone());
                let nodes = ring.into_iter().flatten().map(|who| who.node);
                Command::Hold(1, nodes.collect(), 0)
            }
            4 => Command::Pin(me.node, next, self.below(1 << 32)),
            5 => Command::Unpin(me.node),
            _ => Command::Mark(1, me.node, next),
        };
        self.commands += u64::from(engine.order_account(Time(now), (&command, now)));
    }

    /// Nothing is forgotten that is needed.
    fn judge_accounts(&mut self, engine: &URing, judge: &mut Judge) {
        let (table, kept) = (engine.accounts(), engine.kept());
        if table.bound().is_none() {
            // None was there yet, as far as this one has come.
            return;
        }
        let granted = self.granted.unwrap_or(0).max(table.granted());
        self.granted = Some(granted);
        self.held += u64::from(table.bound() == Some(kept));
        if kept > granted {
            judge.found(format!("forgotten up to {kept}, needed from {granted} on"));
        }
    }

    /// All have the same.
    fn keep(&mut self, base: Snapshot, judge: &mut Judge) {
        if let Some(other) = self.told.get(&base.next) {
            self.compared += 1;
            let of = |base: &Snapshot| {
                let open: Vec<_> = base.open.keys().copied().collect();
                let accounts = base.accounts.clone();
                (base.table.clone(), base.view.clone(), open, accounts)
            };
            if of(other) != of(&base) {
                judge.found(format!("base: {base:?}, and elsewhere {other:?}"));
            }
        }
        self.told.insert(base.next, base.clone());
        if self.states.len() == KEPT {
            self.states.remove(0);
        }
        self.states.push(base);
    }
}
