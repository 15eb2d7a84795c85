//! What is only read.

use bytes::Bytes;
use imbl::OrdMap;

use super::action::Action;
use super::batch::Operation;
use super::outcome::{Fault, Outcome};
use super::state::Store;
use super::value::Value;
use super::{MOST_ANSWER_BYTES, MOST_RANGE_BYTES};

/// The fields of a key.
pub(super) type Fields = OrdMap<Bytes, Bytes>;

impl Store {
    /// All of it, if it is only read, and is answered with so many bytes as a message may be.
    pub fn look_all(&self, operations: &[Operation<'_>]) -> Option<Vec<Outcome>> {
        let bytes = operations
            .iter()
            .map(|operation| self.answer_bytes(operation));
        if bytes.sum::<usize>() > MOST_ANSWER_BYTES {
            return None;
        }
        let operations = operations.iter();
        operations.map(|operation| self.look(operation)).collect()
    }

    /// What is only read, as it is here; `None`: it changes something.
    pub fn look(&self, operation: &Operation<'_>) -> Option<Outcome> {
        let outcome = match operation {
            Operation::Key(key, action) => self.look_at(key, action)?,
            Operation::Range {
                from,
                to,
                limit,
                values,
            } => Ok(self.range((from, *to), *limit, *values)),
            Operation::Size => Ok(Outcome::Number(self.keys.len() as i64)),
            Operation::Clear => return None,
        };
        Some(outcome.unwrap_or_else(Outcome::Fault))
    }

    pub(super) fn look_at(
        &self,
        key: &[u8],
        action: &Action<'_>,
    ) -> Option<Result<Outcome, Fault>> {
        let entry = self.get(key);
        let fields =
            |of: &dyn Fn(&Fields) -> Outcome| self.fields_of(key).map(|fields| of(&fields));
        Some(match action {
            Action::Get => self.text_of(key).map(found),
            Action::Length => {
                let length = |text: Option<Bytes>| text.map_or(0, |text| text.len());
                let text = self.text_of(key);
                text.map(|text| Outcome::Number(length(text) as i64))
            }
            Action::Kind => Ok(Outcome::Kind(entry.map(|entry| entry.value.kind()))),
            Action::Exists => Ok(Outcome::Number(i64::from(entry.is_some()))),
            Action::LivesUntil => Ok(match entry.map(|entry| entry.until) {
                None => Outcome::Nothing,
                Some(None) => Outcome::Number(-1),
                Some(Some(until)) => Outcome::Number((until - self.now).cast_signed()),
            }),
            Action::Version => Ok(Outcome::Version(entry.map(|entry| entry.version))),
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

    /// What an operation is answered takes about so much.
    pub(super) fn answer_bytes(&self, operation: &Operation<'_>) -> usize {
        const HEAD: usize = 16;
        let Operation::Key(key, action) = operation else {
            return match operation {
                Operation::Range { .. } => MOST_RANGE_BYTES,
                _ => HEAD,
            };
        };
        let all = self.get(key).map_or(0, |entry| entry.bytes);
        match action {
            Action::Get
            | Action::Take
            | Action::GetAndLives(_)
            | Action::AllFields
            | Action::Set { get: true, .. } => HEAD + all,
            // Each may be asked for several times.
            Action::Fields(fields) => {
                let of = self.fields_of(key).unwrap_or_default();
                let bytes = |field: &&[u8]| of.get(*field).map_or(HEAD, |value| HEAD + value.len());
                fields.iter().map(bytes).sum()
            }
            _ => HEAD,
        }
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

    fn range(&self, (from, to): (&[u8], Option<&[u8]>), limit: u32, values: bool) -> Outcome {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut is_over = true;
        for (key, entry) in self.keys.range(Bytes::copy_from_slice(from)..) {
            if to.is_some_and(|to| **key >= *to) {
                break;
            }
            if !entry.lives(self.now) {
                continue;
            }
            if entries.len() >= limit as usize || bytes >= MOST_RANGE_BYTES {
                is_over = false;
                break;
            }
            bytes += key.len() + if values { entry.bytes } else { 0 };
            entries.push((key.clone(), values.then(|| entry.value.clone())));
        }
        Outcome::Entries(entries, !is_over)
    }
}

pub(super) fn found(text: Option<Bytes>) -> Outcome {
    text.map_or(Outcome::Nothing, Outcome::Text)
}
