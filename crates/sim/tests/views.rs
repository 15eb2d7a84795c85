//! FastCast and LCR beside a ring, under all faults.

use rota_sim::campaign::{self, EngineName, GroupsChoice, Options, PrimaryChoice, Report};
use rota_sim::plan::Profile;

const ENGINES: [EngineName; 2] = [EngineName::FastCast, EngineName::Lcr];

fn run(engine: EngineName, seeds: std::ops::Range<u64>, change: impl Fn(&mut Options)) -> Report {
    let mut options = Options::new(engine, seeds);
    options.groups = GroupsChoice::None;
    change(&mut options);
    campaign::run(&options).expect("nothing is written")
}

#[test]
fn one_order_whatever_fails() {
    for engine in ENGINES {
        let report = run(engine, 0..25, |_| {});
        assert_eq!(report.violations, [], "{engine}");
        for rare in [
            "views_forced_packets",
            "views_tentative",
            "views_excluded",
            "crashes",
            "restarts",
            "snipes",
        ] {
            assert!(report.coverage[rare] > 0, "{rare}, {engine}");
        }
    }
}

#[test]
fn each_family_of_faults_by_itself() {
    for engine in ENGINES {
        // Power is for those who vote, and crowds take longer.
        let each = Profile::EACH.into_iter();
        for faults in each.filter(|faults| !matches!(faults, Profile::Power | Profile::Crowd)) {
            let report = run(engine, 100..103, |options| options.faults = faults);
            assert_eq!(report.violations, [], "{engine}, {faults}");
            assert!(report.deliveries > 1000, "{engine}, {faults}");
        }
    }
}

/// Seed 4 has 35 nodes whose control datagrams do not fit into the smallest packets.
#[test]
fn dozens_of_nodes() {
    let rings = [EngineName::AcceleratedRing, EngineName::TotemRing];
    for engine in ENGINES.into_iter().chain(rings) {
        for seeds in [4..6, 12..14] {
            let report = run(engine, seeds, |options| options.faults = Profile::Crowd);
            assert_eq!(report.violations, [], "{engine}");
            assert!(report.deliveries > 10_000, "{engine}");
        }
    }
}

#[test]
fn where_nodes_vote() {
    for engine in ENGINES {
        let report = run(engine, 200..206, |options| {
            options.primary = PrimaryChoice::Dynamic;
        });
        assert_eq!(report.violations, [], "{engine}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for engine in ENGINES {
        let once = run(engine, 0..5, |_| {});
        let again = run(engine, 0..5, |options| options.jobs = 2);
        assert_eq!(once.trace_hash, again.trace_hash, "{engine}");
    }
}

/// A kill that was left out once took an output with it.
#[test]
fn who_is_spared_goes_on_with_what_it_was_doing() {
    let report = run(EngineName::FastCast, 211..212, |options| {
        options.cuts.keep = Some(vec![1, 3, 6, 7]);
        options.cuts.horizon = Some(439_453_125);
    });
    assert_eq!(report.violations, []);
}
