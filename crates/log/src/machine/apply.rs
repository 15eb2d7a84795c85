//! The effects of commands on the logs.

use bytes::Bytes;
use rota_multiring::Place;

use super::log::{Limits, Log};
use super::operation::{Append, Batch, Keep, Operation, Pack};
use super::outcome::{Answer, Fault, Outcome};
use super::producers::{self, Known};
use super::state::Logs;
use super::{MOST_ENTRY_BYTES, MOST_LOGS, MOST_NAME_BYTES, Position};
use crate::mutants::{self, Mutant};
use crate::store::record::{Run, RunBuilder};

/// An effect on the entries of a log, which is named by its number.
#[derive(Clone, Debug)]
pub enum Effect {
    /// New entries.
    Append(Run),
    /// Entries before this position go.
    Trim(u64, Position),
    /// All entries go.
    Delete(u64),
}

/// The result of a message.
#[derive(Debug, Default)]
pub struct Applied {
    /// The answers to all batches that were packed into it.
    pub answers: Vec<u8>,
    /// The effects on entries, in this order.
    pub effects: Vec<Effect>,
    /// The logs that have changed, by their names.
    pub changed: Vec<Bytes>,
    /// The number of batches that could not be read.
    pub unreadable: u64,
}

/// The number of entries of a message that have places of their own: no message has more entries.
const MOST_IN_MESSAGE: u32 = 1 << 16;

/// The result of a message while it is applied.
struct Applying {
    place: Place,
    /// The number of entries until now.
    count: u32,
    applied: Applied,
    /// New entries of one log.
    building: Option<(u64, RunBuilder)>,
    payload: Vec<u8>,
}

impl Applying {
    /// The place of the next entry in the order of all logs.
    fn next_place(&mut self) -> Place {
        let at = self.count.min(MOST_IN_MESSAGE - 1);
        self.count += 1;
        let index = self.place.index.saturating_mul(MOST_IN_MESSAGE);
        Place {
            index: index.saturating_add(at),
            ..self.place
        }
    }

    fn entry(&mut self, log: &Log, position: Position, stamp: u64, fields: &[u8]) {
        let place = self.next_place();
        if self.building.as_ref().is_none_or(|(id, _)| *id != log.id) {
            self.finish();
            self.building = Some((log.id, RunBuilder::new(log.id, position)));
        }
        encode_entry(position, fields, &mut self.payload);
        if let Some((_, run)) = &mut self.building {
            run.push(place, stamp, &self.payload);
        }
    }

    fn finish(&mut self) {
        let run = self.building.take().and_then(|(_, run)| run.finish());
        self.applied.effects.extend(run.map(Effect::Append));
    }

    fn effect(&mut self, effect: Effect) {
        self.finish();
        self.applied.effects.push(effect);
    }

    /// The state of the result, for [`Self::back_to`]. No run may be half built.
    const fn mark(&self) -> (u32, usize, usize) {
        let applied = &self.applied;
        (self.count, applied.effects.len(), applied.changed.len())
    }

    /// Takes back the part of the result since a mark.
    fn back_to(&mut self, (count, effects, changed): (u32, usize, usize)) {
        self.building = None;
        self.count = count;
        self.applied.effects.truncate(effects);
        self.applied.changed.truncate(changed);
    }

    fn changed(&mut self, name: &[u8]) {
        let changed = &mut self.applied.changed;
        if changed.last().is_none_or(|last| last != name) {
            changed.push(Bytes::copy_from_slice(name));
        }
    }
}

/// Encodes an entry in the form for clients of Redis' streams: its id, and its fields, which are encoded already.
pub fn encode_entry(position: Position, fields: &[u8], out: &mut Vec<u8>) {
    let id = format!("{position}-0");
    out.clear();
    out.extend_from_slice(format!("*2\r\n${}\r\n{id}\r\n", id.len()).as_bytes());
    out.extend_from_slice(fields);
}

impl Logs {
    /// Applies a message that was ordered at this place: batches, each by itself. `None`: the bytes are no message.
    pub fn apply(&mut self, place: Place, message: &[u8]) -> Option<Applied> {
        let batches = Pack::decode(message)?;
        let mut applying = Applying {
            place,
            count: 0,
            applied: Applied::default(),
            building: None,
            payload: Vec::new(),
        };
        self.last = Some(place);
        for bytes in batches.0 {
            let answer = match Batch::decode(bytes) {
                Some(batch) => self.batch(&batch, &mut applying),
                None => {
                    applying.applied.unreadable += 1;
                    Answer::Unreadable
                }
            };
            answer.put(&mut applying.applied.answers);
        }
        applying.finish();
        Some(applying.applied)
    }

    fn batch(&mut self, batch: &Batch<'_>, applying: &mut Applying) -> Answer {
        self.stamp = self.stamp.max(batch.stamp);
        if batch.is_atomic && !mutants::on(Mutant::D01) {
            return self.atomic(batch, applying);
        }
        let operations = batch.operations.iter();
        let outcomes = operations.map(|operation| {
            self.operation(operation, applying)
                .unwrap_or_else(Outcome::Fault)
        });
        Answer::Outcomes(outcomes.collect())
    }

    /// Does all operations of a batch, or none: a copy of the logs takes no time.
    fn atomic(&mut self, batch: &Batch<'_>, applying: &mut Applying) -> Answer {
        applying.finish();
        let before = (self.clone(), applying.mark());
        let mut outcomes = Vec::with_capacity(batch.operations.len());
        for (at, operation) in batch.operations.iter().enumerate() {
            match self.operation(operation, applying) {
                Ok(outcome) => outcomes.push(outcome),
                Err(fault) => {
                    *self = before.0;
                    applying.back_to(before.1);
                    return Answer::Refused(at as u32, fault);
                }
            }
        }
        Answer::Outcomes(outcomes)
    }

    fn make(&mut self, name: &[u8], limits: Limits) -> Result<(), Fault> {
        name_within_limits(name)?;
        if self.of.len() >= MOST_LOGS {
            return Err(Fault::TooMany);
        }
        if self.last_id == 0 || !mutants::on(Mutant::D11) {
            self.last_id += 1;
        }
        let (log, name) = (Log::new(self.last_id, limits), Bytes::copy_from_slice(name));
        self.by_id.insert(log.id, name.clone());
        self.of.insert(name, log);
        Ok(())
    }

    fn operation(
        &mut self,
        operation: &Operation<'_>,
        applying: &mut Applying,
    ) -> Result<Outcome, Fault> {
        let place = applying.place;
        let outcome = match operation {
            Operation::Append(append) => return self.append(append, applying),
            Operation::Make(name, limits, is_new) => match self.of.get_mut(*name) {
                Some(_) if *is_new => Outcome::Nothing,
                Some(log) => {
                    (log.limits, log.changed) = (*limits, Some(place));
                    trim(log, limits.entries.map(Keep::Last), applying);
                    Outcome::Done
                }
                None => {
                    self.make(name, *limits)?;
                    Outcome::Done
                }
            },
            Operation::Trim(name, keep, id) => match self.of.get_mut(*name) {
                Some(log) if id.is_none_or(|id| id == log.id) => {
                    log.changed = Some(place);
                    Outcome::Gone(trim(log, Some(*keep), applying))
                }
                Some(_) | None => Outcome::Gone(0),
            },
            Operation::Seal(name) => match self.of.get_mut(*name) {
                Some(log) => {
                    (log.is_sealed, log.changed) = (true, Some(place));
                    Outcome::Done
                }
                None => Outcome::Nothing,
            },
            Operation::Delete(name) => match self.of.remove(*name) {
                Some(log) => {
                    self.by_id.remove(&log.id);
                    applying.effect(Effect::Delete(log.id));
                    Outcome::Done
                }
                None => Outcome::Nothing,
            },
        };
        applying.changed(operation.log());
        Ok(outcome)
    }

    fn append(&mut self, append: &Append<'_>, applying: &mut Applying) -> Result<Outcome, Fault> {
        within_limits(append)?;
        if !self.of.contains_key(append.log) {
            if !append.makes {
                return Ok(Outcome::Nothing);
            }
            // A log that gets no entry is not made.
            if append.expected.is_some_and(|wanted| wanted != 1) {
                return Err(Fault::Expected(1));
            }
            self.make(append.log, Limits::default())?;
        }
        let stamp = self.stamp;
        let Some(log) = self.of.get_mut(append.log) else {
            return Ok(Outcome::Nothing);
        };
        let known = append
            .producer
            .map_or(Known::Nothing, |named| log.producers.find(named));
        match known {
            Known::At(at) if !mutants::on(Mutant::D02) => return Ok(Outcome::Again(at)),
            Known::Forgotten => return Err(Fault::Forgotten),
            Known::At(_) | Known::Nothing => {}
        }
        if log.is_sealed && !mutants::on(Mutant::D03) {
            return Err(Fault::Sealed);
        }
        let first = log.next;
        if append.expected.is_some_and(|wanted| wanted != first) && !mutants::on(Mutant::D04) {
            return Err(Fault::Expected(first));
        }
        for fields in &append.entries {
            applying.entry(log, log.next, stamp, fields);
            log.next += 1;
        }
        if let Some(named) = append.producer {
            log.producers.note(named, first);
        }
        log.changed = Some(applying.place);
        let limit = log.limits.entries.map(Keep::Last);
        for keep in [append.keep, limit] {
            trim(log, keep, applying);
        }
        applying.changed(append.log);
        Ok(Outcome::Appended(first))
    }
}

/// Trims a log; the number of entries that went.
fn trim(log: &mut Log, keep: Option<Keep>, applying: &mut Applying) -> u64 {
    let Some(keep) = keep else { return 0 };
    let first = log.first_then(keep);
    let gone = first - log.first;
    if gone > 0 && !mutants::on(Mutant::D09) {
        log.first = first;
        applying.effect(Effect::Trim(log.id, first));
    }
    gone
}

fn name_within_limits(name: &[u8]) -> Result<(), Fault> {
    match name.len() <= MOST_NAME_BYTES {
        true => Ok(()),
        false => Err(Fault::TooLarge),
    }
}

fn within_limits(append: &Append<'_>) -> Result<(), Fault> {
    name_within_limits(append.log)?;
    let is_large = |entry: &&[u8]| entry.len() > MOST_ENTRY_BYTES;
    let is_long = |name: &[u8]| name.len() > producers::MOST_BYTES;
    let named = append.producer;
    let is_named_long = named.is_some_and(|(of, name)| is_long(of) || is_long(name));
    match append.entries.iter().any(is_large) || is_named_long {
        true => Err(Fault::TooLarge),
        false => Ok(()),
    }
}
