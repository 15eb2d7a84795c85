//! Which partition has which slots, as the replica of this process knows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use crate::map::Map;

/// So many changes are remembered.
const MOST: usize = 4_096;

#[derive(Debug)]
struct Inner {
    map: Arc<Map>,
    /// Which epochs have begun here, and when.
    begun: VecDeque<(u64, Instant)>,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Maps(Mutex<Inner>);

impl Maps {
    pub(super) fn new(map: Map) -> Self {
        Self(Mutex::new(Inner {
            map: Arc::new(map),
            begun: VecDeque::new(),
        }))
    }

    pub(super) fn now(&self) -> Arc<Map> {
        Arc::clone(&lock(&self.0).map)
    }

    pub(super) fn set(&self, map: &Arc<Map>) {
        let mut inner = lock(&self.0);
        if inner.map.epoch() < map.epoch() {
            inner.begun.push_back((map.epoch(), Instant::now()));
            if inner.begun.len() > MOST {
                inner.begun.pop_front();
            }
        }
        inner.map = Arc::clone(map);
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

    #[test]
    fn what_has_changed_a_moment_ago_is_young() {
        let [one, two] = [1, 2].map(Partition);
        let maps = Maps::new(Map::even(&[one, two]).expect("two"));
        let day = Duration::from_hours(24);
        assert_eq!(maps.young(day), u64::MAX);
        for slot in [3, 4] {
            let mut map = Map::clone(&maps.now());
            map.give(&[slot].into_iter().collect(), two);
            maps.set(&Arc::new(map));
        }
        assert_eq!((maps.now().epoch(), maps.young(day)), (3, 2));
        assert_eq!(maps.young(Duration::ZERO), u64::MAX);
    }
}
