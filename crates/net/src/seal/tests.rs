use super::*;
use crate::keys::KeyRing;
use proptest::prelude::*;
use rota_core::contract::{Class, NodeId, Target, Time};
use rota_core::wire::{HEADER_BYTES, SEAL_BYTES};
use std::collections::BTreeSet;

const CLUSTER: u32 = 7;

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

fn life(start: u64) -> Life {
    Life { start, salt: 99 }
}

fn sealer(keys: &KeyRing, node: u16, start: u64) -> Sealer {
    Sealer::new(CLUSTER, keys.clone(), id(node), life(start)).unwrap()
}

/// Node 9 of nodes 1, 2, 3 and 9.
fn opener(keys: &KeyRing) -> Opener {
    let nodes: BTreeSet<NodeId> = [1, 2, 3, 9].map(id).into();
    let me = (id(9), life(50));
    Opener::new(CLUSTER, keys.clone(), me, Senders::Only(nodes))
}

fn plain(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
    bytes.resize(len + SEALED_BYTES, 0);
    bytes
}

fn sealed(sealer: &mut Sealer, class: Class) -> Vec<u8> {
    let mut datagram = plain(100);
    sealer.seal(class, Target::Others, &mut datagram);
    datagram
}

fn open(opener: &mut Opener, class: Class, datagram: &[u8]) -> Result<(), OpenError> {
    opener.open(Time(0), class, &mut datagram.to_vec())
}

#[test]
fn a_sealed_datagram_shows_its_header_hides_its_body_and_opens() {
    let keys = KeyRing::generate().unwrap();
    for len in [HEADER_BYTES, HEADER_BYTES + 1, 100, 1426, 65_000] {
        let mut datagram = plain(len);
        let before = datagram.clone();
        sealer(&keys, 1, 1).seal(Class::Data, Target::Others, &mut datagram);
        assert_eq!(datagram[..HEADER_BYTES], before[..HEADER_BYTES]);
        let body = HEADER_BYTES..len;
        if len > HEADER_BYTES + 16 {
            assert_ne!(datagram[body.clone()], before[body]);
        }
        let mut opener = opener(&keys);
        assert_eq!(opener.open(Time(0), Class::Data, &mut datagram), Ok(()));
        assert_eq!(datagram[..len], before[..len]);
    }
}

#[test]
fn any_flipped_bit_is_found_whether_the_sender_is_known_or_not() {
    let keys = KeyRing::generate().unwrap();
    for known in [false, true] {
        for class in [Class::Data, Class::Token] {
            let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
            if known {
                assert_eq!(
                    open(&mut opener, class, &sealed(&mut sealer, class)),
                    Ok(())
                );
            }
            let datagram = sealed(&mut sealer, class);
            for bit in 0..datagram.len() * 8 {
                let mut damaged = datagram.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // A little later each time: unknown lives are checked at a bounded rate.
                let now = Time(bit as u64 * 10_000_000);
                let result = opener.open(now, class, &mut damaged);
                assert!(result.is_err(), "bit {bit} of {datagram:?}");
                assert_ne!(result, Err(OpenError::Unchecked), "bit {bit}");
            }
            assert_eq!(open(&mut opener, class, &datagram), Ok(()));
        }
    }
}

#[test]
fn a_wrong_key_is_no_key() {
    let (keys, others) = (KeyRing::generate().unwrap(), KeyRing::generate().unwrap());
    let datagram = sealed(&mut sealer(&others, 1, 1), Class::Data);
    let mut opener = opener(&keys);
    assert_eq!(
        open(&mut opener, Class::Data, &datagram),
        Err(OpenError::Forged)
    );
    let mut second = keys.clone();
    second.add().unwrap();
    second.send_with(2).unwrap();
    let datagram = sealed(&mut sealer(&second, 1, 1), Class::Data);
    let unknown = Err(OpenError::UnknownKey);
    assert_eq!(open(&mut opener, Class::Data, &datagram), unknown);
    let mut other = Sealer::new(CLUSTER + 1, keys, id(1), life(1)).unwrap();
    let datagram = sealed(&mut other, Class::Data);
    assert_eq!(
        open(&mut opener, Class::Data, &datagram),
        Err(OpenError::Forged)
    );
    assert_eq!(opener.senders(), 0);
}

#[test]
fn a_datagram_without_a_seal_is_refused() {
    let keys = KeyRing::generate().unwrap();
    let mut datagram = plain(100);
    checksum::seal(&mut datagram);
    let result = open(&mut opener(&keys), Class::Data, &datagram);
    assert_eq!(result, Err(OpenError::UnknownKey));
    let datagram = sealed(&mut sealer(&keys, 1, 1), Class::Data);
    assert_eq!(checksum::open(&datagram), Err(OpenError::Checksum));
    let least = HEADER_BYTES + SEALED_BYTES;
    for len in 0..least {
        let result = open(&mut opener(&keys), Class::Data, &datagram[..len]);
        let expected = if len < HEADER_BYTES + SEAL_BYTES {
            OpenError::Short
        } else {
            OpenError::UnknownKey
        };
        assert_eq!(result, Err(expected), "{len}");
        sealer(&keys, 1, 1).seal(Class::Data, Target::Others, &mut vec![0; len]);
    }
}

#[test]
fn what_has_come_is_refused_and_what_was_overtaken_is_not() {
    let keys = KeyRing::generate().unwrap();
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    let early = sealed(&mut sealer, Class::Data);
    let second = sealed(&mut sealer, Class::Data);
    let later: Vec<_> = (2..WIDTH)
        .map(|_| sealed(&mut sealer, Class::Data))
        .collect();
    for datagram in later.iter().rev() {
        assert_eq!(open(&mut opener, Class::Data, datagram), Ok(()));
    }
    for datagram in later.iter().chain([&later[0]]) {
        let again = open(&mut opener, Class::Data, datagram);
        assert_eq!(again, Err(OpenError::Seen));
    }
    assert_eq!(open(&mut opener, Class::Data, &early), Ok(()));
    assert_eq!(open(&mut opener, Class::Data, &early), Err(OpenError::Seen));
    let newer = sealed(&mut sealer, Class::Data);
    assert_eq!(open(&mut opener, Class::Data, &newer), Ok(()));
    assert_eq!(open(&mut opener, Class::Data, &early), Err(OpenError::Old));
    assert_eq!(open(&mut opener, Class::Data, &second), Ok(()));
}

#[test]
fn the_two_sockets_wait_for_each_other_without_end() {
    let keys = KeyRing::generate().unwrap();
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    let token = sealed(&mut sealer, Class::Token);
    for _ in 0..3 * WIDTH {
        let data = sealed(&mut sealer, Class::Data);
        assert_eq!(open(&mut opener, Class::Data, &data), Ok(()));
    }
    assert_eq!(open(&mut opener, Class::Data, &token), Err(OpenError::Old));
    assert_eq!(open(&mut opener, Class::Token, &token), Ok(()));
    let data = sealed(&mut sealer, Class::Data);
    assert_eq!(
        open(&mut opener, Class::Token, &data),
        Err(OpenError::Forged)
    );
}

#[test]
fn a_token_is_for_one_node_and_nobody_hears_himself() {
    let keys = KeyRing::generate().unwrap();
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    for (to, expected) in [(2, Err(OpenError::Misdirected)), (9, Ok(()))] {
        let mut datagram = plain(100);
        sealer.seal(Class::Token, Target::Node(id(to)), &mut datagram);
        assert_eq!(open(&mut opener, Class::Token, &datagram), expected);
    }
    // Data for one node travels to all.
    let mut datagram = plain(100);
    sealer.seal(Class::Data, Target::Node(id(2)), &mut datagram);
    assert_eq!(open(&mut opener, Class::Data, &datagram), Ok(()));

    let mut own = self::sealer(&keys, 9, 50);
    let own = sealed(&mut own, Class::Data);
    assert_eq!(
        open(&mut opener, Class::Data, &own),
        Err(OpenError::Misdirected)
    );
    let mut earlier = self::sealer(&keys, 9, 49);
    let earlier = sealed(&mut earlier, Class::Data);
    assert_eq!(
        open(&mut opener, Class::Data, &earlier),
        Err(OpenError::OldLife)
    );
    // Another process has started as this node: the engine has to hear that.
    let mut later = self::sealer(&keys, 9, 51);
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut later, Class::Data)),
        Ok(())
    );
}

#[test]
fn another_senders_name_does_not_fit() {
    let keys = KeyRing::generate().unwrap();
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    let datagram = sealed(&mut sealer, Class::Data);
    let sender_at = datagram.len() - 28;
    assert_eq!(datagram[sender_at..sender_at + 2], [1, 0]);
    for (name, expected) in [
        (2, OpenError::Forged),
        (3, OpenError::Forged),
        (4, OpenError::UnknownSender),
        (0, OpenError::UnknownSender),
    ] {
        let mut renamed = datagram.clone();
        renamed[sender_at] = name;
        assert_eq!(open(&mut opener, Class::Data, &renamed), Err(expected));
    }
    assert_eq!(open(&mut opener, Class::Data, &datagram), Ok(()));
}

#[test]
fn a_later_life_retires_the_one_before() {
    let keys = KeyRing::generate().unwrap();
    let mut opener = opener(&keys);
    let (mut first, mut second) = (sealer(&keys, 1, 1), sealer(&keys, 1, 2));
    let of_first = sealed(&mut first, Class::Data);
    assert_eq!(open(&mut opener, Class::Data, &of_first), Ok(()));
    // A datagram that is not authentic retires no life.
    let mut forged = sealed(&mut second, Class::Data);
    forged[HEADER_BYTES] ^= 1;
    assert_eq!(
        open(&mut opener, Class::Data, &forged),
        Err(OpenError::Forged)
    );
    let of_first = sealed(&mut first, Class::Data);
    assert_eq!(open(&mut opener, Class::Data, &of_first), Ok(()));
    let of_second = sealed(&mut second, Class::Data);
    assert_eq!(open(&mut opener, Class::Data, &of_second), Ok(()));
    for datagram in [of_first, sealed(&mut first, Class::Data)] {
        let refused = open(&mut opener, Class::Data, &datagram);
        assert_eq!(refused, Err(OpenError::OldLife));
    }
    assert_eq!(
        open(&mut opener, Class::Data, &of_second),
        Err(OpenError::Seen)
    );
    // Two lives that begin at the same time: the first that is heard stays.
    let twin = Life { start: 2, salt: 98 };
    let mut twin = Sealer::new(CLUSTER, keys, id(1), twin).unwrap();
    let refused = open(&mut opener, Class::Data, &sealed(&mut twin, Class::Data));
    assert_eq!(refused, Err(OpenError::OldLife));
    assert_eq!(opener.senders(), 1);
}

#[test]
fn keys_change_without_a_datagram_lost() {
    let mut keys = KeyRing::generate().unwrap();
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    let replayed = sealed(&mut sealer, Class::Data);
    assert_eq!(open(&mut opener, Class::Data, &replayed), Ok(()));
    keys.add().unwrap();
    opener.set_keys(CLUSTER, keys.clone());
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data)),
        Ok(())
    );
    let overtaken = sealed(&mut sealer, Class::Data);
    keys.send_with(2).unwrap();
    sealer.set_keys(CLUSTER, keys.clone()).unwrap();
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data)),
        Ok(())
    );
    assert_eq!(open(&mut opener, Class::Data, &overtaken), Ok(()));
    // The windows stay.
    for datagram in [&replayed, &overtaken] {
        assert_eq!(
            open(&mut opener, Class::Data, datagram),
            Err(OpenError::Seen)
        );
    }
    keys.remove(1).unwrap();
    opener.set_keys(CLUSTER, keys);
    assert_eq!(
        open(&mut opener, Class::Data, &overtaken),
        Err(OpenError::UnknownKey)
    );
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data)),
        Ok(())
    );
}

#[test]
fn another_key_under_an_old_id_is_another_key() {
    let (keys, others) = (KeyRing::generate().unwrap(), KeyRing::generate().unwrap());
    let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data)),
        Ok(())
    );
    opener.set_keys(CLUSTER, others.clone());
    let refused = open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data));
    assert_eq!(refused, Err(OpenError::Forged));
    sealer.set_keys(CLUSTER, others).unwrap();
    assert_eq!(
        open(&mut opener, Class::Data, &sealed(&mut sealer, Class::Data)),
        Ok(())
    );
}

#[test]
fn a_flood_of_forgeries_is_checked_at_a_bounded_rate_and_leaves_nothing_behind() {
    let keys = KeyRing::generate().unwrap();
    let mut opener = opener(&keys);
    let mut template = sealed(&mut sealer(&keys, 1, 1), Class::Data);
    let start_at = template.len() - 24;
    let (mut checked, floods) = (0, 10_000_u64);
    for attempt in 0..floods {
        template[start_at..start_at + 8].copy_from_slice(&(100 + attempt).to_le_bytes());
        // 10,000 of them in 100 ms.
        let result = opener.open(Time(attempt * 10_000), Class::Data, &mut template.clone());
        match result {
            Err(OpenError::Forged) => checked += 1,
            other => assert_eq!(other, Err(OpenError::Unchecked)),
        }
    }
    assert!((300..=400).contains(&checked), "{checked}");
    assert_eq!(opener.senders(), 0);
    // A known sender is not touched by that.
    let mut known = sealer(&keys, 2, 1);
    let later = Time(1_000_000_000);
    let first = opener.open(later, Class::Data, &mut sealed(&mut known, Class::Data));
    assert_eq!(first, Ok(()));
    for attempt in 0..1000_u64 {
        template[start_at..start_at + 8].copy_from_slice(&(1 << 40 | attempt).to_le_bytes());
        let forged = opener.open(later, Class::Data, &mut template.clone());
        assert!(forged.is_err());
        let real = opener.open(later, Class::Data, &mut sealed(&mut known, Class::Data));
        assert_eq!(real, Ok(()));
    }
    assert_eq!(opener.senders(), 1);
}

#[test]
fn however_many_nodes_join_few_are_remembered() {
    let keys = KeyRing::generate().unwrap();
    let mut opener = Opener::new(CLUSTER, keys.clone(), (id(9), life(50)), Senders::Any);
    for node in 100..1000 {
        let datagram = sealed(&mut sealer(&keys, node, 1), Class::Token);
        let now = Time(u64::from(node));
        assert_eq!(
            opener.open(now, Class::Token, &mut datagram.clone()),
            Ok(())
        );
        assert!(opener.senders() <= 256);
    }
}

proptest! {
    #[test]
    fn whatever_was_sealed_opens_once_in_any_order(
        order in prop::collection::vec((0_usize..60, any::<bool>()), 1..200),
        lens in prop::collection::vec(HEADER_BYTES..300, 60),
    ) {
        let keys = KeyRing::generate().unwrap();
        let (mut sealer, mut opener) = (sealer(&keys, 1, 1), opener(&keys));
        let mut all: Vec<_> = Vec::new();
        for (at, len) in lens.iter().enumerate() {
            let class = if at % 3 == 0 { Class::Token } else { Class::Data };
            let mut datagram = plain(*len);
            sealer.seal(class, Target::Others, &mut datagram);
            all.push((class, datagram, false));
        }
        for (at, as_other_class) in order {
            let (class, datagram, come) = &mut all[at];
            if as_other_class {
                let result = open(&mut opener, class.other(), datagram);
                prop_assert!(result.is_err(), "{:?}", result);
                continue;
            }
            let mut bytes = datagram.clone();
            let result = opener.open(Time(0), *class, &mut bytes);
            if *come {
                prop_assert_eq!(result, Err(OpenError::Seen));
            } else {
                prop_assert_eq!(result, Ok(()));
                let len = bytes.len() - SEALED_BYTES;
                prop_assert_eq!(&bytes[..len], &plain(len)[..len]);
            }
            *come = true;
        }
    }

    #[test]
    fn no_bytes_open_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let keys = KeyRing::generate().unwrap();
        let mut opener = Opener::new(CLUSTER, keys, (id(9), life(50)), Senders::Any);
        for class in [Class::Data, Class::Token] {
            prop_assert!(open(&mut opener, class, &bytes).is_err());
        }
        prop_assert_eq!(opener.senders(), 0);
    }
}
