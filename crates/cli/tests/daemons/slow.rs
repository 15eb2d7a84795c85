//! Clients that read more slowly than there is something for them: warned first, then made to skip or
//! disconnected, and nobody else waits.

use std::io::Write;
use std::time::Instant;

use rota_client::protocol::{Hello, Inbox, MAX_REPLY_BYTES, Reply, Request};
use rota_client::{Cause, Client, ClientName, Event, SlowPolicy};

use crate::bad_clients::{Others, connect, frame, group, reply, status};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, end_of, meet, member, next, next_view};

const LIMIT: u64 = 1_000_000;

fn settings(more: &str) -> String {
    format!("message_bytes = 100000\nclient_queue_bytes = {LIMIT}\n{more}")
}

fn counter(cluster: &Cluster, id: u16, name: &str) -> u64 {
    let status = status(cluster, id);
    status["counters"][name].as_u64().expect("a counter")
}

/// Others send messages until daemon 1 has counted so many of these.
fn until(cluster: &Cluster, others: &mut Others, name: &str, count: u64) {
    let late = Instant::now() + PATIENCE;
    while counter(cluster, 1, name) < count {
        assert!(Instant::now() < late, "{name} does not come to {count}");
        others.go_on(20);
    }
}

/// What the socket takes at once does not wait for anybody.
#[test]
fn an_answer_that_is_longer_than_the_queue_arrives() {
    const GROUPS: usize = 1000;
    let cluster = Cluster::start(1, "message_bytes = 1000\nclient_queue_bytes = 8000");
    let mut curious = client(&cluster, 1, "curious");
    for at in 0..GROUPS {
        let join = curious.join(&format!("some-group-{at}"));
        join.expect("it joins");
    }
    let groups = curious.groups().expect("an answer");
    assert_eq!(groups.len(), GROUPS);
    assert_eq!(counter(&cluster, 1, "clients_lagging"), 0);
}

#[test]
fn one_that_falls_behind_is_warned_once_until_it_has_caught_up() {
    let cluster = Cluster::start(2, &settings(""));
    let mut others = Others::new(&cluster);
    let mut slow = client(&cluster, 1, "slow");
    slow.join("g").expect("it joins");
    let mut expected = 0;
    for stretch in 1..=2 {
        until(&cluster, &mut others, "clients_lagging", stretch);
        let before = others.said;
        let mut warnings = 0;
        while expected < before {
            match next(&mut slow) {
                Event::Lagging { waiting, limit } => {
                    warnings += 1;
                    assert_eq!(limit, LIMIT);
                    assert!(waiting > LIMIT / 2 && waiting <= LIMIT, "{waiting}");
                    assert!(expected < before, "it comes before what waits");
                }
                Event::Message(message) => {
                    let text = String::from_utf8_lossy(&message.payload);
                    assert_eq!(text.trim_end(), expected.to_string());
                    expected += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(warnings, 1);
        // Once more, so that the daemon has seen that nothing waits.
        others.go_on(1);
        let message = next(&mut slow);
        assert!(matches!(message, Event::Message(_)), "{message:?}");
        expected += 1;
    }
    assert_eq!(counter(&cluster, 1, "clients_slow"), 0);
}

/// What a client has got: the numbers of messages before it was told that it has missed some, how many
/// these are, and the numbers of those behind.
fn read_skip(slow: &mut Client, last: usize) -> (Vec<usize>, u64, Vec<usize>) {
    let (mut before, mut missed, mut behind) = (Vec::new(), None, Vec::new());
    let mut views = 0;
    while behind.last() != Some(&last) {
        match next(slow) {
            Event::Message(message) => {
                let text = String::from_utf8_lossy(&message.payload);
                let number = text.trim_end().parse().expect("a number");
                let list = if missed.is_some() {
                    &mut behind
                } else {
                    &mut before
                };
                list.push(number);
            }
            Event::Skipped {
                messages,
                bytes,
                groups,
            } => {
                assert_eq!(missed, None, "it skips once");
                assert_eq!(groups, [group("g")]);
                assert!(bytes >= messages * 1000, "{bytes} of {messages}");
                missed = Some(messages);
            }
            Event::View(view) => {
                assert!(missed.is_some() && behind.is_empty(), "{view:?}");
                assert_eq!(view.cause, Cause::Join(slow.name()));
                views += 1;
            }
            Event::Lagging { .. } => assert_eq!(missed, None),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(views, 1);
    (before, missed.expect("it has skipped"), behind)
}

#[test]
fn one_that_is_made_to_skip_knows_what_it_has_missed_and_others_see_it_go_and_come_back() {
    let cluster = Cluster::start(2, &settings("slow_clients = \"skip\""));
    meet(&cluster, &[1, 2]);
    let mut watcher = member(&cluster, 2, "watcher");
    watcher.join("g").expect("it joins");
    next_view(&mut watcher);
    let mut slow = member(&cluster, 1, "slow");
    slow.join("g").expect("it joins");
    next_view(&mut slow);
    assert_eq!(next_view(&mut watcher).members.len(), 2);
    // Of the slow client's daemon: nothing of it comes between a disconnect and a join there.
    let mut ann = client(&cluster, 1, "ann");
    let mut said = 0;
    let mut causes = Vec::new();
    let late = Instant::now() + PATIENCE;
    while counter(&cluster, 1, "clients_skipped") == 0 || causes.len() < 2 {
        assert!(Instant::now() < late, "it never skips");
        for at in said..said + 20 {
            let text = format!("{at} {:1000}", "");
            ann.send("g", text.as_bytes()).expect("sent");
        }
        for at in said..said + 20 {
            loop {
                match next(&mut watcher) {
                    Event::Message(message) => {
                        let text = String::from_utf8_lossy(&message.payload);
                        assert_eq!(text.trim_end(), at.to_string());
                        break;
                    }
                    Event::View(view) => causes.push((view.cause, view.members.len())),
                    other => panic!("{other:?}"),
                }
            }
        }
        said += 20;
    }
    let name = slow.name();
    assert_eq!(
        causes,
        [(Cause::Disconnect(name), 1), (Cause::Join(name), 2)]
    );
    let (before, missed, behind) = read_skip(&mut slow, said - 1);
    assert!(missed > 0);
    assert_eq!(before, (0..before.len()).collect::<Vec<_>>());
    let first = before.len() + missed as usize;
    assert_eq!(behind, (first..said).collect::<Vec<_>>());
    // It goes on as before: the same name, the same groups, its own requests.
    slow.send("g", b"back").expect("sent");
    assert_eq!(next_text_of(&mut watcher), "back");
    slow.leave("g").expect("it leaves");
    assert_eq!(counter(&cluster, 1, "clients_slow"), 0);
    assert_eq!(counter(&cluster, 1, "clients_lagging"), 1);
}

fn next_text_of(client: &mut Client) -> String {
    match next(client) {
        Event::Message(message) => String::from_utf8_lossy(&message.payload).into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_would_rather_be_disconnected_or_knows_no_better_is() {
    let cluster = Cluster::start(2, &settings("slow_clients = \"skip\""));
    let mut others = Others::new(&cluster);
    let strict = builder("strict").when_slow(SlowPolicy::Disconnect);
    let mut strict = strict.connect(cluster.socket(1)).expect("it is let in");
    strict.join("g").expect("it joins");
    // A client of version 1, which has no word for it.
    let mut old = connect(&cluster.socket(1));
    let name = Some(ClientName::new("old").expect("a name"));
    let hello = Hello {
        lowest: 1,
        highest: 1,
        ..Hello::new(name, false)
    };
    let join = Request::Join {
        request: 1,
        group: group("g"),
    };
    old.write_all(&frame(&Request::Hello(hello))).expect("sent");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    match reply(&mut old, &mut inbox) {
        Reply::Welcome(welcome) => assert_eq!(welcome.version, 1),
        other => panic!("{other:?}"),
    }
    old.write_all(&frame(&join)).expect("sent");
    assert_eq!(reply(&mut old, &mut inbox), Reply::Done { request: 1 });
    until(&cluster, &mut others, "clients_slow", 2);
    end_of(&mut strict);
    assert_eq!(counter(&cluster, 1, "clients_skipped"), 0);
    others.go_on(20);
}

#[test]
fn one_that_asks_to_skip_where_that_is_not_allowed_is_disconnected() {
    let cluster = Cluster::start(2, &settings(""));
    let mut others = Others::new(&cluster);
    let hopeful = builder("hopeful").when_slow(SlowPolicy::Skip);
    let mut hopeful = hopeful.connect(cluster.socket(1)).expect("it is let in");
    hopeful.join("g").expect("it joins");
    until(&cluster, &mut others, "clients_slow", 1);
    end_of(&mut hopeful);
    assert_eq!(counter(&cluster, 1, "clients_skipped"), 0);
}
