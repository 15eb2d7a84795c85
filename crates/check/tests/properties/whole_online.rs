//! One order of which nobody leaves anything out: each property red, and green on what is nearly wrong.
//!
//! Stories are as those of views, but that a configuration has a place: `3ab` is at packet 3. Messages have places of
//! packets, `a1@2` that of the second.

use rota_check::Violation;
use rota_check::event::EventKind;
use rota_check::online::WholeOnline;
use rota_core::contract::Process;

use super::story::process;
use super::uniform_story::events;

/// Looks at a story, and then at its end, at which these live.
fn observe(text: &str, alive: &str) -> Result<WholeOnline, Violation> {
    let mut online = WholeOnline::new();
    for mut event in events(text).0 {
        match &mut event.kind {
            // Others report that.
            EventKind::Primary(_) => continue,
            EventKind::Delivered(placed) => placed.position <<= 16,
            _ => {}
        }
        online.observe(&event)?;
    }
    let alive = alive.chars().map(|letter| process(&letter.to_string()));
    online.rest(alive)?;
    Ok(online)
}

#[track_caller]
fn red(property: &str, text: &str) {
    let Err(violation) = observe(text, "") else {
        panic!("not seen: {text}");
    };
    assert_eq!(violation.property, property, "{violation}");
}

#[track_caller]
fn red_at_rest(property: &str, text: &str, alive: &str) {
    observe(text, "").unwrap_or_else(|violation| panic!("{violation}"));
    let Err(violation) = observe(text, alive) else {
        panic!("not seen: {text}");
    };
    assert_eq!(violation.property, property, "{violation}");
}

#[track_caller]
fn green(text: &str, alive: &str) -> WholeOnline {
    match observe(text, alive) {
        Ok(online) => online,
        Err(violation) => panic!("{violation}: {text}"),
    }
}

const BEGUN: &str = "abc: 1abc
    a: !a1 !a2
    b: !b1
    ab: a1@2 b1@3";

fn after(text: &str) -> String {
    format!("{BEGUN}\n{text}")
}

#[test]
fn all_have_the_same_at_the_same_places() {
    let online = green(&after("c: a1@2 b1@3\n abc: a2@5"), "abc");
    assert_eq!(online.places(), 4);
    red("UTO", &after("c: b1@2"));
    red("UTO", &after("c: a1@3"));
    red("UTO", &after("a: a2@5\n b: a2@6"));
    red("UTO", &after("a: a2@3"));
    red("UTO", "abc: 1abc\n a: !a1\n a: a1@4\n b: a1@3");
}

#[test]
fn nobody_leaves_anything_out() {
    red("UTO", &after("c: b1@3"));
    // Others have passed the place.
    red("UTO", &after("c: a1@2\n a: a2@7\n c: !c1\n c: b1@3 c1@6"));
    green(&after("c: a1@2\n a: a2@7\n c: b1@3 !c1\n b: a2@7 c1@8"), "");
    // Who starts again begins with the first place.
    red("UTO", &after("a: crash\n A: a1@2"));
    green(&after("a: crash\n A: 1abc a1@2 b1@3\n c: a1@2 b1@3"), "bcA");
}

#[test]
fn members_change_within_the_order() {
    let changes = |a: &str, c: &str| after(&format!("ab: 4ab\n a: {a}\n c: a1@2 b1@3 {c}"));
    // c is told, though it is not among them.
    green(&changes("a2@5", "4ab a2@5"), "c");
    red("UTO", &changes("a2@5", "a2@5"));
    red("UTO", &changes("a2@5", "4abc"));
    red("UTO", &changes("a2@4", ""));
    red("UTO", &changes("", "4ab>9ab:c"));
    red("UTO", &changes("x9a", ""));
    red("UTO", "abc: 4abc\n a: !a1 a1@3");
}

#[test]
fn what_is_delivered_was_broadcast_as_it_is() {
    red("UI", &after("a: c1@5"));
    red("UI", &after("a: a2@5#9"));
    red("UI", &after("a: a2s@5"));
    red("UI", &after("a: !a4"));
    red("UI", &after("a: !a2"));
    red("UI", &after("a: !b2"));
    red("UI", &after("a: ?a3#1 !a3#2"));
    red("UI", &after("a: crash !a3"));
    red("UI", &after("a: start"));
    red("UI", &after("a: =a2"));
    green(&after("a: ?a3#1 !a3#1 a2@5 a3@6#1 leave crash"), "");
    // A process has a message once.
    red("UTO", &after("a: a1@2"));
    red("UTO", &after("a: a1@9"));
}

#[test]
fn each_sender_is_heard_in_its_order_without_gaps() {
    red("fifo", "abc: 1abc\n a: !a1 !a2\n b: a2@2");
    red("fifo", "abc: 1abc\n a: !a1 !a2 !a3\n b: a1@2 a3@3");
    red("fifo", "abc: 1abc\n a: !a1 !a2\n b: a2@2 a1@3");
}

#[test]
fn at_rest_all_have_everything_and_their_own() {
    let all = after("c: a1@2 b1@3\n abc: a2@4");
    green(&all, "abc");
    red_at_rest(
        "UA",
        &after("c: a1@2\n abc: 4abc").replace("abc: 4abc", "ab: a2@5"),
        "abc",
    );
    // Who died may have been the only one who had it.
    red_at_rest("UA", &all.replace("abc: a2@4", "a: a2@4 crash"), "b");
    green(&all.replace("abc: a2@4", "a: a2@4 crash"), "");
    red_at_rest("UV", &after("c: a1@2 b1@3"), "abc");
    green(&after("c: a1@2 b1@3\n a: crash"), "bc");
    red_at_rest("UA", &after("A:"), "A");
}

/// A story, and what a process is told then: that all before a packet is forgotten.
fn told(text: &str, who: &str, next: u64, own: u64) -> (WholeOnline, Result<(), Violation>) {
    let mut online = green(text, "");
    let result = online.missed(process(who), next, own);
    (online, result)
}

fn take(online: &mut WholeOnline, words: &str) -> Result<(), Violation> {
    // The same messages, known from the story before.
    for mut event in events(words).0 {
        let EventKind::Delivered(placed) = &mut event.kind else {
            continue;
        };
        placed.position <<= 16;
        online.observe(&event)?;
    }
    Ok(())
}

#[test]
fn only_what_is_forgotten_is_left_out_and_no_more() {
    let long = after("ab: a2@4\n A:");
    let who: Process = process("A");
    let (mut online, result) = told(&long, "A", 3, 0);
    assert_eq!(result, Ok(()));
    assert_eq!(take(&mut online.clone(), "A: b1@3 a2@4"), Ok(()));
    // It does not know how far a had got.
    let (mut other, _) = told(&long, "A", 4, 0);
    assert_eq!(take(&mut other, "A: a2@4"), Ok(()));
    assert_eq!(other.rest([who]), Ok(()));
    let skipped = take(&mut online, "A: a2@4").expect_err("b1 was not forgotten");
    assert_eq!(skipped.property, "UTO");
    // Nobody misses what it has.
    let (_, result) = told(&long, "a", 4, 1);
    assert_eq!(result.expect_err("it had more").property, "UTO");
}

#[test]
fn who_is_told_of_its_own_messages_need_not_see_them() {
    let story = "abc: 1abc\n c: !c1 !c2\n ab: c1@2 crash";
    let (online, result) = told(story, "c", 3, 1);
    assert_eq!(result, Ok(()));
    // Of the second it is told nothing.
    assert_eq!(online.rest([process("c")]).expect_err("c2").property, "UV");
    let (online, result) = told(story, "c", 9, 2);
    assert_eq!((result, online.rest([process("c")])), (Ok(()), Ok(())));
    let (_, result) = told(story, "c", 9, 3);
    assert_eq!(result.expect_err("there is no such message").property, "UI");
}
