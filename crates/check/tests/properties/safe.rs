//! Safe delivery (F).

use super::story::{broken, details, legal};

#[test]
fn f1_safe_in_a_regular_configuration_is_delivered_by_all() {
    // b, cut off, never learns of a1.
    let lost = "form 5ab
        a: !a1s a1 5ab>9a:a 9a
        b: 5ab>9b:b 9b";
    assert_eq!(broken(lost), ["F1"]);
    let detail = details("F1", lost);
    assert!(
        detail.contains("process 1.1 delivered message 1.1.1 (safe"),
        "{detail}"
    );
    assert!(
        detail.contains("process 2.1 did not deliver it"),
        "{detail}"
    );
    // Agreed is no such promise, and in the transitional configuration b is not spoken of.
    legal("prefix", &lost.replace("a1s", "a1g"));
    legal("F1", "form 5ab\n a: !a1s 5ab>9a:a a1 9a\n b: 5ab>9b:b 9b");
}

#[test]
fn f1_the_promise_may_be_kept_in_the_transitional_configuration() {
    legal(
        "F1",
        "form 5ab\n a: !a1s a1 5ab>9a:a 9a\n b: 5ab>9b:b a1 9b",
    );
}

#[test]
fn f1_in_a_transitional_configuration_its_members_deliver() {
    let cut_off = |c: &str| {
        format!(
            "form 5abc
            a: !a1s
            b: 5abc>9ab:ab a1 9ab
            a: 5abc>9ab:ab a1 9ab
            c: {c}"
        )
    };
    legal("F1", &cut_off("5abc>9c:c 9c"));
    // b was listed with a, did not fail, went elsewhere and did without.
    let elsewhere = "form 5ab\n a: !a1s 5ab>9ab:ab a1 9ab\n b: 5ab>13b:b 13b";
    assert_eq!(broken(elsewhere), ["F1"]);
    legal(
        "F1",
        "form 5ab\n a: !a1s 5ab>9ab:ab a1 9ab\n b: 5ab>13b:b a1 13b",
    );
}

#[test]
fn f1_only_who_fails_in_that_ring_is_excused() {
    legal("F1", "form 5ab\n a: !a1s a1 5ab>9a:a 9a\n b: crash");
    legal(
        "F1",
        "form 5ab\n a: !a1s a1 5ab>9a:a 9a\n b: 5ab>9b:b crash",
    );
    let later = "form 5ab\n a: !a1s a1 5ab>9a:a 9a\n b: 5ab>9b:b 9b crash";
    assert_eq!(broken(later), ["F1"]);
}

#[test]
fn f2_safe_in_a_regular_configuration_means_that_all_are_there() {
    let nobody = "form 5a
        b: start 1b 1b>13b:b 13b crash
        a: 5a>9ab:a 9ab !a1s a1";
    assert_eq!(broken(nobody), ["F1", "F2"]);
    assert!(details("F2", nobody).contains("which process 2.1 never delivered"));
    // The application of b may have been behind its ring.
    let behind = "form 5a\n b: start 1b crash\n a: 5a>9ab:a 9ab !a1s a1";
    legal("F1", behind);
    legal("F2", behind);
    legal("F2", "form 5ab\n a: !a1s a1\n b: crash");
    // Agreed messages do not wait for b.
    legal("E1", "form 5a\n b: start 1b crash\n a: 5a>9ab:a 9ab !a1 a1");
}
