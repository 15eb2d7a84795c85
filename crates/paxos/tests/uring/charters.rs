//! Charters: the rings that are founded while processes run, in the table that each process of the control ring has.

use bytes::Bytes;
use rota_paxos::uring::Snapshot;
use rota_paxos::uring::accounts::{Command, Refused, Table};
#[cfg(not(feature = "mutants"))]
use rota_paxos::uring::charters::{MOST_CHARTER, MOST_CHARTERS};

use super::accounts::ordered;
use super::cut::{KEPT, Second, again, begins_at, keeps_little};

fn found(ring: u16, from: u64, charter: &'static [u8]) -> Command {
    Command::Found(ring, from, Bytes::from_static(charter))
}

/// The first charter of a number stands; the same one again changes nothing, whatever its proposer knew of rounds.
pub fn a_ring_is_founded_once() -> bool {
    let mut table = Table::default();
    let mut apply = |at, command| table.apply((at, 0), command);
    let taken = [
        apply(4, found(7, 30, b"one")),
        apply(5, found(7, 30, b"another")),
        apply(6, found(7, 90, b"one")),
        apply(7, found(8, 40, b"another")),
    ];
    let of = |ring| {
        let of = table.charters().get(ring);
        of.map(|of| (of.at, of.from, &of.charter[..]))
    };
    taken == [Ok(()), Err(Refused::Otherwise(4)), Ok(()), Ok(())]
        && of(7) == Some((4, 30, b"one"))
        && of(8) == Some((7, 40, b"another"))
}

/// Whoever begins at a base, and whoever is restarted behind one, knows the rings that were founded before it.
pub fn who_begins_at_a_base_knows_which_rings_were_founded() -> bool {
    let mut second = Second::new(keeps_little());
    second.values(&ordered(&[found(7, 30, b"one"), found(9, 30, b"two")]));
    second.skips(4 * KEPT);
    let knows = |engine: &rota_paxos::uring::URing| {
        let rings = engine.accounts().charters().iter();
        rings.map(|(ring, _)| ring).eq([7, 9])
    };
    assert!(knows(&second.alone.engine), "it has ordered them");
    let base = Snapshot::decode(second.base().into()).expect("a base");
    assert!(base.next > 10, "they are before it");
    knows(&begins_at(&base.encode()).engine) && knows(&again(&second).engine)
}

#[cfg(not(feature = "mutants"))]
#[test]
fn what_cannot_be_is_refused() {
    let mut table = Table::default();
    let long = Bytes::from(vec![1; MOST_CHARTER + 1]);
    let wrong = [found(0, 1, b"one"), Command::Found(1, 1, long.clone())];
    for command in wrong {
        let bytes = command.encode(5);
        assert_eq!(Command::decode(bytes.into()), None, "{command:?}");
        assert_eq!(table.apply((3, 0), command), Err(Refused::Unsound));
    }
    let whole = Command::Found(1, 1, long.slice(1..));
    assert_eq!(table.apply((3, 0), whole), Ok(()));
    for ring in 2..=MOST_CHARTERS as u16 {
        assert_eq!(table.apply((4, 0), found(ring, 1, b"one")), Ok(()));
    }
    let more = found(MOST_CHARTERS as u16 + 1, 1, b"one");
    assert_eq!(table.apply((5, 0), more), Err(Refused::Full));
    let again = found(2, 7, b"one");
    assert_eq!(table.apply((6, 0), again), Ok(()), "it is there");
    assert_eq!(table.charters().len(), MOST_CHARTERS);
}

/// A table is read as it was written, and no part of it is a table, nor one with a charter twice, or in another order.
#[cfg(not(feature = "mutants"))]
#[test]
fn bytes_of_tables_with_charters() {
    let mut table = Table::default();
    for ring in [9, 4, 7] {
        let command = found(ring, 1 << 33, b"a charter");
        table.apply((30, 5), command).expect("the first");
    }
    let base = |accounts: Table| Snapshot {
        accounts,
        ..Snapshot::default()
    };
    let whole = base(table).encode();
    let read = |bytes: &[u8]| Snapshot::decode(Bytes::copy_from_slice(bytes));
    assert_eq!(read(&whole).map(|base| base.encode()), Some(whole.clone()));
    let without = base(Table::default()).encode().len();
    for end in without + 1..whole.len() {
        let is_table = read(&whole[..end]).is_some();
        // A table that ends before its charters is a table without any.
        let has_none = read(&whole[..end]).is_some_and(|base| base.accounts.charters().is_empty());
        assert_eq!(is_table, has_none, "{end}");
        assert!(end + 3 * 20 < whole.len() || !is_table, "{end}");
    }
    for at in without..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 1 << (at % 8);
        if let Some(base) = read(&other) {
            assert_eq!(base.encode(), other, "{at}: it has one form");
        }
    }
    let more = [&whole[..], &[0]].concat();
    assert_eq!(read(&more), None);
}

#[cfg(not(feature = "mutants"))]
#[test]
fn rules() {
    assert!(a_ring_is_founded_once());
    assert!(who_begins_at_a_base_knows_which_rings_were_founded());
}
