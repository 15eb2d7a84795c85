//! Multicast that does not reach anybody, and nodes that are well though it may not look so.

use crate::status::ClientStatus;

use super::*;

/// Three nodes that have sent `sent` packets each, got `received` and asked for a hundred in vain.
fn asking(received: [u64; 3]) -> Vec<Seen> {
    let one = |(node, received): (u16, u64)| {
        let mut seen = Seen::default();
        for status in [&mut seen.before, &mut seen.after] {
            status.node = node;
            status.nodes = vec![1, 2, 3];
            status.members = vec![1, 2, 3];
            status.ring = "operational: 1, 2, 3".to_owned();
            status.groups_ready = true;
        }
        seen.after.uptime_us = 1_000_000;
        let asked = if received == 0 { 100 } else { 0 };
        // A node that gets everything is asked for packets that others lack.
        let again = if received == 0 { 0 } else { 5000 };
        for (name, count) in [
            ("packets_sent", 50),
            ("packets_received", received),
            ("packets_requested", asked),
            ("retransmissions", again),
        ] {
            seen.after.counters.insert(name.into(), count);
        }
        seen
    };
    (1..).zip(received).map(one).collect()
}

fn texts(seen: &[Seen]) -> Vec<String> {
    explain(seen)
        .into_iter()
        .map(|finding| finding.text)
        .collect()
}

#[test]
fn who_gets_no_packets_is_named() {
    let mut seen = asking([100, 100, 0]);
    let texts_of_all = texts(&seen);
    assert_eq!(texts_of_all.len(), 1, "{texts_of_all:?}");
    let what = "node 3 gets none of the packets that others send";
    assert!(texts_of_all[0].starts_with(what), "{texts_of_all:?}");
    // Nobody else's packets could have come.
    for one in &mut seen[..2] {
        one.after.counters.insert("packets_sent".into(), 0);
    }
    assert!(!texts(&seen)[0].contains("node 3 gets none"));
}

#[test]
fn whose_packets_reach_nobody_is_named_in_each_engine_that_multicasts() {
    for (sent, again) in [
        ("packets_sent", "retransmissions"),
        ("fast_packets_sent", "fast_packets_resent"),
        ("net_submissions", "uring_values_sent_again"),
    ] {
        let mut seen = asking([100, 100, 100]);
        for one in &mut seen {
            one.after.counters.clear();
            one.after.counters.insert(sent.into(), 50);
        }
        seen[2].after.counters.insert(again.into(), 50);
        if again == "fast_packets_resent" {
            // One that is deaf is not a reason to call whom it asks mute.
            seen[1]
                .after
                .counters
                .insert("fast_packets_repaired".into(), 50);
            assert!(!texts(&seen)[0].starts_with("what node 3"));
            seen[0]
                .after
                .counters
                .insert("fast_packets_repaired".into(), 50);
        }
        let said = texts(&seen);
        let what = "what node 3 multicasts reaches nobody";
        assert!(said.len() == 1 && said[0].starts_with(what), "{said:?}");
        // The node that is not there may be the one that lacks them.
        seen.remove(0);
        assert!(!texts(&seen)[0].starts_with(what));
    }
}

#[test]
fn who_has_to_ask_for_everything_is_named_in_other_engines_too() {
    for (got, asked) in [
        ("fast_packets_received", "fast_packets_repaired"),
        ("uring_values_decided", "uring_values_asked_for"),
    ] {
        let mut seen = asking([100, 100, 100]);
        for one in &mut seen {
            one.after.counters.clear();
            one.after.counters.insert("net_submissions".into(), 50);
            one.after.counters.insert(got.into(), 100);
        }
        assert!(texts(&seen)[0].starts_with("all well"));
        seen[2].after.counters.insert(asked.into(), 100);
        let said = texts(&seen);
        assert!(
            said[0].starts_with("node 3 gets none of the packets"),
            "{said:?}"
        );
    }
}

#[test]
fn multicast_that_does_not_pass_is_named_and_tokens_are_not_blamed() {
    let mut seen = asking([0, 0, 0]);
    for one in &mut seen {
        // Requests go round and round.
        one.after.token.held.count = 1000;
        one.after.token.held.sum_us = 400_000;
        one.after.token.waited_us = 400_000;
    }
    let texts = texts(&seen);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("multicast does not pass"), "{texts:?}");
}

#[test]
fn nodes_that_are_all_alone_may_lack_multicast() {
    let mut seen = asking([100, 100, 100]);
    for one in &mut seen {
        for status in [&mut one.before, &mut one.after] {
            status.members = vec![status.node];
            status.ring = format!("operational: {}", status.node);
        }
        one.after.counters.clear();
    }
    let alone = texts(&seen);
    let hint = "the group does not reach the others";
    assert!(
        alone[0].contains("(1) and (2) and (3)") && alone[0].contains(hint),
        "{alone:?}"
    );
    for one in &mut seen[..2] {
        one.after.members = vec![1, 2];
        "operational: 1, 2".clone_into(&mut one.after.ring);
    }
    let split = texts(&seen);
    assert!(
        split[0].contains("(1, 2) and (3)") && !split[0].contains(hint),
        "{split:?}"
    );
}

#[test]
fn who_was_told_no_messages_and_sends_is_not_stuck_for_long() {
    let mut seen = asking([100, 100, 100]);
    for one in &mut seen {
        one.after.counters.clear();
    }
    let mut client = ClientStatus {
        name: "#x#n1".to_owned(),
        waiting_bytes: 60_000,
        unread_ms: 70_000,
        ..ClientStatus::default()
    };
    seen[0].after.clients = vec![client.clone()];
    assert!(texts(&seen)[0].starts_with("all well"));
    client.messages = 1;
    seen[0].after.clients = vec![client.clone()];
    assert!(texts(&seen)[0].contains("is stuck"));
    // A megabyte is more than such a client may have to read.
    client.messages = 0;
    client.waiting_bytes = 2 << 20;
    seen[0].after.clients = vec![client];
    assert!(texts(&seen)[0].contains("lags"));
}
