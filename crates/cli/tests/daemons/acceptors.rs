//! The acceptors of a cluster are changed while its daemons run.

use std::time::{Duration, Instant};

use rota_client::Event;
use rota_daemon::MemberReply;
use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};

use crate::cluster::Cluster;
use crate::members::{Load, done, refused};
use crate::native::{PATIENCE, client, member, next};

/// Four nodes, of which the first three vote.
fn four() -> Cluster {
    Cluster::keeping(4, |config, _| {
        config.engine = EngineName::URingPaxos;
        config.timing = TimingName::Relaxed;
        config.paxos = Some(PaxosConfig {
            storage: VoteStorage::Async,
            acceptors: Some(vec![1, 2, 3]),
            ..PaxosConfig::default()
        });
    })
}

/// Waits until daemon `id` says that these nodes vote, as list `number` says.
fn await_voting(cluster: &Cluster, id: u16, number: u64, nodes: &[u16]) -> MemberReply {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = done(cluster, id, &["list"]);
        let acceptors = reply.acceptors.clone().expect("it has acceptors");
        if acceptors.voting == nodes && acceptors.list == number {
            assert_eq!(acceptors.listed, nodes);
            return reply;
        }
        assert!(Instant::now() < until, "daemon {id}: {reply:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_acceptor_is_replaced_under_load_and_its_disk_is_gone() {
    let mut cluster = four();
    await_voting(&cluster, 1, 0, &[1, 2, 3]);
    let load = Load::start(&cluster);
    refused(
        &cluster,
        1,
        &["vote", "9"],
        "node 9 is none of the ring's nodes",
    );
    refused(&cluster, 1, &["vote", "3"], "node 3 is to vote already");
    refused(
        &cluster,
        2,
        &["unvote", "4"],
        "node 4 is not to vote anyway",
    );
    let reply = done(&cluster, 2, &["vote", "4", "--instead-of", "3"]);
    let words = "this is list 1 of the acceptors: 1, 2, 4; they come to it one at a time, each when it has caught up";
    assert_eq!(reply.text, words);
    for id in 1..=4 {
        await_voting(&cluster, id, 1, &[1, 2, 4]);
    }
    cluster.kill(3);
    let votes = cluster.dir().join("state/node-3.votes");
    std::fs::remove_dir_all(&votes).expect("it had a log");
    load.end();

    // Of the acceptors before, one is left: with the new one it is a majority.
    let mut bob = member(&cluster, 4, "bob");
    bob.join("talk").expect("it joins");
    while !matches!(next(&mut bob), Event::View(_)) {}
    cluster.kill(2);
    let mut ann = client(&cluster, 1, "ann");
    ann.send("talk", b"hello").expect("sent");
    while !matches!(next(&mut bob), Event::Message(message) if *message.payload == *b"hello") {}
    refused(
        &cluster,
        1,
        &["vote", "3", "--instead-of", "1"],
        "no majority of these acceptors is there: 2, 3 not",
    );

    // Whoever comes back hears who votes; a daemon that lost its votes is no acceptor by its file.
    cluster.restart(3);
    cluster.restart(2);
    for id in 1..=4 {
        await_voting(&cluster, id, 1, &[1, 2, 4]);
    }
    done(&cluster, 3, &["unvote", "1"]);
    await_voting(&cluster, 3, 2, &[2, 4]);
    ann.send("talk", b"again").expect("sent");
    while !matches!(next(&mut bob), Event::Message(message) if *message.payload == *b"again") {}
    done(&cluster, 4, &["unvote", "2"]);
    await_voting(&cluster, 4, 3, &[4]);
    refused(&cluster, 1, &["unvote", "4"], "the last one is not removed");
}

#[test]
fn engines_without_acceptors_say_so() {
    let cluster = Cluster::start(1, "");
    refused(&cluster, 1, &["vote", "1"], "this engine has no acceptors");
}
