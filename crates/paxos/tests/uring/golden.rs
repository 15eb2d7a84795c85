//! The bytes of messages, records and snapshots are those of `testdata/golden`, and are read back as what they were.

#[path = "../../../core/tests/golden/mod.rs"]
mod file;

use std::sync::Arc;

use bytes::Bytes;
use file::Golden;
use rota_core::contract::{LogId, LogRecord, NodeId, Process, Service};
use rota_core::wire::{Part, PartHead, push_whole, service_code, start_frame};
use rota_paxos::uring::accounts::{Command, Replicas, Table};
use rota_paxos::uring::{
    Head, Hello, Proposal, Record, Records, ResumeFrom, Said, Snapshot, Word, Writer, decode,
};
use rota_paxos::{
    AcceptorId, Ballot, Config, Prior, Promise, Proposers, STATE_LOG, VOTES_LOG, Value, ValueId,
    Vote, VoteHead, state_key,
};

use super::alone::{Alone, FOUNDED, process};
use super::rules::{batch_of, follow, second};

const FOUNDATION: u64 = 0x0a0b_0c0d_0e0f_1011;

fn node(id: u16) -> NodeId {
    process(id, 1).node
}

fn who(id: u16) -> Process {
    process(id, 0x0011_2233_4455_0000 + u64::from(id))
}

fn acceptor(id: u16) -> AcceptorId {
    AcceptorId {
        node: node(id),
        store: 0x8182_8384_8586_0000 + u64::from(id),
    }
}

/// A value: a byte for its service, and a frame.
fn value(first: u64) -> Bytes {
    let mut bytes = vec![service_code(Service::Safe)];
    start_frame(&mut bytes, first);
    push_whole(&mut bytes, b"hello");
    bytes.into()
}

const fn ballot(count: u64, by: Process) -> Ballot {
    Ballot { count, by }
}

fn config() -> Arc<Config> {
    Arc::new(Config {
        founded: FOUNDATION,
        number: 0x0201,
        coordinator: who(0x0102),
        ring: vec![who(0x0102), who(0x0304)],
        acceptors: [0x0102, 0x0304, 0x0506].map(acceptor).to_vec(),
        prior: vec![Prior {
            number: 0x01ff,
            acceptors: vec![acceptor(0x0708)],
        }],
    })
}

fn packet(first: u64) -> Vote {
    let id = ValueId {
        process: who(0x0304),
        counter: 0x0504,
    };
    Vote {
        first,
        round: 0x0200,
        value: Value::Packet {
            id,
            frame: value(9),
        },
    }
}

fn votes() -> Vec<Vote> {
    let vote = |first, value| Vote {
        first,
        round: 0x0201,
        value,
    };
    let members = vec![who(0x0102)].into();
    vec![
        packet(0x1001),
        vote(0x1002, Value::Members(0x01ff, members)),
        vote(0x1003, Value::Skip(0x30)),
    ]
}

fn words_of_the_register() -> Vec<(&'static str, Word)> {
    use rota_paxos::Word::{Accept, Accepted, Prepare, Promise, Refused};
    let (one, two) = (ballot(0x0301, who(0x0304)), ballot(0x0302, who(0x0506)));
    let answer = |word| Word::Answer(0x0202, acceptor(0x0304), word);
    vec![
        ("Ask: prepare", Word::Ask(0x0202, Prepare(one))),
        ("Ask: accept", Word::Ask(0x0202, Accept(one, config()))),
        (
            "Answer: promise with nothing accepted",
            answer(Promise(one, None)),
        ),
        (
            "Answer: promise with a configuration",
            answer(Promise(two, Some((one, config())))),
        ),
        ("Answer: accepted", answer(Accepted(one))),
        ("Answer: refused", answer(Refused(one, two))),
    ]
}

fn words() -> Vec<(&'static str, Word)> {
    let hello = |acceptor, joins| {
        Word::Hello(Hello {
            number: 0x0201,
            acceptor,
            complete: 0x0200,
            joins,
        })
    };
    let promise = Promise {
        round: 0x0201,
        acceptor: acceptor(0x0304),
        from: 0x1000,
        held: 0x0ffe,
        kept: 0x0ffd,
        votes: votes(),
    };
    let follow = ResumeFrom {
        round: 0x0201,
        epoch: 0x0203_0405,
        next: 0x1001,
    };
    let part = Bytes::from_static(b"part");
    vec![
        ("Hello of an acceptor", hello(Some(acceptor(0x0304)), false)),
        ("Hello of a process without a vote", hello(None, true)),
        ("Known", Word::Known(config())),
        ("Prepare", Word::Prepare(0x0201, 0x1000)),
        ("Promise", Word::Promise(promise, true)),
        ("ResumeFrom", Word::ResumeFrom(follow, vec![0x1001, 0x1003])),
        ("Fetch", Word::Fetch(0x1001, 0x1101)),
        ("Chosen", Word::Chosen(vec![packet(0x1001)])),
        ("Forgotten", Word::Forgotten(0x1002, part, false)),
        ("Leaving", Word::Leaving),
        ("Want", Word::Want(vec![7, 0x0108])),
        ("Value", Word::Value(0x0504, value(9))),
        ("Need", Word::Need(0x1009)),
        ("Watch", Word::Watch(0x100a)),
        ("Decided", Word::Decided(0x100b)),
        ("Offer", Word::Offer(acceptor(0x0304), 0x100c)),
    ]
}

/// A batch, and its records, in a ring of two.
fn batch() -> (Head, Bytes, Vec<Record>) {
    let head = Head {
        founded: FOUNDATION,
        round: 0x0201,
        epoch: 0x0203_0405,
        start: 0x1000,
        kept: 0x0ffd,
        from: 0x1001,
        complete: true,
    };
    let (own, stranger) = (who(0x0304), who(0x0909));
    let id = |process, counter| ValueId { process, counter };
    let mut batch = Writer::new(&head, 10_000, 10_000);
    batch.value(Some(1), id(own, 300), &value(1));
    batch.value(None, id(stranger, 5), &value(2));
    batch.proposal(Some(1), id(own, 301));
    batch.packet(Some(1), id(own, 302), &value(3), false);
    batch.packet(Some(1), id(own, 303), &value(4), true);
    batch.members(7, &[who(0x0102), own]);
    batch.skip(300);
    batch.voted(2, 400);
    batch.learnt(1, 401);
    batch.lost(0, 3);
    batch.log_failed(2);
    let packet = |counter, frame, whole| {
        Record::Proposal(Proposal::Packet {
            id: id(own, counter),
            frame,
            whole,
        })
    };
    let members = vec![who(0x0102), own].into();
    let records = vec![
        Record::Value(id(own, 300), value(1)),
        Record::Value(id(stranger, 5), value(2)),
        Record::Proposal(Proposal::Named(id(own, 301))),
        packet(302, value(3), false),
        packet(303, value(4), true),
        Record::Proposal(Proposal::Members(7, members)),
        Record::Proposal(Proposal::Skip(300)),
        Record::Voted(2, 400),
        Record::Learnt(1, 401),
        Record::Lost(0, 3),
        Record::LogFailed(2),
    ];
    (head, batch.finish().into_bytes(), records)
}

#[test]
fn messages() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "uring");
    for (name, word) in words().into_iter().chain(words_of_the_register()) {
        let bytes = golden.compare(name, &word.encode(FOUNDATION));
        let read = decode(bytes.into());
        assert_eq!(read, Some((FOUNDATION, Said::Word(word))), "{name}");
    }
    let (head, bytes, records) = batch();
    let bytes = golden.compare("batch", &bytes);
    let Some((_, Said::Batch(read, body))) = decode(bytes.into()) else {
        panic!("it is a batch");
    };
    assert_eq!(read, head);
    let ring = [who(0x0102), who(0x0304)];
    let read: Result<Vec<Record>, ()> = Records::new(body, &ring).collect();
    assert_eq!(read, Ok(records));

    let head = PartHead {
        cluster: 0x0102_0304,
        proposer: who(0x0304),
        counter: 0x0504,
        index: 1,
        count: 2,
        total: 14,
    };
    let mut datagram = Vec::new();
    head.encode_into(b"behind", &mut datagram, 4);
    let bytes = golden.compare("datagram with a part of a value", &datagram);
    let part = Part::decode(&bytes, 4).expect("a part");
    assert_eq!(
        (part.head, part.offset, part.bytes),
        (head, 8, &b"behind"[..])
    );
    golden.finish();
}

/// The newest record under a key, as an engine has asked its disk for it.
fn asked(engine: &Alone, log: LogId, fits: impl Fn(u64, &[u8]) -> bool) -> (u64, Bytes) {
    let record = engine.records.iter().rev().find_map(|record| match record {
        LogRecord::Put {
            log: of,
            position,
            bytes,
        } if *of == log => {
            let bytes = bytes.clone().into_bytes();
            fits(*position, &bytes).then_some((*position, bytes))
        }
        _ => None,
    });
    record.expect("it was asked for")
}

/// An acceptor that has promised, voted for a value, for members and for a range of nothing, and learnt.
fn voter() -> Alone {
    use rota_paxos::Word::Prepare;
    let mut second = second();
    second.hear(1, rota_paxos::uring::Word::Prepare(1, 1).encode(FOUNDED));
    second.write_all();
    follow(&mut second, 1, 0);
    let (epoch, ring) = (second.follow().epoch, second.config(1).ring.clone());
    let id = ValueId {
        process: process(3, 1),
        counter: 1,
    };
    batch_of(&mut second, epoch, 1, |batch| {
        batch.members(1, &ring);
        batch.packet(None, id, &value(1), true);
        batch.skip(0x30);
        batch.voted(0, 0x33);
    });
    second.write_all();
    let ask = Word::Ask(2, Prepare(ballot(0x0301, process(1, 1))));
    second.hear(1, ask.encode(FOUNDED));
    second.write_all();
    second
}

#[test]
fn records_of_an_acceptor() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "log");
    let second = voter();
    let keys = [
        ("state: promised round", state_key::PROMISED),
        ("state: configuration", state_key::CONFIG),
        ("state: register", state_key::SLOT),
        ("state: name of the store", state_key::STORE),
        ("state: decided", state_key::DECIDED),
    ];
    for (name, key) in keys {
        let (_, bytes) = asked(&second, STATE_LOG, |position, _| position == key);
        golden.compare(name, &bytes);
    }
    for (name, kind) in [("vote: members", 2), ("vote: packet", 1), ("vote: skip", 3)] {
        let is_one = |_, bytes: &[u8]| bytes[VoteHead::BYTES] == kind;
        let (_, bytes) = asked(&second, VOTES_LOG, is_one);
        let span = if kind == 3 { 0x30 } else { 1 };
        let bytes = golden.compare(name, &bytes);
        assert_eq!(VoteHead::read(&bytes), Some(VoteHead { round: 1, span }));
    }
    golden.finish();
    // All of it is found again.
    let mut again = Alone::new(process(2, 2), second.all_on_disk());
    again.join();
    assert_eq!(again.engine.number(), 1);
    assert_eq!(again.votes_as(), second.votes_as());
}

fn snapshot() -> Snapshot {
    let members = [who(0x0102), who(0x0304)];
    let lives = vec![
        (members[0], 0x0611, true, vec![]),
        (
            members[1],
            0x0622,
            false,
            vec![rota_core::contract::Incarnation(0x0733)],
        ),
    ];
    let mut cut = vec![service_code(Service::Safe) | 0x80];
    start_frame(&mut cut, 5);
    rota_core::wire::push_first(&mut cut, false, 100, b"head");
    let mut table = Table::default();
    let replicas: Replicas = [node(0x0b01), node(0x0b02)].into();
    for (instance, command) in [
        (0x0801, Command::Hold(0x0c01, replicas, 0)),
        (0x0900, Command::Mark(0x0c01, node(0x0b01), 0x0802)),
        (0x0901, Command::Pin(node(0x0b02), 0x0803, 0x0900)),
    ] {
        table.apply((instance, 0x0a00), command).expect("it holds");
    }
    let mut snapshot = Snapshot {
        next: 0x0a01,
        table: Proposers::restore(0x0201, lives),
        view: Some((0x0702, vec![members[0]].into())),
        accounts: table,
        ..Snapshot::default()
    };
    let open = snapshot.open.entry(members[0]).or_default();
    open.values.push((0x0801, cut.into()));
    snapshot
}

/// That of a ring that has ordered the charter of another one, and nothing else.
fn with_charter() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let found = Command::Found(0x0e01, 0x0f02, Bytes::from_static(b"charter"));
    let applied = snapshot.accounts.apply((0x0a04, 0x0a03), found);
    applied.expect("the first of its number");
    snapshot
}

/// That of a ring that has ordered a list of acceptors, with or without a charter.
fn with_list(mut snapshot: Snapshot) -> Snapshot {
    let list = Command::Acceptors(1, [node(0x0b01), node(0x0b03)].into());
    let applied = snapshot.accounts.apply((0x0a05, 0x0a04), list);
    applied.expect("the first");
    snapshot
}

#[test]
fn snapshots_and_commands_on_accounts() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "snapshot");
    for (name, snapshot) in [
        ("snapshot without anything", Snapshot::default()),
        ("snapshot", snapshot()),
        ("snapshot with a charter", with_charter()),
        (
            "snapshot with a list of acceptors",
            with_list(Snapshot::default()),
        ),
        (
            "snapshot with a charter and a list",
            with_list(with_charter()),
        ),
    ] {
        let bytes = golden.compare(name, &snapshot.encode());
        assert_eq!(Snapshot::decode(bytes.into()), Some(snapshot), "{name}");
    }
    let replicas: Replicas = [node(0x0b01), node(0x0b02)].into();
    let commands = [
        (
            "account: hold",
            Command::Hold(0x0c01, replicas.clone(), 0x0d),
        ),
        ("account: replace", Command::Replace(0x0c01, replicas)),
        ("account: release", Command::Release(0x0c01, 0x0801)),
        ("account: mark", Command::Mark(0x0c01, node(0x0b01), 0x0802)),
        ("account: pin", Command::Pin(node(0x0b01), 0x0803, 0x0900)),
        ("account: unpin", Command::Unpin(node(0x0b01))),
        ("account: abandon", Command::Abandon(0x0c01)),
        (
            "account: notice",
            Command::Notice(Bytes::from_static(b"notice")),
        ),
        (
            "account: found",
            Command::Found(0x0e01, 0x0f02, Bytes::from_static(b"charter")),
        ),
        (
            "account: acceptors",
            Command::Acceptors(0x0e03, [node(0x0b01), node(0x0b03)].into()),
        ),
    ];
    for (name, command) in commands {
        let bytes = golden.compare(name, &command.encode(0x0102_0304_0506_0708));
        let read = Command::decode(bytes.into());
        assert_eq!(read, Some((command, 0x0102_0304_0506_0708)), "{name}");
    }
    golden.finish();
}
