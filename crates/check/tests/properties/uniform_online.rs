//! The incremental checker of one order over primary views: it finds each violation, finds nothing else, and forgets.

use std::fmt::Write as _;

use rota_check::Violation;
use rota_check::online::UniformOnline;
use rota_core::contract::NodeId;

use super::uniform_story::events;

fn observe_by(mut online: UniformOnline, text: &str) -> Result<UniformOnline, Violation> {
    let (events, _) = events(text);
    events.iter().try_for_each(|event| online.observe(event))?;
    Ok(online)
}

fn observe(text: &str) -> Result<UniformOnline, Violation> {
    observe_by(UniformOnline::new(), text)
}

#[track_caller]
fn red(property: &str, text: &str) {
    let violation = observe(text)
        .err()
        .unwrap_or_else(|| panic!("not seen: {text}"));
    assert_eq!(violation.property, property, "{violation}");
}

#[track_caller]
fn green(text: &str) {
    if let Err(violation) = observe(text) {
        panic!("{violation}: {text}");
    }
}

#[test]
fn a_life_is_lived_once() {
    red("VS3", "a: start");
    red("VS3", "a: 5a crash !a1");
    green("a: 5a crash crash\n A: !A1 7A");
    // Another life has begun.
    red("VS3", "a: 5a\n A: !A1\n a: !a1");
}

#[test]
fn what_is_delivered_was_broadcast_as_it_is() {
    red("UI", "a: 5a a1");
    red("UI", "a: 5a !a1#1 a1#2");
    red("UI", "a: 5a !a1s a1g");
    red("UI", "ab: 5ab\n a: !a1#1 a1#1\n b: a1#2");
    red("UI", "a: 5a !b1");
    red("UI", "a: 5a !a1 !a1");
    red("UI", "a: 5a !a2 !a1");
    red("UI", "a: ?a1#1 !a1#2");
    red("UI", "a: 5a =a1");
    green("a: ?a1s#1 !a1s#1 5a a1#1\n b: x2b");
}

#[test]
fn a_message_is_delivered_once_also_after_an_exclusion() {
    red("UI", "ab: 5ab\n a: !a1 a1 a1@9");
    let back = |last: &str| {
        format!(
            "abc: 5abc
            a: !a1 !a2
            abc: a1
            c: x7c
            ab: 9ab a2
            abc: 11abc
            c: {last}"
        )
    };
    red("UI", &back("a1@9"));
    green(&back("!c1 c1"));
}

#[test]
fn each_sender_is_heard_in_its_order() {
    red("fifo", "a: 5a !a1 !a2 a2 a1");
    // Nothing is left out within a view.
    red("fifo", "a: 5a !a1 !a2 !a3 a1 a3");
    green("a: 5a !a1 !a2 a1 a2");
    // Over a change, too, also by somebody else.
    red("fifo", "ab: 5ab\n a: !a1 !a2 a2\n b: 7b a1");
    // The end of a view may come to somebody only after others have gone on.
    green("abc: 5abc\n a: !a1 !a2\n c: x8c\n d: 9acd\n a: a1 9acd a2\n d: a2\n c: x10c");
    red("fifo", "abd: 5abd\n a: !a1 !a2 9ad a1@8\n d: 9ad\n b: a2@7");
}

#[test]
fn a_position_is_one_message_and_a_message_one_position() {
    let two = |a: &str, b: &str| format!("ab: 5ab\n a: !a1 !a2\n b: !b1\n a: {a}\n b: {b}");
    red("UTO", &two("a1@1", "b1@1"));
    red("UTO", &two("a1@1", "a1@2"));
    red("UTO", &two("a1@1 b1@2", "b1@2"));
    red("UTO", &two("a1@2 a2@1", ""));
    // Places of packets that carry only parts are nobody's.
    green(&two("a1@1 b1@5", "a1@1 b1@5"));
    green(&two("a1@1 b1@2", "a1@1"));
}

#[test]
fn a_view_begins_behind_all_earlier_ones() {
    let change = |a: &str, b: &str| format!("ab: 5ab\n a: !a1 !a2 a1@4 {a}\n b: {b}");
    green(&change("9ab a2@5", "a1 9ab a2"));
    // b is late, and finds more in the end of 5ab than a had got.
    red("VS5", &change("9ab a2@5", "!b1 a1 b1@6 9ab"));
    green(&change("9ab a2@7", "!b1 a1 b1@6 9ab"));
    let joiner = |place: u64| {
        format!("ab: 5ab\n a: !a1 a1@8\n b: a1\n c: x2c\n abc: 9abc\n c: !c1 c1@{place}")
    };
    red("VS5", &joiner(8));
    red("VS5", &joiner(1));
    green(&joiner(9));
}

#[test]
fn the_order_begins_anew_when_nobody_remembers() {
    let again = |rest: &str| {
        format!(
            "abc: 5abc\n a: !a1\n abc: a1@7\n ab: crash\n AB: x8A\n {rest}\n A: 9AB\n A: !A1 A1@1"
        )
    };
    // Two of three have forgotten.
    green(&again("c: x8c"));
    green(&again("c: crash"));
    // Of five they are no majority, and c remembers.
    let five: Vec<NodeId> = (1..=5).filter_map(NodeId::new).collect();
    let of_five = |text: &str| observe_by(UniformOnline::of(five.clone()), text);
    let violation = of_five(&again("c: x8c")).expect_err("c remembers");
    assert_eq!(violation.property, "VS5");
    assert!(of_five(&again("c: crash")).is_ok());
}

#[test]
fn what_only_they_delivered_who_have_forgotten_comes_in_the_new_order() {
    let again = |rest: &str| {
        format!(
            "abc: 5abc\n c: !c1\n a: c1@7\n c: x8c\n ab: crash\n AB: x8A\n AB: 9AB\n ABc: 12ABc\n {rest}"
        )
    };
    green(&again("A: c1@9\n c: c1@9\n B: c1@9"));
    // As it was broadcast, once, and nothing else.
    red("UI", &again("A: c1@9 c1@10"));
    red("UI", &again("A: c1@9#2"));
    red("fifo", &again("A: c1@9\n B: 14AB c1@11"));
    red("UI", &again("A: c2@9"));
    // In an order that goes on it has its place.
    red(
        "fifo",
        "abc: 5abc\n c: !c1\n a: c1@7\n c: x8c\n b: 9ab c1@8",
    );
}

#[test]
fn views_are_agreed_and_follow_each_other() {
    red("VS1", "a: 5b");
    red("VS1", "a: 5ab\n b: 5ab=bc");
    red("VS1", "a: 5a 5a");
    red("VS1", "a: 7a 5a");
    red("VS1", "a: 5a>7a:a");
    red("VS1", "a: 5a\n b: 5b");
    red("VS1", "a: ~5a !a1 a1");
    red("VS1", "a: ~5a 7a");
    red("VS1", "a: ~5a x7a");
    red("VS1", "a: 5a primary/5a");
    red("VS1", "a: 5a primary/7a");
    red("VS1", "a: 5a x5a");
    red("VS1", "a: 5a x7a x7a");
    green("a: ~5a !a1 primary/5a a1 x7a x8a 8a");
    // An outcome that came in a transitional configuration is delivered behind a later exclusion.
    green("ab: 5ab\n a: x9a 7ab 11ab");
}

#[test]
fn deliveries_are_of_the_current_view() {
    red("VS3", "a: !a1 a1");
    red("VS3", "a: 5a !a1 7a a1/5a");
    red("VS3", "a: 5a !a1 a1/7a");
}

#[test]
fn who_was_excluded_gets_the_rest_of_its_view_right_before_the_next() {
    let excluded = |rest: &str| {
        format!(
            "abc: 5abc
            a: !a1 !a2 a1
            c: x7c
            b: a1
            {rest}"
        )
    };
    green(&excluded("c: a1 9abc"));
    green(&excluded("c: x9c"));
    red("VS3", &excluded("c: a1 x9c"));
    // Others have gone on without it.
    red("VS3", &excluded("ab: 9ab\n c: a1 11abc"));
    green(&excluded("ab: 9ab\n c: 11abc"));
    // It was to be in that view, and has not come to it.
    red("VS3", &excluded("ab: 9abc\n c: a1 11abc"));
    // Of that view it does not know yet.
    green(&excluded("ab: 9abc 11ab\n c: a1 9abc"));
}

/// Three members, of which `c` lags behind, broadcast and deliver `count` messages.
fn run(count: usize) -> String {
    let mut text = String::from("abc: 5abc\n");
    for n in 1..=count {
        let _ = writeln!(text, "a: !a{n} a{n}\nb: a{n}");
        if n > 50 {
            let _ = writeln!(text, "c: a{}", n - 50);
        }
    }
    text
}

#[test]
fn what_all_have_passed_is_forgotten() {
    let online = observe(&run(20_000)).expect("legal");
    assert!(online.remembered() < 3000, "{}", online.remembered());
    // What is forgotten was delivered all the same.
    red("UI", &(run(5000) + "a: a17"));
    red("UTO", &(run(5000) + "b: !b1 b1@17"));
}

#[test]
fn views_that_nobody_is_in_are_forgotten() {
    let mut text = String::from("abc: 5abc\n");
    for number in 6..200 {
        let members = if number < 20 { "abc" } else { "ab" };
        if number == 20 {
            text += "c: crash\n";
        }
        let _ = writeln!(
            text,
            "{members}: {number}{members}\na: !a{number} a{number}"
        );
    }
    let online = observe(&text).expect("legal");
    assert_eq!(online.views(), 1);
    red("VS5", &(text.clone() + "ab: 300ab\n b: !b1 b1@30"));
    red("fifo", &(text.clone() + "ab: 300ab\n b: a17@999"));
    let online = observe(&(text + "a: leave\n b: crash")).expect("legal");
    assert_eq!(online.views(), 0);
}
