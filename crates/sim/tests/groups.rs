//! Daemons with groups and clients over all engines, under all faults.

use rota_sim::campaign::{self, EngineName, GroupsChoice, Options, PrimaryChoice, RINGS, Report};

fn run(engine: EngineName, seeds: std::ops::Range<u64>, primary: PrimaryChoice) -> Report {
    let mut options = Options::new(engine, seeds);
    options.groups = GroupsChoice::All;
    options.primary = primary;
    campaign::run(&options).expect("nothing is written")
}

#[test]
fn clients_see_what_they_may_under_all_faults() {
    for engine in RINGS {
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

/// Daemons that are in no view tell their clients so, and what they missed.
#[test]
fn clients_see_what_they_may_over_primary_views() {
    for engine in [EngineName::FastCast, EngineName::Lcr] {
        let report = run(engine, 0..25, PrimaryChoice::Drawn);
        assert_eq!(report.violations, [], "{engine}");
        for property in [
            "K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "UTO", "VS2",
        ] {
            assert!(report.coverage[property] > 0, "{property}, {engine}");
        }
        for rare in [
            "clients_excluded",
            "clients_included",
            "clients_missed",
            "clients_greeted",
            "asked_while_excluded",
            "views_of_several_sets",
            "groups_elsewhere",
            "groups_interrupted",
            "groups_again",
            // Of stories alone.
            "mutes",
            "clients_skipped",
            "messages_held",
            "groups_parts",
        ] {
            assert!(report.coverage[rare] > 0, "{rare}, {engine}");
        }
        assert!(!report.coverage.contains_key("transitional_signals"));
    }
}

#[test]
fn groups_work_over_views_of_voting_members() {
    for engine in [EngineName::FastCast, EngineName::Lcr] {
        let report = run(engine, 200..206, PrimaryChoice::Dynamic);
        assert_eq!(report.violations, [], "{engine}");
        assert!(report.coverage["K4"] > 0, "{engine}");
    }
}

/// Clients get messages that the layer below holds back in the same order.
#[test]
fn groups_work_over_the_layer_of_primaries() {
    let report = run(EngineName::AcceleratedRing, 0..15, PrimaryChoice::Dynamic);
    assert_eq!(report.violations, []);
    assert!(report.coverage["P1"] > 0 && report.coverage["K4"] > 0);
}

#[test]
fn the_same_seed_gives_the_same_events_of_clients() {
    for (engine, seeds) in [
        (EngineName::AcceleratedRing, 0..8),
        (EngineName::FastCast, 0..4),
        (EngineName::Lcr, 0..4),
    ] {
        let once = run(engine, seeds.clone(), PrimaryChoice::Drawn);
        let again = run(engine, seeds, PrimaryChoice::Drawn);
        assert_eq!(once.trace_hash, again.trace_hash, "{engine}");
    }
}
