//! Many seeds, one after the other and on several threads: totals, failures and how to repeat them.

mod calm;
mod engine;
mod floors;
mod options;
mod report;
mod shrink;

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub use calm::run_calm;
pub use engine::{RINGS, protocol};
pub use options::{Cuts, GroupsChoice, Options, PrimaryChoice, UsageError};
pub use report::{Report, Violation};
pub use rota_core::EngineName;
pub use shrink::shrink;

use crate::checks::Checks;
use crate::groups::Grouped;
use crate::observe::Finding;
use crate::plan::Plan;
use crate::ring::{Holds, Layered, Ring, SafeIsHeld};
use crate::trace::Traces;
use crate::uring::{URingSystem, WholeChecks};
use crate::view_checks::ViewChecks;
use crate::views::{AllHold, FastCastSystem, InViews, LcrSystem};
use crate::world::{Outcome, System, Tally, World};

/// Failing seeds that are shrunk: more of them hardly say more.
const SHRUNK: usize = 3;

/// Runs a campaign.
///
/// # Errors
/// What the system says about trace files.
pub fn run(options: &Options) -> io::Result<Report> {
    let started = Instant::now();
    #[cfg(feature = "mutants")]
    rota_core::mutants::set(options.mutant());
    let next = AtomicU64::new(options.seeds.start);
    let done = Mutex::new(Vec::new());
    quiet_panics(|| {
        std::thread::scope(|scope| {
            for _ in 0..options.jobs.max(1) {
                scope.spawn(|| work(options, &next, &done));
            }
        });
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(seed, _)| *seed);
    let mut report = Report::new(options);
    for (seed, result) in done {
        report.add(&result?, &options.plan(seed));
    }
    report.judge(options);
    let failed: Vec<Outcome> = report.failed.drain(..).collect();
    for (index, outcome) in failed.iter().enumerate() {
        let cuts = if index < SHRUNK {
            quiet_panics(|| shrunk(options, outcome))
        } else {
            options.cuts.clone()
        };
        report.violated(options, outcome, cuts);
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// The least of a failing seed that fails alike.
fn shrunk(options: &Options, failed: &Outcome) -> Cuts {
    let property = failed.finding.as_ref().map(|finding| &finding.property);
    shrink(&options.plan(failed.seed), &options.cuts, |cuts| {
        let mut options = options.clone();
        options.cuts = cuts.clone();
        let again = run_plan(&options, &options.plan(failed.seed), None);
        again.finding.as_ref().map(|finding| &finding.property) == property
    })
}

type Done = Mutex<Vec<(u64, io::Result<Outcome>)>>;

fn work(options: &Options, next: &AtomicU64, done: &Done) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= options.seeds.end {
            return;
        }
        let result = run_traced(options, &options.plan(seed));
        if options.first && !matches!(&result, Ok(outcome) if outcome.finding.is_none()) {
            next.store(options.seeds.end, Ordering::Relaxed);
        }
        if let Ok(mut done) = done.lock() {
            done.push((seed, result));
        }
    }
}

/// Runs one plan, writing its trace if that is wanted.
fn run_traced(options: &Options, plan: &Plan) -> io::Result<Outcome> {
    let Some(directory) = &options.trace else {
        return Ok(run_plan(options, plan, None));
    };
    let mut traces = Traces::create(&directory.join(format!("seed-{}", plan.seed)))?;
    let outcome = run_plan(options, plan, Some(&mut traces));
    traces.finish()?;
    Ok(outcome)
}

/// Runs one plan. An engine or a check that panics is a finding like any other.
pub fn run_plan(options: &Options, plan: &Plan, traces: Option<&mut Traces>) -> Outcome {
    let run = AssertUnwindSafe(|| match options.engine {
        EngineName::FastCast => run_data_path(FastCastSystem, plan, traces),
        EngineName::Lcr => run_data_path(LcrSystem, plan, traces),
        EngineName::RingPaxos | EngineName::URingPaxos => run_whole(plan, traces),
        EngineName::AcceleratedRing | EngineName::TotemRing => run_ring(options, plan, traces),
    });
    panic::catch_unwind(run).unwrap_or_else(|what| Outcome {
        seed: plan.seed,
        virtual_nanos: 0,
        trace_hash: 0,
        tally: Tally::default(),
        finding: Some(Finding::new("panic", said(what.as_ref()))),
    })
}

fn run_ring(options: &Options, plan: &Plan, traces: Option<&mut Traces>) -> Outcome {
    let protocol = protocol(options.engine);
    let ring = Ring(protocol);
    match (plan.primary, plan.groups) {
        (None, None) => run_system(&ring, plan, traces),
        (None, Some(_)) => run_system(&Grouped(ring), plan, traces),
        (Some(layer), None) => run_system(&Layered(protocol, layer), plan, traces),
        (Some(layer), Some(_)) => run_system(&Grouped(Layered(protocol, layer)), plan, traces),
    }
}

fn run_data_path<S>(path: S, plan: &Plan, traces: Option<&mut Traces>) -> Outcome
where
    S: System<Engine: InViews>,
{
    match plan.groups {
        None => run_views(&path, plan, traces),
        Some(_) => run_views(&Grouped(path), plan, traces),
    }
}

fn run_views<S>(system: &S, plan: &Plan, traces: Option<&mut Traces>) -> Outcome
where
    S: System<Engine: InViews>,
{
    let mut checks = ViewChecks::new(plan);
    let mut world = World::new(plan, system)
        .probed_by(AllHold)
        .watched_by(&mut checks);
    if let Some(traces) = traces {
        world = world.watched_by(traces);
    }
    world.run()
}

fn run_whole(plan: &Plan, traces: Option<&mut Traces>) -> Outcome {
    let mut checks = WholeChecks::new(plan);
    let mut world = World::new(plan, &URingSystem).watched_by(&mut checks);
    if let Some(traces) = traces {
        world = world.watched_by(traces);
    }
    world.run()
}

fn run_system<S>(system: &S, plan: &Plan, traces: Option<&mut Traces>) -> Outcome
where
    S: System<Engine: Holds>,
{
    let mut checks = Checks::new(plan);
    let mut world = World::new(plan, system)
        .probed_by(SafeIsHeld)
        .watched_by(&mut checks);
    if let Some(traces) = traces {
        world = world.watched_by(traces);
    }
    world.run()
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned())
}

/// Panics become findings: while `run` runs, they are not shown as well.
fn quiet_panics<T>(run: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = run();
    panic::set_hook(hook);
    result
}
