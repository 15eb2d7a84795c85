//! The entries on the disks of processes, and their fate.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
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
    assert!(cluster.metric(3, "rota_log_recovered_bytes_total ") > 0);
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
fn damage_that_nobody_reads_is_found_and_put_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with(((1, 3), 23_600, directory.path()), |config| {
        config.log.scrub_s = Some(1);
    });
    let mut client = cluster.client(1);
    fill(&mut client, "a", (500, 1_000));
    for number in 1..=3 {
        let before = cluster.metric(number, "rota_log_checkpoints_total ");
        state(&cluster, number, before);
    }
    let file = &segments(&cluster, 2)[0];
    let good = fs::read(file).expect("it is there");
    let flipped = |at: usize| {
        let file = File::options().write(true).open(file).expect("it is ours");
        file.write_at(&[good[at] ^ 1], at as u64)
            .expect("it is ours");
    };
    // While the process runs, and clients read its memory.
    flipped(good.len() / 2);
    cluster.wait_for(2, "rota_log_repaired_total ", |repaired| repaired == 1);
    assert_eq!(cluster.metric(2, "rota_log_damaged_total "), 1);
    assert!(fs::read(file).expect("it is there")[64..] == good[64..]);
    let read = cluster.metric(2, "rota_log_scrubbed_bytes_total ");
    let rounds = cluster.metric(2, "rota_log_scrubs_total ");
    // Nobody gives the entries now: it is tried again.
    cluster.end(1);
    cluster.end(3);
    flipped(good.len() / 3);
    cluster.wait_for(2, "rota_log_damaged_total ", |damaged| damaged == 2);
    cluster.wait_for(2, "rota_log_scrubs_total ", |count| count > rounds + 1);
    assert_eq!(cluster.metric(2, "rota_log_repaired_total "), 1);
    assert!(cluster.metric(2, "rota_log_scrubbed_bytes_total ") > read);
    cluster.begin(1);
    cluster.begin(3);
    cluster.wait_for(2, "rota_log_repaired_total ", |repaired| repaired == 2);
    assert!(fs::read(file).expect("it is there")[64..] == good[64..]);
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

/// The files of the log that was made first.
fn of_first_log(cluster: &Cluster, number: u16) -> Vec<PathBuf> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let is_it =
        |path: &PathBuf| name(path).is_some_and(|name| name.starts_with("l0000000000000001-"));
    segments(cluster, number)
        .into_iter()
        .filter(is_it)
        .collect()
}

/// Multi-Ring §7.3: the disk is freed though clients append as fast as they are answered.
#[test]
fn what_is_trimmed_frees_the_disk_while_clients_append() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((1, 3), 29_400, directory.path());
    let mut client = cluster.client(1);
    // Four files.
    fill(&mut client, "a", (500, 200_000));
    for number in 1..=3 {
        cluster.wait_for(number, "rota_log_disk_bytes ", |bytes| bytes > 95_000_000);
        assert!(of_first_log(&cluster, number).len() >= 3);
    }
    let (is_over, appended) = (AtomicBool::new(false), AtomicU64::new(0));
    let (took, meanwhile) = thread::scope(|scope| {
        for writer in 0..4_u16 {
            let (cluster, is_over, appended) = (&cluster, &is_over, &appended);
            scope.spawn(move || {
                let mut client = cluster.client(writer % 3 + 1);
                let (log, value) = (format!("b{writer}"), "v".repeat(10_000));
                while !is_over.load(SeqCst) {
                    let line = ["XADD", &log, "MAXLEN", "100", "*", "n", &value];
                    assert!(client.send(&line));
                    assert!(matches!(client.hear(), Reply::Bulk(_)));
                    appended.fetch_add(1, SeqCst);
                }
            });
        }
        thread::sleep(Duration::from_secs(1));
        let (began, before) = (Instant::now(), appended.load(SeqCst));
        let trimmed = client.say("XTRIM a MAXLEN 1");
        let is_free = |number: u16| of_first_log(&cluster, number).len() == 1;
        while !(1..=3).all(is_free) && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(20));
        }
        let (took, meanwhile) = (began.elapsed(), appended.load(SeqCst) - before);
        is_over.store(true, SeqCst);
        assert_eq!(trimmed, Reply::Integer(499));
        (took, meanwhile)
    });
    println!("freed in {took:?}, while {meanwhile} entries were appended");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(meanwhile > 10, "nobody appended");
}

/// A process that was stopped while it got entries did not start before it had them, and its acceptors were away so
/// long.
#[test]
fn who_is_stopped_in_the_middle_of_a_state_votes_when_it_is_back_and_gets_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with_short_memory(29_500, directory.path());
    let mut client = cluster.client(1);
    fill(&mut client, "a", (100, 1_000));
    let expected = client.say("XRANGE a - +");
    for number in 1..=3 {
        let before = cluster.metric(number, "rota_log_checkpoints_total ");
        for _ in 0..200 {
            client.say("XADD c * n 1");
        }
        state(&cluster, number, before);
    }
    cluster.end(3);
    fs::remove_dir_all(cluster.directory(3)).expect("it is there");
    for _ in 0..1_500 {
        client.say("XADD c * n 1");
    }
    // Nobody can give the entries of one log.
    let aside = directory.path().join("aside");
    fs::create_dir(&aside).expect("it is ours");
    for number in [1, 2] {
        cluster.end(number);
    }
    for number in [1, 2] {
        for file in of_first_log(&cluster, number) {
            let to = aside.join(format!("{number}"));
            fs::create_dir_all(&to).expect("it is ours");
            let name = file.file_name().expect("a name");
            fs::rename(&file, to.join(name)).expect("it is there");
        }
    }
    for number in [1, 2, 3] {
        cluster.begin(number);
    }
    let mut client = cluster.client(1);
    cluster.wait_for(3, "rota_log_missing_entries ", |missing| missing == 100);
    assert_eq!(cluster.metric(3, "rota_log_open "), 0);
    cluster.end(3);
    cluster.begin(3);
    cluster.wait_for(3, "rota_log_missing_entries ", |missing| missing == 100);
    // With another process away there is a majority of the acceptors only with its own.
    cluster.end(2);
    let id = client.insist("XADD d * n 1");
    assert_eq!(id, Reply::from("1-0"));
    assert_eq!(cluster.metric(3, "rota_log_open "), 0);
    give_back(&aside.join("2"), &cluster.directory(2).join("entries"));
    cluster.begin(2);
    for number in [3, 1] {
        let mut client = cluster.client(number);
        assert!(client.insist("XRANGE a - +") == expected, "{number}");
        assert_eq!(client.say("XLEN d"), Reply::Integer(1));
    }
}

fn give_back(from: &Path, to: &Path) {
    for file in fs::read_dir(from).expect("it is there") {
        let file = file.expect("it is there").path();
        let name = file.file_name().expect("a name");
        fs::rename(&file, to.join(name)).expect("it is there");
    }
}
