//! The report: `claims.csv`, `claims.json`, `index.html`.

mod figure;
mod html;
mod svg;
mod table;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::Options;
use crate::calibration::Calibration;
use crate::experiments::{self, EXPERIMENTS, Experiment};
use crate::judge::Judged;
use crate::lab::{Lab, Totals};
use crate::predict::{self, Prediction};
use crate::sensitivity::Turned;
use crate::several;

/// All that stands in a report.
#[derive(Debug)]
pub struct Page {
    /// The claims.
    pub judged: Vec<Judged>,
    experiments: Vec<Experiment>,
    predictions: Vec<Prediction>,
    several: Vec<several::predict::Prediction>,
    figure: String,
    totals: Totals,
    /// What changes with the numbers of the calibration, if that was looked at.
    pub sensitivity: Vec<Turned>,
}

impl Page {
    /// The page of these claims; without curves, figure and predictions unless it is to be whole.
    pub fn new(lab: &Lab, judged: Vec<Judged>, options: &Options) -> Self {
        let is_there = |name: &str| judged.iter().any(|one| one.claim.experiment == name);
        let experiments =
            EXPERIMENTS
                .iter()
                .filter(|(name, _)| is_there(name))
                .map(|(name, title)| Experiment {
                    name,
                    title,
                    charts: if options.is_whole {
                        experiments::charts(lab, name, &judged)
                    } else {
                        Vec::new()
                    },
                });
        let experiments = experiments.collect();
        let (mut predictions, mut several, mut figure) = (Vec::new(), Vec::new(), String::new());
        if options.is_whole {
            predictions = predict::predictions(lab, options.jobs);
            several = several::predict::predictions(lab, options.jobs);
            figure = figure::figure(&lab.calibration);
        }
        Self {
            judged,
            experiments,
            predictions,
            several,
            figure,
            totals: lab.totals(),
            sensitivity: Vec::new(),
        }
    }
}

/// Writes the report into a folder, which is made if it is not there. `took` is for the page alone: the tables are the
/// same on each run.
///
/// # Errors
/// A file cannot be written.
pub fn write(page: &Page, output: &Path, took: Duration) -> io::Result<()> {
    fs::create_dir_all(output)?;
    let hash = Calibration::hash();
    fs::write(output.join("claims.csv"), table::csv(&page.judged, &hash))?;
    fs::write(
        output.join("claims.json"),
        table::json(&page.judged, &hash)?,
    )?;
    fs::write(output.join("index.html"), html::page(page, &hash, took))
}
