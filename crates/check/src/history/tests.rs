//! Histories that are right, and others that are not.

use super::*;

fn step(times: (u64, u64), place: u64) -> Step {
    Step {
        client: 1,
        began: times.0,
        ended: (times.1 > 0).then_some(times.1),
        place: (place > 0).then_some((place, 1, place, 0)),
        reads: Vec::new(),
        writes: Vec::new(),
    }
}

impl Step {
    fn read(mut self, key: &str, value: &str) -> Self {
        let value = (!value.is_empty()).then(|| value.to_owned());
        self.reads.push((key.to_owned(), value));
        self
    }

    fn write(mut self, key: &str, value: &str) -> Self {
        let value = (!value.is_empty()).then(|| value.to_owned());
        self.writes.push((key.to_owned(), value));
        self
    }
}

#[test]
fn what_one_order_explains_is_right() {
    let history = [
        step((0, 9), 2).write("a", "1").write("b", "1"),
        step((1, 3), 1).read("a", ""),
        step((4, 8), 3).read("a", "1").read("b", "1"),
        step((10, 12), 5).write("a", ""),
        step((11, 13), 6).read("a", ""),
    ];
    let summary = judge(&history).expect("it is right");
    assert_eq!((summary.answered, summary.reads, summary.writes), (5, 4, 3));
}

#[test]
fn a_read_that_is_old_is_found() {
    let history = [
        step((0, 1), 1).write("a", "1"),
        step((2, 3), 3).write("a", "2"),
        step((4, 5), 4).read("a", "1"),
    ];
    let found = judge(&history).expect_err("it is old");
    assert!(matches!(found, Wrong::Read { step: 2, .. }), "{found}");
    // The same with a place that fits: then the time does not.
    let mut history = history;
    history[2].place = Some((2, 1, 2, 0));
    assert!(matches!(judge(&history), Err(Wrong::Cycle(_))));
}

/// Two partitions: a scan sees the second write and not the first one, which was answered before that began.
#[test]
fn what_no_order_explains_is_found_though_each_partition_has_one() {
    let history = [
        step((0, 9), 100).read("x", "").read("y", "1"),
        step((1, 2), 105).write("x", "1"),
        step((3, 4), 95).write("y", "1"),
    ];
    let Err(Wrong::Cycle(cycle)) = judge(&history) else {
        panic!("there is no order");
    };
    assert_eq!(cycle.len(), 3);
}

#[test]
fn what_was_not_answered_may_have_been_done_once() {
    let lost = step((0, 0), 0).write("a", "1");
    let seen = [
        lost.clone(),
        step((1, 2), 1).read("a", ""),
        step((3, 4), 2).read("a", "1"),
        step((5, 6), 3).write("a", "2"),
        step((7, 8), 4).read("a", "2"),
    ];
    let summary = judge(&seen).expect("it is right");
    assert_eq!((summary.unanswered, summary.seen), (1, 1));
    let mut twice = seen.to_vec();
    twice.push(step((9, 10), 5).read("a", "1"));
    assert!(matches!(judge(&twice), Err(Wrong::Read { step: 5, .. })));
    // It cannot have been done before it was asked for.
    let mut early = seen;
    early[0].began = 5;
    assert!(matches!(judge(&early), Err(Wrong::Cycle(_))));
}

#[test]
fn what_only_reads_stands_right_behind_what_was_done_at_its_place() {
    let reads = [
        step((3, 4), 2).read("a", "2"),
        step((5, 6), 2).read("a", "2"),
        step((0, 1), 1).write("a", "1"),
        step((1, 2), 2).write("a", "2"),
    ];
    assert!(judge(&reads).is_ok());
    let mut stale = reads.to_vec();
    stale.push(step((7, 8), 1).read("a", "1"));
    assert!(matches!(judge(&stale), Err(Wrong::Cycle(_))));
}

#[test]
fn what_is_no_history_is_refused() {
    let two = [
        step((0, 1), 1).write("a", "1"),
        step((0, 1), 1).write("b", "1"),
    ];
    assert_eq!(judge(&two), Err(Wrong::SamePlace(0, 1)));
    assert_eq!(judge(&[step((0, 1), 0)]), Err(Wrong::NoPlace(0)));
    assert_eq!(judge(&[step((2, 1), 1)]), Err(Wrong::NoPlace(0)));
}

#[test]
fn a_line_is_read_as_it_was_written() {
    let step = step((1, 2), 3).read("a", "").write("b", "1");
    let text = serde_json::to_string(&step).expect("text");
    assert_eq!(serde_json::from_str::<Step>(&text).expect("a step"), step);
}

/// Of a key that was taken away by somebody who was never told.
#[test]
fn a_key_may_have_been_taken_away_by_each_once() {
    let history = |deletes: usize| {
        let mut history = vec![step((0, 1), 1).write("a", "1")];
        history.extend(vec![step((2, 0), 0).write("a", ""); deletes]);
        history.extend([
            step((3, 4), 2).read("a", ""),
            step((5, 6), 3).write("a", "2"),
            step((7, 8), 4).read("a", ""),
        ]);
        judge(&history)
    };
    assert!(history(2).is_ok());
    assert!(matches!(history(1), Err(Wrong::Read { .. })));
    let mut late = vec![
        step((5, 0), 0).write("a", ""),
        step((0, 1), 1).write("a", "1"),
    ];
    late.push(step((2, 3), 2).read("a", ""));
    assert!(matches!(judge(&late), Err(Wrong::Cycle(_))));
}

/// What was never answered was done whole or not at all.
#[test]
fn half_of_what_was_never_answered_is_found() {
    let both = || step((0, 0), 0).write("x", "1").write("y", "1");
    let half = [
        both(),
        step((1, 2), 10).read("x", "1"),
        step((3, 4), 11).read("y", ""),
    ];
    assert!(matches!(judge(&half), Err(Wrong::Read { step: 2, .. })));
    let whole = [
        both(),
        step((1, 2), 10).read("x", "1"),
        step((3, 4), 11).read("y", "1"),
    ];
    assert!(judge(&whole).is_ok());
    // Somebody may have written the other key behind it, before it was seen.
    let over = [
        both(),
        step((1, 2), 5).read("x", ""),
        step((1, 3), 7).write("y", "2"),
        step((4, 5), 10).read("x", "1"),
        step((6, 7), 11).read("y", "2"),
    ];
    assert!(judge(&over).is_ok());
    // Not if that was before the key was last seen without it.
    let before = [
        both(),
        step((1, 2), 5).write("y", "2"),
        step((1, 3), 7).read("x", ""),
        step((4, 5), 10).read("x", "1"),
        step((6, 7), 11).read("y", "2"),
    ];
    assert!(matches!(judge(&before), Err(Wrong::Read { step: 4, .. })));
}
