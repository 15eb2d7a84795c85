//! Operations that only read.

use bytes::Bytes;
use imbl::OrdMap;

use super::action::Action;
use super::batch::{Batch, Operation, Wanted};
use super::outcome::{Answer, Fault, Found, Outcome};
use super::pack::Pack;
use super::sizes::{HEAD, Sizes};
use super::state::Store;
use super::value::{Entry, Value};
use super::{LEAST_ANSWER_BYTES, MOST_ANSWER_BYTES, MOST_TOGETHER_BYTES};
use super::{MOST_LOOKED, MOST_RANGE_BYTES};

/// The fields of a key.
pub(super) type Fields = OrdMap<Bytes, Bytes>;

/// The bytes that answers may still have: to one batch, and to the whole message.
pub(super) struct Room<'a> {
    batch: usize,
    message: &'a mut usize,
}

impl Room<'_> {
    /// Whether there is room for these bytes, which are taken then.
    pub(super) const fn has(&mut self, bytes: usize) -> bool {
        let Some(rest) = self.batch.checked_sub(bytes) else {
            return false;
        };
        self.batch = rest;
        *self.message = self.message.saturating_sub(bytes);
        true
    }

    /// Takes all bytes, for an answer to a batch that only reads: they are as many as it needs.
    const fn take_all(self) {
        *self.message = self.message.saturating_sub(self.batch);
    }
}

/// What several packs of batches that only read have found at once.
#[derive(Debug)]
pub struct Looking {
    /// The bytes that answers may still have.
    left: usize,
    late: Option<u64>,
}

impl Default for Looking {
    fn default() -> Self {
        let (left, late) = (MOST_ANSWER_BYTES, None);
        Self { left, late }
    }
}

impl Looking {
    /// The time to which the order has to come, if a key was found that has come to its end by the time at a sender, and
    /// not yet by the order's.
    pub const fn late(&self) -> Option<u64> {
        self.late
    }
}

impl Store {
    /// The answers to batches that only read, by the state here: as they would be if the batches were ordered now. Of a
    /// batch that writes, nothing is done: the answer says whether it would have room for its answer.
    pub fn look_at_pack(&self, pack: &[u8], looking: &mut Looking) -> Vec<Answer> {
        let batches = Pack::decode(pack).map_or_else(Vec::new, |pack| pack.0);
        let answer = |bytes| match Batch::decode(bytes) {
            Some(batch) if batch.only_looks() => {
                let answer = self.look_at_batch(&batch, &mut looking.left);
                let late = self.is_late_for(&batch, &answer).then_some(batch.stamp);
                looking.late = looking.late.max(late);
                answer
            }
            Some(batch) => self.look_for_room(&batch),
            None => Answer::Unreadable,
        };
        batches.into_iter().map(answer).collect()
    }

    fn look_at_batch(&self, batch: &Batch<'_>, left: &mut usize) -> Answer {
        if self.is_moving(batch) {
            return Answer::Moving;
        }
        match self.room_for(batch, false, left) {
            Ok(room) => room.take_all(),
            Err(not_done) => return not_done,
        }
        let operations = (0..).zip(&batch.operations);
        let own = operations.filter(|(_, operation)| self.is_own(operation));
        let outcome = |operation| self.look(operation).unwrap_or(Outcome::Nothing);
        let outcomes = own.map(|(at, operation)| (at, outcome(operation)));
        Answer::Outcomes(outcomes.collect())
    }

    /// Whether a key of a batch that only reads, or one that a range has shown, has come to its end by the time at the
    /// sender, and not yet by the order's.
    fn is_late_for(&self, batch: &Batch<'_>, answer: &Answer) -> bool {
        if batch.stamp <= self.now || self.keys.ending() == 0 {
            return false;
        }
        let is_over = |entry: &Entry| !entry.lives(batch.stamp);
        let is_late = |key: &[u8]| self.get(key).is_some_and(is_over);
        let mut keys = batch.operations.iter().filter_map(Operation::key);
        let has_late = |outcome: &Outcome| match outcome {
            Outcome::Entries(entries, _) => entries.iter().any(|(key, _)| is_late(key)),
            _ => false,
        };
        keys.any(is_late)
            || match answer {
                Answer::Outcomes(outcomes) => outcomes.iter().any(|(_, of)| has_late(of)),
                _ => false,
            }
    }

    /// Whether a batch that writes would have room for its answer by the state here: nothing is done.
    fn look_for_room(&self, batch: &Batch<'_>) -> Answer {
        match self.is_moving(batch) {
            true => Answer::Moving,
            false if self.most_answer(&batch.operations) > MOST_ANSWER_BYTES => Answer::TooMuch,
            false => Answer::Outcomes(Vec::new()),
        }
    }

    /// The room for the answer to a batch, or why nothing of it is done. `is_torn`: others would do their part of it all
    /// the same. `left`: the bytes that answers of the message may still have. What others read does not keep a batch
    /// from its writes.
    pub(super) fn room_for<'a>(
        &self,
        batch: &Batch<'_>,
        is_torn: bool,
        left: &'a mut usize,
    ) -> Result<Room<'a>, Answer> {
        let (is_first, needs) = match is_torn {
            true => (true, 0),
            false => (
                *left == MOST_ANSWER_BYTES,
                self.most_answer(&batch.operations),
            ),
        };
        let least = if batch.writes() {
            LEAST_ANSWER_BYTES
        } else {
            0
        };
        match needs {
            _ if needs > MOST_ANSWER_BYTES => Err(Answer::TooMuch),
            _ if !is_first && needs > (*left).max(least) => Err(Answer::Later),
            _ => Ok(Room {
                batch: match is_torn {
                    true => MOST_TOGETHER_BYTES,
                    false => needs,
                },
                message: left,
            }),
        }
    }

    /// The outcomes of operations that only read; `None`: some operation writes, or the answer is larger than that to a
    /// message may be.
    pub fn look_all(&self, operations: &[Operation<'_>]) -> Option<Vec<Outcome>> {
        if self.most_answer(operations) > MOST_ANSWER_BYTES {
            return None;
        }
        let operations = operations.iter();
        operations.map(|operation| self.look(operation)).collect()
    }

    /// The outcome of an operation that only reads, by the state here; `None`: the operation changes something.
    pub fn look(&self, operation: &Operation<'_>) -> Option<Outcome> {
        let outcome = match operation {
            Operation::Key(key, action) => self.look_at(key, action)?,
            Operation::Range {
                from,
                to,
                limit,
                wanted,
                ..
            } => Ok(self.range((from, *to), *limit, *wanted)),
            Operation::Size(_) => Ok(Outcome::Number(self.keys.len() as i64)),
            Operation::Clear(_) | Operation::Step(_) | Operation::Time => return None,
        };
        Some(outcome.unwrap_or_else(Outcome::Fault))
    }

    pub(super) fn look_at(
        &self,
        key: &[u8],
        action: &Action<'_>,
    ) -> Option<Result<Outcome, Fault>> {
        let entry = || self.get(key);
        let fields =
            |of: &dyn Fn(&Fields) -> Outcome| self.fields_of(key).map(|fields| of(&fields));
        Some(match action {
            Action::Get => self.text_of(key).map(found),
            Action::Length => {
                let length = |text: Option<Bytes>| text.map_or(0, |text| text.len());
                let text = self.text_of(key);
                text.map(|text| Outcome::Number(length(text) as i64))
            }
            Action::Kind => Ok(Outcome::Kind(entry().map(|entry| entry.value.kind()))),
            Action::Exists => Ok(Outcome::Number(i64::from(entry().is_some()))),
            Action::LivesUntil => Ok(match entry().map(|entry| entry.until) {
                None => Outcome::Nothing,
                Some(None) => Outcome::Number(-1),
                // It is there though its time may be over: the order has not come to that yet.
                Some(Some(until)) => Outcome::Number(until.saturating_sub(self.told).cast_signed()),
            }),
            Action::Place => Ok(Outcome::Version(self.applied)),
            Action::Version => Ok(Outcome::Version(entry().map(|entry| entry.version))),
            Action::Fields(wanted) => fields(&|fields| {
                let of = |field: &&[u8]| fields.get(*field).cloned();
                Outcome::Texts(wanted.iter().map(of).collect())
            }),
            Action::CountFields => fields(&|fields| Outcome::Number(fields.len() as i64)),
            Action::AllFields => fields(&|fields| {
                let pair = |(field, value): (&Bytes, &Bytes)| (field.clone(), value.clone());
                Outcome::Pairs(fields.iter().map(pair).collect())
            }),
            _ => return None,
        })
    }

    /// The bytes of the answer to an operation, about, as far as they depend on the values of keys. To be asked of keys
    /// of this partition.
    pub(super) fn answer_bytes(&self, operation: &Operation<'_>) -> usize {
        let (key, action) = match operation {
            Operation::Key(key, action) => (key, action),
            Operation::Range { .. } => return MOST_RANGE_BYTES,
            _ => return 0,
        };
        let all = || self.get(key).map_or(0, |entry| HEAD + entry.bytes);
        match action {
            Action::Get
            | Action::Take
            | Action::GetAndLives(_)
            | Action::AllFields
            | Action::Set { get: true, .. } => all(),
            // A command may ask for the same field several times.
            Action::Fields(fields) => {
                let of = self.fields_of(key).unwrap_or_default();
                let bytes = |field: &&[u8]| of.get(*field).map_or(0, |value| HEAD + value.len());
                fields.iter().map(bytes).sum()
            }
            _ => 0,
        }
    }

    /// Whether some of an operation is done here; a partition answers nothing about others' keys.
    pub(super) fn is_own(&self, operation: &Operation<'_>) -> bool {
        match operation {
            Operation::Key(key, _) => self.map.of_key(key) == self.me,
            Operation::Range { of, .. } | Operation::Size(of) | Operation::Clear(of) => {
                of.is_none_or(|of| of == self.me)
            }
            Operation::Step(step) => step.only_for().is_none_or(|only| only == self.me),
            Operation::Time => false,
        }
    }

    /// The bytes of the answers to all operations that are done here, at most, if they are done now one after the other.
    pub(super) fn most_answer(&self, operations: &[Operation<'_>]) -> usize {
        let mut sizes = Sizes::default();
        let own = operations.iter().filter(|operation| self.is_own(operation));
        if operations
            .iter()
            .all(|operation| operation.most_answer() == 0)
        {
            return 0;
        }
        own.map(|operation| {
            let now = || self.answer_bytes(operation);
            let bytes = sizes
                .answer(operation)
                .map_or_else(now, |written| match operation {
                    // The field may be one that the key had before.
                    Operation::Key(_, Action::Fields(_)) => written + now(),
                    _ => written,
                });
            let before = |key: &[u8]| self.get(key).map_or(0, |entry| entry.bytes);
            sizes.note(operation, before);
            bytes
        })
        .fold(0, usize::saturating_add)
    }

    pub(super) fn text_of(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        match self.get(key).map(|entry| &entry.value) {
            None => Ok(None),
            Some(Value::Text(bytes)) => Ok(Some(bytes.clone())),
            Some(Value::Fields(_)) => Err(Fault::Kind),
        }
    }

    pub(super) fn fields_of(&self, key: &[u8]) -> Result<Fields, Fault> {
        match self.get(key).map(|entry| &entry.value) {
            None => Ok(OrdMap::new()),
            Some(Value::Fields(fields)) => Ok(fields.clone()),
            Some(Value::Text(_)) => Err(Fault::Kind),
        }
    }

    fn range(&self, (from, to): (&[u8], Option<&[u8]>), limit: u32, wanted: Wanted) -> Outcome {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (looked, (key, entry)) in self.keys.range(from).enumerate() {
            if to.is_some_and(|to| **key >= *to) {
                break;
            }
            // Keys that count no more are looked at all the same.
            let Some(entry) = entry else {
                if looked >= MOST_LOOKED {
                    return Outcome::Entries(entries, Some(key.clone()));
                }
                continue;
            };
            let found = shown(entry, wanted);
            let takes = key.len()
                + match &found {
                    Found::Value(_) => entry.bytes,
                    _ => 0,
                };
            let is_full = entries.len() >= limit as usize || bytes + takes > MOST_RANGE_BYTES;
            // Keys whose time is over count here, too.
            if looked >= MOST_LOOKED || is_full && looked > 0 {
                return Outcome::Entries(entries, Some(key.clone()));
            }
            if self.has_life(entry) {
                bytes += takes;
                entries.push((key.clone(), found));
            }
        }
        Outcome::Entries(entries, None)
    }
}

pub(super) fn found(text: Option<Bytes>) -> Outcome {
    text.map_or(Outcome::Nothing, Outcome::Text)
}

/// The data of a key in a range. A client asks by its key for a value that is too large to be shown with others.
fn shown(entry: &Entry, wanted: Wanted) -> Found {
    match wanted {
        Wanted::Names => Found::Name,
        Wanted::Values if entry.bytes <= MOST_RANGE_BYTES / 2 => Found::Value(entry.value.clone()),
        Wanted::Kinds | Wanted::Values => Found::Kind(entry.value.kind()),
    }
}
