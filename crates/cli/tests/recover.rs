//! `rota storage recover`, as a person runs it, on logs made by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rota_core::contract::{LogId, NodeId};
use rota_node::{EngineName, NodeConfig, PaxosConfig, VoteStorage};
use rota_paxos::{VoteHead, state_key};
use rota_storage::acceptor::{Contents, DiskLog, Identity, Kind, LogOptions, RecordRef, read_all};

const FOUNDED: u64 = 99;

/// A configuration of node 1 alone in the ring, with these acceptors.
fn config(number: u64, acceptors: &[(u16, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(FOUNDED.to_le_bytes());
    out.extend(number.to_le_bytes());
    for process in [false, true] {
        if process {
            out.extend(1_u16.to_le_bytes());
        }
        out.extend(1_u16.to_le_bytes());
        out.extend(5_u64.to_le_bytes());
    }
    out.extend((acceptors.len() as u16).to_le_bytes());
    for (node, store) in acceptors {
        out.extend(node.to_le_bytes());
        out.extend(store.to_le_bytes());
    }
    out.extend(0_u16.to_le_bytes());
    out
}

fn acceptors_of(config: &[u8]) -> Vec<(u16, u64)> {
    let at = |from: usize| &config[from..];
    let u16_at = |from: usize| u16::from_le_bytes(*at(from).first_chunk().unwrap());
    let u64_at = |from: usize| u64::from_le_bytes(*at(from).first_chunk().unwrap());
    let ring = usize::from(u16_at(26));
    let begin = 28 + 10 * ring;
    let count = usize::from(u16_at(begin));
    let of = |index: usize| begin + 2 + 10 * index;
    (0..count)
        .map(|index| (u16_at(of(index)), u64_at(of(index) + 2)))
        .collect()
}

struct Made {
    dir: tempfile::TempDir,
}

impl Made {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = NodeConfig::loopback(3, 7000);
        config.cluster = 7;
        config.engine = EngineName::URingPaxos;
        config.state_dir = Some(dir.path().to_owned());
        config.paxos = Some(PaxosConfig {
            storage: VoteStorage::Sync,
            ..PaxosConfig::default()
        });
        fs::write(dir.path().join("rota.toml"), config.to_toml().unwrap()).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A log of this node: it knows configuration 12 of stores 101, 102 and 103, and has these votes (instance, round).
    fn log(&self, node: u16, decided: u64, votes: &[(u64, u64)]) -> PathBuf {
        let path = self.path(&format!("node-{node}.votes"));
        fs::create_dir(&path).unwrap();
        let options = LogOptions::new(Identity {
            cluster: 7,
            node: NodeId::new(node).unwrap(),
            log: LogId(1),
        });
        let mut log = DiskLog::open(path.clone(), options).unwrap();
        let number = |number: u64| number.to_le_bytes().to_vec();
        let state = [
            (state_key::PROMISED, number(12)),
            (
                state_key::CONFIG,
                config(12, &[(1, 101), (2, 102), (3, 103)]),
            ),
            (state_key::STORE, number(100 + u64::from(node))),
            (state_key::DECIDED, number(decided)),
            (state_key::COMPLETE, number(1)),
        ];
        for (key, bytes) in state {
            put(&mut log, Kind::State, key, &bytes);
        }
        for (at, round) in votes {
            put(&mut log, Kind::Vote, *at, &vote(*round, node));
        }
        log.close().unwrap();
        path
    }

    fn recover(&self, options: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["storage", "recover", "--config"])
            .arg(self.path("rota.toml"))
            .args(options)
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }
}

fn vote(round: u64, node: u16) -> Vec<u8> {
    let head = VoteHead { round, span: 1 };
    let mut bytes = head.encode().to_vec();
    bytes.push(node as u8);
    bytes
}

fn put(log: &mut DiskLog, kind: Kind, first: u64, bytes: &[u8]) {
    let record = RecordRef {
        kind,
        first,
        last: first,
        head: &[],
        bytes,
    };
    log.append(&[record]).unwrap();
    log.commit().unwrap();
}

fn state(contents: &Contents, key: u64) -> Vec<u8> {
    let record = contents.state.iter().find(|record| record.first == key);
    record.unwrap_or_else(|| panic!("key {key}")).bytes.clone()
}

fn number(contents: &Contents, key: u64) -> u64 {
    u64::from_le_bytes(state(contents, key).try_into().unwrap())
}

fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn what_two_logs_have_is_in_a_new_log_of_each_acceptor() {
    let made = Made::new();
    let one = made.log(1, 3, &[(1, 1), (2, 1), (3, 1), (4, 12)]);
    let three = made.log(3, 2, &[(1, 1), (2, 1), (3, 11), (4, 11), (5, 11), (7, 12)]);
    let before = [files(&one), files(&three)];
    let output = made.recover(&["node-1.votes", "node-3.votes", "--into", "new", "--yes"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for line in [
        "log       node-1.votes: node 1, configuration 12, kept from 1, decided before 3, votes before 5",
        "voters    of configuration 12: 1, 2, 3",
        "LOST      what these logs have of 2 places from 6 on: place 6 is in none of them",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(
        text.contains("LOST      nothing: of configuration 12 a majority"),
        "{text}"
    );
    assert_eq!([files(&one), files(&three)], before, "sources are read");
    let logs: Vec<Contents> = (1..=3)
        .map(|node| read_all(made.path(&format!("new/node-{node}.votes"))).unwrap())
        .collect();
    for log in &logs {
        let votes: Vec<(u64, &[u8])> = log.votes.iter().map(|v| (v.first, &v.bytes[..])).collect();
        let wanted = [
            vote(1, 1),
            vote(1, 1),
            vote(11, 3),
            vote(12, 1),
            vote(11, 3),
        ];
        let wanted: Vec<(u64, &[u8])> = (1..).zip(wanted.iter().map(|v| &v[..])).collect();
        assert_eq!(votes, wanted);
        let next = number(log, state_key::PROMISED);
        assert_eq!(next, 1_000_012);
        assert_eq!(number(log, state_key::COMPLETE), next);
        assert_eq!(number(log, state_key::DECIDED), 3);
        assert!(log.life > 1_000_000 && !log.lost_some);
        // One configuration, of the names that these logs have, which nobody has had.
        let config = state(log, state_key::CONFIG);
        assert_eq!(config, state(&logs[0], state_key::CONFIG));
        assert_ne!(config[..8], FOUNDED.to_le_bytes());
        let own = number(log, state_key::STORE);
        let acceptors = acceptors_of(&config);
        assert!(
            acceptors.contains(&(log.identity.node.get(), own)),
            "{acceptors:?}"
        );
        assert!(
            acceptors
                .iter()
                .all(|(_, store)| !(101..=103).contains(store))
        );
        assert_eq!(acceptors.len(), 3);
    }
}

#[test]
fn one_log_of_three_may_lack_what_the_others_had() {
    let made = Made::new();
    made.log(2, 2, &[(1, 1)]);
    let output = made.recover(&["node-2.votes", "--dry-run", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["majority"], false);
    assert_eq!(seen["missing"], serde_json::json!([1, 3]));
    assert_eq!((&seen["decided"], &seen["end"]), (&2.into(), &2.into()));
    let output = made.recover(&["node-2.votes", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Of the acceptors of configuration 12: 1, 3 are not here"),
        "{text}"
    );
    assert!(!made.path("new").exists());
}

#[test]
fn nothing_is_written_without_a_yes_from_logs_in_use_or_over_something() {
    let made = Made::new();
    let path = made.log(2, 2, &[(1, 1)]);
    let refused = |options: &[&str], why: &str| {
        let output = made.recover(options);
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said.contains(why), "{why} in {said}");
        assert!(!made.path("new").exists());
    };
    refused(&["node-2.votes", "--into", "new"], "nobody can be asked");
    refused(&["node-2.votes"], "--into");
    refused(&["node-9.votes", "--into", "new", "--yes"], "node-9.votes");
    fs::create_dir(made.path("there")).unwrap();
    refused(
        &["node-2.votes", "--into", "there", "--yes"],
        "is there already",
    );
    let identity = Identity {
        cluster: 7,
        node: NodeId::new(2).unwrap(),
        log: LogId(1),
    };
    let open = DiskLog::open(path, LogOptions::new(identity)).unwrap();
    refused(&["node-2.votes", "--into", "new", "--yes"], "in use");
    drop(open);
    refused(
        &["node-2.votes", "node-2.votes", "--into", "new", "--yes"],
        "another log is of the same node",
    );
}
