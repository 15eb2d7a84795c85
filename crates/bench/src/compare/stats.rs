//! How two ways differ, from pairs that were measured one after the other.
//!
//! Each round gives one ratio. A shared machine spoils single rounds badly, so a mean is taken of the logarithms
//! without the highest and the lowest fifth, and its interval is Yuen's (1974) for a trimmed mean.

use serde::Serialize;

/// Share of the ratios that is left out at either end.
const TRIMMED: f64 = 0.2;
/// Fewer rounds than this tell nothing.
pub(super) const LEAST_ROUNDS: usize = 5;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The ratio of the second way to the first, and the interval in which it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Half the width of the interval, as a logarithm: about a share of 1.
    pub(super) fn half_width(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }

    /// The whole interval lies within `margin` of 1.
    pub(super) fn is_within(&self, margin: f64) -> bool {
        self.high < margin.exp() && self.low > (-margin).exp()
    }

    /// The interval leaves out 1.
    pub(super) fn excludes_one(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

fn t_quantile(freedom: usize) -> f64 {
    match T.get(freedom.wrapping_sub(1)) {
        Some(t) => *t,
        // The first terms of the expansion around the normal distribution's 1.960 (within 0.1 % from 30 on).
        None => 1.960 + 2.4 / freedom as f64,
    }
}

/// The ratio of pairs (first way, second way); `None` while there are too few of them, or where one is not positive.
pub(super) fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    if pairs.len() < LEAST_ROUNDS || pairs.iter().any(|(a, b)| *a <= 0.0 || *b <= 0.0) {
        return None;
    }
    let mut logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let (n, cut) = (logs.len(), (logs.len() as f64 * TRIMMED) as usize);
    let kept = &logs[cut..n - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // Winsorized: what is cut off counts as the value beside it.
    let (least, most) = (kept[0], kept[kept.len() - 1]);
    let pulled_in = || logs.iter().map(|log| log.clamp(least, most));
    let center = pulled_in().sum::<f64>() / n as f64;
    let squares: f64 = pulled_in().map(|log| (log - center).powi(2)).sum();
    let kept = kept.len() as f64;
    let error = (squares / (kept * (kept - 1.0))).sqrt();
    let half = error * t_quantile(kept as usize - 1);
    Some(Ratio {
        ratio: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    })
}

/// The median; `None` of nothing.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of which the second is `factor` times the first, with noise of about `noise` on both.
    fn noisy(seed: u64, rounds: usize, factor: f64, noise: f64) -> Vec<(f64, f64)> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut value = |mean: f64| {
            // About normal: the sum of twelve uniform numbers has variance 1.
            let sum: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
            mean * (noise * sum).exp()
        };
        (0..rounds)
            .map(|_| (value(800.0), value(800.0 * factor)))
            .collect()
    }

    #[test]
    fn the_interval_holds_the_truth_nineteen_times_in_twenty() {
        for (rounds, factor) in [(8, 1.0), (20, 1.05), (60, 0.9)] {
            let holds = (0..400).filter(|seed| {
                let ratio = ratio(&noisy(*seed, rounds, factor, 0.03)).expect("enough rounds");
                (ratio.low..ratio.high).contains(&factor)
            });
            let holds = holds.count();
            assert!(
                (368..=394).contains(&holds),
                "{rounds} rounds: {holds} of 400"
            );
        }
    }

    #[test]
    fn a_few_spoilt_rounds_move_nothing() {
        let mut pairs = noisy(1, 20, 1.05, 0.01);
        pairs[3].0 *= 4.0;
        pairs[11].1 *= 7.0;
        let ratio = ratio(&pairs).expect("enough rounds");
        assert!((1.04..1.06).contains(&ratio.ratio), "{ratio:?}");
        assert!(ratio.half_width() < 0.02, "{ratio:?}");
    }

    #[test]
    fn too_few_rounds_or_nothing_measured_say_nothing() {
        assert_eq!(ratio(&noisy(1, LEAST_ROUNDS - 1, 1.0, 0.01)), None);
        assert_eq!(ratio(&[(1.0, 0.0); 9]), None);
    }

    #[test]
    fn equal_pairs_have_an_interval_of_no_width() {
        let ratio = ratio(&[(5.0, 10.0); 9]).expect("enough rounds");
        assert!((ratio.ratio - 2.0).abs() < 1e-9 && ratio.half_width() < 1e-9);
    }

    #[test]
    fn the_quantile_goes_on_smoothly_behind_the_table() {
        assert!((t_quantile(30) - t_quantile(31)).abs() < 0.01);
        assert!((t_quantile(60) - 2.000).abs() < 0.002);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median([4.0, 1.0, 2.0, 9.0].into_iter()), Some(3.0));
        assert_eq!(median([4.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median(std::iter::empty()), None);
    }
}
