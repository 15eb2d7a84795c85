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

fn order(command: Command, absent: &[u16]) -> Ask {
    Ask::Order(Order {
        ring: Rank(4),
        command,
        absent: absent.iter().copied().map(node).collect(),
    })
}

#[test]
fn what_an_operator_wants_is_read() {
    assert_eq!(ask(&[]), Ok(Ask::Show));
    let abandon = Command::Abandon(2);
    let replace = Command::Replace(2, [1, 3].map(node).into());
    for (line, command, absent) in [
        ("abandon 4 2", &abandon, &[][..]),
        ("ABANDON 4 2 absent 5", &abandon, &[5]),
        ("REPLACE 4 2 1,3", &replace, &[]),
        ("REPLACE 4 2 1,3 ABSENT 5,6", &replace, &[5, 6]),
    ] {
        let wanted = order(command.clone(), absent);
        assert_eq!(ask(&words(line)), Ok(wanted), "{line}");
    }
    for line in [
        "SHOW",
        "ABANDON 4",
        "ABANDON x 2",
        "ABANDON 70000 2",
        "ABANDON 4 -1",
        "ABANDON 4 2 5",
        "ABANDON 4 2 ABSENT",
        "ABANDON 4 2 ABSENT 0",
        "ABANDON 4 2 PRESENT 5",
        "REPLACE 4 2",
        "REPLACE 4 2 0",
        "REPLACE 4 2 1,,3",
        "REPLACE 4 2 1 3",
        "REPLACE 4 2 1 ABSENT 3 4",
    ] {
        assert!(ask(&words(line)).is_err(), "{line}");
    }
}

/// The replicas 1 to 4 of partition 7: those that are there, those that have not answered, and the rest.
fn presences(there: &[u16], silent: &[u16]) -> Presences {
    let presence = |of: u16| match () {
        () if there.contains(&of) => Presence::Here,
        () if silent.contains(&of) => Presence::Unknown("it is silent".to_owned()),
        () => Presence::Away,
    };
    (1..=4).map(|of| (node(of), presence(of))).collect()
}

/// Ring 1 keeps what partition 7 needs, whose replicas are these, and hears of these nodes.
fn keeping(replicas: &[u16], heard: &[u16]) -> RingsStatus {
    let nodes = |of: &[u16]| of.iter().copied().map(node).collect();
    let mut table = Table::default();
    let hold = Command::Hold(7, nodes(replicas), 0);
    table.apply((40, 1), hold).expect("an account");
    RingsStatus {
        rings: Vec::new(),
        point: None,
        founded: Vec::new(),
        pending: None,
        wishes: 0,
        standby: Vec::new(),
        unreadable_notices: 0,
        accounts: vec![(Rank(1), table)],
        heard: vec![(Rank(1), nodes(heard)), (Rank(2), [node(3)].into())],
        waits_for: Vec::new(),
        merge: Vec::new(),
        trace_lines_lost: 0,
    }
}

/// The reply to an order, and what was ordered.
fn say(line: &str, status: RingsStatus, presences: Presences) -> (Reply, Vec<Command>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().expect("a runtime");
    let ordered = std::cell::RefCell::new(Vec::new());
    let looks = (
        move || Some(status),
        move |of| match of {
            7 => presences,
            _ => Presences::new(),
        },
    );
    let give = |ring: Rank, command| match ring {
        Rank(1) => {
            ordered.borrow_mut().push(command);
            Ok(())
        }
        _ => Err("it is not on that ring"),
    };
    let asked = ask(&words(line)).expect("an order");
    let reply = runtime.block_on(answer(asked, looks, give));
    (reply, ordered.into_inner())
}

/// The reply begins with `REFUSED` and has these words, and nothing is ordered.
fn refused(line: &str, (status, presences): (RingsStatus, Presences), why: &str) {
    let (reply, ordered) = say(line, status, presences);
    let Reply::Error(said) = reply else {
        panic!("{line}: {reply:?}");
    };
    let is_so = said.starts_with("REFUSED ") && said.contains(why);
    assert!(is_so && ordered.is_empty(), "{line}: {said}");
}

/// The command is ordered.
fn taken(line: &str, (status, presences): (RingsStatus, Presences)) {
    let (reply, ordered) = say(line, status, presences);
    assert_eq!((reply, ordered.len()), (Reply::OK, 1), "{line}");
}

#[test]
fn an_order_that_would_do_harm_is_refused_in_words() {
    let with = |there: &[u16]| (keeping(&[1, 2, 3], &[]), presences(there, &[]));
    let nothing = "keeps nothing for partition 9";
    refused("ABANDON 1 9", with(&[]), &format!("ring 1 {nothing}"));
    refused("REPLACE 1 9 1,2", with(&[]), nothing);
    let there = "node 2 has a replica of partition 7, and is there";
    refused("ABANDON 1 7", with(&[2]), there);
    refused("REPLACE 1 7 1,3", with(&[1, 2]), there);
    // Who answers is there, whatever the operator says.
    refused("ABANDON 1 7 ABSENT 2", with(&[2]), there);
    let other = "node 5 has no replica of partition 7";
    refused("REPLACE 1 7 1,2,5", with(&[1, 2]), other);
    taken("ABANDON 1 7", with(&[]));
    taken("REPLACE 1 7 1,2", with(&[1, 2]));
    // One that has not begun yet.
    taken("REPLACE 1 7 1,2,4", with(&[1, 2]));
    // Only who is on a ring knows what is kept there.
    let (status, none) = with(&[]);
    let (reply, _) = say("ABANDON 2 7", status, none);
    assert_eq!(reply, Reply::error("ERR it is not on that ring"));
}

/// A replica that is cut off, or busy, lost what its ring kept for it: any error was an absence.
#[test]
fn a_replica_of_which_nobody_knows_is_there_unless_the_operator_says_that_it_is_not() {
    let with = |silent: &[u16]| (keeping(&[1, 2, 3], &[]), presences(&[1, 2], silent));
    let unknown =
        "nobody knows whether node 3 is there, which has a replica of partition 7 (it is silent)";
    refused("REPLACE 1 7 1,2", with(&[3]), unknown);
    let what_to_do = "say so with ABSENT 3 (--absent 3)";
    refused("REPLACE 1 7 1,2", with(&[3]), what_to_do);
    refused("REPLACE 1 7 1,2 ABSENT 4", with(&[3, 4]), unknown);
    taken("REPLACE 1 7 1,2 ABSENT 3", with(&[3]));
    taken("REPLACE 1 7 1,2 ABSENT 4,3", with(&[3, 4]));
    taken("REPLACE 1 7 1,2,3", with(&[3]));
    taken("REPLACE 1 7 1,2", with(&[]));
}

/// Nothing may listen at the address that this process knows, and the replica be at another one.
#[test]
fn a_replica_that_the_ring_hears_of_is_there() {
    let with = |heard: &[u16]| (keeping(&[1, 2, 3], heard), presences(&[1, 2], &[]));
    let there = "node 3 has a replica of partition 7, and is there";
    refused("REPLACE 1 7 1,2", with(&[2, 3]), there);
    refused("REPLACE 1 7 1,2 ABSENT 3", with(&[2, 3]), there);
    taken("REPLACE 1 7 1,2", with(&[2]));
}

/// The account is of a replica that is not in the file of this process any more.
#[test]
fn a_replica_that_is_not_in_the_file_is_not_let_go_unseen() {
    let with = || (keeping(&[1, 2, 6], &[]), presences(&[1, 2], &[]));
    let unknown = "nobody knows whether node 6 is there, which has a replica of partition 7 (the file of this process has no such replica)";
    refused("REPLACE 1 7 1,2,4", with(), unknown);
    taken("REPLACE 1 7 1,2,4 ABSENT 6", with());
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
    let seven = Constants {
        origin: 31,
        ..Constants::new(Rank(7))
    };
    let status = RingsStatus {
        rings: vec![(Rank(1), ring.clone()), (Rank(2), ring)],
        point: Some(Point {
            round: 100,
            turn: Rank(1),
            used: 0,
        }),
        founded: vec![
            (Rank(7), FoundedRing::Unopened(seven, "in use".to_owned())),
            (Rank(9), FoundedRing::Refused("ring 9: why".to_owned())),
        ],
        pending: None,
        wishes: 0,
        standby: Vec::new(),
        unreadable_notices: 0,
        accounts: vec![(Rank(1), table)],
        heard: Vec::new(),
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
        "# Ring 2",
        "state:operational",
        "needed_up_to_round:109",
        "ring_skips:3",
        "merge_waiting_bytes:77",
        "merge_wait_us:4",
        "account_7:needs=40,replicas=1/2",
        "pin_2:needs=45,until_ns=10",
        "# Founded 7\r\nstate:not open: in use\r\norigin:31",
        "# Founded 9\r\nstate:refused: ring 9: why",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    // A service has the rings of its file: changes of them would be shown as none, whatever is ordered.
    for never in ["subscription", "standby", "notices"] {
        assert!(!text.contains(never), "{never}: {text}");
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
        "rota_kv_ring_pins{ring=\"1\"} 1\n",
        "rota_kv_ring_counter{ring=\"2\",name=\"ring_skips\"} 3\n",
    ] {
        assert!(out.text().contains(line), "{line}: {}", out.text());
    }
}
