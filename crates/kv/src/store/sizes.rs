//! The bytes of answers to the operations of a batch, at most, before any of them is done.

use std::collections::BTreeMap;

use super::action::Action;
use super::batch::{Batch, Operation};
use super::{MOST_FIELDS_BYTES, MOST_RANGE_BYTES, MOST_VALUE_BYTES};

/// The bytes of a value in an answer, beside its own.
pub(super) const HEAD: usize = 16;
/// The bytes of a number as text, at most.
const NUMBER_BYTES: usize = 20;
/// The memory of a field beside its bytes, at most.
const FIELD_BYTES: usize = 64;

/// The bytes of values that operations before have written, at most.
#[derive(Default)]
pub(super) struct Sizes<'a> {
    keys: BTreeMap<&'a [u8], usize>,
    /// The longest value of each field that was written.
    fields: BTreeMap<(&'a [u8], &'a [u8]), usize>,
}

impl<'a> Sizes<'a> {
    /// The bytes of the answer to an operation, at most; `None`: its key was not written to. Of fields, only those that
    /// were written to count.
    pub(super) fn answer(&self, operation: &Operation<'a>) -> Option<usize> {
        let Operation::Key(key, action) = operation else {
            return None;
        };
        let all = *self.keys.get(key)?;
        match action {
            Action::Fields(names) => {
                let of = |name: &&'a [u8]| self.fields.get(&(*key, *name));
                let written = names.iter().filter_map(of);
                Some(written.map(|bytes| HEAD + bytes).sum())
            }
            _ if operation.most_answer() > 0 => Some(HEAD + all),
            _ => None,
        }
    }

    /// Notes what an operation writes. `before`: the bytes of a key as it is now.
    pub(super) fn note(&mut self, operation: &Operation<'a>, before: impl Fn(&[u8]) -> usize) {
        let Operation::Key(key, action) = operation else {
            return;
        };
        let old = || self.keys.get(key).copied().unwrap_or_else(|| before(key));
        let new = match action {
            // A condition may keep it from being done.
            Action::Set { value, .. } => old().max(value.len()),
            Action::Append(more) => old() + more.len(),
            Action::Add(_) => old().max(NUMBER_BYTES),
            Action::Delete => 0,
            Action::SetFields(set) => {
                let bytes =
                    |(field, value): &(&[u8], &[u8])| FIELD_BYTES + field.len() + value.len();
                old() + set.iter().map(bytes).sum::<usize>()
            }
            _ => return,
        };
        self.keys.insert(*key, new);
        if let Action::SetFields(set) = action {
            for (field, value) in set {
                let longest = self.fields.entry((*key, *field)).or_default();
                *longest = (*longest).max(value.len());
            }
        }
    }
}

impl Operation<'_> {
    /// The bytes of a partition's answer, at most, whatever values keys have; 0: they do not depend on these.
    pub(super) fn most_answer(&self) -> usize {
        let action = match self {
            Self::Key(_, action) => action,
            Self::Range { .. } => return MOST_RANGE_BYTES,
            Self::Size(_) | Self::Clear(_) | Self::Step(_) | Self::Time => return 0,
        };
        match action {
            Action::Get | Action::Take | Action::GetAndLives(_) | Action::Set { get: true, .. } => {
                HEAD + MOST_VALUE_BYTES
            }
            Action::Fields(names) => names.len() * (HEAD + MOST_VALUE_BYTES),
            Action::AllFields => HEAD + MOST_FIELDS_BYTES,
            _ => 0,
        }
    }
}

impl Batch<'_> {
    /// The bytes of a partition's answer, at most, whatever values keys have.
    pub fn most_answer(&self) -> usize {
        let operations = self.operations.iter();
        operations
            .map(Operation::most_answer)
            .fold(0, usize::saturating_add)
    }
}
