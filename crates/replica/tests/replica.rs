//! Replicas of two partitions with a ring in common, on real sockets and real disks.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_multiring::{Place, Rank};
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{CallError, Command, Machine, Replica, ReplicaConfig, StartError};

use common::{Ends, PATIENCE, until};

/// Counts commands, and remembers all of them.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
struct Book {
    lines: Vec<(u64, u64, Vec<u8>)>,
    of: BTreeMap<Vec<u8>, u64>,
}

impl Machine for Book {
    type Frozen = Vec<u8>;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let Place { round, rank, .. } = command.place;
        let line = (round, u64::from(rank.0), command.bytes.to_vec());
        self.lines.push(line);
        let count = self.of.entry(command.bytes.to_vec()).or_insert(0);
        *count += 1;
        count.to_le_bytes().to_vec()
    }

    fn freeze(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for (round, rank, bytes) in &self.lines {
            for number in [*round, *rank, bytes.len() as u64] {
                out.extend(number.to_le_bytes());
            }
            out.extend(bytes);
        }
        out
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        *self = Self::default();
        let mut head = [0; 24];
        loop {
            match state.read_exact(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8"));
            let mut bytes = vec![0; number(16) as usize];
            state.read_exact(&mut bytes)?;
            *self.of.entry(bytes.clone()).or_insert(0) += 1;
            self.lines.push((number(0), number(8), bytes));
        }
    }
}

/// Three nodes and three rings: the partitions' own, and one in common.
fn rings(port: u16, votes: &Path) -> RingsConfig {
    let mut config = RingsConfig::loopback(3, 3, port);
    config.common.state_dir = Some(votes.to_owned());
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        ..PaxosConfig::default()
    });
    config
}

fn replica(rings: &RingsConfig, (node, partition): (u16, u32), dir: &Path) -> ReplicaConfig {
    let directory = dir.join(format!("replica-{node}"));
    std::fs::create_dir_all(&directory).expect("a directory");
    let node = NodeId::new(node).expect("not 0");
    let of = (partition, &[partition as u16, 3][..]);
    ReplicaConfig {
        every: Duration::from_millis(300),
        ..ReplicaConfig::new(rings.clone(), node, of, directory)
    }
}

fn start(config: &ReplicaConfig) -> Replica<Book> {
    Replica::start(config, Book::default()).expect("it starts")
}

fn book_of(replica: &Replica<Book>) -> Book {
    replica.read(Book::clone).expect("a whole state")
}

fn lines_of(replica: &Replica<Book>) -> usize {
    let lines = replica.read(|book| book.lines.len());
    lines.expect("a whole state")
}

/// Gives commands until it is told to end, each with a text of its own; some again. How many had an answer.
fn give(replica: &Replica<Book>, own: u16, name: &str, is_over: &AtomicBool) -> u64 {
    let mut client = replica.client(PATIENCE).expect("a session");
    for number in 0_u64.. {
        if is_over.load(SeqCst) {
            return number;
        }
        let ring = Rank(if number % 3 == 0 { 3 } else { own });
        let text = format!("{name} {number}");
        let answer = client.call(ring, text.as_bytes(), PATIENCE);
        let once = 1_u64.to_le_bytes().to_vec();
        assert_eq!(answer, Ok(once.clone()), "{text}");
        if number % 5 == 0 {
            let again = client.again(ring, client.last(), text.as_bytes(), PATIENCE);
            assert_eq!(again, Ok(once), "{text} counts once");
        }
    }
    unreachable!("it is told to end")
}

/// Nodes 1 and 3 are replicas of the first partition, node 2 of the second. Node 3 ends and comes back again and again, with what it has kept.
#[test]
fn a_replica_that_comes_back_has_what_the_others_have() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_000, dir.path());
    let configs = [(1, 1), (2, 2), (3, 1)].map(|of| replica(&rings, of, dir.path()));
    let [first, second, third] = configs.each_ref().map(start);
    let mut slot = Some(third);
    let is_over = AtomicBool::new(false);
    let (began, given) = thread::scope(|scope| {
        let (first, second, is_over) = (&first, &second, &is_over);
        let ends = Ends(is_over);
        let one = scope.spawn(move || give(first, 1, "one", is_over));
        let two = scope.spawn(move || give(second, 2, "two", is_over));
        let mut began = 0;
        for _ in 0..4 {
            let third = slot.take().expect("it runs");
            until("a checkpoint", || third.status().counts.checkpoints > 1);
            let before = third.status().counts.applied;
            until("more behind it", || {
                third.status().counts.applied > before + 20
            });
            third.stop();
            thread::sleep(Duration::from_millis(200));
            let third = start(&configs[2]);
            began += usize::from(third.status().began.is_some());
            slot = Some(third);
        }
        drop(ends);
        let given = (one.join().expect("it ends"), two.join().expect("it ends"));
        (began, given)
    });
    let third = slot.expect("it runs");
    assert_eq!(began, 4, "each began behind a checkpoint");
    let lines = lines_of(&first);
    until("all of it", || lines_of(&third) >= lines);
    let [one, two, three] = [&first, &second, &third].map(book_of);
    assert!(
        one == three,
        "{} and {}",
        one.lines.len(),
        three.lines.len()
    );
    assert!(
        one.of
            .values()
            .chain(two.of.values())
            .all(|count| *count == 1)
    );
    let of_common = |book: &Book| {
        let lines = book.lines.iter().filter(|(_, ring, _)| *ring == 3);
        lines.cloned().collect::<Vec<_>>()
    };
    assert!(
        of_common(&one) == of_common(&two),
        "one order of what both apply"
    );
    assert!(given.0 > 60 && given.1 > 60, "{given:?}");
    assert!(one.lines.len() as u64 >= given.0);
}

/// Who was away for longer than its rings remember gets a checkpoint of another replica, whether it has one of its own or nothing at all. Its clients,
/// which came at once, are answered.
#[test]
fn who_was_away_for_too_long_begins_with_what_another_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut rings = rings(26_120, dir.path());
    if let Some(paxos) = &mut rings.common.paxos {
        paxos.kept_instances = std::num::NonZeroU64::new(400);
    }
    let mut configs = [1, 2, 3].map(|node| replica(&rings, (node, 1), dir.path()));
    let address = |node: u16| std::net::SocketAddr::from(([127, 0, 0, 1], 26_150 + node));
    let node = |number| NodeId::new(number).expect("not 0");
    for config in &mut configs {
        config.peers = [1, 2, 3]
            .map(|number| (node(number), address(number)))
            .into();
    }
    let [first, second, third] = configs.each_ref().map(start);
    let is_over = AtomicBool::new(false);
    let third = thread::scope(|scope| {
        let (first, is_over) = (&first, &is_over);
        let ends = Ends(is_over);
        let giver = scope.spawn(move || give(first, 1, "one", is_over));
        let mut third = third;
        for round in 0..3 {
            until("a checkpoint", || third.status().counts.checkpoints > 0);
            drop(third);
            if round != 1 {
                let checkpoints = &configs[2].checkpoints;
                std::fs::remove_dir_all(checkpoints).expect("it is ours");
                std::fs::create_dir(checkpoints).expect("it is ours");
            }
            let before = first.status().counts.applied;
            until("much behind it", || {
                first.status().counts.applied > before + 900
            });
            third = start(&configs[2]);
            // What comes before it knows that is lost with its rings, and given again.
            let text = format!("three {round}");
            let mut client = third.client(PATIENCE).expect("a session");
            let answer = client.call(Rank(3), text.as_bytes(), PATIENCE);
            assert_eq!(answer, Ok(1_u64.to_le_bytes().to_vec()), "{text}");
            until("a checkpoint of another", || {
                third.status().counts.recoveries > 0
            });
        }
        drop(ends);
        giver.join().expect("it ends");
        third
    });
    let lines = lines_of(&first);
    until("all of it", || lines_of(&third) >= lines);
    until("all of it", || lines_of(&second) >= lines);
    let [one, two, three] = [&first, &second, &third].map(book_of);
    assert!(one == two && two == three);
    assert!(one.of.values().all(|count| *count == 1));
}

/// All processes end at once: what was answered is there when they come back, and a session goes on at another replica.
#[test]
fn when_all_come_back_nothing_that_was_answered_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_040, dir.path());
    let configs = [1, 2, 3].map(|node| replica(&rings, (node, 1), dir.path()));
    let mut session = None;
    for round in 0..3_u64 {
        let [first, second, third] = configs.each_ref().map(start);
        let mut client = match session {
            None => first.client(PATIENCE).expect("a session"),
            Some((id, last)) => second.go_on(id, last),
        };
        for number in 0..50_u64 {
            let text = (100 * round + number).to_le_bytes();
            let ring = Rank([1, 3][number as usize % 2]);
            let answer = client.call(ring, &text, PATIENCE).expect("an answer");
            assert_eq!(answer, 1_u64.to_le_bytes());
        }
        if let Some((_, last)) = session {
            let text = (100 * (round - 1) + 49).to_le_bytes();
            let again = client.again(Rank(3), last, &text, PATIENCE);
            assert_eq!(again, Ok(1_u64.to_le_bytes().to_vec()), "it counts once");
        }
        session = Some((client.id(), client.last()));
        if round == 1 {
            until("a checkpoint", || third.status().counts.checkpoints > 0);
        }
        let applied = [&first, &second, &third];
        for replica in applied {
            let all = 50 * (round as usize + 1);
            until("all of it", || lines_of(replica) == all);
        }
        let [one, two, three] = applied.map(book_of);
        assert!(one == two && two == three);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_080, dir.path());
    let configs = [1, 2, 3].map(|node| replica(&rings, (node, 1), dir.path()));
    let replicas = configs.each_ref().map(start);
    let mut client = replicas[0].client(PATIENCE).expect("a session");
    assert_eq!(
        client.call(Rank(9), b"x", PATIENCE),
        Err(CallError::NotOnRing)
    );
    let large = vec![0; 65 << 20];
    assert_eq!(
        client.call(Rank(1), &large, PATIENCE),
        Err(CallError::TooLarge)
    );
    let mut nobody = replicas[1].go_on(77, 0);
    assert_eq!(
        nobody.call(Rank(1), b"x", PATIENCE),
        Err(CallError::Expired)
    );
    let twice = Replica::start(&configs[0], Book::default());
    assert!(matches!(twice, Err(StartError::Checkpoint(_))), "{twice:?}");

    // No majority: no answer, and nobody knows what becomes of it.
    let [one, two, three] = replicas;
    drop((two, three));
    let short = Duration::from_millis(500);
    let refused = client.call(Rank(1), b"x", short);
    assert!(
        matches!(refused, Err(CallError::Timeout { .. })),
        "{refused:?}"
    );
    drop(one);
    assert_eq!(client.call(Rank(1), b"x", short), Err(CallError::Stopped));

    // The checkpoints of one partition are none of another.
    std::fs::write(dir.path().join("replica-1/store"), b"nonsense").expect("it is ours");
    let damaged = Replica::start(&configs[0], Book::default());
    let said = damaged.expect_err("it is damaged").to_string();
    assert!(said.contains("store"), "{said}");
}

/// Nothing is given to a partition whose ring others use: it keeps its state all the same, since the ring forgets what is before.
#[test]
fn a_partition_that_is_idle_keeps_its_state() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut rings = rings(26_240, dir.path());
    if let Some(paxos) = &mut rings.common.paxos {
        paxos.kept_instances = std::num::NonZeroU64::new(400);
    }
    let configs = [(1, 1), (2, 2), (3, 1)].map(|of| replica(&rings, of, dir.path()));
    let [first, second, _third] = configs.each_ref().map(start);
    let mut client = first.client(PATIENCE).expect("a session");
    let before = second.status().counts.applied;
    until("a checkpoint", || {
        for number in 0..100_u64 {
            let answer = client.call(Rank(1), &number.to_le_bytes(), PATIENCE);
            answer.expect("an answer");
        }
        second.status().counts.checkpoints > 1
    });
    assert_eq!(second.status().counts.applied, before);
}

/// Time and rounds are far away: what was applied is a reason by itself.
#[test]
fn a_checkpoint_is_due_by_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = RingsConfig::loopback(1, 1, 26_950);
    let mut config = ReplicaConfig {
        every: Duration::from_secs(3600),
        bytes: 10_000,
        ..ReplicaConfig::new(
            rings,
            NodeId::new(1).expect("not 0"),
            (1, &[1]),
            dir.path().join("checkpoints"),
        )
    };
    std::fs::create_dir_all(dir.path().join("checkpoints")).expect("a directory");
    config.rings.common.state_dir = Some(dir.path().to_owned());
    let replica = start(&config);
    let mut client = replica.client(PATIENCE).expect("a session");
    let mut give = |count: usize| {
        for _ in 0..count {
            let answer = client.call(Rank(1), &[7; 1000], PATIENCE);
            answer.expect("it is applied");
        }
    };
    assert_eq!(replica.status().sessions_bytes, 0);
    give(5);
    let status = replica.status();
    assert_eq!(status.counts.checkpoints, 0, "5,000 bytes");
    let kept = (status.answers_kept, status.answers_kept_bytes);
    assert!(
        status.sessions_bytes > 0 && kept == (0, 0),
        "a session has the answers"
    );
    give(6);
    until("a checkpoint", || replica.status().counts.checkpoints == 1);
}
