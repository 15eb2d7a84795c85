//! Watchers that wait for changes.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use rota_multiring::Place;

use super::Then;
use crate::mutants::{self, Mutant};
use crate::store::{Change, Changed};

/// The number of beginnings of keys that are looked up for the changes of one place, at most: with more, all watchers
/// look for themselves.
const MOST_LOOKUPS: usize = 4_096;

/// The last place that a watcher has seen, and the code that wakes it.
type Watcher = (Option<Place>, Then);

/// Watchers that wait, by their prefixes.
#[derive(Default)]
pub(super) struct Waiting {
    of: HashMap<Bytes, BTreeMap<u64, Watcher>>,
    /// The number of prefixes of each length.
    lengths: BTreeMap<usize, usize>,
    /// The name of the last watcher.
    last: u64,
}

impl Waiting {
    pub(super) fn add(&mut self, prefix: &Bytes, watcher: Watcher) -> u64 {
        self.last += 1;
        let of = self.of.entry(prefix.clone()).or_insert_with(|| {
            *self.lengths.entry(prefix.len()).or_default() += 1;
            BTreeMap::new()
        });
        of.insert(self.last, watcher);
        self.last
    }

    pub(super) fn remove(&mut self, prefix: &Bytes, name: u64) {
        if let Some(of) = self.of.get_mut(prefix) {
            of.remove(&name);
        }
        self.forget(prefix);
    }

    /// Forgets a prefix that nobody waits for.
    fn forget(&mut self, prefix: &[u8]) {
        if self.of.get(prefix).is_none_or(|of| !of.is_empty()) {
            return;
        }
        self.of.remove(prefix);
        if let Some(count) = self.lengths.get_mut(&prefix.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
    }

    /// The number of watchers.
    pub(super) fn count(&self) -> usize {
        self.of.values().map(BTreeMap::len).sum()
    }

    /// Wakes all watchers.
    pub(super) fn wake_all(&mut self, up_to: Option<Place>) {
        self.lengths.clear();
        let all = std::mem::take(&mut self.of);
        for (_, then) in all.into_values().flat_map(BTreeMap::into_values) {
            then(up_to);
        }
    }

    /// Wakes the watchers that changes may concern. `before`: the place of the changes before these.
    pub(super) fn wake(&mut self, changed: &Changed, before: Option<Place>) {
        if self.of.is_empty() || mutants::on(Mutant::T18) {
            return;
        }
        let lookups = changed.changes.len().saturating_mul(self.lengths.len());
        let is_of_many = changed.changes.iter().any(|change| change.key().is_none());
        if is_of_many || lookups > MOST_LOOKUPS {
            return self.wake_all(before);
        }
        let lengths: Vec<usize> = self.lengths.keys().copied().collect();
        for key in changed.changes.iter().filter_map(Change::key) {
            for length in lengths.iter().take_while(|length| **length <= key.len()) {
                self.wake_prefix(&key[..*length], changed.place, before);
            }
        }
    }

    fn wake_prefix(&mut self, prefix: &[u8], place: Place, before: Option<Place>) {
        let Some(of) = self.of.get_mut(prefix) else {
            return;
        };
        // A watcher that was at a replica ahead of this one has seen the change already.
        let concerns = |_: &u64, (after, _): &mut Watcher| *after < Some(place);
        let woken: Vec<Watcher> = of.extract_if(.., concerns).map(|(_, of)| of).collect();
        self.forget(prefix);
        for (_, then) in woken {
            then(before);
        }
    }
}
