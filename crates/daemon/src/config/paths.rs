//! The paths of a daemon's Unix sockets.

use std::path::{Path, PathBuf};

use rota_core::contract::NodeId;
use rota_node::path_of;

use super::{DaemonConfig, DaemonConfigError};

/// The longest path of a Unix socket, in bytes: the room in `sockaddr_un`, less a zero at the end.
const MOST_PATH_BYTES: usize = 107;

impl DaemonConfig {
    /// Whether node `me` can bind its Unix sockets: each path is short enough for the system, and no two are the same.
    ///
    /// # Errors
    /// [`DaemonConfigError`]: the first path that cannot be used.
    pub fn check_paths(&self, me: NodeId) -> Result<(), DaemonConfigError> {
        let spread = self
            .spread
            .as_ref()
            .and_then(|spread| spread.socket.as_deref());
        let named = [
            ("socket", Some(self.socket.as_path())),
            ("admin", Some(self.admin.as_path())),
            ("the socket of [daemon.spread]", spread),
        ];
        let own = |(name, path): (&'static str, Option<&Path>)| Some((name, path_of(path?, me)));
        let mut known: Vec<(&'static str, PathBuf)> = Vec::new();
        for (name, path) in named.into_iter().filter_map(own) {
            if path.as_os_str().len() > MOST_PATH_BYTES {
                return Err(DaemonConfigError::LongPath(path, MOST_PATH_BYTES));
            }
            let same = known.iter().find(|(_, known)| *known == path);
            if let Some(&(other, _)) = same {
                return Err(DaemonConfigError::SamePath(path, other, name));
            }
            known.push((name, path));
        }
        Ok(())
    }
}
