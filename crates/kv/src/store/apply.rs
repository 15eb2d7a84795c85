//! The effects of commands on the state.

use bytes::Bytes;
use rota_multiring::Place;

use super::action::{Action, Life, Only, OnlyLife};
use super::batch::{Batch, Operation, Test};
use super::changed::Change;
use super::look::{Fields, found};
use super::outcome::{Answer, Fault, Outcome};
use super::state::Store;
use super::value::{Entry, Value, field_bytes};
use super::{MOST_FIELDS_BYTES, MOST_VALUE_BYTES};
use crate::map::{Map, Partitions};

/// A field and its bytes.
type Pair<'a> = (&'a [u8], &'a [u8]);

impl Batch<'_> {
    /// The partitions of a batch.
    pub fn to(&self, map: &Map) -> Partitions {
        let conditions = self.conditions.iter().map(|(key, _)| map.of_key(key));
        let mut to: Partitions = conditions.collect();
        for operation in &self.operations {
            match operation {
                Operation::Key(key, _) => {
                    to.insert(map.of_key(key));
                }
                Operation::Range { of: Some(of), .. }
                | Operation::Size(Some(of))
                | Operation::Clear(Some(of)) => {
                    to.insert(*of);
                }
                Operation::Time => {}
                Operation::Step(step) if let Some(only) = step.only_for() => {
                    to.insert(only);
                }
                // These operations are of all partitions.
                Operation::Range { .. }
                | Operation::Size(_)
                | Operation::Clear(_)
                | Operation::Step(_) => return map.partitions(),
            }
        }
        to
    }
}

fn text(bytes: &[u8]) -> Value {
    // A part of a message would hold all of it in memory.
    Value::Text(Bytes::copy_from_slice(bytes))
}

/// The number that a text is, if it is in its one usual form.
fn number(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

impl Store {
    /// Does the operations of this partition, if all conditions hold. `to`: all partitions of the batch. `left`: the
    /// bytes that answers of the message may still have.
    pub(super) fn run(
        &mut self,
        batch: &Batch<'_>,
        (to, place): (&Partitions, Place),
        left: &mut usize,
    ) -> Answer {
        let is_alone = to.len() == 1 && to.contains(&self.me);
        if !batch.conditions.is_empty() && to.len() > 1 {
            // The state of other partitions is not known here.
            return Answer::Spread;
        }
        if !is_alone && !batch.conditions.iter().all(|(key, _)| self.has(key)) {
            return Answer::Outcomes(Vec::new());
        }
        let holds = |(key, test): &(&[u8], Test<'_>)| self.holds(key, test);
        if !batch.conditions.iter().all(holds) {
            return Answer::Refused;
        }
        let is_torn = !is_alone && batch.writes();
        let mut room = match self.room_for(batch, is_torn, left) {
            Ok(room) => room,
            Err(not_done) => return not_done,
        };
        let mut outcomes = Vec::new();
        for (at, operation) in (0..).zip(&batch.operations) {
            if !is_alone && !self.is_own(operation) {
                continue;
            }
            let outcome = match room.has(self.answer_bytes(operation)) {
                true => self.operate(operation, place),
                // Values have become larger since the sender asked for their bytes. The operation changes nothing
                // then, either.
                false => Err(Fault::Answer),
            };
            outcomes.push((at, outcome.unwrap_or_else(Outcome::Fault)));
        }
        Answer::Outcomes(outcomes)
    }

    fn has(&self, key: &[u8]) -> bool {
        self.map.of_key(key) == self.me
    }

    fn operate(&mut self, operation: &Operation<'_>, place: Place) -> Result<Outcome, Fault> {
        match operation {
            Operation::Key(key, action) => self.act(key, action, place),
            Operation::Clear(_) => {
                self.keys.clear();
                self.recorder.note(Change::Cleared);
                Ok(Outcome::Done)
            }
            Operation::Step(step) => Ok(self.step(step)),
            all => Ok(self.look(all).unwrap_or(Outcome::Nothing)),
        }
    }

    fn holds(&self, key: &[u8], test: &Test<'_>) -> bool {
        let entry = self.get(key);
        match test {
            Test::Version(version) => entry.map(|entry| entry.version) == *version,
            Test::Value(value) => match (entry.map(|entry| &entry.value), value) {
                (Some(Value::Text(bytes)), Some(value)) => bytes == value,
                (entry, value) => entry.is_none() && value.is_none(),
            },
        }
    }

    fn act(&mut self, key: &[u8], action: &Action<'_>, place: Place) -> Result<Outcome, Fault> {
        if let Some(outcome) = self.look_at(key, action) {
            return outcome;
        }
        match action {
            Action::Take => {
                let text = self.text_of(key)?;
                self.remove(key);
                Ok(found(text))
            }
            Action::Set {
                value,
                life,
                only,
                get,
            } => self.set((key, value), (*life, *only, *get), place),
            Action::Append(more) => self.append(key, more, place),
            Action::Add(by) => self.add(key, *by, place),
            Action::Delete => Ok(Outcome::Number(i64::from(self.remove(key)))),
            Action::Lives(life, only) => Ok(self.lives(key, (*life, *only), place)),
            Action::GetAndLives(life) => {
                let text = self.text_of(key)?;
                if !matches!(life, Life::Keep) {
                    self.lives(key, (*life, OnlyLife::Always), place);
                }
                Ok(found(text))
            }
            Action::SetFields(set) => {
                let fields = self.fields_of(key)?;
                self.set_fields(key, (fields, set), place)
            }
            Action::DeleteFields(names) => {
                let fields = self.fields_of(key)?;
                Ok(self.delete_fields(key, (fields, names), place))
            }
            // All other actions only read.
            _ => Ok(Outcome::Nothing),
        }
    }

    /// The end of a life; `Err`: it is over already.
    fn until(&self, life: Life, before: Option<u64>) -> Result<Option<u64>, ()> {
        let until = match life {
            Life::Ever => return Ok(None),
            Life::Keep => return Ok(before),
            Life::Until(time) => time,
            Life::For(time) => self.asked.saturating_add(time),
        };
        match until > self.asked {
            true => Ok(Some(until)),
            false => Err(()),
        }
    }

    /// Gives a key a value, and a life.
    fn store(&mut self, key: &[u8], (value, bytes): (Value, usize), life: Life, place: Place) {
        let before = match life {
            Life::Keep => self.get(key).and_then(|entry| entry.until),
            _ => None,
        };
        match self.until(life, before) {
            Ok(until) => {
                let entry = Entry {
                    value,
                    bytes,
                    version: place,
                    until,
                };
                self.put(key, entry);
            }
            Err(()) => {
                self.remove(key);
            }
        }
    }

    /// Gives a key an entry, and tells watchers.
    fn put(&mut self, key: &[u8], entry: Entry) {
        self.end(key);
        let key = Bytes::copy_from_slice(key);
        self.recorder.set(&key, &entry);
        self.keys.put(key, entry);
    }

    /// Removes a key, if it is there, and tells watchers; whether it was there, and alive.
    fn remove(&mut self, key: &[u8]) -> bool {
        self.end(key);
        let was = self.keys.remove(key);
        if was {
            let key = Bytes::copy_from_slice(key);
            self.recorder.note(Change::Deleted(key));
        }
        was
    }

    /// Removes a key that has come to its end, and is still there: watchers are told of that before anything else
    /// becomes of the key.
    fn end(&mut self, key: &[u8]) {
        if self.keys.ending() == 0 && self.keys.is_settled() {
            return;
        }
        let entry = self.keys.get(key);
        if entry.is_some_and(|entry| !self.has_life(entry)) {
            self.keys.remove(key);
            let key = Bytes::copy_from_slice(key);
            self.recorder.note(Change::Expired(key));
        }
    }

    fn set(
        &mut self,
        (key, value): (&[u8], &[u8]),
        (life, only, get): (Life, Only, bool),
        place: Place,
    ) -> Result<Outcome, Fault> {
        let before = match get {
            true => self.text_of(key)?,
            false => None,
        };
        let is_done = match only {
            Only::Always => true,
            Only::New => self.get(key).is_none(),
            Only::Old => self.get(key).is_some(),
        };
        if is_done {
            if value.len() > MOST_VALUE_BYTES {
                return Err(Fault::TooLarge);
            }
            self.store(key, (text(value), value.len()), life, place);
        }
        Ok(match (get, is_done) {
            (true, _) => found(before),
            (false, true) => Outcome::Done,
            (false, false) => Outcome::Nothing,
        })
    }

    fn append(&mut self, key: &[u8], more: &[u8], place: Place) -> Result<Outcome, Fault> {
        let before = self.text_of(key)?.unwrap_or_default();
        let length = before.len() + more.len();
        if length > MOST_VALUE_BYTES {
            return Err(Fault::TooLarge);
        }
        let all = [&before, more].concat();
        self.store(key, (Value::Text(all.into()), length), Life::Keep, place);
        Ok(Outcome::Number(length as i64))
    }

    fn add(&mut self, key: &[u8], by: i64, place: Place) -> Result<Outcome, Fault> {
        let before = match self.text_of(key)? {
            Some(text) => number(&text).ok_or(Fault::NotANumber)?,
            None => 0,
        };
        let after = before.checked_add(by).ok_or(Fault::Overflow)?;
        let value = after.to_string();
        let length = value.len();
        let value = Value::Text(value.into());
        self.store(key, (value, length), Life::Keep, place);
        Ok(Outcome::Number(after))
    }

    /// Changes the life of a key, if there is the key and `only` allows it.
    fn lives(&mut self, key: &[u8], (life, only): (Life, OnlyLife), place: Place) -> Outcome {
        let Some(entry) = self.get(key).cloned() else {
            return Outcome::Nothing;
        };
        let wanted = self.until(life, entry.until);
        // A key that lives for ever lives longer than all others.
        let ever = |until: Option<u64>| until.unwrap_or(u64::MAX);
        let (old, new) = (ever(entry.until), wanted.map_or(0, ever));
        let may = match only {
            OnlyLife::Always => true,
            OnlyLife::Ever => entry.until.is_none(),
            OnlyLife::Limited => entry.until.is_some(),
            OnlyLife::Longer => new > old,
            OnlyLife::Shorter => new < old,
        };
        let is_changed = wanted != Ok(entry.until);
        if !may || (matches!(life, Life::Ever) && !is_changed) {
            return Outcome::Number(0);
        }
        match wanted {
            Ok(until) => {
                let entry = Entry {
                    until,
                    version: place,
                    ..entry
                };
                self.put(key, entry);
            }
            Err(()) => {
                self.remove(key);
            }
        }
        Outcome::Number(1)
    }

    fn set_fields(
        &mut self,
        key: &[u8],
        (mut fields, set): (Fields, &[Pair<'_>]),
        place: Place,
    ) -> Result<Outcome, Fault> {
        let mut bytes = self.get(key).map_or(0, |entry| entry.bytes);
        let is_large = |(field, value): &Pair<'_>| field.len() + value.len() > MOST_VALUE_BYTES;
        if set.iter().any(is_large) {
            return Err(Fault::TooLarge);
        }
        let mut new = 0;
        for (field, value) in set {
            let [field, value] = [field, value].map(|bytes| Bytes::copy_from_slice(bytes));
            bytes += field_bytes(&field, &value);
            match fields.insert(field.clone(), value) {
                Some(old) => bytes -= field_bytes(&field, &old),
                None => new += 1,
            }
        }
        if bytes > MOST_FIELDS_BYTES {
            return Err(Fault::TooLarge);
        }
        if !fields.is_empty() {
            self.store(key, (Value::Fields(fields), bytes), Life::Keep, place);
        }
        Ok(Outcome::Number(new))
    }

    fn delete_fields(
        &mut self,
        key: &[u8],
        (mut fields, names): (Fields, &[&[u8]]),
        place: Place,
    ) -> Outcome {
        let mut bytes = self.get(key).map_or(0, |entry| entry.bytes);
        let mut gone = 0;
        for name in names {
            if let Some((field, value)) = fields.remove_with_key(*name) {
                bytes -= field_bytes(&field, &value);
                gone += 1;
            }
        }
        if gone > 0 {
            match fields.is_empty() {
                true => drop(self.remove(key)),
                false => self.store(key, (Value::Fields(fields), bytes), Life::Keep, place),
            }
        }
        Outcome::Number(gone)
    }
}
