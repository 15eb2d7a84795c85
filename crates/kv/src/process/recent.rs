//! The recent changes of keys, for all clients of a process.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use rota_multiring::Place;
use tokio::sync::oneshot;

use super::lock;
use crate::changes::{Changes, Part, Prefix, Trimmed};

/// The recent changes of keys, which the thread that applies commands takes in.
pub(super) struct Recent {
    changes: Mutex<Changes>,
    /// The bytes that are kept, at most.
    pub(super) most_bytes: u64,
    /// The number of changes that watchers were told.
    pub(super) told: AtomicU64,
    /// The number of times that a watcher could not go on from where it was.
    pub(super) trimmed: AtomicU64,
}

/// The news for a watcher: [`crate::changes::Then`].
pub(super) type News = oneshot::Receiver<Option<Place>>;

/// The changes that were read; and a watcher's place among those that wait, if there is nothing to be told.
pub(super) type Read = (Part, Option<(Waits, News)>);

/// A watcher waits until this is dropped.
pub(super) struct Waits {
    recent: Arc<Recent>,
    prefix: Prefix,
    name: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.recent.lock().give_up(&self.prefix, self.name);
    }
}

impl Recent {
    pub(super) fn new(most_bytes: u64) -> Self {
        let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        Self {
            changes: Mutex::new(Changes::new(most)),
            most_bytes,
            told: AtomicU64::new(0),
            trimmed: AtomicU64::new(0),
        }
    }

    /// Whether changes are kept at all.
    pub(super) const fn is_on(&self) -> bool {
        self.most_bytes > 0
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Changes> {
        lock(&self.changes)
    }

    /// The changes behind a place, as [`Changes::read`]; and if there are none, and there is nothing else to be waited
    /// for, the news of the next one: none that comes in between is missed.
    pub(super) fn read_or_wait(
        self: &Arc<Self>,
        prefix: &Prefix,
        after: Option<Place>,
        limits: (Option<Place>, usize),
    ) -> Result<Read, Trimmed> {
        let mut changes = self.lock();
        let part = changes.read(prefix, after, limits)?;
        if !part.is_all || !part.told.is_empty() {
            return Ok((part, None));
        }
        let (tell, news) = oneshot::channel();
        let then = move |up_to| {
            let _ = tell.send(up_to);
        };
        let name = changes.wait(prefix, part.next, Box::new(then));
        drop(changes);
        let waits = Waits {
            recent: Arc::clone(self),
            prefix: prefix.clone(),
            name,
        };
        Ok((part, Some((waits, news))))
    }
}
