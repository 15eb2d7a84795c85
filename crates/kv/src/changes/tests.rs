//! The memory against a model that forgets nothing.

use std::sync::mpsc;

use proptest::prelude::*;
use rota_multiring::Rank;

use super::*;
use crate::map::Partition;
use crate::store::Told;

const PREFIXES: [&str; 7] = ["", "a", "ab", "abc", "b", "{t}", "{t}x"];

fn place(at: u64) -> Place {
    Place {
        round: at,
        rank: Rank((at % 2) as u16),
        instance: at,
        index: 0,
    }
}

fn prefix(at: usize) -> Prefix {
    Prefix::new(Bytes::from_static(PREFIXES[at].as_bytes()))
}

/// What happens to the memory.
#[derive(Clone, Debug)]
enum Event {
    /// Changes at one place. The command of several partitions that they stand behind may be a new one.
    Push(Vec<Change>, bool),
    /// All commands so far are stable.
    Stable,
    /// A watcher of a prefix reads from a place on, so many changes.
    Read(usize, u64, usize),
    /// A watcher of a prefix waits, at the end.
    Wait(usize),
    /// A state is installed that is so far ahead.
    Begin(u64),
}

fn change() -> impl Strategy<Value = Change> {
    let key = prop::sample::select(vec!["a", "ab1", "abc", "b2", "c", "{t}x1", "{t}y"]);
    let key = key.prop_map(|key| Bytes::from_static(key.as_bytes()));
    let slots = |slots: [u16; 2]| slots.into_iter().collect();
    let tag = rota_resp::slot::of(b"t");
    prop_oneof![
        6 => (key.clone(), 0..400_usize).prop_map(|(key, bytes)| {
            Change::Set(key, Told::Text(vec![b'x'; bytes].into()))
        }),
        2 => key.clone().prop_map(Change::Deleted),
        1 => key.prop_map(Change::Expired),
        1 => Just(Change::Cleared),
        1 => Just(Change::Left(slots([1, 2]), Partition(2))),
        1 => Just(Change::Arrived(slots([1, tag]), Partition(2))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let changes = prop::collection::vec(change(), 1..6);
    prop_oneof![
        8 => (changes, any::<bool>()).prop_map(|(changes, is_new)| Event::Push(changes, is_new)),
        2 => Just(Event::Stable),
        6 => (0..PREFIXES.len(), 0..90_u64, 1..5_usize)
            .prop_map(|(prefix, after, most)| Event::Read(prefix, after, most)),
        3 => (0..PREFIXES.len()).prop_map(Event::Wait),
        1 => (0..3_u64).prop_map(Event::Begin),
    ]
}

/// A watcher that waits: its prefix, and its news.
type Watcher = (Prefix, mpsc::Receiver<Option<Place>>);

struct Run {
    changes: Changes,
    most_bytes: usize,
    /// Everything since the last state, and the place of that.
    all: Vec<Changed>,
    begun: Option<Place>,
    at: u64,
    behind: Option<Place>,
    stable: Option<Place>,
    watchers: Vec<Watcher>,
}

impl Run {
    fn new(most_bytes: usize) -> Self {
        Self {
            changes: Changes::new(most_bytes),
            most_bytes,
            all: Vec::new(),
            begun: None,
            at: 0,
            behind: None,
            stable: None,
            watchers: Vec::new(),
        }
    }

    fn last(&self) -> Option<Place> {
        let last = self.all.last().map(|changed| changed.place);
        last.or(self.begun)
    }

    /// The place behind which everything is kept: of what came last, as much as there is room for.
    fn floor(&self) -> Option<Place> {
        let mut left = self.most_bytes;
        for changed in self.all.iter().rev() {
            let bytes = changed.changes.iter().map(Change::bytes);
            match left.checked_sub(PLACE_BYTES + bytes.sum::<usize>()) {
                Some(less) => left = less,
                None => return Some(changed.place),
            }
        }
        self.begun
    }

    fn push(&mut self, changes: Vec<Change>, is_new: bool) {
        self.at += 1;
        if is_new {
            self.behind = Some(place(self.at));
        }
        let changed = Changed {
            place: place(self.at),
            behind: self.behind,
            changes,
        };
        let before = self.last();
        self.changes.push(changed.clone());
        self.all.push(changed.clone());
        self.watchers.retain(|(prefix, news)| {
            let concerns = changed.changes.iter().any(|change| prefix.is_of(change));
            let woken = news.try_recv();
            match woken {
                Ok(up_to) => assert_eq!(up_to, before, "nothing came in between"),
                Err(_) => assert!(!concerns, "{prefix:?} was not woken by {changed:?}"),
            }
            woken.is_err()
        });
    }

    fn read(&self, prefix: &Prefix, after: Option<Place>, most: usize) {
        let read = self.changes.read(prefix, after, (self.stable, most));
        if let Some(first) = self.floor().filter(|floor| after < Some(*floor)) {
            assert_eq!(read, Err(Trimmed { first }));
            return;
        }
        let part = read.expect("it is kept");
        let (mut expected, mut next, mut count, mut is_all) = (Vec::new(), after, 0, true);
        for changed in self.all.iter().filter(|of| Some(of.place) > after) {
            if changed.behind > self.stable || count >= most {
                is_all = false;
                break;
            }
            let own = changed.changes.iter().filter(|change| prefix.is_of(change));
            let own: Vec<Change> = own.cloned().collect();
            count += own.len();
            if !own.is_empty() {
                expected.push((changed.place, own));
            }
            next = Some(changed.place);
        }
        assert_eq!(
            (part.told, part.next, part.is_all),
            (expected, next, is_all)
        );
        assert!(part.waits.is_none() || part.waits > self.stable && !is_all);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Push(changes, is_new) => self.push(changes, is_new),
            Event::Stable => self.stable = self.behind,
            Event::Read(of, after, most) => {
                let after = after.checked_sub(1).map(place);
                self.read(&prefix(of), after, most);
            }
            Event::Wait(of) => {
                let (tell, news) = mpsc::channel();
                let then = move |up_to| {
                    let _ = tell.send(up_to);
                };
                let (of, last) = (prefix(of), self.last());
                let name = self.changes.wait(&of, last, Box::new(then));
                match self.at % 3 {
                    // It goes again.
                    0 => self.changes.give_up(&of, name),
                    _ => self.watchers.push((of, news)),
                }
            }
            Event::Begin(ahead) => {
                self.at += ahead;
                let at = (self.at > 0).then(|| place(self.at));
                self.changes.begin(at);
                (self.begun, self.behind, self.stable) = (at, None, None);
                self.all.clear();
                for (_, news) in self.watchers.drain(..) {
                    assert_eq!(news.try_recv(), Ok(None), "all look again");
                }
            }
        }
        let figures = self.changes.figures();
        assert!(figures.bytes <= self.most_bytes, "{figures:?}");
        assert_eq!(figures.waiting, self.watchers.len());
        assert_eq!(self.changes.last(), self.last());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_told_is_what_has_changed_and_what_is_not_kept_is_said(
        most_bytes in prop::sample::select(vec![0, 300, 2_000, 20_000]),
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut run = Run::new(most_bytes);
        events.into_iter().for_each(|event| run.step(event));
    }
}

#[test]
fn a_place_is_told_as_a_whole_however_few_are_asked_for() {
    let mut changes = Changes::new(1 << 20);
    let deleted = |key: &'static str| Change::Deleted(Bytes::from_static(key.as_bytes()));
    for at in 1..=2 {
        changes.push(Changed {
            place: place(at),
            behind: None,
            changes: vec![deleted("a1"), deleted("b"), deleted("a2")],
        });
    }
    let part = changes
        .read(&prefix(1), None, (None, 1))
        .expect("all is kept");
    assert_eq!(part.told, [(place(1), vec![deleted("a1"), deleted("a2")])]);
    assert_eq!((part.next, part.is_all), (Some(place(1)), false));
}

#[test]
fn a_place_with_very_many_changes_wakes_all_and_more_than_is_kept_is_said() {
    let mut changes = Changes::new(100_000);
    let key = |at: u64| Bytes::from(format!("a{at}"));
    let (tell, news) = mpsc::channel();
    for of in [1, 4] {
        let tell = tell.clone();
        changes.wait(
            &prefix(of),
            None,
            Box::new(move |up_to| {
                let _ = tell.send(up_to);
            }),
        );
    }
    changes.push(Changed {
        place: place(1),
        behind: None,
        changes: (0..10_000).map(key).map(Change::Deleted).collect(),
    });
    assert_eq!(news.try_iter().count(), 2, "who watches b is woken, too");
    assert_eq!((changes.figures().places, changes.figures().bytes), (0, 0));
    let first = place(1);
    let read = changes.read(&prefix(1), None, (None, 10));
    assert_eq!(read, Err(Trimmed { first }));
    let part = changes
        .read(&prefix(1), Some(first), (None, 10))
        .expect("from there on");
    assert!(part.told.is_empty() && part.is_all && part.next == Some(first));
}

#[test]
fn a_prefix_has_a_slot_where_its_tag_is_whole() {
    for (text, slot) in [
        ("user:", None),
        ("user:{4", None),
        ("user:{}", None),
        ("user:{42}", Some(rota_resp::slot::of(b"42"))),
        ("{42}:x", Some(rota_resp::slot::of(b"42"))),
    ] {
        assert_eq!(
            Prefix::new(Bytes::from_static(text.as_bytes())).slot(),
            slot,
            "{text}"
        );
    }
}
