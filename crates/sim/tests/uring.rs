//! U-Ring Paxos, under all faults, with disks.

use rota_sim::campaign::{self, EngineName, Options, Report, protocol};
use rota_sim::plan::{
    Abilities, DiskLoss, DiskMode, DisksPlan, Fault, FaultKind, MILLIS, Plan, Profile,
};

fn run(seeds: std::ops::Range<u64>, change: impl Fn(&mut Options)) -> Report {
    let mut options = Options::new(EngineName::URingPaxos, seeds);
    change(&mut options);
    campaign::run(&options).expect("nothing is written")
}

/// A seed whose world showed something before there was more in it than is drawn for all.
#[track_caller]
fn assert_holds(engine: EngineName, seed: u64, faults: Profile) {
    let options = Options::new(engine, seed..seed + 1);
    let mut plan = Plan::random(seed, protocol(engine), faults, Abilities::ALL);
    plan.set_uring(faults.power(), engine == EngineName::RingPaxos);
    let outcome = campaign::run_plan(&options, &plan, None);
    assert_eq!(outcome.finding, None, "{engine}, seed {seed}");
}

fn happened(report: &Report, rare: &[&str]) {
    for what in rare {
        let count = report.coverage.get(*what).copied();
        assert!(count.unwrap_or(0) > 0, "{what}: {:?}", report.coverage);
    }
}

#[test]
fn one_order_whatever_fails() {
    let report = run(0..14, |_| {});
    assert_eq!(report.violations, []);
    happened(
        &report,
        &[
            "crashes",
            "link_breaks",
            "losses_of_power",
            "missed",
            "places",
            "uring_votes_fetched",
            "written_together",
        ],
    );
}

/// Runs that did not come to an end: who had to begin behind what others have forgotten did not get to know who the
/// members are; words waited for more room than links promise; the longer a log was, the longer each write took.
#[test]
fn runs_that_did_not_end() {
    for seed in [2015, 2069, 2078] {
        assert_holds(EngineName::URingPaxos, seed, Profile::All);
    }
}

/// All nodes lost their power, and what an old coordinator had proposed, its members with it, was decided behind what a new
/// one had: the process that the newer members had was over for ever, and nothing of it was ever delivered.
#[test]
fn who_is_a_member_is_not_forgotten_for_an_older_configuration() {
    assert_holds(EngineName::URingPaxos, 50_089, Profile::Power);
}

#[test]
fn each_family_of_faults_by_itself() {
    for faults in Profile::EACH
        .into_iter()
        .filter(|faults| *faults != Profile::Crowd)
    {
        let report = run(100..101, |options| options.faults = faults);
        assert_eq!(report.violations, [], "{faults}");
        assert!(report.deliveries > 1000, "{faults}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = run(0..4, |_| {});
    let again = run(0..4, |options| options.jobs = 2);
    assert_eq!(once.trace_hash, again.trace_hash);
}

#[test]
fn what_it_has_no_use_for_is_refused() {
    let mut options = Options::new(EngineName::URingPaxos, 0..1);
    options.groups = campaign::GroupsChoice::All;
    assert!(options.check().is_err());
    options.groups = campaign::GroupsChoice::None;
    assert!(options.check().is_ok());
    options.primary = campaign::PrimaryChoice::Dynamic;
    assert!(options.check().is_err());
}

#[test]
fn what_is_not_on_disk_is_not_asked_to_survive_losses_of_power() {
    for engine in [EngineName::AcceleratedRing, EngineName::Lcr] {
        let mut options = Options::new(engine, 0..1);
        options.faults = Profile::Power;
        assert!(options.check().is_err(), "{engine}");
    }
    let report = run(102..104, |options| options.faults = Profile::Power);
    assert_eq!(report.violations, []);
    assert!(report.coverage["losses_of_power"] >= 2);
}

/// In how many of some seeds something is found where disks are like this, and these faults come at all hosts.
fn found(disks: impl Fn(DisksPlan) -> DisksPlan, kind: impl Fn(usize, u64) -> FaultKind) -> usize {
    let options = Options::new(EngineName::URingPaxos, 0..1);
    let broken = (0..6).filter(|seed| {
        let mut plan: Plan = options.plan(*seed);
        plan.disks = plan.disks.map(&disks);
        if let Some(uring) = &mut plan.uring {
            uring.modes.clear();
        }
        plan.faults.clear();
        let (nodes, horizon) = (plan.nodes(), plan.horizon);
        for round in 1..6 {
            for host in 0..nodes {
                let at = horizon * round / 7 + host as u64 % 3 * MILLIS;
                let lasts = 50 * MILLIS;
                let kind = kind(host, round);
                plan.faults.push(Fault { at, lasts, kind });
            }
        }
        campaign::run_plan(&options, &plan, None).finding.is_some()
    });
    broken.count()
}

fn sync(disks: DisksPlan) -> DisksPlan {
    DisksPlan {
        mode: DiskMode::Sync,
        ..disks
    }
}

fn power(host: usize, _: u64) -> FaultKind {
    FaultKind::PowerLoss {
        hosts: vec![host],
        disk: DiskLoss::Unsynced,
    }
}

fn kill(host: usize, disk: DiskLoss) -> FaultKind {
    FaultKind::Kill {
        host,
        outputs: 0,
        host_too: false,
        disk,
        for_good: false,
    }
}

/// The checks see what is lost: all this is beyond what the engine promises.
#[test]
fn what_a_majority_loses_is_found() {
    assert_eq!(found(sync, power), 0);
    let lazy = |disks| DisksPlan {
        mode: DiskMode::Async,
        lag: 1 << 40,
        lies: true,
        ..disks
    };
    let lies = |disks| DisksPlan {
        lies: true,
        ..sync(disks)
    };
    assert_eq!(found(lazy, |host, _| kill(host, DiskLoss::Torn)), 0);
    assert!(found(lazy, power) > 0);
    assert!(found(lies, |host, _| kill(host, DiskLoss::Backup)) > 0);
}

/// Mutant M36: a failed write passes for a good one.
#[test]
fn a_failed_write_that_passes_for_a_good_one_is_found() {
    let fails = |host, round: u64| {
        if round.is_multiple_of(2) {
            kill(host, DiskLoss::Unsynced)
        } else {
            FaultKind::DiskFails { host, full: false }
        }
    };
    let hides = |disks| DisksPlan {
        hides_failures: true,
        ..sync(disks)
    };
    assert_eq!(found(sync, fails), 0);
    assert!(found(hides, fails) > 0);
}

/// The same faults, and those of datagrams.
#[test]
fn one_order_where_values_are_multicast() {
    let report = run(0..8, |options| options.engine = EngineName::RingPaxos);
    assert_eq!(report.violations, []);
    // A process that sent all it had before it listened again was taken for dead by all, and all did so with each new
    // ring.
    assert_holds(EngineName::RingPaxos, 32, Profile::All);
    happened(
        &report,
        &[
            "crashes",
            "datagrams_lost",
            "link_breaks",
            "losses_of_power",
            "places",
            "uring_values_asked_for",
            "uring_values_sent_again",
        ],
    );
}

/// Acceptors keep little in memory: who was away is told what they read back, late, in pieces, and now and then not at all.
#[test]
fn one_order_where_values_leave_memory() {
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        let report = run(0..6, |options| {
            (options.engine, options.faults) = (engine, Profile::Archive);
        });
        assert_eq!(report.violations, [], "{engine}");
        let read = ["uring_votes_read_back", "uring_reads_failed", "crashes"];
        happened(&report, &read);
    }
}

/// Some of the nodes observe: they are in no ring, and deliver the same.
#[test]
fn one_order_where_some_observe() {
    for engine in [EngineName::URingPaxos, EngineName::RingPaxos] {
        let report = run(0..8, |options| {
            (options.engine, options.faults) = (engine, Profile::Observers);
        });
        assert_eq!(report.violations, [], "{engine}");
        happened(&report, &["uring_observers_told", "crashes"]);
    }
}
