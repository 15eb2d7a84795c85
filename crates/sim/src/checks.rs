//! The properties of `rota-check`: some as a run goes on, all of them when it has come to rest.

use rota_check::event::Event;
use rota_check::online::Online;
use rota_check::trace::Trace;
use rota_check::{Options, check_all};
use rota_core::contract::{NodeId, Time};

use crate::observe::{Coverage, Finding, Observer};
use crate::plan::DiskLoss;

/// Checks a run.
#[derive(Debug)]
pub struct Checks {
    online: Online,
    /// Everything seen, unless only what can be checked at once is.
    trace: Option<Trace>,
    /// Some node has lost the numbers of its rings.
    numbers_lost: bool,
    coverage: Coverage,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            trace: Some(Trace::new()),
            ..Self::online()
        }
    }
}

impl Checks {
    /// Only what can be checked as the run goes on.
    pub fn online() -> Self {
        Self {
            online: Online::new(),
            trace: None,
            numbers_lost: false,
            coverage: Coverage::new(),
        }
    }
}

impl Observer for Checks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
        self.online
            .observe(event)
            .map_err(|violation| Finding::new(violation.property, violation.detail))
    }

    fn disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        if matches!(loss, DiskLoss::Everything | DiskLoss::Backup) {
            self.online.disk_lost(node);
            self.numbers_lost = true;
        }
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        trace.quiesce();
        let report = check_all(trace, &Options::default());
        self.coverage = report.counters.rare().into();
        // Whose numbers are lost with its disk may use them again: the incarnation tells them apart.
        let counts = |property: &str| property != "C7" || !self.numbers_lost;
        let mut violations = report.violations.into_iter();
        violations
            .find(|violation| counts(violation.property))
            .map_or(Ok(()), |violation| {
                Err(Finding::new(violation.property, violation.detail))
            })
    }

    fn coverage(&self, coverage: &mut Coverage) {
        for (what, count) in &self.coverage {
            *coverage.entry(what).or_default() += count;
        }
    }
}
