//! Clients and their groups (K).

use super::story::{broken, details, legal, report};

/// Two processes, whose clients ax and bx come to g; `rest` is what happens then.
fn story(rest: &str) -> String {
    format!(
        "form 5ab
        ax: +g g@5ab/1=ax+ax g@5ab/2=axbx+bx
        bx: +g g@5ab/2=axbx+bx
        {rest}
        quiet"
    )
}

#[track_caller]
fn red(property: &str, rest: &str) {
    red_exactly(&[property], rest);
}

#[track_caller]
fn red_exactly(properties: &[&str], rest: &str) {
    let text = story(rest);
    assert_eq!(broken(&text), properties, "{:#?}", report(&text).violations);
}

#[track_caller]
fn green(property: &str, rest: &str) {
    legal(property, &story(rest));
}

/// The two parts of a network that was cut between ax and bx, after what was said to both.
fn cut(a: &str, b: &str) -> String {
    format!(
        "a: 5ab>9a:a 9a
        ax: g!5ab/2 {a} g@9a/1=ax:ax
        b: 5ab>10b:b 10b
        bx: g!5ab/2 {b} g@10b/1=bx:bx"
    )
}

#[test]
fn without_clients_nothing_is_said_of_groups() {
    let report = report("form 5ab\n a: !a1 a1\n b: a1\n quiet");
    let silent = report
        .verdicts
        .iter()
        .filter(|v| v.property.starts_with('K'));
    let silent: Vec<u64> = silent.map(|verdict| verdict.checked).collect();
    assert_eq!(silent, [0; 10]);
}

#[test]
fn k1_one_view_has_one_list_of_members() {
    let third = |b: &str| format!("ax: g@5ab/3=axbxby+by\n bx: {b}\n by: g@5ab/3=axbxby+by");
    green("K1", &third("g@5ab/3=axbxby+by"));
    // In another order.
    red("K1", &third("g@5ab/3=bxaxby+by"));
    let detail = details("K1", &story(&third("g@5ab/3=bxaxby+by")));
    assert!(
        detail.contains("client bx of process 2.1 was given view 5.1.1/3 of g {bx, ax, by}"),
        "{detail}"
    );
    // Another cause, and other sets: who joined was not alone.
    red_exactly(&["K1", "K6"], &third("g@5ab/3=axbxby:ax|bx|by"));
    // The order of sets says nothing.
    let by_network =
        |sets: &str| format!("ax: g!5ab/2 g@9ab/1=axbx:ax|bx\n bx: g!5ab/2 g@9ab/1=axbx:{sets}");
    green("K1", &by_network("bx|ax"));
    red("K1", &by_network("axbx"));
}

#[test]
fn k1_at_rest_members_are_in_the_same_view() {
    let behind = "ax: g@5ab/3=axbxby+by\n by: g@5ab/3=axbxby+by";
    red("K1", behind);
    green("K1", &cut("", ""));
    // Who is not known to be alive may have been told nothing.
    let dead = format!("{}\n b: crash", story("ax: g!5ab/2 g@9a/1=ax:ax"));
    assert_eq!(broken(&dead), [] as [&str; 0]);
}

#[test]
fn k2_a_client_is_in_its_views_and_their_ids_grow() {
    red("K2", "ax: g@5ab/3=bx-ax\n bx: g@5ab/3=bx-ax");
    green("K2", "ax: -g --g\n bx: g@5ab/3=bx-ax");
    let again = |number: u32| format!("ax: ?a1 a1 g@5ab/{number}=ax-bx\n bx: a1 -g --g");
    green("K2", &again(3));
    red("K2", &again(1).replace('1', "0").replace("a0", "a1"));
    // The views of a transitional configuration come between two regular ones.
    let through = |ids: [&str; 3]| {
        let [one, two, three] = ids;
        format!("bx: gone\n ax: g@{one}=ax~bx g!{one} g@{two}=ax:ax g!{two} g@{three}=ax:ax")
    };
    green("K2", &through(["5ab/3", "5ab>9a/1", "9a/1"]));
    red("K2", &through(["5ab/3", "9a/1", "5ab>9a/1"]));
    red_exactly(&["K1", "K2"], &through(["5ab/3", "5ab/3", "9a/1"]));
}

#[test]
fn k3_sets_are_parts_of_the_members() {
    let by_network = |sets: &str| {
        let view = format!("g!5ab/2 g@9ab/1=axbx:{sets}");
        format!("ax: {view}\n bx: {view}")
    };
    green("K3", &by_network("axbx"));
    green("K3", &by_network("ax|bx"));
    red("K3", &by_network("axbx|bx"));
    red("K3", &by_network("ax"));
    red("K3", &by_network("axbx|cx"));
    red("K3", "ax: g@5ab/3=ax-axbx\n bx: -g --g");
    red_exactly(&["K1", "K3"], "ax: g@5ab/3=axbx-bx\n bx: -g --g");
    red("K3", "ax: g@5ab/3=axax-bx\n bx: -g --g");
    green("K3", "ax: g@5ab/3=ax-bx\n bx: -g --g");
}

#[test]
fn k3_who_comes_is_alone() {
    let third = |view: &str| format!("ax: {view}\n bx: {view}\n by: {view}");
    green("K3", &third("g@5ab/3=axbxby+by"));
    // As if it had been there before.
    red("K3", &third("g@5ab/3=axbxby~cx"));
    let by_network = |sets: &str| {
        let view = format!("g@9ab/1=axbxby:{sets}");
        format!("ax: g!5ab/2 {view}\n bx: g!5ab/2 {view}\n by: {view}")
    };
    green("K3", &by_network("axbx|by"));
    red("K3", &by_network("axbxby"));
    // The next of the same name is somebody else.
    let next = |views: &str| format!("bx: gone {views}\n ax: g@5ab/3=ax~bx {views}");
    green("K3", &next("g@5ab/4=axbx+bx"));
    red_exactly(
        &["K3", "K9"],
        "bx: gone g@5ab/3=axbx~cx\n ax: g@5ab/3=axbx~cx\n bx: gone",
    );
}

#[test]
fn k4_who_comes_together_was_given_the_same() {
    let left = |a: &str, b: &str| {
        let gone = "g@5ab/4=axbx-by";
        format!(
            "ax: g@5ab/3=axbxby+by ?a1 ?a2 {a} {gone}
            bx: g@5ab/3=axbxby+by {b} {gone}
            by: g@5ab/3=axbxby+by a1 a2 -g --g"
        )
    };
    green("K4", &left("a1 a2", "a1 a2"));
    red("K4", &left("a1 a2", "a1"));
    red_exactly(&["K4", "K8"], &left("a1 a2", "a2 a1"));
    let detail = details("K4", &story(&left("a1 a2", "a1")));
    assert!(
        detail.contains("given message 1.1.2 (agreed) where the other was given nothing"),
        "{detail}"
    );
    // Reliable ones have no order, and are the same all the same.
    let early = |a: &str, b: &str| left(a, b).replace("?a1", "?a1r").replace("?a2", "?a2r");
    green("K4", &early("a1 a2", "a2 a1"));
    red("K4", &early("a1 a2", "a1"));
}

#[test]
fn k4_sets_come_from_one_view_and_apart_anything_goes() {
    let merge = |b: &str, sets: &str| {
        let merged = format!("g@13ab/1=axbx:{sets}");
        format!(
            "ax: ?a1 ?a2 g!5ab/2 a1 a2 g@9a/1=ax:ax g!9a/1 {merged}
            bx: g!5ab/2 {b} g@10b/1=bx:bx g!10b/1 {merged}"
        )
    };
    green("K3", &merge("a1", "ax|bx"));
    red("K4", &merge("a1 a2", "axbx"));
    assert!(details("K4", &story(&merge("a1 a2", "axbx"))).contains("from view"));
    let together = |b: &str| {
        let next = "g@9ab/1=axbx:axbx";
        format!("ax: ?a1 g!5ab/2 a1 {next}\n bx: g!5ab/2 {b} {next}")
    };
    red("K4", &together(""));
    // On the other side of the transition.
    green("K4", &together("a1"));
    green(
        "K4",
        &together("a1").replace("g!5ab/2 a1 g@", "a1 g!5ab/2 g@"),
    );
    // A copy that the sender did not want.
    green(
        "K4",
        &together("a1").replace("?a1 g!5ab/2 a1", "?a1~ g!5ab/2"),
    );
}

#[test]
fn k5_only_members_are_given_messages() {
    green("K5", "ax: ?a1 a1\n bx: a1");
    red("K5", "ax: ?a1 a1\n bx: a1\n by: a1");
    red(
        "K5",
        "ax: ?a1 a1 g@5ab/3=ax-bx\n bx: a1 -g --g\n ax: ?a2 a2\n bx: a2",
    );
    green(
        "K5",
        "ax: ?a1 a1 g@5ab/3=ax-bx\n bx: a1 -g --g\n ax: ?a2 a2",
    );
    // To one of several, or to itself.
    green("K5", "by: ?b1>g,h\n ax: b1\n bx: b1");
    green("K5", "ax: ?a1>by\n by: a1");
    red("K5", "ax: ?a1>by\n bx: a1");
    red("K5", "ax: --h");
}

#[test]
fn k5_messages_come_once_and_as_they_were_sent() {
    red("K5", "ax: ?a1r a1 a1\n bx: a1 a1");
    red("K5", "ax: ?a1 a1\n bx: a1#1");
    red("K5", "ax: ?a1>g,h a1\n bx: a1>g");
    red("K5", "ax: a1\n bx: a1");
    // Of a sender whose trace is missing nothing is known.
    green("K5", "ax: c1\n bx: c1");
}

#[test]
fn k5_requests_are_answered() {
    red("K5", "by: +g");
    red("K5", "bx: -g");
    // Of members and of others they say nothing.
    green("K5", "ax: ?a1 +g a1\n bx: a1\n by: -g");
    green("K5", "ax: ?a1 a1\n bx: a1\n by: +g gone");
}

#[test]
fn k6_transitions_come_between_two_views() {
    green("K6", &cut("", ""));
    red("K6", &cut("g!5ab/2", ""));
    red("K6", &cut("", "").replace("ax: g!5ab/2", "ax: g!5ab/1"));
    red("K6", &cut("", "").replace("ax: g!5ab/2", "ax: "));
    red("K6", &cut("", "").replace("ax: g!", "ax: h!5ab/2 g!"));
    red("K6", "ax: g!5ab/2");
    red("K6", "ax: g!5ab/2 g@5ab/3=ax-bx\n bx: -g --g");
    // Who leaves has no next view.
    green("K6", "ax: g!5ab/2 -g --g\n bx: g!5ab/2 g@10b/1=bx:bx");
}

#[test]
fn k6_what_is_safe_before_the_transition_is_given_to_all() {
    let story = |before: &str, a: &str, b: &str| format!("ax: ?a1s {before}\n {}", cut(a, b));
    green("K6", &story("a1", "", "a1"));
    red("K6", &story("a1", "", ""));
    // Behind the transition it is promised to those who stay together only.
    green("K6", &story("", "a1", ""));
    // Agreed is no such promise.
    green("K6", &story("a1", "", "").replace("a1s", "a1g"));
    // A stay that fails is excused.
    green("K6", "ax: ?a1s a1 g!5ab/2 g@9a/1=ax:ax\n bx: gone");
}

#[test]
fn k7_own_messages_come_back() {
    green("K7", "ax: ?a1 a1\n bx: a1");
    red_exactly(&["K7", "K9"], "ax: ?a1\n bx: a1");
    red_exactly(&["K7"], "ax: ?a1");
    red_exactly(&["K7"], "ax: ?a1>ax");
    // Before it left; what it sent after it had asked to is not certain.
    red("K7", "ax: ?a1 -g --g\n bx: g@5ab/3=bx-ax");
    green("K7", "ax: ?a1 -g ?a2 a1 --g\n bx: a1 g@5ab/3=bx-ax");
    // It asks to join again before it is told that it left, and gets in between what others do.
    green(
        "K7",
        "ax: ?a1 a1 -g +g g@5ab/3=axbxby+by ?a2 --g g@5ab/5=axbxby+ax a2
        bx: a1 g@5ab/3=axbxby+by g@5ab/4=bxby-ax g@5ab/5=axbxby+ax a2
        by: +g g@5ab/3=axbxby+by g@5ab/4=bxby-ax g@5ab/5=axbxby+ax a2",
    );
    // A client that is gone may have missed anything, and others get none of their own.
    green("K7", "ax: ?a1 gone\n bx: ?b1 a1 b1 g@5ab/3=bx~ax\n by: ?b2");
}

#[test]
fn k7_copies_that_nobody_wanted_do_not_come() {
    red("K7", "ax: ?a1~ a1\n bx: a1");
    green("K5", "ax: ?a1~ -g --g\n bx: a1 ?b1 b1 g@5ab/3=bx-ax");
}

#[test]
fn k8_all_groups_have_one_order() {
    let two = |b: &str| {
        format!(
            "ax: +h h@5ab/1=ax+ax h@5ab/2=axbx+bx ?a1 ?a2>h a1 a2
            bx: +h h@5ab/2=axbx+bx {b}"
        )
    };
    green("K8", &two("a1 a2"));
    red("K8", &two("a2 a1"));
    assert!(details("K8", &story(&two("a2 a1"))).contains("a cycle: message 1.1."));
    // Reliable ones come when they come.
    green("K8", &two("a2 a1").replace("?a1", "?a1r"));
    // A view has its place, too: both clients are in both groups, and see them grow in another order.
    let views = |b: &str| {
        format!(
            "ax: h@5ab/1=ax+ax h@5ab/2=axbx+bx h@5ab/3=axbxby+by g@5ab/3=axbxby+by
            bx: h@5ab/2=axbx+bx {b}
            by: h@5ab/3=axbxby+by g@5ab/3=axbxby+by"
        )
    };
    green("K8", &views("h@5ab/3=axbxby+by g@5ab/3=axbxby+by"));
    red("K8", &views("g@5ab/3=axbxby+by h@5ab/3=axbxby+by"));
    // An answer comes after what it answers.
    let answer = |a: &str| format!("ax: ?a1 {a}\n bx: a1 ?b1 a1");
    assert!(details("K8", &story(&answer("b1 a1"))).contains("the sending of message 2.1.1"));
}

#[test]
fn k9_nobody_skips_in_secret() {
    green("K9", "ax: ?a1 a1\n bx: a1");
    red("K9", "ax: ?a1 a1");
    // It is disconnected, and joins again.
    let again = "bx: gone +g g@5ab/4=axbx+bx\n ax: ?a1 a1 g@5ab/3=ax~bx g@5ab/4=axbx+bx";
    green("K9", again);
    let without = again.replace(" g@5ab/3=ax~bx", "");
    red("K9", &without);
    assert!(details("K9", &story(&without)).contains("was given view 5.1.1/4"));
}

#[test]
fn k9_who_is_gone_is_in_no_view() {
    red("K9", "bx: gone");
    green("K9", "bx: gone\n ax: g@5ab/3=ax~bx");
    let dead = format!("{}\n b: crash", story("ax: ?a1 a1"));
    assert_eq!(broken(&dead), ["K9"]);
    // Clients of whom nothing was recorded may be anywhere.
    green(
        "K9",
        "ax: g@5ab/3=axbxcx+cx ?a1 a1\n bx: g@5ab/3=axbxcx+cx a1",
    );
    red("K9", "bx: -g --g\n ax: g@5ab/3=ax~bx");
}

/// Whether a story is red for a property, whatever others say of it.
#[track_caller]
fn is_red(property: &str, rest: &str) -> bool {
    broken(&story(rest)).contains(&property)
}

/// Processes a and b, of which b was in no view for a while: what its client is told then.
fn left_out(b: &str) -> String {
    format!(
        "a: 9a 13ab
        b: 13ab
        ax: ?a1 a1 g@9a/1=ax:ax ?a2 a2 g@13ab/1=axbx:ax|bx
        bx: {b}"
    )
}

/// What K says of it: the configurations follow one another as primary views do.
#[track_caller]
fn red_of_clients(b: &str) -> Vec<&'static str> {
    let broken = broken(&story(&left_out(b)));
    broken
        .into_iter()
        .filter(|name| name.starts_with('K'))
        .collect()
}

const NOTHING: [&str; 0] = [];
const BACK: &str = "g@13ab/1=axbx:ax|bx";

#[test]
fn k10_who_has_missed_something_is_told_and_then_who_is_there() {
    assert_eq!(red_of_clients(&format!("out in... {BACK}")), NOTHING);
    // Something it was given is not given again, but what it has missed is missing.
    assert_eq!(red_of_clients(&format!("a1 out in... {BACK}")), NOTHING);
    assert_eq!(
        red_of_clients(&format!("a1 out in... {BACK} a1")),
        ["K5", "K8", "K9"]
    );
    // Its own messages may be among that, but for those that it sends meanwhile.
    assert_eq!(red_of_clients(&format!("?b1 out in... {BACK}")), NOTHING);
    assert_eq!(red_of_clients(&format!("out ?b1 in... {BACK}")), ["K7"]);
    assert_eq!(red_of_clients(&format!("?b1 out in {BACK}")), ["K7"]);
}

#[test]
fn k10_between_the_two_is_nothing() {
    for what in ["a1", "g!5ab/2", "-g --g"] {
        let broken = red_of_clients(&format!("out {what} in... {BACK}"));
        assert!(broken.contains(&"K10"), "{what}: {broken:?}");
    }
    assert!(red_of_clients(&format!("out {BACK} in")).contains(&"K10"));
    // To ask is allowed.
    assert_eq!(
        red_of_clients(&format!("out +h -h in... {BACK} h@13ab/2=bx+bx --h")),
        NOTHING
    );
}

#[test]
fn k10_the_two_come_in_turns() {
    assert_eq!(red_of_clients(&format!("out in out in... {BACK}")), NOTHING);
    assert_eq!(red_of_clients(&format!("out out in... {BACK}")), ["K10"]);
    assert_eq!(red_of_clients(&format!("in... {BACK}")), ["K10"]);
    assert_eq!(red_of_clients(&format!("out in... in... {BACK}")), ["K10"]);
}

#[test]
fn k10_a_view_by_network_comes_first() {
    assert!(red_of_clients(&format!("out in... a1 {BACK}")).contains(&"K10"));
    assert!(red_of_clients("out in... -g --g").contains(&"K10"));
    assert!(red_of_clients("out in... g@13ab/1=axbx+bx").contains(&"K10"));
    // Of each group.
    let both = |rest: &str| format!("+h h@5ab/3=bx+bx out in... {BACK} {rest}");
    assert_eq!(red_of_clients(&both("h@13ab/2=bx:bx")), NOTHING);
    assert_eq!(red_of_clients(&both("")), ["K10"]);
    // Who missed nothing is owed nothing.
    assert_eq!(red_of_clients(&format!("out in a1 {BACK}")), NOTHING);
}

#[test]
fn k6_what_a_client_has_missed_it_does_not_lack() {
    let safe = |b: &str| left_out(b).replace("?a1", "?a1s");
    assert!(!is_red("K6", &safe(&format!("out in... {BACK}"))));
    assert!(is_red("K6", &safe(&format!("out in {BACK}"))));
    assert!(is_red("K6", &safe(BACK)));
}

#[test]
fn k6_only_engines_without_transitional_configurations_do_without_transitions() {
    let next = "ax: g@9ab/1=axbx:axbx\n bx: g@9ab/1=axbx:axbx";
    let direct = format!("a: 9ab\n b: 9ab\n {next}");
    assert!(!is_red("K6", &direct));
    // Where nothing is known of configurations, or they are those of a ring.
    assert!(is_red("K6", next));
    assert!(is_red(
        "K6",
        &format!("a: 5ab>9ab:ab 9ab\n b: 5ab>9ab:ab 9ab\n {next}")
    ));
    // And then there are none.
    assert!(is_red("K6", &direct.replace("x: ", "x: g!5ab/2 ")));
}

#[test]
fn k1_who_is_in_no_view_at_the_end_rests_nowhere() {
    let rest = |b: &str| format!("bx: +g {b}\n a: 9ab\n ax: g@9ab/1=axbx:ax|bx");
    assert!(is_red("K1", &rest("")));
    assert!(!is_red("K1", &rest("out")));
    assert!(is_red("K1", &rest("out in")));
}
