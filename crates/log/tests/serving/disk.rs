//! The entries on the disks of processes, and their fate.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use crate::cluster::{Cluster, entries};
use crate::common::Client;

/// The files with entries of a process.
fn segments(cluster: &Cluster, number: u16) -> Vec<PathBuf> {
    let entries = fs::read_dir(cluster.directory(number).join("entries")).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it is there").path());
    let mut all: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|of| of == "seg"))
        .collect();
    all.sort();
    all
}

/// Appends so many entries, several at a time.
fn fill(client: &mut Client, log: &str, (count, bytes): (u64, usize)) {
    let value = "v".repeat(bytes);
    let mut left = count;
    while left > 0 {
        let some = left.min(50);
        for number in 0..some {
            let value = format!("{}:{value}", left - number);
            assert!(client.send(&["XADD", log, "*", "n", &value]));
        }
        for _ in 0..some {
            let reply = client.hear();
            assert!(matches!(reply, Reply::Bulk(_)), "{reply:?}");
        }
        left -= some;
    }
}

/// Until a process has written a state.
fn state(cluster: &Cluster, number: u16, more_than: u64) {
    cluster.wait_for(number, "rota_log_checkpoints_total ", |count| {
        count > more_than
    });
}

#[test]
fn who_was_away_for_long_gets_states_and_entries_of_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with_short_memory(22_700, directory.path());
    let mut client = cluster.client(1);
    fill(&mut client, "a", (500, 100));
    cluster.end(3);
    fill(&mut client, "a", (500, 100));
    fill(&mut client, "b", (100, 20_000));
    for _ in 0..1_500 {
        client.say("XADD c * n 1");
    }
    client.say("XTRIM a MINID 300");
    let all: Vec<Reply> = ["a", "b", "c"]
        .map(|log| client.say(&format!("XRANGE {log} - +")))
        .into();
    cluster.begin(3);
    let mut other = cluster.client(3);
    for (log, expected) in ["a", "b", "c"].iter().zip(&all) {
        assert!(
            &other.insist(&format!("XRANGE {log} - +")) == expected,
            "{log}"
        );
    }
    assert!(cluster.metric(3, "rota_log_recoveries_total ") > 0);
    assert!(cluster.metric(3, "rota_log_got_bytes_total ") > 2_000_000);
    // And it goes on with that after a restart, without getting it again.
    cluster.end(3);
    cluster.begin(3);
    let mut other = cluster.client(3);
    for (log, expected) in ["a", "b", "c"].iter().zip(&all) {
        assert!(
            &other.insist(&format!("XRANGE {log} - +")) == expected,
            "{log}"
        );
    }
    assert_eq!(cluster.metric(3, "rota_log_got_bytes_total "), 0);
}

/// Nobody has the entries of a log that was deleted long ago: it is not waited for.
#[test]
fn who_has_lost_its_entries_gets_those_of_logs_that_are_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with_short_memory(23_300, directory.path());
    let mut client = cluster.client(1);
    fill(&mut client, "a", (300, 100));
    fill(&mut client, "b", (300, 100));
    for number in 1..=3 {
        let before = cluster.metric(number, "rota_log_checkpoints_total ");
        for _ in 0..200 {
            client.say("XADD c * n 1");
        }
        state(&cluster, number, before);
    }
    cluster.end(3);
    fs::remove_dir_all(cluster.directory(3).join("entries")).expect("it is there");
    assert_eq!(client.say("DEL a"), Reply::Integer(1));
    let before = cluster.metric(1, "rota_log_checkpoints_total ");
    for _ in 0..1_500 {
        client.say("XADD c * n 1");
    }
    state(&cluster, 1, before + 5);
    let expected = client.say("XRANGE b - +");
    cluster.begin(3);
    let mut other = cluster.client(3);
    assert!(
        other.insist("XRANGE b - +") == expected,
        "it is what others have"
    );
    assert_eq!(other.say("EXISTS a"), Reply::Integer(0));
}

#[test]
fn damage_is_never_told_and_is_put_in_order_with_what_others_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((1, 3), 22_800, directory.path());
    let mut client = cluster.client(1);
    fill(&mut client, "a", (3_000, 1_000));
    let expected = client.say("XRANGE a - +");
    // All of it is in a state: nothing comes from a ring again.
    for number in 1..=3 {
        let before = cluster.metric(number, "rota_log_checkpoints_total ");
        state(&cluster, number, before);
    }
    cluster.end(2);
    let files = segments(&cluster, 2);
    let mut bytes = fs::read(&files[0]).expect("it is there");
    let length = bytes.len();
    for at in [length / 3, length / 2, length / 2 + 5_000] {
        bytes[at] ^= 4;
    }
    fs::write(&files[0], bytes).expect("it is ours");
    cluster.begin(2);
    let mut other = cluster.client(2);
    assert!(
        other.insist("XRANGE a - +") == expected,
        "it is what others have"
    );
    assert_eq!(cluster.metric(2, "rota_log_damaged_total "), 1);
    assert_eq!(cluster.metric(2, "rota_log_repaired_total "), 1);
    // A file that is gone altogether.
    cluster.end(2);
    segments(&cluster, 2)
        .iter()
        .for_each(|file| fs::remove_file(file).expect("it is there"));
    cluster.begin(2);
    let mut other = cluster.client(2);
    assert!(
        other.insist("XRANGE a - +") == expected,
        "it is what others have"
    );
    cluster.wait_for(2, "rota_log_missing_entries ", |missing| missing == 0);
    // And all entries, with the name of the store.
    cluster.end(2);
    fs::remove_dir_all(cluster.directory(2).join("entries")).expect("it is there");
    cluster.begin(2);
    let mut other = cluster.client(2);
    assert!(
        other.insist("XRANGE a - +") == expected,
        "it is what others have"
    );
    assert_eq!(entries(&other.say("XREVRANGE a + - COUNT 2")).len(), 2);
}

#[test]
fn what_is_trimmed_frees_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((1, 3), 22_900, directory.path());
    let mut client = cluster.client(1);
    // Three files of a log.
    fill(&mut client, "a", (400, 200_000));
    fill(&mut client, "b", (10, 100));
    for number in 1..=3 {
        cluster.wait_for(number, "rota_log_disk_bytes ", |bytes| bytes > 75_000_000);
    }
    let began = Instant::now();
    assert_eq!(client.say("XTRIM a MAXLEN 10"), Reply::Integer(390));
    for number in 1..=3 {
        cluster.wait_for(number, "rota_log_disk_bytes ", |bytes| bytes < 34_000_000);
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(client.say("DEL a"), Reply::Integer(1));
    for number in 1..=3 {
        cluster.wait_for(number, "rota_log_disk_bytes ", |bytes| bytes < 10_000);
    }
    assert_eq!(entries(&client.say("XRANGE b - +")).len(), 10);
    // By size, without anybody asking for it.
    assert_eq!(client.say("ROTA CREATE c MAXBYTES 1000000"), Reply::OK);
    fill(&mut client, "c", (400, 100_000));
    let began = Instant::now();
    loop {
        let Reply::Integer(length) = client.say("XLEN c") else {
            panic!("a number");
        };
        if length < 30 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{length}");
        thread::sleep(Duration::from_millis(50));
    }
}
