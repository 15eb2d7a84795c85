//! Orders that go back to an older view, as a majority has forgotten, and with it the newest one: both checkers, at the
//! boundary.

use rota_check::online::UniformOnline;
use rota_check::{Options, PrimaryRule, UniformCounters, check_uniform};
use rota_core::contract::NodeId;

use super::story::names;
use super::uniform_story::events;

/// Six nodes. In their view, where all have a1, c to f come to another end than a and b know, go on, and die.
const LOST: &str = "
    abcdef: 5abcdef
    a: !a1 !a2
    b: !b1
    f: !f1
    abcdef: a1@1
    ab: x9ab
    cdef: f1@2 9cdef
    c: !c1
    cdef: c1@3";

/// They all come back, knowing nothing, and meet a and b.
const MET: &str = "
    cdef: crash
    CDEF: x12CDEF
    ab: x20abCDEF
    ";

fn story(then: &str) -> String {
    format!("{LOST}{MET}{then}\n quiet")
}

/// What each of the checkers finds first, of nodes that are configured.
fn found(text: &str, nodes: u16) -> (Option<String>, Vec<String>, UniformCounters) {
    let configured: Vec<NodeId> = (1..=nodes).filter_map(NodeId::new).collect();
    let (events, quiescent) = events(text);
    let mut online = UniformOnline::of(configured.clone());
    let seen = events.iter().try_for_each(|event| online.observe(event));
    let options = Options {
        quiescent,
        primary: Some(PrimaryRule::Majority(configured)),
        ..Options::default()
    };
    let report = check_uniform(&events.iter().collect(), &options);
    let online = seen.err().map(|violation| violation.property.to_owned());
    let at_the_end = names(&report).into_iter().map(str::to_owned);
    let at_the_end = at_the_end.collect();
    (online, at_the_end, report.uniform.expect("counted"))
}

#[track_caller]
fn green(text: &str) -> UniformCounters {
    let (online, at_the_end, counters) = found(text, 6);
    assert_eq!((online, at_the_end), (None, Vec::new()), "{text}");
    counters
}

/// Both see it: the one at once, the other among what it finds.
#[track_caller]
fn red(online: &str, at_the_end: &str, text: &str) {
    red_of(6, online, at_the_end, text);
}

#[track_caller]
fn red_of(nodes: u16, online: &str, at_the_end: &str, text: &str) {
    let (seen, names, _) = found(text, nodes);
    assert_eq!(seen.as_deref(), Some(online), "{text}");
    assert!(names.iter().any(|it| it == at_the_end), "{names:?}: {text}");
}

/// Seen only with the whole trace.
#[track_caller]
fn red_at_the_end(property: &str, text: &str) {
    let (_, names, _) = found(text, 6);
    assert!(names.iter().any(|it| it == property), "{names:?}: {text}");
}

#[test]
fn the_end_of_the_old_view_belongs_to_the_new_order() {
    let counters = green(&story(
        "EF: 20abCDEF
        ab: a2@2 b1@3 20abCDEF
        CD: 20abCDEF
        a: !a3
        abCDEF: a3@4",
    ));
    assert_eq!((counters.views, counters.orders), (3, 2));
    assert_eq!(counters.orders_back, 1);
    assert_eq!(counters.view_changes, 2);
    // Four go on from the first view to the one that is lost, two to the one that goes back.
    assert_eq!((counters.survivors, counters.survived_by_two), (6, 2));
    // Those who remember may be first, and one further than the other.
    green(&story(
        "a: a2@2 b1@3 20abCDEF
        CDEF: 20abCDEF
        b: a2@2 b1@3 20abCDEF
        a: !a3
        abCDEF: a3@4",
    ));
    // The ends may begin with the same.
    green(&story(
        "CDEF: 20abCDEF
        a: f1@2 b1@3
        b: f1@2 b1@3
        ab: 20abCDEF
        abCDEF: a2@4",
    ));
    // Nothing is left of the old view; or it is as they had it who have forgotten.
    green(&story("abCDEF: 20abCDEF\n a: !a3\n abCDEF: a2@2 b1@3 a3@4"));
    green(&story(
        "CDEF: 20abCDEF\n ab: f1@2 20abCDEF\n abCDEF: a2@4 b1@5",
    ));
}

#[test]
fn it_shows_also_where_nobody_was_told_that_it_is_excluded() {
    let story = story("EF: 20abCDEF\n ab: a2@2 b1@3 20abCDEF\n CD: 20abCDEF");
    green(
        &story
            .replace("ab: x9ab\n", "")
            .replace("ab: x20abCDEF\n", ""),
    );
}

#[test]
fn where_a_majority_remembers_there_is_no_other_end() {
    // Half of them have forgotten.
    let half = |e: &str, members: &str| {
        let met = format!("cd{e}: crash\n CDE: x12CDE\n ab: x20{members}\n");
        format!("{LOST}\n{met} ab: a2@2 b1@3 20{members}\n CDE: 20{members}")
    };
    red("UTO", "UTO", &half("e", "abCDE"));
    red("UTO", "UTO", &half("ef", "abCDE"));
    // In a view without another end positions do not go back, either.
    let behind = half("e", "abCDE").replace("a2@2 b1@3 ", "");
    red("VS5", "VS5", &(behind + "\n abCDE: a2@2 b1@3"));
    // Of seven nodes four are one more than half, and three are not.
    let seven = story("abCDEF: 20abCDEF\n abCDEF: a2@2 b1@3");
    assert_eq!(found(&seven, 7).0, None);
    let fewer = seven
        .replace("cdef: crash", "cde: crash")
        .replace("CDEF", "CDE");
    red_of(7, "VS5", "VS5", &fewer);
}

#[test]
fn who_was_in_the_newest_view_keeps_the_order_from_going_back() {
    // g was in it as well, and is there.
    let seven = |g: &str, meet: &str| {
        let lost = LOST.replace("def:", "defg:").replace("def\n", "defg\n");
        format!(
            "{lost}\n cdef: crash\n CDEF: x12CDEF\n ab: x20{meet}\n {g}\n CDEF: 20{meet}\n ab: a2@2 b1@3 20{meet}"
        )
    };
    red_of(7, "UTO", "UTO", &seven("", "abCDEFg"));
    // It is not: it waits, and joins them later.
    let (online, at_the_end, _) = found(&seven("g: x11g", "abCDEF"), 7);
    assert_eq!((online, at_the_end), (None, Vec::new()));
    let back =
        seven("g: x11g", "abCDEF") + "\n abCDEFg: 30abCDEFg\n a: !a3\n abCDEFg: a3@9\n quiet";
    let (online, at_the_end, _) = found(&back, 7);
    assert_eq!((online, at_the_end), (None, Vec::new()));
}

#[test]
fn they_who_go_back_agree() {
    red(
        "UTO",
        "UTO",
        &story("CDEF: 20abCDEF\n a: a2@2 b1@3 20abCDEF\n b: b1@2 a2@3 20abCDEF"),
    );
    red(
        "UTO",
        "UTO",
        &story("CDEF: 20abCDEF\n a: a2@2 b1@3 20abCDEF\n b: a2@2 b1@4 20abCDEF"),
    );
    // One has less of it; one that died may have.
    let less = "CDEF: 20abCDEF\n a: a2@2 b1@3 20abCDEF\n b: a2@2 20abCDEF";
    red_at_the_end("UA", &story(less));
    red_at_the_end("VS2", &story(less));
    let died = |b: &str| {
        story(&format!(
            "CDEF: 20abCDEF\n a: a2@2 b1@3 20abCDEF\n b: {b} crash"
        ))
    };
    green(&died("a2@2"));
    green(&died("f1@2"));
    red("UTO", "UTO", &died("b1@2"));
}

#[test]
fn what_came_before_the_end_is_in_both() {
    let without = |who: &str, text: &str| {
        let others: String = "abcdef".chars().filter(|it| !who.contains(*it)).collect();
        text.replace("abcdef: a1@1", &format!("{others}: a1@1"))
    };
    let back = story("CDEF: 20abCDEF\n ab: a2@2 b1@3 20abCDEF");
    green(&back);
    // b had it when it was told that it is excluded, and nobody else has it in the end.
    red_at_the_end("UA", &without("cdef", &back));
    red_at_the_end("UTO", &without("a", &back));
    // The same the other way: only c had it then.
    let told = without("ab", &back.replace("cdef: f1@2", "c: x8c\n cdef: f1@2"));
    red_at_the_end("UTO", &told);
}

#[test]
fn the_new_order_is_behind_what_it_goes_back_to() {
    let next = |words: &str| {
        story(&format!(
            "CDEF: 20abCDEF\n ab: a2@2 b1@3 20abCDEF\n a: !a3\n {words}"
        ))
    };
    green(&next("CabDEF: a3@4"));
    red("VS5", "VS5", &next("C: a3@3"));
    red("fifo", "fifo", &next("C: b1@4"));
    // In the end there are no gaps, and what is sent is sent.
    red_at_the_end("fifo", &story("CDEF: 20abCDEF\n a: !a3 a3@2 20abCDEF"));
    red(
        "fifo",
        "fifo",
        &story("CDEF: 20abCDEF\n a: !a3 !a4 a2@2 a4@3"),
    );
    red("UI", "UI", &story("CDEF: 20abCDEF\n ab: a7@2 20abCDEF"));
    red("UI", "UI", &story("CDEF: 20abCDEF\n ab: a2@2#7 20abCDEF"));
}

#[test]
fn who_remembers_has_delivered_its_own_in_the_order_that_goes_on() {
    // Only they delivered a2 who have forgotten: it is a's to bring it again.
    let lost = LOST.replace("f1@2", "a2@2");
    let back = |end: &str| {
        format!("{lost}{MET} CDEF: 20abCDEF\n ab: b1@2 20abCDEF\n a: !a3\n abCDEF: {end}\n quiet")
    };
    green(&back("a2@3 a3@4"));
    let (_, names, _) = found(&back(""), 6);
    assert!(names.iter().any(|it| it == "UV"), "{names:?}");
}

#[test]
fn another_end_that_no_view_follows_was_none() {
    // All have forgotten, but a and b meet only half of them.
    let told = format!("{LOST}{MET} ab: a2@2 b1@3 20abCDE\n CDE: 20abCDE");
    let told = told.replace("abCDEF", "abCDE");
    red("VS3", "VS3", &told);
    let untold = told.replace("ab: x9ab\n", "").replace("ab: x20abCDE\n", "");
    red("UTO", "UTO", &untold);
}
