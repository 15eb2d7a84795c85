//! The newest map of slots: that of the replica of this process, or of another process that has told it, so that a
//! replica that is behind sends no client by an old map.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use crate::map::Map;

/// The number of changes that are remembered.
const MOST: usize = 4_096;
/// The time for which a replica is behind others before it asks them for their map. Most are behind for less.
const BEHIND: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Inner {
    /// The map of the replica.
    own: Arc<Map>,
    /// The map of another process, if that is newer.
    told: Option<Arc<Map>>,
    /// The epochs that have begun here, and the times.
    begun: VecDeque<(u64, Instant)>,
    /// The time since which others have a newer map, or of the last question to them.
    behind: Option<Instant>,
}

/// The newest map of slots.
#[derive(Debug)]
pub(super) struct Maps(Mutex<Inner>);

impl Inner {
    fn now(&self) -> &Arc<Map> {
        self.told.as_ref().unwrap_or(&self.own)
    }

    /// Notes that the epochs up to this one begin now, if they are new.
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

    /// The newest map that is known.
    pub(super) fn now(&self) -> Arc<Map> {
        Arc::clone(lock(&self.0).now())
    }

    /// The map of the replica.
    pub(super) fn own(&self) -> Arc<Map> {
        Arc::clone(&lock(&self.0).own)
    }

    /// Takes in the map of the replica.
    pub(super) fn set(&self, map: &Arc<Map>) {
        let mut inner = lock(&self.0);
        inner.begins(map.epoch());
        inner.own = Arc::clone(map);
        inner.told.take_if(|told| told.epoch() <= map.epoch());
    }

    /// Takes in the map of another process. `false`: the map is of another store.
    pub(super) fn hear(&self, map: Map) -> bool {
        let mut inner = lock(&self.0);
        if !map.is_founded() {
            return true;
        }
        if inner.own.is_founded() && !map.has_begun_as(&inner.own) {
            return false;
        }
        if inner.now().epoch() < map.epoch() {
            inner.begins(map.epoch());
            inner.told = Some(Arc::new(map));
        }
        true
    }

    /// Whether another process that is in this epoch has to be asked for its map.
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

    /// Gives up a map of another process if that is newer than this epoch, the latest that any process is in: the
    /// process that told it has lost it.
    pub(super) fn newest(&self, epoch: u64) {
        lock(&self.0).told.take_if(|told| told.epoch() > epoch);
    }

    /// The first epoch that has begun here less than this time ago; if none has, one that never begins.
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
        // The replica is further then, and still older than the other map.
        assert!(maps.hear(after(&maps.own(), [3])));
        maps.set(&Arc::new(after(&maps.own(), [3])));
        assert_eq!((maps.now().epoch(), maps.own().epoch()), (4, 2));
        // The process that told the map is gone, and no other one knows of it.
        maps.newest(3);
        assert_eq!(maps.now().epoch(), 2);
        assert!(maps.hear(newer));
        maps.set(&Arc::new(after(&maps.own(), [4, 5, 6])));
        assert_eq!(maps.now().epoch(), 5);
        let all = [1, 2, 3].map(Partition);
        assert!(!maps.hear(Map::even(&all).expect("three")));
    }
}
