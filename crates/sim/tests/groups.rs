//! Daemons with groups and clients over both rings, under all faults.

use rota_sim::campaign::{self, EngineName, GroupsChoice, Options, PrimaryChoice, Report};

fn run(engine: EngineName, seeds: std::ops::Range<u64>, primary: PrimaryChoice) -> Report {
    let mut options = Options::new(engine, seeds);
    options.groups = GroupsChoice::All;
    options.primary = primary;
    campaign::run(&options).expect("nothing is written")
}

#[test]
fn clients_see_what_they_may_under_all_faults() {
    for engine in EngineName::RINGS {
        let report = run(engine, 0..40, PrimaryChoice::Drawn);
        assert_eq!(report.violations, [], "{engine}");
        for property in ["K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9"] {
            assert!(report.coverage[property] > 0, "{property}, {engine}");
        }
        for rare in [
            "groups_interrupted",
            "groups_late",
            "clients_too_slow",
            "clients_skipped",
            "clients_throttling",
            "messages_held",
            "groups_parts",
            "private_messages",
            "self_leaves",
            "views_by_disconnect",
        ] {
            assert!(report.coverage[rare] > 10, "{rare}, {engine}");
        }
    }
}

/// What the layer below holds back, clients get in the same order.
#[test]
fn groups_work_over_the_layer_of_primaries() {
    let report = run(EngineName::AcceleratedRing, 0..15, PrimaryChoice::Dynamic);
    assert_eq!(report.violations, []);
    assert!(report.coverage["P1"] > 0 && report.coverage["K4"] > 0);
}

#[test]
fn the_same_seed_gives_the_same_events_of_clients() {
    let once = run(EngineName::AcceleratedRing, 0..8, PrimaryChoice::Drawn);
    let again = run(EngineName::AcceleratedRing, 0..8, PrimaryChoice::Drawn);
    assert_eq!(once.trace_hash, again.trace_hash);
}
