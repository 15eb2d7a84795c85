//! Spread's clients on real daemons.

use std::process::Command;

use crate::both_protocols::is_as_it_should_be;
use crate::cluster::Cluster;

#[test]
fn an_independent_client_of_spread_is_served_by_three_daemons_and_survives_one() {
    let mut cluster = Cluster::start(3, "");
    for round in 0..2 {
        if round > 0 {
            cluster.restart(3);
        }
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../daemon/tests/spread_client.py"
        );
        // -B: no compiled copies beside the sources.
        let output = Command::new("python3")
            .args(["-B", script])
            .args([1, 2, 3].map(|id| cluster.spread(id)))
            .arg(cluster.pid(3).to_string())
            .output();
        let output = output.expect("this test needs python3: `cargo xtask setup`");
        is_as_it_should_be(&output);
    }
}
