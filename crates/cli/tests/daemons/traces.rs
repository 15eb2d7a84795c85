//! The traces that daemons write of their clients.

use std::fs;
use std::path::PathBuf;

use rota_check::trace::Trace;
use rota_check::{Options, Order, check_order};
use rota_client::Envelope;
use rota_node::EngineName;

use crate::cluster::Cluster;
use crate::native::{client, meet, member, next_text, next_view};

#[test]
fn what_clients_do_and_are_told_is_written_down_and_is_legal() {
    judge(Cluster::traced(2, ""), &[1, 2], Order::Evs);
}

/// Two of three go on without the second.
#[test]
fn so_it_is_where_acceptors_vote() {
    let cluster = Cluster::voting(3, EngineName::URingPaxos);
    judge(cluster, &[1, 2, 3], Order::Whole);
}

fn judge(mut cluster: Cluster, nodes: &[u16], order: Order) {
    meet(&cluster, nodes);
    let mut ann = member(&cluster, 1, "ann");
    let mut ben = client(&cluster, 2, "ben");
    let mut dee = member(&cluster, 1, "dee");
    ann.join("g").expect("it joins");
    dee.join("g").expect("it joins");
    ben.join("g").expect("it joins");
    ben.join("h").expect("it joins");
    while next_view(&mut ann).members.len() < 3 {}
    for at in 0..50 {
        let to = Envelope::to_all(["g", "h", "#ann#n1"]).expect("names");
        let to = if at % 2 == 0 { to.self_discard() } else { to };
        ann.send(&to, format!("{at}").as_bytes()).expect("sent");
        assert_eq!(next_text(&mut ben), at.to_string());
    }
    ben.leave("h").expect("it leaves");
    ben.send("g", b"last").expect("sent");
    assert_eq!(next_text(&mut ben), "last");
    ben.close().expect("the daemon closes");
    let mut cy = member(&cluster, 2, "cy");
    cy.join("g").expect("it joins");
    // Its daemon goes: a change of the network.
    assert!(cluster.terminate(2).success());
    while ann.members("g").expect("a list").len() > 2 {}
    for node in nodes.iter().filter(|node| **node != 2) {
        assert!(cluster.terminate(*node).success());
    }

    let files = nodes.iter();
    let files = files.map(|id| cluster.dir().join(format!("{id}.jsonl")));
    let files: Vec<PathBuf> = files.collect();
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a trace"))
        .collect();
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("\"ev\":\"send\",\"client\":\"#ann#n1\""), 50);
    assert_eq!(count("\"ev\":\"deliver\",\"client\":\"#ben#n2\""), 51);
    // Its own, of every other of which it wanted no copy; and the last.
    assert_eq!(count("\"ev\":\"deliver\",\"client\":\"#ann#n1\""), 26);
    assert_eq!(count("\"discard\":true"), 25);
    // Also those who take no membership are told views.
    assert!(count("\"ev\":\"view\",\"client\":\"#ben#n2\"") >= 2);
    assert_eq!(
        count("\"ev\":\"self_leave\",\"client\":\"#ben#n2\",\"group\":\"h\""),
        1
    );
    assert_eq!(count("\"ev\":\"disconnect\",\"client\":\"#ben#n2\""), 1);

    let trace = Trace::from_files(&files).expect("sound traces");
    assert_eq!(trace.shown_order(), order);
    let report = check_order(&trace, &Options::default(), order);
    assert!(report.holds(), "{:#?}", report.violations);
    for verdict in report
        .verdicts
        .iter()
        .filter(|v| ["K2", "K3", "K4", "K5", "K6", "K7", "K8"].contains(&v.property))
    {
        // Members change within the order where there is one of all: nothing is in between.
        let is_case = order == Order::Evs || verdict.property != "K6";
        assert_eq!(verdict.checked > 0, is_case, "{verdict:?}");
    }
}
