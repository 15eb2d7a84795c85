//! The properties of one order over primary views (uniform total order, view synchrony), as a run goes on.

use rota_check::event::Event;
use rota_check::online::UniformOnline;

use crate::observe::{Finding, Observer};
use crate::plan::{Plan, PrimaryLayer};

/// Checks a run of an engine with views.
#[derive(Debug)]
pub struct ViewChecks {
    online: UniformOnline,
}

impl ViewChecks {
    /// Checks runs of this plan.
    pub fn new(plan: &Plan) -> Self {
        let online = match plan.primary {
            Some(PrimaryLayer::Static) => UniformOnline::of(plan.ring.members.clone()),
            _ => UniformOnline::new(),
        };
        Self { online }
    }
}

impl Observer for ViewChecks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        self.online
            .observe(event)
            .map_err(|violation| Finding::new(violation.property, violation.detail))
    }
}
