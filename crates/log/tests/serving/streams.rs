//! The replies to clients of Redis' streams.

use rota_front::access::UserSection;
use rota_resp::{Replies, Reply, Request, Version};

use crate::cluster::Cluster;
use crate::common::Client;

/// Commands, and what Redis 7.0.15 answers to each, one after the other: `|` for the ends of lines, and `%` for `|`.
const REDIS: &str = include_str!("redis.txt");

/// Words, with what is between quotes as one.
fn words(line: &str) -> Vec<String> {
    line.split(' ')
        .map(|word| word.trim_matches('"').to_owned())
        .collect()
}

fn said(reply: &Reply) -> String {
    let mut out = Vec::new();
    reply.write(Version::Resp2, &mut out);
    String::from_utf8_lossy(&out).replace("\r\n", "|")
}

fn ask(command: &str, client: &mut Client) -> Reply {
    let words = words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(client.send(&words), "{command}");
    client.hear()
}

fn read(text: &str) -> Reply {
    let mut replies = Replies::new(1 << 20);
    replies.push(text.replace('|', "\r\n").replace('%', "|").as_bytes());
    replies.next().expect("a reply").expect("all of it")
}

#[test]
fn streams_are_answered_as_redis_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 3), 22_100, directory.path());
    let mut client = cluster.client(2);
    let mut lines = REDIS.lines();
    let mut count = 0;
    while let (Some(command), Some(expected)) = (lines.next(), lines.next()) {
        let expected = expected.strip_prefix("  ").expect("a reply");
        assert_eq!(ask(command, &mut client), read(expected), "{command}");
        count += 1;
    }
    assert_eq!(count, 120);
}

#[test]
fn what_is_not_there_is_said_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((1, 1), 22_200, directory.path());
    let mut client = cluster.client(1);
    assert_eq!(client.say("XADD s * a 1"), Reply::from("1-0"));
    for (command, words) in [
        ("GET s", "WRONGTYPE Operation against a key"),
        ("LPUSH s x", "WRONGTYPE Operation against a key"),
        (
            "GET other",
            "ERR unknown command 'get': there are only streams",
        ),
        ("SET s x", "ERR unknown command 'SET'"),
        ("XADD s 7-0 a 1", "is not the next one, which is 2-0"),
        ("XADD s 2-5 a 1", "must end in -0"),
        ("XDEL s 1-0", "ERR entries are not deleted one by one"),
        (
            "XGROUP CREATE s g 0",
            "ERR consumer groups are not supported",
        ),
        (
            "XREADGROUP GROUP g c STREAMS s >",
            "ERR consumer groups are not supported",
        ),
        ("WATCH s", "ERR nothing is watched"),
        ("ROTA SEAL nothing", "ERR no such key"),
        (
            "ROTA OTHER s",
            "there are ROTA CREATE, ROTA SEAL and ROTA ABOUT",
        ),
        ("ROTA CREATE s MAXLEN x", "not an integer"),
        ("XMERGE STREAMS s t 0", "Unbalanced 'xmerge'"),
    ] {
        let reply = client.say(command);
        assert!(said(&reply).contains(words), "{command}: {reply:?}");
    }
    // A field that is too large for one entry, and a command that is too large for a message.
    for size in [800 << 10, 2 << 20, 5 << 20] {
        let large = "x".repeat(size);
        client.send(&["XADD", "s", "*", "a", &large]);
        let reply = client.hear();
        assert!(reply.is_error(), "{size}: {:.80}", said(&reply));
    }
    client.send(&["XADD", "s", "*", "a", &"x".repeat(700 << 10)]);
    assert_eq!(client.hear(), Reply::from("2-0"));
    // What is in a transaction that cannot be done as a whole is not done at all.
    for line in ["MULTI", "XADD s * a 3", "XADD new * a 1", "XADD s 9-0 a 1"] {
        assert!(!client.say(line).is_error(), "{line}");
    }
    let refused = said(&client.say("EXEC"));
    assert!(
        refused.contains("EXECABORT") && refused.contains("command 3"),
        "{refused}"
    );
    assert_eq!(client.say("XLEN s"), Reply::Integer(2));
    assert_eq!(client.say("EXISTS new"), Reply::Integer(0));
    for line in ["MULTI", "XADD s * a 3", "XLEN s"] {
        client.say(line);
    }
    assert!(said(&client.say("EXEC")).contains("EXECABORT"));
}

#[test]
fn what_comes_in_pieces_and_all_at_once_is_answered_in_its_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 3), 22_300, directory.path());
    let mut client = cluster.client(1);
    let mut out = Vec::new();
    for number in 0..2_000 {
        let log = ["a", "b", "c"][number % 3];
        Request::write(&["XADD", log, "*", "n", &number.to_string()], &mut out);
        if number % 100 == 0 {
            Request::write(&["XLEN", log], &mut out);
        }
    }
    use std::io::Write as _;
    for piece in out.chunks(7_001) {
        client.stream.write_all(piece).expect("it is heard");
    }
    for number in 0..2_000 {
        let id = Reply::from(format!("{}-0", number / 3 + 1));
        assert_eq!(client.hear(), id, "{number}");
        if number % 100 == 0 {
            assert_eq!(client.hear(), Reply::Integer(number / 3 + 1));
        }
    }
}

#[test]
fn nothing_that_a_client_says_stops_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((1, 3), 23_400, directory.path());
    let mut client = cluster.client(1);
    let connected = cluster.metric(1, "rota_log_clients ");
    for _ in 0..5 {
        let mut other = cluster.client(1);
        assert!(other.say("COMMAND GETKEYS xinfo stream").is_error());
        assert_eq!(
            other.say("COMMAND GETKEYS xinfo stream s"),
            Reply::Array(vec![Reply::from("s")])
        );
    }
    cluster.wait_for(1, "rota_log_clients ", |count| count == connected);
    let of = |count: usize| {
        let logs = vec!["w"; count].join(" ");
        let ids = vec!["9999"; count].join(" ");
        format!("XREAD BLOCK 200 STREAMS {logs} {ids}")
    };
    assert!(client.say(&of(1_025)).is_error());
    assert_eq!(client.say(&of(1_024)), Reply::NullArray);
    assert_eq!(client.say("XADD w * n 1"), Reply::from("1-0"));
    // Without a majority nobody says that there is nothing.
    cluster.end(2);
    cluster.end(3);
    for line in [
        "XREAD BLOCK 300 STREAMS w 1",
        "XREAD STREAMS w 0",
        "XLEN w",
        "XADD w * n 2",
    ] {
        let reply = client.say(line);
        assert!(reply.is_error(), "{line}: {reply:?}");
    }
}

#[test]
fn who_has_other_rings_than_the_others_does_not_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 3), 23_500, directory.path());
    cluster.client(1);
    cluster.end(3);
    let mut config = cluster.config.clone();
    config.log.rings = vec![1];
    let started = rota_log::LogProcess::start(&config, crate::cluster::node(3));
    let why = started.expect_err("it has other rings").to_string();
    assert!(why.contains("all processes have to have the same"), "{why}");
    cluster.begin(3);
    cluster.client(3);
}

/// Who waits for what comes when users change may be one who may not read it any more.
#[test]
fn users_change_for_those_who_are_there_and_who_wait() {
    let user = |name: &str, log: &str| UserSection {
        name: name.to_owned(),
        // Of "secret".
        password_sha256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
            .to_owned(),
        keys: Some(vec![log.to_owned()]),
        read_only: false,
    };
    let directory = tempfile::tempdir().expect("a directory");
    let of = ((1, 1), 29_600, directory.path());
    let mut cluster = Cluster::with(of, |config| {
        config.log.user = vec![user("ann", "a")];
        config.log.patience_ms = Some(1_000);
    });
    let mut client = cluster.stranger(1);
    assert_eq!(client.insist("AUTH ann secret"), Reply::OK);
    client.insist("XADD a * n 1");
    client.send(&["XREAD", "BLOCK", "20000", "STREAMS", "a", "$"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    cluster.config.log.user = vec![user("ann", "b")];
    assert!(cluster.reload(1));
    let Reply::Error(told) = client.hear() else {
        panic!("it may not read that any more");
    };
    assert!(told.starts_with("UNBLOCKED"), "{told}");
    assert!(client.say("XLEN a").is_error());
    assert_eq!(client.say("XLEN b"), Reply::Integer(0));
}
