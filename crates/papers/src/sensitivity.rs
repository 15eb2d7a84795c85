//! How much verdicts hang on the calibration: each number a fifth larger and a fifth smaller, and what changes.

use crate::Options;
use crate::calibration::{Calibration, NUMBERS};
use crate::claims::Claim;
use crate::judge::{Judged, judge_all};
use crate::lab::Lab;

/// What a number is multiplied by.
const FACTORS: [f64; 2] = [0.8, 1.2];

/// A changed number, and what comes of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Turned {
    /// The number.
    pub name: &'static str,
    /// What it was multiplied by.
    pub factor: f64,
    /// Claims that get another verdict: which, and from what to what.
    pub flips: Vec<String>,
}

/// All numbers, one after the other. Each takes as long as judging all claims that are wanted.
pub fn sensitivity(
    calibration: &Calibration,
    claims: &[Claim],
    judged: &[Judged],
    options: &Options,
) -> Vec<Turned> {
    let mut all = Vec::new();
    for (name, number) in NUMBERS {
        for factor in FACTORS {
            let mut turned = *calibration;
            *number(&mut turned) *= factor;
            let again = judge_all(&Lab::new(turned), claims, options);
            let changed = judged
                .iter()
                .zip(&again)
                .filter(|(a, b)| a.verdict != b.verdict);
            let flips =
                changed.map(|(a, b)| format!("{}: {} to {}", a.claim.id, a.verdict, b.verdict));
            all.push(Turned {
                name,
                factor,
                flips: flips.collect(),
            });
        }
    }
    all
}
