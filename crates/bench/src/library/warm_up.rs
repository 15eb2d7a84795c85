//! How long a load takes to settle, found by a run of its own.
//!
//! The first slots of a run are left out until the mean of the others is as sure as it gets: the marginal standard error
//! rule (MSER, White 1997), which needs no threshold.

use std::time::Duration;

use super::coordinator::run_once;
use crate::error::BenchError;
use crate::options::{BenchOptions, WarmUp};

/// How long the load is watched.
const LOOK: Duration = Duration::from_secs(4);
/// The slots that it is watched in.
const SLOT: Duration = Duration::from_millis(50);
/// How often: a busy host that stands still for a moment looks like a load that has not settled.
const TRIES: u32 = 3;
/// The shortest warm-up: buffers and caches fill in this time even where the rate does not show it.
const LEAST: Duration = Duration::from_millis(200);

/// Runs the load once from its very start, and returns the time after which what is delivered does not change any more.
///
/// # Errors
/// As of a run; and where the load has not settled in the time that it was watched for.
pub(super) fn find(options: &BenchOptions) -> Result<Duration, BenchError> {
    let mut look = options.clone();
    look.times.duration = LOOK;
    look.times.series = Some(SLOT);
    look.times.warm_up = WarmUp::For(Duration::ZERO);
    look.trouble.events.clear();
    if look.times.first_message.is_some() {
        // There is no load that could settle.
        return Ok(LEAST);
    }
    for _ in 0..TRIES {
        let report = run_once(&look, Duration::ZERO)?;
        let slots = (LOOK.as_millis() / SLOT.as_millis()) as usize;
        let rates = report.series.iter().map(|slot| slot.mbps);
        if let Some(slots) = settled(&rates.take(slots).collect::<Vec<f64>>()) {
            return Ok((SLOT * slots as u32).max(LEAST));
        }
    }
    Err(BenchError::Usage(format!(
        "the load had not settled after {LOOK:?}, {TRIES} times: say how long with --warm-up"
    )))
}

/// The number of first slots that are not like the others; `None` if that is half of them.
fn settled(rates: &[f64]) -> Option<usize> {
    let error = |left_out: usize| {
        let rest = &rates[left_out..];
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        rest.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n * n)
    };
    let half = rates.len() / 2;
    let least = (0..=half).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (half > 0 && least < half).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_differs_is_left_out() {
        let mut rates = vec![10.0, 40.0, 70.0, 90.0];
        rates.extend((0..36).map(|at| 100.0 + f64::from(at % 5)));
        assert_eq!(settled(&rates), Some(4));
    }

    #[test]
    fn a_load_that_is_steady_from_the_start_needs_no_warm_up() {
        let rates: Vec<f64> = (0..40).map(|at| 100.0 + f64::from(at % 5)).collect();
        assert!(settled(&rates).expect("it is settled") < 5);
    }

    #[test]
    fn a_load_that_grows_to_the_end_has_not_settled() {
        let rates: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(settled(&rates), None);
        assert_eq!(settled(&[]), None);
    }
}
