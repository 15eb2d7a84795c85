//! The guarantees of readers: all that was acknowledged anywhere, and one order of all logs.

use std::thread;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use crate::cluster::{Cluster, entries};
use crate::common::Client;

/// Logs and positions, in the order in which `XMERGE` tells them.
fn merged(client: &mut Client, line: &str) -> Vec<(String, String)> {
    let reply = client.say(line);
    let Reply::Array(found) = &reply else {
        panic!("{line}: {reply:?}");
    };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let one = |entry: &Reply| match entry {
        Reply::Array(parts) => (text(&parts[0]), text(&parts[1])),
        other => panic!("{other:?}"),
    };
    found.iter().map(one).collect()
}

#[test]
fn what_is_acknowledged_by_one_process_is_read_at_all_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 3), 22_400, directory.path());
    let mut clients: Vec<Client> = (1..=3).map(|number| cluster.client(number)).collect();
    for round in 0..90_u64 {
        let (one, other) = ((round % 3) as usize, ((round / 3) % 3) as usize);
        let log = ["a", "b", "c"][(round % 3) as usize];
        let id = Reply::from(format!("{}-0", round / 3 + 1));
        assert_eq!(clients[one].say(&format!("XADD {log} * n {round}")), id);
        let client = &mut clients[other];
        let length = Reply::Integer((round / 3 + 1) as i64);
        assert_eq!(client.say(&format!("XLEN {log}")), length);
        let found = entries(&client.say(&format!("XRANGE {log} {} +", round / 3 + 1)));
        assert_eq!(found, [(round / 3 + 1, round.to_string())]);
        let last = entries(&client.say(&format!("XREVRANGE {log} + - COUNT 1")));
        assert_eq!(last, found);
        let Reply::Array(streams) = client.say(&format!("XREAD STREAMS {log} {}", round / 3))
        else {
            panic!("there is something");
        };
        assert_eq!(streams.len(), 1);
    }
    // All have one order, whichever process they ask, and however much at a time.
    let line = "XMERGE COUNT 1000 STREAMS a b c 0 0 0";
    let expected = merged(&mut clients[0], line);
    assert_eq!(expected.len(), 90);
    for client in &mut clients {
        assert_eq!(merged(client, line), expected);
        let (mut told, mut after) = (Vec::new(), [0, 0, 0]);
        loop {
            let [a, b, c] = after;
            let line = format!("XMERGE COUNT 7 BLOCK 1 STREAMS a b c {a} {b} {c}");
            let reply = client.say(&line);
            if reply == Reply::NullArray {
                break;
            }
            for (log, id) in merged_of(&reply) {
                let at = ["a", "b", "c"].iter().position(|name| *name == log);
                after[at.expect("one of them")] += 1;
                told.push((log, id));
            }
        }
        assert_eq!(told, expected);
    }
    // One goes, and comes back with what it has.
    cluster.end(3);
    clients[0].insist("XADD a * n gone");
    cluster.begin(3);
    clients[2] = cluster.client(3);
    let last = entries(&clients[2].insist("XREVRANGE a + - COUNT 1"));
    assert_eq!(last, [(31, "gone".to_owned())]);
}

fn merged_of(reply: &Reply) -> Vec<(String, String)> {
    let Reply::Array(found) = reply else {
        panic!("{reply:?}");
    };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let one = |entry: &Reply| match entry {
        Reply::Array(parts) => (text(&parts[0]), text(&parts[1])),
        other => panic!("{other:?}"),
    };
    found.iter().map(one).collect()
}

#[test]
fn who_waits_is_told_at_once_and_who_goes_is_not_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 3), 22_500, directory.path());
    let mut writer = cluster.client(1);
    let threads: Vec<_> = (1..=3)
        .flat_map(|number| [number; 4])
        .map(|number| {
            let mut client = cluster.client(number);
            thread::spawn(move || {
                let (mut next, mut told) = (0, 0);
                while next < 200 {
                    let line = format!("XREAD BLOCK 20000 STREAMS none a {next} {next}");
                    let Reply::Array(streams) = client.say(&line) else {
                        panic!("nothing came in time");
                    };
                    let Reply::Array(parts) = &streams[0] else {
                        panic!("{streams:?}");
                    };
                    for (at, value) in entries(&parts[1]) {
                        assert_eq!((at, value), (next + 1, (next + 1).to_string()));
                        next = at;
                    }
                    told += 1;
                }
                told
            })
        })
        .collect();
    // Some wait for what never comes, and go.
    for number in 1..=3 {
        let mut client = cluster.client(number);
        client.send(&["XREAD", "BLOCK", "0", "STREAMS", "never", "$"]);
    }
    for number in 1..=200 {
        let id = Reply::from(format!("{number}-0"));
        assert_eq!(writer.say(&format!("XADD a * n {number}")), id);
    }
    for thread in threads {
        assert!(thread.join().expect("it was told") > 1);
    }
    for number in 1..=3 {
        cluster.wait_for(number, "rota_log_readers_waiting ", |count| count == 0);
    }
    // What is there already is not waited for, and what does not come is said not to.
    let began = Instant::now();
    assert!(matches!(
        writer.say("XREAD BLOCK 20000 STREAMS a 0"),
        Reply::Array(_)
    ));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(writer.say("XREAD BLOCK 30 STREAMS a $"), Reply::NullArray);
}

#[test]
fn a_log_is_sealed_trimmed_and_made_again_and_what_is_asked_for_again_is_there_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 3), 22_600, directory.path());
    let mut clients: Vec<Client> = (1..=3).map(|number| cluster.client(number)).collect();
    for round in 0..30 {
        let client = &mut clients[round % 3];
        let name = round / 3;
        let line = format!("XADD a IDMP me {name} * n {name}");
        assert_eq!(client.say(&line), Reply::from(format!("{}-0", name + 1)));
    }
    assert_eq!(clients[0].say("XTRIM a MINID 4"), Reply::Integer(3));
    let refused = clients[1].say("XMERGE STREAMS a 1");
    let expected = Reply::Error("TRIMMED the first entry of a that is kept is 4-0".to_owned());
    assert_eq!(refused, expected);
    let found = entries(&clients[1].say("XRANGE a - +"));
    assert_eq!(found.first().map(|first| first.0), Some(4));
    assert_eq!(clients[2].say("ROTA SEAL a"), Reply::OK);
    let refused = clients[0].say("XADD a * n more");
    assert!(
        matches!(&refused, Reply::Error(why) if why.starts_with("SEALED")),
        "{refused:?}"
    );
    // What was appended before is still told to who asks again.
    assert_eq!(
        clients[0].say("XADD a IDMP me 9 * n 9"),
        Reply::from("10-0")
    );
    assert_eq!(clients[0].say("DEL a"), Reply::Integer(1));
    assert_eq!(clients[1].say("XLEN a"), Reply::Integer(0));
    assert_eq!(
        clients[1].say("XADD a IDMP me 9 * n new"),
        Reply::from("1-0")
    );
    let found = entries(&clients[2].say("XRANGE a - +"));
    assert_eq!(found, [(1, "new".to_owned())]);
    // It keeps no more than it is to.
    assert_eq!(clients[0].say("ROTA CREATE few MAXLEN 5"), Reply::OK);
    assert_eq!(clients[0].say("ROTA CREATE few NX MAXLEN 9"), Reply::Null);
    for number in 0..20 {
        clients[number % 3].say(&format!("XADD few * n {number}"));
    }
    let found = entries(&clients[2].say("XRANGE few - +"));
    assert_eq!(found.first().map(|first| first.0), Some(16));
    assert_eq!(clients[0].say("ROTA CREATE young MAXAGE 1"), Reply::OK);
    clients[0].say("XADD young * n 1");
    clients[0].say("XADD young * n 2");
    let began = Instant::now();
    while clients[1].say("XLEN young") != Reply::Integer(0) {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it is old by now"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
