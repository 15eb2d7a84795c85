//! Makes a failure smaller: fewer faults, a shorter time, a calmer network, while the same property
//! still fails.

use super::Cuts;
use crate::plan::Plan;

/// Runs that one failure may cost.
const TRIES: u32 = 200;

/// The least that was found to fail alike, of what is left of a plan when `start` is taken away.
pub fn shrink(plan: &Plan, start: &Cuts, fails_alike: impl Fn(&Cuts) -> bool) -> Cuts {
    let mut tries = TRIES;
    let mut fails = |cuts: &Cuts| {
        let may = tries > 0;
        tries = tries.saturating_sub(1);
        may && fails_alike(cuts)
    };
    let all = || (0..plan.faults.len()).collect();
    let mut best = Cuts {
        keep: Some(start.keep.clone().unwrap_or_else(all)),
        ..start.clone()
    };
    calm(&mut best, &mut fails);
    drop_faults(&mut best, &mut fails);
    shorten(&mut best, plan.horizon, &mut fails);
    // With fewer faults it may do without the network's own, or without the others.
    calm(&mut best, &mut fails);
    drop_faults(&mut best, &mut fails);
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

#[cfg(test)]
mod tests {
    use rota_ring::Protocol;

    use super::*;
    use crate::plan::{Abilities, Profile};

    /// A plan with many faults.
    fn plan() -> Plan {
        let plans = (0..)
            .map(|seed| Plan::random(seed, Protocol::Accelerated, Profile::All, Abilities::ALL));
        let mut plans = plans.filter(|plan| plan.faults.len() >= 8);
        plans.next().expect("there are many seeds")
    }

    fn needs(cuts: &Cuts, places: &[usize], horizon: u64) -> bool {
        let keep = cuts.keep.as_deref().unwrap_or(&[]);
        let enough = cuts.horizon.is_none_or(|at| at >= horizon);
        enough && places.iter().all(|place| keep.contains(place))
    }

    #[test]
    fn only_the_faults_and_the_time_that_a_failure_needs_are_left() {
        let plan = plan();
        let horizon = plan.horizon / 3;
        let best = shrink(&plan, &Cuts::default(), |cuts| {
            needs(cuts, &[1, 6], horizon)
        });
        assert_eq!(best.keep, Some(vec![1, 6]));
        assert!(best.calm);
        let left = best.horizon.expect("less than all");
        assert!((horizon..horizon + plan.horizon / 100).contains(&left));
    }

    #[test]
    fn what_a_failure_needs_of_the_network_stays() {
        let noisy = |cuts: &Cuts| !cuts.calm && needs(cuts, &[], 0);
        let best = shrink(&plan(), &Cuts::default(), noisy);
        assert_eq!((best.keep, best.calm), (Some(vec![]), false));
    }

    #[test]
    fn a_failure_that_never_comes_again_is_left_as_it_was() {
        let plan = plan();
        let best = shrink(&plan, &Cuts::default(), |_| false);
        assert_eq!(best.keep.map(|keep| keep.len()), Some(plan.faults.len()));
        assert_eq!((best.horizon, best.calm), (None, false));
    }
}
