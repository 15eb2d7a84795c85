//! Answers that wait until they may be told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_core::contract::NodeId;
use rota_multiring::Place;

use crate::map::{Partition, Partitions};
use crate::outlook::{Outlook, Signal};
use crate::store::Witness;

/// What is done when something may be told.
type Then = Box<dyn FnOnce() + Send>;
/// Whoever wants to know how far this replica is.
type Listener = Box<dyn Fn(Signal) -> bool + Send>;

struct Inner {
    outlook: Outlook,
    waiting: BTreeMap<(Option<Place>, u64), Then>,
    last: u64,
    listeners: Vec<Listener>,
}

/// See the module's page.
pub(super) struct Desk(Mutex<Inner>);

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    pub(super) fn new(me: Partition, all: Partitions) -> Self {
        Self(Mutex::new(Inner {
            outlook: Outlook::new(me, all),
            waiting: BTreeMap::new(),
            last: 0,
            listeners: Vec::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something stands behind a command: this is done when that may be told.
    pub(super) fn tell_when(&self, behind: Option<Place>, then: impl FnOnce() + Send + 'static) {
        let mut inner = self.lock();
        if inner.outlook.may_tell(behind) {
            drop(inner);
            return then();
        }
        inner.last += 1;
        let name = (behind, inner.last);
        inner.waiting.insert(name, Box::new(then));
    }

    /// How many answers wait, and for whom.
    pub(super) fn waits(&self) -> (usize, Partitions) {
        let inner = self.lock();
        (inner.waiting.len(), inner.outlook.waits_for())
    }

    /// Somebody wants to know how far this replica is, now and as often as that changes, until it says no.
    pub(super) fn listen(&self, listener: Listener) {
        let mut inner = self.lock();
        if listener(inner.outlook.own()) {
            inner.listeners.push(listener);
        }
    }

    /// A replica of another partition says how far it is.
    pub(super) fn on_signal(&self, node: NodeId, partition: Partition, signal: Signal) {
        self.change(|outlook| outlook.on_signal(node, partition, signal));
    }

    fn change(&self, change: impl FnOnce(&mut Outlook)) {
        let mut inner = self.lock();
        let before = inner.outlook.own();
        change(&mut inner.outlook);
        let own = inner.outlook.own();
        if own == before {
            return;
        }
        inner.listeners.retain(|listener| listener(own));
        let mut ready = Vec::new();
        while let Some(entry) = inner.waiting.first_entry() {
            let (behind, _) = *entry.key();
            if behind > own.stable {
                break;
            }
            ready.push(entry.remove());
        }
        drop(inner);
        ready.into_iter().for_each(|then| then());
    }
}

/// The store's witness.
pub(super) struct AtDesk(pub(super) Arc<Desk>);

impl Witness for AtDesk {
    fn began(&mut self, seen: Option<Place>) {
        self.0.change(|outlook| outlook.begin(seen));
    }

    fn delivered(&mut self, place: Place, of: &Partitions) {
        self.0.change(|outlook| outlook.on_delivered(place, of));
    }
}
