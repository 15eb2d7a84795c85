//! Watchers of real processes: what they are told, where they go on, and what they are refused.

#[path = "common/cluster.rs"]
mod cluster;
mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use cluster::{Cluster, node};
use common::{Client, PATIENCE, tcp};

/// The changes at each place, as words.
type Places = Vec<(String, Vec<Vec<String>>)>;

fn words(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Integer(number) => number.to_string(),
        Reply::Null => "(large)".to_owned(),
        Reply::Array(all) => all.iter().map(words).collect::<Vec<_>>().join("="),
        other => panic!("{other:?}"),
    }
}

fn list(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(all) => all,
        other => panic!("{other:?}"),
    }
}

/// The partition, the place to go on from, and the changes.
fn told(reply: &Reply) -> (String, String, Places) {
    let [of, next, places] = list(reply) else {
        panic!("{reply:?}");
    };
    let place = |place: &Reply| {
        let [at, changes] = list(place) else {
            panic!("{place:?}");
        };
        let change = |change: &Reply| list(change).iter().map(words).collect();
        (words(at), list(changes).iter().map(change).collect())
    };
    let places = list(places).iter().map(place).collect();
    (words(of), words(next), places)
}

/// The place of now, at a process that has caught up.
fn now(client: &mut Client, prefix: &str) -> String {
    let (_, next, places) = told(&client.insist(&format!("ROTA.CHANGES {prefix} FROM $")));
    assert!(places.is_empty(), "{places:?}");
    next
}

/// All changes behind a place, without their places.
fn all(client: &mut Client, prefix: &str, from: &str) -> Vec<Vec<String>> {
    let (mut from, mut all) = (from.to_owned(), Vec::new());
    loop {
        let reply = client.insist(&format!("ROTA.CHANGES {prefix} FROM {from} COUNT 3"));
        let (_, next, places) = told(&reply);
        if places.is_empty() {
            return all;
        }
        all.extend(places.into_iter().flat_map(|(_, changes)| changes));
        from = next;
    }
}

fn error(reply: &Reply) -> &str {
    match reply {
        Reply::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

/// The value of a line of the metrics of a process.
fn metric(cluster: &Cluster, number: u16, name: &str) -> u64 {
    use std::io::{Read as _, Write as _};
    let process = cluster.config.process(node(number)).expect("a process");
    let address = ([127, 0, 0, 1], process.metrics_port.expect("a port"));
    let mut stream = tcp(address.into());
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is heard");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.and_then(|value| value.parse().ok()).expect(name)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_watcher_is_told_what_changes_at_any_replica() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((1, 3), 31_000, directory.path());
    let mut clients = [1, 2, 3].map(|number| cluster.client(number));
    for client in &mut clients {
        client.insist("SET ready 1");
    }
    let from = now(&mut clients[0], "k:");
    let large = "x".repeat(20_000);
    for line in [
        "SET k:1 one",
        "SET other 1",
        "APPEND k:1 !",
        &format!("SET k:large {large}"),
        "HSET k:h f 1 g 2",
        "MSET k:2 two other 2 k:3 three",
        "SET k:2 same",
        "EXPIRE k:2 1000",
        "DEL k:1 k:none",
        "HDEL k:h f g",
        "SETEX k:3 4 soon",
    ] {
        clients[1].insist(line);
    }
    let mut expected: Vec<Vec<String>> = [
        "set k:1 one",
        "set k:1 one!",
        "set k:large (large)",
        "set k:h f=1=g=2",
        "set k:2 two",
        "set k:3 three",
        "set k:2 same",
        "set k:2 same",
        "deleted k:1",
        "deleted k:h",
        "set k:3 soon",
    ]
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .into();
    for client in &mut clients {
        assert_eq!(all(client, "k:", &from), expected);
    }
    // Nobody asks for it, and it ends all the same.
    let mut place = now(&mut clients[2], "k:");
    let reply = clients[2].insist(&format!("ROTA.CHANGES k: FROM {place} BLOCK 20000"));
    let (_, next, ended) = told(&reply);
    assert_eq!(ended[0].1, [["expired", "k:3"]]);
    expected.push(vec!["expired".to_owned(), "k:3".to_owned()]);
    place = next;
    assert_eq!(clients[0].insist("FLUSHALL"), Reply::OK);
    expected.push(vec!["cleared".to_owned()]);
    for client in &mut clients {
        assert_eq!(all(client, "k:", &from), expected);
        assert_eq!(all(client, "k:", &place), [["cleared"]]);
        assert_eq!(all(client, "none", &place), [["cleared"]]);
    }
    // A transaction is at one place, and is not cut in two.
    let from = now(&mut clients[0], "t");
    for line in [
        "MULTI", "SET t1 1", "SET u 1", "SET t2 2", "SET t3 3", "EXEC", "SET t4 4",
    ] {
        clients[0].say(line);
    }
    let reply = clients[1].insist(&format!("ROTA.CHANGES t FROM {from} COUNT 1"));
    let (of, next, places) = told(&reply);
    assert_eq!((&of[..], places.len(), places[0].1.len()), ("1", 1, 3));
    assert_eq!(places[0].0, next, "all of it was told");
    assert_eq!(all(&mut clients[2], "t", &next), [["set", "t4", "4"]]);
    // Time goes by, and nothing comes.
    let asked = Instant::now();
    let reply = clients[1].insist(&format!("ROTA.CHANGES none FROM {next} BLOCK 300"));
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let (_, later, places) = told(&reply);
    assert!(
        places.is_empty() && later != next,
        "t4 has changed meanwhile"
    );
    // RESP3 has maps.
    clients[0].say("HELLO 3");
    let from = now(&mut clients[0], "h");
    clients[0].insist("HSET h f 1");
    let reply = format!(
        "{:?}",
        clients[0].say(&format!("ROTA.CHANGES h FROM {from}"))
    );
    assert!(
        reply.contains("Map([(Bulk(b\"f\"), Bulk(b\"1\"))])"),
        "{reply}"
    );
}

#[test]
fn what_is_wrong_is_said_and_harms_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((1, 1), 31_100, directory.path());
    let mut client = cluster.client(1);
    client.insist("SET ready 1");
    let long = "x".repeat(257);
    for line in [
        "ROTA.CHANGES",
        "ROTA.CHANGES k",
        "ROTA.CHANGES k FROM",
        "ROTA.CHANGES k COUNT 1",
        "ROTA.CHANGES k FROM $ FROM $",
        "ROTA.CHANGES k FROM 1.2.3",
        "ROTA.CHANGES k FROM -1.2.3.4",
        "ROTA.CHANGES k FROM 1.2.3.99999999999",
        "ROTA.CHANGES k FROM $ COUNT 0",
        "ROTA.CHANGES k FROM $ COUNT -1",
        "ROTA.CHANGES k FROM $ COUNT x",
        "ROTA.CHANGES k FROM $ COUNT",
        "ROTA.CHANGES k FROM $ BLOCK -1",
        "ROTA.CHANGES k FROM $ BLOCK 99999999999999999999",
        "ROTA.CHANGES k FROM $ PARTITION 2",
        "ROTA.CHANGES k FROM $ PARTITION 0",
        "ROTA.CHANGES k FROM $ NOTHING 1",
        &format!("ROTA.CHANGES {long} FROM $"),
    ] {
        let reply = client.say(line);
        assert!(error(&reply).starts_with("ERR "), "{line}: {reply:?}");
    }
    // A prefix of any bytes, and of none.
    client.send(&[
        "ROTA.CHANGES",
        "",
        "FROM",
        "0",
        "COUNT",
        "9223372036854775807",
    ]);
    let (_, next, places) = told(&client.hear());
    assert_eq!(places[0].1, [["set", "ready", "1"]]);
    assert_eq!(next, now(&mut client, "\r\n\0*"));
    // A place that is still to come.
    let far = "18446744073709551615.65535.18446744073709551615.4294967295";
    let reply = client.say(&format!("ROTA.CHANGES ready FROM {far} COUNT 1"));
    assert_eq!(told(&reply), ("1".to_owned(), far.to_owned(), Vec::new()));
    let refused = client.say("MULTI");
    assert_eq!(refused, Reply::OK);
    let reply = client.say(&format!("ROTA.CHANGES k FROM {next} BLOCK 0"));
    assert_eq!(
        error(&reply),
        "ERR Command not allowed inside a transaction"
    );
    assert!(error(&client.say("EXEC")).starts_with("EXECABORT"));
    // Many wait; those that it concerns are told, and the others cost nothing when they go.
    let wait = |number: usize| {
        let mut waits = cluster.client(1);
        let prefix = format!("p{}:", number % 8);
        waits.send(&["ROTA.CHANGES", &prefix, "FROM", &next, "BLOCK", "0"]);
        waits
    };
    let mut waiting: Vec<Client> = (0..400).map(wait).collect();
    let count = || metric(&cluster, 1, "rota_kv_watchers_waiting");
    until("all wait", || count() == 400);
    assert_eq!(client.say("SET p3:x 1"), Reply::OK);
    for waits in waiting.iter_mut().skip(3).step_by(8) {
        let (_, _, places) = told(&waits.hear());
        assert_eq!(places[0].1, [["set", "p3:x", "1"]]);
    }
    assert_eq!(count(), 350);
    drop(waiting);
    until("all are gone", || count() == 0);
    assert!(metric(&cluster, 1, "rota_kv_changes_told_total") >= 51);
    assert!(metric(&cluster, 1, "rota_kv_changes_bytes") > 0);
    // A pipeline behind a watch waits for it.
    client.send(&["ROTA.CHANGES", "p", "FROM", "$", "BLOCK", "200"]);
    client.send(&["PING"]);
    assert!(told(&client.hear()).2.is_empty());
    assert_eq!(client.hear(), Reply::Simple("PONG"));
}

#[test]
fn a_watcher_below_what_is_kept_is_told_where_to_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with_short_memory((1, 3), 31_200, directory.path());
    let mut client = cluster.client(1);
    client.insist("SET k 0");
    let begin = now(&mut client, "k");
    cluster.end(3);
    // Until the others have states, and the rings have forgotten what came before.
    let forgotten = Instant::now() + Duration::from_secs(15);
    while Instant::now() < forgotten {
        client.insist("INCR k");
        thread::sleep(Duration::from_millis(10));
    }
    // The others were there all the time.
    let reply = client.insist(&format!("ROTA.CHANGES k FROM {begin} COUNT 1"));
    assert_eq!(told(&reply).2[0].1, [["set", "k", "1"]]);
    cluster.begin(3);
    let mut other = cluster.client(3);
    let mut refused = String::new();
    until("it has not caught up", || {
        refused = error(&other.say(&format!("ROTA.CHANGES k FROM {begin}"))).to_owned();
        !refused.starts_with("TRYAGAIN ")
    });
    let text = &refused[..];
    assert!(
        text.starts_with("TRIMMED "),
        "{text}: did it begin with a state?"
    );
    let first = text.split(' ').nth(1).expect("a place");
    assert_eq!(metric(&cluster, 3, "rota_kv_changes_trimmed_total"), 1);
    // From there on nothing is left out: the keys, and then what follows.
    client.insist("INCR k");
    let last = |reply: Reply| words(&reply).parse::<i64>().expect("a number");
    let value = last(client.insist("GET k"));
    let changes = all(&mut other, "k", first);
    let values: Vec<i64> = changes
        .iter()
        .map(|of| of[2].parse().expect("a number"))
        .collect();
    let count = values.len() as i64;
    assert_eq!(values, (value - count + 1..=value).collect::<Vec<_>>());
    assert!(count > 0, "{changes:?}");
}

#[test]
fn slots_that_move_are_told_and_their_watchers_are_sent_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 1), 31_300, directory.path());
    let mut clients = [1, 2].map(|number| cluster.client(number));
    for client in &mut clients {
        client.insist("SET ready 1");
    }
    let slot = rota_resp::slot::of(b"bar");
    assert!(slot < 8_192, "it is of the first");
    let port = |number| {
        let process = cluster.config.process(node(number)).expect("a process");
        process.cluster_port.expect("a port")
    };
    let moved = format!("MOVED {slot} 127.0.0.1:{}", port(2));
    let to_first = format!("MOVED {slot} 127.0.0.1:{}", port(1));
    // It takes a moment until it knows that the other process is there.
    until("it sends nobody on", || {
        let sent_on = clients[1].say("ROTA.CHANGES {bar} FROM $");
        sent_on == Reply::Error(to_first.clone())
    });
    let from = [0, 1].map(|at| now(&mut clients[at], "x"));
    // Who names the partition waits until slots come.
    let mut comes = cluster.client(2);
    let place = told(&comes.say("ROTA.CHANGES {bar} FROM $ PARTITION 2")).1;
    let words = [
        "ROTA.CHANGES",
        "{bar}",
        "FROM",
        &place,
        "PARTITION",
        "2",
        "BLOCK",
        "0",
    ];
    comes.send(&words);
    assert_eq!(clients[0].insist("SET {bar}1 one"), Reply::OK);
    // It waits when the slots go.
    let mut waits = cluster.cluster_client(1);
    let place = now(&mut clients[0], "{bar}");
    waits.send(&["ROTA.CHANGES", "{bar}", "FROM", &place, "BLOCK", "0"]);
    let reply = clients[0].say(&format!("ROTA MOVE 2 {slot}"));
    assert!(!reply.is_error(), "{reply:?}");
    let (_, next, places) = told(&waits.hear());
    let left = vec!["left".to_owned(), slot.to_string(), "2".to_owned()];
    assert_eq!(places[0].1, std::slice::from_ref(&left));
    assert_eq!(clients[1].insist("SET {bar}1 two"), Reply::OK);
    let reply = waits.say(&format!("ROTA.CHANGES {{bar}} FROM {next}"));
    assert_eq!(error(&reply), moved);
    // What came before is told here, and what came behind it there: at the same place of the order.
    let set = |value: &str| ["set", "{bar}1", value].map(str::to_owned).to_vec();
    assert_eq!(
        all_until_moved(&mut clients[0], "{bar}", &from[0]),
        [set("one"), left.clone()]
    );
    assert_eq!(all(&mut clients[1], "{bar}", &next), [set("two")]);
    let arrived = vec!["arrived".to_owned(), slot.to_string(), "1".to_owned()];
    let (_, at, came) = told(&comes.hear());
    assert_eq!((&at, &came[0].1[..]), (&next, &[arrived.clone()][..]));
    let all_there = [arrived, set("two")];
    assert_eq!(all(&mut clients[1], "{bar}", &from[1]), all_there);
    // Who watches all keys is told of slots, too.
    assert_eq!(all(&mut clients[0], "{ba", &from[0]), [set("one"), left]);
    assert_eq!(all(&mut clients[1], "{ba", &from[1]), all_there);
}

fn all_until_moved(client: &mut Client, prefix: &str, from: &str) -> Vec<Vec<String>> {
    let reply = client.say(&format!("ROTA.CHANGES {prefix} FROM {from}"));
    let (_, next, places) = told(&reply);
    let end = client.say(&format!("ROTA.CHANGES {prefix} FROM {next}"));
    assert!(error(&end).starts_with("MOVED "), "{end:?}");
    places
        .into_iter()
        .flat_map(|(_, changes)| changes)
        .collect()
}

/// Watches one process after the other, wherever one answers, until all values up to the last one have come.
fn follow(
    cluster: &Cluster,
    first: u16,
    last: i64,
    stop: &AtomicBool,
) -> BTreeMap<String, Vec<i64>> {
    let connect = |at: u16| {
        let process = cluster.config.process(node(at % 3 + 1)).expect("a process");
        let address = ([127, 0, 0, 1], process.redis_port.expect("a port"));
        let stream = std::net::TcpStream::connect(std::net::SocketAddr::from(address)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Some(Client::new(stream))
    };
    let (mut at, mut from) = (first, "0".to_owned());
    let mut seen: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut client = connect(at);
    loop {
        let line = format!("ROTA.CHANGES n: FROM {from} COUNT 7 BLOCK 500");
        let reply = client.as_mut().and_then(|client| client.try_say(&line));
        match reply {
            Some(reply) if !reply.is_error() => {
                let (_, next, places) = told(&reply);
                for change in places.into_iter().flat_map(|(_, changes)| changes) {
                    let value = change[2].parse().expect("a number");
                    seen.entry(change[1].clone()).or_default().push(value);
                }
                from = next;
            }
            Some(Reply::Error(text)) if text.starts_with("TRIMMED") => panic!("{text}"),
            _ => {
                at += 1;
                client = connect(at);
                thread::sleep(Duration::from_millis(20));
            }
        }
        let is_all = seen.len() == 4 && seen.values().all(|of| of.last() == Some(&last));
        if is_all || stop.load(SeqCst) {
            return seen;
        }
    }
}

#[test]
fn who_watches_loses_nothing_and_is_told_nothing_twice_where_processes_go() {
    const LAST: i64 = 400;
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((1, 3), 31_400, directory.path());
    let config = cluster.config.clone();
    cluster.client(1).insist("SET ready 1");
    // The watchers know where processes are, and not whether they are there.
    let (stop, view) = (AtomicBool::new(false), Cluster::of(config));
    let mut again = [0; 4];
    thread::scope(|scope| {
        let (stop, view) = (&stop, &view);
        let watchers: Vec<_> = (0..3)
            .map(|first| scope.spawn(move || follow(view, first, LAST, stop)))
            .collect();
        let mut clients: Vec<Option<Client>> = vec![None, None, None];
        for value in 1..=LAST {
            // Each process goes once, and comes back; those that write go elsewhere.
            let (round, within) = (value / 100, value % 100);
            let away = (round < 3).then(|| round as u16 + 1);
            if within == 20
                && let Some(number) = away
            {
                cluster.end(number);
                clients[usize::from(number) - 1] = None;
            }
            if within == 70
                && let Some(number) = away
            {
                cluster.begin(number);
            }
            let is_away = |at: usize| (20..70).contains(&within) && away == Some(at as u16 + 1);
            for (key, again) in again.iter_mut().enumerate() {
                let at = (0..3)
                    .map(|more| (key + more) % 3)
                    .find(|at| !is_away(*at))
                    .expect("one");
                let client = clients[at].get_or_insert_with(|| cluster.client(at as u16 + 1));
                let line = format!("SET n:{key} {value}");
                // What nobody knows may be done, and is asked for again.
                while client.say(&line) != Reply::OK {
                    *again += 1;
                    assert!(*again < 1_000, "{line}");
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
        let expected: Vec<i64> = (1..=LAST).collect();
        let began = Instant::now();
        while watchers.iter().any(|watcher| !watcher.is_finished()) && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, SeqCst);
        for watcher in watchers {
            let seen = watcher.join().expect("it has watched");
            for (key, mut values) in seen {
                let count = values.len();
                values.dedup();
                assert_eq!(values, expected, "{key}");
                let at: usize = key[2..].parse().expect("a number");
                assert!(count - values.len() <= again[at], "{key} came twice");
            }
        }
    });
}

#[test]
fn a_process_that_keeps_no_changes_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((1, 1), 31_360, directory.path());
    cluster.end(1);
    cluster.config.kv.changes_bytes = Some(0);
    cluster.begin(1);
    let mut client = cluster.client(1);
    client.insist("SET k 1");
    for from in ["0", "$", "0 BLOCK 0"] {
        let refused = client.say(&format!("ROTA.CHANGES k FROM {from}"));
        assert_eq!(
            error(&refused),
            "ERR this process keeps no changes: its `changes_bytes` is 0"
        );
    }
    assert_eq!(metric(&cluster, 1, "rota_kv_changes_places"), 0);
}
