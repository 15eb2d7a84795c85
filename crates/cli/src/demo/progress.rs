//! A bar for runs that make somebody wait.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter runs need no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar on standard error, where that is a terminal.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    total: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar that is full at `total` deliveries.
    pub fn new(total: u64) -> Self {
        Self {
            begun: Instant::now(),
            total,
            bar: None,
        }
    }

    /// Shows that there are `deliveries` by now.
    pub fn show(&mut self, deliveries: u64) {
        if self.bar.is_none() && self.begun.elapsed() >= PATIENCE {
            self.bar = Some(bar(self.total));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(deliveries);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{bar:40} {percent:>3} %  {human_pos} of {human_len} deliveries  {elapsed}";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
