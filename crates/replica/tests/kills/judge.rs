//! The rules for all answers, and for the lines that replicas have in the end.

use std::collections::BTreeMap;
use std::time::Instant;

use super::process::partition;

/// The ring that all have.
const COMMON: u16 = 4;

/// An answer: the line's number in the partition of whoever asked.
pub struct Answer {
    pub number: usize,
    pub ring: u16,
    pub text: String,
    pub asked: Instant,
    pub answered: Instant,
}

/// Of one process.
pub struct Journals {
    pub node: u16,
    pub answers: Vec<Answer>,
    pub lines: Vec<String>,
}

/// Judges all. How many answers there were.
pub fn judge(all: &[Journals]) -> usize {
    let of = |wanted: u16| all.iter().filter(move |of| partition(of.node) == wanted);
    let mut common: BTreeMap<&str, u16> = BTreeMap::new();
    for journals in all {
        for answer in &journals.answers {
            if answer.ring == COMMON {
                common.insert(&answer.text, journals.node);
            }
        }
    }
    let mut orders = Vec::new();
    for wanted in 1..=3 {
        let lines = &of(wanted).next().expect("three").lines;
        for other in of(wanted) {
            let first = lines.iter().zip(&other.lines).position(|(a, b)| a != b);
            assert!(
                *lines == other.lines,
                "partition {wanted}: {} lines and {}, the first difference at {first:?}",
                lines.len(),
                other.lines.len()
            );
        }
        let mut at: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, text) in lines.iter().enumerate() {
            let before = at.insert(text, index);
            assert_eq!(before, None, "partition {wanted}: {text} stands twice");
        }
        for answer in of(wanted).flat_map(|of| &of.answers) {
            let has = lines.get(answer.number - 1);
            assert_eq!(
                has,
                Some(&answer.text),
                "partition {wanted}, line {}",
                answer.number
            );
        }
        for (text, by) in &common {
            assert!(
                at.contains_key(text),
                "partition {wanted} lacks {text}, which was answered by {by}"
            );
        }
        let is_common = |text: &&&str| common.contains_key(**text);
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        let order: Vec<&str> = texts.iter().filter(is_common).copied().collect();
        orders.push(order);
        in_real_time(of(wanted).flat_map(|of| &of.answers));
    }
    assert!(
        orders.iter().all(|order| *order == orders[0]),
        "partitions have other orders of what all of them have"
    );
    all.iter().map(|of| of.answers.len()).sum()
}

/// What was answered before something was asked stands before it.
fn in_real_time<'a>(answers: impl Iterator<Item = &'a Answer>) {
    let mut by_question: Vec<&Answer> = answers.collect();
    let mut by_answer = by_question.clone();
    by_question.sort_by_key(|answer| answer.asked);
    by_answer.sort_by_key(|answer| answer.answered);
    let mut answered = by_answer.into_iter().peekable();
    let mut last = 0;
    for question in by_question {
        while let Some(before) = answered.next_if(|before| before.answered < question.asked) {
            last = last.max(before.number);
        }
        assert!(
            question.number > last,
            "line {} was asked for when line {last} was answered",
            question.number
        );
    }
}
