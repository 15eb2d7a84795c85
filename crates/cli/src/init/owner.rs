//! The user that a key file is for.

use nix::unistd::{Uid, User};

/// The user that the package runs daemons as.
const USUAL: &str = "rota";

/// A user, by name and numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    /// The user with this name, or the usual one if root asks for none in particular. `None`: the user who asks.
    pub fn find(asked_for: Option<&str>) -> Result<Option<Self>, String> {
        let name = match asked_for {
            Some(name) => name,
            None if Uid::effective().is_root() => USUAL,
            None => return Ok(None),
        };
        let found = User::from_name(name).map_err(|error| format!("user {name}: {error}"))?;
        match found {
            Some(user) => Ok(Some(Self {
                name: user.name,
                uid: user.uid.as_raw(),
                gid: user.gid.as_raw(),
            })),
            None if asked_for.is_some() => Err(format!("this host has no user {name}")),
            None => Ok(None),
        }
    }
}
