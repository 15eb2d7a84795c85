//! Clients that read too slowly and are waited for: those who send to their groups are slowed down, at all
//! daemons, and nobody for longer than it is said.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rota_client::{Client, Event, SlowPolicy};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bad_clients::{Others, status};
use crate::both_protocols::spread;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, end_of, meet, next, next_text};

/// One of Spread's clients that reads nothing until it is told to, and then so many messages.
const SPREAD_SLOW: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

slow = Client(sys.argv[2], b"slow", membership=False)
slow.socket.settimeout(120)
slow.send(JOIN, [b"g"])
print("joins", flush=True)
count = int(sys.stdin.readline())
for at in range(count):
    got = slow.receive()
    assert got.data[:10] == b"%010d" % at, (got.data[:10], at)
print("all", flush=True)
"##;

/// And one that sends so many.
const SPREAD_SENDER: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

ann = Client(sys.argv[2], b"ann")
ann.socket.settimeout(120)
for at in range(20000):
    ann.send(AGREED, [b"g"], b"%010d" % at + bytes(1000))
ann.send(KILL, [ann.own])
assert ann.closed()
print("sent", flush=True)
"##;

const LIMIT: usize = 8_000_000;

/// Nothing that is to go on waits so long, and what is to wait does for so long.
const LONG_MS: u64 = 60_000;

fn settings(more: &str) -> String {
    format!(
        "message_bytes = 1000000\nclient_queue_bytes = {LIMIT}\nslow_clients = \"throttle\"\n{more}"
    )
}

fn patient() -> String {
    settings(&format!("throttle_ms = {LONG_MS}"))
}

fn counter(cluster: &Cluster, id: u16, name: &str) -> u64 {
    let status = status(cluster, id);
    status["counters"][name].as_u64().expect("a counter")
}

/// What a daemon says of one of its clients.
fn of(cluster: &Cluster, id: u16, name: &str) -> Value {
    let status = status(cluster, id);
    let clients = status["clients"].as_array().expect("a list");
    let mut clients = clients.iter();
    let found = clients.find(|client| client["name"] == name);
    found.cloned().unwrap_or_default()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < late, "never: {what}");
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A message says its number, and is so long.
fn text_of(number: usize, bytes: usize) -> String {
    format!("{number}{}", " ".repeat(bytes))
}

fn number_in(text: &str) -> usize {
    text.trim_end().parse().expect("a number")
}

/// Sends numbered messages to a group, as fast as its daemon takes them.
struct Sender {
    sent: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Client>,
}

impl Sender {
    /// So many messages of so many bytes, or fewer if it is told that it is enough.
    fn start(mut client: Client, group: &'static str, most: usize, bytes: usize) -> Self {
        let (sent, enough) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counts, stops) = (Arc::clone(&sent), Arc::clone(&enough));
        let thread = thread::spawn(move || {
            while counts.load(Ordering::SeqCst) < most && !stops.load(Ordering::SeqCst) {
                let text = text_of(counts.load(Ordering::SeqCst), bytes);
                client.send(group, text.as_bytes()).expect("sent");
                counts.fetch_add(1, Ordering::SeqCst);
            }
            client
        });
        Self {
            sent,
            enough,
            thread,
        }
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    /// How many it has sent in all.
    fn finish(self) -> usize {
        self.enough.store(true, Ordering::SeqCst);
        let client = self.thread.join().expect("it has not failed");
        client.close().expect("its daemon has read all");
        self.sent.load(Ordering::SeqCst)
    }
}

/// Reads until the message of this number, in a thread: all numbers from 0 on, each once.
fn read_all(
    mut client: Client,
    last: impl Fn() -> Option<usize> + Send + 'static,
) -> JoinHandle<Client> {
    thread::spawn(move || {
        let mut expected = 0;
        while last() != Some(expected) {
            let event = client.recv_timeout(std::time::Duration::from_millis(50));
            match event.expect("it is connected") {
                None | Some(Event::Lagging { .. }) => {}
                Some(Event::Message(message)) => {
                    let text = String::from_utf8_lossy(&message.payload);
                    assert_eq!(number_in(&text), expected);
                    expected += 1;
                }
                Some(other) => panic!("{other:?}"),
            }
        }
        client
    })
}

fn slow_one(cluster: &Cluster, group: &str) -> Client {
    let mut slow = client(cluster, 1, "slow");
    slow.join(group).expect("it joins");
    slow
}

/// A client of daemon 2 sends, and waits for the slow one of daemon 1.
fn until_it_waits(cluster: &Cluster, ann: &Sender) {
    wait_until("the sender waits", || {
        of(cluster, 2, "#ann#n2")["held_for"] == "#slow#n1"
    });
    let sent = ann.sent();
    // What is under way arrives; it sends nothing more, but for its credit.
    thread::sleep(std::time::Duration::from_millis(300));
    assert!(ann.sent() <= sent + (256 << 10) / 1000, "{sent}");
}

/// All that a slow reader is sent reaches it, in order; a fast one gets the same as it comes. Meanwhile less than
/// the limit waits for the slow one at any time, and others send elsewhere.
fn all_arrives(bytes: usize, count: usize) {
    let cluster = Cluster::start(2, &patient());
    meet(&cluster, &[1, 2]);
    let mut slow = slow_one(&cluster, "g");
    let mut fast = client(&cluster, 2, "fast");
    fast.join("g").expect("it joins");
    let fast = read_all(fast, move || Some(count));
    let ann = Sender::start(client(&cluster, 2, "ann"), "g", count, bytes);
    wait_until("the sender waits", || {
        of(&cluster, 2, "#ann#n2")["held_for"] == "#slow#n1"
    });
    assert!(ann.sent() < count);
    let one = of(&cluster, 1, "#slow#n1");
    assert_eq!(one["throttles"], serde_json::json!(["g"]), "{one}");
    for id in [1, 2] {
        let holds = &status(&cluster, id)["holds"];
        assert_eq!(
            *holds,
            serde_json::json!([{ "to": "g", "client": "#slow#n1" }])
        );
    }
    go_on_elsewhere(&cluster, 2);
    assert_eq!(of(&cluster, 2, "#ann#n2")["held_for"], "#slow#n1");
    let mut warnings = 0;
    for expected in 0..count {
        if expected % (count / 20) == 0 {
            let waits = of(&cluster, 1, "#slow#n1")["waiting_bytes"].clone();
            assert!(waits.as_u64().expect("a number") <= LIMIT as u64, "{waits}");
        }
        let message = loop {
            match next(&mut slow) {
                Event::Message(message) => break message,
                Event::Lagging { .. } => warnings += 1,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            number_in(&String::from_utf8_lossy(&message.payload)),
            expected
        );
    }
    assert!(warnings > 0, "it is warned first");
    assert_eq!(ann.finish(), count);
    fast.join().expect("it gets everything");
    wait_until("nothing is held", || {
        [1, 2]
            .iter()
            .all(|id| status(&cluster, *id)["holds"] == serde_json::json!([]))
    });
    assert!(counter(&cluster, 1, "clients_throttling") > 0);
    assert!(counter(&cluster, 1, "clients_throttling_us") > 0);
    assert!(counter(&cluster, 2, "messages_held") > 0);
    assert!(counter(&cluster, 2, "messages_held_us") > 0);
    for name in ["clients_slow", "clients_skipped", "clients_throttled_long"] {
        assert_eq!(counter(&cluster, 1, name), 0, "{name}");
    }
}

/// Clients of both daemons, in another group, while one is held.
fn go_on_elsewhere(cluster: &Cluster, members: usize) {
    let mut dan = client(cluster, 1, "dan");
    dan.join("h").expect("it joins");
    let mut cat = client(cluster, 2, "cat");
    for at in 0..100 {
        cat.send("h", text_of(at, 1000).as_bytes()).expect("sent");
        assert_eq!(number_in(&next_text(&mut dan)), at);
    }
    // They may also join and leave what is held.
    cat.join("g").expect("it joins");
    cat.leave("g").expect("it leaves");
    assert_eq!(cat.members("g").expect("a list").len(), members);
    cat.close().expect("its daemon closes");
}

#[test]
fn one_that_is_waited_for_gets_all_and_the_sender_is_slowed() {
    all_arrives(1_000, 40_000);
}

#[test]
fn messages_that_go_in_parts_wait_whole() {
    all_arrives(900_000, 40);
}

#[test]
fn those_who_have_waited_long_enough_go_on_and_the_slow_one_is_disconnected() {
    let cluster = Cluster::start(2, &settings("throttle_ms = 400"));
    let mut others = Others::new(&cluster);
    let mut slow = slow_one(&cluster, "g");
    let late = Instant::now() + PATIENCE;
    while counter(&cluster, 1, "clients_slow") == 0 {
        assert!(Instant::now() < late, "it is never disconnected");
        others.go_on(100);
    }
    assert_eq!(counter(&cluster, 1, "clients_throttling"), 1);
    assert_eq!(counter(&cluster, 1, "clients_throttled_long"), 1);
    assert_eq!(counter(&cluster, 2, "messages_held"), 1);
    assert!(others.said * 1000 < LIMIT, "before its queue was full");
    others.go_on(100);
    end_of(&mut slow);
    for line in [
        "senders wait for a client",
        "messages of clients wait for one",
    ] {
        wait_until(line, || cluster.said(line) > 0);
        assert_eq!(cluster.said(line), 1, "{line}");
    }
}

#[test]
fn or_it_is_made_to_skip_if_that_is_what_the_daemon_does_then() {
    let more = "throttle_ms = 400\nthrottle_then = \"skip\"";
    let cluster = Cluster::start(2, &settings(more));
    let mut others = Others::new(&cluster);
    let mut slow = slow_one(&cluster, "g");
    let late = Instant::now() + PATIENCE;
    while counter(&cluster, 1, "clients_skipped") == 0 {
        assert!(Instant::now() < late, "it never skips");
        others.go_on(100);
    }
    assert_eq!(counter(&cluster, 1, "clients_throttled_long"), 1);
    others.go_on(1);
    let (mut before, mut missed) = (0, None);
    loop {
        match next(&mut slow) {
            Event::Message(message) => {
                let number = number_in(&String::from_utf8_lossy(&message.payload));
                assert_eq!(number, before + missed.unwrap_or(0));
                before += 1;
                if number + 1 == others.said {
                    break;
                }
            }
            Event::Skipped { messages, .. } => missed = Some(messages as usize),
            Event::Lagging { .. } => assert_eq!(missed, None),
            other => panic!("{other:?}"),
        }
    }
    assert!(missed.is_some());
    assert_eq!(counter(&cluster, 1, "clients_slow"), 0);
}

#[test]
fn nobody_waits_for_one_that_has_declined_or_where_the_daemon_does_not_do_so() {
    let cluster = Cluster::start(2, &settings(""));
    let mut others = Others::new(&cluster);
    let strict = builder("slow").when_slow(SlowPolicy::Disconnect);
    let mut strict = strict.connect(cluster.socket(1)).expect("it is let in");
    strict.join("g").expect("it joins");
    let until_slow = |cluster: &Cluster, others: &mut Others| {
        let late = Instant::now() + PATIENCE;
        while counter(cluster, 1, "clients_slow") == 0 {
            assert!(Instant::now() < late, "it is never disconnected");
            others.go_on(100);
        }
        assert_eq!(counter(cluster, 1, "clients_lagging"), 1);
        assert_eq!(counter(cluster, 1, "clients_throttling"), 0);
    };
    until_slow(&cluster, &mut others);
    end_of(&mut strict);
    let cluster = Cluster::start(2, "message_bytes = 100000\nclient_queue_bytes = 1000000");
    let mut others = Others::new(&cluster);
    let hopeful = builder("slow").when_slow(SlowPolicy::ThrottleThenSkip);
    let mut hopeful = hopeful.connect(cluster.socket(1)).expect("it is let in");
    hopeful.join("g").expect("it joins");
    until_slow(&cluster, &mut others);
    end_of(&mut hopeful);
}

#[test]
fn when_the_daemon_of_the_slow_one_is_killed_nobody_waits_any_more() {
    let mut cluster = Cluster::start(3, &patient());
    meet(&cluster, &[1, 2, 3]);
    let _slow = slow_one(&cluster, "g");
    let mut fast = client(&cluster, 3, "fast");
    fast.join("g").expect("it joins");
    let fast = read_all(fast, || Some(20_000));
    let ann = Sender::start(client(&cluster, 2, "ann"), "g", 20_000, 1_000);
    until_it_waits(&cluster, &ann);
    assert!(ann.sent() < 20_000);
    cluster.kill(1);
    fast.join().expect("it gets everything");
    assert_eq!(ann.finish(), 20_000);
    assert_eq!(status(&cluster, 2)["holds"], serde_json::json!([]));
    assert_eq!(counter(&cluster, 2, "groups_holds_expired"), 0);
}

fn signal(cluster: &Cluster, id: u16, signal: Signal) {
    let pid = Pid::from_raw(cluster.pid(id).cast_signed()).expect("a process");
    kill_process(pid, signal).expect("it runs");
}

/// The daemon of the slow client stands still until the others go on without it, and comes back.
#[test]
fn what_was_held_before_a_split_is_held_again_after_it() {
    let cluster = Cluster::start(3, &patient());
    meet(&cluster, &[1, 2, 3]);
    let mut slow = slow_one(&cluster, "g");
    let ann = Sender::start(client(&cluster, 2, "ann"), "g", usize::MAX, 1_000);
    until_it_waits(&cluster, &ann);
    let before = ann.sent();
    signal(&cluster, 1, Signal::STOP);
    wait_until("those who go on do not wait", || {
        ann.sent() > before + 5_000
    });
    assert_eq!(status(&cluster, 2)["holds"], serde_json::json!([]));
    signal(&cluster, 1, Signal::CONT);
    until_it_waits(&cluster, &ann);
    assert_eq!(
        of(&cluster, 1, "#slow#n1")["throttles"],
        serde_json::json!(["g"])
    );
    let reader = thread::spawn(move || {
        let (mut last, mut gaps) = (None, 0);
        while let Ok(event) = slow.recv_timeout(PATIENCE) {
            if let Some(Event::Message(message)) = event {
                let number = number_in(&String::from_utf8_lossy(&message.payload));
                let next = last.map_or(0, |last| last + 1);
                assert!(number >= next, "{number} after {last:?}");
                gaps += usize::from(number > next);
                last = Some(number);
            }
        }
        gaps
    });
    let waited = ann.sent();
    wait_until("the sender goes on", || ann.sent() > waited + 5_000);
    ann.finish();
    // What the others sent while they were apart is all that it has not got.
    let mut cluster = cluster;
    cluster.terminate(1);
    assert_eq!(reader.join().expect("in order"), 1);
}

/// Others wait for it, and it does not wait for itself.
#[test]
fn one_that_sends_to_its_own_group_and_reads_nothing_meanwhile_is_not_stuck() {
    let cluster = Cluster::start(2, &patient());
    meet(&cluster, &[1, 2]);
    let slow = builder("slow").unread_bytes(256 << 20);
    let mut slow = slow.connect(cluster.socket(1)).expect("it is let in");
    slow.join("g").expect("it joins");
    let ann = Sender::start(client(&cluster, 2, "ann"), "g", 20_000, 1_000);
    until_it_waits(&cluster, &ann);
    // It has credit for a fraction of these.
    for at in 0..2_000 {
        slow.send("g", text_of(at, 1_000).as_bytes()).expect("sent");
    }
    assert_eq!(counter(&cluster, 1, "messages_held"), 0);
    let (mut of_ann, mut of_itself) = (0, 0);
    while (of_ann, of_itself) != (20_000, 2_000) {
        match next(&mut slow) {
            Event::Message(message) => {
                let number = number_in(&String::from_utf8_lossy(&message.payload));
                let own = message.sender == slow.name();
                let expected = if own { &mut of_itself } else { &mut of_ann };
                assert_eq!(number, *expected);
                *expected += 1;
            }
            Event::Lagging { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ann.finish(), 20_000);
    assert_eq!(counter(&cluster, 1, "clients_slow"), 0);
}

/// Who waits for whom, in words.
#[test]
fn an_operator_is_told_who_slows_down_whom() {
    let cluster = Cluster::start(2, &patient());
    meet(&cluster, &[1, 2]);
    let slow = slow_one(&cluster, "g");
    let ann = Sender::start(client(&cluster, 2, "ann"), "g", usize::MAX, 1_000);
    until_it_waits(&cluster, &ann);
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["status", "--explain", "--config"])
        .arg(cluster.file_of(1))
        .output()
        .expect("the binary");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for said in [
        "client #slow#n1 of node 1 reads too slowly, and others are slowed down for it: who sends to g ",
        "1 clients of node 2 have a message that waits for #slow#n1, which reads too slowly",
    ] {
        assert!(text.contains(said), "{text}");
    }
    // With the slow one goes what is held for it.
    drop(slow);
    let sent = ann.sent();
    wait_until("the sender goes on", || ann.sent() > sent + 1_000);
    ann.finish();
}

/// Their protocol has no credit: it is their sockets that are full.
#[test]
fn spreads_clients_wait_and_are_waited_for() {
    let mut cluster = Cluster::with_spread(2, &patient(), "");
    meet(&cluster, &[1, 2]);
    let mut slow = spread(&cluster, 1, SPREAD_SLOW);
    wait_until("it has joined", || {
        let groups = &status(&cluster, 2)["groups"];
        groups.as_u64() == Some(1)
    });
    let ann = spread(&cluster, 2, SPREAD_SENDER);
    wait_until("the sender waits", || {
        of(&cluster, 2, "#ann#n2")["held_for"] == "#slow#n1"
    });
    assert_eq!(of(&cluster, 2, "#ann#n2")["protocol"], "spread");
    go_on_elsewhere(&cluster, 1);
    let mut tell = slow.stdin.take().expect("a pipe");
    tell.write_all(b"20000\n").expect("it reads");
    for client in [ann, slow] {
        let output = client.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    assert_eq!(counter(&cluster, 1, "clients_slow"), 0);
    cluster.terminate(1);
}
