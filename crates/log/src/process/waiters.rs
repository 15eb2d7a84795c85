//! Readers that wait for what is appended.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::lock;

/// See the module's page.
#[derive(Clone, Default)]
pub(super) struct Waiters(Arc<Mutex<Waiting>>);

/// Those who wait for each log.
type Waiting = HashMap<Bytes, Vec<Arc<Notify>>>;

/// One that waits for some logs. It waits no more when this is dropped.
pub(super) struct Waiter {
    all: Waiters,
    logs: BTreeSet<Bytes>,
    news: Arc<Notify>,
}

impl Waiters {
    /// From now on it is told of all changes of these logs.
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

    /// These logs have changed.
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

    /// All logs may have changed.
    pub(super) fn wake_all(&self) {
        let all = lock(&self.0);
        let waiting = all.values().flatten();
        waiting.for_each(|news| news.notify_one());
    }

    /// How many wait, each as often as it waits for a log.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).values().map(Vec::len).sum()
    }
}

impl Waiter {
    /// Until one of its logs has changed since it waits, or since it was told last.
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
