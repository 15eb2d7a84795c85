//! The paths of a daemon's Unix sockets.

use std::path::{Path, PathBuf};

use rota_core::contract::NodeId;
use rota_node::path_of;

use super::{DaemonConfig, DaemonConfigError};

/// The longest path of a Unix socket, in bytes: the room in `sockaddr_un`, less a zero at the end.
const MOST_PATH_BYTES: usize = 107;

/// The Unix sockets of a node, by their settings.
#[derive(Debug)]
pub(super) struct SocketPaths(Vec<(&'static str, PathBuf)>);

impl SocketPaths {
    /// Those of node `me`.
    pub(super) fn of(config: &DaemonConfig, me: NodeId) -> Self {
        let spread = config.spread.as_ref();
        let spread = spread.and_then(|spread| spread.socket.as_deref());
        let named = [
            ("socket", Some(config.socket.as_path())),
            ("admin", Some(config.admin.as_path())),
            ("the socket of [daemon.spread]", spread),
        ];
        let own = |(name, path): (&'static str, Option<&Path>)| Some((name, path_of(path?, me)));
        Self(named.into_iter().filter_map(own).collect())
    }

    /// Whether all of them can be bound: each path is short enough for the system, and no two are the same.
    pub(super) fn check(self) -> Result<(), DaemonConfigError> {
        let mut known: Vec<(&'static str, PathBuf)> = Vec::new();
        for (name, path) in self.0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_or_that_two_sockets_have_is_refused() {
        let me = NodeId::new(3).expect("not 0");
        let check = |socket: &str, admin: &str| {
            let config = DaemonConfig {
                socket: socket.into(),
                admin: admin.into(),
                ..DaemonConfig::default()
            };
            SocketPaths::of(&config, me).check()
        };
        assert!(check("/run/{node}.sock", "/run/admin").is_ok());
        let same = check("/run/{node}", "/run/3");
        assert!(
            matches!(
                &same,
                Err(DaemonConfigError::SamePath(_, "socket", "admin"))
            ),
            "{same:?}"
        );
        assert!(check(&"s".repeat(MOST_PATH_BYTES), "/run/admin").is_ok());
        let long = check(&"s".repeat(MOST_PATH_BYTES + 1), "/run/admin");
        assert!(
            matches!(&long, Err(DaemonConfigError::LongPath(..))),
            "{long:?}"
        );
    }
}
