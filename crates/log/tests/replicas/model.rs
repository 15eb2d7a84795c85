//! The simplest model of logs.

use std::collections::BTreeMap;

use rota_log::machine::{
    Answer, Append, Batch, Fault, Keep, Limits, Operation, Outcome, encode_entry,
};

/// A log.
#[derive(Clone, Default)]
pub struct Log {
    pub first: u64,
    /// All entries that there ever were, as they are told.
    pub entries: Vec<Vec<u8>>,
    pub is_sealed: bool,
    limits: Limits,
    /// Who has appended what where.
    named: BTreeMap<(Vec<u8>, Vec<u8>), u64>,
}

/// All of them.
#[derive(Clone, Default)]
pub struct Model(pub BTreeMap<Vec<u8>, Log>);

impl Log {
    pub fn next(&self) -> u64 {
        self.entries.len() as u64 + 1
    }

    fn keep(&mut self, keep: Keep) -> u64 {
        let first = match keep {
            Keep::Last(count) => self.next().saturating_sub(count),
            Keep::From(position) => position,
        };
        let first = first.clamp(self.first, self.next());
        first - std::mem::replace(&mut self.first, first)
    }
}

impl Model {
    /// What a batch does, and is answered.
    pub fn apply(&mut self, batch: &Batch<'_>) -> Answer {
        let mut then = self.clone();
        let mut outcomes = Vec::new();
        for (at, operation) in batch.operations.iter().enumerate() {
            match then.operation(operation) {
                Outcome::Fault(fault) if batch.is_atomic => {
                    return Answer::Refused(at as u32, fault);
                }
                outcome => outcomes.push(outcome),
            }
        }
        *self = then;
        Answer::Outcomes(outcomes)
    }

    fn make(&mut self, name: &[u8]) -> &mut Log {
        let new = || Log {
            first: 1,
            ..Log::default()
        };
        self.0.entry(name.to_vec()).or_insert_with(new)
    }

    fn operation(&mut self, operation: &Operation<'_>) -> Outcome {
        let is_there = self.0.contains_key(operation.log());
        match operation {
            Operation::Append(append) => self.append(append),
            Operation::Make(_, _, true) if is_there => Outcome::Nothing,
            Operation::Make(name, limits, _) => {
                let log = self.make(name);
                log.limits = *limits;
                if let Some(most) = limits.entries {
                    log.keep(Keep::Last(most));
                }
                Outcome::Done
            }
            Operation::Trim(name, keep, _) => {
                Outcome::Gone(self.0.get_mut(*name).map_or(0, |log| log.keep(*keep)))
            }
            Operation::Seal(_) | Operation::Delete(_) if !is_there => Outcome::Nothing,
            Operation::Seal(name) => {
                self.make(name).is_sealed = true;
                Outcome::Done
            }
            Operation::Delete(name) => {
                self.0.remove(*name);
                Outcome::Done
            }
        }
    }

    fn append(&mut self, append: &Append<'_>) -> Outcome {
        let named = append
            .producer
            .map(|(of, name)| (of.to_vec(), name.to_vec()));
        let known = self.0.get(append.log);
        if let (Some(log), Some(named)) = (known, &named)
            && let Some(at) = log.named.get(named)
        {
            return Outcome::Again(*at);
        }
        if known.is_none() && !append.makes {
            return Outcome::Nothing;
        }
        if known.is_some_and(|log| log.is_sealed) {
            return Outcome::Fault(Fault::Sealed);
        }
        let next = known.map_or(1, Log::next);
        if append.expected.is_some_and(|expected| expected != next) {
            return Outcome::Fault(Fault::Expected(next));
        }
        let log = self.make(append.log);
        for fields in &append.entries {
            let mut entry = Vec::new();
            encode_entry(log.next(), fields, &mut entry);
            log.entries.push(entry);
        }
        log.named.extend(named.map(|named| (named, next)));
        let limit = log.limits.entries.map(Keep::Last);
        for keep in [append.keep, limit].into_iter().flatten() {
            log.keep(keep);
        }
        Outcome::Appended(next)
    }
}
