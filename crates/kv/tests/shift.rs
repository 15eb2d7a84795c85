//! Slots move between real processes while clients write; and the process that moves them goes.

#[path = "common/cluster.rs"]
mod cluster;
mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use cluster::Cluster;
use common::{Client, tcp};

const KEYS: u64 = 500;

/// A client that knows a cluster: it goes where it is sent, and no further than clients do.
struct Guided {
    at: Client,
}

impl Guided {
    fn say(&mut self, line: &str) -> Reply {
        for _ in 0..5 {
            match self.at.say(line) {
                Reply::Error(text) if text.starts_with("MOVED ") => {
                    let address = text.rsplit(' ').next().expect("an address");
                    self.at = Client::new(tcp(address.parse().expect("an address")));
                }
                reply => return reply,
            }
        }
        panic!("{line}: it was sent on too often");
    }
}

/// Adds one to keys again and again, and says how often it did so to each, and how long it waited at most.
fn count(
    mut say: impl FnMut(&str) -> Reply,
    first: u64,
    stop: &AtomicBool,
) -> (Vec<i64>, Duration) {
    let (mut counts, mut longest) = (vec![0; KEYS as usize], Duration::ZERO);
    for number in (first..).step_by(7) {
        if stop.load(SeqCst) {
            break;
        }
        let at = (number % KEYS) as usize;
        let asked = Instant::now();
        let reply = say(&format!("INCR key{at}"));
        longest = longest.max(asked.elapsed());
        assert!(matches!(reply, Reply::Integer(_)), "{reply:?}");
        counts[at] += 1;
    }
    (counts, longest)
}

/// Ends the clients, also when what they are beside fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn field(reply: &Reply, name: &str) -> i64 {
    let Reply::Array(fields) = reply else {
        panic!("{reply:?}");
    };
    let mut pairs = fields.as_chunks::<2>().0.iter();
    match pairs.find(|[field, _]| *field == Reply::from(name)) {
        Some([_, Reply::Integer(number)]) => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn clients_see_no_error_and_lose_nothing_while_slots_move_to_and_fro() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 2), 21_500, directory.path());
    let mut admins = [1, 3].map(|number| cluster.client(number));
    for admin in &mut admins {
        admin.insist("SET ready 1");
        admin.insist("DEL ready");
    }
    let (stop, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let results: Vec<(Vec<i64>, Duration)> = thread::scope(|scope| {
        let (stop, cluster) = (&stop, &cluster);
        let ends = Ends(stop);
        let plain = [1, 2, 3, 4].map(|number| {
            scope.spawn(move || {
                let mut client = cluster.client(number);
                count(|line| client.say(line), u64::from(number), stop)
            })
        });
        let guided = [1, 3].map(|number| {
            scope.spawn(move || {
                let at = cluster.cluster_client(number);
                let mut client = Guided { at };
                count(|line| client.say(line), u64::from(number), stop)
            })
        });
        for _ in 0..6 {
            // A quarter of all goes to the second, and comes back.
            for (admin, to) in admins.iter_mut().zip([2, 1]) {
                let reply = admin.say(&format!("ROTA MOVE {to} 2000-6095"));
                assert_eq!(field(&reply, "slots"), 4_096, "{reply:?}");
                let freeze = field(&reply, "longest_freeze_us");
                moved.fetch_max(freeze.unsigned_abs(), SeqCst);
            }
        }
        drop(ends);
        let threads = plain.into_iter().chain(guided);
        threads
            .map(|thread| thread.join().expect("no error"))
            .collect()
    });
    let longest = results.iter().map(|(_, longest)| *longest).max();
    let done: i64 = results.iter().flat_map(|(counts, _)| counts).sum();
    println!(
        "{done} done; nobody waited longer than {longest:?}; a group was frozen for {} us at most",
        moved.load(SeqCst)
    );
    for at in 0..KEYS {
        let own = results.iter().map(|(counts, _)| counts[at as usize]);
        let expected = match own.sum::<i64>() {
            0 => Reply::Null,
            sum => Reply::from(sum.to_string()),
        };
        for admin in &mut admins {
            assert_eq!(admin.say(&format!("GET key{at}")), expected);
        }
    }
}

#[test]
fn what_cannot_move_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 2), 21_600, directory.path());
    let mut client = cluster.client(1);
    client.insist("SET ready 1");
    for (line, error) in [
        ("ROTA", "ERR wrong number of arguments for 'rota' command"),
        ("ROTA MOVE 9 0-5", "ERR there is no partition 9"),
        (
            "ROTA MOVE 1 16000",
            "ERR not of this process's partition: 16000",
        ),
        (
            "ROTA MOVE 2 5-4",
            "ERR a partition and slots are needed, as in 2 0-99,105",
        ),
        (
            "ROTA STOP",
            "ERR try ROTA MAP, or ROTA MOVE partition slots",
        ),
    ] {
        assert_eq!(client.say(line), Reply::Error(error.to_owned()), "{line}");
    }
    assert_eq!(field(&client.say("ROTA MOVE 2 0-99,105"), "slots"), 101);
    // It has them, so there is nothing to be done.
    assert_eq!(field(&client.say("ROTA MOVE 2 0-99"), "slots"), 0);
    let map = [(1, "100-104,106-8191"), (2, "0-99,105,8192-16383")];
    let map = map.map(|(of, slots)| Reply::Array(vec![Reply::Integer(of), Reply::from(slots)]));
    assert_eq!(client.say("ROTA MAP"), Reply::Array(map.into()));
}

#[test]
fn slots_of_a_move_whose_process_goes_are_written_to_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((2, 2), 21_700, directory.path());
    let mut client = cluster.client(2);
    for number in 0..KEYS {
        client.insist(&format!("SET key{number} {number}"));
    }
    // It goes in the midst of it, wherever that is.
    for round in 0..3 {
        let mut admin = cluster.client(1);
        let mover = thread::spawn(move || admin.try_say("ROTA MOVE 2 0-8191"));
        thread::sleep(Duration::from_millis(20 + 30 * round));
        cluster.end(1);
        let _ = mover.join();
        for number in 0..KEYS {
            let value = number + round;
            client.insist(&format!("SET key{number} {value}"));
        }
        cluster.begin(1);
        let mut other = cluster.client(4);
        for number in 0..KEYS {
            let expected = Reply::from((number + round).to_string());
            assert_eq!(other.insist(&format!("GET key{number}")), expected);
        }
        cluster.client(1).insist("GET key1");
    }
}

#[test]
fn nothing_moves_nor_waits_while_a_third_partition_has_no_majority() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::start((3, 2), 21_800, directory.path());
    let mut client = cluster.client(3);
    for number in 0..KEYS {
        client.insist(&format!("SET key{number} {number}"));
    }
    let here = |client: &mut Client, number: u64| {
        assert_eq!(
            client.say(&format!("GET key{number}")),
            Reply::from(number.to_string())
        );
    };
    // One of the third is left, which orders nothing.
    cluster.end(6);
    let mut admin = cluster.client(1);
    let mover = thread::spawn(move || admin.say("ROTA MOVE 2 0-999"));
    while !mover.is_finished() {
        // A key of the first, and one of the second.
        here(&mut client, 1);
        here(&mut client, 2);
        thread::sleep(Duration::from_millis(20));
    }
    let silent =
        "ERR a partition does not answer: slots stay where they are; 0 slots had moved before";
    assert_eq!(
        mover.join().expect("an answer"),
        Reply::Error(silent.to_owned())
    );
    cluster.begin(6);
    for number in 0..KEYS {
        client.insist(&format!("GET key{number}"));
    }
    let moved = cluster.client(1).insist("ROTA MOVE 2 0-999");
    assert_eq!(field(&moved, "slots"), 1_000);
    (0..KEYS).for_each(|number| here(&mut client, number));
}

/// What it knows of slots is old when it begins, and it does not get what the others have: they keep no messages that old, and it does not reach their
/// states.
#[test]
fn who_comes_back_behind_moves_and_gets_no_state_sends_nobody_by_an_old_map() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::with_short_memory((2, 3), 21_900, directory.path());
    let mut client = cluster.client(1);
    for number in 0..KEYS {
        client.insist(&format!("SET key{number} 0"));
    }
    cluster.end(3);
    let moved = cluster.client(1).insist("ROTA MOVE 2 0-4095");
    assert_eq!(field(&moved, "slots"), 4_096, "{moved:?}");
    // Until the others have states, and the rings have forgotten what came before.
    let forgotten = Instant::now() + Duration::from_secs(15);
    while Instant::now() < forgotten {
        client.insist("INCR often");
        thread::sleep(Duration::from_millis(20));
    }
    let right = cluster.config.clone();
    for process in &mut cluster.config.kv.process {
        process.state_port = 1;
    }
    cluster.config.kv.process[2].state_port = right.kv.process[2].state_port;
    cluster.begin(3);
    // What it gives to its rings before it has given them up is lost with them, and who waits is told that the outcome is
    // not known.
    until(|| cluster.status(3).rings.is_none(), "it has a state");
    let mut plain = cluster.client(3);
    let mut guided = Guided {
        at: cluster.cluster_client(3),
    };
    plain.insist("GET key0");
    for number in 0..KEYS {
        assert_eq!(plain.say(&format!("INCR key{number}")), Reply::Integer(1));
        assert_eq!(guided.say(&format!("INCR key{number}")), Reply::Integer(2));
        let both = plain.say(&format!("MGET key{number} key0"));
        assert!(
            matches!(&both, Reply::Array(values) if values.len() == 2),
            "{both:?}"
        );
    }
    let status = cluster.status(3);
    let has_none = status.rings.is_none() && status.ended.is_none();
    assert!(has_none, "it has a state: {:?}", status.counts);
    cluster.end(3);
    cluster.config = right;
    cluster.begin(3);
    until(|| cluster.status(3).rings.is_some(), "it gets none");
    assert_eq!(cluster.client(3).insist("GET key7"), Reply::from("2"));
}

fn until(holds: impl Fn() -> bool, else_what: &str) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{else_what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Sets a key of each partition again and again; the longest time that an answer took.
fn longest_wait(cluster: &Cluster, stop: &AtomicBool) -> Duration {
    let mut client = cluster.client(1);
    let mut longest = Duration::ZERO;
    while !stop.load(SeqCst) {
        for line in ["SET b 1", "SET foo 1"] {
            let asked = Instant::now();
            assert_eq!(client.say(line), Reply::OK);
            longest = longest.max(asked.elapsed());
        }
    }
    longest
}

/// A slot of a million keys stopped both partitions for seconds when it was given.
/// `ROTA_MANY_KEYS=1000000 cargo test -p rota-kv --test shift many_keys -- --nocapture` has so many.
#[test]
fn a_slot_of_many_keys_moves_while_others_are_answered() {
    const TOGETHER: u64 = 500;
    let many = std::env::var("ROTA_MANY_KEYS").map_or(20_000, |many| many.parse().expect("keys"));
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start((2, 1), 29_700, directory.path());
    let mut admins = [1, 2].map(|number| cluster.client(number));
    for admin in &mut admins {
        admin.insist("SET ready 1");
        let patience = Some(Duration::from_secs(600));
        admin.stream.set_read_timeout(patience).expect("a socket");
    }
    let slot = rota_resp::slot::of(b"bar");
    for first in (0..many).step_by(TOGETHER as usize) {
        let pairs = (first..first + TOGETHER).map(|number| format!(" {{bar}}{number} {number}"));
        let line = format!("MSET{}", pairs.collect::<String>());
        assert_eq!(admins[0].say(&line), Reply::OK);
    }
    let stop = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        let waits = scope.spawn(|| longest_wait(&cluster, &stop));
        for (admin, to) in admins.iter_mut().zip([2, 1]) {
            let began = Instant::now();
            let reply = admin.say(&format!("ROTA MOVE {to} {slot}"));
            assert_eq!(field(&reply, "slots"), 1, "{reply:?}");
            assert!(field(&reply, "keys") >= many as i64, "{reply:?}");
            let freeze = field(&reply, "longest_freeze_us");
            println!(
                "{many} keys to {to} in {:?}, frozen for {freeze} us",
                began.elapsed()
            );
            let size = cluster.cluster_client(to).say("DBSIZE");
            assert!(
                matches!(size, Reply::Integer(size) if size >= many as i64),
                "{size:?}"
            );
            let last = admin.say(&format!("GET {{bar}}{}", many - 1));
            assert_eq!(last, Reply::from((many - 1).to_string()));
        }
        stop.store(true, SeqCst);
        waits.join().expect("no error")
    });
    println!("others waited for {longest:?} at most");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
