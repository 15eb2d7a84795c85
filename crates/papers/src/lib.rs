//! The papers' claims, their experiments again on a simulated network, and a verdict for each.
//!
//! A claim is a row of `docs/papers/headlines.csv`, which has the paper's figure, and a row of `docs/papers/claims.csv`,
//! which says how ours is obtained, how near it has to be, and why it may not be. `docs/papers/calibration.toml` has all
//! numbers about machines and networks that the papers do not say.
//!
//! | file | holds |
//! |---|---|
//! | `claims` | both tables, and their rows as one |
//! | `target` | the paper's figure: a value, a bound, a range |
//! | `recipe` | how ours is obtained, as the table has it |
//! | `calibration` | the numbers of the calibration, and their hash |
//! | `case` | an experiment's setting, as a setup of `rota-wire` |
//! | `lab` | runs, each made once |
//! | `rings`, `curves`, `loss`, `cluster`, `tables` | our figures: rings, curves, losses, FastCast's cluster, constants |
//! | `several` | our figures of several rings: disks, regions, predictions |
//! | `judge` | the verdict |
//! | `experiments` | what is drawn of each experiment |
//! | `predict` | what nobody could measure |
//! | `workers` | work on several threads |
//! | `sensitivity` | which verdicts change with which number of the calibration |
//! | `report` | `claims.csv`, `claims.json`, `index.html` |

#![forbid(unsafe_code)]

mod calibration;
mod case;
mod claims;
mod cluster;
mod curves;
mod experiments;
mod judge;
mod lab;
mod loss;
mod predict;
mod recipe;
mod report;
mod rings;
mod sensitivity;
mod several;
mod tables;
mod target;
mod workers;

pub use calibration::{Calibration, CalibrationError};
pub use claims::{Claim, ClaimsError, Way, claims};
pub use judge::{Judged, Verdict, judge_all};
pub use lab::{Lab, Ours, Totals, fitted};
pub use report::{Page, write};
pub use sensitivity::{Turned, sensitivity};
pub use several::predict::{Prediction as RingsPrediction, predictions as rings_predictions};
pub use several::{Leveling, Regions};

/// What is to be reproduced.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only these claims, by their ids; all if empty.
    pub only: Vec<String>,
    /// The seeds of each figure.
    pub seeds: u64,
    /// Threads; the result does not depend on them.
    pub jobs: usize,
    /// Whether the page has curves, figure 1 and predictions, or the table alone.
    pub is_whole: bool,
}
