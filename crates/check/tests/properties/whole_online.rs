//! One order of which no process leaves anything out: each property red, and green on traces that are nearly wrong.
//!
//! Stories are as those of views, but that a configuration has a place: `3ab` is at packet 3. Messages have places of
//! packets, `a1@2` that of the second.

use rota_check::event::{Event, EventKind};
use rota_check::online::WholeOnline;
use rota_check::trace::Trace;
use rota_check::{Options, Order, Report, Violation, check_order};

use super::story::process;
use super::uniform_story::events;

/// The events of a story, with places as they are.
fn shifted(text: &str) -> Vec<Event> {
    let mut events = events(text).0;
    // Others report that.
    events.retain(|event| !matches!(event.kind, EventKind::Primary(_)));
    for event in &mut events {
        match &mut event.kind {
            EventKind::Delivered(placed) => placed.position <<= 16,
            EventKind::Missed { upto, .. } => *upto <<= 16,
            _ => {}
        }
    }
    events
}

/// What is found of it afterwards, all being at rest if those live that have not ended.
fn afterwards(text: &str, alive: &str) -> Report {
    let mut trace: Trace = shifted(text).iter().collect();
    if !alive.is_empty() {
        trace.quiesce();
    }
    check_order(&trace, &Options::default(), Order::Whole)
}

/// Looks at a story, and then at its end, at which these live.
fn observe(text: &str, alive: &str) -> Result<WholeOnline, Violation> {
    let mut online = WholeOnline::new();
    for event in shifted(text) {
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
    let found = afterwards(text, "").violations;
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    assert_eq!(found[0].property, property, "{text}");
}

/// Seen only while the run goes on.
#[track_caller]
fn red_online(property: &str, text: &str) {
    let violation = observe(text, "").expect_err("not seen");
    assert_eq!(violation.property, property, "{violation}");
    assert_eq!(afterwards(text, "").violations, [], "{text}");
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
    let report = afterwards(text, "");
    assert_eq!(report.violations, [], "{text}");
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
    red_online("UI", &after("a: ?a3#1 !a3#2"));
    red_online("UI", &after("a: crash !a3"));
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

#[test]
fn only_what_is_forgotten_is_left_out_and_no_more() {
    let long = |words: &str| after(&format!("ab: a2@4\n A: {words}"));
    green(&long("missed@3/0 b1@3 a2@4"), "A");
    // It does not know how far a had got.
    green(&long("missed@4/0 a2@4"), "A");
    // b1 was not forgotten.
    red("UTO", &long("missed@3/0 a2@4"));
    // Nobody misses what it has.
    red("UTO", &long("\n a: missed@4/1"));
}

#[test]
fn who_is_told_of_its_own_messages_need_not_see_them() {
    let story = |told: &str| format!("abc: 1abc\n c: !c1 !c2\n ab: c1@2 crash\n c: {told}");
    // Of the second it is told nothing.
    red_at_rest("UV", &story("missed@3/1"), "c");
    green(&story("missed@9/2"), "c");
    red("UI", &story("missed@9/3"));
}

/// Of members only.
fn of_members(text: &str) -> Report {
    let trace = shifted(text).iter().collect();
    check_order(&trace, &Options::default(), Order::OfMembers)
}

#[test]
fn members_begin_where_they_are_named() {
    let story = |b: &str| format!("a: 1a !a1 !a2 a1@2 3ab a2@4\n b: {b}");
    assert_eq!(of_members(&story("x1b 3ab a2@4")).violations, []);
    red("UTO", &story("3ab a2@4"));
    for wrong in ["x1b a2@4", "3ab 4a", "x1b x1b"] {
        let report = of_members(&story(wrong));
        assert!(!report.holds(), "{wrong}");
        assert_eq!(report.violations[0].property, "UTO", "{wrong}");
    }
}

#[test]
fn traces_show_which_order_it_is() {
    let shown = |text: &str| shifted(text).iter().collect::<Trace>().shown_order();
    assert_eq!(shown("a: 1a !a1 a1@2"), Order::Whole);
    assert_eq!(shown("a: !a1\n A: missed@3/0"), Order::Whole);
    assert_eq!(shown("a: 1a !a1\n b: x1b"), Order::OfMembers);
    let views: Trace = events("a: 1a !a1 a1@2").0.iter().collect();
    assert_eq!(views.shown_order(), Order::Uniform);
}

/// What nobody has traced is not judged, but its place is.
#[test]
fn what_an_untraced_process_sends_has_one_place() {
    let of_others = |text: &str| {
        let events = shifted(text).into_iter();
        let trace: Trace = events
            .filter(|e| e.process != process("d"))
            .collect::<Vec<_>>()
            .iter()
            .collect();
        check_order(&trace, &Options::default(), Order::Whole)
    };
    let story = "abcd: 1abcd\n d: !d1\n ab: d1@2";
    assert_eq!(of_others(story).violations, []);
    assert!(!of_others(&format!("{story}\n c: d1@3")).holds());
}
