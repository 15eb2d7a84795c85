//! Which partition has which slots, as the replica of this process knows, or another process that has told it: a replica that is behind sends nobody by
//! an old map.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use crate::map::Map;

/// So many changes are remembered.
const MOST: usize = 4_096;
/// A replica that is behind others for so long asks them. Most are for less.
const BEHIND: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Inner {
    /// As the replica knows.
    own: Arc<Map>,
    /// As another process does, if it knows more.
    told: Option<Arc<Map>>,
    /// Which epochs have begun here, and when.
    begun: VecDeque<(u64, Instant)>,
    /// Since when others know more, or when they were asked last.
    behind: Option<Instant>,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Maps(Mutex<Inner>);

impl Inner {
    fn now(&self) -> &Arc<Map> {
        self.told.as_ref().unwrap_or(&self.own)
    }

    /// From an epoch on to before this one all is news.
    fn begins(&mut self, epoch: u64) {
        if self.now().epoch() < epoch {
            let first = self.now().epoch() + 1;
            self.begun.push_back((first, Instant::now()));
            if self.begun.len() > MOST {
                self.begun.pop_front();
            }
        }
    }
}

impl Maps {
    pub(super) fn new(map: Map) -> Self {
        Self(Mutex::new(Inner {
            own: Arc::new(map),
            told: None,
            begun: VecDeque::new(),
            behind: None,
        }))
    }

    /// The newest that is known.
    pub(super) fn now(&self) -> Arc<Map> {
        Arc::clone(lock(&self.0).now())
    }

    /// The replica's.
    pub(super) fn own(&self) -> Arc<Map> {
        Arc::clone(&lock(&self.0).own)
    }

    /// The replica has this one.
    pub(super) fn set(&self, map: &Arc<Map>) {
        let mut inner = lock(&self.0);
        inner.begins(map.epoch());
        inner.own = Arc::clone(map);
        inner.told.take_if(|told| told.epoch() <= map.epoch());
    }

    /// Another process has this one. `false`: it is not of the same store.
    pub(super) fn hear(&self, map: Map) -> bool {
        let mut inner = lock(&self.0);
        if !map.has_begun_as(&inner.own) {
            return false;
        }
        if inner.now().epoch() < map.epoch() {
            inner.begins(map.epoch());
            inner.told = Some(Arc::new(map));
        }
        true
    }

    /// Another process is in this epoch: whether it is to be asked for its map.
    pub(super) fn is_behind(&self, epoch: u64) -> bool {
        let mut inner = lock(&self.0);
        if epoch <= inner.now().epoch() {
            return false;
        }
        let since = *inner.behind.get_or_insert_with(Instant::now);
        let is_behind = since.elapsed() >= BEHIND;
        if is_behind {
            inner.behind = None;
        }
        is_behind
    }

    /// Nobody is in a later epoch than this one: what was told counts no more if it is newer. Whoever told it has lost it.
    pub(super) fn newest(&self, epoch: u64) {
        lock(&self.0).told.take_if(|told| told.epoch() > epoch);
    }

    /// The first epoch that has begun here less than so long ago; one that has not, if none has.
    pub(super) fn young(&self, time: Duration) -> u64 {
        let inner = lock(&self.0);
        let mut begun = inner.begun.iter();
        let young = begun.find(|(_, at)| at.elapsed() < time);
        young.map_or(u64::MAX, |(epoch, _)| *epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Partition;

    const DAY: Duration = Duration::from_hours(24);

    fn maps() -> Maps {
        let all = [1, 2].map(Partition);
        Maps::new(Map::even(&all).expect("two"))
    }

    fn after(map: &Map, slots: impl IntoIterator<Item = u16>) -> Map {
        let mut map = map.clone();
        for slot in slots {
            map.give(&[slot].into_iter().collect(), Partition(2));
        }
        map
    }

    #[test]
    fn what_has_changed_a_moment_ago_is_young() {
        let maps = maps();
        assert_eq!(maps.young(DAY), u64::MAX);
        for slot in [3, 4] {
            maps.set(&Arc::new(after(&maps.now(), [slot])));
        }
        assert_eq!((maps.now().epoch(), maps.young(DAY)), (3, 2));
        assert_eq!(maps.young(Duration::ZERO), u64::MAX);
    }

    #[test]
    fn what_others_know_counts_until_the_replica_does() {
        let maps = maps();
        let newer = after(&maps.own(), [3, 4, 5]);
        assert!(!maps.is_behind(1), "it knows that one");
        assert!(!maps.is_behind(4), "for a moment");
        std::thread::sleep(BEHIND);
        assert!(maps.is_behind(4));
        assert!(!maps.is_behind(4), "it has asked");
        assert!(maps.hear(newer.clone()));
        assert_eq!((maps.now().epoch(), maps.own().epoch()), (4, 1));
        assert_eq!(maps.young(DAY), 2, "all that was not known");
        // What it had meant is old.
        assert!(maps.hear(after(&maps.own(), [3])));
        maps.set(&Arc::new(after(&maps.own(), [3])));
        assert_eq!((maps.now().epoch(), maps.own().epoch()), (4, 2));
        // Whoever told it is gone, and nobody else knows of it.
        maps.newest(3);
        assert_eq!(maps.now().epoch(), 2);
        assert!(maps.hear(newer));
        maps.set(&Arc::new(after(&maps.own(), [4, 5, 6])));
        assert_eq!(maps.now().epoch(), 5);
        let all = [1, 2, 3].map(Partition);
        assert!(!maps.hear(Map::even(&all).expect("three")));
    }
}
