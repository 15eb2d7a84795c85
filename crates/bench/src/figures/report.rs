//! The report of `rota bench figures`.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::series::Figure;
use super::table::Table;

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct FigureReport {
    /// Its number in the paper.
    pub figure: Figure,
    /// The table of all that was measured.
    pub csv: PathBuf,
    /// The drawings, if there was anything to draw.
    pub drawings: Vec<PathBuf>,
    /// Lines of the table.
    pub rows: usize,
    /// Benchmarks that failed, and drawings: a sentence for each.
    pub failures: Vec<String>,
}

/// All figures; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FiguresReport {
    /// One after the other.
    pub figures: Vec<FigureReport>,
}

impl FiguresReport {
    pub(super) fn add(
        &mut self,
        figure: Figure,
        table: &Table,
        (csv, drawings): (PathBuf, Vec<PathBuf>),
        failures: Vec<String>,
    ) {
        let rows = table.rows.len();
        self.figures.push(FigureReport {
            figure,
            csv,
            drawings,
            rows,
            failures,
        });
    }

    /// The reason why not everything was measured, if it was not.
    pub fn failure(&self) -> Option<&str> {
        let mut failures = self.figures.iter().flat_map(|figure| &figure.failures);
        failures.next().map(String::as_str)
    }
}

impl fmt::Display for FiguresReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for report in &self.figures {
            let FigureReport {
                figure,
                csv,
                drawings,
                rows,
                failures,
            } = report;
            for drawing in drawings {
                writeln!(f, "figure {figure}: {}", drawing.display())?;
            }
            if drawings.is_empty() {
                writeln!(f, "figure {figure}: nothing to draw")?;
            }
            write!(f, "  {rows} rows in {}", csv.display())?;
            match failures.len() {
                0 => writeln!(f)?,
                count => writeln!(f, ", {count} failed")?,
            }
        }
        Ok(())
    }
}
