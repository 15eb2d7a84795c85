//! The check of the access rules against the rest of the section.

use super::{DaemonConfig, DaemonConfigError};
use crate::access::{AccessRule, Reach};

/// Each rule can match a peer that can connect, and the metrics can be read by somebody.
pub(super) fn check(config: &DaemonConfig) -> Result<(), DaemonConfigError> {
    let reach = reach(config);
    for (at, rule) in config.access.iter().enumerate() {
        let checked = rule.check(&reach);
        checked.map_err(|error| DaemonConfigError::Access(at + 1, error))?;
    }
    let is_read = config.access.is_empty() || config.access.iter().any(AccessRule::is_for_metrics);
    if config.metrics.is_some() && !is_read {
        return Err(DaemonConfigError::MetricsForNobody);
    }
    Ok(())
}

/// The addresses from which clients can come by TCP.
fn reach(config: &DaemonConfig) -> Reach {
    let mut reach = Reach::default();
    if !config.tcp.is_empty() {
        reach.open.extend(Reach::loopback());
    }
    if let Some(spread) = &config.spread
        && !spread.tcp.is_empty()
    {
        match &spread.allow.0[..] {
            [] => reach.open.extend(Reach::loopback()),
            nets => reach.open.extend(nets),
        }
    }
    if let Some(tls) = &config.tls {
        let nets = tls.listen.iter().flat_map(|at| Reach::through(at.ip()));
        reach.tls.extend(nets);
        reach.certificates = tls.client_ca.is_some();
    }
    if let Some(metrics) = config.metrics {
        reach.metrics = Reach::through(metrics.ip());
    }
    reach
}
