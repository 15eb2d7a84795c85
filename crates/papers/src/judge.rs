//! The verdict on a claim.

use std::fmt;

use crate::Options;
use crate::claims::{Claim, Way};
use crate::lab::{Lab, Ours};
use crate::target::Target;
use crate::workers;

/// The factor within which a figure has the right shape.
const SHAPE: f64 = 1.5;
/// What a bound may be missed by.
const SLACK: f64 = 0.05;
/// What a ratio may differ by, whatever its size.
const RATIO: f64 = 0.1;

/// What comes of a claim here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Ours is within the tolerance.
    Reproduced,
    /// It points the same way, and is not far off.
    Shape,
    /// It is not.
    Differs,
    /// It is not, and is not meant to be.
    ByDesign,
    /// Something was fitted to it.
    Calibrated,
    /// It follows from other claims.
    Derived,
    /// It cannot be judged.
    NotJudged,
    /// It could be, and is not yet.
    Pending,
}

impl Verdict {
    /// All of them.
    pub const EACH: [Self; 8] = [
        Self::Reproduced,
        Self::Shape,
        Self::Differs,
        Self::ByDesign,
        Self::Calibrated,
        Self::Derived,
        Self::NotJudged,
        Self::Pending,
    ];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Shape => "shape",
            Self::Differs => "differs",
            Self::ByDesign => "by design",
            Self::Calibrated => "calibrated",
            Self::Derived => "derived",
            Self::NotJudged => "not judged",
            Self::Pending => "pending",
        })
    }
}

/// A claim with ours and the verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// Ours.
    pub ours: Ours,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

impl Judged {
    fn new(claim: Claim, ours: Ours) -> Self {
        let (found, what) = compare(&claim, &ours);
        // Where nothing is obtained, the reason is the table's alone.
        let what = match claim.judging.recipe.what() {
            "" => String::new(),
            _ => what,
        };
        let judging = &claim.judging;
        let is_by_design = judging.why.starts_with("by design");
        let verdict = match (claim.way, &ours) {
            (Way::None, _) => Verdict::NotJudged,
            _ if judging.recipe.what().is_empty() => Verdict::Pending,
            _ if judging.calibrates.is_some() => Verdict::Calibrated,
            (Way::Derived, _) => Verdict::Derived,
            _ if found == Verdict::Differs && is_by_design => Verdict::ByDesign,
            _ => found,
        };
        let is_explained = matches!(verdict, Verdict::Reproduced) || judging.why.is_empty();
        let why = match (what.is_empty(), is_explained) {
            (true, _) => judging.why.clone(),
            (false, true) => what,
            (false, false) => format!("{what}; {}", judging.why),
        };
        Self {
            claim,
            ours,
            verdict,
            why,
        }
    }

    /// Whether the verdict counts among those that are reproduced or not.
    pub const fn counts(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Reproduced | Verdict::Shape | Verdict::Differs
        )
    }
}

/// Ours beside the paper's figure: how near, and a sentence.
fn compare(claim: &Claim, ours: &Ours) -> (Verdict, String) {
    let (low, mid, high) = match ours {
        Ours::Figure { low, mid, high } => (*low, *mid, *high),
        Ours::Seen(true, what) => return (Verdict::Reproduced, what.clone()),
        Ours::Seen(false, what) => return (Verdict::Differs, what.clone()),
        Ours::Nothing(why) => return (Verdict::Differs, why.clone()),
    };
    let tolerance = claim.judging.tolerance;
    match claim.judging.target {
        Target::Value(said) => {
            let off = mid / said - 1.0;
            let is_near = off.abs() <= tolerance || is_ratio(claim) && (mid - said).abs() <= RATIO;
            let has_shape = points_the_same_way(claim, said, mid) && off.abs() <= shape(off);
            (graded(is_near, has_shape), format!("{:+.0} %", off * 100.0))
        }
        Target::AtLeast(said) => bound(mid, mid / said, said),
        Target::AtMost(said) => bound(mid, said / mid, said),
        Target::Range(from, to) => {
            let is_near = low <= to * (1.0 + SLACK) && high >= from * (1.0 - SLACK);
            let has_shape = low <= to * SHAPE && high >= from / SHAPE;
            let has_shape = has_shape && points_the_same_way(claim, f64::midpoint(from, to), mid);
            let what = match is_near {
                true => "the ranges overlap",
                false => "the ranges do not overlap",
            };
            (graded(is_near, has_shape), what.to_owned())
        }
        Target::Holds => (Verdict::Differs, "nothing to compare".to_owned()),
    }
}

/// What a share may be off, upwards or downwards, within the factor of a shape.
fn shape(off: f64) -> f64 {
    if off > 0.0 {
        SHAPE - 1.0
    } else {
        1.0 - 1.0 / SHAPE
    }
}

/// A bound that is kept by a factor of at least one.
fn bound(ours: f64, kept: f64, said: f64) -> (Verdict, String) {
    let verdict = graded(kept >= 1.0 - SLACK, kept >= 1.0 / SHAPE);
    let what = if kept >= 1.0 - SLACK {
        "the bound is kept".to_owned()
    } else {
        format!("{:+.0} %", (ours / said - 1.0) * 100.0)
    };
    (verdict, what)
}

const fn graded(is_near: bool, has_shape: bool) -> Verdict {
    match (is_near, has_shape) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::Shape,
        (false, false) => Verdict::Differs,
    }
}

fn is_ratio(claim: &Claim) -> bool {
    claim.said.ends_with("ratio") || claim.judging.recipe.get("ratio").is_some()
}

/// Whether a comparison of two protocols has the same winner.
fn points_the_same_way(claim: &Claim, said: f64, ours: f64) -> bool {
    !is_ratio(claim) || (said - 1.0) * (ours - 1.0) >= 0.0
}

/// Judges the claims that are wanted, in the order of the table.
pub fn judge_all(lab: &Lab, claims: &[Claim], options: &Options) -> Vec<Judged> {
    let is_wanted = |claim: &&Claim| options.only.is_empty() || options.only.contains(&claim.id);
    let wanted: Vec<&Claim> = claims.iter().filter(is_wanted).collect();
    workers::each(options.jobs, &wanted, |claim| {
        Judged::new((*claim).clone(), lab.ours(claim, options.seeds))
    })
}
