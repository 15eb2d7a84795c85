use super::*;
use crate::store::Value;
use rota_core::random::Random;
use rota_multiring::{Place, Rank};
use std::collections::BTreeMap;

const TAGS: u64 = 6;
const OF_A_TAG: u64 = 8;

fn key(tag: u64, number: u64) -> Bytes {
    format!("{{{tag}}}{number}").into()
}

fn entry(number: u64, until: Option<u64>) -> Entry {
    let version = Place {
        round: number,
        rank: Rank(1),
        instance: number,
        index: 0,
    };
    Entry::new(Value::Text(number.to_string().into()), version, until)
}

/// A partition's keys, beside what they should be.
struct World {
    random: Random,
    keys: Keys,
    model: BTreeMap<Bytes, Entry>,
    own: Slots,
    last: u64,
    /// Steps while something was not settled, and slots that came back before their old keys were forgotten.
    unsettled: u32,
    early: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            keys: Keys::default(),
            model: BTreeMap::new(),
            own: (0..TAGS).map(|tag| slot_of(&key(tag, 0))).collect(),
            last: 0,
            unsettled: 0,
            early: 0,
        }
    }

    fn entry(&mut self) -> Entry {
        self.last += 1;
        let ends = self.random.below(4) == 0;
        let until = ends.then(|| self.last + self.random.below(50));
        entry(self.last, until)
    }

    /// Some slots: those that are the partition's, or those that are not.
    fn slots(&mut self, own: bool) -> Slots {
        let all = (0..TAGS).map(|tag| slot_of(&key(tag, 0)));
        let of: Vec<u16> = all.filter(|slot| self.own.has(*slot) == own).collect();
        let some = of.into_iter().filter(|_| self.random.below(3) == 0);
        some.collect()
    }

    fn leave(&mut self) {
        let slots = self.slots(true);
        self.keys.leave(&slots);
        self.model.retain(|key, _| !slots.has(slot_of(key)));
        self.own = self.own.iter().filter(|slot| !slots.has(*slot)).collect();
    }

    fn arrive(&mut self) {
        let slots = self.slots(false);
        if slots.is_empty() {
            return;
        }
        self.early += u32::from(slots.iter().any(|slot| self.keys.left().has(slot)));
        let (mut keys, mut bytes) = (OrdMap::new(), 0);
        for tag in 0..TAGS {
            for number in 0..OF_A_TAG {
                let key = key(tag, number);
                if slots.has(slot_of(&key)) && self.random.below(2) == 0 {
                    let entry = self.entry();
                    bytes += entry.takes(&key);
                    self.model.insert(key.clone(), entry.clone());
                    keys.insert(key, entry);
                }
            }
        }
        self.keys.arrive(&slots, keys, bytes);
        self.own = self.own.iter().chain(slots.iter()).collect();
    }

    /// Keys that are settled go when their end has come, the first one first.
    fn end(&mut self) {
        let now = self.last;
        while self.keys.remove_ended(now).is_some() {}
        let ended: Vec<Bytes> = self
            .model
            .iter()
            .filter_map(|(key, entry)| {
                let is_over = entry.until.is_some_and(|until| until <= now);
                (is_over && self.keys.get(key).is_none()).then(|| key.clone())
            })
            .collect();
        for key in ended {
            self.model.remove(&key);
        }
    }

    fn step(&mut self) {
        let key = key(self.random.below(TAGS), self.random.below(OF_A_TAG));
        let is_own = self.own.has(slot_of(&key));
        match self.random.below(20) {
            0 => self.leave(),
            1 => self.arrive(),
            2 => self.end(),
            3 if self.random.below(10) == 0 => {
                self.keys.clear();
                self.model.clear();
            }
            // A replica that begins with the state goes on with the same.
            4 => {
                let keys = std::mem::take(&mut self.keys);
                let Keys {
                    settled,
                    left,
                    arrived,
                    ..
                } = keys;
                self.keys = Keys::begin(settled, left, arrived);
            }
            5..10 => self.keys.settle(self.random.below(4) as usize),
            10..17 if is_own => {
                let entry = self.entry();
                self.model.insert(key.clone(), entry.clone());
                self.keys.put(key, entry);
            }
            _ => {
                let was = self.model.remove(&key).is_some();
                if is_own {
                    assert_eq!(self.keys.remove(&key), was);
                }
            }
        }
        self.unsettled += u32::from(!self.keys.is_settled());
    }

    fn check(&self) {
        self.keys.check(|slot| self.own.has(slot));
        assert_eq!(self.keys.len(), self.model.len());
        let from = key(2, 3);
        for from in [&b""[..], &from] {
            let all = self.keys.range(from);
            let all = all.filter_map(|(key, entry)| Some((key, entry?)));
            let expected = self.model.range(Bytes::copy_from_slice(from)..);
            assert!(all.eq(expected), "the keys of a range");
        }
        for tag in 0..TAGS {
            for number in 0..OF_A_TAG {
                let key = key(tag, number);
                assert_eq!(self.keys.get(&key), self.model.get(&key), "{key:?}");
            }
        }
    }
}

#[test]
fn slots_come_and_go_and_keys_are_those_that_they_should_be() {
    let (mut unsettled, mut early) = (0, 0);
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
            world.check();
        }
        world.keys.settle(usize::MAX);
        assert!(world.keys.is_settled());
        world.check();
        unsettled += world.unsettled;
        early += world.early;
    }
    // What never happens shows nothing.
    assert!(unsettled > 30_000 && early > 300, "{unsettled} {early}");
}

#[test]
fn a_message_settles_no_more_than_it_may() {
    let mut keys = Keys::default();
    for number in 0..100 {
        keys.put(key(1, number), entry(number, None));
    }
    let (old, new) = (slot_of(&key(1, 0)), slot_of(&key(2, 0)));
    let both: Slots = [old, new].into_iter().collect();
    keys.leave(&both);
    let come: OrdMap<Bytes, Entry> = (0..50).map(|at| (key(2, at), entry(at, None))).collect();
    let bytes = come.iter().map(|(key, entry)| entry.takes(key)).sum();
    keys.arrive(&[new].into_iter().collect(), come, bytes);
    assert_eq!((keys.len(), keys.settled().len()), (50, 100));
    for left in [70, 40, 10] {
        keys.settle(30);
        assert_eq!((keys.len(), keys.settled().len()), (50, left));
    }
    keys.settle(30);
    assert_eq!((keys.len(), keys.settled().len()), (50, 20));
    keys.settle(30);
    assert_eq!((keys.len(), keys.settled().len()), (50, 50));
    assert!(keys.is_settled());
}

/// A value that tells the thread in which it is freed.
struct Told(std::sync::mpsc::Sender<std::thread::ThreadId>);

impl AsRef<[u8]> for Told {
    fn as_ref(&self) -> &[u8] {
        b"value"
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::current().id());
    }
}

/// Each change of a hash of many fields started a thread, which freed next to nothing.
#[test]
fn many_fields_are_freed_in_a_thread_only_if_the_key_has_none_any_more() {
    const MANY: u64 = 10_100;
    let fields = |tell: &std::sync::mpsc::Sender<_>| -> OrdMap<Bytes, Bytes> {
        let value = |number| match number {
            0 => Bytes::from_owner(Told(tell.clone())),
            _ => Bytes::from_static(b"value"),
        };
        let pair = |number: u64| (Bytes::from(format!("{number:05}")), value(number));
        (0..MANY).map(pair).collect()
    };
    let of = |fields| Entry::new(Value::Fields(fields), entry(1, None).version, None);
    let key = key(1, 1);
    let slots: Slots = [slot_of(&key)].into_iter().collect();
    let settled = |_: &mut Keys| {};
    let arrives = |keys: &mut Keys| keys.arrive(&slots, OrdMap::new(), 0);
    let returns = |keys: &mut Keys| {
        keys.put_settled(self::key(1, 2), entry(1, None));
        keys.leave(&slots);
        keys.arrive(&slots, OrdMap::new(), 0);
    };
    let own = std::thread::current().id();
    for begin in [&settled as &dyn Fn(&mut Keys), &arrives, &returns] {
        let mut keys = Keys::default();
        begin(&mut keys);
        let (tell, freed) = std::sync::mpsc::channel();
        let freed = || freed.recv_timeout(std::time::Duration::from_secs(30));
        let mut some = fields(&tell);
        keys.put(key.clone(), of(some.clone()));
        some.remove(&b"00000"[..]);
        keys.put(key.clone(), of(some));
        assert_eq!(freed(), Ok(own), "the other fields stay");
        keys.put(key.clone(), of(fields(&tell)));
        keys.put(key.clone(), entry(2, None));
        assert!(freed().is_ok_and(|thread| thread != own), "a text");
        keys.put(key.clone(), of(fields(&tell)));
        assert!(keys.remove(&key));
        assert!(freed().is_ok_and(|thread| thread != own), "no key");
        keys.check(|_| true);
    }
}
