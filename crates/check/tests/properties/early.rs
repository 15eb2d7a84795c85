//! Reliable and fifo messages, which come before their turn.

use super::story::{broken, details, legal, report};

#[test]
fn reliable_messages_have_no_order() {
    let story = |service: char| {
        format!(
            "form 5ab
            a: !a1{service} !a2{service} !a3 a1 a2 a3
            b: a2 a3 a1"
        )
    };
    legal("O1", &story('r'));
    assert_eq!(broken(&story('g')), ["O1", "O2", "O3", "O4", "prefix"]);
    assert_eq!(
        report("form 5ab\n a: !a1 !a2r\n b: a2 a1").counters.early,
        1
    );
}

#[test]
fn reliable_messages_are_delivered_behind_a_hole() {
    legal(
        "V1",
        "form 5abc
        a: !a1 crash
        b: !b1r b1 5abc>9bc:bc 9bc
        c: 5abc>9bc:bc b1 9bc",
    );
}

#[test]
fn v1_together_the_sets_are_equal_nevertheless() {
    let lost = "form 5ab
        a: !a1r a1 5ab>9ab:ab 9ab
        b: 5ab>9ab:ab 9ab";
    assert_eq!(broken(lost), ["V1"]);
    assert!(details("V1", lost).contains("only process 1.1 delivered message 1.1.1 (reliable"));
    legal(
        "V1",
        "form 5ab\n a: !a1r a1 5ab>9ab:ab 9ab\n b: 5ab>9ab:ab a1 9ab",
    );
}

#[test]
fn fifo_messages_keep_the_order_of_their_sender() {
    assert_eq!(broken("form 5ab\n a: !a1f !a2f\n b: a2 a1"), ["fifo"]);
    assert_eq!(broken("form 5ab\n a: !a1 !a2f\n b: a2 a1"), ["fifo"]);
    // Others' may be passed, and reliable ones may come late.
    legal(
        "fifo",
        "form 5ab
        b: !b1 !b2f
        a: !a1f !a2f !a3f
        b: a1 a2 b1 b2 a3",
    );
    legal("fifo", "form 5ab\n a: !a1r !a2f\n b: a2 a1");
}

#[test]
fn fifo_messages_leave_none_of_their_sender_out() {
    let gap = "form 5ab\n a: !a1f !a2f crash\n b: 5ab>9b:b a2 9b";
    assert_eq!(broken(gap), ["fifo"]);
    assert!(details("fifo", gap).contains("before 1 earlier fifo messages of its sender"));
    // Not even the second: then nothing is left out before it.
    legal("fifo", "form 5ab\n a: !a1f !a2f crash\n b: 5ab>9b:b a1 9b");
    // Lost in the total order, behind the hole of c1.
    legal(
        "fifo",
        "form 5abc
        c: !c1 crash
        a: c1 !a1 !a2f crash
        b: 5abc>9b:b a2 9b",
    );
}
