//! The user that this node is at etcd, where etcd asks for users and passwords.
//!
//! A user that has logged in gets a token, and shows that from then on. A token ends after some minutes, with the
//! process of the member that gave it, and when anything about users changes: so a node with a refused token asks for
//! another, once.

use rota_core::contract::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

use super::file::{EtcdFileError, Purpose};
use crate::config::{path_of, text_of};
use rota_net::private::{Owners, read_private};

/// A user of etcd. `{node}` stands for the node's number, in the name, too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdLogin {
    /// Its name.
    pub user: String,
    /// A file with its password, which only its owner may read; a line end behind it does not count. It is read when
    /// a node starts, and again when it has changed.
    pub password_file: PathBuf,
}

/// A name and a password.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl EtcdLogin {
    /// The user of this node: its number in place of `{node}`.
    pub(crate) fn of(&self, node: NodeId) -> Self {
        Self {
            user: text_of(&self.user, node),
            password_file: path_of(&self.password_file, node),
        }
    }

    /// Reads the password.
    pub(super) fn load(&self) -> Result<Login, EtcdFileError> {
        let wrong =
            |what: &dyn fmt::Display| EtcdFileError::new(Purpose::Login, &self.password_file, what);
        let bytes =
            read_private(&self.password_file, Owners::Trusted).map_err(|error| wrong(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not text"))?;
        let password = text.strip_suffix('\n').unwrap_or(&text);
        let password = password.strip_suffix('\r').unwrap_or(password);
        if password.is_empty() {
            return Err(wrong(&"there is no password in it"));
        }
        Ok(Login {
            user: self.user.clone(),
            password: password.to_owned(),
        })
    }
}
