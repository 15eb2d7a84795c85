//! Broken versions of a process are found out.

use std::time::{Duration, Instant};

use rota_log::mutants::{Mutant, set};
use rota_replica::mutants::hold;
use rota_resp::Reply;

use crate::cluster::{Cluster, node};
use crate::common::Client;

/// Whether a process tells less than another one has acknowledged. It has applied nothing of that when it is asked, for
/// sure, so all that it can say is that it does not know.
fn tells_what_is_old(cluster: &Cluster, clients: &mut [Client]) -> bool {
    let one = Reply::Integer(1);
    assert_eq!(clients[1].insist("XLEN old"), Reply::Integer(0));
    let held = hold(cluster.config.rings.common.cluster, node(2));
    assert_eq!(clients[0].say("XADD old * n 1"), Reply::from("1-0"));
    let told = clients[1].say("XLEN old");
    drop(held);
    !told.is_error() && told != one || clients[1].insist("XLEN old") != one
}

/// Whether entries of several logs are told out of order.
fn tells_out_of_order(_: &Cluster, clients: &mut [Client]) -> bool {
    for number in 0..20 {
        clients[0].say(&format!("XADD {} * n {number}", ["x", "y"][number % 2]));
    }
    let Reply::Array(entries) = clients[0].say("XMERGE STREAMS x y 0 0") else {
        panic!("there are some");
    };
    let value = |entry: &Reply| match entry {
        Reply::Array(parts) => format!("{:?}", parts[2]),
        other => panic!("{other:?}"),
    };
    let values: Vec<String> = entries.iter().map(value).collect();
    let expected = |number: usize| format!("{:?}", Reply::from(number.to_string()));
    values
        .iter()
        .enumerate()
        .any(|(at, value)| !value.contains(&expected(at)))
}

/// Whether who waits is told only when it would have waited no longer, though there is something.
fn tells_nobody(_: &Cluster, clients: &mut [Client]) -> bool {
    let (waits, writes) = clients.split_at_mut(1);
    let began = Instant::now();
    waits[0].send(&["XREAD", "BLOCK", "5000", "STREAMS", "w", "0"]);
    std::thread::sleep(Duration::from_millis(200));
    writes[0].say("XADD w * n 1");
    assert!(matches!(waits[0].hear(), Reply::Array(_)));
    writes[0].say("DEL w");
    began.elapsed() >= Duration::from_secs(5)
}

#[test]
fn each_broken_version_of_a_process_is_found_out() {
    type Looks = fn(&Cluster, &mut [Client]) -> bool;
    let versions: [(Mutant, Looks); 3] = [
        (Mutant::D06, tells_what_is_old),
        (Mutant::D08, tells_out_of_order),
        (Mutant::D10, tells_nobody),
    ];
    for (mutant, is_wrong) in versions {
        let directory = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start((2, 3), 23_200, directory.path());
        let mut clients: Vec<Client> = [1, 2].map(|number| cluster.client(number)).into();
        set(Some(mutant));
        let found = is_wrong(&cluster, &mut clients);
        set(None);
        for log in ["old", "x", "y", "w"] {
            clients[0].insist(&format!("DEL {log}"));
        }
        assert!(found, "{mutant:?} is not found out");
        assert!(!is_wrong(&cluster, &mut clients), "without it");
    }
}
