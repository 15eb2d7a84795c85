//! Readers that wait for new entries.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::lock;

/// The readers that wait.
#[derive(Clone, Default)]
pub(super) struct Waiters(Arc<Mutex<Waiting>>);

/// The readers that wait for each log.
type Waiting = HashMap<Bytes, Vec<Arc<Notify>>>;

/// A reader that waits for some logs, until this is dropped.
pub(super) struct Waiter {
    all: Waiters,
    logs: BTreeSet<Bytes>,
    news: Arc<Notify>,
}

impl Waiters {
    /// A waiter that is told of all changes of these logs from now on.
    pub(super) fn wait_for(&self, logs: &[&Bytes]) -> Waiter {
        let news = Arc::new(Notify::new());
        let logs: BTreeSet<Bytes> = logs.iter().copied().cloned().collect();
        let mut all = lock(&self.0);
        for log in &logs {
            let waiting = all.entry(log.clone()).or_default();
            waiting.push(Arc::clone(&news));
        }
        drop(all);
        Waiter {
            all: self.clone(),
            logs,
            news,
        }
    }

    /// Wakes the readers that wait for these logs, which have changed.
    pub(super) fn wake(&self, changed: &[Bytes]) {
        let all = lock(&self.0);
        if all.is_empty() {
            return;
        }
        for log in changed {
            let waiting = all.get(log).into_iter().flatten();
            waiting.for_each(|news| news.notify_one());
        }
    }

    /// Wakes all readers, as all logs may have changed.
    pub(super) fn wake_all(&self) {
        let all = lock(&self.0);
        let waiting = all.values().flatten();
        waiting.for_each(|news| news.notify_one());
    }

    /// The number of readers that wait, each as often as it waits for a log.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).values().map(Vec::len).sum()
    }
}

impl Waiter {
    /// Waits until one of the logs has changed since the wait began, or since the last news.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        for log in &self.logs {
            if let Some(waiting) = all.get_mut(log) {
                waiting.retain(|news| !Arc::ptr_eq(news, &self.news));
                if waiting.is_empty() {
                    all.remove(log);
                }
            }
        }
    }
}
