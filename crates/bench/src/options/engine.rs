//! What kind an engine is of, and where its votes may be.

use super::{EngineName, StorageName};

impl EngineName {
    /// Whether a token goes round in it with the messages.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::Accelerated | Self::Totem)
    }
}

impl StorageName {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Async, Self::Sync];
}
