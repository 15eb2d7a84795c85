//! Large messages: in parts between the messages of others, whole or not at all.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::cluster::{Cluster, group};
use crate::contract::{Message, Service};
use crate::groups::{Destination, Limits, RequestError, Send};

const LARGE: usize = 2_000;

/// Two daemons in ring 9 that send at most 1000 bytes of a client at once, and parts of 100; g has a member on
/// each.
fn two() -> Cluster {
    let limits = Limits {
        backlog_bytes: 1_000,
        payload_bytes: LARGE,
        piece_bytes: 100,
        ..Limits::default()
    };
    let mut cluster = Cluster::limited(2, limits);
    cluster.join(1, "a", "g");
    cluster.join(2, "b", "g");
    cluster.exchange(&[1, 2]);
    cluster.hush();
    cluster
}

fn text(letter: &str) -> String {
    letter.repeat(LARGE)
}

/// So many of the next messages of a daemon.
fn some(cluster: &mut Cluster, at: usize, count: usize) -> Vec<Message> {
    (0..count).map_while(|_| cluster.submitted(at)).collect()
}

fn unfinished(cluster: &mut Cluster, at: usize) -> usize {
    cluster.daemon(at).unfinished_bytes()
}

#[test]
fn it_has_its_place_where_its_last_part_has() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let mut parts = 0;
    while let Some(part) = cluster.submitted(1) {
        assert!(part.payload.len() <= 100 + 28);
        parts += 1;
        assert_eq!(cluster.told(1), Vec::<String>::new());
        cluster.deliver(&[1, 2], &part);
        if parts == 7 {
            cluster.send(2, "b", "g", "between");
            let between = cluster.submitted(2).expect("a message");
            cluster.deliver(&[1, 2], &between);
            assert_eq!(cluster.told(1), ["a: between"]);
        }
        if parts < 21 {
            assert_eq!(unfinished(&mut cluster, 2), parts * 100);
        }
    }
    assert_eq!(parts, 21, "with the destinations and all that");
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(1), [String::from("a: ") + &text("x")]);
    assert_eq!(
        cluster.told(2),
        ["b: between", &(String::from("b: ") + &text("x"))]
    );
    assert_eq!(unfinished(&mut cluster, 1) + unfinished(&mut cluster, 2), 0);
    assert_eq!(cluster.daemon(2).counters().malformed, 0);
}

#[test]
fn others_of_the_daemon_send_as_much_as_each_part_between_two_of_them() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    for client in ["c", "d"] {
        for _ in 0..6 {
            cluster.send(1, client, "g", "small");
        }
    }
    // Two clients, so two parts' worth of bytes; a request has some forty beside its text.
    let sizes: Vec<usize> = some(&mut cluster, 1, 12)
        .iter()
        .map(|sent| sent.payload.len())
        .collect();
    let parts: Vec<usize> = (0..12).filter(|at| sizes[*at] == 128).collect();
    assert!(parts.len() >= 2 && parts[0] > 0, "{sizes:?}");
    for pair in parts.windows(2) {
        let between: usize = sizes[pair[0] + 1..pair[1]].iter().sum();
        assert!((200..260).contains(&between), "{sizes:?}");
    }
}

#[test]
fn only_so_many_parts_are_under_way() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    assert_eq!(some(&mut cluster, 1, 100).len(), 16);
    cluster.send(1, "c", "g", "small");
    assert_eq!(
        some(&mut cluster, 1, 100).len(),
        1,
        "it need not wait for them"
    );
}

#[test]
fn a_configuration_that_ends_between_two_parts_leaves_none_of_it_and_it_is_sent_again() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let parts = some(&mut cluster, 1, 16);
    for part in &parts[..10] {
        cluster.deliver(&[1, 2], part);
    }
    cluster.transitional(&[1, 2], 9, 10);
    cluster.deliver(&[1, 2], &parts[10]);
    assert_eq!(unfinished(&mut cluster, 2), 1_100);
    cluster.regular(&[1, 2], 10);
    assert_eq!(unfinished(&mut cluster, 1) + unfinished(&mut cluster, 2), 0);
    for part in &parts[11..] {
        // Ordered too late.
        cluster.deliver(&[1, 2], part);
    }
    assert_eq!(unfinished(&mut cluster, 2), 0);
    cluster.hush();
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.told(2), [String::from("b: ") + &text("x")]);
    assert_eq!(cluster.told(1), [String::from("a: ") + &text("x")]);
}

#[test]
fn one_that_is_whole_behind_the_transitional_configuration_is_given_to_those_who_stay() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let mut parts = some(&mut cluster, 1, 16);
    for part in &parts {
        cluster.deliver(&[1, 2], part);
    }
    parts = some(&mut cluster, 1, 16);
    cluster.transitional(&[2], 9, 11);
    cluster.hush();
    for part in &parts {
        cluster.deliver(&[2], part);
    }
    assert_eq!(cluster.told(2), [String::from("b: ") + &text("x")]);
}

#[test]
fn nothing_is_kept_of_a_daemon_that_goes_between_two_parts() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    for part in some(&mut cluster, 1, 16) {
        cluster.deliver(&[1, 2], &part);
    }
    assert_eq!(unfinished(&mut cluster, 2), 1_600);
    cluster.transitional(&[2], 9, 11);
    cluster.regular(&[2], 11);
    assert_eq!(unfinished(&mut cluster, 2), 0);
    let told = cluster.told(2);
    assert!(told.iter().all(|told| !told.contains('x')), "{told:?}");
}

#[test]
fn what_its_client_asks_for_next_comes_behind_it() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    assert!(cluster.restart(1, "a"));
    let now = cluster.client(1, "a");
    cluster.daemon(1).leave(now, group("g")).expect("room");
    cluster.exchange(&[1, 2]);
    let told = cluster.told(2);
    let message = String::from("b: ") + &text("x");
    assert_eq!(
        told,
        [
            &message,
            "b: g@9/3 2b ~1a",
            "b: g@9/4 1a 2b +1a",
            "b: g@9/5 2b -1a"
        ]
    );

    cluster.send(2, "b", "g", &text("y"));
    let gone = cluster.client(2, "b");
    cluster.daemon(2).disconnect(gone);
    cluster.join(1, "c", "g");
    cluster.hush();
    cluster.exchange(&[1, 2]);
    let message = String::from("c: ") + &text("y");
    assert_eq!(
        cluster.told(1),
        ["c: g@9/6 1c 2b +1c", &message, "c: g@9/7 1c ~2b"]
    );
}

#[test]
fn who_comes_back_under_a_name_comes_behind_the_end_of_who_had_it() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let gone = cluster.client(1, "a");
    cluster.daemon(1).disconnect(gone);
    cluster.forget(1, "a");
    cluster.join(1, "a", "g");
    cluster.exchange(&[1, 2]);
    let message = String::from("b: ") + &text("x");
    assert_eq!(
        cluster.told(2),
        [&message, "b: g@9/3 2b ~1a", "b: g@9/4 1a 2b +1a"]
    );
}

/// Client a of daemon 1 is not in a group, and what it has sent waits for others' requests.
fn a_waits() -> Cluster {
    let limits = Limits {
        window: 1,
        backlog_bytes: 1_000,
        payload_bytes: LARGE,
        piece_bytes: 100,
        ..Limits::default()
    };
    let mut cluster = Cluster::limited(2, limits);
    cluster.join(2, "b", "g");
    cluster.exchange(&[1, 2]);
    cluster.hush();
    cluster.send(1, "c", "g", "before");
    cluster.send(1, "a", "g", "first");
    cluster
}

/// What daemon 1 submits, part by part, and what b is told of it.
fn one_by_one(cluster: &mut Cluster) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(message) = cluster.submitted(1) {
        cluster.deliver(&[1, 2], &message);
        told.append(&mut cluster.told(2));
    }
    told
}

/// Whether so large a message of client a would be taken.
fn has_room(cluster: &mut Cluster, bytes: usize) -> bool {
    let client = cluster.client(1, "a");
    cluster.daemon(1).has_room(client, bytes) == Ok(true)
}

#[test]
fn it_overtakes_nothing_that_its_client_sent_before_it_was_made_to_skip() {
    let mut cluster = a_waits();
    assert!(cluster.restart(1, "a"));
    assert!(!has_room(&mut cluster, LARGE));
    assert!(has_room(&mut cluster, 10), "small ones keep their order");
    assert_eq!(one_by_one(&mut cluster), ["b: before", "b: first"]);
    assert!(has_room(&mut cluster, LARGE));
}

#[test]
fn it_overtakes_nothing_of_who_had_the_name_before() {
    let mut cluster = a_waits();
    let gone = cluster.client(1, "a");
    cluster.daemon(1).disconnect(gone);
    cluster.forget(1, "a");
    assert!(!has_room(&mut cluster, LARGE));
    let other = cluster.client(1, "d");
    assert_eq!(cluster.daemon(1).has_room(other, LARGE), Ok(true));
    assert_eq!(one_by_one(&mut cluster), ["b: before", "b: first"]);
    assert!(has_room(&mut cluster, LARGE));

    // Also where the one before was large, and something waits behind that.
    cluster.send(1, "a", "g", &text("x"));
    let gone = cluster.client(1, "a");
    cluster.daemon(1).disconnect(gone);
    cluster.forget(1, "a");
    assert!(!has_room(&mut cluster, LARGE));
    one_by_one(&mut cluster);
    assert!(has_room(&mut cluster, LARGE));
}

#[test]
fn it_is_among_the_requests_that_wait_with_those_behind_it() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let gone = cluster.client(1, "a");
    cluster.daemon(1).disconnect(gone);
    assert_eq!(cluster.daemon(1).waiting_requests(), 2);
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.daemon(1).waiting_requests(), 0);
}

#[test]
fn so_many_bytes_wait_for_all_clients_together() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let other = cluster.client(1, "c");
    let send = Send {
        big_endian: false,
        service: Service::Safe,
        self_discard: false,
        kind: 0,
        to: vec![Destination::Group(group("g"))],
        payload: Bytes::from(text("y")),
        number: None,
    };
    assert_eq!(cluster.daemon(1).has_room(other, LARGE), Ok(false));
    let full = cluster.daemon(1).send(other, send.clone());
    assert_eq!(full, Err(RequestError::Full));
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.daemon(1).send(other, send), Ok(()));
    let mut services = Vec::new();
    while let Some(part) = cluster.submitted(1) {
        services.push(part.service);
        cluster.deliver(&[1, 2], &part);
    }
    let last = services.pop();
    assert_eq!(
        last,
        Some(Service::Safe),
        "it is safe where it has its place"
    );
    assert!(services.iter().all(|service| *service == Service::Agreed));
}

#[test]
fn parts_that_do_not_follow_each_other_are_no_message_and_keep_no_memory() {
    let mut cluster = two();
    cluster.send(1, "a", "g", &text("x"));
    let parts = some(&mut cluster, 1, 16);
    cluster.deliver(&[2], &parts[1]);
    assert_eq!(cluster.daemon(2).counters().malformed, 1);
    cluster.deliver(&[2], &parts[0]);
    cluster.deliver(&[2], &parts[1]);
    assert_eq!(unfinished(&mut cluster, 2), 200);
    cluster.deliver(&[2], &parts[3]);
    assert_eq!(unfinished(&mut cluster, 2), 0);
    assert_eq!(cluster.daemon(2).counters().malformed, 2);
    // What says that it has more than a message can have, or ends behind its end.
    for (at, byte) in [(27, 0xff), (23, 0xff)] {
        let mut bytes = parts[0].payload.to_vec();
        bytes[at] = byte;
        let payload = Bytes::from(bytes);
        cluster.deliver(
            &[2],
            &Message {
                payload,
                ..parts[0].clone()
            },
        );
        assert_eq!(unfinished(&mut cluster, 2), 0);
    }
    assert_eq!(cluster.daemon(2).counters().malformed, 4);
}

#[test]
fn one_that_fits_only_alone_is_not_passed_for_ever() {
    let mut cluster = two();
    let half = String::from("y").repeat(1_000);
    for client in ["c", "d"] {
        cluster.send(1, client, "g", &half[..960]);
    }
    let [a, c, d] = ["a", "c", "d"].map(|name| cluster.client(1, name));
    assert_eq!(cluster.daemon(1).has_room(a, LARGE), Ok(false));
    // Each of the others wants to send the next as soon as its last one has its place.
    let mut wants = vec![(c, "c"), (d, "d")];
    let mut sent = 0;
    while cluster.daemon(1).has_room(a, LARGE) == Ok(false) {
        assert!(sent < 10, "it is passed again and again");
        let part = cluster.submitted(1).expect("something is on its way");
        cluster.deliver(&[1, 2], &part);
        for (connection, name) in &wants {
            if cluster.daemon(1).has_room(*connection, 960) == Ok(true) {
                cluster.send(1, name, "g", &half[..960]);
                sent += 1;
            }
        }
    }
    cluster.send(1, "a", "g", &text("x"));
    // It has had its turn: the others have theirs.
    wants.truncate(1);
    cluster.exchange(&[1, 2]);
    assert_eq!(cluster.daemon(1).has_room(wants[0].0, 960), Ok(true));
}

#[test]
fn one_that_waits_for_its_turn_and_goes_keeps_nobody_waiting() {
    let mut cluster = two();
    cluster.send(1, "c", "g", &text("y")[..1_900]);
    let [a, d] = ["a", "d"].map(|name| cluster.client(1, name));
    assert_eq!(cluster.daemon(1).has_room(a, LARGE), Ok(false));
    assert_eq!(cluster.daemon(1).has_room(d, 970), Ok(false));
    // It skips: the turn is its own under the new connection.
    assert!(cluster.restart(1, "a"));
    let next = cluster.client(1, "a");
    cluster.exchange(&[1, 2]);
    assert_eq!(
        cluster.daemon(1).has_room(d, 970),
        Ok(false),
        "it is a's turn"
    );
    cluster.daemon(1).disconnect(next);
    assert_eq!(cluster.daemon(1).has_room(d, 970), Ok(true));
}
