//! What of the section `[daemon]` can change while a daemon runs.

use super::{DaemonConfig, DaemonConfigError, TlsConfig};

impl DaemonConfig {
    /// What a daemon that was started with this runs with when it reads `new`: what cannot change while it
    /// runs is as it was.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: it cannot run with that, or everybody could do everything from then on.
    pub fn changed_to(&self, new: &Self) -> Result<Self, DaemonConfigError> {
        if new.access.is_empty() && !self.access.is_empty() {
            return Err(DaemonConfigError::RulesGone);
        }
        let mut changed = self.clone();
        changed.clients = new.clients;
        changed.client_queue_bytes = new.client_queue_bytes;
        changed.queues_bytes = new.queues_bytes;
        changed.client_memory_bytes = new.client_memory_bytes;
        changed.handshake_ms = new.handshake_ms;
        changed.handshakes = new.handshakes;
        changed.access.clone_from(&new.access);
        if let Some(spread) = &mut changed.spread {
            spread.allow = new.spread.clone().unwrap_or_default().allow;
        }
        if let (Some(tls), Some(new)) = (&mut changed.tls, &new.tls) {
            *tls = TlsConfig {
                listen: std::mem::take(&mut tls.listen),
                ..new.clone()
            };
        }
        changed.check().map_err(|error| {
            let error = Box::new(error);
            DaemonConfigError::BeforeRestart(error)
        })?;
        Ok(changed)
    }
}
