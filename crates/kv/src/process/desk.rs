//! Answers that wait until they may be told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_multiring::Place;

use super::lock;
use super::maps::Maps;
use super::recent::Recent;
use crate::map::{Map, Partition, Partitions};
use crate::outlook::{Outlook, Past, Signal};
use crate::store::{Changed, Witness};

/// The code that tells an answer.
type Then = Box<dyn FnOnce() + Send>;
/// A listener for the signals of this replica.
type Listener = Box<dyn Fn(Signal) + Send>;

/// The waiting answers, by the command that they stand behind and the order in which they came; with the time.
type Waiting = BTreeMap<(Option<Place>, u64), (Instant, Then)>;

struct Inner {
    outlook: Outlook,
    waiting: Waiting,
    last: u64,
    swept: Instant,
    patience: Duration,
    listeners: BTreeMap<u64, Listener>,
}

/// Answers that wait until they may be told.
pub(super) struct Desk(Mutex<Inner>);

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    /// A desk without answers. `patience`: the longest time that a client waits.
    pub(super) fn new(me: Partition, patience: Duration) -> Self {
        Self(Mutex::new(Inner {
            outlook: Outlook::new(me),
            waiting: BTreeMap::new(),
            last: 0,
            swept: Instant::now(),
            patience,
            listeners: BTreeMap::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0)
    }

    /// Tells an answer as soon as the command that it stands behind allows it.
    pub(super) fn tell_when(&self, behind: Option<Place>, then: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        if inner.outlook.may_tell(behind) {
            drop(inner);
            return then();
        }
        inner.last += 1;
        let (name, now) = ((behind, inner.last), Instant::now());
        inner.waiting.insert(name, (now, Box::new(then)));
        inner.sweep(now);
    }

    /// The last command of several partitions up to which all are stable.
    pub(super) fn stable(&self) -> Option<Place> {
        self.lock().outlook.stable()
    }

    /// The number of answers that wait, and the partitions for which they wait.
    pub(super) fn waits(&self) -> (usize, Partitions) {
        let inner = self.lock();
        (inner.waiting.len(), inner.outlook.waits_for())
    }

    /// Calls a listener with the signal of this replica, now and at each change, until the returned value is dropped.
    pub(super) fn listen(self: &Arc<Self>, listener: Listener) -> Listening {
        let mut inner = self.lock();
        listener(inner.outlook.own());
        inner.last += 1;
        let name = inner.last;
        inner.listeners.insert(name, listener);
        Listening(Arc::downgrade(self), name)
    }

    /// Takes in the signal of a replica of another partition.
    pub(super) fn on_signal(&self, node: NodeId, partition: Partition, signal: Signal) {
        self.change(|outlook| outlook.on_signal(node, partition, signal));
    }

    /// Calls all listeners, as the data that are told with the signal have changed.
    pub(super) fn tell_again(&self) {
        let inner = self.lock();
        let own = inner.outlook.own();
        inner.listeners.values().for_each(|listener| listener(own));
    }

    fn change(&self, change: impl FnOnce(&mut Outlook)) {
        let mut inner = self.lock();
        let before = inner.outlook.own();
        change(&mut inner.outlook);
        let own = inner.outlook.own();
        if own == before {
            return;
        }
        inner.listeners.values().for_each(|listener| listener(own));
        let mut ready = Vec::new();
        while let Some(entry) = inner.waiting.first_entry() {
            let (behind, _) = *entry.key();
            if behind > own.stable {
                break;
            }
            ready.push(entry.remove().1);
        }
        drop(inner);
        ready.into_iter().for_each(|then| then());
    }
}

/// A listener is called until this is dropped.
pub(super) struct Listening(Weak<Desk>, u64);

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(desk) = self.0.upgrade() {
            let listener = desk.lock().listeners.remove(&self.1);
            drop(listener);
        }
    }
}

impl Inner {
    /// Drops answers that nobody waits for: while a partition is away, they would wait here for ever, though the
    /// clients were told long ago that the outcome is not known.
    fn sweep(&mut self, now: Instant) {
        let patience = self.patience;
        if now - self.swept > patience / 4 {
            self.swept = now;
            self.waiting
                .retain(|_, (since, _)| now - *since <= patience);
        }
    }
}

/// The store's witness.
pub(super) struct AtDesk(
    pub(super) Arc<Desk>,
    pub(super) Arc<Maps>,
    pub(super) Arc<Recent>,
);

impl Witness for AtDesk {
    fn began(&mut self, applied: Option<Place>, past: &Past) {
        self.0.change(|outlook| outlook.begin(past.last(), past));
        self.2.lock().begin(applied);
    }

    fn delivered(&mut self, place: Place, of: &Partitions) {
        self.0.change(|outlook| outlook.on_delivered(place, of));
    }

    fn mapped(&mut self, map: &Arc<Map>) {
        self.1.set(map);
    }

    fn hears_changes(&self) -> bool {
        self.2.is_on()
    }

    fn changed(&mut self, changed: Changed) {
        self.2.lock().push(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_multiring::Rank;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const MANY: usize = 1_024;

    #[test]
    fn what_nobody_waits_for_any_more_is_not_kept() {
        let all: Partitions = [1, 2].map(Partition).into();
        let patience = Duration::from_millis(500);
        let desk = Arc::new(Desk::new(Partition(1), patience));
        let place = Place {
            round: 1,
            rank: Rank(9),
            instance: 1,
            index: 0,
        };
        let map = Map::even(&[Partition(1), Partition(2)]).expect("two");
        let (maps, recent) = (Arc::new(Maps::new(map)), Arc::new(Recent::new(0)));
        AtDesk(Arc::clone(&desk), maps, recent).delivered(place, &all);
        let told = Arc::new(AtomicUsize::new(0));
        let tell = || {
            let told = Arc::clone(&told);
            desk.tell_when(Some(place), move || {
                told.fetch_add(1, SeqCst);
            });
        };
        (0..2 * MANY).for_each(|_| tell());
        assert_eq!(desk.waits(), (2 * MANY, [Partition(2)].into()));
        std::thread::sleep(2 * patience);
        tell();
        assert_eq!(desk.waits().0, 1);
        let node = NodeId::new(5).expect("not 0");
        let signal = Signal {
            delivered: Some(place),
            stable: None,
        };
        desk.on_signal(node, Partition(2), signal);
        assert_eq!((desk.waits().0, told.load(SeqCst)), (0, 1));
    }
}
