//! Applications that keep a state: whoever is started again begins behind one, its own or another's.

use std::collections::BTreeMap;

use rota_paxos::uring::{Base, URing};

use super::judge::Judge;
use super::world::roll;

/// So many states are kept.
const KEPT: usize = 6;

/// The states of all applications.
pub struct Resumed {
    dice: u64,
    /// Of the foundation that goes on, the newest last.
    states: Vec<Base>,
    /// One base for each place.
    told: BTreeMap<u64, Base>,
    founded: u64,
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
    pub fn look_at(&mut self, engine: &mut URing, judge: &mut Judge) {
        self.belong(judge);
        let founded = engine.config().map_or(0, |config| config.founded);
        while let Some(base) = engine.take_base() {
            if founded == self.founded {
                self.keep(base, judge);
            }
        }
        if self.below(10) == 0 {
            let next = engine.learnt() + self.below(30);
            let _ = engine.want_base(next);
        }
    }

    /// All have the same.
    fn keep(&mut self, base: Base, judge: &mut Judge) {
        if let Some(other) = self.told.get(&base.next) {
            self.compared += 1;
            let of = |base: &Base| {
                let open: Vec<_> = base.open.keys().copied().collect();
                (base.table.clone(), base.view.clone(), open)
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
