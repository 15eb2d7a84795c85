//! Runs that were encoded are read back, and those that were changed are not.

use super::*;

fn place(n: u64) -> Place {
    Place {
        round: n,
        rank: Rank(3),
        instance: n + 1,
        index: 7,
    }
}

fn run(log: u64, first: u64, count: u64) -> Run {
    let mut builder = RunBuilder::new(log, first);
    for n in 0..count {
        builder.push(place(n), 100 + n, &vec![n as u8; n as usize * 5]);
    }
    builder.finish().unwrap()
}

#[test]
fn what_was_encoded_is_decoded() {
    let run = run(9, 5, 20);
    let checked = Run::check(9, 5, run.bytes().clone()).unwrap();
    assert_eq!((checked.first(), checked.next()), (5, 25));
    for (n, record) in (0..).zip(&checked) {
        assert_eq!((record.position, record.stamp_ms), (5 + n, 100 + n));
        assert_eq!(record.place, place(n));
        assert_eq!(record.payload, vec![n as u8; n as usize * 5]);
    }
    assert_eq!(checked.iter().count(), 20);
}

#[test]
fn bytes_of_a_record_are_what_they_always_were() {
    let mut out = BytesMut::new();
    encode(&mut out, 1, 2, place(3), 4, b"five");
    let mut expected = vec![4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
    expected.extend_from_slice(&[7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(b"five");
    let mut summed = 1_u64.to_le_bytes().to_vec();
    summed.extend_from_slice(&expected);
    assert_eq!(out[..4], crc_fast::crc32_iscsi(&summed).to_le_bytes());
    assert_eq!(out[4..], expected);
}

#[test]
fn runs_of_another_log_or_position_are_refused() {
    let bytes = run(9, 5, 3).into_bytes();
    assert_eq!(Run::check(8, 5, bytes.clone()), Err(RunError::Sum(5)));
    assert_eq!(Run::check(9, 4, bytes), Err(RunError::Header(4)));
    assert_eq!(Run::check(9, 4, Bytes::new()), Err(RunError::Empty));
}

#[test]
fn runs_with_a_hole_are_refused() {
    let mut bytes = run(9, 5, 1).into_bytes().to_vec();
    bytes.extend_from_slice(run(9, 7, 1).bytes());
    assert_eq!(Run::check(9, 5, bytes.into()), Err(RunError::Header(6)));
}

#[test]
fn every_flipped_bit_and_every_cut_is_seen() {
    let bytes = run(9, 5, 3).into_bytes();
    let ends: Vec<usize> = (1..3)
        .map(|n| run(9, 5, n).bytes().len())
        .chain([bytes.len()])
        .collect();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut wrong = bytes.to_vec();
            wrong[at] ^= 1 << bit;
            assert!(Run::check(9, 5, wrong.into()).is_err(), "{at} {bit}");
        }
        let cut = Run::check(9, 5, bytes.slice(..at));
        assert_eq!(cut.is_ok(), ends.contains(&at), "{at}");
    }
}

#[test]
fn parts_are_of_the_records_asked_for() {
    let run = run(9, 5, 20);
    let part = run.part(7, 11, usize::MAX).unwrap();
    assert_eq!((part.first(), part.next()), (7, 11));
    let part = run.part(7, 11, 1).unwrap();
    assert_eq!((part.first(), part.next()), (7, 8));
    assert!(Run::check(9, 7, part.into_bytes()).is_ok());
    assert!(run.part(25, 30, 1).is_none());
    assert_eq!(run.part(1, 90, usize::MAX), Some(run));
}
