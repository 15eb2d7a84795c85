//! The check of the access rules against the rest of the section.

use super::{DaemonConfig, DaemonConfigError};
use crate::access::{Access, AccessRule, Reach};

impl DaemonConfig {
    pub(super) fn check_access(&self) -> Result<(), DaemonConfigError> {
        let reach = self.reach();
        for (at, rule) in self.access.iter().enumerate() {
            let checked = rule.check(&reach);
            checked.map_err(|error| DaemonConfigError::Access(at + 1, error))?;
        }
        let is_read = self.access.is_empty() || self.access.iter().any(AccessRule::is_for_metrics);
        if self.metrics.is_some() && !is_read {
            return Err(DaemonConfigError::MetricsForNobody);
        }
        Ok(())
    }

    /// The addresses from which clients can come by TCP.
    fn reach(&self) -> Reach {
        let mut reach = Reach::default();
        if !self.tcp.is_empty() {
            reach.open.extend(Reach::loopback());
        }
        if let Some(spread) = &self.spread
            && !spread.tcp.is_empty()
        {
            match &spread.allow.0[..] {
                [] => reach.open.extend(Reach::loopback()),
                nets => reach.open.extend(nets),
            }
        }
        if let Some(tls) = &self.tls {
            let nets = tls.listen.iter().flat_map(|at| Reach::through(at.ip()));
            reach.tls.extend(nets);
            reach.certificates = tls.client_ca.is_some();
        }
        if let Some(metrics) = self.metrics {
            reach.metrics = Reach::through(metrics.ip());
        }
        reach
    }

    /// Whether this host has the users and groups of the rules; beyond what [`Self::check`] says.
    ///
    /// # Errors
    /// [`DaemonConfigError::Access`].
    pub fn check_here(&self) -> Result<(), DaemonConfigError> {
        self.look_up_access().map(|_| ())
    }

    pub(crate) fn look_up_access(&self) -> Result<Access, DaemonConfigError> {
        let access = Access::new(&self.access);
        access.map_err(|(rule, error)| DaemonConfigError::Access(rule, error))
    }
}
