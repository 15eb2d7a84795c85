//! Processes of a store on real sockets and real disks, and clients of Redis' protocol.

#[path = "common/cluster.rs"]
mod cluster;
mod common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rota_kv::{Kv, KvConfig};
use rota_node::VoteStorage;
use rota_resp::Reply;

use cluster::{Cluster, node};
use common::{Client, PATIENCE};

fn number(client: &mut Client, line: &str) -> i64 {
    match client.insist(line) {
        Reply::Integer(number) => number,
        other => panic!("{line}: {other:?}"),
    }
}

/// What a process says by HTTP, to a request for this host.
fn get(cluster: &Cluster, number: u16, path: &str, host: &str) -> String {
    let process = cluster.config.process(node(number)).expect("a process");
    let address = ([127, 0, 0, 1], process.metrics_port.expect("a port"));
    let mut stream = TcpStream::connect(SocketAddr::from(address)).expect("it is served");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is heard");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

fn bulk(text: &str) -> Reply {
    Reply::from(text)
}

/// A step of a walk: the number of the next place, and the keys.
fn walk(client: &mut Client, from: &str) -> (String, Vec<Reply>) {
    let Reply::Array(parts) = client.insist(&format!("SCAN {from} COUNT 5")) else {
        panic!("a walk");
    };
    match <[Reply; 2]>::try_from(parts) {
        Ok([Reply::Bulk(next), Reply::Array(keys)]) => {
            let next = String::from_utf8(next.to_vec());
            (next.expect("a number"), keys)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_walk_goes_on_where_it_began_and_is_refused_elsewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 1), 22_720, directory.path());
    let [mut one, mut other] = [1, 2].map(|number| cluster.client(number));
    for number in 10..40 {
        assert_eq!(one.insist(&format!("SET k{number} x")), Reply::OK);
    }
    // Both have walks, and the other's are further: none of its places may be taken for one of the first's.
    let (mine, mut keys) = walk(&mut one, "0");
    let (mut theirs, _) = walk(&mut other, "0");
    for _ in 0..2 {
        theirs = walk(&mut other, &theirs).0;
    }
    let refused = |reply: Reply| {
        let is = matches!(&reply, Reply::Error(text) if text.starts_with("ERR invalid cursor"));
        assert!(is, "{reply:?}");
    };
    refused(other.say(&format!("SCAN {mine}")));
    refused(one.say(&format!("SCAN {theirs}")));
    // On another connection of the process that gave the number the walk comes to its end.
    let (mut at, mut again) = (mine.clone(), cluster.client(1));
    while at != "0" {
        let (next, more) = walk(&mut again, &at);
        keys.extend(more);
        at = next;
    }
    assert_eq!(keys.len(), 30);
    // A process that comes back does not take an old number for a new place.
    cluster.end(1);
    cluster.begin(1);
    let mut one = cluster.client(1);
    let (_, first) = walk(&mut one, "0");
    assert!(!first.is_empty());
    refused(one.say(&format!("SCAN {mine}")));
}

/// Each served clients by its own file.
#[test]
fn processes_whose_files_deal_out_other_slots_are_one_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = (directory.path(), VoteStorage::Memory);
    let mut cluster = Cluster::of(KvConfig::loopback((2, 1), 22_760, of));
    let dealt = |slots: [&str; 2]| {
        let mut config = cluster.config.clone();
        let partitions = config.kv.partition.iter_mut();
        for (partition, slots) in partitions.zip(slots) {
            partition.slots = Some(slots.to_owned());
        }
        config
    };
    let even = dealt(["0-8191", "8192-16383"]);
    let other = dealt(["0-99", "100-16383"]);
    cluster.config = even.clone();
    let _processes = [(&even, 1), (&other, 2)]
        .map(|(config, number)| Kv::start(config, node(number)).expect("it starts"));
    let mut clients = [1, 2].map(|number| cluster.client(number));
    // Both files agree about the slot of `foo` only.
    for key in ["foo", "bar"] {
        for (writes, reads) in [(0, 1), (1, 0)] {
            let set = clients[writes].insist(&format!("SET {key} {writes}"));
            assert_eq!(set, Reply::OK);
            let read = clients[reads].insist(&format!("GET {key}"));
            assert_eq!(read, bulk(&writes.to_string()));
        }
    }
    assert_eq!(number(&mut clients[0], "DBSIZE"), 2);
    // The one whose file does not count says so.
    let said = |number: u16| {
        let metrics = get(&cluster, number, "/metrics", "localhost");
        let line = "rota_kv_maps_refused_total ";
        let told = metrics.lines().find_map(|of| of.strip_prefix(line));
        told.expect("the metric").to_owned()
    };
    let began = Instant::now();
    let mut all = Vec::new();
    while all != ["0", "1"] {
        assert!(began.elapsed() < PATIENCE, "{all:?}");
        std::thread::sleep(Duration::from_millis(50));
        all = [1, 2].map(said).to_vec();
        all.sort();
    }
}

#[test]
fn any_process_has_all_keys_and_a_process_that_goes_stops_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 3), 21_300, directory.path());
    let mut clients: Vec<Client> = (1..=6).map(|number| cluster.client(number)).collect();
    assert_eq!(clients[0].insist("MSET a 1 b 2 c 3 d 4 e 5"), Reply::OK);
    for client in &mut clients {
        let expected: Vec<Reply> = ["1", "2", "3", "4", "5"].map(bulk).into();
        assert_eq!(client.insist("MGET a b c d e"), Reply::Array(expected));
    }
    // What was told at one is seen at all, at once.
    for round in 0..40 {
        let (one, other) = (round % 6, (round / 6) % 6);
        let key = ["a", "b", "c", "d", "e"][round % 5];
        assert_eq!(clients[one].say(&format!("SET {key} {round}")), Reply::OK);
        let seen = clients[other].say(&format!("GET {key}"));
        assert_eq!(seen, bulk(&round.to_string()));
    }
    // A pipeline is answered in its order, and a transaction is whole.
    let client = &mut clients[1];
    for number in 0..300 {
        client.send(&["SET", &format!("k{number}"), &number.to_string()]);
        client.send(&["GET", &format!("k{number}")]);
    }
    for number in 0..300 {
        assert_eq!(client.hear(), Reply::OK);
        assert_eq!(client.hear(), bulk(&number.to_string()));
    }
    for line in ["MULTI", "INCR a1", "INCR b1", "INCR c1", "INCR d1"] {
        client.say(line);
    }
    let ones = Reply::Array(vec![Reply::Integer(1); 4]);
    assert_eq!(client.say("EXEC"), ones);
    assert_eq!(client.say("DBSIZE"), Reply::Integer(309));
    // Who knows a cluster asks each partition for its own keys.
    let own: Vec<i64> = [1, 4]
        .map(|at| number(&mut cluster.cluster_client(at), "DBSIZE"))
        .into();
    assert!(own.iter().all(|count| *count > 0), "{own:?}");
    assert_eq!(own.iter().sum::<i64>(), 309);
    let mut walked = 0;
    for number in [1, 4] {
        let Reply::Array(parts) = cluster.cluster_client(number).say("SCAN 0 COUNT 1000") else {
            panic!("a walk");
        };
        let Reply::Array(keys) = &parts[1] else {
            panic!("{parts:?}");
        };
        walked += keys.len();
    }
    assert_eq!(walked, 309);
    // One of each partition's goes, and comes back with nothing but its disk.
    for number in [2, 6] {
        cluster.end(number);
        let key = format!("gone{number}");
        assert_eq!(clients[0].insist(&format!("SET {key} x")), Reply::OK);
        cluster.begin(number);
        clients[usize::from(number) - 1] = cluster.client(number);
        let back = clients[usize::from(number) - 1].insist(&format!("GET {key}"));
        assert_eq!(back, bulk("x"));
    }
    let metrics = get(&cluster, 1, "/metrics", "localhost");
    for line in [
        "rota_kv_partition 1\n",
        "rota_kv_processes_configured 5\n",
        "rota_kv_slots 8192\n",
        "rota_kv_slots_frozen 0\n",
        "rota_kv_map_epoch 1\n",
        "rota_kv_answers_wait_for{partition=\"2\"} 0\n",
        "rota_kv_answer_seconds_bucket{kind=\"look\",le=\"+Inf\"}",
        "rota_kv_commands_total ",
        "rota_kv_unreadable_total 0\n",
        "rota_kv_questions_refused_total 0\n",
        "rota_kv_links_ended_total 0\n",
        "rota_kv_maps_refused_total 0\n",
        "rota_kv_answers_kept ",
        "rota_kv_answers_kept_bytes ",
        "rota_kv_settled 1\n",
        "rota_kv_ring_operational{ring=\"1\"} 1\n",
        "rota_kv_ring_account_needs{ring=\"1\",partition=\"1\"} ",
        "rota_kv_ring_counter{ring=\"3\",name=\"uring_instances_learnt\"} ",
        "# EOF\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(get(&cluster, 1, "/other", "127.0.0.1:1").starts_with("HTTP/1.1 404"));
    assert!(get(&cluster, 1, "/metrics", "evil.example").starts_with("HTTP/1.1 421"));
    let Reply::Bulk(rings) = clients[0].say("RINGS") else {
        panic!("a text");
    };
    let rings = String::from_utf8_lossy(&rings).into_owned();
    for line in [
        "# Ring 1\r\nstate:operational",
        "# Ring 3\r\n",
        "replicas=1/2/3\r\n",
    ] {
        assert!(rings.contains(line), "{line}: {rings}");
    }
    assert!(clients[0].say("RINGS ABANDON 1").is_error());
    let info = clients[0].say("INFO rota");
    assert!(format!("{info:?}").contains("partition:1"), "{info:?}");
}

/// Transactions over both partitions, and over one, that read much.
fn what_is_read_is_told_whole_or_not_at_all(client: &mut Client) {
    let large = "x".repeat(700_000);
    assert_eq!(client.insist(&format!("SET {{bar}}a {large}")), Reply::OK);
    let refused =
        "ERR what is asked for at once is more than 3145728 bytes: it was not done, ask for less";
    for key in ["{foo}new", "{bar}new"] {
        let mut transaction = |reads: usize| {
            assert_eq!(client.say("MULTI"), Reply::OK);
            client.say(&format!("SET {key} {reads}"));
            (0..reads).for_each(|_| drop(client.say("GET {bar}a")));
            client.say("GETDEL {bar}none");
            let reply = client.say("EXEC");
            (reply, client.say(&format!("GET {key}")))
        };
        let (reply, written) = transaction(4);
        let mut expected = vec![Reply::OK];
        expected.extend((0..4).map(|_| bulk(&large)));
        expected.push(Reply::Null);
        assert_eq!((reply, written), (Reply::Array(expected), bulk("4")));
        let (reply, written) = transaction(8);
        assert_eq!((reply, written), (Reply::error(refused), bulk("4")));
    }
    // Of commands that came together each may read as much.
    client.send_all(&["GET {bar}a"; 12]);
    (0..12).for_each(|_| assert_eq!(client.hear(), bulk(&large)));
    assert_eq!(
        client.say("DEL {bar}a {foo}new {bar}new"),
        Reply::Integer(3)
    );
}

/// Two partitions of one process each.
#[test]
fn keys_end_though_nothing_else_is_ordered_and_are_forgotten_where_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 1), 21_380, directory.path());
    let mut clients = [1, 2].map(|number| cluster.client(number));
    assert_eq!(clients[0].insist("MSET bar 1 foo 2"), Reply::OK);
    for client in &mut clients {
        assert_eq!(client.insist("PEXPIRE bar 300000"), Reply::Integer(1));
        let left = number(client, "PTTL bar");
        assert!((1..=300_000).contains(&left), "{left}");
    }
    assert_eq!(clients[0].insist("PEXPIRE bar 300"), Reply::Integer(1));
    what_is_read_is_told_whole_or_not_at_all(&mut clients[0]);
    let began = std::time::Instant::now();
    // One of these reads has time pass, or the pulse of the process that has the key.
    while clients[1].insist("GET bar") != Reply::Null {
        assert!(began.elapsed() < common::PATIENCE, "it is still there");
    }
    assert_eq!(number(&mut clients[0], "DBSIZE"), 1);
    assert_eq!(clients[0].insist("GET foo"), bulk("2"));
    // Who knows a cluster has each partition forget its own keys.
    assert_eq!(clients[0].insist("SET bar 3"), Reply::OK);
    let mut of_cluster = [1, 2].map(|number| cluster.cluster_client(number));
    assert_eq!(of_cluster[0].insist("FLUSHALL"), Reply::OK);
    let left = Reply::Array(vec![Reply::Null, bulk("2")]);
    assert_eq!(clients[1].insist("MGET bar foo"), left);
    assert_eq!(of_cluster[1].insist("FLUSHALL"), Reply::OK);
    assert_eq!(number(&mut clients[0], "DBSIZE"), 0);
    // Who knows one server has all of them do so.
    assert_eq!(clients[0].insist("MSET bar 1 foo 2"), Reply::OK);
    assert_eq!(clients[0].insist("FLUSHALL"), Reply::OK);
    assert_eq!(number(&mut clients[1], "DBSIZE"), 0);
}

/// One of three partitions has no process.
#[test]
fn commands_of_a_pipeline_do_not_fail_for_another_one_s_sake() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((3, 1), 21_440, directory.path());
    let mut client = cluster.client(1);
    assert_eq!(client.insist("MSET bar 1 foo 2"), Reply::OK);
    assert_eq!(
        client.insist("MGET bar foo"),
        Reply::Array(vec![bulk("1"), bulk("2")])
    );
    cluster.end(3);
    assert_eq!(client.insist("SET bar 1"), Reply::OK);
    let began = std::time::Instant::now();
    while !format!("{:?}", client.say("INFO rota")).contains("processes_connected:1") {
        assert!(began.elapsed() < common::PATIENCE, "it is still connected");
    }
    client.send_all(&["INCR bar", "INCR foo", "GET bar", "MGET foo bar", "GET bar"]);
    let heard = [(); 5].map(|()| client.hear());
    let down = "CLUSTERDOWN no replica of partition 3 is there: it was not done";
    let [added, none, read, neither, again] = heard;
    assert_eq!(
        (added, read, again),
        (Reply::Integer(2), bulk("2"), bulk("2"))
    );
    assert_eq!([none, neither], [(); 2].map(|()| Reply::error(down)));
}

/// The number of batches that a process has had ordered for its clients.
fn batches(client: &mut Client) -> u64 {
    let text = match client.say("INFO") {
        Reply::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Reply::Text(text) => text,
        other => panic!("{other:?}"),
    };
    let line = text.lines().find_map(|line| line.strip_prefix("batches:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or_else(|| panic!("{text}"))
}

/// One partition has no room, and another one has.
#[test]
fn a_partition_without_room_takes_what_makes_nothing_larger() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = (directory.path(), VoteStorage::Async);
    let mut config = KvConfig::loopback((2, 1), 21_410, at);
    config.kv.partition_mib = Some(1);
    let cluster = Cluster::begin_all(config, directory.path());
    let mut client = cluster.client(1);
    // All of these are of the first partition.
    let tagged = |name: &str| format!("{{bar}}{name}");
    assert_eq!(client.insist("MSET bar 1 foo 2"), Reply::OK);
    for line in ["HSET {bar}h f 123 g 1", "SET {bar}n 9"] {
        assert!(!client.insist(line).is_error());
    }
    // The last of these is too much, and what is small then leaves it so.
    for (name, bytes) in [("a", 100_000), ("b", 600_000), ("c", 700_000)] {
        let large = "x".repeat(bytes);
        let line = format!("SET {} {large}", tagged(name));
        assert_eq!(client.insist(&line), Reply::OK);
    }
    let began = std::time::Instant::now();
    while !client.say("APPEND {bar}a x").is_error() {
        assert!(began.elapsed() < common::PATIENCE, "it has room");
    }
    for (line, expected) in [
        ("SET {bar}a small", Reply::OK),
        ("SET bar 7", Reply::OK),
        ("HSET {bar}h f 456 g 2", Reply::Integer(0)),
        ("INCR {bar}n", Reply::Integer(10)),
        ("EXPIRE {bar}h 100", Reply::Integer(1)),
        ("HDEL {bar}h g", Reply::Integer(1)),
        ("GETDEL bar", bulk("7")),
        ("SET foo larger", Reply::OK),
    ] {
        assert_eq!(client.say(line), expected, "{line}");
    }
    let full = Reply::error("OOM command not allowed: partition 1 is full");
    for line in [
        "SET {bar}a smaller",
        "SET bar 7",
        "APPEND {bar}a x",
        "HSET {bar}h f 4567",
        "HSET {bar}h g 1",
        "MSET foo 1 bar 2",
    ] {
        assert_eq!(client.say(line), full, "{line}");
    }
    // Commands that came with it do not fail for its sake.
    client.send_all(&["GET foo", "SET {bar}new x", "DEL {bar}n", "GET {bar}a"]);
    let heard = [(); 4].map(|()| client.hear());
    let expected = [
        bulk("larger"),
        full.clone(),
        Reply::Integer(1),
        bulk("small"),
    ];
    assert_eq!(heard, expected);
    client.send_all(&["SET {bar}a tiny", "SET {bar}new x", "SET {bar}a s"]);
    let heard = [(); 3].map(|()| client.hear());
    assert_eq!(heard, [Reply::OK, full.clone(), Reply::OK]);
    // However many of them are refused, the others are not asked for one by one.
    let fits = |at: usize| at.is_multiple_of(3);
    let lines: Vec<String> = (0..60)
        .map(|at| match at % 3 {
            0 => "SET {bar}a s".to_owned(),
            1 => format!("SET {{bar}}new-{at} x"),
            _ => "APPEND {bar}a x".to_owned(),
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let before = batches(&mut client);
    client.send_all(&lines);
    for at in 0..lines.len() {
        let expected = if fits(at) { &Reply::OK } else { &full };
        assert_eq!(&client.hear(), expected, "{at}");
    }
    assert!(batches(&mut client) - before < 10);
    assert_eq!(client.say("DEL {bar}b {bar}c"), Reply::Integer(2));
    assert_eq!(client.insist("SET {bar}new x"), Reply::OK);
}
