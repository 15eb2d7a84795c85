use super::*;
use rota_core::contract::Status;
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Point};

fn words(line: &str) -> Vec<Bytes> {
    let words = line.split_whitespace();
    words.map(|word| Bytes::from(word.to_owned())).collect()
}

fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

#[test]
fn what_an_operator_wants_is_read() {
    assert_eq!(ask(&[]), Ok(Ask::Show));
    let abandon = Ask::Order(Rank(4), Command::Abandon(2));
    assert_eq!(ask(&words("abandon 4 2")), Ok(abandon));
    let replicas = [1, 3].map(node).into();
    let replace = Ask::Order(Rank(4), Command::Replace(2, replicas));
    assert_eq!(ask(&words("REPLACE 4 2 1,3")), Ok(replace));
    for line in [
        "SHOW",
        "ABANDON 4",
        "ABANDON x 2",
        "ABANDON 70000 2",
        "ABANDON 4 -1",
        "REPLACE 4 2",
        "REPLACE 4 2 0",
        "REPLACE 4 2 1,,3",
        "REPLACE 4 2 1 3",
    ] {
        assert!(ask(&words(line)).is_err(), "{line}");
    }
}

/// Ring 1 keeps what partition 7 needs, whose replicas are 1, 2 and 3; node 3 is not there.
#[test]
fn an_order_that_would_do_harm_is_refused_in_words() {
    let mut table = Table::default();
    let hold = Command::Hold(7, [1, 2, 3].map(node).into(), 0);
    table.apply((40, 1), hold).expect("an account");
    let status = RingsStatus {
        rings: Vec::new(),
        point: None,
        pending: None,
        wishes: 0,
        standby: Vec::new(),
        unreadable_notices: 0,
        accounts: vec![(Rank(1), table)],
        waits_for: Vec::new(),
        merge: Vec::new(),
        trace_lines_lost: 0,
    };
    let there = |there: &[u16]| -> Presence {
        let all = [1, 2, 3, 4].into_iter();
        all.map(|of| (node(of), there.contains(&of))).collect()
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().expect("a runtime");
    let say = |line: &str, there: Presence| {
        let (status, ordered) = (status.clone(), std::cell::RefCell::new(Vec::new()));
        let looks = (
            move || Some(status),
            move |of| match of {
                7 => there,
                _ => Presence::new(),
            },
        );
        let order = |ring: Rank, command| {
            ordered.borrow_mut().push(command);
            match ring {
                Rank(1) => Ok(()),
                _ => Err("it is not on that ring"),
            }
        };
        let asked = ask(&words(line)).expect("an order");
        let reply = runtime.block_on(answer(asked, looks, order));
        (reply, ordered.into_inner())
    };
    let refused = |line: &str, of: &[u16], why: &str| {
        let (reply, ordered) = say(line, there(of));
        let Reply::Error(said) = reply else {
            panic!("{line}: {reply:?}");
        };
        let is_so = said.starts_with("REFUSED ") && said.contains(why);
        assert!(is_so && ordered.is_empty(), "{line}: {said}");
    };
    refused("ABANDON 1 9", &[], "ring 1 keeps nothing for partition 9");
    refused("REPLACE 1 9 1,2", &[], "keeps nothing for partition 9");
    refused(
        "ABANDON 1 7",
        &[2],
        "node 2 has a replica of partition 7, and is there",
    );
    refused("REPLACE 1 7 1,3", &[1, 2], "node 2 has a replica");
    refused(
        "REPLACE 1 7 1,2,5",
        &[1, 2],
        "node 5 has no replica of partition 7",
    );
    for (line, of) in [
        ("ABANDON 1 7", &[][..]),
        ("REPLACE 1 7 1,2", &[1, 2]),
        // One that has not begun yet.
        ("REPLACE 1 7 1,2,4", &[1, 2]),
    ] {
        let (reply, ordered) = say(line, there(of));
        assert_eq!((reply, ordered.len()), (Reply::OK, 1), "{line}");
    }
    // Only who is on a ring knows what is kept there.
    let (reply, _) = say("ABANDON 2 7", there(&[]));
    assert_eq!(reply, Reply::error("ERR it is not on that ring"));
}

#[test]
fn rings_and_their_accounts_are_shown() {
    let mut table = Table::default();
    let hold = Command::Hold(7, [1, 2].map(node).into(), 0);
    table.apply((40, 1), hold).expect("an account");
    let pin = Command::Pin(node(2), 45, 9);
    table.apply((41, 1), pin).expect("a pin");
    let ring = Status {
        state: "operational".to_owned(),
        counters: [("ring_skips", 3)].into(),
        ..Status::default()
    };
    let mut waited = MergeWait {
        waiting_bytes: 77,
        ..MergeWait::default()
    };
    for nanos in [3_000, 5_000] {
        waited.times.record(nanos);
    }
    let status = RingsStatus {
        rings: vec![(Rank(1), ring.clone()), (Rank(2), ring)],
        point: Some(Point {
            round: 100,
            turn: Rank(1),
            used: 0,
        }),
        pending: Some(Change {
            what: What::Leave(Constants::new(Rank(1))),
            effective: 120,
        }),
        wishes: 3,
        standby: vec![(Rank(2), 44)],
        unreadable_notices: 5,
        accounts: vec![(Rank(1), table)],
        waits_for: vec![Need {
            rank: Rank(2),
            round: 109,
        }],
        merge: vec![(Rank(2), waited)],
        trace_lines_lost: 0,
    };
    let Reply::Text(text) = shown(&status) else {
        panic!("a text");
    };
    for line in [
        "point_round:100",
        "subscription_pending:leave ring=1 round=120",
        "subscription_wishes:3",
        "unreadable_notices:5",
        "standby_since:44",
        "# Ring 2",
        "state:operational",
        "needed_up_to_round:109",
        "ring_skips:3",
        "merge_waiting_bytes:77",
        "merge_wait_us:4",
        "account_7:needs=40,replicas=1/2",
        "pin_2:needs=45,until_ns=10",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    let mut out = Text::new("kv");
    tell(&mut out, &status);
    for line in [
        "rota_kv_ring_operational{ring=\"1\"} 1\n",
        "rota_kv_ring_needed_rounds{ring=\"1\"} 0\n",
        "rota_kv_ring_needed_rounds{ring=\"2\"} 10\n",
        "rota_kv_ring_account_needs{ring=\"1\",partition=\"7\"} 40\n",
        "rota_kv_merge_waiting_bytes{ring=\"2\"} 77\n",
        "rota_kv_merge_wait_seconds_bucket{ring=\"2\",le=\"0.000004\"} 1\n",
        "rota_kv_merge_wait_seconds_bucket{ring=\"2\",le=\"+Inf\"} 2\n",
        "rota_kv_merge_wait_seconds_count{ring=\"2\"} 2\n",
        "rota_kv_subscriptions_pending 1\n",
        "rota_kv_subscription_wishes 3\n",
        "rota_kv_rings_on_standby 1\n",
        "rota_kv_unreadable_notices_total 5\n",
        "rota_kv_ring_pins{ring=\"1\"} 1\n",
        "rota_kv_ring_counter{ring=\"2\",name=\"ring_skips\"} 3\n",
    ] {
        assert!(out.text().contains(line), "{line}: {}", out.text());
    }
}
