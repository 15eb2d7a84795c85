//! `rota bench --connect`: a load for daemons that run already.

use std::process::Command;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::native::meet;

#[test]
fn a_running_cluster_is_loaded_and_all_its_clients_have_one_order() {
    let cluster = Cluster::start(3, "");
    meet(&cluster, &[1, 2, 3]);
    // Two clients are at one daemon.
    let sockets = [1, 2, 3, 3].map(|id| cluster.socket(id).display().to_string());
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["bench", "--connect", &sockets.join(","), "--rate", "10mbit"])
        .args(["--duration", "500ms", "--warm-up", "100ms", "--json"])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["nodes"], 4);
    assert_eq!(
        (&report["complete"], &report["identical"]),
        (&true.into(), &true.into())
    );
    let goodput = report["goodput_mbps"].as_f64().expect("a number");
    assert!((9.0..11.0).contains(&goodput), "{report}");
    let parts = report["goodput_mbps_of_each"].as_array().expect("parts");
    assert_eq!(parts.len(), 4, "each client sends: {report}");
}
