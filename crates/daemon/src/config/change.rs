//! The settings of the section `[daemon]` that can change while a daemon runs.

use super::{DaemonConfig, DaemonConfigError, TlsConfig};

impl DaemonConfig {
    /// The settings of a running daemon after it has read `new`. Settings that cannot change while it runs stay.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: the daemon cannot run with these settings, or all access rules would be gone.
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
        changed.log.clone_from(&new.log);
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
