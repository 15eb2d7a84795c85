//! Each contradiction is found, and nothing else.

use super::*;

fn step(began: u64, ended: impl Into<Option<u64>>, what: What) -> Step {
    Step {
        client: 1,
        began,
        ended: ended.into(),
        what,
    }
}

fn append(began: u64, ended: impl Into<Option<u64>>, values: &[(&str, &str, u64)]) -> Step {
    let value = |(log, value, at): &(&str, &str, u64)| {
        let position = Some(*at).filter(|at| *at > 0);
        ((*log).to_owned(), (*value).to_owned(), position)
    };
    let values = values.iter().map(value).collect();
    step(began, ended, What::Append { values })
}

fn read(began: u64, log: &str, from: u64, found: &[(u64, &str)]) -> Step {
    let found = found.iter().map(|(at, value)| (*at, (*value).to_owned()));
    let what = What::Read {
        log: log.to_owned(),
        from,
        found: found.collect(),
        to_end: true,
    };
    step(began, began + 1, what)
}

fn merged(found: &[(&str, u64, &str, u64)]) -> Step {
    let one = |(log, at, value, place): &(&str, u64, &str, u64)| {
        (
            (*log).to_owned(),
            *at,
            (*value).to_owned(),
            (*place, 1, 1, 0),
        )
    };
    let what = What::Merged {
        logs: Vec::new(),
        found: found.iter().map(one).collect(),
    };
    step(90, 91, what)
}

fn logs() -> Logs {
    let log = |first, values: &[&str]| Log {
        first,
        values: values.iter().map(ToString::to_string).collect(),
    };
    [
        ("a".to_owned(), log(1, &["a1", "a2", "a3"])),
        ("b".to_owned(), log(3, &["b3", "b4"])),
    ]
    .into()
}

fn history() -> Vec<Step> {
    vec![
        append(1, 5, &[("a", "a1", 1)]),
        append(6, 9, &[("a", "a2", 2), ("b", "b3", 3)]),
        append(7, None, &[("a", "a3", 0), ("b", "b4", 0)]),
        append(1, 2, &[("b", "b1", 1)]),
        append(3, 4, &[("b", "b2", 2)]),
        append(8, None, &[("a", "lost", 0)]),
        step(
            8,
            9,
            What::Refused {
                values: vec![("a".to_owned(), "no".to_owned())],
            },
        ),
        read(10, "a", 1, &[(1, "a1"), (2, "a2")]),
        read(11, "b", 1, &[(1, "b1"), (2, "b2"), (3, "b3"), (4, "b4")]),
        merged(&[
            ("a", 1, "a1", 5),
            ("b", 3, "b3", 8),
            ("a", 2, "a2", 9),
            ("b", 4, "b4", 10),
            ("a", 3, "a3", 11),
        ]),
    ]
}

#[test]
fn what_can_be_is_found_sound() {
    let summary = judge(&history(), &logs()).expect("it can be");
    assert_eq!(
        (summary.acknowledged, summary.unanswered, summary.seen),
        (4, 2, 1)
    );
    assert_eq!((summary.refused, summary.several, summary.reads), (1, 2, 3));
    assert_eq!((summary.read, summary.entries), (11, 5));
}

#[test]
fn what_cannot_be_is_found() {
    type Change = fn(&mut Vec<Step>, &mut Logs);
    let wrong: [(&str, Change); 12] = [
        ("is twice there", |_, logs| {
            logs.get_mut("a").expect("a").values.push("a1".to_owned());
        }),
        ("was acknowledged and is not", |steps, logs| {
            logs.get_mut("a").expect("a").values[1] = "other".to_owned();
            steps.push(append(1, None, &[("a", "other", 0)]));
        }),
        ("was refused and is", |steps, logs| {
            logs.get_mut("a").expect("a").values.push("no".to_owned());
            steps.push(append(1, None, &[("a", "more", 0)]));
        }),
        ("a part of it is there", |_, logs| {
            logs.get_mut("a").expect("a").values.pop();
        }),
        ("nobody has appended", |_, logs| {
            logs.get_mut("b").expect("b").values.push("b5".to_owned());
        }),
        ("stands behind it", |steps, _| {
            steps[0].began = 20;
            steps[0].ended = Some(30);
        }),
        ("is not x", |steps, _| {
            steps.push(read(12, "a", 1, &[(1, "x"), (2, "a2"), (3, "a3")]));
        }),
        ("did not see a 2", |steps, _| {
            steps.push(read(12, "a", 1, &[(1, "a1")]));
        }),
        ("is told out of order", |steps, _| {
            steps.push(read(12, "a", 1, &[(1, "a1"), (3, "a3")]));
        }),
        ("is told out of order", |steps, _| {
            steps.push(merged(&[("a", 1, "a1", 5), ("a", 2, "a2", 5)]));
        }),
        ("has two places", |steps, _| {
            steps.push(merged(&[("a", 1, "a1", 6)]));
        }),
        ("ends before it begins", |steps, _| steps[0].ended = Some(0)),
    ];
    for (words, change) in wrong {
        let (mut steps, mut logs) = (history(), logs());
        change(&mut steps, &mut logs);
        let found = judge(&steps, &logs).expect_err(words).to_string();
        assert!(found.contains(words), "{words}: {found}");
    }
}
