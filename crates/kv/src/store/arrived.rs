//! Keys of slots that have come from another partition, as they came; and the memory of many keys.

use bytes::Bytes;
use imbl::OrdMap;

use super::value::{Entry, Value};
use crate::slots::Slots;

/// The number of keys or fields whose memory takes long to free.
const MANY: usize = 10_000;

/// Slots that have arrived together, and their keys that are not settled yet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Arrived {
    pub(super) slots: Slots,
    pub(super) keys: OrdMap<Bytes, Entry>,
    pub(super) bytes: usize,
}

/// The slot of a key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    rota_resp::slot::of(key)
}

/// Frees memory in a thread of its own if that takes long: commands would wait meanwhile.
pub(super) fn free(keys: usize, what: impl Send + 'static) {
    if keys > MANY {
        // Without a thread the memory is freed here.
        let thread = std::thread::Builder::new().name("rota-kv-free".to_owned());
        let _ = thread.spawn(move || drop(what));
    }
}

/// Frees keys.
pub(super) fn free_keys(keys: OrdMap<Bytes, Entry>) {
    free(keys.len(), keys);
}

/// Frees an entry that nothing has come from.
pub(super) fn free_entry(entry: Entry) {
    if let Value::Fields(fields) = entry.value {
        free(fields.len(), fields);
    }
}

/// Frees an entry in whose place another one is. New fields have come from the old ones and share their memory, so
/// little of that is to be freed.
pub(super) fn free_replaced(old: Entry, has_fields: bool) {
    match has_fields {
        true => drop(old),
        false => free_entry(old),
    }
}

impl Arrived {
    pub(super) fn new(slots: Slots, keys: OrdMap<Bytes, Entry>, bytes: usize) -> Self {
        Self { slots, keys, bytes }
    }

    pub(super) fn put(&mut self, key: Bytes, entry: Entry) {
        self.bytes += entry.takes(&key);
        let has_fields = entry.has_fields();
        if let Some(old) = self.keys.insert(key.clone(), entry) {
            self.bytes -= old.takes(&key);
            free_replaced(old, has_fields);
        }
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<(Bytes, Entry)> {
        let (key, old) = self.keys.remove_with_key(key)?;
        self.bytes -= old.takes(&key);
        Some((key, old))
    }

    /// Takes out slots that go elsewhere.
    pub(super) fn leave(&mut self, slots: &Slots) {
        let all = std::mem::take(&mut self.slots);
        let (gone, stay): (Vec<u16>, Vec<u16>) = all.iter().partition(|slot| slots.has(*slot));
        self.slots = stay.into_iter().collect();
        if self.slots.is_empty() {
            self.bytes = 0;
            return free_keys(std::mem::take(&mut self.keys));
        }
        if gone.is_empty() {
            return;
        }
        let names = self.keys.keys().filter(|key| slots.has(slot_of(key)));
        let names: Vec<Bytes> = names.cloned().collect();
        for name in names {
            self.remove(&name);
        }
    }
}
