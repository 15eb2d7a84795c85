//! What kind an engine is of.

use super::EngineName;

impl EngineName {
    /// Whether a token goes round in it with the messages.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::Accelerated | Self::Totem)
    }
}
