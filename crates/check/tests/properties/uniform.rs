//! One order over primary views (U, VS): each property seen red, and green on traces that are nearly wrong.

use rota_check::{Options, Order, PrimaryRule, check_order, check_uniform};
use rota_core::contract::NodeId;

use super::story::{names, process};
use super::uniform_story::{events, legal, red, report};

/// c is cut off from a and b, who go on without it; then all come together.
fn away(c: &str, together: &str) -> String {
    format!(
        "abc: 5abc
        a: !a1 !a2 !a3
        abc: a1
        c: x7c {c}
        ab: a2 9ab a3
        abc: 11abc
        {together}"
    )
}

#[test]
fn a_run_with_everything() {
    let counters = legal(
        "VS4",
        &(away("!c1", "abc: c1")
            + "\n b: x12b\n a: !a4\n ac: a4\n b: a4\n abc: 15abc\n c: !c2 c2 crash\n ab: c2 17ab\n quiet"),
    );
    assert_eq!((counters.views, counters.orders), (5, 1));
    assert_eq!(
        (counters.view_changes, counters.view_changes_uncertain),
        (4, 0)
    );
    assert_eq!((counters.joiners, counters.returned), (1, 1));
    assert_eq!((counters.survivors, counters.survived_by_two), (9, 4));
    assert_eq!(
        (counters.exclusions, counters.delivered_while_excluded),
        (2, 1)
    );
    assert_eq!(counters.left_behind, 1);
    assert_eq!(
        (
            counters.delivered_by_crashed,
            counters.delivered_last_by_crashed
        ),
        (4, 1)
    );
    assert_eq!(counters.delivered_in_later_view, 5);
    assert_eq!(counters.excluded_at_the_end, 0);
}

#[test]
fn uv_at_rest_everybody_has_delivered_its_own() {
    let detail = red("UV", "ab: 5ab\n a: !a1\n quiet");
    assert!(
        detail.contains("process 1.1 broadcast message 1.1.1"),
        "{detail}"
    );
    legal("UV", "ab: 5ab\n a: !a1\n ab: a1\n quiet");
    // Before it was in any view, too.
    red("UV", "a: !a1\n ab: 5ab\n quiet");
    // It may still come; or its sender waits, or has failed.
    let not_judged = [
        "ab: 5ab\n a: !a1",
        "ab: 5ab\n a: !a1 x7a\n quiet",
        "ab: 5ab\n a: !a1 crash\n b: 7b=b x9b\n quiet",
    ];
    for text in not_judged {
        assert_eq!(
            names(&report(text))
                .iter()
                .filter(|it| **it == "UV")
                .count(),
            0,
            "{text}"
        );
    }
}

#[test]
fn uv_what_others_delivered_while_the_sender_was_away_is_excused() {
    let sent_before = away("", "quiet").replace("a: !a1", "c: !c1\n a: !a1");
    // Nobody has it.
    red("UV", &sent_before);
    let by_others = sent_before.replace("9ab a3", "9ab a3 c1");
    legal("UV", &by_others);
    // Somebody who may have counted it as delivered has failed before it showed.
    let hidden = |members: &str| {
        format!(
            "abc: 5abc
            c: !c1 x7c
            a: x8a
            b: crash
            {members}: 11{members}
            quiet"
        )
    };
    assert!(names(&report(&hidden("ac"))).contains(&"UV"));
    let with_b = hidden("ac").replace("11ac", "11ac=abc");
    assert!(!names(&report(&with_b)).contains(&"UV"));
}

#[test]
fn uv_who_can_reach_a_majority_does_not_wait() {
    let judged = |text: &str, nodes: u16| {
        let (events, _) = events(text);
        let options = Options {
            quiescent: true,
            components: vec![vec![process("a"), process("b")]],
            primary: Some(PrimaryRule::Majority(
                (1..=nodes).filter_map(NodeId::new).collect(),
            )),
        };
        names(&check_uniform(&events.iter().collect(), &options))
    };
    let waits = "abc: 5abc\n b: x7b\n ac: 9ac\n c: crash\n a: x9b";
    assert_eq!(judged(waits, 3), ["UV"]);
    assert_eq!(judged(&(waits.to_owned() + "\n ab: 11ab"), 3), [""; 0]);
    // Of five they are no majority, and no view of theirs was primary.
    assert!(!judged(waits, 5).contains(&"UV"));
}

#[test]
fn ua_what_one_has_delivered_all_do_who_go_on() {
    let crashed = |b: &str| format!("abc: 5abc\n a: !a1 a1 crash\n b: {b} 7bc\n c: {b} 7bc");
    let detail = red("UA", &crashed(""));
    assert!(
        detail.contains("process 2.1 did not deliver message 1.1.1"),
        "{detail}"
    );
    assert!(detail.contains("as process 1.1 did"), "{detail}");
    legal("UA", &crashed("a1"));
}

#[test]
fn ua_at_rest_all_have_delivered_the_same() {
    red("UA", "ab: 5ab\n a: !a1 a1\n quiet");
    // The trace ends; or b waits.
    assert!(report("ab: 5ab\n a: !a1 a1").holds());
    legal("UA", "ab: 5ab\n a: !a1 a1\n b: x7b\n quiet");
    // Nobody told it.
    red("UA", "abc: 5abc\n ab: 7ab\n quiet");
    legal("UA", "abc: 5abc\n ab: 7ab\n c: x8c\n quiet");
}

#[test]
fn ua_who_was_away_is_excused_of_just_that() {
    legal("UA", &away("", "quiet"));
    // Of the view to which it has come it owes all.
    red("UA", &(away("", "a: !a4\n ab: a4\n quiet")));
    legal("UA", &(away("", "a: !a4\n abc: a4\n quiet")));
    // Who joins owes nothing of what was before it.
    legal(
        "UA",
        "ab: 5ab\n a: !a1\n ab: a1\n c: x2c\n abc: 9abc\n quiet",
    );
}

#[test]
fn ua_changes_are_judged_only_where_nothing_is_hidden() {
    // d has failed in 9bcd: it may know of a view between, from which c was excluded.
    let hidden = "abcd: 5abcd\n a: !a1 a1 crash\n b: a1\n bc: 9bcd\n d: crash";
    assert!(!names(&report(hidden)).contains(&"UA"));
    red(
        "UA",
        "abcd: 5abcd\n a: !a1 a1 crash\n b: a1\n bcd: 9bcd\n d: crash",
    );
}

#[test]
fn ui_what_is_delivered_was_broadcast() {
    let detail = red("UI", "a: 5a a1");
    assert!(detail.contains("which nobody has broadcast"), "{detail}");
    red("UI", "ab: 5ab\n a: !a1#1\n ab: a1#2");
    red("UI", "ab: 5ab\n a: !a1s\n ab: a1g");
    red("UI", "a: 5a a1 !a1");
    red("UI", "a: 5a =a1 a1");
    legal("UI", "ab: 5ab\n a: ?a1s#1 !a1s#1\n ab: a1#1");
    // Nothing is known of c but that others name it.
    legal("UI", "ab: 5abc c1");
}

#[test]
fn ui_a_message_is_broadcast_once_by_its_sender() {
    red("UI", "a: 5a !a1 !a1 a1");
    red("UI", "ab: 5ab\n b: !a1");
    red("UI", "a: ?a1#1 !a1#2");
    legal("UI", "a: ?a1#1 !a1#1 ?a2 !a2");
}

#[test]
fn ui_a_message_is_delivered_once_over_all_views() {
    red("UI", "a: 5a !a1 a1 a1");
    red("UI", &away("", "c: a1@9"));
    legal(
        "UI",
        &away("", "abc: !a4 a4").replace("abc: !a4", "a: !a4\n abc:"),
    );
}

#[test]
fn uto_one_position_is_one_message() {
    let two = |a: &str, b: &str| format!("ab: 5ab\n a: !a1 {a}\n b: !b1 {b}");
    let detail = red("UTO", &two("a1@1 crash", "b1@1"));
    assert!(detail.contains("have one position, 1"), "{detail}");
    red("UTO", &two("a1@1", "a1@2"));
    legal("UTO", &two("a1@1 b1@2 crash", "a1@1"));
    // In two views.
    red("UTO", "ab: 5ab\n a: !a1 a1\n b: 7ab=ab a1");
}

#[test]
fn uto_positions_ascend_without_gaps() {
    let two = |a: &str, b: &str| format!("ab: 5ab\n a: !a1 !a2 {a}\n b: {b}");
    let detail = red("UTO", &two("a1@1 a2@2", "a2@2"));
    assert!(
        detail.contains("message 1.1.1") && detail.contains("comes next"),
        "{detail}"
    );
    red("UTO", &two("a2@2 a1@1", ""));
    // Positions of packets without messages are left out by all.
    legal("UTO", &two("a1@3 a2@9", "a1@3 a2@9"));
    // Who comes to a view begins with its first message.
    red("UTO", &away("", "a: !a4 !a5 a4 a5\n c: a5"));
    legal("UTO", &away("", "a: !a4 !a5 a4 a5\n c: a4"));
}

#[test]
fn fifo_each_sender_is_heard_in_its_order() {
    red("fifo", "a: 5a !a1 !a2 a2 a1");
    let detail = red("fifo", "ab: 5ab\n a: !a1 !a2 !a3\n ab: a1 a3");
    assert!(detail.contains("after number 1 of its sender"), "{detail}");
    red("fifo", "ab: 5ab\n a: !a1 !a2\n ab: a2");
    red("fifo", "ab: 5ab\n a: !a1 !a2 !a3\n ab: a1 7ab a3");
    legal("fifo", "ab: 5ab\n a: !a1 !a2 !a3\n ab: a1 7ab a2 a3");
    // Somebody may have a2 counted as delivered, and has failed.
    let hidden =
        |c: &str| format!("abc: 5abc\n a: !a1 !a2 !a3\n abc: a1\n c: {c} crash\n ab: 7abc a3");
    legal("fifo", &hidden(""));
    red("fifo", &hidden("7abc"));
    // c has heard a1 before, in another view.
    red("fifo", "abc: 5abc\n a: !a1 !a2\n abc: a1 a2\n c: 7abc a1@9");
}

#[test]
fn vs1_views_are_agreed() {
    let detail = red("VS1", "ab: 5ab\n b: 7ab\n a: 7ab=abc");
    assert!(detail.contains("which others had as"), "{detail}");
    red("VS1", "a: 5b");
    red("VS1", "ab: 5ab\n a: 5ab>7a:a");
    red("VS1", "a: 5a\n b: 5b");
    legal("VS1", "ab: 5ab 7ab");
}

#[test]
fn vs1_views_ascend_and_are_reported_at_once() {
    red("VS1", "a: 7a 5a");
    red("VS1", "a: 5a 5a");
    for text in [
        "~5a !a1 a1",
        "~5a 7a",
        "~5a x7a",
        "5a primary/5a",
        "5a primary/7a",
        "5a x5a",
        "5a x7a x7a",
    ] {
        red("VS1", &format!("a: {text}"));
    }
    legal("VS1", "a: x3a ~5a !a1 primary/5a a1 x7a x8a 8a");
    legal("VS1", "a: ~5a crash");
    legal("VS1", "ab: 5ab\n a: x9a\n ab: 7ab 11ab");
}

#[test]
fn vs1_nobody_skips_a_view_that_it_is_a_member_of() {
    let story = |b: &str| format!("ab: 5ab\n a: 7ab 9ab\n b: {b} 9ab");
    let detail = red("VS1", &story(""));
    assert!(
        detail.contains("process 2.1 installed view 9.1.1")
            && detail.contains("but not view 7.1.1"),
        "{detail}"
    );
    legal("VS1", &story("7ab"));
    // There may have been a view of a and c between: what b knew of 7abc was forgotten.
    let hidden = "abc: 5abc\n a: 7abc crash\n b: 11bc\n c: crash";
    assert!(!names(&report(hidden)).contains(&"VS1"));
}

#[test]
fn vs2_who_goes_on_together_has_delivered_the_same() {
    let change = |b: &str| format!("ab: 5ab\n a: !a1 !a2 a1 a2 7ab\n b: a1 {b}");
    let detail = red("VS2", &change("7ab"));
    assert!(
        detail.contains("process 1.1 delivered message 1.1.2"),
        "{detail}"
    );
    assert!(detail.contains("and process 2.1 nothing"), "{detail}");
    legal("VS2", &change("a2 7ab"));
    // c was not there when the others went on.
    legal("VS2", &away("", ""));
    // They do not go on together: d is late, and comes to another view.
    legal("VS2", "abcd: 5abcd\n a: !a1\n abc: a1 7abc\n abcd: 9abcd");
    // Nothing hidden may be behind it.
    let hidden = "abc: 5abc\n a: !a1 a1\n ab: 7abc\n c: crash";
    assert!(!names(&report(hidden)).contains(&"VS2"));
}

#[test]
fn vs3_deliveries_are_within_views() {
    red("VS3", "a: !a1 a1");
    red("VS3", "a: 5a !a1 7a a1/5a");
    red("VS3", "a: 5a !a1 a1/7a");
    red("VS3", "a: 5a crash !a1");
    red("VS3", "a: 5a start");
    legal("VS3", "a: 5a !a1 a1 leave crash");
}

#[test]
fn vs3_who_is_excluded_delivers_only_the_rest_and_right_before_the_next_view() {
    let excluded = |rest: &str| format!("abc: 5abc\n a: !a1\n ab: a1\n c: x7c\n {rest}");
    let detail = red("VS3", &excluded("c: a1 x9c"));
    assert!(detail.contains("told so again"), "{detail}");
    red("VS3", &excluded("c: a1\n quiet"));
    red("VS3", &excluded("ab: 9ab\n c: a1\n abc: 11abc"));
    legal("VS3", &excluded("c: a1\n abc: 9abc"));
    legal("VS3", &excluded("c: a1"));
    legal("VS3", &excluded("ab: 9ab\n abc: 11abc"));
}

#[test]
fn vs4_the_forced_part_is_the_same_at_all() {
    let forced = |b: &str, c: &str| {
        format!(
            "abc: 5abc
            a: !a1 !a2 !a3 a1 a2 a3
            b: a1 {b}
            c: a1 x7c {c}
            abc: 9abc"
        )
    };
    let detail = red("VS4", &forced("a2 a3", "a2"));
    assert!(
        detail.contains("process 3.1, excluded, delivered nothing"),
        "{detail}"
    );
    red("VS4", &forced("a3 a2", "a2 a3"));
    red("VS4", &forced("a2@2 a3@3", "a2@2 a3@4"));
    legal("VS4", &forced("a2 a3", "a2 a3"));
    // Also where 9abc is not certain, as far as both go.
    let crashed = |c: &str| forced("a2 a3", c).replace("abc: 9abc", "bc: 9abc\n a: crash");
    red("VS4", &crashed("a3 a2"));
    legal("VS4", &crashed("a2"));
}

#[test]
fn vs5_positions_go_on_from_view_to_view() {
    let change = |place: u64| format!("ab: 5ab\n a: !a1 !a2\n ab: a1@7 7ab a2@{place}");
    let detail = red("VS5", &change(7));
    assert!(
        detail.contains("view 7.1.1 of {1.1, 2.1} begins with message 1.1.2"),
        "{detail}"
    );
    red("VS5", &change(1));
    legal("VS5", &change(8));
    // Crashed or excluded, who has delivered further.
    red(
        "VS5",
        "abc: 5abc\n a: !a1 !a2 a1@7 a2@8 crash\n bc: a1@7 7bc\n b: !b1\n bc: b1@8",
    );
}

#[test]
fn vs5_somebody_knows_where_the_last_view_ended() {
    let next = |cd: &str| format!("abc: 5abc\n a: 7ab\n b: 7ab\n cd: {cd}");
    let detail = red("VS5", &next("9cd"));
    assert!(detail.contains("was in view 7.1.1"), "{detail}");
    // Who was in that may have failed before it showed.
    assert!(!names(&report("abc: 5abc\n ab: 7ab\n c: 9bcd=bcd\n d: 9bcd=bcd")).contains(&"VS5"));
}

#[test]
fn vs5_an_order_begins_anew_only_where_nobody_remembers() {
    let again = |c: &str| {
        format!(
            "abc: 5abc\n a: !a1\n abc: a1@7\n c: {c}\n ab: crash\n AB: 9AB\n A: !A1\n AB: A1@1\n quiet"
        )
    };
    let counters = legal("VS1", &again("crash"));
    assert_eq!(counters.orders, 2);
    // Two of three have forgotten: c waits, as it has to.
    legal("VS1", &again("x8c"));
    // Two of five have not.
    let five = again("x8c").replace("quiet", "de: x2d\n quiet");
    let detail = red("VS5", &five);
    assert!(detail.contains("others remember"), "{detail}");
    // Unless views of fewer may follow.
    let (events, _) = events(&five);
    let options = Options {
        quiescent: true,
        primary: Some(PrimaryRule::Successive),
        ..Options::default()
    };
    let report = check_uniform(&events.iter().collect(), &options);
    assert!(!names(&report).contains(&"VS5"));
}

#[test]
fn where_an_order_begins_anew_a_message_may_have_a_place_again() {
    let again = |rest: &str| {
        format!(
            "abc: 5abc\n c: !c1 !c2\n b: !b1\n a: c1@7 b1@8\n c: x8c\n ab: crash\n \
             AB: 9AB\n ABc: 12ABc\n {rest}\n quiet"
        )
    };
    // In the first order c1 came before b1, and only a saw that.
    legal("UTO", &again("ABc: c1@9 c2@10"));
    legal("O1", &again("A: !A1\n ABc: A1@9 c1@10 c2@11"));
    red("UTO", &again("A: c1@9 c2@11\n B: c1@10\n c: c1@9"));
    red("O1", &again("A: !A1 c1@9 A1@10\n B: A1@10 c1@9"));
    red("UI", &again("A: c1@9 c1@10"));
}

#[test]
fn o1_a_broadcast_comes_before_its_deliveries_also_of_services_without_an_order() {
    // b has delivered a1, a has delivered what b broadcast then, and broadcasts a1 only after that.
    let cycle = "ab: 5ab\n b: a1f !b1 b1\n a: b1 !a1f";
    red("O1", cycle);
    legal("O1", "ab: 5ab\n a: !a1f\n b: a1f !b1 b1\n a: a1 b1");
}

#[test]
fn p1_and_p2_hold_of_views() {
    let split = "abcde: 5abcde\n ab: 9ab\n cde: 10cde";
    red("P1", split);
    red("P2", split);
    legal("P1", "abcde: 5abcde\n ab: x9ab\n cde: 10cde");
}

#[test]
fn traces_tell_which_order_is_meant() {
    let uniform = |text: &str| {
        let (events, _) = events(text);
        let trace: rota_check::trace::Trace = events.iter().collect();
        trace.is_uniform()
    };
    assert!(uniform("a: 5a !a1"));
    assert!(uniform("a: x5a"));
    // Nothing shows it.
    assert!(!uniform("a: 5a a1"));
    assert!(!uniform("a: 5a !a1 =a2"));
    assert!(!uniform("a: 5a 5a>7a:a !a1"));
    let (events, _) = events("a: 5a !a1 a1");
    let trace = events.iter().collect();
    let judged = |order| check_order(&trace, &Options::default(), order);
    assert!(judged(Order::Uniform).holds());
    assert!(!judged(Order::Evs).holds());
    assert_eq!(judged(Order::Evs).uniform, None);
}

/// Between two views there may have been primaries in which none began: nobody has to see a quorum of the one before.
#[test]
fn p2_somebody_goes_from_view_to_view() {
    let options = Options {
        primary: Some(PrimaryRule::Successive),
        ..Options::default()
    };
    let found = |text: &str| {
        let trace = events(text).0.iter().collect();
        names(&check_uniform(&trace, &options))
    };
    assert_eq!(found("abcdefgh: 5abcdefgh\n abc: 9abc"), Vec::<&str>::new());
    assert_eq!(found("abcdefgh: 5abcdefgh\n h: 9h"), Vec::<&str>::new());
    assert!(found("abc: 5abc\n de: 9de").contains(&"P2"));
}
