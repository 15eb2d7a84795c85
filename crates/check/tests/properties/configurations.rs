//! Configuration changes (C).

use rota_check::{Options, check_all};

use super::story::{broken, details, legal, members, names, trace};

#[test]
fn c1_a_process_is_in_its_configurations() {
    let story = "form 5ab\n a: 5ab>9a:a 9a\n b: 5ab>9a:b 9a=a";
    assert!(broken(story).contains(&"C1"));
    assert!(details("C1", story).contains("without itself"));
    legal("C1", "form 5ab\n a: 5ab>9a:a 9a\n b: 5ab>9b:b 9b");
}

#[test]
fn c1_a_configuration_has_one_list_of_members() {
    assert_eq!(
        broken("form 5abc\n a: 5abc>9ab:ab 9ab\n b: 5abc>9ab:ab 9ab=abc"),
        ["C1"]
    );
    // One number, but two representatives: two rings.
    legal(
        "C1",
        "form 5abc\n a: 5abc>9ab:ab 9ab\n b: 5abc>9ab:ab 9ab\n c: 5abc>9c:c 9c",
    );
}

#[test]
fn c2_no_configuration_twice() {
    assert_eq!(
        broken("form 5ab\n a: 5ab>9a:a 9a 9a"),
        ["C2", "C3", "C7", "O1"]
    );
    legal(
        "C2",
        "form 5ab\n a: 5ab>9a:a 9a 9a>13ab:a 13ab\n b: 5ab>13ab:b 13ab",
    );
}

#[test]
fn c3_a_process_starts_alone() {
    assert_eq!(broken("a: start 5ab"), ["C3"]);
    assert_eq!(broken("a: start 1a>5ab:a"), ["C3"]);
    legal("C3", "a: start 1a 1a>5ab:a 5ab");
}

#[test]
fn c3_regular_and_transitional_alternate() {
    assert_eq!(broken("form 5ab\n a: 9a"), ["C3"]);
    assert_eq!(broken("form 5ab\n a: 5ab>9a:a 5ab>13a:a 13a"), ["C3"]);
    assert_eq!(broken("form 5ab\n a: 1a>9a:a 9a"), ["C3"]);
    assert_eq!(broken("form 5ab\n a: 5ab>9a:a 13a"), ["C3"]);
    legal("C3", "form 5ab\n a: 5ab>9a:a 9a 9a>13a:a 13a");
}

#[test]
fn c3_a_transitional_configuration_is_within_both_rings() {
    let ab = |members: &str| {
        format!(
            "form 5ab
            form 6c
            a: 5ab>9ac:{members} 9ac
            c: 6c>9ac:c 9ac"
        )
    };
    assert!(broken(&ab("ac")).contains(&"C3"));
    assert!(broken(&ab("ab")).contains(&"C3"));
    legal("C3", &ab("a"));
}

#[test]
fn c4_who_is_listed_comes_along() {
    let stays = "form 5ab\n a: 5ab>9ab:ab 9ab\n quiet";
    assert_eq!(broken(stays), ["C4"]);
    assert!(details("C4", stays).contains("process 2.1 stayed in ring 5.1.1"));
    // Not so when nothing is known of what b does next.
    legal("C4", "form 5ab\n a: 5ab>9ab:ab 9ab");
    legal(
        "C4",
        "form 5ab\n a: 5ab>9ab:ab 9ab\n b: 5ab>9ab:ab 9ab\n quiet",
    );
}

#[test]
fn c4_who_is_listed_may_fail_or_be_separated_again() {
    legal(
        "C4",
        "form 5ab\n a: 5ab>9ab:ab 9ab 9ab>13a:a 13a\n b: crash\n quiet",
    );
    let again = "a: 5ab>9ab:ab 9ab 9ab>13a:a 13a\n b: 5ab>17b:b 17b\n quiet";
    legal("C4", &format!("form 5ab\n {again}"));
    // c is alive and never got to 5ab; had it died, its application might have been behind.
    let elsewhere = "form 5ab\n form 1c\n a: 5ab>9abc:abc 9abc\n quiet";
    assert!(broken(elsewhere).contains(&"C4"));
}

#[test]
fn c4_at_rest_all_live_members_are_there() {
    assert_eq!(
        broken("form 5ab\n a: 5ab>9a:a 9a\n b: 5ab>8b:b\n quiet"),
        ["C4"]
    );
    assert_eq!(broken("form 5ab\n a: 5ab>9a:a 9a\n quiet"), ["C4"]);
    legal("C4", "form 5ab\n a: 5ab>9a:a 9a\n b: leave\n quiet");
    legal("C4", "form 5ab\n a: 5ab>9a:a 9a\n b: 5ab>8b:b 8b\n quiet");
}

#[test]
fn c5_who_goes_the_same_way_goes_together() {
    let apart = "form 5ab\n a: 5ab>9ab:a 9ab\n b: 5ab>9ab:b 9ab";
    assert_eq!(broken(apart), ["C1", "C5"]);
    assert_eq!(
        broken("form 5ab\n a: 5ab>9ab:ab 9ab\n b: 5ab>8ab:ab 9ab"),
        ["C3", "C5"]
    );
    legal("C5", "form 5ab\n a: 5ab>9ab:ab 9ab\n b: 5ab>9ab:ab 9ab");
    // Back to one ring, but on different ways.
    legal(
        "C5",
        "form 5ab\n a: 5ab>9a:a 9a 9a>13ab:a 13ab\n b: 5ab>9b:b 9b 9b>13ab:b 13ab",
    );
}

#[test]
fn c6_who_goes_to_different_rings_does_not_go_together() {
    assert_eq!(
        broken("form 5ab\n a: 5ab>9ab:ab 9ab\n b: 5ab>9ab:ab 10ab"),
        ["C3", "C6"]
    );
    // b was listed by a, and went elsewhere on its own way.
    legal(
        "C6",
        "form 5abc
        a: 5abc>9abc:abc 9abc
        c: 5abc>9abc:abc 9abc
        b: 5abc>13b:b 13b",
    );
}

#[test]
fn c7_ring_numbers_grow() {
    assert_eq!(broken("form 5ab\n a: 5ab>4a:a 4a"), ["C7"]);
    assert_eq!(broken("form 5ab\n b: 5ab>5b:b 5b"), ["C7"]);
    legal("C7", "form 5ab\n a: 5ab>6a:a 6a");
}

#[test]
fn c7_ring_numbers_grow_over_a_nodes_lives() {
    assert_eq!(broken("form 5ab\n a: crash\n A: start 5A"), ["C7"]);
    legal("C7", "form 5ab\n a: crash\n A: start 6A");
}

#[test]
fn c8_who_can_reach_each_other_end_in_one_ring() {
    let end = "form 5abc
        a: 5abc>9ab:ab 9ab
        b: 5abc>9ab:ab 9ab
        c: 5abc>9c:c 9c
        quiet";
    let with = |text: &str, components: &[&str]| {
        let options = Options {
            components: components.iter().map(|names| members(names)).collect(),
            ..Options::default()
        };
        let report = check_all(&trace(text), &options);
        let verdict = report.verdicts.iter().find(|v| v.property == "C8");
        (names(&report), verdict.map_or(0, |verdict| verdict.checked))
    };
    assert_eq!(with(end, &["ab", "c"]), (vec![], 3));
    assert_eq!(with(end, &[]), (vec![], 0));
    assert_eq!(with(end, &["abc"]).0, ["C8"]);
    assert_eq!(with(end, &["a", "b", "c"]).0, ["C8"]);
    // The dead reach nobody.
    let dead = "form 5ab\n a: 5ab>9a:a 9a\n b: crash\n quiet";
    assert_eq!(with(dead, &["ab"]), (vec![], 1));
    let not_noticed = "form 5ab\n b: crash\n quiet";
    assert_eq!(with(not_noticed, &["ab"]).0, ["C8"]);
}
