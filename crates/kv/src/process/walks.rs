//! The places of walks through all keys: clients name them by numbers, on any of their connections.
//!
//! A number says where a walk goes on. One that another process has given, or an earlier life of this one, must not be
//! taken for the place of another walk: the keys between the two would be missed. So numbers are drawn, and those that
//! are not known are refused; a walk that began anew instead might never end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use bytes::Bytes;
use rota_core::random::Random;

use super::lock;

/// The number of places that are remembered: two of each walk.
const MOST: usize = 4_096;
/// Numbers are below this: some clients keep them as floating-point numbers.
const END: u64 = 1 << 53;

/// The place of a walk.
#[derive(Debug)]
struct Step {
    /// The key that the walk goes on with.
    from: Bytes,
    /// The number of the place before; 0: there is none.
    before: u64,
    turn: u64,
}

#[derive(Debug)]
struct Inner {
    random: Random,
    at: HashMap<u64, Step>,
    /// The numbers, by their turns.
    order: BTreeMap<u64, u64>,
    last: u64,
}

/// The places of walks.
#[derive(Debug)]
pub(super) struct Walks(Mutex<Inner>);

impl Inner {
    fn forget(&mut self, number: u64) {
        if let Some(step) = self.at.remove(&number) {
            self.order.remove(&step.turn);
        }
    }

    /// A number that is not 0 and that no place has.
    fn draw(&mut self) -> u64 {
        loop {
            let number = self.random.below(END);
            if number != 0 && !self.at.contains_key(&number) {
                return number;
            }
        }
    }
}

impl Walks {
    /// No walks. The seed has to be another one in each life of each process.
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(Inner {
            random: Random::new(seed),
            at: HashMap::new(),
            order: BTreeMap::new(),
            last: 0,
        }))
    }

    /// Remembers the key with which the walk goes on that has come from the place with this number, 0 for the beginning;
    /// the number of the new place. A client may ask again from the place that it comes from, but not from those before:
    /// a walk of many steps takes no room from those of others.
    pub(super) fn keep(&self, before: u64, from: Bytes) -> u64 {
        let mut inner = lock(&self.0);
        if let Some(step) = inner.at.get(&before) {
            let old = step.before;
            inner.forget(old);
        }
        let number = inner.draw();
        inner.last += 1;
        let turn = inner.last;
        let step = Step { from, before, turn };
        inner.at.insert(number, step);
        inner.order.insert(turn, number);
        if inner.order.len() > MOST
            && let Some((_, oldest)) = inner.order.pop_first()
        {
            inner.at.remove(&oldest);
        }
        number
    }

    /// The key that a walk goes on with, if the number is known. It may be asked for again.
    pub(super) fn of(&self, number: u64) -> Option<Bytes> {
        let inner = lock(&self.0);
        inner.at.get(&number).map(|step| step.from.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_another_process_or_of_an_earlier_life_is_no_place_here() {
        let (here, there) = (Walks::new(1), Walks::new(2));
        for key in ["b", "c", "d"] {
            let (own, other) = (here.keep(0, "x".into()), there.keep(0, key.into()));
            assert_eq!(there.of(other), Some(key.into()));
            assert_eq!((there.of(own), here.of(other)), (None, None));
            assert!((1..END).contains(&own), "{own}");
        }
        assert_eq!(here.of(0), None, "that is the beginning");
    }

    #[test]
    fn a_walk_of_many_steps_takes_no_room_from_others() {
        let walks = Walks::new(1);
        let slow = walks.keep(0, "slow".into());
        let (mut before, mut at) = (0, 0);
        for step in 0..3 * MOST {
            // The reply may have been lost: the client asks from the same place once more.
            assert!(before == 0 || walks.of(before).is_some(), "{step}");
            (before, at) = (at, walks.keep(at, step.to_string().into()));
        }
        assert_eq!(walks.of(slow), Some("slow".into()));
        assert_eq!(lock(&walks.0).order.len(), 3);
    }

    #[test]
    fn the_oldest_of_too_many_walks_are_forgotten() {
        let walks = Walks::new(1);
        let all: Vec<u64> = (0..=MOST).map(|_| walks.keep(0, "k".into())).collect();
        assert_eq!(walks.of(all[0]), None);
        assert!(all[1..].iter().all(|number| walks.of(*number).is_some()));
        let inner = lock(&walks.0);
        assert_eq!((inner.at.len(), inner.order.len()), (MOST, MOST));
    }
}
