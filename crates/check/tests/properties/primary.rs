//! Primary configurations (P).

use rota_check::{Options, PrimaryRule, check_all};
use rota_core::contract::NodeId;

use super::story::{broken, details, legal, names, trace};

/// The properties that a story violates, if primaries were chosen by this rule.
fn broken_by(rule: PrimaryRule, text: &str) -> Vec<&'static str> {
    let options = Options {
        primary: Some(rule),
        ..Options::default()
    };
    names(&check_all(&trace(text), &options))
}

fn successive(text: &str) -> Vec<&'static str> {
    broken_by(PrimaryRule::Successive, text)
}

fn majority_of(count: u16, text: &str) -> Vec<&'static str> {
    let nodes = (1..=count).filter_map(NodeId::new).collect();
    broken_by(PrimaryRule::Majority(nodes), text)
}

/// Five nodes of which a and b lose the others; `ab` and `cde` is what the two parts do then.
fn split(ab: &str, cde: &str) -> String {
    format!(
        "form 5abcde
        a: primary 5abcde>9ab:ab 9ab {ab}
        b: 5abcde>9ab:ab 9ab
        c: 5abcde>10cde:cde 10cde {cde}
        d: 5abcde>10cde:cde 10cde
        e: 5abcde>10cde:cde 10cde"
    )
}

#[test]
fn p1_two_parts_are_not_both_primary() {
    let both = split("primary", "primary");
    assert_eq!(broken(&both), ["P1", "P2"]);
    let detail = details("P1", &both);
    assert!(
        detail.contains("no member in common: 9.1.1 of nodes {1, 2}, reported by process 1.1"),
        "{detail}"
    );
    legal("P1", &split("", "primary"));
    legal("P1", &split("", "primary 10cde>14cd:cd 14cd primary"));
}

#[test]
fn p1_two_primaries_have_different_numbers() {
    let same = split("primary", "primary").replace("10cde", "9cde");
    let detail = details("P1", &same);
    assert!(detail.contains("no member in common"), "{detail}");
    let shared = "form 5ab
        form 5c
        a: primary
        c: 5c>6c:c 6c primary";
    assert!(broken(shared).contains(&"P1"));
}

#[test]
fn p1_only_the_current_regular_configuration_is_reported_and_once() {
    assert_eq!(broken("form 5ab\n a: primary primary"), ["P1"]);
    assert_eq!(broken("form 5ab\n a: 5ab>9a:a primary/5ab"), ["P1"]);
    assert_eq!(broken("form 5ab\n a: 5ab>9a:a 9a primary/5ab"), ["P1"]);
    let detail = details("P1", "form 5ab\n a: 5ab>9a:a primary/5ab");
    assert!(detail.contains("which was not current"), "{detail}");
    // Each member may report it, and not all have to.
    legal("P1", "form 5abc\n a: primary\n b: primary");
}

#[test]
fn p2_the_next_primary_has_a_quorum_of_the_one_before() {
    // d was in the first primary, and is not a quorum of it.
    let one_of_four = "form 5abcd
        a: primary
        d: 5abcd>9d:d 9d primary";
    assert_eq!(successive(one_of_four), ["P2"]);
    assert_eq!(majority_of(4, one_of_four), ["P2"]);
    assert_eq!(broken(one_of_four), ["P2"]);
    let half = |who: &str, two: &str| {
        format!("form 5abcd\n a: primary\n {who}: 5abcd>9{two}:{two} 9{two} primary")
    };
    // Half of them is enough with the smallest only.
    assert_eq!(successive(&half("a", "ab")), [] as [&str; 0]);
    assert_eq!(successive(&half("d", "cd")), ["P2"]);
    assert_eq!(successive(&half("d", "bcd")), [] as [&str; 0]);
}

#[test]
fn p2_a_primary_of_which_there_were_few_may_be_followed_by_fewer() {
    let shrinking = "form 5abcde
        a: primary 5abcde>9abc:abc 9abc primary 9abc>13ab:ab 13ab primary 13ab>17a:a 17a primary";
    assert_eq!(successive(shrinking), [] as [&str; 0]);
    // Nobody chose those two by a majority of all five.
    assert_eq!(majority_of(5, shrinking), ["P2"]);
    legal("P2", shrinking);
    // After it, those who were left behind long ago are no quorum.
    let back = format!("{shrinking}\n d: 5abcde>18de:de 18de\n e: 5abcde>18de:de 18de primary");
    assert_eq!(successive(&back), ["P1", "P2"]);
}

#[test]
fn p2_a_majority_of_the_configured_nodes_need_not_be_one_of_the_primary_before() {
    let other_majority = "form 5abcd
        form 6e
        a: primary
        d: 5abcd>9de:d 9de=de 9de>13cde:de 13cde primary";
    assert_eq!(majority_of(5, other_majority), [] as [&str; 0]);
    assert_eq!(successive(other_majority), ["P2"]);
    // Without the rule either will do.
    legal("P2", other_majority);
}

#[test]
fn p3_what_was_safe_in_a_primary_is_in_the_next() {
    let next = |b: &str| {
        format!(
            "form 5abc
            a: primary !a1s a1
            b: 5abc>9bc:bc {b} 9bc primary
            c: 5abc>9bc:bc a1 9bc"
        )
    };
    let lost = next("");
    assert!(broken(&lost).contains(&"P3"));
    let detail = details("P3", &lost);
    assert!(
        detail.contains("process 2.1 reported a later primary") && detail.contains("1.1.1"),
        "{detail}"
    );
    legal("P3", &next("a1"));
    // What is not safe is not promised.
    assert!(!broken(&lost.replace("a1s", "a1g")).contains(&"P3"));
}

#[test]
fn p3_speaks_of_primaries_and_of_processes_that_lived_through_only() {
    let story = |a: &str, b: &str| format!("form 5abc\n a: {a}\n {b}");
    let quiet = |text: &str| assert!(!broken(text).contains(&"P3"), "{text}");
    let without = "b: 5abc>9bc:bc 9bc primary";
    // Before the report, and behind the regular configuration, it is no promise.
    quiet(&story("!a1s a1 primary", without));
    quiet(&story("primary !a1s 5abc>9a:a a1 9a", without));
    quiet(&story("!a1s a1", without));
    // b serves in no later primary.
    quiet(&story("primary !a1s a1", "b: 5abc>9bc:bc 9bc"));
    // The next life of b knows what its application has kept.
    let again = "b: crash\n B: start 6B 6B>9Bc:B 9Bc primary";
    quiet(&story("primary !a1s a1", again));
}

#[test]
fn p2_between_two_primaries_there_may_be_one_that_nobody_reported() {
    // d and e have nothing to do with the first primary; with a and b they may have followed it.
    let story = |b: &str| {
        format!(
            "form 5abc
            form 6de
            a: primary 5abc>9abde:ab 9abde
            b: {b}
            d: 6de>9abde:de 9abde 9abde>13ade:de 13ade primary
            e: 6de>9abde:de 9abde 9abde>13ade:de 13ade"
        )
    };
    let all_there = story("5abc>9abde:ab 9abde");
    assert_eq!(successive(&all_there), [] as [&str; 0]);
    // b never got there: it cannot have become primary.
    assert_eq!(successive(&story("?b1")), ["P2"]);
    // Two of four without the smallest do not follow.
    let without = all_there.replace("13ade", "13de");
    assert_eq!(successive(&without), ["P2"]);
}
