//! Clients that have gone, and whose requests have not all come back.

use alloc::collections::BTreeMap;

use crate::groups::event::Connection;
use crate::groups::name::ClientName;

#[derive(Debug)]
struct Owed {
    name: ClientName,
    bytes: usize,
}

/// What is on its way of clients that have gone: nobody keeps it back any more.
#[derive(Debug, Default)]
pub(super) struct Gone {
    owed: BTreeMap<Connection, Owed>,
    bytes: usize,
}

impl Gone {
    /// So much more is on its way.
    pub fn owes(&mut self, connection: Connection, name: ClientName, bytes: usize) {
        let owed = self.owed.entry(connection);
        owed.or_insert(Owed { name, bytes: 0 }).bytes += bytes;
        self.bytes += bytes;
    }

    /// So much has come back.
    pub fn repays(&mut self, connection: Connection, bytes: usize) {
        let Some(owed) = self.owed.get_mut(&connection) else {
            return;
        };
        owed.bytes = owed.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if owed.bytes == 0 {
            self.owed.remove(&connection);
        }
    }

    /// Of all of them.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Whether one of them had this name.
    pub fn has(&self, name: ClientName) -> bool {
        self.owed.values().any(|owed| owed.name == name)
    }
}
