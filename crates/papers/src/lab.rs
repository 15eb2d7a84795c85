//! Runs, each made once however many claims want it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rota_wire::{RingsRun, RingsSetup, Run, Setup};

use crate::calibration::Calibration;
use crate::case::Case;
use crate::claims::{Claim, Way, claims};
use crate::{cluster, loss, rings, several, tables};

/// What ours is.
#[derive(Clone, PartialEq, Debug)]
pub enum Ours {
    /// The least, the mean and the greatest of what the seeds, and the values of a range, gave.
    Figure {
        /// The least.
        low: f64,
        /// The mean.
        mid: f64,
        /// The greatest.
        high: f64,
    },
    /// What is to be seen is seen, or not; and what is seen.
    Seen(bool, String),
    /// There is no figure, for this reason.
    Nothing(String),
}

/// What one seed gave.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Figures: one, or those of a range.
    Figures(Vec<f64>),
    /// See [`Ours::Seen`].
    Seen(bool, String),
}

/// A table of things that are made once.
type Once<K, V> = Mutex<HashMap<K, Arc<OnceLock<V>>>>;

/// See the module page.
#[derive(Debug)]
pub struct Lab {
    /// The numbers of the machines and networks.
    pub calibration: Calibration,
    runs: Once<Setup, Run>,
    several: Once<RingsSetup, RingsRun>,
    windows: Once<Case, (u32, u32)>,
}

fn once<K: Hash + Eq, V: Clone>(table: &Once<K, V>, key: K, make: impl FnOnce() -> V) -> V {
    let cell = {
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(table.entry(key).or_default())
    };
    cell.get_or_init(make).clone()
}

/// What all runs came to, for the page.
#[derive(Clone, Copy, Default, Debug)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Deliveries at all nodes.
    pub deliveries: u64,
    /// Virtual seconds.
    pub seconds: f64,
    /// Runs without one order at all nodes, or with messages that some node lacks.
    pub unsound: u64,
    /// Runs in which the nodes parted.
    pub disturbed: u64,
}

impl Totals {
    /// Adds a run: its deliveries and virtual nanoseconds, whether it is sound, and how often it was disturbed.
    fn add(&mut self, (deliveries, nanos): (u64, u64), is_sound: bool, disturbed: u64) {
        self.runs += 1;
        self.deliveries += deliveries;
        self.seconds += nanos as f64 / 1e9;
        self.unsound += u64::from(!is_sound);
        self.disturbed += u64::from(disturbed > 0);
    }
}

impl Lab {
    /// A lab with these machines.
    pub fn new(calibration: Calibration) -> Self {
        Self {
            calibration,
            runs: Mutex::default(),
            several: Mutex::default(),
            windows: Mutex::default(),
        }
    }

    /// The run of a setup.
    pub fn run(&self, setup: &Setup) -> Run {
        once(&self.runs, setup.clone(), || rota_wire::run(setup))
    }

    /// The run of a setup of several rings.
    pub fn run_rings(&self, setup: &RingsSetup) -> RingsRun {
        once(&self.several, setup.clone(), || rota_wire::run_rings(setup))
    }

    /// The windows of a case, found by `find` once.
    pub fn windows(&self, case: Case, find: impl FnOnce() -> (u32, u32)) -> (u32, u32) {
        once(&self.windows, case, find)
    }

    /// All runs so far.
    pub fn totals(&self) -> Totals {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut totals = Totals::default();
        for run in runs.values().filter_map(|run| run.get()) {
            totals.add(
                (run.all_deliveries, run.virtual_nanos),
                run.is_sound(),
                run.disturbed,
            );
        }
        let several = self.several.lock().unwrap_or_else(PoisonError::into_inner);
        for run in several.values().filter_map(|run| run.get()) {
            totals.add(
                (run.all_deliveries, run.virtual_nanos),
                run.is_sound(),
                run.disturbed,
            );
        }
        totals
    }

    /// Our figure for a claim, with so many seeds.
    pub fn ours(&self, claim: &Claim, seeds: u64) -> Ours {
        if claim.judging.recipe.what().is_empty() {
            return Ours::Nothing(claim.judging.why.clone());
        }
        // What is read in the code, or reckoned, has no chance in it.
        let is_run = matches!(claim.way, Way::Simulated | Way::Derived);
        let seeds = if is_run { seeds } else { 1 };
        let mut figures = Vec::new();
        for seed in 1..=seeds {
            match self.answer(claim, seed) {
                Ok(Answer::Figures(more)) => figures.extend(more),
                Ok(Answer::Seen(is_seen, what)) => return Ours::Seen(is_seen, what),
                Err(why) => return Ours::Nothing(why),
            }
        }
        if figures.is_empty() {
            return Ours::Nothing("no setting of this experiment gave a figure".to_owned());
        }
        Ours::Figure {
            low: figures.iter().copied().fold(f64::INFINITY, f64::min),
            mid: figures.iter().sum::<f64>() / figures.len() as f64,
            high: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    fn answer(&self, claim: &Claim, seed: u64) -> Result<Answer, String> {
        let what = claim.judging.recipe.what();
        match what.split_once('-') {
            Some(("cluster", _)) => cluster::answer(self, claim, seed),
            Some(("loss", _)) => loss::answer(self, claim, seed),
            Some(("several", _)) => several::answer(self, claim, seed),
            Some(("table", _)) => tables::answer(claim),
            _ => rings::answer(self, claim, seed),
        }
    }
}

/// Our figure for a claim with other numbers than those that are built in, to fit them.
///
/// # Errors
/// There is no such claim, or no figure.
pub fn fitted(calibration: &Calibration, id: &str) -> Result<f64, String> {
    let claims = claims().map_err(|error| error.to_string())?;
    let claim = claims.iter().find(|claim| claim.id == id);
    let claim = claim.ok_or_else(|| format!("there is no claim {id}"))?;
    match Lab::new(*calibration).ours(claim, 1) {
        Ours::Figure { mid, .. } => Ok(mid),
        Ours::Seen(is_seen, _) => Ok(f64::from(u8::from(is_seen))),
        Ours::Nothing(why) => Err(why),
    }
}
