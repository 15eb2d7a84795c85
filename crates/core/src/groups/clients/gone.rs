//! Clients that have gone, and whose requests have not all come back.

use alloc::collections::BTreeMap;

use crate::groups::event::Connection;
use crate::groups::name::ClientName;
use crate::invariants::FEW;

#[derive(Debug)]
struct Owed {
    name: ClientName,
    bytes: usize,
}

/// The requests of gone clients that are on their way: no backlog limits such a client any more.
#[derive(Debug, Default)]
pub(super) struct Gone {
    owed: BTreeMap<Connection, Owed>,
    bytes: usize,
}

impl Gone {
    /// `bytes` more are on their way.
    pub fn owes(&mut self, connection: Connection, name: ClientName, bytes: usize) {
        let owed = self.owed.entry(connection);
        owed.or_insert(Owed { name, bytes: 0 }).bytes += bytes;
        self.bytes += bytes;
    }

    /// `bytes` have come back.
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

    /// The bytes of all gone clients.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Their invariants.
    pub fn check(&self) {
        let few = self.owed.len() <= FEW;
        assert!(
            !few || self.bytes == self.owed.values().map(|owed| owed.bytes).sum(),
            "what gone clients have on its way is counted"
        );
    }

    /// The number of gone clients.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Whether one of them had this name.
    pub fn has(&self, name: ClientName) -> bool {
        self.owed.values().any(|owed| owed.name == name)
    }
}
