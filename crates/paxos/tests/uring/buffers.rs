//! The buffers that hold values that came along the ring.

use bytes::Bytes;
use rota_paxos::uring::{Record, Records, Said, Writer, decode};

use super::rules::{head, values};

/// A message with these values, in a buffer of its own.
fn message(count: usize) -> Bytes {
    let mut batch = Writer::new(&head(1, 1, (1, 1)), 100_000, 100_000);
    for (id, frame) in &values()[..count] {
        batch.value(None, *id, frame);
    }
    batch.finish().into_bytes()
}

/// Whether its values lie in what was read, each; `read` is what is decoded.
fn in_place(read: Bytes) -> Vec<bool> {
    let place = read.as_ptr_range();
    let Some((_, Said::Batch(_, body))) = decode(read) else {
        panic!("no batch");
    };
    let here = |record: Result<Record, ()>| match record {
        Ok(Record::Value(_, frame)) => place.contains(&frame.as_ptr()),
        other => panic!("{other:?}"),
    };
    // All are kept until the end: what one has let go, the next may get.
    let records: Vec<Result<Record, ()>> = Records::new(body, &[]).collect();
    records.into_iter().map(here).collect()
}

#[test]
fn large_values_stay_where_nothing_else_is_kept_with_them() {
    assert_eq!(in_place(message(1)), [true]);
    assert_eq!(in_place(message(2)), [true, true]);
    // Each of them would keep all others.
    assert_eq!(in_place(message(20)), [false; 20]);
    // So it would what else lies in a buffer that many messages share.
    let others = message(2);
    assert_eq!(in_place(others.clone()), [false, false]);
    drop(others);
}
