//! Basic delivery (E) and self-delivery (S).

use super::story::{broken, details, legal};

#[test]
fn e1_nothing_is_delivered_that_nobody_originated() {
    let story = "form 5ab
        a: !a1 a1
        b: a1 a2";
    assert_eq!(broken(story), ["E1"]);
    assert!(details("E1", story).contains("process 2.1 delivered message 1.1.2"));
    legal("E1", "form 5ab\n a: !a1 a1 !a2\n b: a1 a2");
}

#[test]
fn e1_payload_and_service_are_what_was_originated() {
    assert_eq!(broken("form 5ab\n a: !a1#1 a1#1\n b: a1#2"), ["E1"]);
    assert_eq!(broken("form 5ab\n a: !a1g a1\n b: a1c"), ["E1"]);
    legal("E1", "form 5ab\n a: !a1c#1 a1#1\n b: a1#1");
}

#[test]
fn e1_a_message_of_one_ring_is_not_delivered_in_the_next() {
    let late = |delivery| {
        format!(
            "form 5ab
            a: !a1 a1 5ab>9ab:ab 9ab
            b: {delivery}"
        )
    };
    assert!(broken(&late("5ab>9ab:ab 9ab a1")).contains(&"E1"));
    // In the transitional configuration it still is of the old ring: here only the cut is wrong.
    assert!(!broken(&late("5ab>9ab:ab a1 9ab")).contains(&"E1"));
}

#[test]
fn e1_of_a_member_whose_trace_is_missing_nothing_is_known() {
    let of = |sender: &str| format!("form 5abc\n a: {sender}1@1\n b: {sender}1@1");
    let without_c = |text: &str| {
        let (events, _) = super::story::events(text);
        let seen = events.iter().filter(|event| event.process.node.get() != 3);
        rota_check::check_all(&seen.collect(), &rota_check::Options::default())
    };
    let report = without_c(&of("c"));
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.untraced, 1);
    // Of a stranger it is known that it is no member.
    assert_eq!(super::story::names(&without_c(&of("d"))), ["E1"]);
}

#[test]
fn e2_a_message_is_delivered_once_even_over_a_change() {
    let twice = "form 5a\n a: !a1 a1 5a>9a:a a1 9a";
    assert!(broken(twice).contains(&"E2"));
    assert!(details("E2", twice).contains("5.1.1>9.1.1"));
    legal("E2", "form 5a\n a: !a1 a1 5a>9a:a 9a !a2 a2");
}

#[test]
fn e3_a_message_is_originated_once() {
    assert!(broken("form 5a\n a: !a1 a1 5a>9a:a 9a !a1").contains(&"E3"));
    legal("E3", "form 5a\n a: ?a1 ?a2 !a1 a1 5a>9a:a 9a !a2 a2");
}

#[test]
fn e3_a_message_is_originated_by_its_sender_in_its_current_ring() {
    assert!(broken("form 5ab\n b: !a1 a1").contains(&"E3"));
    assert!(broken("form 5a\n a: 5a>9a:a !a1 a1 9a").contains(&"E3"));
    assert!(broken("form 5a\n a: !a1/1a").contains(&"E3"));
    legal("E3", "form 5a\n a: ?a1 5a>9a:a ?a2 9a !a1 !a2 a1 a2");
}

#[test]
fn e3_what_is_originated_is_what_was_accepted() {
    assert_eq!(broken("form 5a\n a: ?a1#1 !a1#2 a1#2"), ["E3"]);
    legal("E3", "form 5a\n a: ?a1#1 !a1#1 a1#1");
}

#[test]
fn e4_nothing_before_the_first_configuration() {
    assert!(broken("a: start !a1 1a").contains(&"E4"));
    // An application may be quick.
    legal("E4", "a: start ?a1 1a !a1 a1");
}

#[test]
fn e4_nothing_after_the_end() {
    assert_eq!(broken("form 5ab\n a: !a1 a1 crash\n b: leave a1"), ["E4"]);
    assert_eq!(broken("a: start 1a crash start"), ["E4"]);
    legal(
        "E4",
        "form 5ab\n a: !a1 a1 leave crash\n b: a1 leave\n A: start 6A",
    );
}

#[test]
fn e4_a_delivery_names_the_current_configuration() {
    assert_eq!(broken("form 5ab\n a: !a1 5ab>9a:a a1/5ab 9a"), ["E4"]);
    legal("E4", "form 5ab\n a: !a1 5ab>9a:a a1 9a");
}

#[test]
fn s1_a_process_delivers_its_own_messages_before_it_goes_on() {
    let lost = "form 5ab\n a: !a1 !a2 a1 5ab>9a:a 9a";
    assert_eq!(broken(lost), ["S1"]);
    assert!(details("S1", lost).contains("message 1.1.2 (agreed, seq 2 of 5.1.1)"));
    legal("S1", "form 5ab\n a: !a1 !a2 a1 5ab>9a:a a2 9a");
    legal("S1", "form 5ab\n a: !a1 !a2r 5ab>9a:a a1 a2 9a");
}

#[test]
fn s1_who_fails_in_the_ring_owes_nothing() {
    legal("S1", "form 5ab\n a: !a1 crash");
    legal("S1", "form 5ab\n a: !a1 5ab>9a:a crash");
    // The trace stops, and nobody says that all was quiet.
    legal("S1", "form 5ab\n a: !a1");
    assert_eq!(broken("form 5ab\n a: !a1\n quiet"), ["S1"]);
    // It failed, but later.
    assert_eq!(broken("form 5ab\n a: !a1 5ab>9a:a 9a crash"), ["S1"]);
}

#[test]
fn s1_a_node_that_lives_again_has_failed_before() {
    legal("S1", "form 5a\n a: !a1\n A: start 6A\n quiet");
}

#[test]
fn s1_when_all_is_quiet_everything_accepted_was_sent() {
    assert_eq!(broken("form 5a\n a: ?a1\n quiet"), ["S1"]);
    legal("S1", "form 5a\n a: ?a1 !a1 a1\n quiet");
    legal("S1", "form 5a\n a: ?a1 !a1 a1 ?a2 crash\n quiet");
    legal("S1", "form 5a\n a: ?a1 !a1 a1 ?a2");
}
