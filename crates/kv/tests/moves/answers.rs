//! The joined answers of several partitions.

use rota_kv::store::{Answer, Outcome};

/// What became of each operation; `None`: nothing was done anywhere, and all say so.
pub fn merged<'a>(answers: impl Iterator<Item = &'a Answer>) -> Option<Vec<(u32, Outcome)>> {
    let (mut all, mut moving, mut count) = (Vec::new(), 0, 0);
    for answer in answers {
        count += 1;
        match answer {
            Answer::Outcomes(outcomes) => all.extend(outcomes.iter().cloned()),
            Answer::Moving => moving += 1,
            // Of one partition: it did nothing.
            Answer::Refused => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(moving == 0 || moving == count, "done by half");
    all.sort_by_key(|(at, _)| *at);
    // What is of all partitions is answered by each.
    all.dedup();
    (moving == 0).then_some(all)
}
