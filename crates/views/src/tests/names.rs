//! The bytes of packets' names and places.

use super::*;
use crate::names::{names, put_names};
use rota_core::bytes::Reader;

fn encoded(list: &[Name]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_names(&mut bytes, list);
    bytes
}

/// The list that these bytes are, to the last of them.
fn decoded(bytes: &[u8]) -> Option<Vec<Name>> {
    let mut reader = Reader(bytes);
    names(&mut reader).filter(|_| reader.0.is_empty())
}

/// Packets of sixteen senders whose clocks go on side by side, as LCR knows their places.
fn clocks(packets: u64) -> Vec<Name> {
    let of = |sender: u16| {
        (1..=packets).map(move |number| {
            let clock: Vec<u64> = (0..16).map(|other| 100_000 + number + other % 3).collect();
            name(sender, 100_000 + number, &clock)
        })
    };
    (0..16).flat_map(of).collect()
}

#[test]
fn lists_come_back_as_they_were_told() {
    let mut lists = vec![vec![], vec![name(0, 1, &[])], clocks(20)];
    // As far from each other as numbers can be, and places of any length.
    let far = [u64::MAX, 1, 1 << 63, (1 << 63) - 1, 1, u64::MAX, 2];
    let far = far.iter().zip(0_u16..).map(|(number, index)| {
        let place = vec![*number; usize::from(index) * 2 % 5];
        name([0, u16::MAX, 7][usize::from(index) % 3], *number, &place)
    });
    lists.push(far.collect());
    for list in lists {
        assert_eq!(decoded(&encoded(&list)), Some(list));
    }
}

#[test]
fn a_packet_whose_clock_goes_on_with_the_one_before_is_told_in_few_bytes() {
    let list = clocks(100);
    let bytes = encoded(&list).len();
    // Sixteen steps and five numbers, a few of them larger than a byte takes: not 151 bytes each.
    assert!(bytes < 22 * list.len(), "{bytes} for {}", list.len());
}

#[test]
fn a_number_has_one_form_and_senders_two_bytes() {
    let sound = [1, 0, 2, 5, 2, 1, 4];
    assert_eq!(decoded(&sound).map(|list| list[0].place[0]), Some(2));
    let longer = |at: usize| {
        let mut bytes = sound.to_vec();
        bytes[at] |= 0x80;
        bytes.insert(at + 1, 0);
        bytes
    };
    // All but the load are numbers.
    for at in [0, 1, 2, 4, 5, 6] {
        assert_eq!(decoded(&longer(at)), None, "at {at}");
    }
    let mut far = sound.to_vec();
    far.splice(1..2, [0x80, 0x80, 4]);
    assert_eq!(decoded(&far), None, "sender 65536");
    let without_number = [1, 0, 0, 5, 2, 0];
    assert_eq!(decoded(&without_number), None);
}

#[test]
fn counts_beyond_what_follows_cost_nothing() {
    let count = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(decoded(&count), None);
    let place = [&[1, 0, 2, 5, 2][..], &count].concat();
    assert_eq!(decoded(&place), None);
}
