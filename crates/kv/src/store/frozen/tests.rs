use super::*;
use crate::store::Value;
use rota_multiring::Rank;

const OWN: Partition = Partition(1);

fn key(tag: u64, number: u64) -> Bytes {
    format!("{{{tag}}}{number}").into()
}

fn slots(tags: &[u64]) -> Slots {
    tags.iter().map(|tag| slot_of(&key(*tag, 0))).collect()
}

fn entry() -> Entry {
    let version = Place {
        round: 1,
        rank: Rank(1),
        instance: 1,
        index: 0,
    };
    Entry::new(Value::Text("value".into()), version, None)
}

fn keys(names: &[(u64, u64)]) -> OrdMap<Bytes, Entry> {
    let all = names.iter();
    all.map(|(tag, number)| (key(*tag, *number), entry()))
        .collect()
}

/// A group: the tags of its slots, and its keys.
type Group<'a> = (&'a [u64], &'a [(u64, u64)]);

/// The state of a partition that has the slots of tags 1 to 4, and not that of 9: the settled keys, the tags of slots that have left,
/// and the groups.
fn state(settled: &[(u64, u64)], left: &[u64], arrived: &[Group<'_>]) -> io::Result<Store> {
    let other = Partition(2);
    let mut map = Map::even(&[OWN, other]).expect("two");
    map.give(&slots(&[1, 2, 3, 4]), OWN);
    map.give(&slots(&[9]), other);
    let mut frozen = FrozenStore::of(&Store::new(OWN, map));
    (frozen.keys, frozen.left) = (keys(settled), slots(left));
    let group = |(tags, names): &Group<'_>| {
        let mut group = Arrived::new(slots(tags), OrdMap::new(), 0);
        let own = keys(names).into_iter();
        own.for_each(|(key, entry)| group.put(key, entry));
        group
    };
    frozen.arrived = arrived.iter().map(group).collect();
    let mut bytes = Vec::new();
    frozen.write(&mut bytes)?;
    FrozenStore::read(&mut &bytes[..])?.begin(OWN)
}

#[test]
fn a_state_that_no_replica_could_have_had_is_none() {
    let sound = state(
        &[(1, 1), (2, 1), (9, 1)],
        &[2, 9],
        &[(&[2, 3], &[(2, 1), (3, 1)]), (&[4], &[(4, 1)])],
    );
    let sound = sound.expect("a state");
    sound.check();
    assert_eq!(sound.len(), 4);
    let refused = |made: io::Result<Store>| made.expect_err("no state").to_string();
    let damaged = "its head is damaged";
    let no_slot = state(&[(1, 1)], &[], &[(&[], &[])]);
    assert_eq!(refused(no_slot), damaged);
    let slot_twice = state(&[], &[], &[(&[2, 3], &[]), (&[3, 4], &[(4, 1)])]);
    assert_eq!(refused(slot_twice), damaged);
    let key_twice = state(&[(2, 1)], &[], &[(&[2], &[(2, 1)])]);
    assert_eq!(refused(key_twice), "a key is there twice");
    let not_back = state(&[(2, 1)], &[2], &[(&[3], &[(3, 1)])]);
    let why = "a slot has left, and is the partition's";
    assert_eq!(refused(not_back), why);
    for foreign in [
        state(&[(9, 1)], &[], &[]),
        state(&[], &[], &[(&[9], &[(9, 1)])]),
    ] {
        assert_eq!(refused(foreign), "a key of another partition");
    }
    let other_slot = state(&[], &[], &[(&[2], &[(3, 1)])]);
    assert_eq!(refused(other_slot), "a key of other slots");
}

/// A head may claim four thousand million groups, and have none of them.
#[test]
fn a_head_of_many_groups_takes_no_memory_for_them() {
    let mut head = u32::MAX.to_le_bytes().to_vec();
    Slots::default().put(&mut head);
    head.extend(0_u64.to_le_bytes());
    assert!(take_arrived(&mut Reader(&head)).is_none());
    let mut head = u32::MAX.to_le_bytes().to_vec();
    for tag in 1..=2 {
        slots(&[tag]).put(&mut head);
        head.extend(0_u64.to_le_bytes());
    }
    assert!(take_arrived(&mut Reader(&head)).is_none());
    head[..4].copy_from_slice(&2_u32.to_le_bytes());
    let arrived = take_arrived(&mut Reader(&head)).expect("two groups");
    assert_eq!(arrived, [(slots(&[1]), 0), (slots(&[2]), 0)]);
}
