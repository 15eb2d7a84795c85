//! A change of settings while the daemon runs.

use rota_core::contract::NodeId;
use rota_net::FileStamps;

use crate::access::Access;
use crate::config::DaemonConfig;
use crate::daemon::OpenError;
use crate::tls::Certificates;

/// Settings, with what is in the files that they name: everything that can be wrong with them has been looked
/// at. [`crate::Control::reconfigure`] gives them to a daemon.
#[derive(Debug)]
pub struct NewSettings {
    pub(crate) config: DaemonConfig,
    pub(crate) access: Access,
    pub(crate) certificates: Option<Certificates>,
}

/// The files of certificates at one time: compares equal as long as none was written again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CertificateFiles(FileStamps);

impl CertificateFiles {
    /// Those that node `me` would read now.
    pub fn of(config: &DaemonConfig, me: NodeId) -> Self {
        let tls = config.tls.as_ref();
        Self(tls.map_or_else(FileStamps::default, |tls| tls.stamps(me)))
    }
}

impl NewSettings {
    /// Reads the files of node `me`, and looks up the users and groups of the rules.
    ///
    /// # Errors
    /// [`OpenError`]: a file, a user or a group.
    pub fn read(config: DaemonConfig, me: NodeId) -> Result<Self, OpenError> {
        let access = config.look_up_access().map_err(OpenError::Daemon)?;
        let tls = config.tls.as_ref();
        let certificates = tls.map(|tls| Certificates::open(tls, me)).transpose();
        let certificates = certificates.map_err(OpenError::Tls)?;
        // A daemon is started with an expired list, for all clients but those of other hosts; one that runs
        // has a better one.
        let lists = certificates.as_ref().map(Certificates::check_lists);
        lists.transpose().map_err(OpenError::Tls)?;
        Ok(Self {
            certificates,
            access,
            config,
        })
    }
}
