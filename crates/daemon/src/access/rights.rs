//! The rights of one client.

use rota_core::groups::{Destination, GroupName};

use super::Pattern;
use crate::names::Names;

/// The rights of one client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rights {
    /// To be a client.
    pub connect: bool,
    /// To ask for the status of the daemon.
    pub admin: bool,
    pub(super) join: Scope,
    pub(super) send: Scope,
}

/// Groups and clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    All,
    /// Those whose names fit one of these.
    Of(Vec<Pattern>),
}

impl Scope {
    pub fn add(&mut self, patterns: &[Pattern]) {
        if patterns.iter().any(Pattern::is_all) {
            *self = Self::All;
        } else if let Self::Of(mine) = self {
            mine.extend_from_slice(patterns);
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Of(patterns) => patterns.iter().any(|pattern| pattern.fits(name)),
        }
    }
}

impl Rights {
    /// The rights if there are no rules.
    pub const ALL: Self = Self {
        connect: true,
        admin: true,
        join: Scope::All,
        send: Scope::All,
    };

    /// The rights if there are rules, and none matches.
    pub const NONE: Self = Self {
        connect: false,
        admin: false,
        join: Scope::Of(Vec::new()),
        send: Scope::Of(Vec::new()),
    };

    pub fn may_join(&self, group: &GroupName) -> bool {
        self.join.has(group.as_bytes())
    }

    /// The first of these destinations that it may not send to.
    pub fn first_forbidden(&self, to: &[Destination], names: &Names) -> Option<Destination> {
        let may = |to: &Destination| match (&self.send, to) {
            (Scope::All, _) => true,
            (scope, Destination::Group(group)) => scope.has(group.as_bytes()),
            (scope, Destination::Client(client, node)) => {
                scope.has(names.directory().private(*client, *node).as_bytes())
            }
        };
        to.iter().find(|to| !may(to)).copied()
    }

    /// True if the client may know of all groups.
    pub fn sees_all(&self) -> bool {
        self.join == Scope::All || self.send == Scope::All
    }

    /// True if the client may know that there is this group, and its members.
    pub fn may_see(&self, group: &GroupName) -> bool {
        self.join.has(group.as_bytes()) || self.send.has(group.as_bytes())
    }
}
