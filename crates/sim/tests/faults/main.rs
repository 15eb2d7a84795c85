//! The faults themselves, on an engine that uses all of the contract and orders nothing.

mod toy;

use std::collections::BTreeSet;

use rota_check::event::{Event, EventKind};
use rota_core::contract::{Process, Time};
use rota_ring::Protocol;
use rota_sim::observe::{Coverage, Finding, Observer};
use rota_sim::plan::{
    Abilities, DiskLoss, DiskMode, DisksPlan, Fault, FaultKind, MILLIS, Matrix, Plan, Profile,
    SECONDS,
};
use rota_sim::world::{Outcome, World};
use toy::Toys;

/// Keeps what a test wants to look at.
#[derive(Default)]
struct Notes {
    starts: Vec<(Time, Process)>,
    crashes: Vec<(Time, Process)>,
    confs: u64,
    losses: Vec<DiskLoss>,
    ends: u32,
}

impl Observer for Notes {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        match &event.kind {
            EventKind::Start => self.starts.push((event.time, event.process)),
            EventKind::Crash => self.crashes.push((event.time, event.process)),
            EventKind::Configuration(_) => self.confs += 1,
            _ => {}
        }
        Ok(())
    }

    fn disk_lost(&mut self, _: rota_core::contract::NodeId, loss: DiskLoss) {
        self.losses.push(loss);
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        self.ends += 1;
        Ok(())
    }
}

/// Three toys and these faults.
fn plan(faults: Vec<Fault>) -> Plan {
    let mut plan = Plan::plain(3, Protocol::Accelerated);
    plan.horizon = 2 * SECONDS;
    plan.faults = faults;
    plan
}

fn run(plan: &Plan, toys: Toys) -> (Outcome, Notes) {
    let mut notes = Notes::default();
    let outcome = World::new(plan, &toys).watched_by(&mut notes).run();
    (outcome, notes)
}

fn kill(at: u64, outputs: u32, disk: DiskLoss) -> Fault {
    let kind = FaultKind::Kill {
        host: 1,
        outputs,
        host_too: false,
        disk,
        for_good: false,
    };
    let lasts = 100 * MILLIS;
    Fault { at, lasts, kind }
}

#[test]
fn a_killed_process_comes_back_as_another_one() {
    let (outcome, notes) = run(
        &plan(vec![kill(SECONDS, 0, DiskLoss::Nothing)]),
        Toys::default(),
    );
    assert_eq!(outcome.finding, None);
    assert_eq!(
        (notes.starts.len(), notes.crashes.len(), notes.ends),
        (4, 1, 1)
    );
    let (first, again) = (notes.crashes[0].1, notes.starts[3].1);
    assert_eq!(first.node, again.node);
    assert_ne!(first.incarnation, again.incarnation);
    assert_eq!(notes.losses, [DiskLoss::Nothing]);
    let waited = notes.starts[3].0.since(notes.crashes[0].0);
    assert_eq!(waited, 100 * MILLIS);
}

#[test]
fn a_process_can_be_killed_between_any_two_outputs() {
    let halves = |outputs| {
        let plan = plan(vec![kill(SECONDS, outputs, DiskLoss::Nothing)]);
        let (outcome, _) = run(&plan, Toys::default());
        assert_eq!(outcome.finding, None);
        outcome.tally.counter("halves_alone") > 0
    };
    // A toy says hello in two halves; the second is never sent when it dies after an odd number.
    let alone: Vec<bool> = (0..4).map(halves).collect();
    assert_eq!(alone, [false, true, false, true]);
}

#[test]
fn a_process_that_sends_nothing_is_killed_all_the_same() {
    let mut plan = plan(vec![kill(SECONDS, 1_000_000, DiskLoss::Nothing)]);
    plan.faults[0].lasts = u64::MAX;
    let (outcome, notes) = run(&plan, Toys::default());
    assert_eq!((outcome.finding, notes.crashes.len()), (None, 1));
}

#[test]
fn a_dead_process_is_told_of_and_a_dead_host_is_not() {
    for host_too in [false, true] {
        let mut fault = kill(SECONDS, 0, DiskLoss::Nothing);
        if let FaultKind::Kill { host_too: dead, .. } = &mut fault.kind {
            *dead = host_too;
        }
        let (outcome, _) = run(&plan(vec![fault]), Toys::default());
        assert_eq!(outcome.finding, None);
        let told = outcome.tally.counter("peers_unreachable");
        assert_eq!(told == 0, host_too, "{told}");
    }
}

#[test]
fn what_was_durable_before_it_was_told_is_forgotten_only_when_the_disk_is_lost() {
    let forgotten = |disk, toys| {
        let faults = (1..30).map(|n| kill(n * 25 * MILLIS, n as u32 % 3, disk));
        let mut plan = plan(faults.collect());
        plan.disk_latency = (MILLIS, 30 * MILLIS);
        for fault in &mut plan.faults {
            fault.lasts = 5 * MILLIS;
        }
        let (outcome, _) = run(&plan, toys);
        assert_eq!(outcome.finding, None, "{disk:?}");
        outcome.tally.counter("numbers_forgotten")
    };
    for disk in [DiskLoss::Nothing, DiskLoss::Unsynced, DiskLoss::Torn] {
        assert_eq!(forgotten(disk, Toys::default()), 0, "{disk:?}");
    }
    assert!(forgotten(DiskLoss::Everything, Toys::default()) > 0);
    assert!(forgotten(DiskLoss::Backup, Toys::default()) > 0);
    // The world does show who tells what is not durable yet.
    let hasty = Toys {
        hasty: true,
        ..Toys::default()
    };
    assert!(forgotten(DiskLoss::Unsynced, hasty) > 0);
}

#[test]
fn nothing_that_waits_for_a_failed_write_is_sent() {
    let at = 0;
    let kind = FaultKind::DiskFails {
        host: 2,
        full: true,
    };
    let lasts = SECONDS;
    let mut plan = plan(vec![Fault { at, lasts, kind }]);
    for host in &mut plan.hosts {
        host.start = MILLIS;
    }
    let (outcome, _) = run(&plan, Toys::default());
    assert_eq!(outcome.finding, None);
    assert!(outcome.tally.counter("persist_failed") > 0);
    assert!(outcome.tally.coverage["sends_not_made"] > 0);
    // Its first hello is heard when the disk works again.
    assert!(outcome.tally.counter("persisted") >= 3);
}

/// The count of numbers that toys with such disks forget, over many faults of a kind. The faults hit all or two.
fn forgotten(disks: DisksPlan, toys: Toys, kind: impl Fn(u64) -> FaultKind) -> (u64, Coverage) {
    let fault = |n| {
        let (at, kind) = (n * 50 * MILLIS, kind(n));
        let is_disk = matches!(kind, FaultKind::DiskFails { .. });
        let lasts = if is_disk { 120 } else { 5 } * MILLIS;
        Fault { at, lasts, kind }
    };
    let faults = (1..30).map(fault);
    let mut plan = plan(faults.collect());
    plan.disks = Some(disks);
    let (outcome, _) = run(&plan, toys);
    assert_eq!(outcome.finding, None, "{disks:?}");
    assert_eq!(outcome, run(&plan, toys).0);
    (
        outcome.tally.counter("numbers_forgotten"),
        outcome.tally.coverage,
    )
}

fn disks(mode: DiskMode) -> DisksPlan {
    DisksPlan {
        mode,
        latency: (MILLIS, 30 * MILLIS),
        slow: 100_000,
        slow_for: 60 * MILLIS,
        lag: 300 * MILLIS,
        per_milli: 0,
        unreadable: 0,
        lies: false,
        hides_failures: false,
    }
}

fn power(n: u64) -> FaultKind {
    FaultKind::PowerLoss {
        hosts: if n.is_multiple_of(2) {
            vec![1, 2]
        } else {
            vec![0, 1, 2]
        },
        disk: [DiskLoss::Nothing, DiskLoss::Unsynced, DiskLoss::Torn][n as usize % 3],
    }
}

fn death(n: u64) -> FaultKind {
    kill(0, n as u32 % 3, DiskLoss::Torn).kind
}

#[test]
fn what_an_answer_says_of_the_disk_is_so() {
    let toys = Toys::default();
    let (lost, coverage) = forgotten(disks(DiskMode::Sync), toys, power);
    assert_eq!((lost, coverage["losses_of_power"]), (0, 29));
    assert!(coverage["restarts"] > 70, "{coverage:?}");
    for mode in [DiskMode::Sync, DiskMode::Async] {
        assert_eq!(forgotten(disks(mode), toys, death).0, 0, "{mode:?}");
    }
    // The world does show whose answers say less.
    assert!(forgotten(disks(DiskMode::Async), toys, power).0 > 0);
    assert!(
        forgotten(disks(DiskMode::Memory), toys, |_| kill(
            0,
            0,
            DiskLoss::Everything
        )
        .kind)
        .0 > 0
    );
    let older = |_| kill(0, 0, DiskLoss::Backup).kind;
    assert!(forgotten(disks(DiskMode::Sync), toys, older).0 > 0);
    let hasty = Toys {
        hasty: true,
        ..toys
    };
    let slow = DisksPlan {
        latency: (40 * MILLIS, 80 * MILLIS),
        ..disks(DiskMode::Sync)
    };
    assert_eq!(forgotten(slow, toys, power).0, 0);
    assert!(forgotten(slow, hasty, power).0 > 0);
}

#[test]
fn who_takes_a_failed_write_for_a_good_one_is_found_out() {
    let fails = |n: u64| {
        if n % 3 < 2 {
            let (host, full) = (1, n.is_multiple_of(2));
            FaultKind::DiskFails { host, full }
        } else {
            kill(0, 0, DiskLoss::Unsynced).kind
        }
    };
    let mut plan = disks(DiskMode::Sync);
    // A write takes place while it fails.
    (plan.latency, plan.slow) = ((MILLIS, 2 * MILLIS), 0);
    let careless = Toys {
        careless: true,
        ..Toys::default()
    };
    let (lost, coverage) = forgotten(plan, Toys::default(), fails);
    assert!(
        lost == 0 && coverage["persist_failures"] > 0,
        "{coverage:?}"
    );
    assert!(forgotten(plan, careless, fails).0 > 0);
}

#[test]
fn a_cut_splits_the_configuration_and_healing_mends_it() {
    let mut links = Matrix::open(3);
    links.cut_both(0, 2);
    links.cut_both(1, 2);
    let kind = FaultKind::Cut {
        shape: "one alone",
        links,
    };
    let (at, lasts) = (SECONDS, u64::MAX);
    let (outcome, notes) = run(&plan(vec![Fault { at, lasts, kind }]), Toys::default());
    assert_eq!(outcome.finding, None);
    // Alone, growing to three, down to two and one, and three again.
    assert!(notes.confs >= 3 + 3 * 2 + 4, "{}", notes.confs);
}

#[test]
fn a_world_that_does_not_come_to_rest_is_a_finding() {
    let nostalgic = Toys {
        nostalgic: true,
        ..Toys::default()
    };
    let mut fault = kill(SECONDS, 0, DiskLoss::Nothing);
    fault.lasts = u64::MAX;
    if let FaultKind::Kill { for_good, .. } = &mut fault.kind {
        *for_good = true;
    }
    let plan = plan(vec![fault]);
    let (outcome, notes) = run(&plan, nostalgic);
    assert_eq!(
        outcome.finding.map(|finding| finding.property),
        Some("C8".to_owned())
    );
    assert_eq!(notes.ends, 0);
    assert_eq!(run(&plan, Toys::default()).0.finding, None);
}

#[test]
fn every_fault_happens_in_some_seed_and_the_same_seed_gives_the_same_run() {
    let mut coverage = Coverage::new();
    let mut hashes = BTreeSet::new();
    for seed in 0..40 {
        let mut plan = Plan::random(seed, Protocol::Accelerated, Profile::All, Abilities::ALL);
        plan.groups = None;
        for host in &mut plan.hosts {
            host.source.budget = 0;
        }
        // A toy keeps its messages to itself, and forms no rings.
        let suits = |kind: &FaultKind| {
            !matches!(
                kind,
                FaultKind::Rush { .. } | FaultKind::Snipe | FaultKind::Mute
            )
        };
        plan.faults.retain(|fault| suits(&fault.kind));
        // A toy takes a silence of ten hellos for a death: heavy losses are none of its strengths.
        for lane in &mut plan.net.lanes {
            lane.loss = lane.loss.min(100_000);
        }
        let (outcome, _) = run(&plan, Toys::default());
        assert_eq!(outcome.finding, None, "seed {seed}");
        assert_eq!(outcome, run(&plan, Toys::default()).0, "seed {seed}");
        hashes.insert(outcome.trace_hash);
        for (what, count) in outcome.tally.coverage {
            *coverage.entry(what).or_default() += count;
        }
    }
    assert_eq!(hashes.len(), 40);
    let never: Vec<_> = coverage.iter().filter(|(_, count)| **count == 0).collect();
    // A toy recovers nothing, and has no transitional configurations.
    let expected = [(&"transitional_deliveries", &0)];
    assert_eq!(never, expected, "{coverage:?}");
}
