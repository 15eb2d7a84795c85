//! The charters that a process takes, one after the other and over restarts.

use bytes::Bytes;
use rota_core::contract::NodeId;
use rota_multiring::charters::Chartered;
use rota_multiring::{Charter, Rank};
use std::path::Path;

use super::config::RingsConfig;
use super::foundings::FoundError;
use super::new_rings::{FoundedRing, NewRings};
use super::opening::Beginning;

const FOUNDED: u64 = 77;

fn id(node: u16) -> NodeId {
    NodeId::new(node).expect("not 0")
}

/// What the first of so many nodes finds when it is started.
fn start(nodes: u16, dir: &Path) -> NewRings {
    let mut config = RingsConfig::loopback(nodes, 1, 27_100);
    config.common.state_dir = Some(dir.to_owned());
    let rings = NewRings::open(&config, id(1), Beginning::default());
    rings.expect("what it has kept is sound")
}

fn ordered(charter: &Charter, at: u64) -> (u16, Chartered) {
    let charter_bytes = charter.encode();
    let of = Chartered {
        at,
        from: 1,
        charter: charter_bytes,
    };
    (charter.rank.0, of)
}

fn ranks(rings: &NewRings) -> Vec<u16> {
    rings.list().iter().map(|(rank, _)| rank.0).collect()
}

/// The first charter names a node that the file lacks until the second one has been taken.
#[test]
fn a_charter_that_is_taken_late_is_kept_in_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Charter::new(Rank(7), 40, [1, 4].map(id));
    let second = Charter::new(Rank(8), 60, [1, 2].map(id));
    let mut rings = start(3, dir.path());
    assert_eq!(rings.take(FOUNDED, ordered(&first, 5)), Ok(None));
    assert_eq!(rings.take(FOUNDED, ordered(&second, 9)), Ok(Some(true)));
    drop(rings);
    let mut rings = start(4, dir.path());
    assert_eq!(ranks(&rings), [8]);
    assert!(rings.is_due(2) && rings.is_of(FOUNDED));
    assert_eq!(rings.take(FOUNDED, ordered(&first, 5)), Ok(Some(true)));
    drop(rings);
    let rings = start(4, dir.path());
    assert_eq!(ranks(&rings), [7, 8], "in the order of their charters");
    let (of_node, of_file) = rings.of_node().expect("they go together");
    assert_eq!((of_node.len(), of_file), (3, 1));
}

/// A charter that was ordered and does not go with the file uses its number up; who wants another one hears that.
#[test]
fn a_number_that_was_refused_is_used_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut rings = start(3, dir.path());
    let taken = Charter::new(Rank(7), 40, [1, 2].map(id));
    let clash = Charter::new(Rank(8), 40, [1, 3].map(id));
    let other = Charter::new(Rank(8), 60, [1, 3].map(id));
    assert_eq!(rings.answer(&clash), None);
    assert_eq!(rings.may_order(&clash), Ok(()), "nobody has the ports yet");
    assert_eq!(rings.take(FOUNDED, ordered(&taken, 5)), Ok(Some(true)));
    assert_eq!(rings.take(FOUNDED, ordered(&clash, 6)), Ok(None));
    let Some(Err(FoundError::Charter(why))) = rings.answer(&clash) else {
        panic!("{:?}", rings.answer(&clash));
    };
    assert!(why.contains("same port"), "{why}");
    assert_eq!(rings.answer(&other), Some(Err(FoundError::Otherwise(8))));
    let garbage = Chartered {
        at: 7,
        from: u64::MAX,
        charter: Bytes::from_static(b"anything"),
    };
    assert_eq!(rings.take(FOUNDED, (9, garbage)), Ok(None));
    // The number of a ring of the file stays that ring's.
    let of_file = Charter::new(Rank(1), 80, [1, 2].map(id));
    assert_eq!(rings.take(FOUNDED, ordered(&of_file, 8)), Ok(None));
    assert!(!rings.may_come(Rank(1)) && rings.may_come(Rank(8)));
    let list = rings.list();
    let is_refused = |rank| {
        let mut list = list.iter();
        list.any(|(of, ring)| *of == Rank(rank) && matches!(ring, FoundedRing::Refused(_)))
    };
    assert!([8, 9, 1].into_iter().all(is_refused), "{list:?}");
    assert_eq!(list.len(), 4);
}
