//! Makes a failure smaller: fewer faults, a shorter time, a calmer network, while the same property
//! still fails.

use super::{Cuts, Options, run_plan};
use crate::world::Outcome;

/// Runs that one failure may cost.
const TRIES: u32 = 200;

/// The least of a failing plan that was found to fail alike.
pub fn shrink(options: &Options, failed: &Outcome) -> Cuts {
    let Some(finding) = &failed.finding else {
        return options.cuts.clone();
    };
    let plan = options.plan(failed.seed);
    let all: Vec<usize> = match &options.cuts.keep {
        Some(keep) => keep.clone(),
        None => (0..plan.faults.len()).collect(),
    };
    let mut tries = TRIES;
    let mut fails = |cuts: &Cuts| {
        if tries == 0 {
            return false;
        }
        tries -= 1;
        let mut options = options.clone();
        options.cuts = cuts.clone();
        let again = run_plan(&options, &options.plan(failed.seed), None);
        again
            .finding
            .is_some_and(|again| again.property == finding.property)
    };
    let mut best = Cuts {
        keep: Some(all),
        ..options.cuts.clone()
    };
    calm(&mut best, &mut fails);
    drop_faults(&mut best, &mut fails);
    shorten(&mut best, plan.horizon, &mut fails);
    calm(&mut best, &mut fails);
    best
}

fn calm(best: &mut Cuts, fails: &mut impl FnMut(&Cuts) -> bool) {
    let mut calm = best.clone();
    calm.calm = true;
    if !best.calm && fails(&calm) {
        *best = calm;
    }
}

/// Leaves out halves, then quarters, and so on, down to single faults.
fn drop_faults(best: &mut Cuts, fails: &mut impl FnMut(&Cuts) -> bool) {
    let mut keep = best.keep.clone().unwrap_or_default();
    let mut chunk = keep.len();
    while chunk > 0 {
        let mut start = 0;
        while start < keep.len() {
            let mut less = keep.clone();
            less.drain(start..(start + chunk).min(keep.len()));
            let mut cuts = best.clone();
            cuts.keep = Some(less.clone());
            if fails(&cuts) {
                keep = less;
                *best = cuts;
            } else {
                start += chunk;
            }
        }
        chunk /= 2;
    }
}

/// Halves the distance between a time that is too short and one that is long enough.
fn shorten(best: &mut Cuts, horizon: u64, fails: &mut impl FnMut(&Cuts) -> bool) {
    let (mut short, mut long) = (0, best.horizon.unwrap_or(horizon));
    for _ in 0..8 {
        let middle = short + (long - short) / 2;
        let mut cuts = best.clone();
        cuts.horizon = Some(middle);
        if fails(&cuts) {
            long = middle;
            *best = cuts;
        } else {
            short = middle;
        }
    }
}
