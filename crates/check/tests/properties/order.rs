//! Order (O, prefix) and failure atomicity (V).

use super::story::{broken, details, legal, report};

#[test]
fn v1_who_goes_together_delivers_the_same() {
    let lost = "form 5ab
        a: !a1 !a2 a1 5ab>9ab:ab a2 9ab
        b: a1 5ab>9ab:ab 9ab";
    assert_eq!(broken(lost), ["V1"]);
    assert!(
        details("V1", lost).contains("process 1.1 delivered message 1.1.2"),
        "{lost}"
    );
    legal(
        "V1",
        "form 5ab
        a: !a1 !a2 a1 5ab>9ab:ab a2 9ab
        b: a1 5ab>9ab:ab a2 9ab",
    );
}

#[test]
fn v1_the_cut_is_the_same() {
    let cut = "form 5ab
        a: !a1 a1 5ab>9ab:ab 9ab
        b: 5ab>9ab:ab a1 9ab";
    assert_eq!(broken(cut), ["V1", "O1"]);
    // On different ways to the same ring the cuts may differ.
    legal(
        "O1",
        "form 5ab
        a: !a1 a1 5ab>9a:a 9a 9a>13ab:a 13ab
        b: 5ab>9b:b a1 9b 9b>13ab:b 13ab",
    );
}

#[test]
fn v1_who_fails_on_the_way_may_have_less() {
    legal(
        "V1",
        "form 5abc
        a: !a1 a1 5abc>9abc:abc 9abc
        b: a1 5abc>9abc:abc 9abc
        c: 5abc>9abc:abc crash",
    );
}

#[test]
fn o1_two_rings_cannot_disagree_about_what_came_first() {
    // a1 before b1 at c, b1 before a1 at d: not in one ring, where the prefix test sees it too.
    let cycle = "form 5abcd
        a: !a1
        b: !b1
        c: a1 b1
        d: b1 a1";
    assert_eq!(broken(cycle), ["O1", "O3", "O4", "prefix"]);
    let detail = details("O1", cycle);
    assert!(detail.contains("a cycle: message 1.1.1"), "{detail}");
    assert!(
        detail.contains("then at process 3.1 message 2.1.1"),
        "{detail}"
    );
    assert!(
        detail.contains("then at process 4.1 message 1.1.1"),
        "{detail}"
    );
    legal("O1", "form 5abcd\n a: !a1\n b: !b1\n c: a1 b1\n d: a1 b1");
}

#[test]
fn o1_nothing_is_delivered_before_its_cause_was_originated() {
    // a originates a1 after delivering b1, and b originates b1 after delivering a1.
    let cycle = "form 5ab
        a: b1@2 !a1@1
        b: a1@1 !b1@2";
    assert!(broken(cycle).contains(&"O1"));
    assert!(details("O1", cycle).contains("the origination of 1.1.1"));
}

#[test]
fn o1_configurations_have_one_order_too() {
    let crossed = |b: &str| {
        format!(
            "form 5ab
            a: !a1 a1 5ab>9ab:ab 9ab !a2 a2
            b: {b}"
        )
    };
    assert!(broken(&crossed("5ab>9ab:ab 9ab a2 a1")).contains(&"O1"));
    legal("O1", &crossed("a1 5ab>9ab:ab 9ab a2"));
}

#[test]
fn o2_what_the_sender_had_delivered_comes_first() {
    // a1 was lost with a, but b had it before it sent b1.
    let gap = "form 5abc
        a: !a1 crash
        b: a1 !b1 b1 crash
        c: 5abc>9c:c b1 9c";
    assert_eq!(broken(gap), ["O2"]);
    let detail = details("O2", gap);
    assert!(detail.contains("without message 1.1.1"), "{detail}");
    // b did not have it.
    legal(
        "O2",
        "form 5abc\n a: !a1 crash\n b: !b1 crash\n c: 5abc>9c:c b1 9c",
    );
}

#[test]
fn o2_what_the_sender_had_originated_comes_first() {
    assert_eq!(
        broken("form 5ab\n a: !a1 !a2 crash\n b: 5ab>9b:b a2 9b"),
        ["O2"]
    );
    // Behind the hole of a1, b2 is left out because it depends on it, and b3 because of b2; c1 is not.
    legal(
        "O2",
        "form 5abcd
        a: !a1 crash
        b: a1 !b1 !b2 crash
        c: !c1
        d: 5abcd>9cd:cd c1 9cd
        c: 5abcd>9cd:cd c1 9cd",
    );
}

#[test]
fn o2_through_several_hands() {
    let chain = |d: &str| {
        format!(
            "form 5abcd
            a: !a1 crash
            b: a1 !b1 crash
            c: a1 b1 !c1 crash
            d: 5abcd>9d:d {d} 9d"
        )
    };
    assert_eq!(broken(&chain("a1 c1")), ["O2"]);
    assert_eq!(broken(&chain("b1 c1")), ["O2"]);
    legal("O2", &chain("a1 b1"));
    legal("O2", &chain(""));
}

#[test]
fn o2_also_of_a_sender_that_delivers_with_gaps() {
    // b has skipped a1, which is wrong in itself; what it had is still before what it sends.
    let story = "form 5abc
        a: !a1 !a2 crash
        b: a2 !b1 crash
        c: 5abc>9c:c a1 b1 9c";
    let detail = details("O2", story);
    assert!(
        detail.contains("process 3.1 delivered message 2.1.1"),
        "{detail}"
    );
    assert!(detail.contains("without message 1.1.2"), "{detail}");
}

#[test]
fn o3_no_hole_of_a_member_of_the_configuration() {
    let hole = |members: &str, c: &str| {
        format!(
            "form 5abc
            b: !b1 b1
            a: !a1
            {c}
            b: 5abc>9{members}:{members} 9{members}
            a: b1 5abc>9{members}:{members} 9{members}"
        )
    };
    // c does without b1, which is b's, and b is with c.
    let story = hole("abc", "c: 5abc>9abc:abc a1 9abc");
    assert!(broken(&story).contains(&"O3"));
    assert!(details("O3", &story).contains("without message 2.1.1"));
    // Alone with a, it may.
    legal(
        "O3",
        "form 5abc
        b: !b1 b1 crash
        a: !a1 5abc>9ac:ac a1 9ac
        c: 5abc>9ac:ac a1 9ac",
    );
    // In the regular configuration it may not, though b is dead.
    let regular = "form 5abc\n b: !b1 b1 crash\n a: !a1 a1\n c: a1";
    assert_eq!(broken(regular), ["O3", "prefix"]);
    // What nobody delivered was never there.
    legal("O3", "form 5abc\n b: !b1 crash\n a: !a1 a1\n c: a1");
}

#[test]
fn o4_one_place_each() {
    assert_eq!(broken("form 5ab\n a: !a1@3 a1\n b: !b1@3 a1"), ["O4"]);
    assert_eq!(broken("form 5ab\n a: !a1@3 a1\n b: a1@4"), ["O4"]);
    // In another ring the places are others.
    legal("O4", "form 5a\n form 6b\n a: !a1@3 a1\n b: !b1@3 b1");
}

#[test]
fn o4_by_ascending_places() {
    assert!(broken("form 5ab\n a: !a1 !a2\n b: a2 a1").contains(&"O4"));
    legal("O4", "form 5ab\n a: !a1@2 !a2@9\n b: a1 a2");
}

#[test]
fn prefix_the_shorter_sequence_begins_the_longer() {
    let differ = "form 5abc
        a: !a1 !a2 !a3 a1 a2 a3
        b: a1 a2
        c: a1 a3";
    assert_eq!(broken(differ), ["O2", "O3", "prefix"]);
    let detail = details("prefix", differ);
    assert!(
        detail.contains("process 3.1 delivered message 1.1.3"),
        "{detail}"
    );
    legal(
        "prefix",
        "form 5abc\n a: !a1 !a2 !a3 a1 a2 a3\n b: a1 a2\n c: a1",
    );
}

#[test]
fn what_happened_is_counted() {
    let counters = report(
        "form 5abcd
        a: ?a1 !a1 crash
        b: a1 !b1s crash
        c: !c1 !c2s
        c: 5abcd>9cd:cd c1 c2 9cd
        d: 5abcd>9cd:cd c1 c2 9cd
        form 2ef
        c: 9cd>13cdef:cd 13cdef
        d: 9cd>13cdef:cd 13cdef
        e: 2ef>13cdef:ef 13cdef
        f: 2ef>13cdef:ef 13cdef leave
        A: start 6A
        quiet",
    )
    .counters;
    assert_eq!((counters.processes, counters.restarts), (7, 1));
    assert_eq!((counters.crashed, counters.left), (2, 1));
    assert_eq!(
        (counters.sends, counters.originated, counters.deliveries),
        (1, 4, 5)
    );
    // {c, d, e, f} came from two groups; those that form the first rings come one by one.
    assert_eq!((counters.merges, counters.merges_of_groups), (3, 1));
    assert_eq!(
        (counters.transitional_deliveries, counters.transitional_safe),
        (4, 2)
    );
    // a1 is the hole; b1 was left out behind it, by c and by d.
    assert_eq!((counters.post_hole, counters.post_hole_left_out), (4, 2));
    assert_eq!((counters.configurations, counters.splits), (11, 0));
}
