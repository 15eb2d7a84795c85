//! A sentence each for what can be wrong, and none for what is not.

use crate::status::{ClientStatus, PeerStatus};

use super::*;

/// Three nodes on one ring that do their work: in a second each has the token a thousand times, for 50 µs.
fn well() -> Vec<Seen> {
    let one = |node: u16| {
        let mut seen = Seen::default();
        for status in [&mut seen.before, &mut seen.after] {
            status.node = node;
            status.nodes = vec![1, 2, 3];
            status.members = vec![1, 2, 3];
            status.ring = "operational: 1, 2, 3".to_owned();
            status.groups_ready = true;
            status.uptime_us = 5_000_000;
        }
        let after = &mut seen.after;
        after.uptime_us += 1_000_000;
        after.token.held.count = 1000;
        after.token.held.sum_us = 50_000;
        after.token.waited_us = 10_000;
        after.token.rotation.count = 1000;
        after.token.rotation.sum_us = 950_000;
        after.counters.insert("packets_received".into(), 10_000);
        after.counters.insert("packets_sent".into(), 5_000);
        seen
    };
    [1, 2, 3].map(one).into()
}

fn count(seen: &mut Seen, name: &'static str, count: u64) {
    seen.after.counters.insert(name.into(), count);
}

fn lose(seen: &mut Seen, of: u16, packets: u64) {
    let repaired = PeerStatus {
        repaired: packets,
        resent: 0,
    };
    seen.after.peers.insert(of, repaired);
}

fn client(waiting_bytes: usize, unread_ms: u64) -> ClientStatus {
    ClientStatus {
        name: "#x#n1".to_owned(),
        waiting_bytes,
        unread_ms,
        messages: 1,
        ..ClientStatus::default()
    }
}

/// The text of the only finding, which is a trouble.
fn only(seen: &[Seen], begins: &str) -> String {
    let findings = explain(seen);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let Finding { wrong, text } = findings[0].clone();
    assert!(wrong && text.starts_with(begins), "{text}");
    text
}

#[test]
fn all_is_well() {
    let findings = explain(&well());
    let text = "all well: 3 on one ring, the token goes round in 0.95 ms (3 of them asked)";
    assert_eq!(findings, [Finding::note(text.to_owned())]);
    // A trouble from before the interval is not in it.
    let mut seen = well();
    let Seen { before, after } = &mut seen[1];
    for status in [before, after] {
        status.counters.insert("net_kernel_drops".into(), 700);
        status.peers.insert(
            1,
            PeerStatus {
                repaired: 700,
                resent: 700,
            },
        );
        status.counters.insert("clients_slow".into(), 7);
    }
    assert_eq!(explain(&seen).len(), 1);
    assert_eq!(explain(&[]), []);
}

#[test]
fn a_slow_node_is_named_with_what_it_takes_the_time_for() {
    let slow = |part: fn(&mut crate::TokenStatus) -> &mut u64| {
        let mut seen = well();
        let token = &mut seen[2].after.token;
        token.held.count = 60;
        token.held.sum_us = 600_000;
        *part(token) = 580_000;
        only(
            &seen,
            "node 3 is slow: it has the token 60 % of the time, 10.0 ms on average (others 0.05 ms); ",
        )
    };
    assert!(slow(|token| &mut token.waited_us).contains("does not get a processor"));
    assert!(slow(|token| &mut token.clients_us).contains("what its clients ask for"));
    assert!(slow(|token| &mut token.blocked_us).contains("a socket is full"));
}

#[test]
fn who_sends_the_most_has_the_token_the_longest_and_that_is_no_fault() {
    let mut seen = well();
    seen[0].after.token.held.sum_us = 700_000;
    assert!(!explain(&seen).iter().any(|finding| finding.wrong));
}

#[test]
fn a_node_alone_is_called_slow_only_if_it_has_the_token_most_of_the_time() {
    let mut seen = vec![well().remove(0)];
    seen[0].after.token.waited_us = 400_000;
    seen[0].after.token.held.sum_us = 400_000;
    assert!(!explain(&seen).iter().any(|finding| finding.wrong));
    seen[0].after.token.waited_us = 550_000;
    seen[0].after.token.held.sum_us = 560_000;
    only(
        &seen,
        "node 1 is slow: it has the token 56 % of the time, 0.56 ms on average; ",
    );
}

#[test]
fn crowded_hosts_are_slow_together() {
    let mut seen = well();
    for one in &mut seen {
        one.after.token.waited_us = 300_000;
        one.after.token.held.sum_us = 310_000;
    }
    only(
        &seen,
        "all nodes that were asked (1, 2, 3) are slow to take the token: it waits for them 90 %",
    );
}

#[test]
fn a_token_that_nobody_keeps_and_that_takes_long_is_on_slow_links() {
    let mut seen = well();
    for one in &mut seen {
        one.after.token.rotation.count = 50;
        // Up to 16,384 and 32,768 us.
        one.after.token.rotation.buckets = [vec![0; 51], vec![20, 0, 0, 0, 30]].concat();
        one.after.token.held.count = 50;
        one.after.token.held.sum_us = 2_500;
        one.after.token.waited_us = 500;
    }
    only(
        &seen,
        "the token takes 19.0 ms to go round, and no node keeps it: the links are slow",
    );
    // One in ten that was very late is no slow link, and neither is one of two.
    let mut late = seen.clone();
    for one in &mut late {
        one.after.token.rotation.buckets = [vec![0; 23], vec![45], vec![0; 43], vec![5]].concat();
    }
    assert!(explain(&late).iter().all(|finding| !finding.wrong));
    let mut few = seen.clone();
    for one in &mut few {
        one.after.token.rotation.count = 2;
        one.after.token.rotation.sum_us = 38_000;
        one.after.token.rotation.buckets = [vec![0; 51], vec![1, 0, 0, 0, 1]].concat();
    }
    assert!(explain(&few).iter().all(|finding| !finding.wrong));
    seen.pop();
    let text = only(
        &seen,
        "the token takes 19.0 ms to go round, and of the nodes that were asked none",
    );
    assert!(text.contains("ask the others (3)"), "{text}");
}

#[test]
fn a_lossy_link_and_a_small_buffer_are_told_apart() {
    let mut seen = well();
    lose(&mut seen[1], 1, 300);
    let text = only(
        &seen,
        "node 2 asks for many retransmissions: 300 packets of what node 1 sent (3.0 %)",
    );
    assert!(
        text.contains("lossy link: the link from node 1 to node 2"),
        "{text}"
    );
    count(&mut seen[1], "net_kernel_drops", 290);
    let text = only(&seen, "node 2 asks for many");
    assert!(
        text.contains("the kernel of node 2 has dropped 290 datagrams"),
        "{text}"
    );
    assert!(!text.contains("lossy"), "{text}");
}

#[test]
fn a_node_that_loses_what_all_send_has_a_bad_link_of_its_own() {
    let mut seen = well();
    lose(&mut seen[1], 1, 300);
    lose(&mut seen[1], 3, 200);
    let text = only(
        &seen,
        "node 2 asks for many retransmissions: 500 packets of what node 1, 3 sent",
    );
    assert!(text.contains("the link or the port of node 2"), "{text}");
    count(&mut seen[1], "net_faults", 500);
    assert!(only(&seen, "node 2 asks").contains("its configuration injects faults (500)"));
}

#[test]
fn a_sender_whose_packets_all_others_lack_is_named() {
    let mut seen = well();
    lose(&mut seen[1], 1, 300);
    lose(&mut seen[2], 1, 290);
    only(
        &seen,
        "what node 1 sends gets lost on its way to all others (2, 3)",
    );
    // One more thing is lost: then it is not only that.
    lose(&mut seen[2], 2, 290);
    assert_eq!(explain(&seen).len(), 2);
}

#[test]
fn few_losses_are_nobodys_business_and_the_bound_is_a_thousandth() {
    let mut seen = well();
    lose(&mut seen[1], 1, 9);
    assert!(!explain(&seen)[0].wrong);
    lose(&mut seen[1], 1, 10);
    assert!(explain(&seen)[0].wrong);
    count(&mut seen[1], "packets_received", 100);
    lose(&mut seen[1], 1, 4);
    assert!(!explain(&seen)[0].wrong);
}

#[test]
fn losses_of_a_node_that_was_not_asked_are_seen_by_who_repairs_them() {
    let mut seen = well();
    seen.pop();
    count(&mut seen[0], "retransmissions", 100);
    only(
        &seen,
        "node 1 has sent 100 packets again: a node that was not asked loses packets",
    );
}

#[test]
fn drops_without_losses_are_said_too() {
    let mut seen = well();
    count(&mut seen[0], "net_kernel_drops", 3);
    only(&seen, "the kernel of node 1 has dropped 3 datagrams");
}

#[test]
fn a_stuck_client_and_one_that_lags_are_told_apart() {
    let mut seen = well();
    seen[0].after.clients = vec![client(3_000_000, 4_000)];
    let stuck = "client #x#n1 of node 1 is stuck: it has not read for 4 s, and 3.0 MB wait for it";
    only(&seen, stuck);
    seen[0].after.clients = vec![client(3_000_000, 300)];
    only(&seen, "client #x#n1 of node 1 lags: 3.0 MB wait for it");
    seen[0].after.clients = vec![client(70_000, 300)];
    assert!(!explain(&seen)[0].wrong);
}

#[test]
fn many_clients_that_lag_are_not_all_named() {
    let mut seen = well();
    seen[0].after.clients = vec![client(3_000_000, 0); 25];
    let findings = explain(&seen);
    assert_eq!(findings.len(), 11);
    assert_eq!(findings[10].text, "and 15 more clients of node 1 lag");
}

#[test]
fn who_slows_down_others_is_named_with_what_waits_for_it() {
    let mut seen = well();
    let groups = ["g", "h", "i", "j"].map(String::from);
    seen[0].after.clients = vec![ClientStatus {
        throttles: groups.into(),
        throttling_ms: 1200,
        ..client(9_000_000, 1100)
    }];
    count(&mut seen[0], "clients_throttling", 2);
    seen[1].after.clients = vec![ClientStatus {
        held_for: Some("#x#n1".to_owned()),
        ..client(0, 0)
    }];
    let said = explain(&seen);
    let texts: Vec<&str> = said.iter().map(|one| one.text.as_str()).collect();
    let expected = [
        "client #x#n1 of node 1 reads too slowly, and others are slowed down for it: who sends to g, h, i and 1 \
         more has waited for 1.2 s, until it has read most of the 9.0 MB that wait for it or throttle_ms have \
         passed",
        "1 clients of node 2 have a message that waits for #x#n1, which reads too slowly",
    ];
    assert_eq!(texts, expected);
    assert_eq!([said[0].wrong, said[1].wrong], [true, false]);
    seen[0].after.clients.clear();
    seen[1].after.clients.clear();
    count(&mut seen[0], "clients_throttling_us", 700_000);
    only(
        &seen,
        "clients of node 1 read too slowly: 2 times others had to wait for them, for 700.0 ms in all",
    );
}

#[test]
fn clients_that_were_dropped_or_held_back_are_said() {
    let mut seen = well();
    count(&mut seen[2], "clients_slow", 2);
    only(&seen, "node 3 has disconnected 2 clients that did not read");
    let mut seen = well();
    let held = ClientStatus {
        held_back: true,
        ..client(0, 0)
    };
    seen[0].before.clients = vec![held.clone()];
    seen[0].after.clients = vec![held];
    let findings = explain(&seen);
    let expected = "1 clients of node 1 have more to send than the ring takes, and are held back";
    assert_eq!(findings[0], Finding::note(expected.to_owned()));
}

#[test]
fn missing_nodes_and_split_networks_are_said() {
    let mut seen = well();
    seen.pop();
    for one in &mut seen {
        one.after.members = vec![1, 2];
    }
    only(&seen, "node 3 is not on the ring, which goes on without it");
    seen[1].after.members = vec![2, 3];
    only(
        &seen,
        "the network is split, or they are just meeting: there are rings of (1, 2) and (2, 3)",
    );
}

#[test]
fn what_happens_to_the_ring_is_said() {
    let mut seen = well();
    "gathering: waiting for 3".clone_into(&mut seen[0].after.ring);
    only(&seen, "node 1 is on no ring: gathering: waiting for 3");
    let mut seen = well();
    count(&mut seen[0], "configurations", 2);
    only(&seen, "the ring of node 1 has changed 2 times just now");
    count(&mut seen[0], "token_losses", 1);
    assert!(only(&seen, "the ring").contains("1 of them because the token was lost"));
    let mut seen = well();
    count(&mut seen[0], "duplicate_nodes", 1);
    only(&seen, "node 1: another process goes by its number");
    let mut seen = well();
    count(&mut seen[1], "coordination_failures", 3);
    only(&seen, "node 2: etcd does not answer");
    let mut seen = well();
    (seen[0].before.groups_ready, seen[0].after.groups_ready) = (false, false);
    only(&seen, "node 1 waits for other daemons");
    let mut seen = well();
    seen[0].after.excluded = true;
    only(&seen, "node 1 is excluded");
}

#[test]
fn a_link_that_yields_is_told_and_is_no_fault() {
    let mut seen = well();
    count(&mut seen[1], "fast_packets_lost", 17);
    count(&mut seen[1], "fast_link_kbps", 300_000);
    count(&mut seen[1], "fast_slowest_link_kbps", 250_000);
    assert_eq!(explain(&seen).len(), 1);
    count(&mut seen[1], "fast_link_lowered", 1);
    let findings = explain(&seen);
    assert!(findings.iter().all(|finding| !finding.wrong));
    let text = &findings[0].text;
    let says = "node 2 has lost 17 packets just now: its link is taken to take in 300.0 Mbit/s, and all go by 250.0";
    assert!(text.starts_with(says), "{text}");
}

#[test]
fn numbers_that_no_daemon_counts_to_break_nothing() {
    const MOST: u64 = u64::MAX;
    let mut seen = well();
    for one in &mut seen {
        for name in [
            "packets_sent",
            "packets_received",
            "packets_requested",
            "fast_packets_sent",
            "fast_packets_received",
            "fast_packets_repaired",
            "fast_packets_resent",
            "net_submissions",
            "net_deliveries",
            "retransmissions",
            "token_retransmissions",
        ] {
            count(one, name, MOST);
        }
        for of in 1..=3 {
            lose(one, of, MOST);
        }
        let status = &mut one.after;
        for times in [&mut status.token.rotation, &mut status.token.held] {
            (times.count, times.sum_us) = (MOST, MOST);
            times.buckets = vec![MOST; 80];
        }
        status.clients = vec![client(usize::MAX, MOST); 2];
        status.clients[0].messages = MOST;
        assert_eq!((status.told(), status.repaired()), (MOST, MOST));
    }
    assert!(explain(&seen).iter().any(|finding| finding.wrong));
}

#[test]
fn a_disk_that_takes_no_votes() {
    let mut seen = well();
    count(&mut seen[1], "votes_waiting_ms", 500);
    assert_eq!(explain(&seen).len(), 1);
    assert!(!explain(&seen)[0].wrong);
    count(&mut seen[1], "votes_waiting_ms", 2600);
    count(&mut seen[1], "votes_waiting_bytes", 16_400_000);
    let text = only(&seen, "node 2: its disk has had votes for 2.6 s, ");
    assert!(text.contains("16.4 MB wait"), "{text}");
    count(&mut seen[1], "votes_failed", 1);
    only(&seen, "node 2: the log of its votes has failed");
    let mut seen = well();
    count(&mut seen[1], "votes_syncing_ms", 700);
    only(
        &seen,
        "node 2: its disk has been making votes durable for 700",
    );
    let mut seen = well();
    count(&mut seen[2], "vote_groups_slow", 2);
    only(&seen, "node 3: its disk has taken more than half a second");
    let mut seen = well();
    count(&mut seen[1], "members_unkept", 1);
    only(&seen, "node 2: the list of nodes could not be stored");
}

#[test]
fn where_all_are_outside_a_majority_of_the_acceptors_is_missing() {
    let mut seen = well();
    for one in &mut seen {
        for status in [&mut one.before, &mut one.after] {
            status.ring = "outside the ring of configuration 12".to_owned();
            status.members.clear();
        }
    }
    let says = |seen: &[Seen]| {
        let findings = explain(seen).into_iter();
        findings
            .filter(|finding| finding.text.contains("rota storage recover"))
            .count()
    };
    assert_eq!(says(&seen), 1);
    // One of three may be alone.
    assert_eq!(says(&seen[..1]), 0);
    // It goes on.
    seen[2].after.ring = "outside the ring of configuration 13".to_owned();
    assert_eq!(says(&seen), 0);
    seen[2].before.ring = "operational: 1, 3".to_owned();
    assert_eq!(says(&seen), 0);
}

#[test]
fn an_order_without_a_majority_is_said_to_stand_still() {
    let mut seen = well();
    for one in &mut seen {
        let ring = "no majority: nothing is ordered, as of the 3 acceptors these are not there: 2, 3 (configuration 1)";
        one.after.ring = ring.to_owned();
    }
    let text = only(&seen[..1], "node 1 is in no majority: nothing is ordered");
    assert!(text.contains("2, 3"), "{text}");
}

#[test]
fn deliveries_are_seen_where_there_is_no_token() {
    let mut seen = well();
    for one in &mut seen {
        one.after.token = crate::TokenStatus::default();
    }
    assert!(explain(&seen)[0].text.contains("nothing is going on"));
    count(&mut seen[1], "net_deliveries", 2000);
    let findings = explain(&seen);
    assert!(!findings[0].wrong && findings[0].text.contains("2000 messages a second"));
}

#[test]
fn wrong_keys_foreign_clusters_double_ids_and_refused_sends_are_named() {
    for (name, words) in [
        ("net_seal_forged", "another key"),
        ("net_seal_old_life", "two processes use one number"),
        ("net_foreign_source", "compare the lists of nodes"),
        ("datagrams_foreign_cluster", "another `cluster`"),
        ("datagrams_other_version", "an older or a newer program"),
        ("net_link_other_version", "an older or a newer program"),
        ("duplicate_nodes", "another process goes by its number"),
        ("net_send_errors", "its kernel refuses what it sends"),
    ] {
        let mut seen = well();
        count(&mut seen[2], name, 7);
        let text = only(&seen, "node 3: ");
        assert!(text.contains(words), "{name}: {text}");
    }
}

#[test]
fn who_only_sends_and_has_a_little_to_read_is_not_stuck() {
    let mut seen = well();
    seen[0].after.clients = vec![client(972, 6_000)];
    let findings = explain(&seen);
    assert!(
        !findings.iter().any(|finding| finding.wrong),
        "{findings:?}"
    );
}

#[test]
fn who_was_asked_at_two_places_counts_once() {
    let mut seen = well();
    for one in &mut seen {
        one.after.pid = 10 + u32::from(one.node());
    }
    seen.extend(seen.clone());
    assert_eq!(distinct(seen).len(), 3);
}
