//! The properties of `rota-check`, as a run is watched.

use rota_check::event::Event;
use rota_check::online::Online;
use rota_core::contract::NodeId;

use crate::observe::{Finding, Observer};
use crate::plan::DiskLoss;

/// Checks what can be checked at once.
#[derive(Default, Debug)]
pub struct Checks {
    online: Online,
}

impl Observer for Checks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        self.online
            .observe(event)
            .map_err(|violation| Finding::new(violation.property, violation.detail))
    }

    fn disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        if matches!(loss, DiskLoss::Everything | DiskLoss::Backup) {
            self.online.disk_lost(node);
        }
    }
}
